"""Medians, quantiles and percentiles.

Elements are sorted once; which of them to take is computed in f64, so that it does not depend on
the precision of the elements.  A place that falls on an element gives that element, also beside
an infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.elementwise import Clamp
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.reductions import Reduce
from pscdsl.numpy.axes import Axes, normalize_axes
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.elementwise import REAL, require, to_inexact
from pscdsl.numpy.reductions import count_along, reduced_shape, require_elements
from pscdsl.numpy.shorthand import (
    at,
    cast,
    filled,
    is_nan,
    reshaped,
    spread,
    transposed,
    where,
    wide,
)
from pscdsl.numpy.sorting import in_order
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL, F64, I32


@dataclass(frozen=True, slots=True)
class Method:
    """How a quantile is taken from sorted elements.

    place    where it lies among n elements, counted from 0, perhaps between two
    share    how much of the upper neighbour counts, from the fraction of the place; None if the
             place is always that of an element
    """

    place: Callable[[Value, Value], Any]
    share: Callable[[Value], Value] | None


def _proportional(n: Value, q: Value) -> Any:
    return (n - 1) * q


def _between(alpha: float, beta: float) -> Callable[[Value, Value], Any]:
    return lambda n, q: n * q + (q * (1 - alpha - beta) + (alpha - 1))


def _unchanged(share: Value) -> Value:
    return share


def _constant(inside: float, on: float) -> Callable[[Value], Value]:
    def share(x: Value) -> Value:
        return where(e.equal(x, 0), filled(x, on, ()), filled(x, inside, ()))

    return share


METHODS: dict[str, Method] = {
    "linear": Method(_proportional, _unchanged),
    "lower": Method(lambda n, q: e.floor(_proportional(n, q)), None),
    "higher": Method(lambda n, q: e.ceil(_proportional(n, q)), None),
    "nearest": Method(lambda n, q: e.round_even(_proportional(n, q)), None),
    "midpoint": Method(_proportional, _constant(0.5, 0.0)),
    "inverted_cdf": Method(lambda n, q: e.ceil(n * q - 1), None),
    "averaged_inverted_cdf": Method(lambda n, q: n * q - 1, _constant(1.0, 0.5)),
    "closest_observation": Method(lambda n, q: e.round_even(n * q) - 1, None),
    "interpolated_inverted_cdf": Method(_between(0, 1), _unchanged),
    "hazen": Method(_between(0.5, 0.5), _unchanged),
    "weibull": Method(_between(0, 0), _unchanged),
    "median_unbiased": Method(_between(1 / 3, 1 / 3), _unchanged),
    "normal_unbiased": Method(_between(3 / 8, 3 / 8), _unchanged),
}
"""The methods of Hyndman and Fan, and the older ones, by NumPy's names."""


def _fraction(here: Builder, q: Any, scale: int, name: str) -> Value:
    """The quantile wanted, in f64; what is known while checking must be within its range."""
    if isinstance(q, Weak):
        q = q.at(F64)
    if isinstance(q, Value):
        require(name, q, "floating")
        q = cast(q, F64)
        return q if scale == 1 else e.divide(q, scale)  # type: ignore[no-any-return]
    try:
        numbers = np.asarray(q, np.float64) / scale
    except (TypeError, ValueError):
        raise Failure(
            BadArguments(function=name, problem=f"takes numbers, not {describe(q)}")
        ) from None
    if not np.all((numbers >= 0) & (numbers <= 1)):
        problem = f"takes fractions between 0 and {scale}, not {describe(q)}"
        raise Failure(BadArguments(function=name, problem=problem))
    return here.constant(numbers)


def _method(method: object, name: str) -> Method:
    found = METHODS.get(method) if isinstance(method, str) else None
    if found is None:
        raise Failure(BadArguments(function=name, problem=f"has no method {describe(method)}"))
    return found


def rows_of(a: Value, axes: Sequence[int]) -> Value:
    """The axes put together as a last one."""
    rest = [axis for axis in range(a.ndim) if axis not in axes]
    ordered = transposed(a, (*rest, *axes))
    shape = (*ordered.shape[: len(rest)], count_along(a.shape, axes))
    return reshaped(ordered, shape)


def _quantiles(
    a: Value, q: Value, axis: Axes, method: Method, keepdims: bool, name: str, skip_nan: bool
) -> Value:
    require(name, a, REAL)
    if a.dtype is BOOL and method.share is not None and "median" not in name:
        require(name, a, "real")  # NumPy's subtraction, which is not defined on bools
    a = a if method.share is None and not a.dtype.is_float else to_inexact(a)
    axes = normalize_axes(axis, a.ndim, name)
    require_elements(a, axes, name)
    rows = in_order(rows_of(a, axes), a.ndim - len(axes))
    if skip_nan and a.dtype.is_float:
        present = Reduce("sum", (rows.ndim - 1,))(cast(e.invert(is_nan(rows)), I32))
        result = _taken(rows, cast(present, F64), q, method)
    else:
        count = a.builder.program.current.size(rows.shape[-1], F64)
        result = _taken(rows, count, q, method)
        if a.dtype.is_float:
            last = at(rows, rows.ndim - 1, rows.shape[-1] - 1)
            missing = spread(is_nan(last), result.shape, range(q.ndim, result.ndim))
            result = where(missing, filled(result, np.nan, ()), result)
    if keepdims:
        result = reshaped(result, (*q.shape, *reduced_shape(a.shape, axes, True)))
    return result


def _taken(rows: Value, count: Value, q: Value, method: Method) -> Value:
    """The quantiles of sorted rows, of which `count` elements count; the axes of q come first."""
    by_row = count.ndim
    if by_row:
        shape = (*count.shape, *q.shape)
        count = spread(count, shape, range(by_row))
        q = spread(q, shape, range(by_row, len(shape)))
    place: Value = method.place(count, q)
    below: Value = e.floor(place)
    low = _picked(rows, below, count, by_row)
    if method.share is None:
        return low
    high = _picked(rows, e.add(below, 1), count, by_row)
    share = method.share(e.subtract(place, below))
    if by_row:
        share = transposed(share, (*range(by_row, share.ndim), *range(by_row)))
    share = cast(share, wide(rows.dtype))
    share = share if not share.ndim else spread(share, low.shape, range(share.ndim))
    return cast(_blended(cast(low, share.dtype), cast(high, share.dtype), share), rows.dtype)


def _picked(rows: Value, place: Value, count: Value, by_row: int) -> Value:
    """The elements at places, clamped to those that count; the axes of the places come first."""
    zero = filled(place, 0, ())
    inside: Value = Clamp()(zero, place, e.maximum(e.subtract(count, 1), zero))
    index = reshaped(cast(inside, I32), (*place.shape, 1))
    found = Gather((rows.ndim - 1,), batched=by_row)(rows, index)
    return transposed(found, (*range(by_row, found.ndim), *range(by_row)))


def _blended(low: Value, high: Value, share: Value) -> Value:
    """Between two elements, exact at both, also where one is infinite or they are equal."""
    inner: Value = e.add(e.multiply(low, e.subtract(1, share)), e.multiply(high, share))
    inner = where(e.equal(share, 1), high, inner)
    equal = e.equal(low, high)
    # Equal elements share the derivative.
    inner = where(equal, e.add(low, e.multiply(e.subtract(high, low), share)), inner)
    infinite = e.bitwise_and(equal, e.equal(e.absolute(low), math.inf))
    return where(e.bitwise_or(e.equal(share, 0), infinite), low, inner)


@of_numbers("numpy.median", together=("a",))
def median(a: Value, axis: Axes = None, *, keepdims: bool = False) -> Value:
    """The middle element, or the mean of the two in the middle; NaN if one is NaN."""
    half = a.builder.program.current.literal(0.5, F64)
    return _quantiles(a, half, axis, METHODS["linear"], keepdims, "numpy.median", False)


@of_numbers("numpy.nanmedian", together=("a",))
def nanmedian(a: Value, axis: Axes = None, *, keepdims: bool = False) -> Value:
    """The median of what is not NaN; NaN if there is nothing else."""
    half = a.builder.program.current.literal(0.5, F64)
    return _quantiles(a, half, axis, METHODS["linear"], keepdims, "numpy.nanmedian", True)


def _declare(name: str, scale: int, skip_nan: bool) -> None:
    qualified = f"numpy.{name}"

    @of_numbers(qualified, together=("a",), traced=("q",))
    def quantile(
        here: Builder,
        a: Value,
        q: Any,
        axis: Axes = None,
        *,
        method: str = "linear",
        keepdims: bool = False,
    ) -> Value:
        """Elements below which a fraction of all lies; the axes of q come first."""
        fraction = _fraction(here, q, scale, qualified)
        return _quantiles(
            a, fraction, axis, _method(method, qualified), keepdims, qualified, skip_nan
        )


_declare("quantile", 1, False)
_declare("percentile", 100, False)
_declare("nanquantile", 1, True)
_declare("nanpercentile", 100, True)
