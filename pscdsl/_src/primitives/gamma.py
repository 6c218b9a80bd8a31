"""Formulas of the gamma and beta functions, complete and incomplete, and of Bessel functions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial, inf, log, nan, pi, tau
from math import sqrt as root
from typing import Final

from pscdsl._src.primitives.exponentials import deviance, log1pmx, scaled_complement
from pscdsl._src.primitives.formulas import Arithmetic, Formula, Number, State, polynomial, ratio

# The gamma function, its logarithm and derivatives, and the incomplete gamma functions.


# The gamma function, its logarithm, and the derivative of that.
#
# Numbers are brought near 1 by the recurrence, or are large enough for Stirling's series; negative
# ones are reflected (Abramowitz, Stegun, 6.1.17, 6.1.40, 6.3.7, 6.3.18). The rational functions
# were fitted to values of 50 digits, with relative errors below 1e-16.


# log gamma(1 + y) / (y (y - 1)) for y from 0 to 2.
_LOG_GAMMA = (
    (
        0.5772156649015329,
        1.593154368356481,
        1.659906973275807,
        0.8137551682911183,
        0.19063580804451005,
        0.019183522116821717,
        0.0006070356213814126,
        1.327995698178057e-06,
    ),
    (
        1.0,
        3.1849546862049776,
        3.9596763252710563,
        2.434041105432465,
        0.77374173398361,
        0.12143726784051702,
        0.008110747507161991,
        0.0001567119538418921,
    ),
)
# digamma(1 + y) / (y - y0) for y from 0 to 1, where y0 is the root.
_DIGAMMA = (
    (
        1.2503801375034054,
        1.6688933153704555,
        0.7158780862642184,
        0.11382557844758341,
        0.005419492699906139,
        1.6974743942258247e-05,
    ),
    (
        1.0,
        2.018255569071166,
        1.350308916638337,
        0.37092165890312595,
        0.04010094006985941,
        0.0012324038239272003,
    ),
)
_ROOT = {
    32: (0.4616321325302124, 1.2438149938918909e-08),
    64: (0.46163214496836236, -1.5522348162858677e-17),
}
"""The root of the digamma function minus 1: the nearest number, and the rest."""
# Stirling's series, in 1 / x^2; B(2k) / (2k (2k - 1)), times x.
_STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
    43867 / 244188,
)
# B(2k) / 2k.
_DIGAMMA_SERIES = (
    1 / 12,
    -1 / 120,
    1 / 252,
    -1 / 240,
    1 / 132,
    -691 / 32760,
    1 / 12,
    -3617 / 8160,
    43867 / 14364,
    -174611 / 6600,
)
_LARGEST = {32: 36.0, 64: 172.0}
"""Beyond this the gamma function is infinite."""
LARGE = 8.0
"""From here on Stirling's series is used."""


def log_gamma_1p(m: Arithmetic, y: Number) -> Number:
    """The logarithm of gamma(1 + y) for y from 0 to 2, with relative accuracy at both its roots."""
    return y * (y - 1) * ratio(y, *_LOG_GAMMA)


def stirling(m: Arithmetic, x: Number) -> Number:
    """Return log gamma(x) minus (x - 1/2) log x - x + log(2 pi) / 2, for large x."""
    inverse = 1 / x
    return inverse * polynomial(inverse * inverse, _STIRLING)


def stirling_error(m: Arithmetic, x: Number) -> Number:
    """Return that difference for all positive x."""
    near = m.where(x < LARGE, x, 1.0)
    main = (near - 0.5) * m.log(near) - near + log(tau) / 2
    return m.where(x < LARGE, log_gamma(m, near) - main, stirling(m, x))


def log_gamma_growth(m: Arithmetic, x: Number, h: Number) -> Number:
    """Return log gamma(x + h) - log gamma(x) of positive numbers, right to the last digits of h."""
    near = x < LARGE
    factor, product, change = m.where(near, x, 1.0), 1.0, 0.0
    for _ in range(int(LARGE)):
        change = change * (factor + h) + product * h
        product, factor = product * factor, factor + 1
    large = m.where(near, x + LARGE, x)
    relative = h / large
    above, below = 1 / (large + h), 1 / large
    # Horner's scheme at one square, and at the same time for the quotient of differences.
    value, slope = 0.0, 0.0
    for coefficient in reversed(_STIRLING):
        slope = slope * (below * below) + value
        value = value * (above * above) + coefficient
    rest = -h * below * above * (value + below * (above + below) * slope)
    far = h * m.log(large) + large * log1pmx(m, relative) + (h - 0.5) * m.log1p(relative)
    return far + rest - m.where(near, m.log1p(change / product), 0.0)


def _near_one(m: Arithmetic, x: Number, steps: int, last: float) -> tuple[Number, Number, Number]:
    """A number from 0 to LARGE as 1 + y and factors: y, their product, and the sum of inverses.

    `last` is the bound below which 1 + y is brought; of a number below 1 there are no factors.
    """
    z, product, inverses = x, 1.0, 0.0
    for _ in range(steps):
        above, lower = z >= last, z - 1
        product = m.where(above, product * lower, product)
        inverses = m.where(above, inverses + 1 / lower, inverses)
        z = m.where(above, lower, z)
    return m.where(x < 1, x, z - 1), product, inverses


def log_gamma(m: Arithmetic, x: Number) -> Number:
    """The logarithm of the gamma function of numbers from 0 on."""
    y, product, _ = _near_one(m, m.where(x < LARGE, x, 1.0), 5, 3.0)
    logarithm = m.log(m.where(x < 1, x, product))
    near = log_gamma_1p(m, y) + m.where(x < 1, -logarithm, logarithm)
    main = (x - 0.5) * (m.log(x) - 1)
    return m.where(x < LARGE, near, main + (stirling(m, x) + (log(tau) - 1) / 2))


def fraction(m: Arithmetic, x: Number) -> Number:
    """By how much a number is above the nearest integer."""
    above = x - m.floor(x)
    return m.where(above > 0.5, above - 1, above)


@Formula
def gammaln(m: Arithmetic, x: Number) -> Number:
    """The logarithm of the absolute value of the gamma function; infinite at its poles."""
    size = m.absolute(x)
    positive = log_gamma(m, size)
    sine = m.absolute(m.sin(pi * fraction(m, size)))
    negative = m.where(sine == 0, inf, -positive - m.log(sine / pi) - m.log(size))
    return m.where(size == inf, x, m.where(x < 0, negative, positive))


@Formula
def digamma(m: Arithmetic, x: Number) -> Number:
    """The derivative of `gammaln`; NaN at the poles but 0, where the sign of the zero decides."""
    size = m.absolute(x)
    y, _, inverses = _near_one(m, m.where(size < LARGE, size, 1.0), 6, 2.0)
    nearest, rest = _ROOT[m.bits]
    slope = ratio(y, *_DIGAMMA)
    near = (y - nearest) * slope - rest * slope
    near = near + m.where(size < 1, -1 / size, inverses)
    inverse = 1 / (size * size)
    far = m.log(size) - (0.5 / size + inverse * polynomial(inverse, _DIGAMMA_SERIES))
    positive = m.where(size < LARGE, near, far)
    angle = pi * fraction(m, size)
    negative = positive + (1 / size + pi * m.cos(angle) / m.sin(angle))
    at_pole = (x < 0) & (fraction(m, size) == 0)
    result = m.where(at_pole, nan, m.where(x < 0, negative, positive))
    return m.where(x == 0, m.copysign(inf, -x), result)


@Formula
def gamma(m: Arithmetic, x: Number) -> Number:
    """The gamma function; NaN at its poles but 0."""
    size = m.absolute(x)
    y, product, _ = _near_one(m, m.where(size < LARGE, size, 1.0), 5, 3.0)
    near = m.exp(log_gamma_1p(m, y)) * m.where(size < 1, 1 / size, product)
    half = m.power(size, size / 2 - 0.25)  # the power itself would overflow too early
    far = half * (m.exp(-size) * half) * (root(tau) * m.exp(stirling(m, size)))
    positive = m.where(size > _LARGEST[m.bits], inf, m.where(size < LARGE, near, far))
    above = fraction(m, size)
    below = m.floor(size / 2) * 2
    sign = 1 - 2 * m.where(m.floor(size) == below, 1.0, 0.0)
    negative = sign * pi / (positive * m.sin(pi * m.absolute(above)) * size)
    result = m.where(x < 0, m.where(above == 0, nan, negative), positive)
    return m.where(x == 0, m.copysign(inf, x), result)


# Hurwitz's zeta function: a few terms of the sum, the rest by Euler and Maclaurin.
#
# To the left of 0, where the exponent must be an integer, the sum over q and the numbers above is
# the sum over all integers minus that over the numbers below, and both are zeta functions of
# positive numbers.


TERMS: Final = 10
"""The number of terms that are summed one by one."""
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
    """Return the sum of (q + k)^-s for k from 0; NaN for s below 1 and for undefined powers."""
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


# The coefficients of Temme's uniform expansion of the incomplete gamma functions.
#
# N. M. Temme, "The asymptotic expansion of the incomplete gamma functions", SIAM Journal on
# Mathematical Analysis 10 (1979); as in the NIST Digital Library of Mathematical Functions, 8.12.
# They are rational numbers, computed here.


@lru_cache
def coefficients(orders: int, terms: int) -> tuple[tuple[float, ...], ...]:
    """For each order k in 1 / a the coefficients d(k, n) of eta^n; one fewer with each order."""
    count = terms + 2 * orders
    series = _inverse_series(count + 3)
    row = [Fraction(-1, 3), *((n + 2) * series[n + 2] for n in range(1, count))]
    first, rows = row, [row]
    scaled = _scaled_gamma(orders)
    for k in range(1, orders):
        sign = -scaled[k] if k % 2 else scaled[k]
        row = [sign * first[n] + (n + 2) * row[n + 2] for n in range(len(row) - 2)]
        rows.append(row)
    return tuple([tuple(map(float, row[: terms - k])) for k, row in enumerate(rows)])


def _inverse_series(count: int) -> Sequence[Fraction]:
    """The series of lambda - 1 in powers of eta, where eta^2 / 2 = lambda - 1 - log(lambda)."""
    found = [Fraction(0), Fraction(1)]
    for n in range(2, count):
        products = sum(
            (found[i] * (n - i + 1) * found[n - i + 1] for i in range(2, n)), Fraction(0)
        )
        found.append((found[n - 1] - products) / (n + 1))
    return found


def _scaled_gamma(count: int) -> Sequence[Fraction]:
    """Stirling's series of the gamma function itself, in powers of 1 / a."""
    bernoulli = _bernoulli(count + 2)
    logarithm = [Fraction(0), *(bernoulli[n + 1] / (n * (n + 1)) for n in range(1, count + 1))]
    found = [Fraction(1)]
    for n in range(1, count + 1):
        total = sum((j * logarithm[j] * found[n - j] for j in range(1, n + 1)), Fraction(0))
        found.append(total / n)
    return found


def _bernoulli(count: int) -> Sequence[Fraction]:
    found = [Fraction(1)]
    for n in range(1, count):
        total = sum((comb(n + 1, k) * found[k] for k in range(n)), Fraction(0))
        found.append(-total / (n + 1))
    return found


# The regularized incomplete gamma functions, P from below and Q from above: P + Q = 1.
#
# Temme's uniform expansion where a is large and x near it; elsewhere the power series below a, and
# the continued fraction above (NIST Digital Library of Mathematical Functions, 8.11.4, 8.12,
# 8.9.2). For small x and a, where both lose Q, that is computed from the first term of the series
# of P.


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
        goes = goes_on(state)  # converged elements stay: factors are 1 except for rounding
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


# The beta function's logarithm, and the regularized incomplete beta functions, I and 1 - I.
#
# The continued fraction (NIST Digital Library of Mathematical Functions, 8.17.22), the power series
# (8.17.7) where it has few large terms, and in front of both the density in C. Loader's form, whose
# exponents do not cancel ("Fast and accurate computation of binomial probabilities", 2000); for
# very large parameters the first terms of the uniform expansion (8.18.9).


BETA_UNIFORM_FROM = {32: 1e6, 64: 5e8}
"""From here on for both parameters, the continued fraction would take too many steps."""
MOST_BETA_STEPS = 2e4


FURTHEST_POLE: Final = -(2.0**31)
"""SciPy finds poles further on to have no limits."""


@Formula
def betaln(m: Arithmetic, a: Number, b: Number) -> Number:
    """The logarithm of the absolute value of B(a, b), without cancellation between large terms.

    Where a + b is below 1, B(a, b) is B(1 - a - b, b) sin(pi (a + b)) / sin(pi a), by DLMF 5.5.3.
    At poles of both sines that is the limit along a.  At other poles it is infinite, as in SciPy.
    """
    of_a, of_b = ((x <= 0) & (m.floor(x) == x) for x in (a, b))
    pole, other = m.where(of_a, a, b), m.where(of_a, b, a)
    has_limit = (m.floor(other) == other) & (other > 0) & (1 - pole - other > 0)
    has_limit = has_limit & (pole >= FURTHEST_POLE)
    diverges = (of_a | of_b) & (other == other) & ~has_limit
    high, low = m.where(a < b, b, a), m.where(a < b, a, b)
    mirrored = (low < 0) & (low > -inf) & (high > 0) & (high + low < 1)
    # Both numbers are positive, so that their fractions are exact: one below zero may be next to
    # it.
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
    result = m.where((high == inf) & (low > -inf), m.where(low > 0, -inf, inf), result)
    return m.where(diverges, inf, result)


@Formula
def betainc(m: Arithmetic, a: Number, b: Number, x: Number) -> Number:
    """I, the probability that a variable with this beta distribution is below x."""
    return _beta_parts(m, a, b, x)[0]


@Formula
def betaincc(m: Arithmetic, a: Number, b: Number, x: Number) -> Number:
    """1 - I."""
    return _beta_parts(m, a, b, x)[1]


def _beta_parts(m: Arithmetic, a: Number, b: Number, x: Number) -> tuple[Number, Number]:
    """Both functions, everywhere."""
    inside = (a > 0) & (b > 0) & (a < inf) & (b < inf) & (x > 0) & (x < 1)
    lower, upper = _beta_inside(
        m, *(m.where(inside, v, c) for v, c in ((a, 1.0), (b, 1.0), (x, 0.5)))
    )
    defined = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    at_zero = (a == 0) | (b == inf)  # the whole distribution is at 0, or at 1
    at_one = (b == 0) | (a == inf)
    edge = m.where((at_zero & (x > 0)) | (x == 1), 1.0, 0.0)
    edge = m.where(at_one & (x < 1), 0.0, edge)
    edge = m.where(at_zero & at_one, nan, edge)
    outside = m.where(defined, edge, nan)
    return m.where(inside, lower, outside), m.where(inside, upper, 1 - outside)


def _beta_inside(m: Arithmetic, a: Number, b: Number, x: Number) -> tuple[Number, Number]:
    """Both functions of positive numbers, x below 1."""
    y = 1 - x
    uniform = m.where(a < b, a, b) > BETA_UNIFORM_FROM[m.bits]
    exponent = _exponent(m, a, b, x, y)
    logarithm = _log_factor(m, a, b) - exponent
    from_below = (b * x <= 1) & (x <= 0.95) & ~uniform
    from_above = (a * y <= 1) & (y <= 0.95) & ~(from_below | uniform)
    by_series = from_below | from_above
    swapped = m.where(uniform, a * y < b * x, x * (a + b + 2) > a + 1)
    swapped = m.where(by_series, from_above, swapped)
    first, second = m.where(swapped, b, a), m.where(swapped, a, b)
    place = m.where(swapped, y, x)
    log_x, log_y = m.log(x), m.log1p(-x)
    wanted = ~(by_series | uniform)
    fraction = m.exp(logarithm) / first * _beta_fraction(m, first, second, place, wanted)
    rest = _beta_series(m, first, second, place, by_series)
    series = m.exp(logarithm - second * m.where(swapped, log_x, log_y)) / first * (1 + first * rest)
    small = m.where(first < LARGE, first, 1.0)
    factorial = m.where(
        small < 2, log_gamma_1p(m, m.where(small < 2, small, 1.0)), log_gamma(m, small + 1)
    )
    growth = log_gamma_growth(m, second, small) - factorial + m.log1p(small * rest)
    power = m.power(place, small)
    direct = by_series & (first < LARGE) & (power > m.choose(1e-30, 1e-290))
    part = m.where(by_series, series, fraction)
    part = m.where(direct, power * m.exp(growth), part)
    part = m.where(uniform, _beta_uniform_tail(m, a, b, x, exponent), part)
    part = m.where(part > 1, 1.0, part)  # by rounding
    whole = small * m.where(swapped, log_y, log_x) + growth
    other = m.where(direct, -m.expm1(m.where(whole < 0, whole, 0.0)), 1 - part)
    return m.where(swapped, other, part), m.where(swapped, part, other)


def _exponent(m: Arithmetic, a: Number, b: Number, x: Number, y: Number) -> Number:
    """Return by how much the logarithm of x^a y^b is below its maximum, where y = 1 - x."""
    total, difference = a + b, b * x - a * y
    return deviance(m, a, total * x, difference) + deviance(m, b, total * y, -difference)


def _log_factor(m: Arithmetic, a: Number, b: Number) -> Number:
    """The maximum of log(x^a (1 - x)^b), less log B(a, b)."""
    total = a + b
    errors = stirling_error(m, total) - stirling_error(m, a) - stirling_error(m, b)
    return m.log(a / total * b) / 2 + (errors - log(tau) / 2)


def _beta_uniform_tail(m: Arithmetic, a: Number, b: Number, x: Number, exponent: Number) -> Number:
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


def _beta_fraction(m: Arithmetic, a: Number, b: Number, x: Number, wanted: Number) -> Number:
    """`a I B(a, b) / (x^a (1 - x)^b)`, by Lentz's method as Thompson and Barnett have it."""
    a, b, x = (m.where(wanted, v, c) for v, c in ((a, 1.0), (b, 1.0), (x, 0.0)))

    def goes_on(state: State) -> Number:
        _, _, _, factor, n = state
        return (m.absolute(factor - 1) > 2 * m.epsilon) & (n < MOST_BETA_STEPS)

    def advanced(c: Number, d: Number, term: Number) -> tuple[Number, Number]:
        return _away_from_zero(m, 1 + term / c), 1 / _away_from_zero(m, 1 + term * d)

    def step(state: State) -> State:
        c, d, total, last_factor, n = state
        last = a + 2 * n
        c, d = advanced(c, d, n * (b - n) / (last - 1) * (x / last))
        even = c * d
        c, d = advanced(c, d, -(a + n) / (last + 1) * ((a + b + n) / last) * x)
        goes = goes_on(state)  # converged elements stay: factors are 1 except for rounding
        factor = m.where(goes, c * d, last_factor)
        return c, d, m.where(goes, total * even * factor, total), factor, n + 1

    first = 1 / _away_from_zero(m, 1 - (a + b) * (x / (a + 1)))
    one, none = m.where(wanted, 1.0, 1.0), m.where(wanted, 0.0, 0.0)
    return m.repeat(goes_on, step, (one, first, first, none, one))[2]


def _away_from_zero(m: Arithmetic, x: Number) -> Number:
    return m.where(m.absolute(x) < 1e-30, 1e-30, x)


def _beta_series(m: Arithmetic, a: Number, b: Number, x: Number, wanted: Number) -> Number:
    """(a I B(a, b) / x^a - 1) / a: the sum of (1 - b) ... (n - b) / n! x^n / (a + n) from n = 1."""

    def goes_on(state: State) -> Number:
        power, total, n = state
        return (m.absolute(power) > m.absolute(total) * (m.epsilon / 4)) & (n < MOST_BETA_STEPS)

    def step(state: State) -> State:
        power, total, n = state
        power = power * ((n - b) / n * x)
        return power, total + power / (a + n), n + 1

    one, none = m.where(wanted, 1.0, 1.0), m.where(wanted, 0.0, 0.0)
    return m.repeat(goes_on, step, (m.where(wanted, 1.0, 0.0), none, one))[1]


# Modified Bessel functions of the first kind, of order 0 and 1.
#
# The power series has only positive terms; far out there is Hankel's series (Abramowitz, Stegun,
# 9.6.10, 9.7.1), which is as accurate as its smallest term, about exp(-2x).


def _power_series(order: int, terms: int) -> Sequence[float]:
    """The coefficients of (x / 2)^(2 k)."""
    return [1 / (factorial(k) * factorial(k + order)) for k in range(terms)]


def _hankel_series(order: int, terms: int) -> Sequence[float]:
    """The coefficients of x^-k."""
    found = [1.0]
    for k in range(1, terms):
        found.append(-found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return found


_SEAM = {32: 9.0, 64: 20.0}
_POWERS = {
    (bits, order): _power_series(order, terms)
    for bits, terms in ((32, 22), (64, 46))
    for order in (0, 1)
}
_HANKEL = {
    (bits, order): _hankel_series(order, terms)
    for bits, terms in ((32, 14), (64, 26))
    for order in (0, 1)
}


def _near(m: Arithmetic, order: int, size: Number) -> Number:
    """The function up to the seam, over x in order 1; others are cut."""
    half = m.where(size < _SEAM[m.bits], size, _SEAM[m.bits]) / 2
    series = polynomial(half * half, _POWERS[m.bits, order])
    return series / 2 if order else series


def _far(m: Arithmetic, order: int, size: Number) -> Number:
    """exp(-x) times the function from the seam on; others are raised."""
    x = m.where(size < _SEAM[m.bits], _SEAM[m.bits], size)
    return polynomial(1 / x, _HANKEL[m.bits, order]) / (root(tau) * m.sqrt(x))


def _scaled(m: Arithmetic, order: int, x: Number) -> Number:
    size = m.absolute(x)
    near = m.exp(-size) * _near(m, order, size)
    if order:
        near, far = x * near, m.copysign(_far(m, order, size), x)
    else:
        far = _far(m, order, size)
    return m.where(size < _SEAM[m.bits], near, far)


def _unscaled(m: Arithmetic, order: int, x: Number) -> Number:
    size = m.absolute(x)
    growth = m.exp(size / 2)  # its square would overflow earlier than the function
    near, far = _near(m, order, size), growth * (growth * _far(m, order, size))
    far = m.where(size == inf, inf, far)
    if order:
        near, far = x * near, m.copysign(far, x)
    return m.where(size < _SEAM[m.bits], near, far)


@Formula
def i0(m: Arithmetic, x: Number) -> Number:
    """The function of order 0."""
    return _unscaled(m, 0, x)


@Formula
def i0e(m: Arithmetic, x: Number) -> Number:
    """exp(-|x|) times that of order 0."""
    return _scaled(m, 0, x)


@Formula
def i1(m: Arithmetic, x: Number) -> Number:
    """The function of order 1."""
    return _unscaled(m, 1, x)


@Formula
def i1e(m: Arithmetic, x: Number) -> Number:
    """exp(-|x|) times that of order 1."""
    return _scaled(m, 1, x)
