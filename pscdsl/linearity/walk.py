"""A block from its first equation to its last: what each variable is, what each equation uses.

Nested blocks are walked in place, with their parameters bound to what they are given.  A loop's
body is walked at least twice: a key that is from outside, or is carried on after it was consumed,
is then met again.  Branches are walked side by side.  In place of a derivative or a batch, what it
was made of is walked: it may draw the same numbers again, or such that no row uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from pscdsl.ir import Atom, Block, Equation, Function, Literal, Origin, Var, walk
from pscdsl.linearity import combinations
from pscdsl.linearity.calls import Seen, Summary
from pscdsl.linearity.loops import Loop, Often
from pscdsl.linearity.numbers import Number, Numbers
from pscdsl.linearity.places import Fork, Place, Root, When
from pscdsl.linearity.uses import Ledger, Use
from pscdsl.primitives.control import AssociativeScan, Call, MapReduce, Scan, Switch, While
from pscdsl.primitives.control.custom_derivatives import Ruled
from pscdsl.primitives.control.implicit import Implicit
from pscdsl.primitives.control.remat import Checkpoint
from pscdsl.primitives.dynamic_slicing import DynamicSlice, DynamicUpdate
from pscdsl.primitives.elementwise import Elementwise, Select
from pscdsl.primitives.indexing import Gather, Scatter
from pscdsl.primitives.random import FoldIn, SeedKey
from pscdsl.primitives.shaping import Broadcast, Concatenate, Reshape, Shaping, Slice, Transpose
from pscdsl.typing.codes.keys import KeyReused
from pscdsl.typing.dtypes import KEY
from pscdsl.typing.spans import Span

_MOVE: Final = (Shaping, Select, Gather, DynamicSlice, DynamicUpdate, Scatter)
"""What only says where keys go."""

Names = Mapping[Var, str]


def reused_keys(function: Function, names: Names, end: Span) -> tuple[KeyReused, ...]:
    """Every second use of a key in a function; `end` is the place of what it returns."""
    if not concerns_keys(function.body):
        return ()
    ledger = Ledger(function.facts)
    here = Walk(ledger, names, function.origins)
    for place in here.function(function):
        if place is not None:
            ledger.returned(place, end)
    return tuple(ledger.findings.values())


@lru_cache(maxsize=1024)
def summary(function: Function) -> Summary:
    """What a function does with its keys."""
    ledger = Ledger(function.facts)
    here = Walk(ledger, {}, function.origins)
    results = here.function(function)
    params = tuple(here.places.get(var) for var in function.body.params)
    numbers = tuple(here.numbers.of(var) for var in function.body.params)
    return Summary(params, numbers, results)


@lru_cache(maxsize=4096)
def concerns_keys(block: Block) -> bool:
    """Whether a block has to do with keys."""
    return any(var.type.dtype is KEY for var in block.params) or any(
        var.type.dtype is KEY for equation in walk(block) for var in equation.outputs
    )


class Walk:
    """One run through a function."""

    def __init__(self, ledger: Ledger, names: Names, origins: Mapping[Equation, Origin]) -> None:
        self.ledger = ledger
        self.names = names
        self.origins = origins
        self.places: dict[Var, Place] = {}
        self.numbers = Numbers(ledger.facts)
        self.seeded: list[tuple[Number, Place]] = []
        """The keys that were made of seeds, by these."""
        self.when: When = ()
        self.late = False
        """Whether a loop is in its third turn or later: counters were compared in the second."""

    def function(self, function: Function) -> tuple[Place | None, ...]:
        """The whole function: the places of its results, None for what is no key."""
        for var in function.body.params:
            if var.type.dtype is KEY:
                self.new(var, var.hint)
            elif var.type.dtype.is_integer:
                self.numbers.give(var)
        return self.block(function.body)

    def block(self, block: Block) -> tuple[Place | None, ...]:
        """A block whose parameters are bound."""
        passed = 0
        for equation in block.equations:
            if passed:
                passed -= 1
                continue
            origin = self.origins.get(equation)
            if origin is None:
                self.equation(equation)
                continue
            passed = origin.count - 1
            if origin.block is not None:
                self._inline(origin.block, origin.inputs, origin.outputs)
        return tuple(self.place(atom) for atom in block.results)

    def place(self, atom: Atom) -> Place | None:
        """Where a key is from; None for what is no key."""
        return None if isinstance(atom, Literal) else self.places.get(atom)

    def name(self, var: Var) -> str:
        """What the code calls a variable."""
        return self.names.get(var) or var.hint

    def bind(self, var: Var, place: Place) -> None:
        """Say what a variable is."""
        self.places[var] = place.called(self.name(var))

    def new(
        self,
        var: Var,
        name: str = "",
        sources: Sequence[tuple[Place, When]] = (),
        repeated: bool = False,
        agent: object = None,
    ) -> None:
        """A variable that is an array of keys of its own."""
        root = Root(var.type.shape, name or self.name(var), tuple(sources), repeated, agent)
        self.places[var] = Place.whole(root)

    def equation(self, equation: Equation) -> None:
        """One equation."""
        primitive = equation.primitive
        self.numbers.forget(equation.outputs)
        if isinstance(primitive, Scan):
            self._scan(primitive, equation)
        elif isinstance(primitive, While):
            self._while(primitive, equation)
        elif isinstance(primitive, AssociativeScan):
            combinations.prefixes(self, primitive, equation)
        elif isinstance(primitive, MapReduce):
            combinations.total(self, primitive, equation)
        elif isinstance(primitive, Switch):
            self._switch(primitive, equation)
        elif isinstance(primitive, Call):
            self._call(primitive, equation)
        elif isinstance(primitive, Checkpoint):
            self._inline(primitive.body, equation.inputs, equation.outputs)
        elif isinstance(primitive, Ruled):
            first, last = primitive.captured[0], sum(primitive.captured)
            given = (*equation.inputs[:first], *equation.inputs[last:])
            self._inline(primitive.body, given, equation.outputs)
        elif isinstance(primitive, Implicit):
            self._inline(primitive.solver, primitive.run(equation.inputs), equation.outputs)
        else:
            self.numbers.follow(equation)
            self._plain(equation)

    # Equations without blocks.

    def _plain(self, equation: Equation) -> None:
        primitive = equation.primitive
        if isinstance(primitive, Elementwise):
            return
        given = [place for each in equation.inputs if (place := self.place(each)) is not None]
        if not given and all(var.type.dtype is not KEY for var in equation.outputs):
            return
        if isinstance(primitive, _MOVE):
            self._moved(equation, given)
            return
        if isinstance(primitive, SeedKey):
            self._seeded(equation)
            return
        for place in given:
            if isinstance(primitive, FoldIn):
                data = self.numbers.of(equation.inputs[1])
                self.use(place, "folded", equation.span, data)
            else:
                self.use(place, "consumed", equation.span)
        for var in equation.outputs:
            if var.type.dtype is KEY:
                self.new(var)

    def _seeded(self, equation: Equation) -> None:
        """A key from a seed: the one that was made of the same seed before, if there is one."""
        (var,), seed = equation.outputs, self.numbers.of(equation.inputs[0])
        known = seed.terms.keys() <= self.numbers.given
        for other, place in self.seeded if known else ():
            if other == seed:
                self.bind(var, place)
                return
        text = "…" if seed.terms else str(seed.constant)
        self.new(var, self.name(var) or f"psc.random.key({text})")
        if known:
            self.seeded.append((seed, self.places[var]))

    def use(self, place: Place, what: str, span: Span, data: Number | None = None) -> None:
        """Note a use."""
        self.record(Use(place, what, span, data, when=self.when))

    def record(self, use: Use) -> None:
        """Note a use, unless its number was compared with all others already."""
        numbered = use.data is not None or use.place.root.element is not None
        if not (self.late and numbered):
            self.ledger.record(use)

    def _moved(self, equation: Equation, given: Sequence[Place]) -> None:
        primitive, (output,) = equation.primitive, equation.outputs
        part: Place | None = None
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

    def _element(self, primitive: DynamicSlice, inputs: Sequence[Atom]) -> Number | None:
        """Which place along the first axis a part is, if it is one that is not clamped."""
        shape, number = inputs[0].type.shape, self.numbers.of(inputs[1])
        one = primitive.sizes[0] == 1 and primitive.sizes[1:] == shape[1:]
        return number if one and number.within(shape[0], self.ledger.facts) else None

    def _repeats(self, equation: Equation, given: Sequence[Place]) -> bool:
        """Whether one key may stand at several places of what an equation moves keys to."""
        primitive, output = equation.primitive, equation.outputs[0]
        if isinstance(primitive, Broadcast):
            return True
        if isinstance(primitive, Gather):
            return any(size != 1 for size in equation.inputs[1].type.shape[:-1])
        if isinstance(primitive, Concatenate):
            return any(
                one.root is other.root and not one.apart(other, self.ledger.facts)
                for index, one in enumerate(given)
                for other in given[:index]
            )
        if isinstance(primitive, Select | Scatter | DynamicUpdate):
            return any(
                atom.type.dtype is KEY and not atom.type.shape and bool(output.type.shape)
                for atom in equation.inputs
            )
        return False

    # Branches, loops, calls.

    def _switch(self, primitive: Switch, equation: Equation) -> None:
        fork, outer = Fork(), self.when
        found: list[tuple[tuple[Place | None, ...], When]] = []
        for number, branch in enumerate(primitive.branches):
            self.when = (*outer, (fork, number))
            self.enter(branch.params, equation.inputs[1:])
            found.append((self.block(branch), ((fork, number),)))
        self.when = outer
        for index, var in enumerate(equation.outputs):
            column = [(results[index], when) for results, when in found]
            self.join(var, [(place, when) for place, when in column if place is not None])

    def enter(self, params: Sequence[Var], given: Sequence[Atom]) -> None:
        """Bind parameters to what they are given."""
        for var, atom in zip(params, given, strict=True):
            place = self.place(atom)
            if place is not None:
                self.bind(var, place)
            elif var.type.dtype.is_integer:
                self.numbers.known[var] = self.numbers.of(atom)

    def join(self, var: Var, sources: Sequence[tuple[Place, When]]) -> None:
        """A variable that is one of several places."""
        if var.type.dtype is not KEY:
            return
        places = {place for place, _ in sources}
        if len(places) == 1:
            self.bind(var, next(iter(places)))
        else:
            self.new(var, sources=sources)

    def _scan(self, primitive: Scan, equation: Equation) -> None:
        captured, carry, arrays = primitive.roles(equation.inputs)
        held, state, rows = primitive.roles(primitive.body.params)
        loop = Loop(self, state, Often.of(primitive.length, self.ledger.facts))
        for turn in loop.turns():
            self.enter(held, captured)
            loop.enter_carry(carry, primitive.body, turn)
            for var, atom in zip(rows, arrays, strict=True):
                loop.enter_row(var, atom, turn)
            loop.results.append(self.block(primitive.body))
        loop.leave(equation.outputs, carry)

    def _while(self, primitive: While, equation: Equation) -> None:
        by_cond, by_body, carry = primitive.roles(equation.inputs)
        held, state = _parts(primitive.body.params, primitive.body_captured)
        asked, tested = _parts(primitive.cond.params, primitive.cond_captured)
        loop = Loop(self, state, Often(never=True, several=True))
        for turn in loop.turns():
            loop.enter_carry(carry, primitive.body, turn)
            self.enter(asked, by_cond)
            self.enter(tested, state)
            self.block(primitive.cond)
            self.enter(held, by_body)
            loop.results.append(self.block(primitive.body))
        loop.leave(equation.outputs, carry)

    def _inline(self, block: Block, given: Sequence[Atom], outputs: Sequence[Atom]) -> None:
        """A block that is run once, where it stands."""
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

    def _call(self, primitive: Call, equation: Equation) -> None:
        if not concerns_keys(primitive.function.body):
            return
        given = [self.place(atom) for atom in equation.inputs]
        numbers = [self.numbers.of(atom) for atom in equation.inputs]
        seen = Seen(summary(primitive.function), primitive, given, numbers, equation.span)
        for use in seen.uses(self.when):
            self.record(use)
        for var, place in zip(equation.outputs, seen.results(), strict=True):
            if place is not None:
                self.bind(var, place)


def _parts(items: Sequence[Var], count: int) -> tuple[Sequence[Var], Sequence[Var]]:
    return items[:count], items[count:]


def _keeps_size(primitive: Broadcast) -> bool:
    return all(size == 1 for axis, size in enumerate(primitive.shape) if axis not in primitive.dims)
