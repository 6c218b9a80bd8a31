"""Python numbers that are made of sizes, and their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

from pscdsl._src.frontend.values import NumericValue
from pscdsl._src.ir.builder import Builder, Weak
from pscdsl.numpy import methods as table
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Dim, Size

# Python's numbers that are made of sizes, such as `math.sqrt(n)`, and their bounds.
#
# Python raises where NumPy gives NaN or an infinity: for the root of a negative number, a division
# by zero, a power that is too large. The operands of an operator or a function of `math` must be
# known to be inside its domain. Bounds are computed in Python's own arithmetic, whose rounding is
# monotonic.


LARGEST_SIZE = 2.0**63
"""Counts, and numbers made of counts, fit in 64 bits."""
_SEARCHED = 1 << 20
"""Tighter bounds of sizes than the largest are looked for up to here."""


class Bounds(NamedTuple):
    """The least and the largest that a number may be."""

    low: float
    high: float


ANY = Bounds(-math.inf, math.inf)
Find: TypeAlias = Callable[[bool], Bounds]
"""Finds bounds: by few proofs, or the tightest that can be proven."""


class Number(Weak):
    """A number of Python's that is made of sizes."""

    made_of_sizes = True
    __slots__ = ("bounds", "quotient")

    def __init__(self, weak: Weak, bounds: Find, quotient: tuple[Size, int] | None = None) -> None:
        super().__init__(weak.builder, weak.kind, weak.shape, weak.at)
        self.bounds = kept(bounds)
        """Finds its bounds."""
        self.quotient = quotient
        """The size and the integer of which it is the quotient, which is a size if rounded."""

    def as_array(self) -> Weak:
        """Return the array that NumPy makes of the number."""
        return Weak(self.builder, self.kind, self.shape, self.at)

    def description(self) -> str:
        """Return its name for messages."""
        return "a number made of sizes"

    def rounded(self, name: str) -> Size | None:
        """Return its `floor`, `ceil` or `trunc` as a size; None if it is not known as one."""
        if self.quotient is None:
            return None
        numerator, denominator = self.quotient
        if name == "ceil":
            return -((-numerator) // denominator)
        if name == "trunc" and not self.builder.facts.proves(Fact("<=", 0, numerator)):
            return None
        return numerator // denominator


def kept(find: Find) -> Find:
    """Cache the results of `find`; the bounds are unknown if it recurses too deeply."""

    @cache
    def once(tight: bool) -> Bounds:
        try:
            return find(tight)
        except RecursionError:
            return ANY

    return once


def bounds_of(facts: Assumptions, x: NumericValue) -> Find | None:
    """Return a function that finds the bounds of a real Python number; None for anything else."""
    if isinstance(x, Number):
        return x.bounds
    if isinstance(x, Dim):
        return lambda tight: (_tightly if tight else _quickly)(facts, x)
    if not isinstance(x, int | float):
        return None
    known = _known(x)
    return lambda tight: known


def _known(x: float) -> Bounds:
    try:
        value = float(x)
    except OverflowError:
        return ANY
    return ANY if math.isnan(value) else Bounds(value, value)


def _quickly(facts: Assumptions, size: Dim) -> Bounds:
    """Return the bounds of a size that its sign gives."""
    for bound in (1, 0):
        if facts.proves(Fact("<=", bound, size)):
            return Bounds(bound, LARGEST_SIZE)
    for bound in (-1, 0):
        if facts.proves(Fact("<=", size, bound)):
            return Bounds(-LARGEST_SIZE, bound)
    return Bounds(-LARGEST_SIZE, LARGEST_SIZE)


def _tightly(facts: Assumptions, size: Dim) -> Bounds:
    low = _least(lambda bound: facts.proves(Fact("<=", -bound, size)))
    high = _least(lambda bound: facts.proves(Fact("<=", size, bound)))
    return Bounds(
        -LARGEST_SIZE if low is None else float(-low), LARGEST_SIZE if high is None else float(high)
    )


def _least(holds: Callable[[int], bool]) -> int | None:
    """Return the least bound that is known to hold."""
    if not holds(_SEARCHED):
        return None
    low, high = -_SEARCHED, _SEARCHED
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def found(name: str, left: Find, right: Find, whole: bool) -> Find | str:
    """Return a function for the bounds of `left name right`, or why Python may raise."""

    def find(tight: bool) -> Bounds | str:
        return combined(name, left(tight), right(tight), whole)

    def known(tight: bool) -> Bounds:
        bounds = find(tight)
        if isinstance(bounds, str):
            bounds = find(True)
        assert not isinstance(bounds, str)
        return bounds

    if name in _RAISING and isinstance(find(False), str):
        problem = find(True)
        if isinstance(problem, str):
            return problem
    return known


_RAISING = frozenset(("Div", "FloorDiv", "Mod", "Pow"))


def combined(name: str, left: Bounds, right: Bounds, whole: bool) -> Bounds | str:
    """Return the bounds of `left name right`, or why Python may raise; `whole` is for integers."""
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
    """Return the bounds of a function that is monotonic in each argument."""
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


def negate(x: Find) -> Find:
    """Return a function that finds the bounds of the negative of a number."""

    def find(tight: bool) -> Bounds:
        low, high = x(tight)
        return Bounds(-high, -low)

    return find


def invert(x: Find) -> Find:
    """Return a function that finds the bounds of `~x` of an integer, which is `-x - 1`."""

    def find(tight: bool) -> Bounds:
        low, high = x(tight)
        return Bounds(-high - 1, -low - 1)

    return find


def absolute(x: Find) -> Find:
    """Return a function that finds the bounds of a number's absolute value."""

    def find(tight: bool) -> Bounds:
        low, high = x(tight)
        least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        return Bounds(least, max(abs(low), abs(high)))

    return find


DOMAINS: dict[str, Bounds] = {
    "sqrt": Bounds(0.0, math.inf),
    **dict.fromkeys(("log", "log2", "log10"), Bounds(math.ulp(0.0), math.inf)),
    "log1p": Bounds(math.nextafter(-1.0, 0.0), math.inf),
    "exp": Bounds(-math.inf, 709.0),
    "exp2": Bounds(-math.inf, 1023.0),
    **dict.fromkeys(("cos", "sin"), Bounds(-1.7e308, 1.7e308)),
    **dict.fromkeys(("tanh", "cbrt"), ANY),
}
"""The domains of functions of `math` with one argument that NumPy has, too."""


def is_inside(x: Bounds, domain: Bounds) -> bool:
    """Return whether bounds lie within others."""
    return domain.low <= x.low and x.high <= domain.high


def applied(name: str, real: Callable[[float], float], x: Find) -> Find | None:
    """Return a function for the bounds of a `math` function; None if it may be undefined."""
    domain = DOMAINS[name]
    if not is_inside(x(False), domain) and not is_inside(x(True), domain):
        return None

    def find(tight: bool) -> Bounds:
        if name in ("cos", "sin"):
            return Bounds(-1.0, 1.0)
        given = x(tight) if is_inside(x(tight), domain) else x(True)
        return Bounds(real(given.low), real(given.high))

    return find


def is_whole(x: NumericValue) -> bool:
    """Return whether a number is known to be an integer."""
    return isinstance(x, int | Dim) or (isinstance(x, float) and x.is_integer())


# `n / 2` of a size: a number that gives a size again when it is rounded.


LARGEST = 2**20
"""Python divides in f64: below this limit, rounding its result is rounding the exact quotient."""


def quotient(here: Builder, numerator: Dim, denominator: int) -> Number:
    """Return a size divided by a positive integer."""
    weak: Weak = table.BINARY["Div"].apply(here, (here.weak(numerator), denominator), {})
    size = bounds_of(here.facts, numerator)
    assert size is not None

    def bounds(tight: bool) -> Bounds:
        low, high = size(tight)
        return Bounds(low / denominator, high / denominator)

    return Number(weak, bounds, (numerator, denominator) if denominator <= LARGEST else None)
