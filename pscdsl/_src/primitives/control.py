"""Primitives that hold functions and blocks: common parts, calls, branches, checkpoints.

Blocks are closed, so values from outside are passed as operands: captured operands come first, and
are equal in every step of a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import compress
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from typing import Literal as LiteralType

from pscdsl._src.interpreters.cut import (
    Cut,
    Halves,
    cut_through,
    needed,
    split_block,
    split_function,
)
from pscdsl._src.interpreters.replay import (
    Environment,
    Mask,
    append,
    batch_block,
    batch_function,
    closed,
    has_tangent,
    jvp_block,
    jvp_function,
    repeated,
    replay,
    transpose,
    transpose_block,
    transpose_function,
    zeros,
)
from pscdsl._src.ir.axis_rules import AxisRule
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.elementwise import Clamp, Select, equal, select_rows
from pscdsl._src.primitives.regions import Group, Layout, Nesting, Region, Role
from pscdsl._src.primitives.shaping import Broadcast, same_sizes
from pscdsl.typing.array_types import ArrayType, substitute_tree
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size, substitute
from pscdsl.typing.dtypes import BOOL, I32

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


# Common parts of primitives that hold blocks, calls, and primitives made of others.


# Common parts of primitives that hold blocks.


def same_type(facts: Assumptions, left: ArrayType, right: ArrayType) -> bool:
    """Return whether two types are provably equal for all admitted sizes."""
    if left == right:
        return True
    return (
        left.dtype is right.dtype
        and left.rank == right.rank
        and all(map(facts.equal, left.shape, right.shape))
    )


def block_cost(block: Block) -> Size:
    """Return the cost of one run of a block."""
    total: Size = 0
    for equation in block.equations:
        inputs = tuple([atom.type for atom in equation.inputs])
        outputs = tuple([var.type for var in equation.outputs])
        total = total + equation.primitive.cost(inputs, outputs)
    return total


def substitute_block(block: Block, env: Mapping[str, Size]) -> Block:
    """Return the block with sizes substituted for names."""
    known: dict[Atom, Var] = {}
    types: dict[ArrayType, ArrayType] = {}

    def define(var: Var) -> Var:
        type_ = types.get(var.type)
        if type_ is None:
            type_ = types[var.type] = var.type.substitute(env)
        known[var] = new = Var(type_, var.hint)
        return new

    def use(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else known[atom]

    params = tuple([define(var) for var in block.params])
    equations = tuple(
        [
            Equation(
                equation.primitive.substitute(env),
                tuple([use(atom) for atom in equation.inputs]),
                tuple([define(var) for var in equation.outputs]),
                equation.span,
            )
            for equation in block.equations
        ]
    )
    return Block(params, equations, tuple([use(atom) for atom in block.results]))


def on_one_device(function: Function) -> Function:
    """Return a function on one device along each of its axes of a mesh."""
    return on_devices(function, dict.fromkeys(function.mesh, 1))


def on_devices(function: Function, counts: Mapping[str, int]) -> Function:
    """Return a function on so many devices along some of its axes of a mesh."""
    if not counts:
        return function
    env: dict[str, Size] = {**counts}
    facts = [fact.substitute(env) for fact in function.facts.facts]
    return replace(
        function,
        dims=tuple([name for name in function.dims if name not in env]),
        mesh=tuple([name for name in function.mesh if name not in env]),
        facts=Assumptions(tuple([each for each in facts if each.names() or not each.holds({})])),
        body=substitute_block(function.body, env),
        result=None if function.result is None else substitute_tree(function.result, env),
        origins={},
    )


@dataclass(frozen=True)
class Control(Primitive):
    """Base of the primitives that hold blocks; their layout tells passes how."""

    @cached_property
    def layout(self) -> Layout:
        """Its operands and results by role, and its blocks, in the order of its fields."""
        return Layout()

    def chosen(self, operands: Sequence[Atom]) -> int | None:
        """Return the index of the only region that runs, if these operands decide that."""
        return None

    def blocks(self) -> tuple[Block, ...]:
        return tuple([region.block for region in self.layout.regions])

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return self.layout.total(block_cost)

    def substitute(self, env: Mapping[str, Size]) -> Self:
        blocks = [substitute_block(block, env) for block in self.blocks()]
        return super().substitute(env).with_blocks(blocks)

    def with_blocks(self, blocks: Sequence[Block], counts: Mapping[str, int] | None = None) -> Self:
        """Return the primitive with other blocks, in region order, and other `Layout.counts`."""
        changed: dict[str, Any] = dict(counts or {})
        for region, block in zip(self.layout.regions, blocks, strict=True):
            several = isinstance(getattr(self, region.field), tuple)
            changed[region.field] = (*changed.get(region.field, ()), block) if several else block
        return replace(self, **changed)

    def require(
        self, facts: Assumptions, what: str, given: Sequence[ArrayType], wanted: Sequence[ArrayType]
    ) -> None:
        """Refuse types that are not equal."""
        if len(given) != len(wanted):
            self.ill_typed(f"{what}: {len(given)} given, {len(wanted)} taken")
        for index, (one, other) in enumerate(zip(given, wanted, strict=True)):
            if not same_type(facts, one, other):
                self.ill_typed(f"{what}: number {index} is {one}, not {other}")


# Primitives that define a computation; a program of other primitives carries it out.


@dataclass(frozen=True)
class Expanded(Control):
    """Base of those that are cut in two, and transposed, as their program is."""

    def program(self, facts: Assumptions, operands: Types) -> Block:
        """Return a program with the same results for operands of these types."""
        raise NotImplementedError

    def as_reductions(self, facts: Assumptions, operands: Types) -> Block | None:
        """Return the program if it combines rows by reductions; None if by loops over them."""
        return None

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        if all(map(cut.is_late, operands)):
            return super().split(cut, operands)
        types = tuple([operand.type for operand in operands])
        block = self.program(cut.early.facts, types)
        bindings = dict(zip(block.params, operands, strict=True))
        return tuple(cut_through(cut, block, bindings))

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        here = next(v for v in cotangents if v is not None).builder.program.current
        types = tuple(
            [operand if isinstance(operand, ArrayType) else operand.type for operand in operands]
        )
        linear = tuple([isinstance(operand, ArrayType) for operand in operands])
        block = self.program(here.facts, types)
        halves = split_block(here.facts, block, linear, (True,) * len(block.results))
        known = [operand for operand in operands if not isinstance(operand, ArrayType)]
        saved = halves.gather(known, replay(here, halves.early, known))
        remaining = iter(
            transpose(here, halves.late, [*saved, *compress(types, linear)], cotangents)[
                len(saved) :
            ]
        )
        return [next(remaining) if is_linear else None for is_linear in linear]


# Calls of functions.


@lru_cache(maxsize=1024)
def function_cost(function: Function) -> Size:
    """Return the cost of one run of a function, in its own sizes."""
    return block_cost(function.body)


@dataclass(frozen=True)
class Call(Control, name="call"):
    """A call of another function at certain sizes, whose requirements must be proven."""

    function: Function
    sizes: tuple[tuple[str, Size], ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        function, env = self.function, dict(self.sizes)
        if set(env) != set(function.dims) or len(env) != len(self.sizes):
            self.ill_typed(f"sizes given: {', '.join(env)}; taken: {', '.join(function.dims)}")
        body = function.body
        known: dict[ArrayType, ArrayType] = {}  # many operands and results are of few types

        def here(declared: ArrayType) -> ArrayType:
            cached = known.get(declared)
            if cached is None:
                cached = known[declared] = declared.substitute(env)
            return cached

        self.require(facts, "operands", operands, [here(var.type) for var in body.params])
        required = [fact.substitute(env) for fact in function.facts.facts]
        for name, size in self.sizes:
            required.append(Fact("<=", function.facts.lower_bound(name), size))
        for fact in required:
            if not facts.proves(fact):
                self.ill_typed(f"{fact} is not known to hold")
        return tuple([here(atom.type) for atom in body.results])

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return here.call(self.function, dict(self.sizes), operands)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.call(self.function, dict(self.sizes), operands)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return substitute(function_cost(self.function), dict(self.sizes))

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        active = tuple([tangent is not None for tangent in tangents])
        function, active_results = jvp_function(self.function, active)
        moving = [tangent for tangent in tangents if tangent is not None]
        results = Call(function, self.sizes).bind(*primals, *moving)
        remaining = iter(results[len(active_results) :])
        return results[: len(active_results)], [
            next(remaining) if moves else None for moves in active_results
        ]

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        late = tuple(map(cut.is_late, operands))
        early_function, late_function, halves = split_function(self.function, late)
        first = [operand for operand in operands if not cut.is_late(operand)]
        early = cut.early.bind(Call(early_function, self.sizes), first)
        saved = [cut.later(value) for value in halves.gather(first, early)]
        second = [operand for operand in operands if cut.is_late(operand)]
        results = cut.late.bind(Call(late_function, self.sizes), [*saved, *second])
        return halves.merged(early, results)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        linear = tuple([isinstance(operand, ArrayType) for operand in operands])
        has_cotangent = tuple([cotangent is not None for cotangent in cotangents])
        function, with_cotangents = transpose_function(self.function, linear, has_cotangent)
        known = [operand for operand in operands if not isinstance(operand, ArrayType)]
        moving = [cotangent for cotangent in cotangents if cotangent is not None]
        remaining = iter(Call(function, self.sizes).bind(*known, *moving))
        return [next(remaining) if keeps else None for keeps in with_cotangents]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        facts = operands[0].builder.facts
        may_be_empty = not facts.proves(Fact("<=", 1, size))
        function, called, batched_results = batch_function(
            self.function, tuple(batched), may_be_empty
        )
        return Call(function, (*self.sizes, (called, size))).bind(*operands), batched_results


# A choice of branches.


# Operands of a branch that runs for all lanes of a batch, although only some chose it.


@dataclass(frozen=True)
class Lanes(Primitive, name="lanes"):
    """The second operand, with tangents only in the rows where the first one holds.

    An infinite slope in another row has no effect: its tangents are replaced by zeros, and so are
    its cotangents.
    """

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        which, x = operands
        if which.dtype is not BOOL or not same_sizes(facts, which.shape, x.shape[: which.rank]):
            self.ill_typed(f"operands are {which} and {x}")
        return (x,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (operands[1],)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return (operands[1],)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        tangent = tangents[1]
        return (None if tangent is None else _mask_rows(primals[0], tangent),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (which, _) = cotangents, operands
        assert cotangent is not None
        assert not isinstance(which, ArrayType)
        return None, _mask_rows(which, cotangent)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        rows = [x if has else repeated(x, size) for x, has in zip(operands, batched, strict=True)]
        return self.bind(*rows), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        which, x = inputs
        return AxisRule.leading(x.rank, (which.rank, x.rank), (x.rank,), ((1,),))


def _mask_rows(which: Value, x: Value) -> Value:
    """Return the rows where the first operand holds; zeros elsewhere."""
    if which.ndim < x.ndim:
        which = Broadcast(x.shape, tuple(range(which.ndim)))(which)
    return Select()(which, x, zeros(x.builder, x.type))


# The choice, and its rules of derivatives and batches.


@dataclass(frozen=True)
class Switch(Control, name="switch"):
    """One of several blocks, chosen by an i32 (clamped to the existing ones) or a bool.

    Operands: the index, then the operands of every branch.
    """

    branches: tuple[Block, ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        if not self.branches or not operands:
            self.ill_typed("there is no branch or no index")
        index, *rest = operands
        if index.shape or index.dtype not in (I32, BOOL):
            self.ill_typed(f"the index is {index}")
        first = self.branches[0]
        for branch in self.branches:
            self.require(facts, "operands", rest, branch.in_types)
            self.require(facts, "results of a branch", branch.out_types, first.out_types)
        return first.out_types

    @cached_property
    def layout(self) -> Layout:
        index = Group(Role.DECISION, 1)
        captured = Group(Role.CONSTANT, len(self.branches[0].params))
        results = Group(Role.RESULT, len(self.branches[0].results))
        nesting = Nesting.BRANCH if len(self.branches) > 1 else Nesting.ONCE
        regions = [
            Region("branches", branch, (captured,), (results,), nesting, label=f"case {number}")
            for number, branch in enumerate(self.branches)
        ]
        return Layout((index, captured, results), tuple(regions))

    def chosen(self, operands: Sequence[Atom]) -> int | None:
        index, last = operands[0], len(self.branches) - 1
        if isinstance(index, Literal):
            return min(max(int(index.value.real), 0), last)
        return None if last else 0

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        index = min(max(int(operands[0]), 0), len(self.branches) - 1)
        return here.block(self.branches[index], operands[1:])

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        index, *rest = operands
        count = len(self.branches)
        if count == 1:
            return hlo.block(self.branches[0], rest)
        if inputs[0].dtype is BOOL:
            index = hlo.convert(index, ArrayType(I32))
        else:
            low, high = (hlo.full(bound, inputs[0]) for bound in (0, count - 1))
            (index,) = hlo.op("clamp", (low, index, high), (inputs[0],))
        run = [lambda branch=branch: hlo.block(branch, rest) for branch in self.branches]
        return hlo.case(index, run, outputs)

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        facts = primals[0].builder.facts
        active = tuple([tangent is not None for tangent in tangents[1:]])
        pairs = [jvp_block(facts, branch, active) for branch in self.branches]
        wanted = _any_of([flags for _, flags in pairs])
        if any(flags != wanted for _, flags in pairs):
            pairs = [jvp_block(facts, branch, active, wanted) for branch in self.branches]
        moving = [tangent for tangent in tangents if tangent is not None]
        results = Switch(tuple([block for block, _ in pairs])).bind(*primals, *moving)
        remaining = iter(results[len(wanted) :])
        return results[: len(wanted)], [next(remaining) if moves else None for moves in wanted]

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        facts = cut.early.facts
        index, *rest = operands
        late = tuple(map(cut.is_late, rest))
        if cut.is_late(index):
            return cut.late.bind(self, [cut.later(operand) for operand in operands])
        halves = [split_block(facts, branch, late) for branch in self.branches]
        wanted = _any_of([half.late_results for half in halves])
        if any(half.late_results != wanted for half in halves):
            halves = [split_block(facts, branch, late, wanted) for branch in self.branches]
        first = [operand for operand in rest if not cut.is_late(operand)]
        second = [operand for operand in rest if cut.is_late(operand)]
        early, late_parts = _align_slots(facts, halves, second)
        results = cut.early.bind(Switch(early), [index, *first])
        saved = [cut.later(value) for value in (index, *first, *results)]
        last = cut.late.bind(Switch(late_parts), [*saved, *second])
        return halves[0].merged(results, last)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        index, *rest = operands
        if isinstance(index, ArrayType):
            self.ill_typed("it is not linear in its index")
        facts = index.builder.facts
        linear = tuple([isinstance(operand, ArrayType) for operand in rest])
        has_cotangent = tuple([cotangent is not None for cotangent in cotangents])
        pairs = [transpose_block(facts, branch, linear, has_cotangent) for branch in self.branches]
        wanted = _any_of([flags for _, flags in pairs])
        if any(flags != wanted for _, flags in pairs):
            pairs = [
                transpose_block(facts, branch, linear, has_cotangent, wanted)
                for branch in self.branches
            ]
        known = [operand for operand in rest if not isinstance(operand, ArrayType)]
        moving = [cotangent for cotangent in cotangents if cotangent is not None]
        results = iter(Switch(tuple([block for block, _ in pairs])).bind(index, *known, *moving))
        return [None, *[next(results) if keeps else None for keeps in wanted]]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        index, *rest = operands
        facts = index.builder.facts
        taken = tuple(batched[1:])
        if batched[0]:
            return self._batch_by_selection(index, rest, taken, size)
        pairs = [batch_block(facts, branch, taken, size) for branch in self.branches]
        wanted = _any_of([flags for _, flags in pairs])
        if any(flags != wanted for _, flags in pairs):
            pairs = [batch_block(facts, branch, taken, size, wanted) for branch in self.branches]
        return Switch(tuple([block for block, _ in pairs])).bind(*operands), wanted

    def _batch_by_selection(
        self, index: Value, operands: Sequence[Value], batched: Mask, size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        """Run all branches and select, as each lane has its own index."""
        from pscdsl._src.primitives.scan import with_effects_by_lane  # which has choices in it

        facts = index.builder.facts
        pure = with_effects_by_lane(self, [index, *operands], [True, *batched], size)
        branches = pure.branches[:2] if index.dtype is BOOL else pure.branches
        count, rows = len(branches), (True,) * len(branches[0].results)
        if index.dtype is BOOL:
            lanes = [~index, index][-count:]
        else:
            here = index.builder
            low, high = here.literal(0, index.dtype), here.literal(count - 1, index.dtype)
            index = Clamp()(low, index, high)
            lanes = [equal(index, number) for number in range(count)]
        results: list[list[Value]] = []
        for branch, lane in zip(branches, lanes, strict=True):
            own, mask = _guard_lanes(lane, operands, batched, size)
            block, _ = batch_block(facts, branch, mask, size, rows)
            results.append(replay(index.builder, block, own))
        chosen = results[-1]
        for number in reversed(range(count - 1)):
            chosen = [
                select_rows(lanes[number], one, other)
                for one, other in zip(results[number], chosen, strict=True)
            ]
        return chosen, rows


def _guard_lanes(
    lanes: Value, operands: Sequence[Value], batched: Mask, size: Size
) -> tuple[list[Value], Mask]:
    """Return the operands of a branch that runs for all lanes though chosen in some, and a mask.

    Infinite slopes in other lanes must have no effect: tangents that enter there are zero, and so
    are cotangents that leave. Arrays that all lanes share would have to be repeated for that; only
    numbers are.
    """
    values = list(operands)
    mask = list(batched)
    for place, x in enumerate(operands):
        if has_tangent(x.type) and (batched[place] or x.ndim == 0):
            values[place] = Lanes()(lanes, x if batched[place] else repeated(x, size))
            mask[place] = True
    return values, tuple(mask)


def _any_of(masks: Sequence[Mask]) -> Mask:
    return tuple(map(any, zip(*masks, strict=True)))


def _align_slots(
    facts: Assumptions, halves: Sequence[Halves], late: Sequence[Value]
) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Return early and late branches of equal types; what one saves is zero in the others."""
    count = len(halves[0].late_results) - sum(halves[0].late_results)
    slots: list[ArrayType] = []
    places: list[list[int]] = []
    for half in halves:
        taken: list[int] = []
        for wanted in half.early.out_types[count:]:
            free = (i for i, slot in enumerate(slots) if slot == wanted and i not in taken)
            place = next(free, len(slots))
            if place == len(slots):
                slots.append(wanted)
            taken.append(place)
        places.append(taken)
    early = [
        _fill_slots(facts, half.early, count, slots, taken)
        for half, taken in zip(halves, places, strict=True)
    ]
    first = halves[0].early.in_types
    common = halves[0].early.out_types[:count]
    types = (*first, *common, *slots, *[value.type for value in late])

    def late_branch(each: Halves, taken: Sequence[int]) -> Block:
        def build(here: Builder, params: list[Value]) -> list[Value]:
            operands, rest = params[: len(first)], params[len(first) :]
            own = [*rest[:count], *[rest[count + place] for place in taken]]
            saved = each.gather(operands, own)
            return replay(here, each.late, [*saved, *rest[count + len(slots) :]])

        return closed(facts, types, build)

    last = [late_branch(half, taken) for half, taken in zip(halves, places, strict=True)]
    return tuple(early), tuple(last)


def _fill_slots(
    facts: Assumptions, block: Block, count: int, slots: Sequence[ArrayType], taken: Sequence[int]
) -> Block:
    """Return a block whose extra results fill the given slots, with zeros in the others."""

    def build(here: Builder, params: list[Value]) -> list[Value]:
        results = replay(here, block, params)
        own = dict(zip(taken, results[count:], strict=True))
        filled = [own[i] if i in own else zeros(here, slot) for i, slot in enumerate(slots)]
        return [*results[:count], *filled]

    return closed(facts, block.in_types, build)


# Programs that save little for the backward pass, which computes them again.


Policy: TypeAlias = LiteralType["nothing", "dots", "everything"]


@dataclass(frozen=True)
class Checkpoint(Control, name="checkpoint"):
    """A program that the backward pass computes again, except for the values that its policy saves.

    `again` marks the second computation: the compiler must not reuse the values of the first.
    """

    body: Block
    policy: Policy = "nothing"
    again: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        self.require(facts, "operands", operands, self.body.in_types)
        return self.body.out_types

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return here.block(self.body, operands)

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(self.body)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        if self.again and operands:
            types = [hlo.type_of(operand) for operand in operands]
            operands = hlo.op("optimization_barrier", operands, types)
        return hlo.block(self.body, operands)

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        here = primals[0].builder.program.current
        active = tuple([tangent is not None for tangent in tangents])
        block, active_results = jvp_block(here.facts, self.body, active)
        moving = [tangent for tangent in tangents if tangent is not None]
        results = here.bind(replace(self, body=block), [*primals, *moving])
        count = len(active_results)
        remaining = iter(results[count:])
        return results[:count], [next(remaining) if moves else None for moves in active_results]

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        facts = cut.early.facts
        late = tuple(map(cut.is_late, operands))
        halves = split_block(facts, self.body, late)
        early = [operand for operand in operands if not cut.is_late(operand)]
        moving = [operand for operand in operands if cut.is_late(operand)]
        count = len(self.body.results) - sum(halves.late_results)
        saved = self._find_saved(halves, count)
        first = Block(
            halves.early.params,
            halves.early.equations,
            (*halves.early.results[:count], *[halves.early.results[at] for at in saved]),
        )
        results = replay(cut.early, first, early)
        second = _second(facts, halves, saved, [operand.type for operand in moving])
        early_values = [cut.later(value) for value in (*early, *results[count:])]
        last = cut.late.bind(Checkpoint(second, self.policy, True), [*early_values, *moving])
        return halves.merged(results[:count], last)

    def _find_saved(self, halves: Halves, count: int) -> list[int]:
        """Return the indices of the early half's extra results that the policy saves."""
        extra = range(count, len(halves.early.results))
        if self.policy == "everything":
            return list(extra)
        if self.policy == "nothing":
            return []
        dear: set[Atom] = {
            var
            for equation in halves.early.equations
            if isinstance(equation.primitive, DotGeneral)
            or equation.primitive.name == "convolution"
            for var in equation.outputs
        }
        return [at for at in extra if halves.early.results[at] in dear]

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        here = next(v for v in cotangents if v is not None).builder.program.current
        linear = tuple([isinstance(operand, ArrayType) for operand in operands])
        has_cotangent = tuple([cotangent is not None for cotangent in cotangents])
        block, with_cotangents = transpose_block(here.facts, self.body, linear, has_cotangent)
        known = [operand for operand in operands if not isinstance(operand, ArrayType)]
        moving = [cotangent for cotangent in cotangents if cotangent is not None]
        remaining = iter(here.bind(replace(self, body=block), [*known, *moving]))
        return [next(remaining) if keeps else None for keeps in with_cotangents]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        facts = operands[0].builder.facts
        block, batched_results = batch_block(facts, self.body, tuple(batched), size)
        return replace(self, body=block).bind(*operands), batched_results


def _second(
    facts: Assumptions, halves: Halves, saved: Sequence[int], moving: Sequence[ArrayType]
) -> Block:
    """Return the block of the backward pass: the early half without saved values, then the late.

    It takes the early operands, the saved values, and the late operands.
    """
    early = halves.early
    types = early.in_types
    saved_atoms = [early.results[at] for at in saved]
    wanted = dict.fromkeys(early.results[at] for kind, at in halves.saved if kind == "result")
    again = Block(
        early.params,
        tuple(
            [
                equation
                for equation in early.equations
                if not set(equation.outputs) & set(saved_atoms)
            ]
        ),
        tuple([atom for atom in wanted if atom not in saved_atoms]),
    )
    equations, _ = needed(again)

    def build(here: Builder, params: list[Value]) -> list[Value]:
        operands, rest = params[: len(types)], params[len(types) :]
        env = Environment(here, early.params, operands)
        env.values.update(zip(saved_atoms, rest, strict=False))
        for equation in equations:
            here.program.span = equation.span
            outputs = append(here, equation, env.all(equation.inputs))
            env.values.update(zip(equation.outputs, outputs, strict=True))
        late_saved = [
            operands[at] if kind == "parameter" else env[early.results[at]]
            for kind, at in halves.saved
        ]
        return replay(here, halves.late, [*late_saved, *rest[len(saved_atoms) :]])

    return closed(facts, (*types, *[atom.type for atom in saved_atoms], *moving), build)
