"""The regularized incomplete gamma functions, P from below and Q from above: P + Q = 1.

Temme's uniform expansion where a is large and x near it; elsewhere the power series below a, and
the continued fraction above (NIST Digital Library of Mathematical Functions, 8.11.4, 8.12, 8.9.2).
For small x and a, where both lose Q, that is computed from the first term of the series of P.
"""

from __future__ import annotations

from math import factorial, inf, nan, tau
from math import sqrt as root

from pscdsl._src.primitives.formulas.arithmetic import (
    Arithmetic,
    Formula,
    Number,
    State,
    polynomial,
)
from pscdsl._src.primitives.formulas.error import scaled_complement
from pscdsl._src.primitives.formulas.gamma import LARGE, log_gamma, log_gamma_1p, stirling
from pscdsl._src.primitives.formulas.logarithms import deviance, log1pmx
from pscdsl._src.primitives.formulas.temme import coefficients

UNIFORM_FROM = 20.0
"""From this a on, Temme's expansion is used where x is within `UNIFORM_WIDTH` of a, relatively."""
UNIFORM_WIDTH = 0.3
SMALL = 1.1
MOST_STEPS = 1e4


@Formula
def gammainc(m: Arithmetic, a: Number, x: Number) -> Number:
    """P."""
    return _parts(m, a, x)[0]


@Formula
def gammaincc(m: Arithmetic, a: Number, x: Number) -> Number:
    """Q."""
    return _parts(m, a, x)[1]


def _parts(m: Arithmetic, a: Number, x: Number) -> tuple[Number, Number]:
    """Both functions, everywhere."""
    inside = (a > 0) & (x > 0) & (a < inf) & (x < inf)
    lower, upper = _inside(m, m.where(inside, a, 1.0), m.where(inside, x, 1.0))
    outside = m.where((a >= 0) & (x >= 0), m.where(a < x, 1.0, 0.0), nan)
    outside = m.where(a == x, nan, outside)  # both are 0, or infinite
    return m.where(inside, lower, outside), m.where(inside, upper, 1 - outside)


def _inside(m: Arithmetic, a: Number, x: Number) -> tuple[Number, Number]:
    """Both functions of positive numbers."""
    excess = (x - a) / a
    uniform = (a >= UNIFORM_FROM) & (m.absolute(excess) <= UNIFORM_WIDTH)
    below = (x <= SMALL) | (x < a)
    density = _density(m, a, x)
    series = density * _series(m, a, x, below & ~uniform)
    fraction = density * a * _continued_fraction(m, a, x, ~(below | uniform))
    lower = m.where(below, series, 1 - fraction)
    upper = m.where(below, 1 - series, fraction)
    logarithm = m.log(x)
    by_series = m.where(x <= 0.5, 0.4 < -logarithm * a, SMALL * x < a)
    upper = m.where((x <= SMALL) & ~by_series, _of_small(m, a, x, logarithm), upper)
    tail = _uniform_tail(m, a, excess)
    left = excess < 0
    lower = m.where(uniform, m.where(left, tail, 1 - tail), lower)
    return lower, m.where(uniform, m.where(left, 1 - tail, tail), upper)


def _density(m: Arithmetic, a: Number, x: Number) -> Number:
    """x^a exp(-x) / gamma(a + 1)."""
    near = m.where(a < LARGE, a, 1.0)
    small = m.where(near < 2, near, 1.0)
    large = m.where(near < 2, 2.0, near)
    factorials = m.where(near < 2, log_gamma_1p(m, small), log_gamma(m, large) + m.log(large))
    direct = m.exp(near * m.log(x) - x - factorials)
    far = m.exp(-deviance(m, a, x, x - a)) / (m.sqrt(a) * (root(tau) * m.exp(stirling(m, a))))
    return m.where(a < LARGE, direct, far)


def _series(m: Arithmetic, a: Number, x: Number, wanted: Number) -> Number:
    """The sum of x^n / ((a + 1) ... (a + n))."""

    def goes_on(state: State) -> Number:
        term, total, _ = state
        return term > total * (m.epsilon / 4)

    def step(state: State) -> State:
        term, total, n = state
        term = term * (x / (a + n))
        return term, total + term, n + 1

    one = m.where(wanted, 1.0, 1.0)
    return m.repeat(goes_on, step, (m.where(wanted, 1.0, 0.0), one, one))[1]


def _continued_fraction(m: Arithmetic, a: Number, x: Number, wanted: Number) -> Number:
    """gamma(a) Q / (x^a exp(-x)), by Lentz's method as Thompson and Barnett have it."""
    a, x = m.where(wanted, a, 0.5), m.where(wanted, x, 50.0)

    def goes_on(state: State) -> Number:
        _, _, _, factor, n = state
        return (m.absolute(factor - 1) > 2 * m.epsilon) & (n < MOST_STEPS)

    def step(state: State) -> State:
        c, d, total, last_factor, n = state
        above = n * (a - n)
        below = (x - a) + (2 * n + 1)
        d = 1 / (above * d + below)
        c = below + above / c
        goes = goes_on(state)  # what has converged stays: factors are 1 but for rounding
        factor = m.where(goes, c * d, last_factor)
        return c, d, m.where(goes, total * factor, total), factor, n + 1

    first = 1 / (x - a + 1)
    many, none = m.where(wanted, inf, inf), m.where(wanted, 0.0, 0.0)
    return m.repeat(goes_on, step, (many, first, first, none, none + 1))[2]


def _of_small(m: Arithmetic, a: Number, x: Number, logarithm: Number) -> Number:
    """Q for small a and x."""
    a, x = m.where(a < 2, a, 1.0), m.where(x < SMALL, x, SMALL)
    first = a * logarithm - log_gamma_1p(m, a)
    count = m.choose(12, 21)
    total: Number = 0.0
    power: Number = 1.0
    for n in range(1, count):
        power = power * -x
        total = total + power * (1 / factorial(n)) / (a + float(n))
    return -m.expm1(first) - m.exp(first) * (a * total)


def _uniform_tail(m: Arithmetic, a: Number, excess: Number) -> Number:
    """The smaller of both for large a and x near it: P to the left of a, else Q."""
    a = m.where(a < UNIFORM_FROM, UNIFORM_FROM, a)
    excess = m.clip(excess, -UNIFORM_WIDTH, UNIFORM_WIDTH)
    half_square = -log1pmx(m, excess)
    size = m.sqrt(2 * half_square)
    eta = m.copysign(size, excess)
    rows = coefficients(*m.choose((5, 9), (13, 20)))
    sums = [polynomial(eta, row) for row in rows]
    total: Number = sums[-1]
    inverse = 1 / a
    for each in reversed(sums[:-1]):
        total = total * inverse + each
    correction = total / (root(tau) * m.sqrt(a))
    complement = scaled_complement(m, m.sqrt(a * half_square)) / 2
    signed = m.where(excess < 0, -correction, correction)
    return m.exp(-a * half_square) * (complement + signed)
