"""Modified Bessel functions of the first kind, of order 0 and 1.

The power series has only positive terms; far out there is Hankel's series (Abramowitz, Stegun,
9.6.10, 9.7.1), which is as accurate as its smallest term, about exp(-2x).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, inf, tau
from math import sqrt as root

from pscdsl._src.primitives.formulas.arithmetic import Arithmetic, Formula, Number, polynomial


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
