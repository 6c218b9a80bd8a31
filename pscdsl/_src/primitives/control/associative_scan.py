"""All prefixes of the rows of arrays, combined by an associative function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pscdsl._src.interpreters.batching import batch_block
from pscdsl._src.interpreters.jvp import jvp_block
from pscdsl._src.interpreters.replay import closed, zeros
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Atom, Block
from pscdsl._src.primitives.control.base import Call, Control, Expanded
from pscdsl._src.primitives.control.regions import Group, Layout, Nesting, Region, Role
from pscdsl._src.primitives.control.scan import (
    Fold,
    Scan,
    counter_type,
    joined,
    one_after_the_other,
    parts,
    pick,
    put,
    row,
    rows_of,
    side_by_side,
    single,
    swapped,
)
from pscdsl._src.primitives.control.switch import Switch
from pscdsl._src.primitives.elementwise import equal
from pscdsl._src.primitives.random import SeedKey
from pscdsl._src.primitives.shaping import Broadcast
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32, KEY

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


# Rows combined by an associative function, as programs of loops: one after the other or blockwise.
#
# Blockwise, the rows are cut into blocks of one length, and a loop goes through all blocks at once,
# a row of each in every step (Blelloch, "Prefix sums and their applications", 1990, section 1.2.1).
# A second loop goes through the totals of the blocks.  For prefixes, what comes before a block is
# then combined with each prefix inside of it.  Programs are of one size, however many rows there
# are, and are made of loops, whose derivatives are known.
#
# A loop over the rows themselves takes as many steps as there are rows, but half of the work.


LENGTH = 128
"""How many rows a block has where the number of rows is not known."""
FEW = 4096
"""So many rows are combined one after the other."""
NARROW = 2
"""So are rows of more elements than that: a step has enough to do."""
CACHED = 1 << 18
"""So are rows of more elements in all: blocks need several passes through them."""


def block_length(facts: Assumptions, length: Size, width: Size) -> int | None:
    """How long the blocks are of which prefixes are made; None where there are to be none.

    `width` is how many elements a row has.  Measured on CPUs, where the steps of a loop cost
    little: XLA makes one function of a loop whose steps are simple.
    """
    if not facts.proves(Fact("<=", width, NARROW)):
        return None
    if not isinstance(length, int):
        return LENGTH
    if length <= FEW or not facts.proves(Fact("<=", length * width, CACHED)):
        return None
    return 1 << length.bit_length() // 2


def width_of(types: Sequence[ArrayType]) -> Size:
    """How many elements arrays have together."""
    total: Size = 0
    for type_ in types:
        total = total + size_of(type_.shape)
    return total


def goes_apart(block: Block, shared: int) -> bool:
    """Whether a block, for many of all but its first operands, would wait or take all branches."""
    return _goes_apart(block, [place >= shared for place in range(len(block.params))])


def _goes_apart(block: Block, many: Sequence[bool]) -> bool:
    varying: set[Atom] = {var for var, flag in zip(block.params, many, strict=True) if flag}
    for equation in block.equations:
        flags = [atom in varying for atom in equation.inputs]
        if not any(flags):
            continue
        primitive = equation.primitive
        if isinstance(primitive, Call):
            if _goes_apart(primitive.function.body, flags):
                return True
        elif isinstance(primitive, Control) and _waits(primitive.layout, flags):
            return True
        varying.update(equation.outputs)
    return False


def _waits(layout: Layout, many: Sequence[bool]) -> bool:
    """Whether an equation's decisions differ, or such are in its blocks; carries are taken to."""
    flags = layout.operands(many)
    if any(any(flags.get(g, (True,))) for g in layout.groups if g.role is Role.DECISION):
        return True
    for region in layout.regions:
        taken = [flag for group in region.takes for flag in flags.get(group, ())]
        if region.nesting is not Nesting.BRANCH:
            taken = [True] * len(region.block.params)
        if _goes_apart(region.block, taken):
            return True
    return False


Build: TypeAlias = "Callable[[Builder, list[Value], bool], list[Value]]"
"""What makes the results of the parameters, with many rows at once or one after the other."""


def many_at_once(
    facts: Assumptions, operands: Sequence[ArrayType], build: Build, many: bool
) -> Block:
    """A program with many rows at once, if so asked and if all that is done has a batching rule."""
    if many:
        try:
            return closed(facts, operands, lambda here, params: build(here, params, True))
        except Failure:  # a primitive of a user's has no such rule
            pass
    return closed(facts, operands, lambda here, params: build(here, params, False))


def prefixes(
    here: Builder, combine: Fold, rows: Sequence[Value], length: Size, block: int | None
) -> list[Value]:
    """The rows up to each one combined, of at least one."""
    if not here.facts.proves(Fact("<=", 1, length)):
        return _prefixes_of_any(here, combine, rows, length)
    start = [row(x, 0) for x in rows]
    rest = [rows_of(x, 1, length) for x in rows]
    count = length - 1
    if block is None:
        earlier, last = combine.before(here, start, rest, count)
        return [joined([x, single(y)]) for x, y in zip(earlier, last, strict=True)]
    blocks = count // block
    columns = [side_by_side(x, block, blocks) for x in rest]
    many = combine.over(here.facts, blocks)
    first, others = [row(x, 0) for x in columns], [rows_of(x, 1, block) for x in columns]
    inside, totals = many.before(here, first, others, block - 1)
    before, last = combine.before(here, start, totals, blocks)
    after = many.over_rows(here.facts, block - 1).once(here, before, inside)
    columns = [joined([single(x), y]) for x, y in zip(before, after, strict=True)]
    pieces = [[one_after_the_other(x)] for x in columns]
    done = blocks * block
    if done != count:
        rest = [rows_of(x, done, count) for x in rest]
        tail, last = combine.before(here, last, rest, count - done)
        pieces = [[*known, x] for known, x in zip(pieces, tail, strict=True)]
    return [joined([*known, single(x)]) for known, x in zip(pieces, last, strict=True)]


def _prefixes_of_any(
    here: Builder, combine: Fold, rows: Sequence[Value], length: Size
) -> list[Value]:
    """The same for rows of which there may be none; nothing is combined that should not be."""
    captured = list(combine.captured)
    own, carried = len(captured), combine.carried
    types = [param.type for param in combine.block.params]
    first = closed(here.facts, types, lambda inner, params: params[own + carried :])
    choice = Switch((combine.block, first))

    def build(inner: Builder, params: list[Value]) -> list[Value]:
        held, (step, *state) = params[:own], params[own : own + 1 + carried]
        results = choice.bind(equal(step, 0), *held, *state, *params[own + 1 + carried :])
        return [step + 1, *results, *results]

    counter = ArrayType(I32)
    body = closed(here.facts, (*types[:own], counter, *types[own:]), build)
    scan = Scan(body, own, 1 + carried, length)
    start = [_something(here, type_) for type_ in types[own : own + carried]]
    results = here.bind(scan, [*captured, here.literal(0, I32), *start, *rows])
    return list(results[1 + carried :])


def _something(here: Builder, type: ArrayType) -> Value:  # noqa: A002
    """An array of this type, of whatever values."""
    if type.dtype is not KEY:
        return here.full(False, type.shape, BOOL) if type.dtype is BOOL else zeros(here, type)
    key = SeedKey()(here.literal(0, I32))
    return here.bind(Broadcast(type.shape, ()), (key,))[0] if type.shape else key


# All prefixes of the rows of arrays, combined by an associative function.


@dataclass(frozen=True)
class AssociativeScan(Expanded, name="associative_scan"):
    """`y[i] = combine(y[i-1], x[i])` along the leading axis, where `combine` is associative.

    Operands: what the combination captures, the arrays; it takes two rows, of one of each array,
    and gives another one.  Results: arrays of the types of those given.  As the function is
    associative, rows may be combined in any grouping, in their order.
    """

    combine: Block
    captured: int
    length: Size

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        captured, arrays = self.roles(operands)
        rows: list[ArrayType] = []
        for array in arrays:
            if not array.shape or not facts.equal(array.shape[0], self.length):
                self.ill_typed(f"an operand is {array}, the length is {self.length}")
            rows.append(array.with_shape(array.shape[1:]))
        taken = (*captured, *rows, *rows)
        self.require(facts, "what the combination takes", taken, self.combine.in_types)
        self.require(facts, "what it gives", self.combine.out_types, rows)
        if not facts.proves(Fact("<=", 0, self.length)):
            self.ill_typed(f"the length {self.length} may be negative")
        return tuple(arrays)

    def roles(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Operands by role: captured, the arrays."""
        return list(operands[: self.captured]), list(operands[self.captured :])

    @cached_property
    def layout(self) -> Layout:
        captured = Group(Role.CONSTANT, self.captured, "captured")
        rows = Group(Role.PARTIAL, len(self.combine.results), label="over")
        takes = (captured, rows, rows)
        combine = Region("combine", self.combine, takes, (rows,), Nesting.LOOP, self.length)
        return Layout((captured, rows), (combine,))

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        captured, arrays = self.roles(operands)
        results = [np.array(x) for x in arrays]
        for step in range(1, here.size(self.length)):
            rows = [*[y[step - 1] for y in results], *[x[step] for x in arrays]]
            combined = here.block(self.combine, [*captured, *map(np.asarray, rows)])
            for result, each in zip(results, combined, strict=True):
                result[step] = each
        return tuple(results)

    def expansion(self, inputs: Types) -> Block | None:
        if self.block_length(Assumptions()) is None:  # one row after the other
            return None
        return self.program(Assumptions(), inputs)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        captured, arrays = self.roles(operands)
        length = hlo.size(self.length)
        if length < 2:
            return arrays
        # The first prefix is the first row, the others are written over.
        counter = counter_type(length)
        limit = hlo.full(length, counter)
        zero = hlo.full(0, counter)
        rows = self.combine.out_types

        def body(now: Sequence[H]) -> Sequence[H]:
            step, *state = now
            carry, stacks = state[: len(rows)], state[len(rows) :]
            slices = [
                pick(hlo, x, step, zero, type_) for x, type_ in zip(arrays, rows, strict=True)
            ]
            combined = hlo.block(self.combine, [*captured, *carry, *slices])
            stacks = [
                put(hlo, stack, y, step, zero, type_)
                for stack, y, type_ in zip(stacks, combined, rows, strict=True)
            ]
            return (hlo.binary("add", step, hlo.full(1, counter)), *combined, *stacks)

        first = [pick(hlo, x, zero, zero, type_) for x, type_ in zip(arrays, rows, strict=True)]
        start = (hlo.full(1, counter), *first, *arrays)
        results = hlo.while_loop(start, lambda now: hlo.compare("LT", now[0], limit), body)
        return results[1 + len(rows) :]

    def block_length(self, facts: Assumptions) -> int | None:
        """How many rows are combined one after the other, as one of many blocks of rows."""
        if goes_apart(self.combine, self.captured):
            return None
        return block_length(facts, self.length, width_of(self.combine.out_types))

    def program(self, facts: Assumptions, operands: Types) -> Block:
        """The prefixes as loops over rows, or over rows of many blocks at once."""
        block = self.block_length(facts)

        def build(here: Builder, params: list[Value], many: bool) -> list[Value]:
            captured, arrays = self.roles(params)
            combine = Fold(self.combine, captured, len(arrays))
            return prefixes(here, combine, arrays, self.length, block if many else None)

        return many_at_once(facts, operands, build, block is not None)

    # Derivatives and batches: see below.

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        return differentiate(self, primals, tangents)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return batch(self, operands, batched, size)


# How associative combinations of rows are differentiated and batched.


def moving_pairs(
    facts: Assumptions, combine: Block, captured: Sequence[bool], rows: Sequence[bool]
) -> tuple[Block, list[bool]]:
    """The combination of rows with their tangents, which is associative too; which rows have one.

    It takes what is captured, then its tangents, then a row and its tangents, twice.
    """
    flags = list(rows)
    while True:
        active = (*captured, *flags, *flags)
        block, active_results = jvp_block(facts, combine, active, tuple(flags))
        if list(active_results) == flags:
            break
        flags = list(active_results)
    counts = (len(captured), len(flags), len(flags), sum(captured), sum(flags))
    a, x, y, da, dx, dy = parts(block.params, *counts)
    return Block((*a, *da, *x, *dx, *y, *dy), block.equations, block.results), flags


def tangents_of(
    here: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], kept: Sequence[bool]
) -> list[Value]:
    """Tangents of those that are to have one."""
    return [
        zeros(here, primal.type) if tangent is None else tangent
        for primal, tangent, keeps in zip(primals, tangents, kept, strict=True)
        if keeps
    ]


def present(tangents: Sequence[Value | None]) -> list[Value]:
    """The tangents that are there."""
    return [tangent for tangent in tangents if tangent is not None]


def differentiate(
    scan: AssociativeScan, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    """The prefixes of rows together with their tangents."""
    here = primals[0].builder.program.current
    (captured, arrays), (held, moved) = scan.roles(primals), scan.roles(tangents)
    active = [[tangent is not None for tangent in part] for part in (held, moved)]
    block, active_rows = moving_pairs(here.facts, scan.combine, *active)
    together = replace(scan, combine=block, captured=len(captured) + sum(active[0]))
    rows = tangents_of(here, arrays, moved, active_rows)
    results = here.bind(together, [*captured, *present(held), *arrays, *rows])
    remaining = iter(results[len(arrays) :])
    return results[: len(arrays)], [next(remaining) if keeps else None for keeps in active_rows]


def batched_pairs(
    facts: Assumptions,
    combine: Block,
    captured: Sequence[bool],
    rows: Sequence[bool],
    size: Size,
) -> tuple[Block, list[bool]]:
    """The combination of rows over a batch, and which of the rows are batched."""
    flags = list(rows)
    while True:
        many = (*captured, *flags, *flags)
        block, batched_results = batch_block(facts, combine, many, size, tuple(flags))
        if list(batched_results) == flags:
            return block, flags
        flags = list(batched_results)


def rows_over(x: Value, is_batched: bool, becomes: bool, size: Size) -> Value:
    """An array of rows whose rows become batched, if they do."""
    if is_batched:
        return swapped(x)
    if not becomes:
        return x
    return Broadcast((x.shape[0], size, *x.shape[1:]), (0, *range(2, x.ndim + 1)))(x)


def batch(
    scan: AssociativeScan, operands: Sequence[Value], batched: Sequence[bool], size: Size
) -> tuple[Sequence[Value], Sequence[bool]]:
    """The prefixes of rows over a batch."""
    here = operands[0].builder.program.current
    (captured, arrays), (shared, many) = scan.roles(operands), scan.roles(batched)
    block, batched_rows = batched_pairs(here.facts, scan.combine, shared, many, size)
    rows = [rows_over(*each, size) for each in zip(arrays, many, batched_rows, strict=True)]
    results = here.bind(replace(scan, combine=block), [*captured, *rows])
    return [
        swapped(x) if is_batched else x for x, is_batched in zip(results, batched_rows, strict=True)
    ], batched_rows
