"""Integers of the program as sums of unknowns, so that two of them can be told apart."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pscdsl.ir import Atom, Equation, Literal, Var
from pscdsl.primitives.creation import Iota
from pscdsl.primitives.elementwise import Convert, Elementwise, Select
from pscdsl.primitives.shaping import Broadcast, Reshape, Slice, at_most
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL

LARGEST_FACTOR: Final = 1 << 10
"""Multiples of a counter beyond this might wrap around."""
MOST_TERMS: Final = 8
"""A sum of more unknowns is an unknown itself."""


class Unknown:
    """An integer that is not known, but for bounds: from `low` up to, not including, `high`.

    With `steps` it is a number of steps other than 0, by which one turn of a loop is apart from
    another.  It is added to a counter, and what bounds the counter bounds their sum.
    """

    __slots__ = ("high", "low", "steps")

    def __init__(
        self, low: Size | None = None, high: Size | None = None, steps: bool = False
    ) -> None:
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
    """A constant and multiples of unknowns."""

    constant: int = 0
    terms: Mapping[Unknown, int] = field(default_factory=dict[Unknown, int])

    def plus(self, other: Number, factor: int = 1) -> Number:
        """The sum with a multiple of another number."""
        terms = dict(self.terms)
        for unknown, count in other.terms.items():
            terms[unknown] = terms.get(unknown, 0) + factor * count
        kept = {unknown: count for unknown, count in terms.items() if count}
        return Number(self.constant + factor * other.constant, kept)

    def times(self, factor: int) -> Number:
        """A multiple."""
        return Number().plus(self, factor)

    def replaced(self, values: Mapping[Unknown, Number]) -> Number:
        """With numbers in place of unknowns."""
        result = Number(self.constant)
        for unknown, count in self.terms.items():
            result = result.plus(values.get(unknown, Number(0, {unknown: 1})), count)
        return result

    def differs(self, other: Number) -> bool:
        """Whether the two are surely different integers."""
        gap = self.plus(other, -1)
        if not gap.terms:
            return gap.constant != 0
        if len(gap.terms) > 1:
            return False
        ((unknown, factor),) = gap.terms.items()
        # With a multiple of a number of steps, which is not 0: is it ever the opposite of the rest?
        return unknown.steps and (gap.constant == 0 or gap.constant % factor != 0)

    def not_negative(self, facts: Assumptions) -> bool:
        """Whether it is provably at least 0."""
        low, _ = self._bounds()
        return low is not None and at_most(facts, 0, low)

    def within(self, size: Size, facts: Assumptions) -> bool:
        """Whether it is provably a place along an axis of this size."""
        _, high = self._bounds()
        return self.not_negative(facts) and high is not None and at_most(facts, high, size)

    def _bounds(self) -> tuple[Size | None, Size | None]:
        """From where up to what, not included, it may be."""
        counters = [each for each in self.terms if not each.steps]
        if not self.terms:
            return self.constant, self.constant + 1
        if len(counters) != 1 or self.terms[counters[0]] != 1:
            return None, None
        low, high = counters[0].low, counters[0].high
        return (
            None if low is None else low + self.constant,
            None if high is None else high + self.constant,
        )


def unknown_number(low: Size | None = None, high: Size | None = None) -> Number:
    """An integer of which nothing is known but bounds."""
    return Number(0, {Unknown(low, high): 1})


class Numbers:
    """The integers of one run through a program, by variable."""

    def __init__(self, facts: Assumptions) -> None:
        self.facts = facts
        self.known: dict[Var, Number] = {}
        self.given: set[Unknown] = set()
        """Those that the function is given: they are the same wherever they are met."""
        self.arrays: set[Unknown] = set()
        """Those that stand for all elements of an array, which differ."""
        self._elements: dict[tuple[Hashable, tuple[Size, ...]], Number] = {}
        """The elements of arrays of those, by the number of the array and their place."""
        self._signs: dict[Var, Atom] = {}
        """Truth values that say whether a number is negative."""

    def of(self, atom: Atom) -> Number:
        """The integer that an atom is."""
        if isinstance(atom, Literal):
            value = atom.value
            return Number(int(value)) if isinstance(value, int) else self._new(atom)
        found = self.known.get(atom)
        if found is None:
            found = self.known[atom] = self._new(atom)
        return found

    def _new(self, atom: Atom) -> Number:
        """A number of which nothing is known."""
        found = unknown_number()
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
        found: Number | None = None
        if isinstance(primitive, Iota):
            if primitive.axis == 0:
                found = Number(0, {POSITION: 1})
        elif isinstance(primitive, Elementwise):
            found = self._arithmetic(primitive.name, equation)
        elif isinstance(primitive, Select):
            found = self._from_front(equation)
        elif isinstance(primitive, Convert):
            if primitive.dtype.is_integer and primitive.dtype.bits >= 32:
                found = self.of(equation.inputs[0])
        elif isinstance(primitive, Slice):
            found = self._element(primitive, equation)
        elif isinstance(primitive, Broadcast | Reshape) and _is_one(equation.inputs[0]):
            found = self.of(equation.inputs[0])
        if found is not None and len(found.terms) <= MOST_TERMS:
            self.known[equation.outputs[0]] = found

    def give(self, var: Var) -> None:
        """Note a parameter of the function."""
        self.given |= self.of(var).terms.keys()

    def row(self, array: Atom, counter: Number) -> Number:
        """What a loop over an array of integers is given in a turn."""
        number = self.of(array)
        if number.terms.keys() & self.arrays:
            return unknown_number()
        return number.replaced({POSITION: counter})

    def _element(self, primitive: Slice, equation: Equation) -> Number | None:
        """One element of an array that the function is given."""
        array = self.of(equation.inputs[0])
        if not array.terms or not array.terms.keys() <= self.given:
            return None
        if not _is_one(equation.outputs[0]):
            return None
        at = (array.constant, frozenset(array.terms.items())), primitive.start
        if at not in self._elements:
            self._elements[at] = unknown_number()
            self.given |= self._elements[at].terms.keys()
        return self._elements[at]

    def _from_front(self, equation: Equation) -> Number | None:
        """`i + n if i < 0 else i`, where `i` is known not to be negative."""
        predicate, _, other = equation.inputs
        if not isinstance(predicate, Var) or self._signs.get(predicate) is not other:
            return None
        found = self.of(other)
        return found if found.not_negative(self.facts) else None

    def _arithmetic(self, name: str, equation: Equation) -> Number | None:
        inputs = equation.inputs
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
        factor, other = (right.constant, left) if left.terms else (left.constant, right)
        return other.times(factor) if 0 < abs(factor) <= LARGEST_FACTOR else None


def _is_one(atom: Atom) -> bool:
    """Whether there is one element."""
    return all(size == 1 for size in atom.type.shape)


def _may_count(equation: Equation) -> bool:
    dtype = equation.outputs[0].type.dtype
    return dtype.is_integer or dtype is BOOL
