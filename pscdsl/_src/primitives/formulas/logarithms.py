"""Logarithms near 1, by the series of the inverse hyperbolic tangent, and that function.

XLA's own in f64 are off by a hundred units in the last place in places.
"""

from __future__ import annotations

from typing import Final

from pscdsl._src.primitives.formulas.arithmetic import Arithmetic, Formula, Number, polynomial

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
