"""Loops: their bodies are walked twice, as two turns that are some steps apart.

The carry is abstract in both turns: a new key at each position. The results of the body say to
which positions the key at each position moves. This gives all keys that may reach a position after
any number of turns; the other turn's uses of the position are uses of these keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from pscdsl._src.analysis.keys.places import (
    MOST_STEPS,
    AffineInteger,
    Branching,
    KeyArray,
    KeyPlace,
    KeyUse,
    UnknownInteger,
    When,
    share,
    trail,
    unknown_number,
)
from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var
from pscdsl._src.primitives.associative import AssociativeScan, MapReduce
from pscdsl._src.primitives.elementwise import Elementwise
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import KEY

if TYPE_CHECKING:
    from pscdsl._src.analysis.keys.walk import KeyWalk

Places = Sequence[KeyPlace | None]


@dataclass(frozen=True)
class Often:
    """The possible numbers of runs of a loop's body: none, several."""

    never: bool
    several: bool
    length: Size | None = None
    counted: bool = False
    """Whether the length is only an upper bound: the rest of the stacks is zero."""

    @classmethod
    def of(cls, length: Size, facts: Assumptions, counted: bool = False) -> Often:
        """For a known number of steps."""
        never = counted or not facts.proves(Fact("<=", 1, length))
        return cls(never, not facts.proves(Fact("<=", length, 1)), length, counted)


@dataclass(frozen=True)
class _Arrived:
    """A place whose keys may reach a position; with `part`, any part of them may."""

    place: KeyPlace
    origin: object = None
    """The position where it came in: one key may come in at two positions."""
    part: bool = False


class KeyLoop:
    """One loop on one run through the program around it."""

    def __init__(
        self,
        walk: KeyWalk,
        carry: Sequence[Var],
        given: Places,
        often: Often,
        stacked: Sequence[Atom] = (),
    ) -> None:
        self.walk = walk
        self.carry = carry
        self.given = given
        """The carry of the first turn."""
        self.often = often
        self.fork = Branching()
        self.results: list[Places] = []
        """The body's results in each turn."""
        most = often.length - 1 if isinstance(often.length, int) else MOST_STEPS
        self._steps = AffineInteger(0, {UnknownInteger(steps=max(1, min(most, MOST_STEPS))): 1})
        self._counters: dict[Var, AffineInteger] = {}
        self._rows: dict[Var, object] = {}
        self._positions: list[list[KeyArray | None]] = []
        """The keys of the carry in each turn; None for carries that are not keys."""
        self._tested: list[tuple[KeyUse, ...]] = []
        """The uses of the carry by the loop's condition."""
        self._stacks = any(map(_is_key, stacked))
        """Whether the keys of all turns are stacked, and may equal those of the last turn."""
        self._copies = any(share(*pair, walk.ledger.facts) for pair in _pairs(given))
        """Whether one key may be at two positions."""

    def turns(self) -> Iterator[int]:
        """Yield the turns to walk."""
        walk, outer = self.walk, self.walk.when
        for turn in range(2 if self.often.several else 1):
            walk.when = (*outer, (self.fork, 1))
            yield turn
            if not turn:
                facts, next_ = walk.ledger.facts, self.results[0][: len(self.carry)]
                self._copies |= any(share(*pair, facts) for pair in _pairs(next_))
        if self.often.several:
            self._go_round()
        walk.when = outer

    # Before a turn.

    def enter_keys(self, params: Sequence[Var]) -> None:
        """Bind the keys that are carried, under the names that a block has for them."""
        if not self.often.several:
            for var, place in zip(params, self.given, strict=True):
                if place is not None and var.type.dtype is KEY:
                    self.walk.bind(var, place)
            return
        roots: list[KeyArray | None] = []
        for var in params:
            if var.type.dtype is KEY:
                repeated = self._copies and bool(var.type.shape)
                # After the loop no key is at two positions, where there are no copies.
                agent = self.fork if not (self._copies or self._stacks) else None
                root = KeyArray(var.type.shape, self.walk.name(var), (), repeated, agent)
                self.walk.bind(var, KeyPlace.whole(root))
                roots.append(root)
            else:
                roots.append(None)
        self._positions.append(roots)

    def enter_carry(self, given: Sequence[Atom], body: Block, turn: int) -> None:
        """Bind the carry: keys, and the integers that count the steps."""
        self.enter_keys(self.carry)
        for index, var in enumerate(self.carry):
            if var.type.dtype.is_integer:
                step = _step(body, var, body.results[index])
                first = _integer(given[index])
                self.walk.numbers.known[var] = self._counter_value(var, step, turn, first)

    def enter_test(self, params: Sequence[Var]) -> None:
        """Let the counters of a test come one step further than those of the body."""
        if self.often.length is None:
            return
        for param, var in zip(params, self.carry, strict=True):
            known = self.walk.numbers.known.get(var)
            if known is not None and known.terms:
                self.walk.numbers.known[param] = unknown_number()

    def enter_row(self, var: Var, array: Atom, turn: int) -> None:
        """Bind a slice of an array: another one in each turn."""
        place = self.walk.place(array)
        if place is not None:
            agent = self._rows.setdefault(var, object())
            self.walk.new(var, sources=[(place, ())], agent=agent)
            self.walk.places[var].root.is_row = True
        if var.type.dtype.is_integer:
            known = self.walk.numbers.row(array, self._counter_value(var, 1, turn, 0))
            self.walk.numbers.known[var] = known

    def _counter_value(self, var: Var, step: int, turn: int, first: int | None) -> AffineInteger:
        """Return a counter's value in a turn; an unknown number if it has no step."""
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
        known = found.plus(self._steps, step) if turn else found
        return known.modulo(var.type.dtype.bits)

    def gave(self, body: Block, places: Places) -> None:
        """Record the body's results."""
        pairs = zip(body.results, places, strict=True)
        self.results.append([each if atom.type.dtype is KEY else None for atom, each in pairs])

    def tested(self) -> None:
        """Record the uses so far in this turn: they occur once more when the loop ends."""
        self._tested = [() if each is None else tuple(each.uses) for each in self._now()]

    def _now(self) -> list[KeyArray | None]:
        return self._positions[-1] if self._positions else []

    # After the turns.

    def _go_round(self) -> None:
        """Apply the uses of each position to all keys that may reach it."""
        (one, other), (ours, theirs) = self._positions, self.results
        arrived = self._arrive(ours, theirs, other, self.given)
        # Keys from outside come in every turn: before one, and before the other.
        outer = [each if each is not None and self.outside(each) else None for each in theirs]
        again = self._arrive(outer[: len(self.carry)], ours, one, None)
        for index, place in enumerate(self.given):
            if place is not None:
                self._do(one[index], [_Arrived(place)], "first")
            self._do(other[index], arrived[index], "other")
            self._do(one[index], again[index], "one")
        for index, root in enumerate(other):
            if root is not None:
                begun = [] if self.given[index] is None else [self.given[index]]
                found = [each.place for each in arrived[index]]
                root.sources = tuple(
                    (place, ((self.fork, 1),)) for place in (*begun, *found) if place is not None
                )

    def _arrive(
        self,
        came: Places,
        gives: Places,
        positions: Sequence[KeyArray | None],
        begun: Places | None,
    ) -> list[list[_Arrived]]:
        """Return the keys that may reach each position, given those that come there directly.

        `gives` are the results of a turn with `positions`; `begun` moves before it arrives
        anywhere.
        """
        moves = self._moves(gives, positions)
        found: list[list[_Arrived]] = [[] for _ in positions]
        now: list[tuple[int, _Arrived]] = []
        for index, place in _keys(came, len(positions)):
            now.append((index, _Arrived(place, index)))
        for index, place in _keys(begun or (), len(positions)):
            given = _Arrived(place, ("given", index))
            now += [(to, _move(given, part)) for to, part in moves[index]]
        turns = self.often.length if isinstance(self.often.length, int) else None
        while now and (turns is None or turns > 1):
            turns = None if turns is None else turns - 1
            new = [(index, each) for index, each in now if each not in found[index]]
            now = []
            for index, each in dict.fromkeys(new):
                found[index].append(each)
                now += [(to, _move(each, part)) for to, part in moves[index]]
        return found

    def _moves(
        self, gives: Places, positions: Sequence[KeyArray | None]
    ) -> list[list[tuple[int, KeyPlace | None]]]:
        """Return the moves of each position's key in a turn: the target, and its part if known."""
        moves: list[list[tuple[int, KeyPlace | None]]] = [[] for _ in positions]
        of = {root: index for index, root in enumerate(positions) if root is not None}
        for to, place in _keys(gives, len(positions)):
            for use in trail(place):
                at = of.get(use.place.root)
                if at is not None:
                    moves[at].append((to, place if use.place == place else None))
        return moves

    def _do(self, position: KeyArray | None, arrived: Sequence[_Arrived], turn: str) -> None:
        """Apply a turn's uses of a position to the keys that reach it."""
        if position is None:
            return
        for each in arrived:
            # A key is at one position in a turn, if there are no copies.
            alone = turn == "first" or self._copies
            account = (self.fork, turn, *((position, each.origin) if alone else ()))
            for use in position.uses:
                self.walk.ledger.record(_done(use, each, account))

    def outside(self, place: KeyPlace) -> bool:
        """Return whether the keys of a place are the same ones in each turn."""
        root = place.root
        if root.age < self.fork.age:
            return True
        if any(root.agent is row for row in self._rows.values()):
            return False
        if any(root is each for roots in self._positions for each in roots):
            return False
        return any(self.outside(source) for source, _ in root.sources)

    def leave(self, outputs: Sequence[Var]) -> None:
        """Bind the loop's outputs: the last carry, then the stacks."""
        count = len(self.carry)
        self.stack(outputs[count:], self.results[-1][count:])
        for index, var in enumerate(outputs[:count]):
            place, start = self.results[-1][index], self.given[index]
            if place is None:
                continue
            sources: list[tuple[KeyPlace, When]] = [(place, ((self.fork, 1),))]
            if self.often.never and start is not None:
                sources.append((start, ((self.fork, 0),)))
            repeated = self._copies and self.often.several and bool(var.type.shape)
            self.walk.join(var, sources, repeated)
            if index < len(self._tested):
                end = _Arrived(self.walk.places[var])
                for use in self._tested[index]:
                    self.walk.ledger.record(_done(use, end, (self.fork, "end")))

    def stack(self, outputs: Sequence[Var], places: Places, begun: Places = ()) -> None:
        """Bind arrays of the results of all turns; the first element may be the initial one."""
        ran: When = ((self.fork, 1),)
        for index, (var, place) in enumerate(zip(outputs, places, strict=True)):
            if place is None:
                continue
            again = self.often.counted or self.outside(place) or self._comes_again(place)
            first = [(each, ran) for each in begun[index : index + 1] if each is not None]
            self.walk.new(var, sources=[(place, ran), *first], repeated=again)

    def _comes_again(self, place: KeyPlace) -> bool:
        """Return whether another turn may have a key of this place again."""
        now = self._now()
        if not now:
            return False
        moves = self._moves(self.results[-1], now)
        met = {now.index(use.place.root) for use in trail(place) if use.place.root in now}
        if met and self._copies:
            return True
        todo, seen = list(met), set[int]()
        while todo:
            for to, _ in moves[todo.pop()]:
                if to in met:
                    return True
                if to not in seen:
                    seen.add(to)
                    todo.append(to)
        return False


def _is_key(atom: Atom) -> bool:
    return atom.type.dtype is KEY


def _pairs(places: Places) -> Iterator[tuple[KeyPlace, KeyPlace]]:
    yield from combinations([place for place in places if place is not None], 2)


def _keys(places: Places, count: int) -> list[tuple[int, KeyPlace]]:
    return [(index, place) for index, place in enumerate(places[:count]) if place is not None]


def _move(arrived: _Arrived, part: KeyPlace | None) -> _Arrived:
    """Return the keys that move on if a part does; None for an unknown part."""
    if part is None or arrived.part:
        return replace(arrived, part=True)
    return replace(arrived, place=part.within(arrived.place, {}))


def _done(use: KeyUse, arrived: _Arrived, account: object) -> KeyUse:
    """Return a use of a position as a use of the keys that reached it."""
    agents = use.agents | {account}
    if arrived.part:
        return replace(use, place=arrived.place, at=None, agents=agents)
    return replace(use, place=use.place.within(arrived.place, {}), agents=agents)


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
    """Return the integer that an atom is known to be."""
    if isinstance(atom, Literal) and isinstance(atom.value, int):
        return atom.value
    return None


# Rows combined by a function: walked as if one after the other, several times, like a loop.
#
# But any row may come first or second: if keys of rows are consumed on either side of the
# combination, one key may be consumed twice. So may the keys of a total.


def prefixes(walk: KeyWalk, primitive: AssociativeScan, equation: Equation) -> None:
    """Bind all prefixes of rows."""
    captured, arrays = primitive.roles(equation.inputs)
    held, pair = primitive.roles(primitive.combine.params)
    firsts, seconds = pair[: len(arrays)], pair[len(arrays) :]
    _enter_rows(walk, firsts, arrays)
    begun = walk.carried_keys(firsts)
    often = Often.of(primitive.length, walk.ledger.facts)
    loop = KeyLoop(walk, firsts, begun, often, equation.outputs)
    grouped = _Grouped(walk, primitive.combine, firsts, seconds)
    for turn in loop.turns():
        walk.enter(held, captured)
        _enter_carry(walk, loop, firsts)
        for var, array in zip(seconds, arrays, strict=True):
            loop.enter_row(var, array, turn)
        loop.gave(primitive.combine, walk.block(primitive.combine))
        if loop.often.several:
            grouped.again()
    loop.stack(equation.outputs, loop.results[-1], begun)


def total(walk: KeyWalk, primitive: MapReduce, equation: Equation) -> None:
    """Bind the combined results of rows."""
    by_body, by_combine, initial, arrays = primitive.roles(equation.inputs)
    body, combine = primitive.body.params, primitive.combine.params
    held, rows = body[: primitive.body_captured], body[primitive.body_captured :]
    own, pair = combine[: len(by_combine)], combine[len(by_combine) :]
    count = len(primitive.body.results)
    state, values = pair[:count], pair[count:]
    if initial:
        walk.enter(state, initial)
    else:
        _enter_new(walk, state)
    often = Often.of(primitive.length, walk.ledger.facts)
    loop = KeyLoop(walk, state, walk.carried_keys(state), often)
    grouped = _Grouped(walk, primitive.combine, state, values)
    for turn in loop.turns():
        walk.enter(held, by_body)
        for var, array in zip(rows, arrays, strict=True):
            loop.enter_row(var, array, turn)
        places = walk.block(primitive.body)
        walk.enter(own, by_combine)
        _enter_carry(walk, loop, state)
        _bind(walk, values, places)
        loop.gave(primitive.combine, walk.block(primitive.combine))
        if loop.often.several:
            grouped.again()
    loop.leave(equation.outputs)


class _Grouped:
    """A row combined with the total of others, which then comes second.

    A combination may not return a key of its second row that it consumes. Keys have no origin here,
    as those of different rows differ.
    """

    def __init__(
        self, walk: KeyWalk, combine: Block, firsts: Sequence[Var], seconds: Sequence[Var]
    ) -> None:
        self._walk = walk
        self._combine = combine
        self._firsts = firsts
        self._seconds = seconds
        self._found: Places | None = None

    def again(self) -> None:
        """Combine a row with the previous result, or with another row."""
        _enter_new(self._walk, self._firsts)
        if self._found is None:
            _enter_new(self._walk, self._seconds)
        else:
            _bind(self._walk, self._seconds, self._found)
        self._found = self._walk.block(self._combine)


def _enter_carry(walk: KeyWalk, loop: KeyLoop, params: Sequence[Var]) -> None:
    """Bind the totals so far; their integers are unknown."""
    loop.enter_keys(params)
    for var in params:
        if var.type.dtype is not KEY:
            walk.unknown(var)


def _enter_new(walk: KeyWalk, params: Sequence[Var]) -> None:
    """Bind parameters to new keys and unknown numbers."""
    for var in params:
        if var.type.dtype is KEY:
            walk.new(var)
        else:
            walk.unknown(var)


def _bind(walk: KeyWalk, params: Sequence[Var], places: Places) -> None:
    """Bind parameters to computed places."""
    for var, place in zip(params, places, strict=True):
        walk.unknown(var)
        if place is not None:
            walk.bind(var, place)


def _enter_rows(walk: KeyWalk, params: Sequence[Var], arrays: Sequence[Atom]) -> None:
    """Bind parameters to rows, any of them."""
    for var, array in zip(params, arrays, strict=True):
        place = walk.place(array)
        walk.unknown(var)
        if place is not None:
            walk.new(var, sources=[(place, ())], agent=object())
