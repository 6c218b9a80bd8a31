"""Special functions that NumPy lacks: the error function and what follows from it."""

from __future__ import annotations

import math

import numpy as np

import pscdsl as psc
from pscdsl import Float
from pscdsl.stdlib.precision import widened

# W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of
# Computation 23 (1969): numerators and denominators, highest power first, for |x| below 0.46875,
# up to 4, and beyond.
_NEAR = (
    (
        1.85777706184603153e-1,
        3.16112374387056560e0,
        1.13864154151050156e2,
        3.77485237685302021e2,
        3.20937758913846947e3,
    ),
    (
        1.0,
        2.36012909523441209e1,
        2.44024637934444173e2,
        1.28261652607737228e3,
        2.84423683343917062e3,
    ),
)
_MIDDLE = (
    (
        2.15311535474403846e-8,
        5.64188496988670089e-1,
        8.88314979438837594e0,
        6.61191906371416295e1,
        2.98635138197400131e2,
        8.81952221241769090e2,
        1.71204761263407058e3,
        2.05107837782607147e3,
        1.23033935479799725e3,
    ),
    (
        1.0,
        1.57449261107098347e1,
        1.17693950891312499e2,
        5.37181101862009858e2,
        1.62138957456669019e3,
        3.29079923573345963e3,
        4.36261909014324716e3,
        3.43936767414372164e3,
        1.23033935480374942e3,
    ),
)
_FAR = (
    (
        1.63153871373020978e-2,
        3.05326634961232344e-1,
        3.60344899949804439e-1,
        1.25781726111229246e-1,
        1.60837851487422766e-2,
        6.58749161529837803e-4,
    ),
    (
        1.0,
        2.56852019228982242e0,
        1.87295284992346725e0,
        5.27905102951428412e-1,
        6.05183413124413191e-2,
        2.33520497626869185e-3,
    ),
)
_SEAM = 0.46875
_LARGEST = 27.0
"""Beyond this erfc is 0 in every dtype."""


@psc.kernel
def erf(x: Float["*s"]) -> Float["*s"]:
    """The error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    Accurate to a few units in the last place, by the rational approximations of Cody (1969).
    """
    z = widened(x)
    far = np.copysign(1 - _complement(np.abs(z)), z)
    return np.where(np.abs(z) < _SEAM, _small(z), far).astype(x.dtype)


@psc.kernel
def erfc(x: Float["*s"]) -> Float["*s"]:
    """`1 - erf(x)` without cancellation: small results keep their relative accuracy."""
    z = widened(x)
    tail = _complement(np.abs(z))
    far = np.where(z < 0, 2 - tail, tail)
    return np.where(np.abs(z) < _SEAM, 1 - _small(z), far).astype(x.dtype)


@psc.kernel
def normal_cdf(x: Float["*s"]) -> Float["*s"]:
    """The probability that a standard normal variable is at most `x`."""
    return erfc(x * -math.sqrt(0.5)) / 2


def _small(x: Float["*s"]) -> Float["*s"]:
    """The error function of numbers below the seam in absolute value; others are cut."""
    z = np.clip(x, -_SEAM, _SEAM)
    return z * _ratio(_NEAR, z * z)


def _complement(x: Float["*s"]) -> Float["*s"]:
    """The complement of numbers from the seam on; others are raised."""
    z = np.clip(x, _SEAM, _LARGEST)
    middle = _ratio(_MIDDLE, np.minimum(z, 4))
    beyond = np.maximum(z, 4)
    square = 1 / (beyond * beyond)
    far = (1 / math.sqrt(math.pi) - square * _ratio(_FAR, square)) / beyond
    # exp(-z^2) with an exact square of the leading bits, so that its rounding is not magnified.
    head = np.floor(z * 16) / 16
    decay = np.exp(-head * head) * np.exp(-(z - head) * (z + head))
    return decay * np.where(z <= 4, middle, far)


def _ratio(
    coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Float["*s"]
) -> Float["*s"]:
    """The quotient of two polynomials."""
    above, below = coefficients
    return _polynomial(above, x) / _polynomial(below, x)


def _polynomial(coefficients: tuple[float, ...], x: Float["*s"]) -> Float["*s"]:
    """Horner's rule, the highest power first."""
    total = coefficients[0] * x + coefficients[1]
    for each in coefficients[2:]:
        total = total * x + each
    return total
