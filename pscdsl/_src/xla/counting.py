"""Arrays of 2**31 elements and more, which an i32 cannot count."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from pscdsl._src.ir.program import Equation, Function, walk
from pscdsl._src.primitives.control import Call
from pscdsl._src.primitives.pointwise import Pointwise
from pscdsl._src.primitives.shaping import Shaping, SizeValue
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.codes.limits import TooLargeToCompile
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, KEY, U32

MOST: Final = 1 << 31
"""Sizes below are numbers of i32, the dtype of indices and counts."""
_COUNTS: Final = (I32, U32, KEY)
_UNCOUNTED: Final = (Pointwise, Shaping, Call)
"""Primitives that compute each element alone or move all of them: no evaluate is an index."""


def require_countable(function: Function, evaluate: Callable[[Size], int]) -> None:
    """Raise a Failure if a function counts or indexes more elements than an i32 can.

    `evaluate` evaluates a size. The functions that it calls are checked separately.
    """
    for equation in walk(function.body):
        problem = _uncountable(equation, evaluate)
        if problem:
            raise Failure(
                TooLargeToCompile(
                    what=problem,
                    instead="indices and counts are i32: work on parts of less than 2**31 elements",
                    span=equation.span,
                )
            )


def _uncountable(equation: Equation, evaluate: Callable[[Size], int]) -> str:
    """Describe the object that is too large to count; empty if there is none."""
    primitive = equation.primitive
    if isinstance(primitive, SizeValue):
        value = evaluate(primitive.size)
        fits = primitive.dtype not in _COUNTS or value < MOST
        return "" if fits else f"the size {value}"
    if isinstance(primitive, _UNCOUNTED):
        return ""
    types = [atom.type for atom in (*equation.inputs, *equation.outputs)]
    largest = max((_elements(type_.shape, evaluate) for type_ in types), default=0)
    if largest < MOST:
        return ""
    looped = [*primitive.blocks()]
    if looped and any(evaluate(size) >= MOST for type_ in types for size in type_.shape):
        return f"a loop over an array of {largest} elements"
    return f"an array of {largest} elements" if not looped and _counts(types) else ""


def _elements(shape: Iterable[Size], evaluate: Callable[[Size], int]) -> int:
    return math.prod(map(evaluate, shape))


def _counts(types: Iterable[ArrayType]) -> bool:
    return any(type_.dtype in _COUNTS for type_ in types)
