"""Logarithms of probabilities and odds, and products with logarithms, right at 0 and 1."""

from __future__ import annotations

from math import inf

from pscdsl._src.primitives.formulas.arithmetic import Arithmetic, Formula, Number
from pscdsl._src.primitives.formulas.logarithms import log1pmx


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
