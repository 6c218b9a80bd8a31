"""The part of an array of keys that a variable is, and how it was used."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Final

from pscdsl._src.ir.program import Atom, Equation, Literal, Var
from pscdsl._src.primitives.elementwise import Convert, Elementwise, Select
from pscdsl._src.primitives.shaping import Broadcast, Iota, Reshape, at_most
from pscdsl.typing.array_types import Shape, substitute_shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.keys import KeyReused
from pscdsl.typing.diagnostics import NOWHERE, Label, Span
from pscdsl.typing.dims import Dim, Size, substitute
from pscdsl.typing.dtypes import BOOL

# Integers of the program as sums of unknowns, so that two of them can be told apart.
#
# Integers wrap around, so a sum holds modulo a power of two: that of the narrowest type in which a
# part of it was computed.


EXACT: Final = 64
"""Bits of an integer that has not been computed: keys are made of all of them, and of no more."""
MOST_STEPS: Final = (1 << 31) - 1
"""No loop takes more steps: sizes stay below this, and others would take years."""
MOST_TERMS: Final = 8
"""A sum of more unknowns is an unknown itself."""


class UnknownInteger:
    """An unknown integer with bounds: from `low` up to, not including, `high`.

    With `steps` it is the distance of two turns of a loop in steps: not 0, at most `steps`, and of
    either sign. It is added to a counter, whose bounds also bound the sum.
    """

    __slots__ = ("high", "low", "steps")

    def __init__(self, low: Size | None = None, high: Size | None = None, steps: int = 0) -> None:
        self.low = low
        self.high = high
        self.steps = steps

    def again(self) -> UnknownInteger:
        """Return another unknown for different sizes, without bounds."""
        return UnknownInteger(steps=self.steps)


POSITION: Final = UnknownInteger()
"""The place along the leading axis, in the numbers of an array."""


@dataclass(frozen=True)
class AffineInteger:
    """A constant and multiples of unknowns, modulo 2 to the number of bits."""

    constant: int = 0
    terms: Mapping[UnknownInteger, int] = field(default_factory=dict[UnknownInteger, int])
    bits: int = EXACT

    def plus(self, other: AffineInteger, factor: int = 1) -> AffineInteger:
        """Return the sum with a multiple of another number."""
        terms = dict(self.terms)
        for unknown, count in other.terms.items():
            terms[unknown] = terms.get(unknown, 0) + factor * count
        constant = self.constant + factor * other.constant
        return AffineInteger(constant, terms).modulo(min(self.bits, other.bits))

    def times(self, factor: int) -> AffineInteger:
        """Return a multiple."""
        return AffineInteger().plus(self, factor)

    def modulo(self, bits: int) -> AffineInteger:
        """Return the number modulo a power of two with this exponent."""
        bits = min(bits, self.bits)
        terms = {unknown: _nearest(count, bits) for unknown, count in self.terms.items()}
        nonzero = {unknown: count for unknown, count in terms.items() if count}
        return AffineInteger(_nearest(self.constant, bits), nonzero, bits)

    def replaced(self, values: Mapping[UnknownInteger, AffineInteger]) -> AffineInteger:
        """With numbers in place of unknowns."""
        result = AffineInteger(self.constant, bits=self.bits)
        for unknown, count in self.terms.items():
            result = result.plus(values.get(unknown, AffineInteger(0, {unknown: 1})), count)
        return result

    def differs(self, other: AffineInteger) -> bool:
        """Return whether the integers certainly differ."""
        gap = self.plus(other, -1)
        modulus = 1 << gap.bits
        # For all values of the unknowns, their sum is a multiple of this.
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
        """Return whether it is provably at least 0, without having wrapped around."""
        low, high = self._bounds()
        if low is None or high is None or not at_most(facts, 0, low):
            return False
        if isinstance(high, int):
            return high <= 1 << (self.bits - 1)
        return self.bits >= _WIDE and abs(self.constant) < 1 << (_WIDE - 2)

    def within(self, size: Size, facts: Assumptions) -> bool:
        """Return whether it is provably a place along an axis of this size."""
        low, high = self._bounds()
        if low is None or high is None:
            return False
        held = self.bits >= _WIDE or (isinstance(size, int) and size <= 1 << (self.bits - 1))
        return held and at_most(facts, 0, low) and at_most(facts, high, size)

    def shown(self) -> str:
        """Return the integer if it is known, else an ellipsis."""
        return "…" if self.terms else str(self.constant)

    def _bounds(self) -> tuple[Size | None, Size | None]:
        """Return the lower bound and the upper bound, which is not included."""
        if not self.terms:
            return self.constant, self.constant + 1
        counters = [term for term in self.terms if not term.steps]
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
    """Return the integer nearest to 0 that is congruent modulo 2 to the number of bits."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


_WIDE: Final = 32
"""Bits of the narrowest integers that hold every size."""


def unknown_number(low: Size | None = None, high: Size | None = None) -> AffineInteger:
    """Return an unknown integer with these bounds."""
    return AffineInteger(0, {UnknownInteger(low, high): 1})


class Numbers:
    """The integers of one run through a program, by variable."""

    def __init__(self, facts: Assumptions) -> None:
        self.facts = facts
        self.known: dict[Var, AffineInteger] = {}
        self.arrays: set[UnknownInteger] = set()
        """The unknowns that represent all elements of an array, which differ."""
        self._signs: dict[Var, Atom] = {}
        """Truth values that say whether a number is negative."""

    def of(self, atom: Atom) -> AffineInteger:
        """Return the integer that an atom is."""
        if isinstance(atom, Literal):
            value = atom.value
            return AffineInteger(int(value)) if isinstance(value, int) else unknown_number()
        cached = self.known.get(atom)
        if cached is None:
            cached = self.known[atom] = unknown_number()
            if atom.type.shape:
                self.arrays |= cached.terms.keys()
        return cached

    def forget(self, variables: Sequence[Var]) -> None:
        """Forget variables that another turn of a loop computes again."""
        for var in variables:
            self.known.pop(var, None)

    def follow(self, equation: Equation) -> None:
        """Record the integer that an equation computes."""
        primitive = equation.primitive
        if len(equation.outputs) != 1 or not _may_count(equation):
            return
        (output,) = equation.outputs
        number: AffineInteger | None = None
        if isinstance(primitive, Iota):
            if primitive.axis == 0:
                number = AffineInteger(0, {POSITION: 1})
        elif isinstance(primitive, Elementwise):
            number = self._arithmetic(primitive.name, equation)
        elif isinstance(primitive, Select):
            number = self._from_front(equation)
        elif isinstance(primitive, Convert):
            if equation.inputs[0].type.dtype.is_integer:
                number = self.of(equation.inputs[0])
        elif isinstance(primitive, Broadcast | Reshape) and _is_one(equation.inputs[0]):
            number = self.of(equation.inputs[0])
        if number is not None and len(number.terms) <= MOST_TERMS and output.type.dtype.is_integer:
            self.known[output] = number.modulo(output.type.dtype.bits)

    def row(self, array: Atom, counter: AffineInteger) -> AffineInteger:
        """Return the number of a row in a loop over an array of integers."""
        number = self.of(array)
        if number.terms.keys() & self.arrays:
            return unknown_number()
        return number.replaced({POSITION: counter})

    def all_differ(self, number: AffineInteger) -> bool:
        """Return whether the elements of an array with one axis are all different."""
        if number.terms.keys() & self.arrays:
            return False
        place = UnknownInteger()
        gap = AffineInteger(0, {UnknownInteger(steps=MOST_STEPS): 1, place: 1})
        here, there = (
            number.replaced({POSITION: position})
            for position in (AffineInteger(0, {place: 1}), gap)
        )
        return here.differs(there)

    def _from_front(self, equation: Equation) -> AffineInteger | None:
        """`i + n if i < 0 else i`, where `i` is known not to be negative."""
        predicate, _, other = equation.inputs
        if not isinstance(predicate, Var) or self._signs.get(predicate) is not other:
            return None
        number = self.of(other)
        return number if number.not_negative(self.facts) else None

    def _arithmetic(self, name: str, equation: Equation) -> AffineInteger | None:
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
    """Return whether there is exactly one element."""
    return all(size == 1 for size in atom.type.shape)


def _may_count(equation: Equation) -> bool:
    dtype = equation.outputs[0].type.dtype
    return dtype.is_integer or dtype is BOOL


# The array of keys that a variable comes from, and the part of it.


_AGES: Final = itertools.count()


class Branching:
    """A point at which a program takes one of several branches."""

    def __init__(self) -> None:
        self.age: Final = next(_AGES)


When = tuple[tuple[object, int], ...]
"""The branches in which an event happens: pairs of a fork and the number of a branch."""


def exclusive(left: When, right: When) -> bool:
    """Return whether two events never both happen, as they are on two branches of one fork."""
    taken = dict(left)
    return any(taken.get(fork, branch) != branch for fork, branch in right)


class KeyArray:
    """An array of keys that came into being as a whole: a parameter, the result of a split.

    `sources` are the places from which its keys were taken, if they are not new; a use of a part of
    it is a use of those. With `repeated` one key may be at several places of it.
    """

    def __init__(
        self,
        shape: Shape,
        name: str = "",
        sources: tuple[tuple[KeyPlace, When], ...] = (),
        repeated: bool = False,
        agent: object = None,
    ) -> None:
        self.shape: Final = shape
        self.name: Final = name
        self.sources = sources
        self.repeated: Final = repeated
        self.agent: Final = self if agent is None else agent
        """Who uses the sources: one agent's uses are of different keys, or seen to elsewhere."""
        self.element: AffineInteger | None = None
        """Its index along the first axis of its only source, if that is known."""
        self.is_row = False
        """Whether it is an element of its only source, along the first axis."""
        self.uses: list[KeyUse] = []
        self.cells: dict[object, dict[object, list[KeyUse]]] = {}
        """The uses by element, and by the number that it is folded with, where both are known."""
        self.age: Final = next(_AGES)

    def add(self, use: KeyUse) -> None:
        """Note a use."""
        self.uses.append(use)
        element, constant = use.cell
        self.cells.setdefault(element, {}).setdefault(constant, []).append(use)

    def substituted(self, env: Mapping[str, Size]) -> Shape:
        """Return the shape with sizes in place of names."""
        return substitute_shape(self.shape, env)


class Seeds(KeyArray):
    """All keys that can be made of seeds: the key of a seed is the element of that number."""

    def __init__(self) -> None:
        super().__init__((), "psc.random.key(…)")
        self.arguments: Final = object()
        """The agent of arguments as seeds: the caller has to check that they differ."""


@dataclass(frozen=True)
class PlaceRange:
    """Every `step`-th place from `start` up to, not including, `stop`."""

    start: Size
    stop: Size
    step: int = 1

    def inside(self, start: Size, stop: Size, step: int) -> PlaceRange:
        """Return a range counted in the places of this one."""
        return PlaceRange(
            self.start + start * self.step, self.start + stop * self.step, self.step * step
        )

    def substitute(self, env: Mapping[str, Size]) -> PlaceRange:
        """With sizes in place of names."""
        return PlaceRange(_substitute(self.start, env), _substitute(self.stop, env), self.step)

    def apart(self, other: PlaceRange, facts: Assumptions) -> bool:
        """Return whether the ranges provably have no place in common."""
        return (
            _at_most(facts, self.stop, other.start)
            or _at_most(facts, other.stop, self.start)
            or self._interleaved(other)
        )

    def _interleaved(self, other: PlaceRange) -> bool:
        gap = self.start - other.start
        return self.step == other.step > 1 and isinstance(gap, int) and gap % self.step != 0

    @property
    def only(self) -> Size | None:
        """Return the only place, if there is just one."""
        return self.start if self.stop - self.start == 1 else None


def _at_most(facts: Assumptions, low: Size, high: Size) -> bool:
    if isinstance(low, int) and isinstance(high, int):
        return low <= high
    return facts.proves(Fact("<=", low, high))


def _substitute(size: Size, env: Mapping[str, Size]) -> Size:
    return substitute(size, env) if isinstance(size, Dim) else size


@dataclass(frozen=True)
class KeyPlace:
    """A part of a root: a range along each of its axes.

    `axes` says, for each axis of the part, which axis of the root it is; None for one of size 1
    that was put in.
    """

    root: KeyArray
    ranges: tuple[PlaceRange, ...]
    axes: tuple[int | None, ...]
    name: str = field(default="", compare=False)
    """The place's name in the code."""

    @classmethod
    def whole(cls, root: KeyArray) -> KeyPlace:
        """Return all of a root."""
        ranges = tuple(PlaceRange(0, size) for size in root.shape)
        return cls(root, ranges, tuple(range(len(ranges))), root.name)

    def called(self, name: str) -> KeyPlace:
        """Return the place under a name, if it has none."""
        return self if self.name or not name else replace(self, name=name)

    def sliced(self, starts: Shape, stops: Shape, steps: tuple[int, ...]) -> KeyPlace:
        """Return the part of it that a slice takes."""
        ranges = list(self.ranges)
        for axis, start, stop, step in zip(self.axes, starts, stops, steps, strict=True):
            if axis is not None:
                ranges[axis] = ranges[axis].inside(start, stop, step)
        return replace(self, ranges=tuple(ranges), name="")

    def transposed(self, permutation: tuple[int, ...]) -> KeyPlace:
        """Return the part with its axes in another order."""
        return replace(self, axes=tuple(self.axes[axis] for axis in permutation))

    def reshaped(self, given: Shape, wanted: Shape) -> KeyPlace | None:
        """Return the part with axes of size 1 removed or inserted; None for any other shape."""
        axes = [(axis, size) for axis, size in zip(self.axes, given, strict=True) if size != 1]
        if [size for _, size in axes] != [size for size in wanted if size != 1]:
            return None
        remaining = iter(axes)
        return replace(self, axes=tuple(None if s == 1 else next(remaining)[0] for s in wanted))

    def within(self, outer: KeyPlace, env: Mapping[str, Size]) -> KeyPlace:
        """Return the part as a place in a caller, which the root represents."""
        ranges = [interval.substitute(env) for interval in self.ranges]
        shape = self.root.substituted(env)
        if all(r == PlaceRange(0, size) for r, size in zip(ranges, shape, strict=True)):
            part = outer
        else:
            part = outer.sliced(
                tuple(r.start for r in ranges),
                tuple(r.stop for r in ranges),
                tuple(r.step for r in ranges),
            )
        axes = tuple(None if axis is None else part.axes[axis] for axis in self.axes)
        return replace(part, axes=axes)

    def across(self, array: KeyPlace) -> KeyPlace:
        """Return this part of a row as a part of all rows of an array."""
        ranges = list(array.ranges)
        for axis, part in zip(array.axes[1:], self.ranges, strict=True):
            if axis is not None:
                ranges[axis] = ranges[axis].inside(part.start, part.stop, part.step)
        return replace(array, ranges=tuple(ranges), name="")

    def before(self, source: KeyPlace) -> KeyPlace:
        """Return the place in a source of its root from which it was taken."""
        return self.across(source) if self.root.is_row else source

    def single(self) -> bool:
        """Return whether it is one key."""
        return all(interval.only is not None for interval in self.ranges)

    def apart(self, other: KeyPlace, facts: Assumptions) -> bool:
        """Return whether two parts of one root provably have no key in common."""
        return any(a.apart(b, facts) for a, b in zip(self.ranges, other.ranges, strict=True))

    def __str__(self) -> str:
        if self.name:
            return self.name
        name = self.root.name
        if not name or not self.ranges:
            return name
        parts = [_show(r, size) for r, size in zip(self.ranges, self.root.shape, strict=True)]
        while parts and parts[-1] == ":":
            parts.pop()
        return f"{name}[{', '.join(parts)}]" if parts else name


def _show(range_: PlaceRange, size: Size) -> str:
    if range_.only is not None and size != 1:
        return str(range_.only)
    if range_ == PlaceRange(0, size):
        return ":"
    start = "" if range_.start == 0 else str(range_.start)
    stop = "" if range_.stop == size else str(range_.stop)
    return f"{start}:{stop}" + (f":{range_.step}" if range_.step != 1 else "")


# Uses of places, and whether two uses may be of one key.


SPLIT = "`key, sub = psc.random.split(key)` gives two keys in the place of one"
LOOP = (
    "split it outside and give a key to each step or row, `psc.map(f, psc.random.split(key, n))`, "
    "or carry it, and split it in each step"
)
FOLD = "fold in integers that differ for sure, such as the counter of a loop, or fold twice"
EITHER = "derive all keys from it by `fold_in`, or all by `split`"
REPEATED = "`psc.random.split(key, n)` gives n keys that all differ"
SEEDED = "seeds that may be equal may give one key: make one key, and split it"
RETURNED = "return one of the keys that `psc.random.split` gives"


@dataclass(frozen=True)
class KeyUse:
    """One use of a place: by which it is consumed, or folded with a number."""

    place: KeyPlace
    what: str
    """The kind of use: `consumed`, `folded`."""
    span: Span
    data: AffineInteger | None = None
    """The number that the key is folded with; None if the key is consumed."""
    at: AffineInteger | None = None
    """The index along the first axis, if it is a single and known one."""
    agents: frozenset[object] = frozenset()
    """The agents of the use: uses of one agent are of different keys, or checked elsewhere."""
    when: When = ()

    @property
    def cell(self) -> tuple[object, object]:
        """The one element that is used, and the number that it is folded with; None if unknown."""
        if isinstance(self.place.root, Seeds):
            return _residue(self.at), _residue(self.data)
        places = tuple(interval.only for interval in self.place.ranges)
        known = all(isinstance(place, int) for place in places)
        return places if known else None, _residue(self.data)

    def conflicts(self, other: KeyUse, facts: Assumptions) -> bool:
        """Return whether both may be of one key, and are not folds with different numbers."""
        if self.agents & other.agents:
            return False
        if self.data is not None and other.data is not None and self.data.differs(other.data):
            return False
        if self.at is not None and other.at is not None and self.place == other.place:
            if self.at.differs(other.at):
                return False
        return not exclusive(self.when, other.when) and not self.place.apart(other.place, facts)


def _residue(number: AffineInteger | None) -> int | None:
    """Return a value that equal numbers have in common, if it is known."""
    if number is None or number.terms or number.bits < _WORD:
        return None
    return number.constant % (1 << _WORD)


_WORD: Final = 32


def trail(whole: KeyPlace) -> Iterator[KeyUse]:
    """Yield a place, and those from which its keys may have been taken."""
    todo, seen = [KeyUse(whole, "", NOWHERE)], set[object]()
    while todo:
        use = todo.pop()
        if (known := (use.place, use.agents)) in seen:
            continue
        seen.add(known)
        yield use
        root = use.place.root
        account = frozenset({object() if root.repeated else root.agent})
        for source, when in root.sources:
            place, either = use.place.before(source), (*use.when, *when)
            todo.append(KeyUse(place, "", NOWHERE, None, root.element, account, either))


def share(one: KeyPlace, other: KeyPlace, facts: Assumptions) -> bool:
    """Return whether one key may be in two places."""
    others = list(trail(other))
    return any(
        use.place.root is each.place.root and use.conflicts(each, facts)
        for use in trail(one)
        for each in others
    )


class KeyUses:
    """The uses in one walk of a program, and its errors."""

    def __init__(self, facts: Assumptions) -> None:
        self.facts = facts
        self.findings: dict[Span, KeyReused] = {}
        self._pairs: set[frozenset[Span | None]] = set()

    def record(self, use: KeyUse) -> None:
        """Note a use, of the place and of where its keys were taken from."""
        self._record(use, use)

    def _record(self, use: KeyUse, shown: KeyUse) -> None:
        root = use.place.root
        if root.repeated and not use.place.single():
            self._report(shown, None)
        for old in _uses_met(root, use.cell):
            if use.conflicts(old, self.facts):
                self._report(shown, old, SEEDED if isinstance(root, Seeds) else None)
                break
        root.add(use)
        account: frozenset[object] = frozenset({object() if root.repeated else root.agent})
        for place, when in root.sources:
            before = replace(
                use,
                place=use.place.before(place),
                at=root.element,
                agents=account,
                when=(*use.when, *when),
            )
            self._record(before, shown)

    def returned(self, places: Sequence[KeyPlace], span: Span) -> None:
        """Refuse keys that leave the program after they were consumed, or twice."""
        for index, place in enumerate(places):
            now = KeyUse(place, "returned", span)
            use = spent(place, self.facts)
            if use is not None:
                self._report(now, use, RETURNED)
            elif any(each.place.root.repeated and not each.place.single() for each in trail(place)):
                self._report(now, None)
            elif any(share(place, other, self.facts) for other in places[:index]):
                self._report(now, now, RETURNED)

    def _report(self, now: KeyUse, old: KeyUse | None, rewrite: str | None = None) -> None:
        place, first = (now.span, None) if old is None else told_apart(now.span, old.span)
        pair = frozenset({place, first})
        if place in self.findings or pair in self._pairs:
            return
        self._pairs.add(pair)
        again = place == first
        labels: tuple[Label, ...] = ()
        if old is not None and first is not None and not again:
            labels = (Label(first, f"{old.what} here"),)
        self.findings[place] = KeyReused(
            name=str(now.place),
            before="" if old is None else old.what,
            now=now.what,
            again=again,
            rewrite=rewrite or _rewrite(now, old, again),
            span=place,
            labels=labels,
        )


def told_apart(one: Span, other: Span) -> tuple[Span, Span]:
    """Two places; of one line of a helper, the calls through which it was reached."""
    while one.call_site is not None and other.call_site is not None:
        if replace(one, call_site=None) != replace(other, call_site=None):
            break
        one, other = one.call_site, other.call_site
    return one, other


def _rewrite(now: KeyUse, old: KeyUse | None, again: bool) -> str:
    if old is None:
        return REPEATED
    if now.data is not None and old.data is not None:
        return FOLD
    if again:
        return LOOP
    return SPLIT if now.data is None and old.data is None else EITHER


def _uses_met(root: KeyArray, cell: tuple[object, object]) -> Iterator[KeyUse]:
    """Yield the uses of a root that may be of the same element, and with the same number."""
    element, constant = cell
    if element is None:
        yield from root.uses
        return
    for group in (root.cells.get(element, {}), root.cells.get(None, {})):
        for number in group if constant is None else (constant, None):
            yield from group.get(number, ())


def spent(
    place: KeyPlace, facts: Assumptions, when: When = (), besides: object = None
) -> KeyUse | None:
    """Return a use by which a key of a place was consumed, there or where it was taken from."""
    for use in place.root.uses:
        other = besides not in use.agents
        if use.data is None and other and not exclusive(when, use.when):
            if not place.apart(use.place, facts):
                return use
    for source, condition in place.root.sources:
        before = place.before(source)
        finding = spent(before, facts, (*when, *condition), place.root.agent)
        if finding is not None:
            return finding
    return None
