"""Distributions on the real line, by the inverse of their distribution functions.

Numbers of half precision are drawn in f32 and rounded: from as few bits as they have, they would
be a few hundred numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.numpy_dtypes import finfo, to_numpy
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import special as s
from pscdsl.numpy.elementwise import literal
from pscdsl.numpy.openness import as_dtype
from pscdsl.numpy.shorthand import cast, filled, where, wide
from pscdsl.random.drawing import fitted, float_dtype, of_key, operand, shape_of, subkeys
from pscdsl.random.intervals import between, interval, unit
from pscdsl.typing.arrays import Shape
from pscdsl.typing.dtypes import F64, DType

TAIL = 4.0
"""Beyond this, the distribution function is too near 1 to tell one number from the next."""


def tiny(dtype: DType) -> float:
    """The smallest positive number with full precision."""
    return float(finfo(dtype).tiny)


def positive(key: Value, shape: Shape, dtype: DType) -> Value:
    """Uniform numbers above 0 and below 1."""
    found: Value = e.maximum(unit(key, shape, dtype), tiny(dtype))
    return found


def _signed(key: Value, shape: Shape, dtype: DType) -> Value:
    """Uniform numbers above -1 and below 1."""
    above = float(np.nextafter(to_numpy(dtype).type(-1), to_numpy(dtype).type(0)))
    here = key.builder.program.current
    return interval(key, shape, here.literal(above, dtype), here.literal(1.0, dtype))


def standard_normal(key: Value, shape: Shape, dtype: DType) -> Value:
    """Normal numbers with mean 0 and variance 1; complex ones with half of it in each part."""
    found = e.multiply(e.erf_inv(_signed(key, shape, wide(dtype))), math.sqrt(2))
    return cast(found, dtype)


def standard_gumbel(key: Value, shape: Shape, dtype: DType) -> Value:
    """Gumbel numbers; all are finite."""
    found = e.negative(e.log(e.negative(e.log(positive(key, shape, wide(dtype))))))
    return cast(found, dtype)


def standard_exponential(key: Value, shape: Shape, dtype: DType) -> Value:
    """Exponential numbers with mean 1."""
    found = e.negative(e.log1p(e.negative(unit(key, shape, wide(dtype)))))
    return cast(found, dtype)


@of_key("normal")
def normal(here: Builder, key: Value, shape: Any = (), dtype: Any = None) -> Value:
    """Normal numbers with mean 0 and variance 1."""
    found = as_dtype(dtype)
    sizes = shape_of("normal", here.facts, shape)
    if found is None or not found.is_complex:
        return standard_normal(key, sizes, float_dtype("normal", dtype))
    parts = [standard_normal(each, sizes, found.real) for each in subkeys(key, 2)]
    return e.divide(e.make_complex(*parts), math.sqrt(2))  # type: ignore[no-any-return]


@of_key("exponential")
def exponential(here: Builder, key: Value, shape: Any = (), dtype: Any = None) -> Value:
    """Exponential numbers with mean 1."""
    kind = float_dtype("exponential", dtype)
    return standard_exponential(key, shape_of("exponential", here.facts, shape), kind)


@of_key("laplace")
def laplace(here: Builder, key: Value, shape: Any = (), dtype: Any = None) -> Value:
    """Laplace numbers with mean 0 and scale 1."""
    kind = float_dtype("laplace", dtype)
    u = _signed(key, shape_of("laplace", here.facts, shape), wide(kind))
    return cast(e.multiply(e.sign(u), e.log1p(e.negative(e.absolute(u)))), kind)


@of_key("gumbel")
def gumbel(here: Builder, key: Value, shape: Any = (), dtype: Any = None) -> Value:
    """Standard Gumbel numbers."""
    kind = float_dtype("gumbel", dtype)
    return standard_gumbel(key, shape_of("gumbel", here.facts, shape), kind)


@of_key("logistic")
def logistic(here: Builder, key: Value, shape: Any = (), dtype: Any = None) -> Value:
    """Logistic numbers with mean 0 and scale 1."""
    kind = float_dtype("logistic", dtype)
    u = positive(key, shape_of("logistic", here.facts, shape), wide(kind))
    return cast(e.subtract(e.log(u), e.log1p(e.negative(u))), kind)


@of_key("truncated_normal")
def truncated_normal(
    here: Builder, key: Value, lower: Any, upper: Any, shape: Any = None, dtype: Any = None
) -> Value:
    """Normal numbers with mean 0 and variance 1 under the condition of lying between bounds."""
    kind = float_dtype("truncated_normal", dtype, (lower, upper))
    bounds = [operand(here, each, kind) for each in (lower, upper)]
    sizes = shape_of("truncated_normal", here.facts, shape, bounds)
    low, high = fitted(bounds, sizes)
    # In double precision, so that bounds far from 0 leave more than a few numbers between them.
    share = unit(key, sizes, F64)
    low64, high64 = cast(low, F64), cast(high, F64)
    ends = [e.erf(e.multiply(each, math.sqrt(0.5))) for each in (low64, high64)]
    found = e.multiply(e.erf_inv(between(share, *ends)), math.sqrt(2))
    if _may_be_in_tail(bounds):
        right = e.greater(low64, TAIL)
        tail = e.bitwise_or(right, e.less(high64, -TAIL))
        first = where(right, e.negative(high64), low64)
        last = where(right, e.negative(low64), high64)
        first, last = (
            where(tail, first, filled(low64, -TAIL - 1)),
            where(tail, last, filled(low64, -TAIL)),
        )
        drawn = _lower_tail(where(right, e.subtract(1.0, share), share), first, last)
        found = where(tail, where(right, e.negative(drawn), drawn), found)
    result: Value = e.minimum(e.maximum(low, cast(found, kind)), high)
    return result


def _may_be_in_tail(bounds: Sequence[Value]) -> bool:
    """Whether both bounds may be far on one side of 0."""
    low, high = map(literal, bounds)
    known = [isinstance(each, int | float) for each in (low, high)]
    return not ((known[0] and low <= TAIL) and (known[1] and high >= -TAIL))  # type: ignore[operator]


def _lower_tail(share: Value, low: Value, high: Value) -> Value:
    """The number between two, far below 0, below which so much of the probability is.

    By the logarithm of the distribution function, which Newton's method inverts.
    """
    most = s.log_ndtr(high)
    least = e.exp(e.subtract(s.log_ndtr(low), most))
    part = e.add(least, e.multiply(e.subtract(1.0, least), e.maximum(share, tiny(F64))))
    wanted = e.add(most, e.log(part))
    size = e.subtract(e.multiply(wanted, -2.0), math.log(2 * math.pi))
    x: Value = e.negative(e.sqrt(e.subtract(size, e.log(size))))
    for _ in range(3):
        inverse = e.multiply(s.erfcx(e.multiply(x, -math.sqrt(0.5))), math.sqrt(math.pi / 2))
        x = e.subtract(x, e.multiply(e.subtract(s.log_ndtr(x), wanted), inverse))
    return x
