"""Bits as numbers: uniform ones, and coins."""

from __future__ import annotations

from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.numpy_dtypes import finfo, to_numpy
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.random import RandomBits
from pscdsl.numpy.openness import as_dtype
from pscdsl.numpy.shorthand import cast
from pscdsl.random.drawing import fitted, float_dtype, of_key, operand, required, shape_of
from pscdsl.typing.arrays import Shape
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BF16, I32, U8, U16, U32, U64, DType

UNSIGNED = {8: U8, 16: U16, 32: U32, 64: U64}


@of_key("bits")
def bits(here: Builder, key: Value, shape: Any = (), dtype: Any = None) -> Value:
    """Unsigned integers, each with equal probability."""
    wanted = as_dtype(dtype) or U32
    if wanted not in UNSIGNED.values():
        raise Failure(BadArguments(function="psc.random.bits", problem="takes an unsigned dtype"))
    return RandomBits(shape_of("bits", here.facts, shape), wanted)(key)


def mantissa(dtype: DType) -> int:
    """How many bits of a float stand behind the point."""
    return int(finfo(dtype).nmant)


def unit(key: Value, shape: Shape, dtype: DType) -> Value:
    """Multiples of the dtype's epsilon from 0 up to, not including, 1, each as likely.

    The bits behind the point of a number from 1 to 2, minus 1.
    """
    width = 8 if dtype is BF16 else dtype.bits
    random = RandomBits(shape, UNSIGNED[width])(key)
    place = UNSIGNED[dtype.bits]
    kept = e.right_shift(random, width - mantissa(dtype))
    one = int(np.asarray(1, to_numpy(dtype)).view(f"u{dtype.bits // 8}"))
    between = e.Bitcast(dtype)(e.bitwise_or(cast(kept, place), one))
    result: Value = e.subtract(between, 1.0)
    return result


def interval(key: Value, shape: Shape, low: Value, high: Value) -> Value:
    """Uniform numbers from `low` up to, never reaching, `high`."""
    return between(unit(key, shape, low.dtype), low, high)


def between(share: Value, low: Value, high: Value) -> Value:
    """The number that has a share, below 1, of an interval below it; never the upper end."""
    scaled = e.add(e.multiply(share, e.subtract(high, low)), low)
    below = e.nextafter(high, low)  # rounding may reach the end
    result: Value = e.maximum(low, e.minimum(scaled, below))
    return result


@of_key("uniform")
def uniform(
    here: Builder,
    key: Value,
    shape: Any = (),
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
) -> Value:
    """Numbers from `minval` up to, never reaching, `maxval`."""
    kind = float_dtype("uniform", dtype, (minval, maxval))
    sizes = shape_of("uniform", here.facts, shape)
    if minval == 0 and maxval == 1 and not isinstance(minval, Value | Weak):
        return unit(key, sizes, kind)
    low, high = fitted([operand(here, each, kind) for each in (minval, maxval)], sizes)
    return interval(key, sizes, low, high)


@of_key("bernoulli")
def bernoulli(here: Builder, key: Value, p: Any = 0.5, shape: Any = None) -> Value:
    """True with probability `p`: never where it is 0, always where it is 1."""
    chance = operand(here, p, float_dtype("bernoulli", None, (p,)))
    sizes = shape_of("bernoulli", here.facts, shape, (chance,))
    (fitting,) = fitted([chance], sizes)
    result: Value = e.less(unit(key, sizes, chance.dtype), fitting)
    return result


@of_key("rademacher")
def rademacher(here: Builder, key: Value, shape: Any = (), dtype: Any = None) -> Value:
    """1 or -1, each with probability one half."""
    wanted = required("rademacher", as_dtype(dtype) or I32, "numeric")
    if wanted.is_unsigned:
        problem = "takes a dtype that holds -1"
        raise Failure(BadArguments(function="psc.random.rademacher", problem=problem))
    sizes = shape_of("rademacher", here.facts, shape)
    coin = e.right_shift(RandomBits(sizes, U32)(key), 31)
    sign = e.subtract(1, e.multiply(2, cast(coin, I32)))
    return cast(sign, wanted)
