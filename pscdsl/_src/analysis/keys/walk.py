"""A walk of a block from its first equation to its last, which finds places and their uses.

Nested blocks are walked in place, with their parameters bound to their operands. A loop's body is
walked twice: a key that is from outside, or is carried on after it was consumed, then occurs again.
Branches are walked side by side. In place of a derivative or a batch, its origin is walked: it may
draw the same numbers again, or numbers that no row uses. Users' rules for derivatives are walked as
another branch than the function, because they run in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations as combined
from typing import Final

from pscdsl._src.analysis.keys import loops
from pscdsl._src.analysis.keys.loops import KeyLoop, Often
from pscdsl._src.analysis.keys.places import (
    AffineInteger,
    Branching,
    KeyArray,
    KeyPlace,
    KeyUse,
    KeyUses,
    Numbers,
    Seeds,
    UnknownInteger,
    When,
    share,
    unknown_number,
)
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var, walk
from pscdsl._src.primitives.associative import AssociativeScan, MapReduce
from pscdsl._src.primitives.control import Call, Control
from pscdsl._src.primitives.custom_derivatives import CustomJvp, CustomVjp, Rule, Ruled
from pscdsl._src.primitives.elementwise import Convert, Elementwise, Select
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate, Gather, Scatter
from pscdsl._src.primitives.random import FoldIn, SeedKey, is_unused
from pscdsl._src.primitives.regions import Layout, Region, Role
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Reshape,
    Reverse,
    Shaping,
    Slice,
    Transpose,
)
from pscdsl.typing.codes.keys import KeyReused
from pscdsl.typing.diagnostics import Span
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import KEY, DType

# A called function's uses of its keys, as its caller sees them.


@dataclass(frozen=True)
class Summary:
    """A function that was walked through, without its callers."""

    params: tuple[KeyPlace | None, ...]
    """Its parameters; None for those that are neither keys nor seeds."""
    numbers: tuple[AffineInteger, ...]
    """Its parameters as numbers, in the integers that keys are folded with."""
    results: tuple[KeyPlace | None, ...]
    seeds: Seeds
    """The keys that it makes of seeds other than its parameters."""


class Seen:
    """A summary in terms of one call, with operands for the parameters, and new roots."""

    def __init__(
        self,
        summary: Summary,
        call: Call,
        given: Sequence[KeyPlace | None],
        numbers: Sequence[AffineInteger],
        seeds: Seeds,
        span: Span,
    ) -> None:
        self._summary = summary
        self._name = call.function.name
        self._sizes: Mapping[str, Size] = dict(call.sizes)
        self._span = span
        self._given = {
            param.root: operand
            for param, operand in zip(summary.params, given, strict=True)
            if param is not None and operand is not None
        }
        self._given[summary.seeds] = KeyPlace.whole(seeds)
        self._known: dict[UnknownInteger, AffineInteger] = {}
        for param, operand in zip(summary.numbers, numbers, strict=True):
            self._known.update(dict.fromkeys(param.terms, operand))
        self._roots: dict[KeyArray, KeyArray] = {}
        self._call = object()

    def uses(self, when: When) -> Iterator[KeyUse]:
        """Yield the uses of operands by the call."""
        for root in self._given:
            for use in root.uses:
                if self._summary.seeds.arguments not in use.agents:
                    yield self._use(use, when)

    def results(self) -> Iterator[KeyPlace | None]:
        """Yield the places of the results; None for those that are neither keys nor seeds."""
        for place in self._summary.results:
            yield None if place is None else self._place(place)

    def _use(self, use: KeyUse, when: When = ()) -> KeyUse:
        deed = "folded" if use.data is not None else "consumed"
        # Uses of one parameter were compared within the function; two parameters may get the same
        # key.
        account = self._call, use.place.root
        return KeyUse(
            self._place(use.place),
            f"{deed} by `{self._name}`",
            self._span,
            None if use.data is None else self._number(use.data),
            None if use.at is None else self._number(use.at),
            frozenset({account, *map(self._agent, use.agents)}),
            (*when, *self._when(use.when)),
        )

    def _place(self, place: KeyPlace) -> KeyPlace:
        outer = self._given.get(place.root)
        if outer is not None:
            return place.within(outer, self._sizes)
        ranges = tuple(interval.substitute(self._sizes) for interval in place.ranges)
        return replace(place, root=self._root(place.root), ranges=ranges, name="")

    def _root(self, root: KeyArray) -> KeyArray:
        cached = self._roots.get(root)
        if cached is None:
            sources = tuple((self._place(s), self._when(when)) for s, when in root.sources)
            agent = None if root.agent is root else self._agent(root.agent)
            shape = root.substituted(self._sizes)
            cached = self._roots[root] = KeyArray(shape, "", sources, root.repeated, agent)
            cached.is_row = root.is_row
            if root.element is not None:
                cached.element = self._number(root.element)
            for use in root.uses:
                cached.add(self._use(use))
        return cached

    def _agent(self, agent: object) -> object:
        return self._root(agent) if isinstance(agent, KeyArray) else (self._call, id(agent))

    def _when(self, when: When) -> When:
        return tuple(((self._call, fork), branch) for fork, branch in when)

    def _number(self, number: AffineInteger) -> AffineInteger:
        for unknown in number.terms:
            if unknown not in self._known:
                self._known[unknown] = AffineInteger(0, {unknown.again(): 1})
        return number.replaced(self._known)


_MOVE: Final = (Shaping, Select, Gather, DynamicSlice, DynamicUpdate, Scatter)
"""Primitives that only move keys."""
_PARTS: Final = (Slice, Transpose, Reshape, Reverse, Broadcast, Gather, DynamicSlice)
"""Primitives that take parts of their first operand."""

Names = Mapping[Var, str]


def reused_keys(function: Function, names: Names, end: Span) -> tuple[KeyReused, ...]:
    """Return every second use of a key in a function; `end` is the span of its results."""
    if not concerns_keys(function.body):
        return ()
    ledger = KeyUses(function.facts)
    here = KeyWalk(ledger, names, function)
    results = zip(function.body.results, here.function(), strict=True)
    keys = [place for atom, place in results if place is not None and atom.type.dtype is KEY]
    ledger.returned(keys, end)
    return tuple(ledger.findings.values())


@lru_cache(maxsize=1024)
def summary(function: Function) -> Summary:
    """Return the summary of a function's uses of its keys."""
    here = KeyWalk(KeyUses(function.facts), {}, function)
    results = here.function()
    params = tuple(here.places.get(var) for var in function.body.params)
    numbers = tuple(here.numbers.of(var) for var in function.body.params)
    return Summary(params, numbers, results, here.seeds)


@lru_cache(maxsize=4096)
def concerns_keys(block: Block) -> bool:
    """Return whether a block contains keys."""
    return any(
        any(var.type.dtype is KEY for var in part.params)
        or any(
            any(var.type.dtype is KEY for var in equation.outputs)
            or (isinstance(call := equation.primitive, Call) and concerns_keys(call.function.body))
            for equation in walk(part)
        )
        for part in _blocks_with_rules(block)
    )


@lru_cache(maxsize=4096)
def makes_keys(block: Block) -> bool:
    """Return whether a block makes keys of seeds."""
    return any(
        isinstance(primitive := equation.primitive, SeedKey)
        or (isinstance(primitive, Call) and makes_keys(primitive.function.body))
        for each in _blocks_with_rules(block)
        for equation in walk(each)
    )


def _blocks_with_rules(block: Block) -> Iterator[Block]:
    """Yield a block, and the blocks of all rules for derivatives in it."""
    pending, seen = [block], set[Rule]()
    while pending:
        current = pending.pop()
        yield current
        for equation in walk(current):
            for rule in _rules(equation.primitive):
                if rule.given not in seen:
                    seen.add(rule.given)
                    pending.append(rule.block)


def _rules(primitive: Primitive) -> list[Rule]:
    """Return the rules of users for the derivative of a function; the library's draw no numbers."""
    if isinstance(primitive, CustomJvp):
        return [] if primitive.rule.linear else [primitive.rule]
    return [primitive.forward, primitive.backward] if isinstance(primitive, CustomVjp) else []


class KeyWalk:
    """One run through a function."""

    def __init__(self, ledger: KeyUses, names: Names, function: Function) -> None:
        self.ledger = ledger
        self.names = names
        self._function = function
        self.places: dict[Var, KeyPlace] = {}
        """The places of keys, and of integers that may become seeds."""
        self.numbers = Numbers(ledger.facts)
        self.seeds = Seeds()
        self.when: When = ()
        self._ruling: dict[Rule, set[tuple[KeyPlace | None, ...]]] = {}
        """The rules that are being walked, and with which keys they have called their function."""

    def function(self) -> tuple[KeyPlace | None, ...]:
        """Walk the function; return its results' places, None for those neither keys nor seeds."""
        makes = makes_keys(self._function.body)
        for var in self._function.body.params:
            if var.type.dtype is KEY:
                self.new(var, var.hint)
            elif var.type.dtype.is_integer and makes:
                seeds = [(KeyPlace.whole(self.seeds), ())]
                self.new(var, var.hint, seeds, agent=self.seeds.arguments)
                if not var.type.shape:
                    self.places[var].root.element = self.numbers.of(var)
        return self.block(self._function.body)

    def block(self, block: Block) -> tuple[KeyPlace | None, ...]:
        """Walk a block whose parameters are bound."""
        passed = 0
        for index, equation in enumerate(block.equations):
            if passed:
                passed -= 1
                continue
            origin = self._function.origins.get(equation)
            if origin is None:
                self.equation(equation)
                continue
            passed = origin.count - 1
            for each in block.equations[index : index + origin.count]:
                self.forget(each.outputs)
            if origin.block is not None:
                self._inline(origin.block, origin.inputs, origin.outputs)
        return tuple(self.place(atom) for atom in block.results)

    def forget(self, variables: Sequence[Var]) -> None:
        """Forget variables that another turn of a loop computes again."""
        self.numbers.forget(variables)
        for var in variables:
            self.places.pop(var, None)

    def unknown(self, var: Var) -> None:
        """Say that nothing is known of a variable."""
        self.forget((var,))
        if var.type.dtype.is_integer:
            self.numbers.known[var] = unknown_number()

    def place(self, atom: Atom) -> KeyPlace | None:
        """Return the place of a key; None for an atom that is neither a key nor a seed."""
        return None if isinstance(atom, Literal) else self.places.get(atom)

    def name(self, var: Var) -> str:
        """Return the name of a variable in the code."""
        return self.names.get(var) or var.hint

    def bind(self, var: Var, place: KeyPlace) -> None:
        """Set the place of a variable."""
        self.places[var] = place.called(self.name(var))

    def new(
        self,
        var: Var,
        name: str = "",
        sources: Sequence[tuple[KeyPlace, When]] = (),
        repeated: bool = False,
        agent: object = None,
    ) -> None:
        """Make a variable a new array of keys."""
        root = KeyArray(var.type.shape, name or self.name(var), tuple(sources), repeated, agent)
        self.places[var] = KeyPlace.whole(root)

    def equation(self, equation: Equation) -> None:
        """Walk one equation."""
        primitive = equation.primitive
        self.forget(equation.outputs)
        if isinstance(primitive, AssociativeScan):
            loops.prefixes(self, primitive, equation)
        elif isinstance(primitive, MapReduce):
            loops.total(self, primitive, equation)
        elif isinstance(primitive, Call):
            self._call(primitive, equation)
        elif isinstance(primitive, Ruled):
            self._walk_ruled(primitive, equation)
        elif isinstance(primitive, Control) and primitive.layout.run:
            self._control(primitive.layout, equation)
        else:
            self.numbers.follow(equation)
            self._plain(equation)

    # Equations without blocks.

    def _plain(self, equation: Equation) -> None:
        primitive = equation.primitive
        if isinstance(primitive, Elementwise):
            return
        keys = [self.place(operand) for operand in equation.inputs if operand.type.dtype is KEY]
        places = [place for place in keys if place is not None]
        if not places and all(var.type.dtype is not KEY for var in equation.outputs):
            self._integers(equation)
            return
        if isinstance(primitive, _MOVE):
            self._moved(equation, places)
            return
        if isinstance(primitive, SeedKey):
            (seed,), (var,) = equation.inputs, equation.outputs
            if is_unused(seed):
                self.new(var)
                return
            known, place = self.place(seed), self.seeded(seed)
            name = self.name(var) or (f"psc.random.key({known})" if known else place.name)
            self.bind(var, replace(place, name=name))
            return
        for place in places:
            if isinstance(primitive, FoldIn):
                data = self.numbers.of(equation.inputs[1])
                self.use(place, "folded", equation.span, data)
            else:
                self.use(place, "consumed", equation.span)
        for var in equation.outputs:
            if var.type.dtype is KEY:
                self.new(var)

    def _integers(self, equation: Equation) -> None:
        """Record integers from a place with seeds as possible seeds."""
        primitive, first = equation.primitive, None
        if equation.inputs:
            first = self.place(equation.inputs[0])
        if first is None:
            return
        if isinstance(primitive, Convert):
            (output,) = equation.outputs
            if _holds(output.type.dtype, equation.inputs[0].type.dtype):
                self.bind(output, first)
        elif isinstance(primitive, _PARTS):
            self._moved(equation, [first])

    def seeded(self, seed: Atom) -> KeyPlace:
        """Return the keys that are made of seeds: elements of all keys that there are."""
        place = self.place(seed)
        if place is not None:
            return place
        number, shape = self.numbers.of(seed), seed.type.shape
        several = bool(shape) and not (len(shape) == 1 and self.numbers.all_differ(number))
        name = f"psc.random.key({number.shown()})"
        root = KeyArray(shape, name, ((KeyPlace.whole(self.seeds), ()),), several)
        if not shape:
            root.element = number
        return KeyPlace.whole(root)

    def use(
        self, place: KeyPlace, what: str, span: Span, data: AffineInteger | None = None
    ) -> None:
        """Note a use."""
        self.ledger.record(KeyUse(place, what, span, data, when=self.when))

    def _moved(self, equation: Equation, given: Sequence[KeyPlace]) -> None:
        primitive, (output,) = equation.primitive, equation.outputs
        part: KeyPlace | None = None
        if isinstance(primitive, Slice):
            part = given[0].sliced(primitive.start, primitive.limit, primitive.stride)
        elif isinstance(primitive, Transpose):
            part = given[0].transposed(primitive.permutation)
        elif isinstance(primitive, Reshape):
            part = given[0].reshaped(equation.inputs[0].type.shape, primitive.shape)
        elif isinstance(primitive, Broadcast) and _keeps_size(primitive):
            part = given[0].reshaped(equation.inputs[0].type.shape, primitive.shape)
        if part is not None:
            self.bind(output, part)
            return
        sources = [(place, ()) for place in given]
        name = f"{given[0]}[…]" if isinstance(primitive, Gather | DynamicSlice) else ""
        self.new(output, name, sources, self._repeats(equation, given))
        if isinstance(primitive, DynamicSlice):
            self.places[output].root.element = self._element(primitive, equation.inputs)

    def _element(self, primitive: DynamicSlice, inputs: Sequence[Atom]) -> AffineInteger | None:
        """Return the index of a part along the first axis, or None if the index may be clamped."""
        shape, number = inputs[0].type.shape, self.numbers.of(inputs[1])
        one = primitive.sizes[0] == 1 and primitive.sizes[1:] == shape[1:]
        return number if one and number.within(shape[0], self.ledger.facts) else None

    def _repeats(self, equation: Equation, given: Sequence[KeyPlace]) -> bool:
        """Return whether one key may be at several places of an equation's result."""
        primitive, output = equation.primitive, equation.outputs[0]
        if isinstance(primitive, Slice | Transpose | Reshape | Reverse | DynamicSlice):
            return False
        if isinstance(primitive, Select):
            predicate, *either = equation.inputs
            spread = any(array.type.shape != output.type.shape for array in either)
            mixed = len(set(given)) > 1 and bool(predicate.type.shape)
            return spread or (mixed and self._may_share(given))
        if isinstance(primitive, Concatenate):
            return self._may_share(given)
        if isinstance(primitive, DynamicUpdate):
            return self._may_share(given)
        if isinstance(primitive, Scatter):
            x, _, updates = equation.inputs
            return x.type.rank != updates.type.rank or self._may_share(given)
        if isinstance(primitive, Gather):
            return any(size != 1 for size in equation.inputs[1].type.shape[:-1])
        return True

    def _may_share(self, given: Sequence[KeyPlace]) -> bool:
        """Return whether one key may be in two of the places."""
        return any(share(*pair, self.ledger.facts) for pair in combined(given, 2))

    # Branches, loops, calls.

    def _control(self, layout: Layout, equation: Equation) -> None:
        body = next((each for each in layout.regions if each.is_body), None)
        if body is not None:
            self._loop(layout, body, equation)
        elif layout.is_repeated:
            self._choice(layout, equation)
        else:
            operands = layout.operands(equation.inputs)
            for region in layout.run:
                atoms = [atom for group in region.takes for atom in operands[group]]
                self._inline(region.block, atoms, equation.outputs)

    def _choice(self, layout: Layout, equation: Equation) -> None:
        fork, outer = Branching(), self.when
        operands = layout.operands(equation.inputs)
        outcomes: list[tuple[tuple[KeyPlace | None, ...], When]] = []
        for number, region in enumerate(layout.regions):
            self.when = (*outer, (fork, number))
            for group, params in region.params():
                self.enter(params, operands[group])
            outcomes.append((self.block(region.block), ((fork, number),)))
        self.when = outer
        for index, var in enumerate(equation.outputs):
            column = [(results[index], when) for results, when in outcomes]
            self.join(var, [(place, when) for place, when in column if place is not None])

    def enter(self, params: Sequence[Var], given: Sequence[Atom]) -> None:
        """Bind parameters to operands."""
        for var, atom in zip(params, given, strict=True):
            place, number = self.place(atom), self.numbers.of(atom)
            self.unknown(var)
            if place is not None:
                self.bind(var, place)
            if var.type.dtype.is_integer:
                self.numbers.known[var] = number

    def join(
        self, var: Var, sources: Sequence[tuple[KeyPlace, When]], repeated: bool = False
    ) -> None:
        """Make a variable one of several places."""
        if var.type.dtype is not KEY:
            return
        places = {place for place, _ in sources}
        if len(places) == 1 and not repeated:
            self.bind(var, next(iter(places)))
        else:
            self.new(var, sources=sources, repeated=repeated)

    def _loop(self, layout: Layout, body: Region, equation: Equation) -> None:
        operands, outputs = layout.operands(equation.inputs), layout.results(equation.outputs)
        carry = next(group for group in body.gives if group.role is Role.CARRY)
        state = dict(body.params())[carry]
        stacked = [var for group in outputs if group is not carry for var in outputs[group]]
        loop = KeyLoop(
            self, state, self.carried_keys(operands[carry]), self._count_runs(layout), stacked
        )
        for turn in loop.turns():
            loop.enter_carry(operands[carry], body.block, turn)
            for region in layout.regions:
                for group, params in region.params():
                    if group.role is Role.ROW:
                        for var, atom in zip(params, operands[group], strict=True):
                            loop.enter_row(var, atom, turn)
                    elif group is not carry:
                        self.enter(params, operands[group])
                    elif region is not body:
                        self.enter(params, state)
                        loop.enter_test(params)
                places = self.block(region.block)
                if region is body:
                    loop.gave(region.block, places)
                else:
                    loop.tested()
        loop.leave(equation.outputs)

    def _count_runs(self, layout: Layout) -> Often:
        """Return how often a loop's body may run, by its condition or its number of rows."""
        decisions = [
            group for group in layout.groups if group.role is Role.DECISION and group.count
        ]
        (times,) = [region.times for region in layout.regions if region.is_body]
        if times is None:
            return Often(never=True, several=True)
        return Often.of(times, self.ledger.facts, bool(decisions))

    def carried_keys(self, carry: Sequence[Atom]) -> list[KeyPlace | None]:
        """Return the keys that a loop carries at first."""
        return [self.place(value) if value.type.dtype is KEY else None for value in carry]

    def _inline(self, block: Block, given: Sequence[Atom], outputs: Sequence[Atom]) -> None:
        """Walk a block that runs once, in place."""
        self.enter(block.params, given)
        places = self.block(block)
        for atom, result, place in zip(outputs, block.results, places, strict=True):
            if isinstance(atom, Literal) or atom in self.places:
                continue
            if place is not None and atom.type == result.type:
                self.bind(atom, place)
            elif place is not None:
                self.new(atom, sources=[(place, ())])
            elif atom.type.dtype.is_integer:
                self.numbers.known[atom] = self.numbers.of(result)

    def _walk_ruled(self, primitive: Ruled, equation: Equation) -> None:
        """Walk a function, or its rules in its place: the last of two any number of times."""
        captured, arguments = primitive.own(equation.inputs)
        operands = (*captured, *arguments)
        rules = _rules(primitive)
        called = self._ruling.get(rules[0].given) if rules else None
        if called is not None:
            # A rule that calls its function draws the numbers of the function, once or often.
            keys = tuple([self.place(operand) for operand in operands if operand.type.dtype is KEY])
            if keys in called:
                for var in equation.outputs:
                    if var.type.dtype is KEY:
                        self.new(var)
                return
            called.add(keys)
        if called is not None or not any(concerns_keys(rule.block) for rule in rules):
            self._inline(primitive.body, operands, equation.outputs)
            return
        fork, outer = Branching(), self.when
        self.when = (*outer, (fork, 0))
        self._inline(primitive.body, operands, equation.outputs)
        self.when = (*outer, (fork, 1))
        self._ruling.update({rule.given: set() for rule in rules})
        known = [*primitive.of_block(1, equation.inputs), *arguments]
        self._rule(rules[0].block, known)
        if len(rules) == 2:
            saved = rules[0].block.results[len(primitive.body.results) :]
            known = [*primitive.of_block(2, equation.inputs), *saved]
            for _ in range(2):
                self._rule(rules[1].block, known)
        for rule in rules:
            del self._ruling[rule.given]
        self.when = outer

    def _rule(self, block: Block, known: Sequence[Atom]) -> None:
        """Walk the block of a rule, given all but tangents."""
        self.enter(block.params[: len(known)], known)
        self.forget(block.params[len(known) :])
        self.block(block)

    def _call(self, primitive: Call, equation: Equation) -> None:
        if not concerns_keys(primitive.function.body):
            return
        known = summary(primitive.function)
        given = [
            None if param is None else self.seeded(atom)
            for param, atom in zip(known.params, equation.inputs, strict=True)
        ]
        numbers = [self.numbers.of(atom) for atom in equation.inputs]
        seen = Seen(known, primitive, given, numbers, self.seeds, equation.span)
        for use in seen.uses(self.when):
            self.ledger.record(use)
        for var, place in zip(equation.outputs, seen.results(), strict=True):
            if place is not None:
                self.bind(var, place)


def _holds(wide: DType, narrow: DType) -> bool:
    """Return whether one type holds all integers of another."""
    if not wide.is_integer:
        return False
    (least, most), (low, high) = wide.range, narrow.range
    return least <= low and high <= most


def _keeps_size(primitive: Broadcast) -> bool:
    return all(size == 1 for axis, size in enumerate(primitive.shape) if axis not in primitive.dims)
