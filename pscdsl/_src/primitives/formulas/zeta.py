"""Hurwitz's zeta function: a few terms of the sum, the rest by Euler and Maclaurin.

To the left of 0, where the exponent must be an integer, the sum over what is above is that over all
integers less that over what is below, and both are zeta functions of positive numbers.
"""

from __future__ import annotations

from math import inf, nan
from typing import Final

from pscdsl._src.primitives.formulas.arithmetic import Arithmetic, Formula, Number

TERMS: Final = 10
"""How many terms are summed one by one."""
# B(2k) / (2k)!
_BERNOULLI: Final = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
    77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
)


def _of_positive(m: Arithmetic, s: Number, q: Number) -> Number:
    """The sum of (q + k)^-s, for s above 1 and q above 0."""
    total: Number = m.power(q, -s)
    for k in range(1, TERMS):
        total = total + m.power(q + float(k), -s)
    a = q + float(TERMS)
    term = m.power(a, -s)
    square, factor = a * a, s / a
    rest: Number = _BERNOULLI[0] * factor
    for k, coefficient in enumerate(_BERNOULLI[1:], 1):
        factor = factor * ((s + float(2 * k - 1)) * (s + float(2 * k)) / square)
        rest = rest + coefficient * factor
    rest = m.where(term == 0, 0.0, term * rest)
    return total + (m.power(a, 1 - s) / (s - 1) + (term / 2 + rest))


@Formula
def zeta(m: Arithmetic, s: Number, q: Number) -> Number:
    """The sum of (q + k)^-s over k from 0 on; NaN for s below 1, and for a power that is none."""
    fraction = q - m.floor(q)
    positive = _of_positive(m, s, m.where(q > 0, q, 1.0))

    def reflected() -> Number:
        above = _of_positive(m, s, m.where(fraction > 0, fraction, 1.0))
        below = _of_positive(m, s, m.where(fraction > 0, (m.floor(q) + 1) - q, 1.0))
        rest = _of_positive(m, s, m.where(q < 0, 1 - q, 1.0))
        half = s / 2
        sign = m.where(half == m.floor(half), 1.0, -1.0)
        return above + sign * (below - rest)

    left = (q < 0) & (fraction > 0)
    result = m.where_any(left, reflected, positive)
    result = m.where((q < 0) & (m.floor(s) != s), nan, result)
    result = m.where((q <= 0) & (fraction == 0), inf, result)
    result = m.where(q == inf, 0.0, result)
    return m.where((s > 1) & (q == q), result, m.where(s == 1, inf, nan) + q * 0)
