"""Sums of exponentials along axes, and what they are divided by, without overflow."""

from __future__ import annotations

import math
from typing import Any

from pscdsl.builder import Value, broadcast_to
from pscdsl.numpy.axes import Axes, normalize_axes
from pscdsl.numpy.reductions import extremum, reduced_shape, require_elements, total
from pscdsl.numpy.shorthand import cast, filled, reshaped, where, wide
from pscdsl.primitives import elementwise as e
from pscdsl.primitives.stopping import StopGradient
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
        x = where(e.equal(weights, 0), filled(x, -math.inf), x)
    axes = normalize_axes(axis, x.ndim, f"pscdsl.special.{name}")
    require_elements(x, axes, f"pscdsl.special.{name}")
    largest, shift = _shift(x, axes)
    inner = _above_one(x, largest, shift, axes) if weights is None else None
    if inner is not None:
        sign = filled(inner, 1.0)
        logarithm = _logarithm(e.log1p, inner, -1.0, largest)
    else:
        sums = total(e.multiply(weights, e.exp(e.subtract(x, shift))), axes, keepdims=True)
        sign = e.sign(sums)
        logarithm = _logarithm(e.log, e.absolute(sums) if return_sign else sums, 0.0, largest)
    result = where(e.equal(largest, -math.inf), largest, e.add(logarithm, shift))
    shape = reduced_shape(x.shape, axes, keepdims)
    result = cast(reshaped(result, shape), dtype)
    return (result, cast(reshaped(sign, shape), dtype)) if return_sign else result


@of_special("softmax", together="x")
def softmax(x: Value, axis: Axes = None) -> Value:
    """`exp(x) / sum(exp(x))`: positive numbers that sum to 1."""
    wider, axes = _prepared("softmax", x, axis)
    _, shift = _shift(wider, axes)
    terms = e.exp(e.subtract(wider, shift))
    return cast(e.divide(terms, total(terms, axes, keepdims=True)), floating("softmax", x).dtype)


@of_special("log_softmax", together="x")
def log_softmax(x: Value, axis: Axes = None) -> Value:
    """`log(softmax(x))`, also where that is 0, or so near 1 that its logarithm would be 0."""
    wider, axes = _prepared("log_softmax", x, axis)
    largest, shift = _shift(wider, axes)
    inner = _above_one(wider, largest, shift, axes)
    logarithm = e.subtract(e.subtract(wider, shift), e.log1p(inner))
    return cast(logarithm, floating("log_softmax", x).dtype)


def _prepared(name: str, x: Value, axis: Axes) -> tuple[Value, tuple[int, ...]]:
    x = floating(name, x)
    axes = normalize_axes(axis, x.ndim, f"pscdsl.special.{name}")
    require_elements(x, axes, f"pscdsl.special.{name}")
    return cast(x, wide(x.dtype)), axes


def _joint(x: Value, y: Value) -> Any:
    from pscdsl.builder import broadcast_shapes

    return broadcast_shapes(x.builder.facts, x.shape, y.shape)


def _shift(x: Value, axes: tuple[int, ...]) -> tuple[Value, Value]:
    """The largest elements along axes, and the same where they are finite, else 0; constants."""
    largest = StopGradient()(extremum(x, "maximum", axes, keepdims=True))
    return largest, where(e.is_finite(largest), largest, filled(largest, 0.0))


def _above_one(x: Value, largest: Value, shift: Value, axes: tuple[int, ...]) -> Value:
    """By how much the sum of exponentials is above one of its largest: exact if it is small."""
    size = e.subtract(x, shift)
    top = e.equal(x, largest)
    others = total(where(top, e.expm1(size), e.exp(size)), axes, keepdims=True)
    count = total(cast(top, x.dtype), axes, keepdims=True)
    return e.add(others, e.subtract(count, 1))  # type: ignore[no-any-return]


def _logarithm(function: Any, x: Value, zero: float, largest: Value) -> Value:
    """A logarithm of sums; those of nothing, which are not used, do not spoil derivatives."""
    nothing = e.equal(largest, -math.inf)
    result: Value = function(where(nothing, filled(x, zero + 1), x))
    return result
