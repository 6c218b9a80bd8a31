"""The gamma function, its logarithm, and the derivative of that.

Numbers are brought near 1 by the recurrence, or are large enough for Stirling's series; negative
ones are reflected (Abramowitz, Stegun, 6.1.17, 6.1.40, 6.3.7, 6.3.18).  The rational functions were
fitted to values of 50 digits, with relative errors below 1e-16.
"""

from __future__ import annotations

from math import inf, log, nan, pi, tau
from math import sqrt as root

from pscdsl._src.primitives.formulas.arithmetic import (
    Arithmetic,
    Formula,
    Number,
    polynomial,
    ratio,
)

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
"""The root of the digamma function less 1: the nearest number, and what is left."""
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
    """What log gamma(x) is above (x - 1/2) log x - x + log(2 pi) / 2, for large x."""
    inverse = 1 / x
    return inverse * polynomial(inverse * inverse, _STIRLING)


def stirling_error(m: Arithmetic, x: Number) -> Number:
    """The same for all positive x."""
    near = m.where(x < LARGE, x, 1.0)
    main = (near - 0.5) * m.log(near) - near + log(tau) / 2
    return m.where(x < LARGE, log_gamma(m, near) - main, stirling(m, x))


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
