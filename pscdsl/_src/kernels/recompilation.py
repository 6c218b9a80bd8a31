"""Why a kernel was compiled again: what of its arguments differs from those of an earlier time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from pscdsl._src.xla.specialisation import Specialisation

MANY: Final = 10
"""How often a kernel is compiled before this is warned of."""
_SHOWN: Final = 3
"""How many arguments, or values of one part, are listed."""

log: Final = logging.getLogger("pscdsl.compile")


class Reasons:
    """The specialisations of one kernel, reported as they come."""

    def __init__(self) -> None:
        self._known: list[Specialisation] = []
        self._compiled: list[Specialisation] = []
        self._warned = False

    def tell(self, wanted: Specialisation, source: str, seconds: float) -> None:
        """Log where a program came from and why it was wanted; warn once if there are many."""
        name = wanted.program.name
        if log.isEnabledFor(logging.INFO):
            did = "compiled" if source == "compiled" else "loaded from disk"
            log.info("`%s` was %s in %.2f s: %s", name, did, seconds, self._why(wanted))
        self._known.append(wanted)
        if source == "compiled":
            self._compiled.append(wanted)
        if len(self._compiled) >= MANY and not self._warned:
            self._warned = True
            advice = _advice(self._compiled)
            log.warning("`%s` was compiled %d times%s", name, len(self._compiled), advice)

    def _why(self, wanted: Specialisation) -> str:
        if not self._known:
            return _listed([f"{part} is {value}" for part, value in wanted.parts.items()], "")
        before = min(  # the latest of those that differ least
            reversed(self._known), key=lambda old: len(_changes(old.parts, wanted.parts))
        )
        changes = _changes(before.parts, wanted.parts)
        moved = _changes(before.arguments, wanted.arguments)
        arguments = [f"`{path}` {change}" for path, change in moved.items()]
        told = "; ".join(f"{part} {change}" for part, change in changes.items())
        return told + (f" ({_listed(arguments, 'arguments')})" if arguments else "")


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """What differs, as `from → to`."""
    every = [*new, *[part for part in old if part not in new]]
    return {
        part: f"{old.get(part, 'nothing')} → {new.get(part, 'nothing')}"
        for part in every
        if old.get(part) != new.get(part)
    }


def _listed(items: list[str], what: str) -> str:
    more = f" and {len(items) - _SHOWN} more {what}".rstrip() if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more or "the first time"


def _advice(compiled: list[Specialisation]) -> str:
    """What takes most values, and what to do about it."""
    values: dict[str, dict[str, None]] = {}
    for each in compiled:
        for part, value in each.parts.items():
            values.setdefault(part, {})[value] = None
    part = max(values, key=lambda each: len(values[each]), default="")
    if not part or len(values[part]) == 1:
        return ""
    taken = list(values[part])
    few = ", ".join(taken[:_SHOWN]) + (", …" if len(taken) > _SHOWN else "")
    told = f", for {len(taken)} values of {part} ({few}): "
    if part.startswith("size "):
        return told + "pad to a few sizes, or compile ahead by `psc.compile_all`"
    if part.startswith("static "):
        return told + "if these are many, let it be an array"
    return told + "each of them is another program"
