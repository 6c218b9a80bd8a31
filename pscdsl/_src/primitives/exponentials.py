"""Formulas of exponentials and logarithms, of the error function and the normal distribution."""

from __future__ import annotations

import math
from math import e, inf, pi
from math import sqrt as root
from typing import Any, Final

import numpy as np

from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.primitives.formulas import Arithmetic, Formula, Number, polynomial, ratio

# Exponentials, logarithms and related functions: hyperbolic and logistic ones.


# The exponential in single precision, in parts for formulas.


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
    """Return the nearest integer multiple of log(2), as the integer, and the rest of a number."""
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


LOW: Final = -0.5
HIGH: Final = 0.5
"""Between these, log(1 + x) is a series in (x / (2 + x))^2."""
_SERIES: Final = {
    bits: [1 / (2 * k + 3) for k in range(terms)] for bits, terms in ((32, 8), (64, 18))
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
    """Return log(1 + x) without cancellation: 1 + x is rounded, and its error added."""
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


# The error function's complement and inverse, and the equivalent normal distribution.
#
# exp(-x^2) is computed from an exact square of the leading bits of x, as its rounding would be
# magnified. In f64 the rest is an expm1, as XLA replaces a product of exponentials by that of the
# sum.


# W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of
# Computation 23 (1969): numerators and denominators, lowest power first, for |x| below 0.46875,
# up to 4, and beyond.
_NEAR = (
    (
        3209.3775891384694,
        377.485237685302,
        113.86415415105016,
        3.1611237438705655,
        0.18577770618460315,
    ),
    (
        2844.236833439171,
        1282.6165260773723,
        244.02463793444417,
        23.601290952344122,
        1.0,
    ),
)
_MIDDLE = (
    (
        1230.3393547979972,
        2051.0783778260716,
        1712.0476126340707,
        881.952221241769,
        298.6351381974001,
        66.11919063714163,
        8.883149794388377,
        0.5641884969886701,
        2.1531153547440383e-08,
    ),
    (
        1230.3393548037495,
        3439.3676741437216,
        4362.619090143247,
        3290.7992357334597,
        1621.3895745666903,
        537.1811018620099,
        117.6939508913125,
        15.744926110709835,
        1.0,
    ),
)
_FAR = (
    (
        0.0006587491615298378,
        0.016083785148742275,
        0.12578172611122926,
        0.36034489994980445,
        0.30532663496123236,
        0.016315387137302097,
    ),
    (
        0.0023352049762686918,
        0.06051834131244132,
        0.5279051029514285,
        1.8729528499234673,
        2.568520192289822,
        1.0,
    ),
)
# M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied
# Statistics 37 (1988), PPND16: numerators and denominators, lowest power first, for the middle,
# the tails, and what lies beyond.
_CENTRE = (
    (
        3.3871328727963665,
        133.14166789178438,
        1971.5909503065513,
        13731.69376550946,
        45921.95393154987,
        67265.7709270087,
        33430.57558358813,
        2509.0809287301227,
    ),
    (
        1.0,
        42.31333070160091,
        687.1870074920579,
        5394.196021424751,
        21213.794301586597,
        39307.89580009271,
        28729.085735721943,
        5226.495278852854,
    ),
)
_TAIL = (
    (
        1.4234371107496835,
        4.630337846156546,
        5.769497221460691,
        3.6478483247632045,
        1.2704582524523684,
        0.2417807251774506,
        0.022723844989269184,
        0.0007745450142783414,
    ),
    (
        1.0,
        2.053191626637759,
        1.6763848301838038,
        0.6897673349851,
        0.14810397642748008,
        0.015198666563616457,
        0.0005475938084995345,
        1.0507500716444169e-09,
    ),
)
_BEYOND = (
    (
        6.657904643501103,
        5.463784911164114,
        1.7848265399172913,
        0.29656057182850487,
        0.026532189526576124,
        0.0012426609473880784,
        2.7115555687434876e-05,
        2.0103343992922881e-07,
    ),
    (
        1.0,
        0.599832206555888,
        0.1369298809227358,
        0.014875361290850615,
        0.0007868691311456133,
        1.8463183175100548e-05,
        1.421511758316446e-07,
        2.0442631033899397e-15,
    ),
)
_SEAM = 0.46875
# Single precision: fitted by least squares with weights that make the greatest error least, lowest
# power first.  exp(z^2 / 2) P(Z > z) of a normal variable Z, a quotient for z from 0 to 14.45, off
# by 6e-9; and, by interpolation at Chebyshev's points, P(0 < Z < z) / z as a polynomial of z^2.
_SINGLE_TAIL = (
    (
        0.5000000029346936,
        0.43819450179121955,
        0.18316065752016017,
        0.04060809931417626,
        0.00411257340436148,
    ),
    (
        1.0,
        1.67427398225615,
        1.202193912727752,
        0.46927398811773,
        0.10179589134722075,
        0.010308572185778981,
    ),
)
_SINGLE_NEAR = (
    0.3989422801308219,
    -0.06649036056681748,
    0.00997332847921077,
    -0.0011863439841685445,
    0.00011350229159472532,
    -7.660536510527233e-06,
)
_HEAD: Final = -1 << 12
"""The leading bits of an f32: half of them, so that their square is exact."""


def erf_of_array(x: NDArray) -> Any:
    """The error function of NumPy's array."""
    found = np.array([math.erf(each) for each in x.astype(np.float64).ravel().tolist()])
    return found.reshape(x.shape).astype(x.dtype)


def gaussian(m: Arithmetic, x: Number, sign: int, scale: float = 1.0) -> Number:
    """exp(-scale x^2), or its inverse; the scale is a power of two."""
    size = m.absolute(x)
    head = m.floor(m.where(size < 64, size, 64.0) * 64) / 64
    rest = m.expm1((size - head) * (size + head) * (sign * scale))
    return m.exp(head * head * (sign * scale)) * (rest + 1)


def _small(m: Arithmetic, x: Number) -> Number:
    """The error function below the seam; others are cut."""
    z = m.clip(x, -_SEAM, _SEAM)
    return z * ratio(z * z, *_NEAR)


def _scaled(m: Arithmetic, z: Number) -> Number:
    """exp(z^2) erfc(z) from the seam on; others are raised."""
    z = m.where(z < _SEAM, _SEAM, z)
    beyond = m.where(z < 4, 4.0, z)
    square = 1 / (beyond * beyond)
    far = (1 / root(pi) - square * ratio(square, *_FAR)) / beyond
    return m.where(z < 4, ratio(m.where(z < 4, z, 4.0), *_MIDDLE), far)


def scaled_complement(m: Arithmetic, z: Number) -> Number:
    """exp(z^2) erfc(z) of numbers from 0 on."""
    near = gaussian(m, m.clip(z, 0, _SEAM), 1) * (1 - _small(m, z))
    return m.where(z < _SEAM, near, _scaled(m, z))


def _single_tail(m: Arithmetic, size: Number, scale: float, times: float) -> Number:
    """Return `times` the probability that a normal variable is beyond `size * sqrt(2 * scale)`.

    This is for f32. exp(-scale * size^2) is a power of two times a polynomial of the remaining
    exponent, which is computed from an exact square of the leading bits. A factor keeps the power
    normal; the quotient cancels it, so that small results are rounded once.
    """
    unit = root(2 * scale)
    size = m.where(size > 14.4 / unit, 14.4 / unit, size)
    head = m.masked(size, _HEAD)
    power, part = reduced(m, head * head * -scale)
    part = part - (size - head) * (size + head) * scale
    above, below = _SINGLE_TAIL
    tail = ratio(
        size,
        [c * unit**k * times * 2.0**-24 for k, c in enumerate(above)],
        [c * unit**k for k, c in enumerate(below)],
    )
    return polynomial(part, EXP) * m.two_to(power + 24) * tail


@Formula
def erfc(m: Arithmetic, x: Number) -> Number:
    """The complement of the error function, 1 - erf(x)."""
    if m.bits == 32:
        size, z = m.absolute(x), x * root(2)
        tail = _single_tail(m, size, 1.0, 2.0)
        near = 1 - z * (2 * polynomial(z * z, _SINGLE_NEAR))
        return m.where(size < root(0.5), near, m.where(x < 0, 2 - tail, tail))
    size = m.absolute(x)
    tail = gaussian(m, size, -1) * _scaled(m, size)
    far = m.where(x < 0, 2 - tail, tail)
    return m.where(size < _SEAM, 1 - _small(m, x), far)


@Formula
def erfcx(m: Arithmetic, x: Number) -> Number:
    """exp(x^2) erfc(x), which falls like 1 / x."""
    size = m.absolute(x)
    positive = _scaled(m, size)
    near = gaussian(m, m.clip(x, -_SEAM, _SEAM), 1) * (1 - _small(m, x))
    far = m.where(x < 0, 2 * gaussian(m, size, 1) - positive, positive)
    return m.where(size < _SEAM, near, far)


@Formula
def ndtr(m: Arithmetic, x: Number) -> Number:
    """The probability that a standard normal variable is below x."""
    if m.bits == 32:
        size = m.absolute(x)
        tail = _single_tail(m, size, 0.5, 1.0)
        near = 0.5 + x * polynomial(x * x, _SINGLE_NEAR)
        return m.where(size < 1, near, m.where(x < 0, tail, 1 - tail))
    size = m.absolute(x) * root(0.5)
    tail = gaussian(m, x, -1, 0.5) * _scaled(m, size) / 2
    far = m.where(x < 0, tail, 1 - tail)
    return m.where(size < _SEAM, 0.5 + _small(m, x * root(0.5)) / 2, far)


@Formula
def log_ndtr(m: Arithmetic, x: Number) -> Number:
    """The logarithm of `ndtr`."""
    size = m.absolute(x) * root(0.5)
    scaled = scaled_complement(m, size) / 2
    left = m.log(scaled) - x * (x / 2)
    return m.where(x < -1, left, m.log1p(-ndtr(m, -x)))


def _quantile(m: Arithmetic, middle: Number, logarithm: Number) -> Number:
    """The number below which a normal variable is with a probability.

    It is given by how much it is above 1/2, and by the logarithm of its distance from the nearer of
    0 and 1.
    """
    near = middle * ratio(0.180625 - middle * middle, *_CENTRE)
    distance = m.sqrt(-logarithm)
    beyond = m.where(distance < 5, 5.0, distance)
    far = m.where(distance < 5, ratio(distance - 1.6, *_TAIL), ratio(beyond - 5, *_BEYOND))
    far = m.where(logarithm == -inf, inf, far)
    return m.where(m.absolute(middle) <= 0.425, near, m.copysign(far, middle))


@Formula
def erfinv(m: Arithmetic, x: Number) -> Number:
    """Return the number whose error function is x; infinite at -1 and 1, NaN beyond."""
    return _quantile(m, x / 2, m.log((1 - m.absolute(x)) / 2)) * root(0.5)


@Formula
def erfcinv(m: Arithmetic, x: Number) -> Number:
    """Return the number whose `erfc` is x; infinite at 0 and 2, NaN beyond."""
    logarithm = m.log(m.where(x < 1, x, 2 - x)) - math.log(2)
    return _quantile(m, (1 - x) / 2, logarithm) * root(0.5)


@Formula
def ndtri(m: Arithmetic, p: Number) -> Number:
    """Return the number whose `ndtr` is p; infinite at 0 and 1, NaN beyond."""
    return _quantile(m, p - 0.5, m.log(m.where(p < 0.5, p, 1 - p)))
