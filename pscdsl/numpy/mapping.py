"""Functions applied along axes of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.program import Scalar
from pscdsl._src.language.meanings import describe, function
from pscdsl._src.primitives.control import Scan
from pscdsl.numpy.axes import normalize_axes, normalize_axis
from pscdsl.numpy.calling import as_array
from pscdsl.numpy.shorthand import moved, reshaped, transposed
from pscdsl.typing.arrays import size_of
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim


def _applied(name: str, func: Any, here: Builder, args: Sequence[Any], kwargs: Any) -> Value:
    """What a function returns, as one array."""
    if not hasattr(func, "apply"):
        raise Failure(
            BadArguments(function=name, problem=f"takes a function, not {describe(func)}")
        )
    result = func.apply(here, tuple(args), kwargs)
    if isinstance(result, Weak):
        return result.default()
    if isinstance(result, Scalar | Dim):
        return here.weak(result).default()
    return as_array(result, name, "the result of the function")


@function("numpy.apply_along_axis", together=("arr",))
def apply_along_axis(
    here: Builder, func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Value:
    """A function of vectors, applied to each vector along an axis, one after the other."""
    name = "numpy.apply_along_axis"
    x = as_array(arr, name, "arr")
    place = normalize_axis(axis, x.ndim, name)
    program = x.builder.program
    if x.ndim == 1:
        return _applied(name, func1d, program.current, (x, *args), kwargs)
    rest = (*x.shape[:place], *x.shape[place + 1 :])
    count, size = size_of(rest), x.shape[place]
    rows = reshaped(moved(x, place, x.ndim - 1), (count, size))
    with program.inside() as inner:
        row = inner.parameter(x.type.with_shape((size,)), "row")
        result = _applied(name, func1d, inner, (row, *args), kwargs)
        block, captured = inner.finish((row,), (result,))
    scan = Scan(block, captured=len(captured), carried=0, length=count)
    stacked = scan.bind(*captured, rows)[0]
    own, others = stacked.ndim - 1, len(rest)
    stacked = reshaped(stacked, (*rest, *stacked.shape[1:]))
    before, after = range(place), range(place, others)
    return transposed(stacked, (*before, *range(others, others + own), *after))


@function("numpy.apply_over_axes", together=("a",))
def apply_over_axes(here: Builder, func: Any, a: Any, axes: Any) -> Value:
    """A function of an array and an axis, applied for each axis in turn; axes are kept."""
    name = "numpy.apply_over_axes"
    x = as_array(a, name, "a")
    for axis in normalize_axes(axes, x.ndim, name):
        result = _applied(name, func, x.builder.program.current, (x, axis), {})
        if result.ndim == x.ndim - 1:
            result = reshaped(result, (*result.shape[:axis], 1, *result.shape[axis:]))
        if result.ndim != x.ndim:
            problem = (
                f"takes a function that keeps axes or drops one, not {x.type} to {result.type}"
            )
            raise Failure(BadArguments(function=name, problem=problem))
        x = result
    return x
