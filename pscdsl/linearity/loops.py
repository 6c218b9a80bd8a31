"""Loops: their bodies are walked several times, each time as one turn among others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pscdsl.ir import Atom, Block, Literal, Var
from pscdsl.linearity.numbers import Number, Unknown, unknown_number
from pscdsl.linearity.places import Fork, Place, When
from pscdsl.primitives.elementwise import Elementwise
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import KEY

if TYPE_CHECKING:
    from pscdsl.linearity.walk import Walk

MAX_TURNS: Final = 4
"""How often a loop's body is walked at most."""


@dataclass(frozen=True)
class Often:
    """How often a loop's body may be run: not at all, more than once."""

    never: bool
    several: bool
    length: Size | None = None

    @classmethod
    def of(cls, length: Size, facts: Assumptions) -> Often:
        """For a known number of steps."""
        never = not facts.proves(Fact("<=", 1, length))
        return cls(never, not facts.proves(Fact("<=", length, 1)), length)


class Loop:
    """One loop on one run through the program around it."""

    def __init__(self, walk: Walk, carry: Sequence[Var], often: Often) -> None:
        self.walk = walk
        self.carry = carry
        self.often = often
        self.fork = Fork()
        self.results: list[tuple[Place | None, ...]] = []
        """What the body gave in each turn so far."""
        self._steps = Number(0, {Unknown(steps=True): 1})
        self._counters: dict[Var, Number] = {}
        self._rows: dict[Var, object] = {}

    def turns(self) -> Iterator[int]:
        """The turns to walk: enough for a key to come round by way of every carried one."""
        walk, outer, late = self.walk, self.walk.when, self.walk.late
        carried = sum(var.type.dtype is KEY for var in self.carry)
        count = min(max(2, carried + 1), MAX_TURNS) if self.often.several else 1
        for turn in range(count):
            walk.when, walk.late = (*outer, (self.fork, 1)), late or turn > 1
            yield turn
        walk.when, walk.late = outer, late

    def enter_carry(self, given: Sequence[Atom], body: Block, turn: int) -> None:
        """Bind what is carried: to what the loop is given, or to what the last turn gave."""
        if not turn:
            self.walk.enter(self.carry, given)
        for index, var in enumerate(self.carry):
            if turn:
                place = self.results[-1][index]
                if place is not None:
                    self.walk.bind(var, place)
            if var.type.dtype.is_integer:
                step = _step(body, var, body.results[index])
                first = _integer(given[index])
                self.walk.numbers.known[var] = self._counted(var, step, turn, first)

    def enter_row(self, var: Var, array: Atom, turn: int) -> None:
        """Bind a slice of an array: another one in each turn."""
        place = self.walk.place(array)
        if place is not None:
            agent = self._rows.setdefault(var, object())
            self.walk.new(var, sources=[(place, ())], agent=agent)
        elif var.type.dtype.is_integer:
            known = self.walk.numbers.row(array, self._counted(var, 1, turn, 0))
            self.walk.numbers.known[var] = known

    def _counted(self, var: Var, step: int, turn: int, first: int | None) -> Number:
        """A counter in a turn; a number of which nothing is known if it has no step."""
        if not step:
            return unknown_number()
        found = self._counters.get(var)
        if found is None:
            length = self.often.length
            if step == 1 and first is not None and length is not None:
                found = unknown_number(first, first + length)
            else:
                found = unknown_number()
            self._counters[var] = found
        return found.plus(self._steps, step) if turn else found

    def leave(self, outputs: Sequence[Var], given: Sequence[Atom]) -> None:
        """Bind the loop's outputs: the last carry, then what was stacked."""
        ran: When = ((self.fork, 1),)
        for index, var in enumerate(outputs):
            if var.type.dtype is not KEY:
                continue
            found = [place for each in self.results if (place := each[index]) is not None]
            if index >= len(self.carry):
                self.walk.new(var, sources=[(found[0], ran)], repeated=self._outside(found[0]))
                continue
            sources: list[tuple[Place, When]] = [
                (place, ran) for place in found[:-1] if place.root.age < self.fork.age
            ]
            sources.append((found[-1], ran))
            start = self.walk.place(given[index])
            if self.often.never and start is not None:
                sources.append((start, ((self.fork, 0),)))
            self.walk.join(var, sources)

    def _outside(self, place: Place) -> bool:
        """Whether keys are the same ones in each turn."""
        root = place.root
        if root.age < self.fork.age:
            return True
        if any(root.agent is row for row in self._rows.values()):
            return False
        return any(self._outside(source) for source, _ in root.sources)


def _step(body: Block, var: Var, result: Atom) -> int:
    """By how much a carried integer grows in each step; 0 if that is not known."""
    for equation in body.equations:
        if result in equation.outputs:
            primitive = equation.primitive
            if isinstance(primitive, Elementwise) and primitive.name == "add":
                rest = [atom for atom in equation.inputs if atom is not var]
                return (_integer(rest[0]) or 0) if len(rest) == 1 else 0
    return 0


def _integer(atom: Atom) -> int | None:
    """The integer that an atom is known to be."""
    if isinstance(atom, Literal) and isinstance(atom.value, int):
        return atom.value
    return None
