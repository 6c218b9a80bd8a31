"""The beta function's logarithm, and the regularized incomplete beta functions, I and 1 - I.

The continued fraction (NIST Digital Library of Mathematical Functions, 8.17.22), the power series
(8.17.7) where it has few large terms, and in front of both the density in C. Loader's form, whose
exponents do not cancel ("Fast and accurate computation of binomial probabilities", 2000); for very
large parameters the first terms of the uniform expansion (8.18.9).
"""

from __future__ import annotations

from math import inf, log, nan, pi, tau

from pscdsl._src.primitives.formulas.arithmetic import Arithmetic, Formula, Number, State
from pscdsl._src.primitives.formulas.error import scaled_complement
from pscdsl._src.primitives.formulas.exponentials import deviance
from pscdsl._src.primitives.formulas.gamma import LARGE, fraction, gammaln, stirling, stirling_error

UNIFORM_FROM = {32: 1e6, 64: 5e8}
"""From here on for both parameters, the continued fraction would take too many steps."""
MOST_STEPS = 2e4


@Formula
def betaln(m: Arithmetic, a: Number, b: Number) -> Number:
    """The logarithm of the absolute value of B(a, b), without cancellation between large terms.

    Where a + b is below 1, B(a, b) is B(1 - a - b, b) sin(pi (a + b)) / sin(pi a), by DLMF 5.5.3.
    At poles of both sines that is the limit along a.
    """
    high, low = m.where(a < b, b, a), m.where(a < b, a, b)
    mirrored = (low < 0) & (low > -inf) & (high > 0) & (high + low < 1)
    # Of positive numbers, whose fractions are exact: one below zero may be next to it.
    low_turns = fraction(m, m.where(mirrored, -low, 0.25))
    high_turns = fraction(m, m.where(mirrored, high, 0.25))
    quotient = m.sin(pi * (high_turns - low_turns)) / m.sin(pi * low_turns)
    factor = m.log(m.absolute(m.where(mirrored & (high_turns != 0), quotient, 1.0)))
    low = m.where(mirrored, 1 - low - high, low)
    high, low = m.where(high < low, low, high), m.where(high < low, high, low)
    of_low = gammaln(m, low)
    direct = gammaln(m, high) + of_low - gammaln(m, high + low)
    direct = m.where((low == 0) & (high == 0), inf, direct)
    large = (high >= LARGE) & (high + low >= LARGE) & (high < inf)
    one, other = m.where(large, high, LARGE), m.where(large, low, 1.0)
    total = one + other
    above = m.where(other < LARGE, LARGE, other)
    quotient = other / one
    growth = m.where(m.absolute(quotient) > m.epsilon / 4, m.log1p(quotient) / quotient, 1.0)
    first = other * growth * (0.5 / one - 1) + (stirling(m, one) - stirling(m, total))
    small = of_low - other * (m.log(total) - 1)
    rest = above * m.log(above / total) - m.log(above) / 2
    rest = rest + (stirling(m, above) + log(tau) / 2)
    result = m.where(large, first + m.where(other < LARGE, small, rest), direct)
    result = result + factor
    return m.where((high == inf) & (low > -inf), m.where(low > 0, -inf, inf), result)


@Formula
def betainc(m: Arithmetic, a: Number, b: Number, x: Number) -> Number:
    """I, the probability that a variable with this beta distribution is below x."""
    return _parts(m, a, b, x)[0]


@Formula
def betaincc(m: Arithmetic, a: Number, b: Number, x: Number) -> Number:
    """1 - I."""
    return _parts(m, a, b, x)[1]


def _parts(m: Arithmetic, a: Number, b: Number, x: Number) -> tuple[Number, Number]:
    """Both functions, everywhere."""
    inside = (a > 0) & (b > 0) & (a < inf) & (b < inf) & (x > 0) & (x < 1)
    lower, upper = _inside(m, *(m.where(inside, v, c) for v, c in ((a, 1.0), (b, 1.0), (x, 0.5))))
    defined = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    at_zero = (a == 0) | (b == inf)  # all of the distribution stands at 0, or at 1
    at_one = (b == 0) | (a == inf)
    edge = m.where((at_zero & (x > 0)) | (x == 1), 1.0, 0.0)
    edge = m.where(at_one & (x < 1), 0.0, edge)
    edge = m.where(at_zero & at_one, nan, edge)
    outside = m.where(defined, edge, nan)
    return m.where(inside, lower, outside), m.where(inside, upper, 1 - outside)


def _inside(m: Arithmetic, a: Number, b: Number, x: Number) -> tuple[Number, Number]:
    """Both functions of positive numbers, x below 1."""
    y = 1 - x
    uniform = m.where(a < b, a, b) > UNIFORM_FROM[m.bits]
    exponent = _exponent(m, a, b, x, y)
    logarithm = _log_factor(m, a, b) - exponent
    by_series = (b * x <= 1) & (x <= 0.95)
    by_fraction = ~(by_series | uniform)
    swapped = m.where(uniform, a * y < b * x, x * (a + b + 2) > a + 1) & ~by_series
    first, second = m.where(swapped, b, a), m.where(swapped, a, b)
    place = m.where(swapped, y, x)
    fraction = m.exp(logarithm) / first * _continued_fraction(m, first, second, place, by_fraction)
    series = m.exp(logarithm - b * m.log1p(-x)) / a * _series(m, a, b, x, by_series)
    part = m.where(by_series, series, fraction)
    part = m.where(uniform, _uniform_tail(m, a, b, x, exponent), part)
    return m.where(swapped, 1 - part, part), m.where(swapped, part, 1 - part)


def _exponent(m: Arithmetic, a: Number, b: Number, x: Number, y: Number) -> Number:
    """How much the logarithm of x^a y^b is below its maximum, where y = 1 - x."""
    total, difference = a + b, b * x - a * y
    return deviance(m, a, total * x, difference) + deviance(m, b, total * y, -difference)


def _log_factor(m: Arithmetic, a: Number, b: Number) -> Number:
    """The maximum of log(x^a (1 - x)^b), less log B(a, b)."""
    total = a + b
    errors = stirling_error(m, total) - stirling_error(m, a) - stirling_error(m, b)
    return m.log(a / total * b) / 2 + (errors - log(tau) / 2)


def _uniform_tail(m: Arithmetic, a: Number, b: Number, x: Number, exponent: Number) -> Number:
    """The smaller of both for large a and b, up to a relative error of about 1 / (a + b)."""
    total = a + b
    share = a / total
    excess = m.absolute(b * x - a * (1 - x)) / total
    width = m.sqrt(share * (b / total))
    eta = m.sqrt(2 * exponent / total)
    middle = eta * m.sqrt(total) < 1e-3
    safe = m.where(middle, 1.0, eta)
    correction = 1 / safe - width / m.where(middle, 1.0, excess)
    skewness = m.where(a * (1 - x) < b * x, 1.0, -1.0) * ((b - a) / total) / (3 * width)
    correction = m.where(middle, skewness, correction)
    tail = scaled_complement(m, m.sqrt(exponent)) / 2 - correction / m.sqrt(tau * total)
    return m.exp(-exponent) * tail


def _continued_fraction(m: Arithmetic, a: Number, b: Number, x: Number, wanted: Number) -> Number:
    """`a I B(a, b) / (x^a (1 - x)^b)`, by Lentz's method as Thompson and Barnett have it."""
    a, b, x = (m.where(wanted, v, c) for v, c in ((a, 1.0), (b, 1.0), (x, 0.0)))

    def goes_on(state: State) -> Number:
        _, _, _, factor, n = state
        return (m.absolute(factor - 1) > 2 * m.epsilon) & (n < MOST_STEPS)

    def advanced(c: Number, d: Number, term: Number) -> tuple[Number, Number]:
        return _away_from_zero(m, 1 + term / c), 1 / _away_from_zero(m, 1 + term * d)

    def step(state: State) -> State:
        c, d, total, last_factor, n = state
        last = a + 2 * n
        c, d = advanced(c, d, n * (b - n) / (last - 1) * (x / last))
        even = c * d
        c, d = advanced(c, d, -(a + n) / (last + 1) * ((a + b + n) / last) * x)
        goes = goes_on(state)  # what has converged stays: factors are 1 but for rounding
        factor = m.where(goes, c * d, last_factor)
        return c, d, m.where(goes, total * even * factor, total), factor, n + 1

    first = 1 / _away_from_zero(m, 1 - (a + b) * (x / (a + 1)))
    one, none = m.where(wanted, 1.0, 1.0), m.where(wanted, 0.0, 0.0)
    return m.repeat(goes_on, step, (one, first, first, none, one))[2]


def _away_from_zero(m: Arithmetic, x: Number) -> Number:
    return m.where(m.absolute(x) < 1e-30, 1e-30, x)


def _series(m: Arithmetic, a: Number, b: Number, x: Number, wanted: Number) -> Number:
    """`a I B(a, b) / x^a`: the sum of a / (a + n) (1 - b) ... (n - b) / n! x^n."""

    def goes_on(state: State) -> Number:
        power, total, n = state
        return (m.absolute(power) > m.absolute(total) * (m.epsilon / 4)) & (n < MOST_STEPS)

    def step(state: State) -> State:
        power, total, n = state
        power = power * ((n - b) / n * x)
        return power, total + power * (a / (a + n)), n + 1

    one = m.where(wanted, 1.0, 1.0)
    return m.repeat(goes_on, step, (m.where(wanted, 1.0, 0.0), one, one))[1]
