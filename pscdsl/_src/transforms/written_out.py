"""How long a program is when every call is written out, as XLA does before it compiles."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pscdsl._src.ir.program import Function, walk
from pscdsl._src.primitives.control import Call
from pscdsl._src.transforms.simplify.simplify import simplify
from pscdsl.typing.codes.limits import TooLargeToCompile
from pscdsl.typing.diagnostics import Failure

MOST: Final = 100_000
"""So many operations are compiled: XLA takes minutes for a tenth of them in a row."""


def require_compilable(function: Function) -> None:
    """A Failure if a program, or one that it calls, is longer than what is compiled."""
    if (found := operations(function)) > MOST:
        what = f"a program of {found} operations, its calls written out,"
        instead = (
            "`psc.fori_loop` and `psc.scan` are one operation, and their body is compiled once"
        )
        raise Failure(TooLargeToCompile(what=what, instead=instead, span=function.span))


def operations(function: Function, *, simplified: bool = False) -> int:
    """The number of equations of a function and of all that it calls, as often as it does.

    Where they are too many, repeated ones do not count, which those of a `simplified` function are
    not.  If they are too many in one that it calls, it is the number of that.
    """
    found: dict[Function, int] = {}
    due = [function]
    while due:  # functions may call each other in a long chain
        here = due[-1]
        own, called = _own(here)
        if missing := [each for each in called if each not in found]:
            due += missing
            continue
        due.pop()
        found[here] = own + sum([found[each] * often for each, often in called.items()])
        if found[here] > MOST and not simplified:
            found[here] = _simplified(here)
        if found[here] > MOST:
            return found[here]
    return found[function]


@lru_cache(maxsize=1024)
def _simplified(function: Function) -> int:
    return operations(simplify(function), simplified=True)


@lru_cache(maxsize=1024)
def _own(function: Function) -> tuple[int, dict[Function, int]]:
    """The number of its own equations, and how often it calls which functions."""
    own = 0
    called: dict[Function, int] = {}
    for equation in walk(function.body):
        own += 1
        if isinstance(equation.primitive, Call):
            inner = equation.primitive.function
            called[inner] = called.get(inner, 0) + 1
    return own, called
