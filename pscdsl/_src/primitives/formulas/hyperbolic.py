"""The hyperbolic sine and cosine, where the exponential itself overflows, too.

XLA adds log(1/2) to the argument for that, which is then rounded: an error of as many units in the
last place as the argument is large.  One less than the argument has no error.
"""

from __future__ import annotations

from math import e
from typing import Final

from pscdsl._src.primitives.formulas.arithmetic import Arithmetic, Formula, Number

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
