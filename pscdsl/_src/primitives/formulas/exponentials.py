"""Exponentials and logarithms, and what is near to them: hyperbolic and logistic functions."""

from __future__ import annotations

import math
from math import e, inf
from typing import Final

from pscdsl._src.primitives.formulas.arithmetic import Arithmetic, Formula, Number, polynomial

# The exponential in single precision, as formulas take it apart.


EXP: Final = (
    1.0,
    1.0000004318781799,
    0.500000053913926,
    0.16665389519043505,
    0.041665072178331174,
    0.00842766417235387,
    0.0014006691754246655,
)
"""exp(d) for d from -0.52 to 0.52, lowest power first: fitted at Chebyshev's points."""
LOG_2: Final = (0.693359375, -0.00021219444005469057)
"""The logarithm of 2; multiples of the first part up to 2^8 are exact, as it has few bits."""


def reduced(m: Arithmetic, x: Number) -> tuple[Number, Number]:
    """An integer, and what a number has beyond as many times log(2)."""
    power = m.nearest(x * (1 / math.log(2)))
    return power, (x - power * LOG_2[0]) - power * LOG_2[1]


# The hyperbolic sine and cosine, where the exponential itself overflows, too.
#
# XLA adds log(1/2) to the argument for that, which is then rounded: an error of as many units in
# the last place as the argument is large. One less than the argument has no error.


LEAST: Final = 1.0
"""From here on, one less than a number is exact."""


@Formula
def cosh(m: Arithmetic, x: Number) -> Number:
    """(exp(x) + exp(-x)) / 2."""
    rising, falling = _halves(m, m.absolute(x))
    return rising + falling


@Formula
def sinh(m: Arithmetic, x: Number) -> Number:
    """(exp(x) - exp(-x)) / 2, without cancellation near 0."""
    size = m.absolute(x)
    rising, falling = _halves(m, size)
    less = m.expm1(m.where(size < LEAST, size, 0.0))
    near = (less + less / (less + 1)) * 0.5
    return m.copysign(m.where(size < LEAST, near, rising - falling), x)


def _halves(m: Arithmetic, size: Number) -> tuple[Number, Number]:
    """exp(x) / 2 and exp(-x) / 2 of a number that is not negative."""
    moved = size >= LEAST
    power = m.exp(m.where(moved, size - 1, size))
    return power * m.where(moved, e / 2, 0.5), m.where(moved, 0.5 / e, 0.5) / power


# Logarithms near 1, by the series of the inverse hyperbolic tangent, and that function.
#
# XLA's own in f64 are off by a hundred units in the last place in places.


LOW: Final = -0.34
HIGH: Final = 0.5
"""Between these, log(1 + x) is a series in (x / (2 + x))^2."""
_SERIES: Final = {
    bits: [1 / (2 * k + 3) for k in range(terms)] for bits, terms in ((32, 6), (64, 13))
}


def _above(m: Arithmetic, x: Number) -> Number:
    """log(1 + x) - x of numbers between the bounds."""
    r = x / (x + 2)
    square = r * r
    return r * (2 * square * polynomial(square, _SERIES[m.bits]) - x)


def log1pmx(m: Arithmetic, x: Number) -> Number:
    """log(1 + x) - x without cancellation."""
    inside = (x > LOW) & (x < HIGH)
    return m.where(inside, _above(m, m.where(inside, x, 0.0)), m.log(x + 1) - x)


@Formula
def log1p(m: Arithmetic, x: Number) -> Number:
    """log(1 + x) without cancellation: 1 + x is rounded, and what is lost by that added."""
    moved = x + 1
    lost = x + (1 - moved)
    inverse = 1 + x * (0.5 * x - 1)  # of 1 + x, as exact as it has to be: less so beside more
    found = m.log(moved) + m.where(m.absolute(x) < 1, lost * inverse, 0.0)
    return m.where(x == 0, x, found)


@Formula
def atanh(m: Arithmetic, x: Number) -> Number:
    """The inverse of the hyperbolic tangent."""
    near = m.clip(x, -0.2, 0.2)
    square = near * near
    inside = near + near * square * polynomial(square, _SERIES[m.bits])
    outside = (log1p(m, x) - log1p(m, -x)) / 2
    return m.where(m.absolute(x) < 0.2, inside, outside)


def deviance(m: Arithmetic, a: Number, mean: Number, difference: Number) -> Number:
    """`a log(a / mean) + mean - a`, where the difference is `mean - a`."""
    relative = difference / a
    near = m.absolute(relative) < 0.5
    close = -a * log1pmx(m, m.where(near, relative, 0.0))
    quotient = a / mean
    logarithm = m.where(quotient > 0, m.log(quotient), 0.0)  # else the product does not count
    return m.where(near, close, a * logarithm + difference)


# Logarithms of probabilities and odds, and products with logarithms, right at 0 and 1.


@Formula
def logit(m: Arithmetic, p: Number) -> Number:
    """log(p / (1 - p)), with relative accuracy around 1/2."""
    above = 2 * p - 1
    inside = m.clip(above, -0.5, 0.5)
    near = m.log1p(inside) - m.log1p(-inside)
    return m.where(m.absolute(above) < 0.5, near, m.log(p / (1 - p)))


@Formula
def log_expit(m: Arithmetic, x: Number) -> Number:
    """log(1 / (1 + exp(-x)))."""
    return m.where(x < 0, x, 0.0) - m.log1p(m.exp(-m.absolute(x)))


@Formula
def xlogy(m: Arithmetic, x: Number, y: Number) -> Number:
    """`x log(y)`, and 0 where x is 0."""
    return m.where((x == 0) & (y == y), 0.0, x * m.log(y))


@Formula
def xlog1py(m: Arithmetic, x: Number, y: Number) -> Number:
    """`x log(1 + y)`, and 0 where x is 0."""
    return m.where((x == 0) & (y == y), 0.0, x * m.log1p(y))


@Formula
def entr(m: Arithmetic, x: Number) -> Number:
    """-x log(x); 0 at 0, and -inf to the left."""
    return m.where(x < 0, -inf, m.where(x == 0, 0.0, -x * m.log(x)))


@Formula
def rel_entr(m: Arithmetic, x: Number, y: Number) -> Number:
    """`x log(x / y)`; 0 where x is 0, infinite where one of them is no probability."""
    quotient = x / y
    near = (quotient > 0.6) & (quotient < 1.5)
    between = (quotient > 1e-30) & (quotient < 1e30)  # neither over- nor underflown
    logarithm = m.where(between, m.log(quotient), m.log(x) - m.log(y))
    logarithm = m.where(near, m.log1p(m.where(near, (x - y) / y, 0.0)), logarithm)
    return _of_probabilities(m, x, y, x * logarithm, 0.0)


@Formula
def kl_div(m: Arithmetic, x: Number, y: Number) -> Number:
    """`x log(x / y) - x + y`, without cancellation; infinite where one of them is negative."""
    excess = (y - x) / x
    near = (excess > -0.34) & (excess < 0.5)
    close = -x * log1pmx(m, m.where(near, excess, 0.0))
    result = m.where(near, close, rel_entr(m, x, y) + (y - x))
    return _of_probabilities(m, x, y, result, y)


def _of_probabilities(
    m: Arithmetic, x: Number, y: Number, inside: Number, at_zero: Number
) -> Number:
    """A function of positive numbers, its value at x = 0, and infinity elsewhere; NaN stays."""
    edge = m.where((x == 0) & (y >= 0), at_zero, inf)
    result = m.where((x > 0) & (y > 0), inside, edge)
    return m.where((x == x) & (y == y), result, x + y)
