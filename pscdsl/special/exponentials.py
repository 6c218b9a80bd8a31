"""Sums of exponentials along axes, and what they are divided by, without overflow."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from pscdsl._src.ir.builder import Value, broadcast_to
from pscdsl._src.ir.numpy_dtypes import finfo
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control.own_tangents import Values, with_own_tangents
from pscdsl._src.primitives.exponential_sums import ExponentialSum, Largest
from pscdsl._src.primitives.stopping import StopGradient
from pscdsl.numpy.axes import Axes, normalize_axes
from pscdsl.numpy.reductions import extremum, finished, reduced_shape, require_elements, total
from pscdsl.numpy.shorthand import cast, filled, is_nan, reshaped, where, wide
from pscdsl.special.declaring import floating, of_special


@of_special("logsumexp", together="a b")
def logsumexp(
    a: Value,
    axis: Axes = None,
    b: Value | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """`log(sum(b * exp(a)))`, of a negative sum NaN, or with its sign the logarithm of its size.

    Terms of -inf, or with weight 0, do not count; neither they nor rows of them spoil derivatives.
    """
    name = "logsumexp"
    x = floating(name, a)
    weights = None if b is None else floating(name, b)
    dtype = x.dtype
    x = cast(x, wide(dtype))
    if weights is not None:
        weights = cast(weights, x.dtype)
        x, weights = (broadcast_to(v, _joint(x, weights)) for v in (x, weights))
    axes = normalize_axes(axis, x.ndim, f"pscdsl.special.{name}")
    require_elements(x, axes, f"pscdsl.special.{name}")
    if weights is None:
        result = _log_of_sum(x, axes)
        sign = filled(result, 1.0)
    else:
        unweighted = e.equal(weights, 0)
        largest, shift = _shift(where(unweighted, filled(x, -math.inf), x), axes)
        # A term without weight is finite: it adds nothing, but its weight has a derivative.
        size = e.subtract(x, shift)
        most = math.log(float(finfo(x.dtype).max)) - 1
        ends = e.bitwise_and(unweighted, e.invert(e.less(size, most)))
        terms = e.exp(where(ends, filled(size, most), size))
        sums = total(e.multiply(weights, terms), axes, keepdims=True)
        sign = e.sign(sums)
        # The logarithm of a sum of nothing, which is not used, does not spoil derivatives.
        nothing = e.equal(largest, -math.inf)
        sums = where(nothing, filled(sums, 1.0), sums)
        result = e.add(e.log(e.absolute(sums) if return_sign else sums), shift)
        result = where(nothing, largest, result)
    shape = reduced_shape(x.shape, axes, keepdims)
    result = cast(reshaped(result, shape), dtype)
    return (result, cast(reshaped(sign, shape), dtype)) if return_sign else result


@of_special("softmax", together="x")
def softmax(x: Value, axis: Axes = None) -> Value:
    """`exp(x) / sum(exp(x))`: positive numbers that sum to 1."""
    wider, axes = _prepared("softmax", x, axis)
    shift = finished(_largest(wider, axes), wider.shape, axes, keepdims=True)

    def value(size: Value) -> Value:
        terms = e.exp(size)
        return e.divide(terms, total(terms, axes, keepdims=True))  # type: ignore[no-any-return]

    def rule(given: Values, tangents: Values) -> tuple[Value, Value]:
        shares = ruled(*given)
        moves = e.multiply(shares, tangents[0])
        return shares, e.subtract(moves, e.multiply(shares, total(moves, axes, keepdims=True)))

    ruled = partial(with_own_tangents, "softmax", value, rule)
    shares = ruled(e.subtract(wider, shift))
    return cast(shares, floating("softmax", x).dtype)


@of_special("log_softmax", together="x")
def log_softmax(x: Value, axis: Axes = None) -> Value:
    """`log(softmax(x))`, also where that is 0, or so near 1 that its logarithm would be 0."""
    wider, axes = _prepared("log_softmax", x, axis)
    _, shift, above = _sums(wider, axes)
    # Rows of nothing but -inf do not spoil derivatives.
    above = where(e.equal(above, -1), filled(above, 0.0), above)
    shift, size = (finished(v, wider.shape, axes, keepdims=True) for v in (shift, e.log1p(above)))
    return cast(e.subtract(e.subtract(wider, shift), size), floating("log_softmax", x).dtype)


def _prepared(name: str, x: Value, axis: Axes) -> tuple[Value, tuple[int, ...]]:
    x = floating(name, x)
    axes = normalize_axes(axis, x.ndim, f"pscdsl.special.{name}")
    require_elements(x, axes, f"pscdsl.special.{name}")
    return cast(x, wide(x.dtype)), axes


def _joint(x: Value, y: Value) -> Any:
    from pscdsl._src.ir.builder import broadcast_shapes

    return broadcast_shapes(x.builder.facts, x.shape, y.shape)


def _shift(x: Value, axes: tuple[int, ...]) -> tuple[Value, Value]:
    """The largest elements along axes, and the same where they are finite, else 0; constants."""
    largest = StopGradient()(extremum(x, "maximum", axes, keepdims=True))
    return largest, where(e.is_finite(largest), largest, filled(largest, 0.0))


def _largest(x: Value, axes: tuple[int, ...]) -> Value:
    """The largest elements along axes, if there is no NaN; constants."""
    return Largest(axes)(StopGradient()(x))


def _sums(
    x: Value, axes: tuple[int, ...], *, beside_shift: bool = False
) -> tuple[Value, Value, Value]:
    """The largest numbers, what they shift by, and by how much sums of exponentials are above 1.

    A NaN is seen in the sums alone.
    """
    largest = _largest(x, axes)
    shift = where(e.is_finite(largest), largest, filled(largest, 0.0))
    return largest, shift, ExponentialSum(axes, beside_shift)(x, shift)


def _log_of_sum(x: Value, axes: tuple[int, ...]) -> Value:
    """The logarithm of the sum of exponentials: exact also if it is small."""
    largest, _, above = _sums(x, axes, beside_shift=True)

    def value(above: Value, largest: Value) -> Value:
        counts = e.is_finite(largest)
        nothing = filled(above, 0.0)
        # A sum of infinities, or of nothing, is not used.
        result = e.add(e.log1p(where(counts, above, nothing)), where(counts, largest, nothing))
        return where(counts, result, where(is_nan(above), above, largest))

    def rule(given: Values, tangents: Values) -> tuple[Value, Value]:
        above, largest = given
        # Nor does it spoil derivatives, but NaN does.
        counts = e.bitwise_or(e.is_finite(largest), is_nan(above))
        sums = where(counts, e.add(above, 1.0), filled(above, math.inf))
        return ruled(*given), e.multiply(e.divide(1.0, sums), tangents[0])

    ruled = partial(with_own_tangents, "logsumexp", value, rule)
    return ruled(above, largest)
