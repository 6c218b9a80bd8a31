"""A choice of branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pscdsl._src.interpreters.batching import batch_block, repeated
from pscdsl._src.interpreters.cut import Cut, Halves, split_block
from pscdsl._src.interpreters.jvp import Mask, has_tangent, jvp_block
from pscdsl._src.interpreters.replay import closed, replay, zeros
from pscdsl._src.interpreters.transpose import transpose_block
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.ir.program import Atom, Block, Literal
from pscdsl._src.primitives.control.base import Control
from pscdsl._src.primitives.control.regions import Group, Layout, Nesting, Region, Role
from pscdsl._src.primitives.elementwise import Clamp, Select, equal, select_rows
from pscdsl._src.primitives.shaping import Broadcast, same_sizes
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


# What a branch is given that is run for all lanes of a batch, though only some have chosen it.


@dataclass(frozen=True)
class Lanes(Primitive, name="lanes"):
    """The second operand itself; it has tangents only in the rows where the first one holds.

    A slope that is infinite in another row does not come through: what goes in there is zero, and
    so is what comes out backwards, whatever becomes of it on the way.
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
        return (None if tangent is None else _chosen(primals[0], tangent),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (which, _) = cotangents, operands
        assert cotangent is not None
        assert not isinstance(which, ArrayType)
        return None, _chosen(which, cotangent)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        rows = [x if has else repeated(x, size) for x, has in zip(operands, batched, strict=True)]
        return self.bind(*rows), (True,)


def _chosen(which: Value, x: Value) -> Value:
    """The rows where the first operand holds; zeros elsewhere."""
    if which.ndim < x.ndim:
        which = Broadcast(x.shape, tuple(range(which.ndim)))(which)
    result: Value = Select()(which, x, zeros(x.builder, x.type))
    return result


# The choice, and its rules of derivatives and batches.


@dataclass(frozen=True)
class Switch(Control, name="switch"):
    """One of several blocks, chosen by an i32 (clamped to what there is) or a bool.

    Operands: the index, then what every branch takes.
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
        early, late_parts = _with_slots(facts, halves, second)
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
            return self._selected(index, rest, taken, size)
        pairs = [batch_block(facts, branch, taken, size) for branch in self.branches]
        wanted = _any_of([flags for _, flags in pairs])
        if any(flags != wanted for _, flags in pairs):
            pairs = [batch_block(facts, branch, taken, size, wanted) for branch in self.branches]
        return Switch(tuple([block for block, _ in pairs])).bind(*operands), wanted

    def _selected(
        self, index: Value, operands: Sequence[Value], batched: Mask, size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        """Each lane has an index of its own: all branches are run, and selected from."""
        facts = index.builder.facts
        branches = self.branches[:2] if index.dtype is BOOL else self.branches
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
            own, mask = _for_lanes(lane, operands, batched, size)
            block, _ = batch_block(facts, branch, mask, size, rows)
            results.append(replay(index.builder, block, own))
        chosen = results[-1]
        for number in reversed(range(count - 1)):
            chosen = [
                select_rows(lanes[number], one, other)
                for one, other in zip(results[number], chosen, strict=True)
            ]
        return chosen, rows


def _for_lanes(
    lanes: Value, operands: Sequence[Value], batched: Mask, size: Size
) -> tuple[list[Value], Mask]:
    """What a branch takes that is run for all lanes but chosen in some, and what is batched.

    Its slopes in other lanes, which may be infinite, do not come through: the tangents that go in
    there are zero, and so are the cotangents that come out, whatever becomes of them on the way.
    Arrays that all lanes share would have to be repeated for that; only numbers are.
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


def _with_slots(
    facts: Assumptions, halves: Sequence[Halves], late: Sequence[Value]
) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Early and late branches of the same types: what is saved by one is zero in the others."""
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
        _with_zeros(facts, half.early, count, slots, taken)
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


def _with_zeros(
    facts: Assumptions, block: Block, count: int, slots: Sequence[ArrayType], taken: Sequence[int]
) -> Block:
    """A block whose extra results stand in slots, with zeros in those that are not taken."""

    def build(here: Builder, params: list[Value]) -> list[Value]:
        results = replay(here, block, params)
        own = dict(zip(taken, results[count:], strict=True))
        filled = [own[i] if i in own else zeros(here, slot) for i, slot in enumerate(slots)]
        return [*results[:count], *filled]

    return closed(facts, block.in_types, build)
