"""Enclosures of functions of each element, of choices, of extremes, and of conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tests.differential.enclosures import (
    MAYBE,
    NEVER,
    SURELY,
    Exact,
    Real,
    Value,
    finished,
    joined,
    read,
    real,
    unknown,
    with_any_sign,
    worst,
)
from tests.differential.formats import DTYPES, FORMATS, NDArray, as_array, integers

Function: TypeAlias = Callable[[Any], Any]


def increasing(function: Function, ulps: float, domain: tuple[float, float] | None = None) -> Any:
    """The enclosure of an increasing function that is off by units in the last place."""

    def enclosed(x: Real) -> Real:
        x = read(x)
        least, most = (-np.inf, np.inf) if domain is None else domain
        with np.errstate(all="ignore"):
            outside = np.where((x.low < least) | (x.high > most), MAYBE, NEVER)
            outside = np.where((x.high < least) | (x.low > most), SURELY, outside)
            low = function(np.clip(x.low, least, most))
            high = function(np.clip(x.high, least, most))
            return _loosened(x, low, high, worst(x.nan, outside), ulps)

    return enclosed


def _loosened(x: Real, low: Any, high: Any, nan: Any, ulps: float) -> Real:
    """Bounds that are off by units in the last place; a zero of a zero keeps its sign."""
    loose = finished(x.format, *off(x, low, high, ulps), nan)
    zero = (low == 0) & (high == 0) & (np.signbit(low) == np.signbit(high)) & x.exact
    return Real(
        x.format,
        np.where(zero, low, loose.low),
        np.where(zero, high, loose.high),
        loose.nan,
    )


def off(x: Real, low: Any, high: Any, ulps: float) -> tuple[NDArray, NDArray]:
    """Bounds that are wider by units in the last place."""
    margin = ulps * 2 * x.format.unit
    below, above = (np.where(np.isinf(end), 0, np.abs(end) * margin) for end in (low, high))
    return np.asarray(low - below), np.asarray(high + above)


def even_increasing(function: Function, ulps: float) -> Any:
    """The enclosure of an even function that increases from 0 on, as `cosh`."""

    def enclosed(x: Real) -> Real:
        size = absolute(read(x))
        with np.errstate(all="ignore"):
            return _loosened(size, function(size.low), function(size.high), size.nan, ulps)

    return enclosed


def wave(function: Function, ulps: float) -> Any:
    """The enclosure of the sine or the cosine."""

    def enclosed(x: Real) -> Real:
        x = read(x)
        with np.errstate(all="ignore"):
            endless = np.isinf(x.low) | np.isinf(x.high)
            nan = np.where(endless, MAYBE, NEVER)
            nan = np.where(endless & (x.low == x.high), SURELY, nan)
            low = np.where(endless, 0, x.low)
            radius = as_array(np.where(endless, 2, (np.where(endless, 0, x.high) - low)))
            at: NDArray = function(low)
            wide = radius > 0
            radius = radius + 2 * np.spacing(np.maximum(np.abs(at), radius))  # what was rounded off
            bottom = np.where(wide, np.maximum(at - radius, -1), at)
            top = np.where(wide, np.minimum(at + radius, 1), at)
            found = _loosened(x, bottom, top, worst(x.nan, nan), ulps)
            return Real(x.format, np.maximum(found.low, -1), np.minimum(found.high, 1), found.nan)

    return enclosed


def tangent(x: Real) -> Real:
    """The tangent, known where its operand nearly is."""
    x = read(x)
    with np.errstate(all="ignore"):
        endless = np.isinf(x.low) & (x.low == x.high)
        low, high = np.tan(np.where(endless, 0, x.low)), np.tan(np.where(endless, 0, x.high))
        found = _loosened(x, low, high, worst(x.nan, np.where(endless, SURELY, NEVER)), 6)
        crossed = (x.high - x.low > 1) | (low > high)
        return unknown(found, np.where(x.nan == SURELY, False, ~endless & crossed))


def hypotenuse(x: Real, y: Real, ulps: float) -> Real:
    """The root of the sum of squares; infinite also beside NaN."""
    x, y = absolute(read(x)), absolute(read(y))
    with np.errstate(all="ignore"):
        low, high = np.hypot(x.low, y.low), np.hypot(x.high, y.high)
        nan = worst(x.nan, y.nan)
        endless = ((x.low == np.inf) & (x.nan == NEVER)) | ((y.low == np.inf) & (y.nan == NEVER))
        nan = np.where(endless, NEVER, nan)
        low, high = np.where(endless, np.inf, low), np.where(endless, np.inf, high)
        some = ~endless & (nan == SURELY) & (np.isinf(x.high) | np.isinf(y.high))
        return unknown(finished(x.format, *off(x, low, high, ulps), nan), some)


def signed(x: Real, y: Real) -> Real:
    """The size of one with the sign of another; NaN has any."""
    size = absolute(x)
    minus, plus = np.signbit(y.low) | (y.nan > 0), ~np.signbit(y.high) | (y.nan > 0)
    size = _broadcast(size, np.broadcast_shapes(x.shape, y.shape))
    return Real(
        x.format,
        np.where(minus, -size.high, size.low),
        np.where(plus, size.high, -size.low),
        size.nan,
    )


def at_points(function: Any, x: Real, y: Real, ulps: float, size: float = 0) -> Real:
    """A function that is known where the operands are.

    It may be off by units in the last place of itself, or of the larger operand.
    """
    x, y = read(x), read(y)
    with np.errstate(all="ignore"):
        wide, other = (np.where(v.nan == SURELY, np.nan, v.low) for v in (x, y))
        found = function(wide, other)
        largest = np.maximum(np.abs(wide), np.abs(other)) + 1
        margin = 2 * x.format.unit * (np.abs(found) * ulps + largest * size)
        margin = np.where(np.isfinite(margin), margin, 0)
        nan = np.isnan(found)
        found = np.where(nan, 0, found)
        marks = np.where(nan, SURELY, NEVER)
        enclosed = finished(x.format, found - margin, found + margin, marks)
        return unknown(enclosed, ~(x.exact & y.exact))


def steps(function: Function) -> Any:
    """The enclosure of a rounding, which is exact."""

    def enclosed(x: Real) -> Real:
        x = read(x)
        with np.errstate(all="ignore"):
            return Real(x.format, function(x.low), function(x.high), x.nan)

    return enclosed


def absolute(x: Real) -> Real:
    """The absolute value."""
    low, high = np.abs(x.low), np.abs(x.high)
    across = (x.low <= 0) & (x.high >= 0)
    least = np.where(across, low.dtype.type(0), np.minimum(low, high))
    return Real(x.format, least, np.maximum(low, high), x.nan)


def sign(x: Real) -> Real:
    """-1, 0 or 1; the sign of a zero is left open."""
    x = read(x)
    return _unsigned(Real(x.format, np.sign(x.low), np.sign(x.high), x.nan))


def power(x: Real, exponent: int, ulps: float) -> Real:
    """An integer power, as products."""
    x = read(x)
    with np.errstate(all="ignore"):
        wide: Any = x.low.dtype.type
        size = absolute(x)
        low, high = size.low**exponent, size.high**exponent
        if exponent % 2:
            low, high = (np.copysign(np.abs(end) ** wide(exponent), end) for end in (x.low, x.high))
        return finished(x.format, *off(x, low, high, ulps), x.nan)


def general_power(x: Real, y: Real, ulps: float) -> Real:
    """`x ** y` of bounds that are not negative; elsewhere only exact ones are known."""
    x, y = read(x), read(y)
    with np.errstate(all="ignore"):
        corners = [as_array(a**b) for a in (x.low, x.high) for b in (y.low, y.high)]
        low, high = as_array(np.minimum.reduce(corners)), as_array(np.maximum.reduce(corners))
        nan = np.where((x.nan == NEVER) & (y.nan == NEVER), NEVER, MAYBE)
        doubt = (x.low <= 0) | (nan != NEVER)
        zero = low.dtype.type(0)
        low, high = np.where(doubt, zero, low), np.where(doubt, zero, high)
        # The error of y * log(x) grows with its size.
        sizes = [np.abs(np.log(np.where(doubt | (end == 0) | np.isinf(end), 1, end)))
                 for end in (low, high)]  # fmt: skip
        margin = (ulps + 2 * np.maximum(*sizes)) * 2 * x.format.unit
        found = finished(
            x.format,
            low * (1 - margin),
            high * (1 + np.where(np.isinf(high), 0, margin)),
            nan,
        )
        at = (x.exact & y.exact) & doubt
        point = np.power(x.numbers, y.numbers)
        exact = real(x.format, point)
        exact = _loosened(exact, exact.low, exact.high, exact.nan, ulps + 64)
        return Real(
            x.format,
            np.where(at, exact.low, np.where(doubt, -np.inf, found.low)),
            np.where(at, exact.high, np.where(doubt, np.inf, found.high)),
            np.where(at, exact.nan, np.where(doubt, MAYBE, found.nan)).astype(np.int8),
        )


def remainder(function: Any, x: Real, y: Real) -> Real:
    """A function that jumps nearly everywhere: known where the operands are."""
    x, y = read(x), read(y)
    with np.errstate(all="ignore"):
        exact = x.exact & y.exact
        point = real(x.format, function(x.numbers, y.numbers))
        low, high = x.format.flushed(point.low, point.high)
        found = _unsigned(Real(x.format, low, high, point.nan))
        # A rest that is subnormal may be none.
        rest = np.abs(np.fmod(x.numbers, y.numbers).astype(np.float64))
        return unknown(found, ~exact | ((rest > 0) & (rest < x.format.least)))


def larger(a: Real, b: Real) -> Real:
    """The maximum; NaN if one is."""
    return _extreme(a, b, np.maximum)


def smaller(a: Real, b: Real) -> Real:
    """The minimum; NaN if one is."""
    return _extreme(a, b, np.minimum)


def _extreme(a: Real, b: Real, choose: Any) -> Real:
    low, high = choose(a.low, b.low), choose(a.high, b.high)
    return _flushed(_unsigned(Real(a.format, low, high, worst(a.nan, b.nan))), a, b)


def _flushed(found: Real, *operands: Real) -> Real:
    """A comparison may take a subnormal number for a zero, and so give another operand."""
    reading = [read(x) for x in operands]
    if all(np.array_equal(r.low, x.low) and np.array_equal(r.high, x.high)
           for r, x in zip(reading, operands, strict=True)):  # fmt: skip
        return found
    tiny = found.format.least
    near = (found.high > -tiny) & (found.low < tiny)
    low = np.where(near, np.minimum(found.low, -tiny), found.low)
    high = np.where(near, np.maximum(found.high, tiny), found.high)
    return Real(found.format, low, high, found.nan)


def _unsigned(x: Real) -> Real:
    """The same, with the signs of zeros left open."""
    return Real(x.format, *with_any_sign(x.low, x.high), x.nan)


def ignoring(a: Real, b: Real, choose: Callable[[Real, Real], Real]) -> Real:
    """An extreme of two that takes the other where one is NaN."""
    both = choose(
        Real(a.format, a.low, a.high, np.zeros_like(a.nan)),
        Real(b.format, b.low, b.high, np.zeros_like(b.nan)),
    )
    both = _broadcast(both, np.broadcast_shapes(a.shape, b.shape))
    a, b = _broadcast(a, both.shape), _broadcast(b, both.shape)
    found = both
    for one, other in ((a, b), (b, a)):
        found = _where(one.nan == SURELY, other, found)
        found = _where((one.nan == MAYBE) & (other.nan != SURELY), joined(found, other), found)
    return found


def _broadcast(x: Real, shape: tuple[int, ...]) -> Real:
    return x.moved(lambda each: np.broadcast_to(each, shape))


def _where(mask: NDArray, a: Real, b: Real) -> Real:
    return Real(
        a.format,
        np.where(mask, a.low, b.low),
        np.where(mask, a.high, b.high),
        np.where(mask, a.nan, b.nan).astype(np.int8),
    )


def compare(sign_: str, a: Value, b: Value) -> Exact:
    """A truth value where the bounds say which."""
    if isinstance(a, Exact) and isinstance(b, Exact):
        return Exact(_compared(sign_, a.array, b.array), a.unknown | b.unknown)
    assert isinstance(a, Real)
    assert isinstance(b, Real)
    a, b = read(a), read(b)
    corners = [_compared(sign_, x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    if sign_ in ("==", "!="):
        apart = (a.high < b.low) | (b.high < a.low)
        same = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
        found, doubt = (same if sign_ == "==" else ~same), ~apart & ~same
    else:
        found = np.logical_and.reduce(corners)
        doubt = found != np.logical_or.reduce(corners)
    nan = worst(a.nan, b.nan)
    found = np.where(nan == SURELY, sign_ == "!=", found)
    doubt = np.where(nan == SURELY, False, doubt | ((nan == MAYBE) & (found != (sign_ == "!="))))
    return Exact(found, doubt)


def _compared(sign_: str, a: Any, b: Any) -> NDArray:
    function: Any = {
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
        "==": np.equal,
        "!=": np.not_equal,
    }[sign_]
    return np.asarray(function(a, b))


def choose(mask: Exact, a: Value, b: Value) -> Value:
    """`np.where`; as an extreme it may make zeros of subnormal numbers."""
    if isinstance(a, Exact) and isinstance(b, Exact):
        picked = np.where(mask.array, a.array, b.array)
        doubt = np.where(mask.array, a.unknown, b.unknown)
        other = (a.array != b.array) | a.unknown | b.unknown
        return Exact(picked, doubt | (mask.unknown & other))
    assert isinstance(a, Real)
    assert isinstance(b, Real)
    shape = np.broadcast_shapes(mask.shape, a.shape, b.shape)
    a, b = _broadcast(a, shape), _broadcast(b, shape)
    sure, doubt = np.broadcast_to(mask.array, shape), np.broadcast_to(mask.unknown, shape)
    found = read(_where(doubt, joined(a, b), _where(sure, a, b)))
    if a.fused is None and b.fused is None:
        return found
    # Products stay products that may be added at once.
    (al, ah), (bl, bh) = (v.fused or (v.low, v.high) for v in (a, b))
    low = np.where(doubt, np.minimum(al, bl), np.where(sure, al, bl))
    high = np.where(doubt, np.maximum(ah, bh), np.where(sure, ah, bh))
    fused = (np.minimum(low, found.low), np.maximum(high, found.high))
    return Real(found.format, found.low, found.high, found.nan, fused)


def extreme_of(x: Value, axes: Sequence[int], largest: bool, keep: bool = False) -> Value:
    """The maximum or minimum over axes."""
    function: Any = np.maximum if largest else np.minimum
    axes = tuple(axes)

    def reduced(each: NDArray, f: Any = function) -> Any:
        return f.reduce(each, axis=axes, keepdims=keep)

    if isinstance(x, Exact):
        return Exact(reduced(x.array), reduced(x.unknown, np.logical_or))
    bare = Real(x.format, x.low, x.high, x.nan)
    sure = x.nan == SURELY
    low = np.where(sure, -np.inf if largest else np.inf, x.low)
    high = np.where(sure, -np.inf if largest else np.inf, x.high)
    low, high = as_array(reduced(low)), as_array(reduced(high))
    found = Real(x.format, low, high, as_array(reduced(x.nan, np.maximum)))
    return _flushed_all(_unsigned(found), bare)


def _flushed_all(found: Real, operand: Real) -> Real:
    reading = read(operand)
    if np.array_equal(reading.low, operand.low) and np.array_equal(reading.high, operand.high):
        return found
    tiny = found.format.least
    near = (found.high > -tiny) & (found.low < tiny)
    low = np.where(near, np.minimum(found.low, -tiny), found.low)
    high = np.where(near, np.maximum(found.high, tiny), found.high)
    return Real(found.format, low, high, found.nan)


def place_of_extreme(x: Value, axis: int, largest: bool) -> Exact:
    """`argmax` or `argmin`, where the bounds say which."""
    function: Any = np.argmax if largest else np.argmin
    if isinstance(x, Exact):
        return Exact(
            function(x.array, axis=axis).astype(np.int32),
            np.logical_or.reduce(x.unknown, axis=axis),
        )
    x = read(x)
    numbers = np.where(x.nan == SURELY, np.nan, x.high if largest else x.low)
    place = function(numbers, axis=axis)
    picked = np.expand_dims(place, axis)
    low = np.take_along_axis(x.low, picked, axis)
    high = np.take_along_axis(x.high, picked, axis)
    here = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(x.shape))])
    clear = x.high < low if largest else x.low > high
    point = (low == high) & (x.low == x.high)
    later = point & (x.low == low) & (here > picked)
    later |= point & ((x.low < low) if largest else (x.low > low))
    beaten = clear | later | (here == picked)
    first_nan = np.logical_or.reduce(x.nan == SURELY, axis=axis)
    doubt = np.where(first_nan, False, ~np.logical_and.reduce(beaten, axis=axis))
    doubt |= np.logical_or.reduce(x.nan == MAYBE, axis=axis)
    return Exact(place.astype(np.int32), np.asarray(doubt))


def ordered(x: Value, axis: int) -> Value:
    """`np.sort`."""
    if isinstance(x, Exact):
        doubt = np.logical_or.reduce(x.unknown, axis=axis, keepdims=True)
        return Exact(np.sort(x.array, axis=axis), np.broadcast_to(doubt, x.shape))
    sure = x.nan == SURELY
    low, high = (np.sort(np.where(sure, np.nan, each), axis=axis) for each in (x.low, x.high))
    nan = np.isnan(low)
    low, high = np.where(nan, 0, low), np.where(nan, 0, high)
    found = _unsigned(Real(x.format, low, high, np.where(nan, SURELY, NEVER).astype(np.int8)))
    found = _flushed_all(found, x)
    doubt = np.logical_or.reduce(x.nan == MAYBE, axis=axis, keepdims=True)
    return unknown(found, np.broadcast_to(doubt, x.shape))


def to_integer(x: Real, to: str) -> Exact:
    """Truncated; the nearest integer where it is out of range, and 0 for NaN."""
    dtype, info = DTYPES[to], integers(to)
    bounds: list[NDArray] = []
    for end in (x.low, x.high):
        whole = np.trunc(end)
        inside = (whole >= info.min) & (whole <= info.max)
        least, most = (as_array(each).astype(dtype) for each in (info.min, info.max))
        limit = np.where(whole < 0, least, most)
        wide = np.longdouble if whole.dtype == np.longdouble else np.float64
        # 2**63 is a wide number although 2**63 - 1 may be none.
        inside &= whole < wide(2.0) ** (info.bits - (info.min < 0))
        bounds.append(np.where(inside, np.where(inside, whole, 0).astype(dtype), limit))
    low, high = bounds
    low = np.where(x.nan == SURELY, dtype.type(0), low)
    doubt = np.where(x.nan == SURELY, False, (low != high) | (x.nan == MAYBE))
    return Exact(low.astype(dtype), doubt)


def to_real(x: Exact, to: str) -> Real:
    """The nearest number."""
    target = FORMATS[to]
    wide = x.array.astype(np.longdouble)
    return unknown(real(target, target.narrowed(wide)), x.unknown)


def to_truth(x: Value) -> Exact:
    """Whether it is not zero."""
    if isinstance(x, Exact):
        return Exact(x.array != 0, x.unknown)
    return compare("!=", x, real(x.format, x.format.dtype.type(0)))


def is_nan(x: Real) -> Exact:
    """Whether it is NaN."""
    return Exact(x.nan == SURELY, x.nan == MAYBE)


def is_finite(x: Real) -> Exact:
    """Whether it is neither NaN nor infinite."""
    some = np.isinf(x.low) | np.isinf(x.high) | (x.nan == MAYBE)
    every = (np.isinf(x.low) & (x.low == x.high)) | (x.nan == SURELY)
    return Exact(~some & ~every, some & ~every & ~((x.nan == MAYBE) & every))


def exactly(function: Callable[..., Any], *operands: Exact) -> Exact:
    """A function of each element of integers or truth values, which NumPy computes."""
    with np.errstate(all="ignore"):
        found = function(*[each.array for each in operands])
    doubt = np.zeros((), bool)
    for each in operands:
        doubt = doubt | each.unknown
    return Exact(np.asarray(found), np.broadcast_to(doubt, np.shape(found)))


def clipped(x: Exact, low: int, high: int) -> Exact:
    """Integers within bounds."""
    return Exact(np.clip(x.array, low, high), x.unknown)


def over_axes(function: Any, x: Exact, axes: Sequence[int], keep: bool, dtype: Any = None) -> Exact:
    """A reduction of integers or truth values, which NumPy computes."""
    options: dict[str, Any] = {"axis": tuple(axes), "keepdims": keep}
    doubt = np.any(x.unknown, **options)
    if dtype is not None:
        options["dtype"] = dtype
    with np.errstate(all="ignore"):
        found = function.reduce(x.array, **options)
    return Exact(np.asarray(found), np.asarray(doubt))
