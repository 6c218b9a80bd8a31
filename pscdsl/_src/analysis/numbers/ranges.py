"""Ranges of integers with symbolic bounds, and their order under what is known of the sizes.

Bounds are sizes, within the range of the dtype.  Arithmetic on them is exact, so a result that
may not fit its dtype, and would wrap around, is one of which nothing is known.  Of sizes it is
taken for granted that what an `i32` or `i64` program counts with them fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TypeAlias

from pscdsl._src.ir.program import Atom, Equation, Literal, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl.typing import dims
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import DimTooLarge, Size
from pscdsl.typing.dtypes import ALL, BOOL, DType

_HEAVIEST = 16
"""Bounds with more factors than this are dropped: proofs about them would take long."""
_NOTHING: frozenset[object] = frozenset()


@dataclass(frozen=True, slots=True)
class Range:
    """The integers that the elements of a variable can be, all steps of loops taken together.

    A bound is *reached* if some element in some step is known to have that value.  `along` says
    what the elements vary with: axes of the variable, loops, parameters.
    """

    low: Size
    high: Size
    low_reached: bool = False
    high_reached: bool = False
    along: frozenset[object] = _NOTHING

    @property
    def is_single(self) -> bool:
        """Whether all elements are one number."""
        return self.low == self.high

    def unreached(self) -> Range:
        """The same bounds, as what may never be reached; a single number is."""
        if self.is_single or not (self.low_reached or self.high_reached):
            return self
        return replace(self, low_reached=False, high_reached=False)

    def varying(self, along: frozenset[object]) -> Range:
        """The same bounds, varying with other things."""
        return self if along == self.along else replace(self, along=along)


def single(value: Size) -> Range:
    """The range of one number."""
    return Range(value, value, True, True)


def limits(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type, or of a truth value."""
    return _LIMITS[dtype]


_LIMITS = {each: each.range for each in ALL if each.is_integer} | {BOOL: (0, 1)}


@cache
def unknown(dtype: DType) -> Range:
    """Nothing but the dtype is known."""
    return Range(*limits(dtype))


def free(dtype: DType, source: object) -> Range:
    """Any value of the dtype can occur: a parameter."""
    return Range(*limits(dtype), True, True, frozenset((source,)))


class Order:
    """Comparisons of bounds that hold for all admitted sizes."""

    def __init__(self, facts: Assumptions) -> None:
        self.facts = facts

    def at_most(self, a: Size, b: Size) -> bool:
        """Whether a bound is provably not above another."""
        if isinstance(a, int) and isinstance(b, int):
            return a <= b
        if a == b:
            return True
        return _proven(self.facts, a, b)

    def join(self, ranges: Sequence[Range], dtype: DType) -> Range:
        """The smallest range around some."""
        first = ranges[0]
        if all(interval == first for interval in ranges):
            return first
        low, high = first.low, first.high
        low_reached, high_reached = first.low_reached, first.high_reached
        along = first.along
        for interval in ranges[1:]:
            bound = self.smaller(low, interval.low, dtype)
            low_reached = (low_reached and bound == low) or (
                interval.low_reached and bound == interval.low
            )
            low = bound
            bound = self.larger(high, interval.high, dtype)
            high_reached = (high_reached and bound == high) or (
                interval.high_reached and bound == interval.high
            )
            high = bound
            along |= interval.along
        return Range(low, high, low_reached, high_reached, along)

    def meet(self, a: Range, b: Range, dtype: DType) -> Range:
        """What is in both; nothing is known to be reached."""
        low = self.closer(a.low, b.low, dtype, largest=True)
        high = self.closer(a.high, b.high, dtype, largest=False)
        return Range(low, high, along=a.along)

    def fitted(
        self,
        dtype: DType,
        low: Size,
        high: Size,
        low_reached: bool = False,
        high_reached: bool = False,
        along: frozenset[object] = _NOTHING,
    ) -> Range:
        """A range as computed, or the whole dtype if it may not fit."""
        least, most = limits(dtype)
        if isinstance(low, int) and isinstance(high, int):
            if least <= low and high <= most:
                return Range(low, high, low_reached, high_reached, along)
            return unknown(dtype)
        if not self._fits(low, dtype) or not self._fits(high, dtype):
            return unknown(dtype)
        if dtype.is_unsigned and not self.at_most(0, low):
            return unknown(dtype)
        return Range(low, high, low_reached, high_reached, along)

    def _fits(self, bound: Size, dtype: DType) -> bool:
        least, most = limits(dtype)
        if isinstance(bound, int):
            return least <= bound <= most
        if dtype.bits < 32:
            return self.at_most(least, bound) and self.at_most(bound, most)
        roof = most // 2 + 1
        return _weight(bound) <= _HEAVIEST and all(
            abs(coefficient) <= roof for _, coefficient in bound.terms
        )

    def smaller(self, a: Size, b: Size, dtype: DType) -> Size:
        """The smaller of two bounds, or one below both."""
        least, most = limits(dtype)
        if least in (a, b):
            return least
        if a == most or b == most:
            return b if a == most else a
        if self.at_most(a, b):
            return a
        if self.at_most(b, a):
            return b
        found = dims.minimum(a, b)
        return found if _weight(found) <= _HEAVIEST else least

    def larger(self, a: Size, b: Size, dtype: DType) -> Size:
        """The larger of two bounds, or one above both."""
        least, most = limits(dtype)
        if most in (a, b):
            return most
        if a == least or b == least:
            return b if a == least else a
        if self.at_most(a, b):
            return b
        if self.at_most(b, a):
            return a
        found = dims.maximum(a, b)
        return found if _weight(found) <= _HEAVIEST else most

    def within(self, a: Size, b: Size, dtype: DType) -> bool:
        """Whether a bound is not above another, both being within the dtype."""
        least, most = limits(dtype)
        return a == least or b == most or self.at_most(a, b)

    def closer(self, a: Size, b: Size, dtype: DType, largest: bool) -> Size:
        """The tighter of two bounds of one side; each holds, so either will do."""
        loosest = limits(dtype)[0 if largest else 1]
        if a == loosest or b == loosest:
            return b if a == loosest else a
        if self.at_most(a, b):
            return b if largest else a
        if self.at_most(b, a):
            return a if largest else b
        numbers = [bound for bound in (a, b) if isinstance(bound, int)]
        if numbers and abs(numbers[0]) >= 1 << 20:  # sizes are mostly smaller than this
            return b if a is numbers[0] else a
        found = dims.maximum(a, b) if largest else dims.minimum(a, b)
        return found if _weight(found) <= _HEAVIEST else a


@lru_cache(maxsize=4096)
def _proven(facts: Assumptions, a: Size, b: Size) -> bool:
    try:
        if not facts.facts and dims.evaluate(b - a, _EVERYTHING_IS_ONE) < 0:
            return False
        return facts.proves(Fact("<=", a, b))
    except DimTooLarge:
        return False


class _Ones(dict[str, int]):
    """The smallest sizes."""

    def __missing__(self, name: str) -> int:
        return 1


_EVERYTHING_IS_ONE = _Ones()


def _weight(size: Size) -> int:
    """How many factors a size is made of."""
    total = 0
    for monomial, _ in dims.as_terms(size):
        total += 1
        for factor in monomial:
            total += 1 if factor.kind == "name" else 2 + sum(map(_weight, factor.args))
    return total


# What a condition says of the integers that it compares.


Constraints: TypeAlias = dict[Var, Range]
"""Ranges that variables have where a condition holds."""

_OPPOSITE: dict[object, e.Elementwise] = {
    e.less: e.greater_equal,
    e.less_equal: e.greater,
    e.greater: e.less_equal,
    e.greater_equal: e.less,
    e.equal: e.not_equal,
    e.not_equal: e.equal,
}


class Refinement:
    """Reads conditions; `definitions` and `ranges` are those of the program around them."""

    def __init__(self, definitions: Mapping[Var, Equation], ranges: Mapping[Var, Range]) -> None:
        self.definitions = definitions
        self.ranges = ranges

    def constraints(self, order: Order, condition: Atom, holds: bool) -> Constraints:
        """What is known where a condition holds, or does not."""
        found: Constraints = {}
        self._read(order, condition, holds, found, 6)
        return found

    def _read(
        self, order: Order, condition: Atom, holds: bool, found: Constraints, depth: int
    ) -> None:
        at = self.definitions.get(condition) if isinstance(condition, Var) else None
        if at is None or not depth:
            return
        primitive = at.primitive
        if primitive is e.invert:
            self._read(order, at.inputs[0], not holds, found, depth - 1)
        elif primitive is (e.bitwise_and if holds else e.bitwise_or):
            for operand in at.inputs:
                self._read(order, operand, holds, found, depth - 1)
        elif primitive in _OPPOSITE:
            relation = primitive if holds else _OPPOSITE[primitive]
            left, right = at.inputs
            self._compare(order, relation, left, right, found)

    def _compare(
        self, order: Order, relation: object, left: Atom, right: Atom, found: Constraints
    ) -> None:
        a, b = self._range(left, found), self._range(right, found)
        if a is None or b is None:
            return
        if relation is e.greater or relation is e.greater_equal:
            left, right, a, b = right, left, b, a
            relation = e.less if relation is e.greater else e.less_equal
        least, most = limits(left.type.dtype)
        if relation is e.equal:
            self._narrow(order, left, a, b, found)
            self._narrow(order, right, b, a, found)
        elif relation is e.less or relation is e.less_equal:
            gap = 1 if relation is e.less else 0
            self._narrow(order, left, a, Range(least, b.high - gap), found)
            self._narrow(order, right, b, Range(a.low + gap, most), found)
        elif relation is e.not_equal and b.is_single:
            if order.at_most(b.low, a.low):
                self._narrow(order, left, a, Range(b.low + 1, most), found)
            elif order.at_most(a.high, b.high):
                self._narrow(order, left, a, Range(least, b.high - 1), found)

    def _range(self, atom: Atom, found: Constraints) -> Range | None:
        if isinstance(atom, Literal):
            value = atom.value
            return Range(value, value) if isinstance(value, int) else None
        return found.get(atom) or self.ranges.get(atom)

    def _narrow(
        self, order: Order, atom: Atom, old: Range, bound: Range, found: Constraints
    ) -> None:
        if isinstance(atom, Var):
            found[atom] = replace(order.meet(old, bound, atom.type.dtype), along=old.along)
