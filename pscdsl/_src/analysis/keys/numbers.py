"""Integers of the program as sums of unknowns, so that two of them can be told apart.

Integers wrap around, so a sum is what it says modulo a power of two: that of the narrowest type in
which a part of it was computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Final

from pscdsl._src.ir.program import Atom, Equation, Literal, Var
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.elementwise import Convert, Elementwise, Select
from pscdsl._src.primitives.shaping import Broadcast, Reshape, at_most
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL

EXACT: Final = 64
"""Bits of an integer that has not been computed: keys are made of all of them, and of no more."""
MOST_STEPS: Final = (1 << 31) - 1
"""No loop takes more steps: sizes stay below this, and others would take years."""
MOST_TERMS: Final = 8
"""A sum of more unknowns is an unknown itself."""


class Unknown:
    """An integer that is not known, but for bounds: from `low` up to, not including, `high`.

    With `steps` it is a number of steps other than 0, by which one turn of a loop is apart from
    another, at most so many, forth or back.  It is added to a counter, and what bounds the counter
    bounds their sum.
    """

    __slots__ = ("high", "low", "steps")

    def __init__(self, low: Size | None = None, high: Size | None = None, steps: int = 0) -> None:
        self.low = low
        self.high = high
        self.steps = steps

    def again(self) -> Unknown:
        """Another one of which as little is known, in other sizes than these."""
        return Unknown(steps=self.steps)


POSITION: Final = Unknown()
"""The place along the leading axis, in the numbers of an array."""


@dataclass(frozen=True)
class Number:
    """A constant and multiples of unknowns, modulo 2 to the number of bits."""

    constant: int = 0
    terms: Mapping[Unknown, int] = field(default_factory=dict[Unknown, int])
    bits: int = EXACT

    def plus(self, other: Number, factor: int = 1) -> Number:
        """The sum with a multiple of another number."""
        terms = dict(self.terms)
        for unknown, count in other.terms.items():
            terms[unknown] = terms.get(unknown, 0) + factor * count
        constant = self.constant + factor * other.constant
        return Number(constant, terms).modulo(min(self.bits, other.bits))

    def times(self, factor: int) -> Number:
        """A multiple."""
        return Number().plus(self, factor)

    def modulo(self, bits: int) -> Number:
        """What is left of it in a type of so many bits."""
        bits = min(bits, self.bits)
        terms = {unknown: _nearest(count, bits) for unknown, count in self.terms.items()}
        kept = {unknown: count for unknown, count in terms.items() if count}
        return Number(_nearest(self.constant, bits), kept, bits)

    def replaced(self, values: Mapping[Unknown, Number]) -> Number:
        """With numbers in place of unknowns."""
        result = Number(self.constant, bits=self.bits)
        for unknown, count in self.terms.items():
            result = result.plus(values.get(unknown, Number(0, {unknown: 1})), count)
        return result

    def differs(self, other: Number) -> bool:
        """Whether the two are surely different integers."""
        gap = self.plus(other, -1)
        modulus = 1 << gap.bits
        # Whatever the unknowns are, their sum is a multiple of this.
        factor = gcd(modulus, *gap.terms.values())
        if gap.constant % factor:
            return True
        if len(gap.terms) != 1:
            return False
        ((unknown, count),) = gap.terms.items()
        # Steps, at least 1, are the opposite of the rest after every `period`-th of them only.
        period = modulus // factor
        first = -gap.constant // factor * pow(count // factor, -1, period) % period
        return unknown.steps > 0 and min(first or period, period - first) > unknown.steps

    def not_negative(self, facts: Assumptions) -> bool:
        """Whether it is provably at least 0, and has not wrapped around to get there."""
        low, high = self._bounds()
        if low is None or high is None or not at_most(facts, 0, low):
            return False
        if isinstance(high, int):
            return high <= 1 << (self.bits - 1)
        return self.bits >= _WIDE and abs(self.constant) < 1 << (_WIDE - 2)

    def within(self, size: Size, facts: Assumptions) -> bool:
        """Whether it is provably a place along an axis of this size."""
        low, high = self._bounds()
        if low is None or high is None:
            return False
        held = self.bits >= _WIDE or (isinstance(size, int) and size <= 1 << (self.bits - 1))
        return held and at_most(facts, 0, low) and at_most(facts, high, size)

    def shown(self) -> str:
        """The integer if it is known, else an ellipsis."""
        return "…" if self.terms else str(self.constant)

    def _bounds(self) -> tuple[Size | None, Size | None]:
        """From where up to what, not included, it may be."""
        if not self.terms:
            return self.constant, self.constant + 1
        counters = [each for each in self.terms if not each.steps]
        if len(counters) != 1:
            return None, None
        (counter,) = counters
        if counter.low is None or counter.high is None:
            return None, None
        factor = self.terms[counter]
        ends = factor * counter.low + self.constant, factor * (counter.high - 1) + self.constant
        low, high = ends if factor > 0 else ends[::-1]
        return low, high + 1


def _nearest(value: int, bits: int) -> int:
    """The integer nearest to 0 that is the same one modulo 2 to the number of bits."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


_WIDE: Final = 32
"""Bits of the narrowest integers that hold every size."""


def unknown_number(low: Size | None = None, high: Size | None = None) -> Number:
    """An integer of which nothing is known but bounds."""
    return Number(0, {Unknown(low, high): 1})


class Numbers:
    """The integers of one run through a program, by variable."""

    def __init__(self, facts: Assumptions) -> None:
        self.facts = facts
        self.known: dict[Var, Number] = {}
        self.arrays: set[Unknown] = set()
        """Those that stand for all elements of an array, which differ."""
        self._signs: dict[Var, Atom] = {}
        """Truth values that say whether a number is negative."""

    def of(self, atom: Atom) -> Number:
        """The integer that an atom is."""
        if isinstance(atom, Literal):
            value = atom.value
            return Number(int(value)) if isinstance(value, int) else unknown_number()
        found = self.known.get(atom)
        if found is None:
            found = self.known[atom] = unknown_number()
            if atom.type.shape:
                self.arrays |= found.terms.keys()
        return found

    def forget(self, variables: Sequence[Var]) -> None:
        """What is computed again, in another turn of a loop, may be another number."""
        for var in variables:
            self.known.pop(var, None)

    def follow(self, equation: Equation) -> None:
        """Note what an equation says of its output, if that is an integer."""
        primitive = equation.primitive
        if len(equation.outputs) != 1 or not _may_count(equation):
            return
        (output,) = equation.outputs
        found: Number | None = None
        if isinstance(primitive, Iota):
            if primitive.axis == 0:
                found = Number(0, {POSITION: 1})
        elif isinstance(primitive, Elementwise):
            found = self._arithmetic(primitive.name, equation)
        elif isinstance(primitive, Select):
            found = self._from_front(equation)
        elif isinstance(primitive, Convert):
            if equation.inputs[0].type.dtype.is_integer:
                found = self.of(equation.inputs[0])
        elif isinstance(primitive, Broadcast | Reshape) and _is_one(equation.inputs[0]):
            found = self.of(equation.inputs[0])
        if found is not None and len(found.terms) <= MOST_TERMS and output.type.dtype.is_integer:
            self.known[output] = found.modulo(output.type.dtype.bits)

    def row(self, array: Atom, counter: Number) -> Number:
        """What a loop over an array of integers is given in a turn."""
        number = self.of(array)
        if number.terms.keys() & self.arrays:
            return unknown_number()
        return number.replaced({POSITION: counter})

    def all_differ(self, number: Number) -> bool:
        """Whether no two elements of an array with one axis are the same integer."""
        if number.terms.keys() & self.arrays:
            return False
        place = Unknown()
        gap = Number(0, {Unknown(steps=MOST_STEPS): 1, place: 1})
        here, there = (number.replaced({POSITION: each}) for each in (Number(0, {place: 1}), gap))
        return here.differs(there)

    def _from_front(self, equation: Equation) -> Number | None:
        """`i + n if i < 0 else i`, where `i` is known not to be negative."""
        predicate, _, other = equation.inputs
        if not isinstance(predicate, Var) or self._signs.get(predicate) is not other:
            return None
        found = self.of(other)
        return found if found.not_negative(self.facts) else None

    def _arithmetic(self, name: str, equation: Equation) -> Number | None:
        inputs = equation.inputs
        if name == "negative":
            return self.of(inputs[0]).times(-1)
        if len(inputs) != 2 or name not in ("add", "subtract", "multiply", "less"):
            return None
        if name == "less":
            if isinstance(inputs[1], Literal) and inputs[1].value == 0:
                self._signs[equation.outputs[0]] = inputs[0]
            return None
        left, right = map(self.of, inputs)
        if name != "multiply":
            return left.plus(right, 1 if name == "add" else -1)
        if left.terms and right.terms:
            return None
        factor, other = (right, left) if left.terms else (left, right)
        return other.times(factor.constant).modulo(factor.bits)


def _is_one(atom: Atom) -> bool:
    """Whether there is one element."""
    return all(size == 1 for size in atom.type.shape)


def _may_count(equation: Equation) -> bool:
    dtype = equation.outputs[0].type.dtype
    return dtype.is_integer or dtype is BOOL
