"""Poisson numbers: by counting where the mean is small, else by transformed rejection.

W. Hörmann: "The transformed rejection method for generating Poisson random variables", Insurance:
Mathematics and Economics 12 (1993), algorithm PTRS.
"""

from __future__ import annotations

import math
from typing import Any

from pscdsl._src.ir.builder import Builder, Value, broadcast_to
from pscdsl._src.primitives import elementwise as e
from pscdsl.numpy.openness import as_dtype
from pscdsl.numpy.shorthand import cast, where
from pscdsl.random.continuous import positive
from pscdsl.random.drawing import float_dtype, of_key, operand, required, shape_of, subkeys
from pscdsl.random.intervals import unit
from pscdsl.random.rejection import Values, accepted, loop, some
from pscdsl.typing.dtypes import F64, I32

SMALL = 10.0
TINY = 1e-30
"""Terms below this change no sum."""
SHIFT = 8
"""Where Stirling's series has the precision of f64 after so many steps of the recurrence."""
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


@of_key("poisson")
def poisson(here: Builder, key: Value, lam: Any, shape: Any = None, dtype: Any = None) -> Value:
    """Poisson numbers with mean `lam`; 0 where that is not positive."""
    kind = required("poisson", as_dtype(dtype) or I32, "integer")
    given = operand(here, lam, float_dtype("poisson", None, (lam,)))
    sizes = shape_of("poisson", here.facts, shape, (given,))
    mean = broadcast_to(cast(given, F64), sizes)
    zero, limit = here.literal(0.0, F64), here.literal(float(kind.range[1] // 2), F64)
    mean = e.minimum(where(e.greater(mean, 0.0), mean, zero), limit)
    small = e.less(mean, SMALL)
    first, second = subkeys(key, 2)
    few = _counted(first, where(small, mean, zero))
    many = _transformed(second, where(small, here.literal(SMALL, F64), mean))
    found = where(small, few, many)
    return cast(e.minimum(found, float(kind.range[1] // 2 * 2)), kind)


def _counted(key: Value, mean: Value) -> Value:
    """For means below 10: the inverse of the distribution function, summed up term by term."""
    here = key.builder.program.current
    u = unit(key, mean.shape, F64)
    none, first = here.full(0.0, mean.shape, F64), e.exp(e.negative(mean))

    def step(state: Values) -> Values:
        count, term, total = state
        later = e.add(count, 1.0)
        term = e.divide(e.multiply(term, mean), later)
        count = where(e.greater_equal(u, total), later, count)
        return count, term, e.add(total, term)

    def going(state: Values) -> Value:
        # Rounding may keep the sum from ever reaching a number close to 1.
        left = e.greater_equal(u, state[2])
        return some(e.bitwise_and(left, e.greater(state[1], TINY)))

    return loop((none, first, first), going, step)[0]


def _log_factorial(k: Value) -> Value:
    """The logarithm of k!, for numbers that are whole and not negative."""
    z = e.add(k, SHIFT + 1.0)
    inverse = e.divide(1.0, z)
    square = e.multiply(inverse, inverse)
    series: Any = STIRLING[-1]
    for each in reversed(STIRLING[:-1]):
        series = e.add(e.multiply(square, series), each)
    product = e.add(k, 1.0)
    for step in range(2, SHIFT + 1):
        product = e.multiply(product, e.add(k, float(step)))
    main = e.subtract(e.multiply(e.subtract(z, 0.5), e.log(z)), z)
    main = e.add(main, 0.5 * math.log(2 * math.pi))
    found: Value = e.subtract(e.add(main, e.multiply(series, inverse)), e.log(product))
    return found


def _transformed(key: Value, mean: Value) -> Value:
    """For means of at least 10."""
    log_mean, root = e.log(mean), e.sqrt(mean)
    b = e.add(0.931, e.multiply(2.53, root))
    a = e.add(-0.059, e.multiply(0.02483, b))
    inverse_alpha = e.add(1.1239, e.divide(1.1328, e.subtract(b, 3.4)))
    within = e.subtract(0.9277, e.divide(3.6224, e.subtract(b, 2.0)))

    def propose(used: Value) -> tuple[Value, Value]:
        first, second = subkeys(used, 2)
        u = e.subtract(unit(first, mean.shape, F64), 0.5)
        v = positive(second, mean.shape, F64)
        us = e.subtract(0.5, e.absolute(u))
        slope = e.add(e.divide(e.multiply(2.0, a), us), b)
        k = e.floor(e.add(e.add(e.multiply(slope, u), mean), 0.43))
        quick = e.bitwise_and(e.greater_equal(us, 0.07), e.less_equal(v, within))
        never = e.bitwise_and(e.less(us, 0.013), e.greater(v, us))
        never = e.bitwise_or(never, e.less(k, 0.0))
        squeeze = e.add(e.divide(a, e.multiply(us, us)), b)
        left = e.log(e.divide(e.multiply(v, inverse_alpha), squeeze))
        counted = e.maximum(k, 0.0)
        right = e.subtract(e.subtract(e.multiply(counted, log_mean), mean), _log_factorial(counted))
        slow = e.bitwise_and(e.less_equal(left, right), e.invert(never))
        return k, e.bitwise_or(quick, slow)

    return accepted(key, mean.shape, F64, propose)
