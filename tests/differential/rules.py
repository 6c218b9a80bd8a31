"""The rules by which programs mean what is written, each of which can be switched off.

`python -m tests.campaign differential --first --without RULE` tries programs without a rule until
one is wrong, and so shows that the long run sees what the rule is for.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from pscdsl._src.primitives import exponentials as computed
from pscdsl._src.primitives import formulas, transcendental
from pscdsl._src.xla import exactness

Replacement: TypeAlias = tuple[object, str, Any]
"""A module, a name of it, and what that stands for instead."""

_options: Final = exactness.options
_guard: Final = exactness.guard


def _with_option(name: str, value: object) -> Replacement:
    """Modules that have an option get another value of it; None for none."""

    def options(module: Any) -> Mapping[str, Any]:
        found = {**_options(module)}
        if name in found:
            found[name] = value
        return {key: each for key, each in found.items() if each is not None}

    return exactness, "options", options


def _without_nan(module: Any, holds_nan: bool, holds_sums: bool) -> None:
    _guard(module, False, holds_sums)


def _without_sums(module: Any, holds_nan: bool, holds_sums: bool) -> None:
    _guard(module, holds_nan, False)


def _kept_as_it_is(module: Any) -> None:
    pass


def _root_itself(hlo: Any, root: Any, x: Any, given: Any) -> Any:
    return root


def _divisor_itself(hlo: Any, y: Any, common: Any) -> tuple[Any, Any]:
    return hlo.compare("EQ", y, hlo.full(0, common)), y


def _from_library(name: str) -> Any:
    def emit(hlo: Any, operands: Any, *_: object) -> Any:
        return hlo.unary(f"chlo.{name}", operands[0])

    return SimpleNamespace(emit=emit)


RULES: Final[Mapping[str, Replacement]] = {
    "simplifier": _with_option(exactness.DISABLED, exactness.MOVER),
    "excess precision": _with_option(exactness.EXCESS, None),
    "sums of products": _with_option(exactness.LIBRARY, None),
    "known NaN": (exactness, "guard", _without_nan),
    "added exponentials": (exactness, "guard", _without_sums),
    "signed zeros": (exactness, "keep", _kept_as_it_is),
    "cube roots": (transcendental, "_one_step_nearer", _root_itself),
    "hyperbolic functions": (
        *(transcendental, "exponentials"),
        SimpleNamespace(
            sinh=_from_library("sinh"),
            cosh=_from_library("cosh"),
            log1p=computed.log1p,
            atanh=computed.atanh,
        ),
    ),
    "integer divisors": (formulas, "_divisor", _divisor_itself),
}
"""By name, what to put in place of each."""


@contextmanager
def without(rule: str | None) -> Generator[None]:
    """Compile without a rule meanwhile, or with all."""
    if rule is None:
        yield
        return
    with patch.object(*RULES[rule]):
        yield
