"""Logarithms near 1, by the series of the inverse hyperbolic tangent.

XLA's own log1p in f64 is off by a hundred units in the last place in places.
"""

from __future__ import annotations

from typing import Final

from pscdsl.primitives.formulas.arithmetic import Arithmetic, Formula, Number, polynomial

LOW: Final = -0.34
HIGH: Final = 0.5
"""Between these, log(1 + x) is a series in (x / (2 + x))^2."""
_TERMS: Final = {32: 6, 64: 13}


def _above(m: Arithmetic, x: Number) -> Number:
    """log(1 + x) - x of numbers between the bounds."""
    r = x / (x + 2)
    square = r * r
    series = polynomial(square, [1 / (2 * k + 3) for k in range(_TERMS[m.bits])])
    return r * (2 * square * series - x)


def log1pmx(m: Arithmetic, x: Number) -> Number:
    """log(1 + x) - x without cancellation."""
    inside = (x > LOW) & (x < HIGH)
    return m.where(inside, _above(m, m.where(inside, x, 0.0)), m.log(x + 1) - x)


@Formula
def log1p(m: Arithmetic, x: Number) -> Number:
    """log(1 + x) without cancellation."""
    inside = (x > LOW) & (x < HIGH)
    near = m.where(inside, x, 0.0)
    return m.where(inside, near + _above(m, near), m.log(x + 1))


def deviance(m: Arithmetic, a: Number, mean: Number, difference: Number) -> Number:
    """`a log(a / mean) + mean - a`, where the difference is `mean - a`."""
    relative = difference / a
    near = m.absolute(relative) < 0.5
    close = -a * log1pmx(m, m.where(near, relative, 0.0))
    quotient = a / mean
    logarithm = m.where(quotient > 0, m.log(quotient), 0.0)  # else the product does not count
    return m.where(near, close, a * logarithm + difference)
