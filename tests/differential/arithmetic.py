"""Enclosures of arithmetic: sums, products, quotients, and what is built of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.differential.enclosures import (
    MAYBE,
    NEVER,
    SURELY,
    Real,
    down,
    finished,
    joined,
    read,
    up,
    where_exact,
    worst,
)
from tests.differential.formats import FORMATS, NDArray, as_array

FUSED = ("f32", "f64")
"""The formats in which processors multiply and add at once."""


def negative(x: Real) -> Real:
    """The negative, which is exact."""
    fused = None if x.fused is None else (-x.fused[1], -x.fused[0])
    return Real(x.format, -x.high, -x.low, x.nan, fused)


def add(a: Real, b: Real) -> Real:
    """The sum."""
    a, b = read(a), read(b)
    with np.errstate(all="ignore"):
        exact = a.exact & b.exact
        point = a.numbers + b.numbers
        if exact.all() and a.fused is None and b.fused is None:
            return where_exact(exact, a.format, point, a)
        plain = where_exact(exact, a.format, point, _sum(a, b, False))
        if a.fused is None and b.fused is None:
            return plain
        return joined(plain, _sum(a, b, True))


def _sum(a: Real, b: Real, fused: bool) -> Real:
    (al, ah), (bl, bh) = (
        x.fused if fused and x.fused is not None else (x.low, x.high) for x in (a, b)
    )
    clash = ((ah == np.inf) & (bl == -np.inf)) | ((al == -np.inf) & (bh == np.inf))
    sure = ((al == np.inf) & (bh == -np.inf)) | ((ah == -np.inf) & (bl == np.inf))
    low, high = al + bl, ah + bh
    low = np.where(np.isnan(low), -np.inf, down(low))
    high = np.where(np.isnan(high), np.inf, up(high))
    nan = np.where(sure, SURELY, np.where(clash, MAYBE, NEVER))
    low = np.where((al == np.inf) & (bl == np.inf), np.inf, low)
    high = np.where((ah == -np.inf) & (bh == -np.inf), -np.inf, high)
    return finished(a.format, low, high, worst(a.nan, b.nan, nan))


def subtract(a: Real, b: Real) -> Real:
    """The difference."""
    return add(a, negative(b))


def multiply(a: Real, b: Real) -> Real:
    """The product, and what it is before it is rounded."""
    a, b = read(a), read(b)
    with np.errstate(all="ignore"):
        exact = a.exact & b.exact
        point = a.numbers * b.numbers
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        corners = [np.where(np.isnan(each), 0, each) for each in corners]
        low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
        nan = np.where(_undefined(a, b), MAYBE, NEVER)
        nan = worst(a.nan, b.nan, nan)
        wide = a.format.name == "f64"
        if wide:  # an infinity is not rounded
            low = np.where(np.isinf(low), low, down(low))
            high = np.where(np.isinf(high), high, up(high))
        found = where_exact(exact, a.format, point, finished(a.format, low, high, nan))
        if a.format.name not in FUSED:
            return found
        lower = np.where(found.nan == SURELY, 0, np.minimum(low, found.low))
        upper = np.where(found.nan == SURELY, 0, np.maximum(high, found.high))
        return Real(a.format, found.low, found.high, found.nan, (lower, upper))


def _undefined(a: Real, b: Real) -> NDArray:
    """Where a zero may meet an infinity."""
    return np.asarray((_has_zero(a) & _has_infinity(b)) | (_has_infinity(a) & _has_zero(b)))


def _has_zero(x: Real) -> NDArray:
    return np.asarray((x.low <= 0) & (x.high >= 0))


def _has_infinity(x: Real) -> NDArray:
    return np.asarray((x.low == -np.inf) | (x.high == np.inf))


def divide(a: Real, b: Real) -> Real:
    """The quotient."""
    a, b = read(a), read(b)
    with np.errstate(all="ignore"):
        exact = a.exact & b.exact
        point = a.numbers / b.numbers
        corners = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
        corners = [np.where(np.isnan(each), 0, each) for each in corners]
        low, high = down(np.minimum.reduce(corners)), up(np.maximum.reduce(corners))
        pole = _has_zero(b)
        low, high = np.where(pole, -np.inf, low), np.where(pole, np.inf, high)
        doubt = (_has_zero(a) & pole) | (_has_infinity(a) & _has_infinity(b))
        nan = worst(a.nan, b.nan, np.where(doubt, MAYBE, NEVER))
        return where_exact(exact, a.format, point, finished(a.format, low, high, nan))


def square(x: Real) -> Real:
    """The product with itself."""
    found = multiply(x, x)
    zero = found.low.dtype.type(0)
    low = np.where(found.low < 0, zero, found.low)
    fused = None if found.fused is None else (np.maximum(found.fused[0], 0), found.fused[1])
    return Real(x.format, low, found.high, found.nan, fused)


def convert(x: Real, to: str) -> Real:
    """The nearest numbers of another dtype, where subnormal ones may have become zeros."""
    target = FORMATS[to]
    low, high = x.format.flushed(x.low, x.high)
    low, high = (target.rounded(each.astype(_wider(x, target))) for each in (low, high))
    low, high = target.flushed(low, high)
    return Real(target, low, high, x.nan)


def _wider(x: Real, target: Any) -> Any:
    return np.longdouble if np.longdouble in (x.format.wide, target.wide) else np.float64


def total(x: Real, axes: Sequence[int], keep: bool = False) -> Real:
    """The sum over axes, in any order, of what is not rounded again if it is accumulated widely."""
    x = read(x)
    axes = tuple(axes)
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    low, high = (x.low, x.high) if x.fused is None else x.fused
    options: dict[str, Any] = {"axis": axes, "keepdims": keep}
    return _added(x, low, high, count, lambda each: np.sum(each, **options))


def running_total(x: Real, axis: int) -> Real:
    """The sums of the first elements along an axis."""
    x = read(x)
    low, high = (x.low, x.high) if x.fused is None else x.fused
    count = x.shape[axis]
    return _added(x, low, high, count, lambda each: np.add.accumulate(each, axis=axis))


def _added(
    x: Real, low: NDArray, high: NDArray, count: int, add_up: Callable[[NDArray], Any]
) -> Real:
    sums = FORMATS[x.format.sums]
    with np.errstate(all="ignore"):
        sure, maybe = (add_up((x.nan >= mark).astype(np.int32)) > 0 for mark in (SURELY, MAYBE))
        number = x.nan < SURELY
        lower = np.where(np.isfinite(low) & number, low, 0)
        upper = np.where(np.isfinite(high) & number, high, 0)
        size = np.maximum(np.abs(lower), np.abs(upper))
        positive, negative_ = np.where(upper > 0, upper, 0), np.where(lower < 0, -lower, 0)
        first, last, most = add_up(lower), add_up(upper), add_up(size)
        margin = most * (count + 1) * sums.unit * 1.01 + (count + 1) * sums.least
        exact = _is_exact(lower, upper, most, sums.precision) & (x.fused is None)
        margin = np.where(exact, 0, margin)
        first, last = first - margin, last + margin
        first = np.where(np.isnan(first), -np.inf, first)
        last = np.where(np.isnan(last), np.inf, last)
        limit = sums.largest
        over, under = add_up(positive) * 1.001 > limit, add_up(negative_) * 1.001 > limit
        ups = add_up(((high == np.inf) & (x.nan < SURELY)).astype(np.int32)) > 0
        downs = add_up(((low == -np.inf) & (x.nan < SURELY)).astype(np.int32)) > 0
        always_up = add_up(((low == np.inf) & (x.nan == NEVER)).astype(np.int32)) > 0
        always_down = add_up(((high == -np.inf) & (x.nan == NEVER)).astype(np.int32)) > 0
        may_be_up, may_be_down = ups | over, downs | under
        last = np.where(may_be_up, np.inf, last)
        first = np.where(may_be_down, -np.inf, first)
        first = np.where(always_up, np.inf, first)
        last = np.where(always_down, -np.inf, last)
        # Sums of one sign that are far above the largest number are infinite in every order.
        first = np.where(over & ~may_be_down & (first > limit * 1.001), np.inf, first)
        last = np.where(under & ~may_be_up & (last < -limit * 1.001), -np.inf, last)
        nan = np.where(may_be_up & may_be_down, MAYBE, NEVER)
        nan = np.where(always_up & always_down, SURELY, nan)
        nan = worst(nan, np.where(maybe, MAYBE, NEVER), np.where(sure, SURELY, NEVER))
        # Where an infinity is certain but not its place among bounds that have crossed.
        crossed = first > last
        first, last = np.where(crossed, -np.inf, first), np.where(crossed, np.inf, last)
        return finished(x.format, first, last, nan)


def _is_exact(low: NDArray, high: NDArray, most: NDArray, precision: int) -> NDArray:
    """Where all sums are exact: of known multiples of 1/256 that are not too large."""
    steps = low * 256
    whole = bool(np.all((low == high) & (steps == np.rint(steps))))
    return np.asarray((most * 256 <= 2.0**precision) & whole)


def product(x: Real, axes: Sequence[int], keep: bool = False) -> Real:
    """The product over axes, in any order."""
    axes = tuple(axes)
    return _multiplied(
        x,
        int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64)),
        lambda f, each: f.reduce(each, axis=axes, keepdims=keep),
    )


def running_product(x: Real, axis: int) -> Real:
    """The products of the first elements along an axis."""
    return _multiplied(x, x.shape[axis], lambda f, each: f.accumulate(each, axis=axis))


def _multiplied(x: Real, count: int, combine: Callable[[Any, NDArray], Any]) -> Real:
    x = read(x)
    sums = FORMATS[x.format.sums]
    with np.errstate(all="ignore"):
        plain = np.isfinite(x.low) & np.isfinite(x.high) & (x.nan == NEVER)
        low, high = np.where(plain, x.low, 1), np.where(plain, x.high, 1)
        size = np.maximum(np.abs(low), np.abs(high))
        least = np.where((low <= 0) & (high >= 0), 0, np.minimum(np.abs(low), np.abs(high)))
        # All partial products are normal if that of the large and that of the small factors is.
        most = combine(np.multiply, np.maximum(size, 1))
        fewest = combine(np.multiply, np.where(least == 0, 1, np.minimum(least, 1)))
        safe = (most < sums.largest) & (fewest > sums.least) & combine(np.logical_and, plain)
        magnitude, smallest = combine(np.multiply, size), combine(np.multiply, least)
        negatives = combine(np.add, (high < 0).astype(np.int32)) % 2 == 1
        either = combine(np.logical_or, (low < 0) & (high >= 0))
        error = 1 + (count + 1) * sums.unit * 1.01
        most, least = as_array(magnitude * error), as_array(smallest / error)
        first = np.where(either, -most, np.where(negatives, -most, least))
        last = np.where(either, most, np.where(negatives, -least, most))
        first, last = np.where(safe, first, -np.inf), np.where(safe, last, np.inf)
        sure = combine(np.logical_or, x.nan == SURELY)
        nan = np.where(sure, SURELY, np.where(safe, NEVER, MAYBE))
        return finished(x.format, first, last, nan)


def mean(x: Real, axes: Sequence[int], keep: bool = False) -> Real:
    """The mean over axes."""
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    wide = FORMATS[x.format.sums]
    accumulated = convert(x, wide.name) if wide is not x.format else x
    quotient = divide(total(accumulated, axes, keep), constant(wide.name, count))
    return convert(quotient, x.format.name) if wide is not x.format else quotient


def constant(dtype: str, number: float) -> Real:
    """A number."""
    from tests.differential.enclosures import real

    return real(FORMATS[dtype], FORMATS[dtype].dtype.type(number))


def matrix_product(a: Real, b: Real) -> Real:
    """`a @ b` of arrays with at least one axis each, as sums of products."""
    narrow, sums = a.format.name, a.format.sums
    if narrow != sums:
        return convert(matrix_product(convert(a, sums), convert(b, sums)), narrow)
    left = a.moved(lambda each: each if each.ndim > 1 else each[None])
    right = b.moved(lambda each: each if each.ndim > 1 else each[:, None])
    left = left.moved(lambda each: each[..., :, None, :])
    right = right.moved(lambda each: np.swapaxes(each, -1, -2)[..., None, :, :])
    found = total(multiply(left, right), (-1,))
    if len(a.shape) == 1:
        found = found.moved(lambda each: each[..., 0, :])
    if len(b.shape) == 1:
        found = found.moved(lambda each: each[..., 0])
    return found
