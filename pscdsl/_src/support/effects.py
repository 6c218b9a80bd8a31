"""The kinds of effects that kernels are compiled with: those of `psc.debug` and `psc.check`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

RuntimeCheck: TypeAlias = Literal["nan", "inf", "index"]
Kind: TypeAlias = Literal["print", "value", "check", "progress"] | RuntimeCheck

VARIABLE: Final = "PSCDSL_CHECKS"
DEFAULT: Final[frozenset[Kind]] = frozenset({"print", "check", "progress"})
CHECKS: Final[tuple[RuntimeCheck, ...]] = ("nan", "inf", "index")


class _Compiled:
    """The kinds of effects that kernels are compiled with, and who asks to hear of changes."""

    def __init__(self) -> None:
        self.kinds = kinds_with(os.environ.get(VARIABLE, ""), VARIABLE)
        self.changed: Callable[[], None] = lambda: None
        """Has kernels find their programs again; the room of kernels sets it."""

    def become(self, kinds: frozenset[Kind]) -> None:
        """Compile with other kinds from now on."""
        if kinds != self.kinds:
            self.kinds = kinds
            self.changed()


def kinds_with(given: str, where: str) -> frozenset[Kind]:
    """Return the kinds of effects for names of checks, separated by commas, or `off`."""
    names = [name.strip() for name in given.split(",") if name.strip()]
    if names == ["off"]:
        return frozenset()
    return DEFAULT | frozenset[Kind]([known_check(name, where) for name in names])


def known_check(name: str, where: str) -> RuntimeCheck:
    for each in CHECKS:
        if name == each:
            return each
    raise ValueError(f"{where} takes {', '.join(CHECKS)} or off, not {name!r}")


COMPILED: Final = _Compiled()
