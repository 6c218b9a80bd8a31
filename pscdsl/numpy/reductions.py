"""Sums, products, extrema and truth over axes, also running ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Scalar
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.language.results import Result
from pscdsl._src.primitives.elementwise import (
    Elementwise,
    add,
    maximum,
    minimum,
    multiply,
)
from pscdsl._src.primitives.reductions import Accumulation, Cumulative, Extreme, Reduce, identity
from pscdsl.numpy.calling import Axes, counted, normalize_axis, of_numbers, reduced_axes
from pscdsl.numpy.elementwise import REAL, require
from pscdsl.numpy.shorthand import (
    at_least,
    cast,
    filled,
    integers_of,
    is_nan,
    joined,
    raveled,
    reshaped,
    truth,
    where,
)
from pscdsl.typing.array_types import Shape
from pscdsl.typing.codes.element_types import AccumulatorTooNarrow
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_of_arguments import EmptyReduction
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32, U32, U64, DType, Kind

# Sums, products, extrema and truth over axes.
#
# Small integers are summed in 32 bits, half precisions in f32.  What has no meaning on nothing (a
# maximum) is refused unless there is known to be something.


def wide_integers(a: Value) -> Value:
    """Integers and bools as they are added up: in as many bits as integers have here."""
    if a.dtype.is_integer and not a.dtype.signed:
        program = a.builder.program
        bits = program.choose(program.site("integers"), Kind.INT).bits
        wide = U64 if bits == 64 else U32
        return a if a.dtype.bits >= wide.bits else integers_of(a, wide)
    if a.dtype is BOOL or (a.dtype.is_integer and a.dtype.bits < 64):
        return integers_of(a)
    return a


def accumulated(a: Value, dtype: DType | None, name: str) -> Value:
    """The array in the dtype in which it is added up."""
    if dtype is None:
        return wide_integers(a)
    if not dtype.is_number:
        problem = f"takes a dtype of numbers, not {dtype}"
        raise Failure(BadArguments(function=name, problem=problem))
    if dtype.kind < a.dtype.kind:
        raise Failure(AccumulatorTooNarrow(function=name, given=a.type, dtype=dtype))
    return cast(a, dtype)


def reduced_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """A shape after a reduction over axes."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def count_along(shape: Shape, axes: Sequence[int]) -> Size:
    """Return how many elements a reduction over axes takes together."""
    total: Size = 1
    for axis in axes:
        total = total * shape[axis]
    return total


def finished(reduced: Value, shape: Shape, axes: Sequence[int], keepdims: bool) -> Value:
    """A reduction of an array of a shape, with the axes retained if so asked."""
    return reshaped(reduced, reduced_shape(shape, axes, True)) if keepdims else reduced


def total(a: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
    """The sum over axes, in the array's own dtype."""
    return finished(Reduce("sum", axes)(a), a.shape, axes, keepdims) if axes else a


def require_elements(a: Value, axes: Sequence[int], name: str, remedy: str = "") -> None:
    """Refuse unless every axis is known to have elements."""
    facts = a.builder.facts
    for axis in axes:
        if not at_least(facts, a.shape[axis], 1):
            size = a.shape[axis]
            raise Failure(EmptyReduction(function=name, given=a.type, size=size, remedy=remedy))


def extremum(a: Value, kind: Extreme, axes: tuple[int, ...], keepdims: bool = False) -> Value:
    """The largest or smallest over axes that are known to have elements."""
    return finished(Reduce(kind, axes)(a), a.shape, axes, keepdims) if axes else a


def _started(result: Value, initial: Value | Scalar | None, combine: Elementwise) -> Value:
    """A reduction with one more element."""
    if initial is not None:
        result = combine(result, initial)
    return result


@of_numbers("numpy.sum", together=("a",), scalars=("initial",))
def sum(  # noqa: A001
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    keepdims: bool = False,
    initial: Value | Scalar | None = None,
) -> Value:
    """The sum over axes; bool and small integers are summed in 32 bits."""
    axes = reduced_axes(axis, a.ndim, "numpy.sum")
    if a.dtype is BOOL and dtype is None:
        result = integers_of(total(cast(a, I32), axes, keepdims))
    else:
        result = total(accumulated(a, dtype, "numpy.sum"), axes, keepdims)
    return _started(result, initial, add)


@of_numbers("numpy.prod", together=("a",), scalars=("initial",))
def prod(
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    keepdims: bool = False,
    initial: Value | Scalar | None = None,
) -> Value:
    """The product over axes; bool and small integers are multiplied in 32 bits."""
    x, axes = accumulated(a, dtype, "numpy.prod"), reduced_axes(axis, a.ndim, "numpy.prod")
    result = finished(Reduce("product", axes)(x), a.shape, axes, keepdims) if axes else x
    return _started(result, initial, multiply)


class _Product(Meaning):
    """`np.prod`; of a shape it gives a size."""

    def apply(self, here: Builder | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The product, as that of all sizes where it is one."""
        known = counted(here, args[0]) if len(args) == 1 and not kwargs else None
        return super().apply(here, args, kwargs) if known is None else known


prod = MEANINGS["numpy.prod"] = _Product(
    "numpy.prod", prod.body, together=("a",), lists=("a",), result=Result.NEW
)


def _extremum(
    a: Value,
    kind: Extreme,
    axis: Axes,
    keepdims: bool,
    initial: Value | Scalar | None,
    name: str,
) -> Value:
    axes = reduced_axes(axis, a.ndim, name)
    require(name, a, REAL)
    if initial is None:
        require_elements(a, axes, name, "give an `initial` value")
        return extremum(a, kind, axes, keepdims)
    combine = maximum if kind == "maximum" else minimum
    return _started(extremum(a, kind, axes, keepdims), initial, combine)


@of_numbers("numpy.max", "numpy.amax", together=("a",), scalars=("initial",))
def max(  # noqa: A001
    a: Value,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    initial: Value | Scalar | None = None,
) -> Value:
    """The largest over axes, NaN if one is NaN; refused where there may be nothing."""
    return _extremum(a, "maximum", axis, keepdims, initial, "numpy.max")


@of_numbers("numpy.min", "numpy.amin", together=("a",), scalars=("initial",))
def min(  # noqa: A001
    a: Value,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    initial: Value | Scalar | None = None,
) -> Value:
    """The smallest over axes, NaN if one is NaN; refused where there may be nothing."""
    return _extremum(a, "minimum", axis, keepdims, initial, "numpy.min")


@of_numbers("numpy.ptp", together=("a",))
def ptp(a: Value, axis: Axes = None, *, keepdims: bool = False) -> Value:
    """The largest minus the smallest."""
    require("numpy.ptp", a, "real")
    high = _extremum(a, "maximum", axis, keepdims, None, "numpy.ptp")
    return high - _extremum(a, "minimum", axis, keepdims, None, "numpy.ptp")


@of_numbers("numpy.all", alone=("a",))
def all(here: Builder, a: Value, axis: Axes = None, *, keepdims: bool = False) -> Value:  # noqa: A001
    """Return whether all elements over axes are other than zero."""
    axes = reduced_axes(axis, a.ndim, "numpy.all")
    x = truth(a)
    return finished(Reduce("all", axes)(x), a.shape, axes, keepdims) if axes else x


@of_numbers("numpy.any", alone=("a",))
def any(here: Builder, a: Value, axis: Axes = None, *, keepdims: bool = False) -> Value:  # noqa: A001
    """Return whether an element over axes is other than zero."""
    axes = reduced_axes(axis, a.ndim, "numpy.any")
    x = truth(a)
    return finished(Reduce("any", axes)(x), a.shape, axes, keepdims) if axes else x


@of_numbers("numpy.count_nonzero", alone=("a",))
def count_nonzero(here: Builder, a: Value, axis: Axes = None, *, keepdims: bool = False) -> Value:
    """Return how many elements are other than zero, as i32."""
    axes = reduced_axes(axis, a.ndim, "numpy.count_nonzero")
    return integers_of(total(cast(truth(a), I32), axes, keepdims))


def without_nan(a: Value, value: Scalar) -> Value:
    """The array with a number in place of each NaN."""
    return where(is_nan(a), filled(a, value, ()), a) if a.dtype.is_inexact else a


@of_numbers("numpy.nansum", together=("a",), scalars=("initial",))
def nansum(
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    keepdims: bool = False,
    initial: Value | Scalar | None = None,
) -> Value:
    """The sum of what is not NaN."""
    result: Value = sum(without_nan(a, 0), axis, dtype, keepdims=keepdims, initial=initial)
    return result


@of_numbers("numpy.nanprod", together=("a",), scalars=("initial",))
def nanprod(
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    keepdims: bool = False,
    initial: Value | Scalar | None = None,
) -> Value:
    """The product of what is not NaN."""
    result: Value = prod(without_nan(a, 1), axis, dtype, keepdims=keepdims, initial=initial)
    return result


def _nan_extremum(
    a: Value,
    kind: Extreme,
    axis: Axes,
    keepdims: bool,
    initial: Value | Scalar | None,
    name: str,
) -> Value:
    if not a.dtype.is_float:
        return _extremum(a, kind, axis, keepdims, initial, name)
    worst = -np.inf if kind == "maximum" else np.inf
    result = _extremum(without_nan(a, worst), kind, axis, keepdims, initial, name)
    axes = reduced_axes(axis, a.ndim, name)
    if initial is None:
        nothing = finished(Reduce("all", axes)(is_nan(a)), a.shape, axes, keepdims)
        result = where(nothing, filled(a, np.nan, ()), result) if axes else a
    return result


@of_numbers("numpy.nanmax", together=("a",), scalars=("initial",))
def nanmax(
    a: Value, axis: Axes = None, *, keepdims: bool = False, initial: Value | Scalar | None = None
) -> Value:
    """The largest of what is not NaN; NaN if there is nothing else."""
    return _nan_extremum(a, "maximum", axis, keepdims, initial, "numpy.nanmax")


@of_numbers("numpy.nanmin", together=("a",), scalars=("initial",))
def nanmin(
    a: Value, axis: Axes = None, *, keepdims: bool = False, initial: Value | Scalar | None = None
) -> Value:
    """The smallest of what is not NaN; NaN if there is nothing else."""
    return _nan_extremum(a, "minimum", axis, keepdims, initial, "numpy.nanmin")


# Running sums, products and extrema.


def running(
    a: Value, kind: Accumulation, axis: int | None, dtype: DType | None, name: str
) -> Value:
    """Each element combined with all before it; without an axis, of all in a row."""
    x = accumulated(a, dtype, name)
    if axis is None:
        return Cumulative(kind, 0)(raveled(x))
    return Cumulative(kind, normalize_axis(axis, a.ndim, name))(x)


@of_numbers("numpy.cumsum", together=("a",))
def cumsum(a: Value, axis: int | None = None, dtype: DType | None = None) -> Value:
    """The running sum; bool and small integers are summed in 32 bits."""
    return running(a, "sum", axis, dtype, "numpy.cumsum")


@of_numbers("numpy.cumprod", together=("a",))
def cumprod(a: Value, axis: int | None = None, dtype: DType | None = None) -> Value:
    """The running product; bool and small integers are multiplied in 32 bits."""
    return running(a, "product", axis, dtype, "numpy.cumprod")


@of_numbers("numpy.nancumsum", together=("a",))
def nancumsum(a: Value, axis: int | None = None, dtype: DType | None = None) -> Value:
    """The running sum of what is not NaN."""
    return running(without_nan(a, 0), "sum", axis, dtype, "numpy.nancumsum")


@of_numbers("numpy.nancumprod", together=("a",))
def nancumprod(a: Value, axis: int | None = None, dtype: DType | None = None) -> Value:
    """The running product of what is not NaN."""
    return running(without_nan(a, 1), "product", axis, dtype, "numpy.nancumprod")


@of_numbers("numpy.cumulative_sum", together=("x",))
def cumulative_sum(
    x: Value,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Value:
    """The running sum, also with the 0 from which it starts."""
    return _standard(x, "sum", axis, dtype, include_initial, "numpy.cumulative_sum")


@of_numbers("numpy.cumulative_prod", together=("x",))
def cumulative_prod(
    x: Value,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Value:
    """The running product, also with the 1 from which it starts."""
    return _standard(x, "product", axis, dtype, include_initial, "numpy.cumulative_prod")


def _standard(
    x: Value,
    kind: Accumulation,
    axis: int | None,
    dtype: DType | None,
    include_initial: bool,
    name: str,
) -> Value:
    if axis is None and x.ndim != 1:
        raise Failure(BadArguments(function=name, problem="needs an `axis` unless x has just one"))
    place = normalize_axis(0 if axis is None else axis, x.ndim, name)
    result = running(x, kind, place, dtype, name)
    if not include_initial:
        return result
    shape = (*x.shape[:place], 1, *x.shape[place + 1 :])
    start = filled(result, 0 if kind == "sum" else identity(kind, result.dtype), shape)
    return joined((start, result), place)
