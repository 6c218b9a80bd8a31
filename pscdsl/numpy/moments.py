"""Means, variances and standard deviations, in two passes; half precisions are taken in f32."""

from __future__ import annotations

from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Value, broadcast_to
from pscdsl._src.primitives.elementwise import (
    add,
    divide,
    imag,
    invert,
    maximum,
    multiply,
    real,
    sqrt,
    subtract,
)
from pscdsl.numpy.axes import Axes, normalize_axes
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.elementwise import require
from pscdsl.numpy.reductions import accumulated, count_along, total
from pscdsl.numpy.shorthand import cast, filled, is_nan, largest, where, wide
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import DType, inexact


def averaging_dtype(a: Value, dtype: DType | None, name: str) -> DType:
    """The floating-point dtype of an average."""
    if dtype is None:
        return inexact(a.dtype)
    if not dtype.is_inexact:
        problem = f"takes a floating-point or complex dtype, not {dtype}"
        raise Failure(BadArguments(function=name, problem=problem))
    return accumulated(a, dtype, name).dtype


def mean_over(x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
    """The mean over axes of an inexact array, in its own dtype."""
    result: Value = divide(total(x, axes, keepdims), count_along(x.shape, axes))
    return result


def squared(x: Value) -> Value:
    """The square of the absolute value of each element."""
    if not x.dtype.is_complex:
        return multiply(x, x)  # type: ignore[no-any-return]
    re, im = real(x), imag(x)
    return add(multiply(re, re), multiply(im, im))  # type: ignore[no-any-return]


@of_numbers("numpy.mean", together=("a",))
def mean(
    a: Value, axis: Axes = None, dtype: DType | None = None, *, keepdims: bool = False
) -> Value:
    """The mean over axes; of integers in f32, or f64 for those of 64 bits."""
    result = averaging_dtype(a, dtype, "numpy.mean")
    axes = normalize_axes(axis, a.ndim, "numpy.mean")
    return cast(mean_over(cast(a, wide(result)), axes, keepdims), result)


@of_numbers("numpy.var", together=("a", "mean"), scalars=("ddof", "correction"))
def var(
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    ddof: Any = 0,
    keepdims: bool = False,
    mean: Value | None = None,
    correction: Any = None,
) -> Value:
    """The variance over axes, real also for complex numbers."""
    result = averaging_dtype(a, dtype, "numpy.var")
    return cast(_variance(a, axis, result, _ddof(ddof, correction), keepdims, mean), result.real)


@of_numbers("numpy.std", together=("a", "mean"), scalars=("ddof", "correction"))
def std(
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    ddof: Any = 0,
    keepdims: bool = False,
    mean: Value | None = None,
    correction: Any = None,
) -> Value:
    """The standard deviation over axes, real also for complex numbers."""
    result = averaging_dtype(a, dtype, "numpy.std")
    variance = _variance(a, axis, result, _ddof(ddof, correction), keepdims, mean)
    return cast(sqrt(variance), result.real)


def _variance(
    a: Value, axis: Axes, dtype: DType, ddof: Any, keepdims: bool, mean: Value | None
) -> Value:
    axes, x = normalize_axes(axis, a.ndim, "numpy.var"), cast(a, wide(dtype))
    middle = mean_over(x, axes, keepdims=True) if mean is None else _fitting(mean, x)
    summed = total(squared(subtract(x, middle)), axes, keepdims)
    count = count_along(a.shape, axes)
    return divide(summed, _degrees(summed, count, ddof))  # type: ignore[no-any-return]


def _fitting(mean: Value, x: Value) -> Value:
    """A mean that the user gives: it has the axes of the array, or fewer."""
    require("numpy.var", mean, "inexact")  # NumPy subtracts it from integers in their own dtype
    if mean.ndim > x.ndim:
        wanted = f"a mean with at most {x.ndim} axes"
        raise Failure(WrongNumberOfAxes(function="numpy.var", given=mean.type, wanted=wanted))
    return broadcast_to(cast(mean, x.dtype), x.shape)


def _degrees(like: Value, count: Size, ddof: Any) -> Any:
    """The count less the degrees of freedom, but not below 0."""
    if isinstance(ddof, int | Dim):
        return largest(like.builder.facts, count - ddof, 0)
    number = like.builder.size(count, like.dtype)
    return maximum(subtract(number, ddof), 0)


def _ddof(ddof: Any, correction: Any) -> Any:
    if correction is None:
        return ddof
    if not (isinstance(ddof, int) and ddof == 0):
        raise Failure(BadArguments(function="numpy.var", problem="takes `ddof` or `correction`"))
    return correction


@of_numbers("numpy.nanmean", together=("a",))
def nanmean(
    a: Value, axis: Axes = None, dtype: DType | None = None, *, keepdims: bool = False
) -> Value:
    """The mean of what is not NaN; NaN if there is nothing else."""
    result = averaging_dtype(a, dtype, "numpy.nanmean")
    axes, x = normalize_axes(axis, a.ndim, "numpy.nanmean"), cast(a, wide(result))
    return cast(divide(_present_total(x, axes, keepdims), _present(x, axes, keepdims)), result)


@of_numbers("numpy.nanvar", together=("a", "mean"), scalars=("ddof", "correction"))
def nanvar(
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    ddof: Any = 0,
    keepdims: bool = False,
    mean: Value | None = None,
    correction: Any = None,
) -> Value:
    """The variance of what is not NaN; NaN if there is too little else."""
    result = averaging_dtype(a, dtype, "numpy.nanvar")
    variance = _nan_variance(a, axis, result, _ddof(ddof, correction), keepdims, mean)
    return cast(variance, result.real)


@of_numbers("numpy.nanstd", together=("a", "mean"), scalars=("ddof", "correction"))
def nanstd(
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    ddof: Any = 0,
    keepdims: bool = False,
    mean: Value | None = None,
    correction: Any = None,
) -> Value:
    """The standard deviation of what is not NaN; NaN if there is too little else."""
    result = averaging_dtype(a, dtype, "numpy.nanstd")
    variance = _nan_variance(a, axis, result, _ddof(ddof, correction), keepdims, mean)
    return cast(sqrt(variance), result.real)


def _nan_variance(
    a: Value, axis: Axes, dtype: DType, ddof: Any, keepdims: bool, mean: Value | None
) -> Value:
    axes, x = normalize_axes(axis, a.ndim, "numpy.nanvar"), cast(a, wide(dtype))
    if mean is None:
        middle = divide(_present_total(x, axes, True), _present(x, axes, True))
    else:
        middle = _fitting(mean, x)
    zero = filled(x, 0, ())
    spread = where(is_nan(x), zero, subtract(x, middle))
    summed = total(squared(spread), axes, keepdims)
    degrees = subtract(cast(_present(x, axes, keepdims), summed.dtype), ddof)
    enough = degrees > 0
    return where(enough, divide(summed, degrees), filled(summed, np.nan, ()))


def _present(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """How many elements over axes are not NaN."""
    return total(cast(invert(is_nan(x)), x.dtype), axes, keepdims)


def _present_total(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    return total(where(is_nan(x), filled(x, 0, ()), x), axes, keepdims)
