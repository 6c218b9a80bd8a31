"""Python's numbers that are made of sizes, such as `math.sqrt(n)`, and between what they lie.

Python raises where NumPy gives NaN or an infinity: for the root of a negative number, a division
by zero, a power that is too large.  What an operator or a function of `math` is given has to be
known to lie where it is defined.  Bounds are computed in Python's own arithmetic, whose rounding
keeps the order of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from pscdsl.builder import Weak
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Dim

LARGEST_SIZE = 2.0**63
"""What is counted, and what is made of counts, fits 64 bits."""
_SEARCHED = 1 << 20
"""Tighter bounds of sizes than the largest are looked for up to here."""


class Bounds(NamedTuple):
    """The least and the largest that a number may be."""

    low: float
    high: float


ANY = Bounds(-math.inf, math.inf)


class Number(Weak):
    """A number of Python's that is made of sizes."""

    __slots__ = ("bounds",)

    bounds: Bounds

    @classmethod
    def of(cls, weak: Weak, bounds: Bounds) -> Number:
        """A weak number, and between what it lies."""
        made = cls(weak.builder, weak.kind, weak.shape, weak.at)
        made.bounds = bounds
        return made


def bounds_of(facts: Assumptions, x: object) -> Bounds | None:
    """Between what a real number of Python's lies; None if this is no such number."""
    if isinstance(x, Number):
        return x.bounds
    if isinstance(x, Dim):
        return _of_size(facts, x)
    if not isinstance(x, int | float):
        return None
    try:
        value = float(x)
    except OverflowError:
        return ANY
    return ANY if math.isnan(value) else Bounds(value, value)


def _of_size(facts: Assumptions, size: Dim) -> Bounds:
    low = _least(lambda bound: facts.proves(Fact("<=", -bound, size)))
    high = _least(lambda bound: facts.proves(Fact("<=", size, bound)))
    return Bounds(
        -LARGEST_SIZE if low is None else float(-low), LARGEST_SIZE if high is None else float(high)
    )


def _least(holds: Callable[[int], bool]) -> int | None:
    """The least bound that is known to hold."""
    if not holds(_SEARCHED):
        return None
    low, high = -_SEARCHED, _SEARCHED
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def combined(name: str, left: Bounds, right: Bounds, whole: bool) -> Bounds | str:
    """The bounds of `left name right`, where `right` may be whole, or why Python may raise."""
    match name:
        case "Add":
            return _ordered(left.low + right.low, left.high + right.high)
        case "Sub":
            return _ordered(left.low - right.high, left.high - right.low)
        case "Mult":
            return _corners(lambda a, b: a * b, left, right)
        case "Div" | "FloorDiv" | "Mod" if right.low <= 0 <= right.high:
            return "the divisor may be zero"
        case "Div":
            return _corners(lambda a, b: a / b, left, right)
        case "Pow":
            return _power(left, right, whole)
        case _:
            return ANY


def _ordered(low: float, high: float) -> Bounds:
    return ANY if math.isnan(low) or math.isnan(high) else Bounds(low, high)


def _corners(function: Callable[[float, float], float], left: Bounds, right: Bounds) -> Bounds:
    """The bounds of a function that is monotonic in each argument."""
    found = [function(a, b) for a in left for b in right]
    return ANY if any(map(math.isnan, found)) else Bounds(min(found), max(found))


def _power(base: Bounds, exponent: Bounds, whole: bool) -> Bounds | str:
    if base.low < 0 and not whole:
        return "the base may be negative, which makes a complex number of it"
    if base.low <= 0 <= base.high and exponent.low < 0:
        return "the base may be zero, and the exponent negative"
    negative = base.low < 0
    sizes = sorted(map(abs, base))
    least = 0.0 if base.low <= 0 <= base.high else sizes[0]
    try:
        found = _corners(pow, Bounds(least, sizes[1]), exponent)
    except OverflowError:
        return "the power may be larger than every float"
    return Bounds(-found.high, found.high) if negative else found


def negate(x: Bounds) -> Bounds:
    """The bounds of the negative of a number."""
    return Bounds(-x.high, -x.low)


DOMAINS: dict[str, Bounds] = {
    "sqrt": Bounds(0.0, math.inf),
    **dict.fromkeys(("log", "log2", "log10"), Bounds(math.ulp(0.0), math.inf)),
    "log1p": Bounds(math.nextafter(-1.0, 0.0), math.inf),
    "exp": Bounds(-math.inf, 709.0),
    "exp2": Bounds(-math.inf, 1023.0),
    **dict.fromkeys(("cos", "sin"), Bounds(-1.7e308, 1.7e308)),
    **dict.fromkeys(("tanh", "cbrt"), ANY),
}
"""Where functions of `math` give a number, those of one number that NumPy has, too."""


def applied(name: str, real: Callable[[float], float], x: Bounds) -> Bounds:
    """The bounds of a function of `math`, in whose domain a number is known to lie."""
    if name in ("cos", "sin"):
        return Bounds(-1.0, 1.0)
    return Bounds(real(x.low), real(x.high))


def is_whole(x: Any) -> bool:
    """Whether a number is known to be an integer."""
    return isinstance(x, int | Dim) or (isinstance(x, float) and x.is_integer())
