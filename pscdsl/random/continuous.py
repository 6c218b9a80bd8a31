"""Distributions on the real line, by the inverse of their distribution functions.

Numbers of half precision are drawn in f32 and rounded: from as few bits as they have, they would
be a few hundred numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pscdsl.builder import Builder, Value
from pscdsl.numpy.openness import as_dtype
from pscdsl.numpy.shorthand import cast, wide
from pscdsl.numpy_dtypes import finfo, to_numpy
from pscdsl.primitives import elementwise as e
from pscdsl.random.drawing import fitted, float_dtype, of_key, operand, shape_of, subkeys
from pscdsl.random.intervals import interval, unit
from pscdsl.typing.arrays import Shape
from pscdsl.typing.dtypes import F64, DType


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
    ends = [e.erf(e.multiply(cast(each, F64), math.sqrt(0.5))) for each in (low, high)]
    found = e.multiply(e.erf_inv(interval(key, sizes, *ends)), math.sqrt(2))
    result: Value = e.minimum(e.maximum(low, cast(found, kind)), high)
    return result
