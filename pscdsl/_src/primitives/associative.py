"""Rows of arrays combined by an associative function: all prefixes of them, or all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from pscdsl._src.interpreters.replay import (
    batch_block,
    closed,
    jvp_block,
    over_batch,
    repeated,
    zeros,
)
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.ir.program import Atom, Block, has_effects
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control import Call, Control, Expanded, Switch
from pscdsl._src.primitives.elementwise import equal
from pscdsl._src.primitives.random import unused_key
from pscdsl._src.primitives.reductions import Reduce, Reduction, reducible
from pscdsl._src.primitives.regions import Group, Layout, Nesting, Region, Role
from pscdsl._src.primitives.scan import (
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
from pscdsl._src.primitives.shaping import Broadcast, Reshape
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32, KEY

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


# All prefixes of the rows of arrays, combined by an associative function.


# Rows combined by an associative function, as programs of loops: one after the other or blockwise.
#
# Blockwise, the rows are cut into blocks of one length, and each step of a loop takes one row of
# every block (Blelloch, "Prefix sums and their applications", 1990, section 1.2.1). A second loop
# visits the totals of the blocks. For prefixes, the total before a block is then combined with each
# prefix inside of it. Programs have one size for any number of rows, and consist of loops, whose
# derivatives are known. A loop over the rows themselves takes as many steps as there are rows, but
# half of the work.


LENGTH = 128
"""The number of rows in a block if the total number of rows is unknown."""
FEW = 4096
"""The most rows that are combined one after the other."""
NARROW = 2
"""The most elements of a row in blocks: a step with wider rows has enough to do."""
CACHED = 1 << 18
"""The most elements in all for blocks: larger arrays do not stay in the cache between passes."""


def block_length(facts: Assumptions, length: Size, width: Size) -> int | None:
    """Return the length of the blocks for prefixes; None if rows are combined one after the other.

    `width` is the number of elements of a row. The bounds were measured on CPUs, where the steps of
    a loop cost little: XLA makes one function of a loop whose steps are simple.
    """
    if not facts.proves(Fact("<=", width, NARROW)):
        return None
    if not isinstance(length, int):
        return LENGTH
    if length <= FEW or not facts.proves(Fact("<=", length * width, CACHED)):
        return None
    return 1 << length.bit_length() // 2


def width_of(types: Sequence[ArrayType]) -> Size:
    """Return the total number of elements of arrays."""
    total: Size = 0
    for type_ in types:
        total = total + size_of(type_.shape)
    return total


def goes_apart(block: Block, shared: int) -> bool:
    """Return whether a block, batched over all but its shared operands, decides row by row."""
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
    """Return whether an equation, or a block in it, decides differently for each row."""
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
"""A function that builds results from parameters, blockwise or one row after the other."""


def many_at_once(
    facts: Assumptions, operands: Sequence[ArrayType], build: Build, many: bool
) -> Block:
    """Build a program that treats many rows together, if asked to and if all can be batched."""
    if many:
        try:
            return closed(facts, operands, lambda here, params: build(here, params, True))
        except Failure:  # a primitive of a user's has no such rule
            pass
    return closed(facts, operands, lambda here, params: build(here, params, False))


def prefixes(
    here: Builder, combine: Fold, rows: Sequence[Value], length: Size, block: int | None
) -> list[Value]:
    """Return the rows up to each one combined, of at least one."""
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
    """Return the prefixes of possibly no rows, without combining rows that do not exist."""
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
    """Return an array of this type with arbitrary values."""
    if type.dtype is not KEY:
        return here.full(False, type.shape, BOOL) if type.dtype is BOOL else zeros(here, type)
    key = unused_key(here)
    return here.bind(Broadcast(type.shape, ()), (key,))[0] if type.shape else key


# All prefixes of the rows of arrays, combined by an associative function.


def _require_pure(*blocks: Block) -> None:
    """Refuse effects in functions of rows that are called in any order and grouping."""
    if any(map(has_effects, blocks)):
        what = "`psc.debug` and `psc.check` in a function whose results are combined in any order"
        raise Failure(NotSupported(what=what, instead="use them before or after, or in `psc.scan`"))


@dataclass(frozen=True)
class AssociativeScan(Expanded, name="associative_scan"):
    """`y[i] = combine(y[i-1], x[i])` along the leading axis, where `combine` is associative.

    Operands: the captures of `combine`, then the arrays. `combine` maps two rows, each with one
    element of every array, to one. Results: arrays of the same types. As the function is
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
        _require_pure(self.combine)
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
        """Return the length of the blocks whose rows are combined in turn; None without blocks."""
        if goes_apart(self.combine, self.captured):
            return None
        return block_length(facts, self.length, width_of(self.combine.out_types))

    def program(self, facts: Assumptions, operands: Types) -> Block:
        """Return the prefixes as loops over rows, or over the rows of many blocks together."""
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
        return differentiate_scan(self, primals, tangents)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return batch_scan(self, operands, batched, size)


# Differentiation and batching of associative combinations.


def moving_pairs(
    facts: Assumptions, combine: Block, captured: Sequence[bool], rows: Sequence[bool]
) -> tuple[Block, list[bool]]:
    """Return the combination of rows with their tangents, and the flags of rows that have tangents.

    It is associative too. It takes the captures, their tangents, then twice a row and its tangents.
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
    """Return the tangents of the operands that have one."""
    return [
        zeros(here, primal.type) if tangent is None else tangent
        for primal, tangent, keeps in zip(primals, tangents, kept, strict=True)
        if keeps
    ]


def present(tangents: Sequence[Value | None]) -> list[Value]:
    """Return the tangents that exist."""
    return [tangent for tangent in tangents if tangent is not None]


def differentiate_scan(
    scan: AssociativeScan, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    """Return the prefixes of rows together with their tangents."""
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
    """Return the combination of rows over a batch, and which of the rows are batched."""
    flags = list(rows)
    while True:
        many = (*captured, *flags, *flags)
        block, batched_results = batch_block(facts, combine, many, size, tuple(flags))
        if list(batched_results) == flags:
            return block, flags
        flags = list(batched_results)


def rows_over(x: Value, is_batched: bool, becomes: bool, size: Size) -> Value:
    """Return an array of rows with a batch axis after the first, if the rows become batched."""
    if is_batched:
        return swapped(x)
    if not becomes:
        return x
    return Broadcast((x.shape[0], size, *x.shape[1:]), (0, *range(2, x.ndim + 1)))(x)


def batch_scan(
    scan: AssociativeScan, operands: Sequence[Value], batched: Sequence[bool], size: Size
) -> tuple[Sequence[Value], Sequence[bool]]:
    """Return the prefixes of rows over a batch."""
    here = operands[0].builder.program.current
    (captured, arrays), (shared, many) = scan.roles(operands), scan.roles(batched)
    block, batched_rows = batched_pairs(here.facts, scan.combine, shared, many, size)
    rows = [rows_over(*each, size) for each in zip(arrays, many, batched_rows, strict=True)]
    results = here.bind(replace(scan, combine=block), [*captured, *rows])
    return [
        swapped(x) if is_batched else x for x, is_batched in zip(results, batched_rows, strict=True)
    ], batched_rows


# A function of each row of arrays, its results combined by an associative function.


# Results of rows combined into one, as programs of loops (see above) and of sums.
#
# Combinations that are sums, products or extrema of each part alone are reductions of many rows
# together, as many as fit into a cache.


_KINDS: Final[dict[Primitive, Reduction]] = {
    e.add: "sum",
    e.multiply: "product",
    e.maximum: "maximum",
    e.minimum: "minimum",
    e.bitwise_and: "and",
    e.bitwise_or: "or",
    e.bitwise_xor: "xor",
}


AT_ONCE = 1 << 22
"""The most elements of the largest array that is computed from rows before its reduction."""
CACHED_BLOCK = 1 << 15
"""The most elements of the largest array in a step of a loop over blocks of rows."""
LANES = 512
"""The most blocks that one step visits together."""
FEWEST = 4
"""The least number of blocks."""


def widest(block: Block, captured: int) -> int | None:
    """Return the size of a row's largest array, at least 1; None if it is unknown."""
    outputs = [var for equation in block.equations for var in equation.outputs]
    sizes = [size_of(var.type.shape) for var in (*block.params[captured:], *outputs)]
    known = [size for size in sizes if isinstance(size, int)]
    return max([1, *known]) if len(known) == len(sizes) else None


def block_of_results(length: Size, width: int | None) -> int | None:
    """Return the length of the blocks whose results are combined; None without blocks."""
    if not isinstance(length, int) or width is None:
        return LENGTH
    lanes = min(LANES, CACHED_BLOCK // width, length // 8)
    return None if lanes < FEWEST else length // lanes


def reductions(combine: Block, captured: int) -> list[Reduction] | None:
    """Return the reductions that combine the parts of two rows; None if the parts interact."""
    count = len(combine.results)
    first, second = combine.params[captured : captured + count], combine.params[captured + count :]
    made: dict[Atom, tuple[Primitive, tuple[Atom, ...]]] = {
        equation.outputs[0]: (equation.primitive, equation.inputs) for equation in combine.equations
    }
    kinds: list[Reduction] = []
    for one, other, result in zip(first, second, combine.results, strict=True):
        primitive, inputs = made.get(result, (None, ()))
        kind = None if primitive is None else _KINDS.get(primitive)
        if kind is None or set(inputs) != {one, other} or not reducible(kind, result.type.dtype):
            return None
        kinds.append(kind)
    return kinds


def at_once(
    here: Builder,
    body: Fold,
    combine: Fold,
    start: Sequence[Value] | None,
    rows: Sequence[Value],
    length: Size,
) -> list[Value]:
    """Apply the body to all rows together, and reduce the results."""
    kinds = reductions(combine.block, len(combine.captured))
    assert kinds is not None
    values = body.over(here.facts, length).once(here, rows)
    totals = [Reduce(kind, (0,))(x) for kind, x in zip(kinds, values, strict=True)]
    return totals if start is None else combine.once(here, start, totals)


def part_by_part(
    here: Builder,
    body: Fold,
    combine: Fold,
    start: Sequence[Value] | None,
    rows: Sequence[Value],
    length: int,
    count: int,
) -> list[Value]:
    """Apply the body to `count` rows at a time, and reduce the results."""
    if length < 2 * count:
        return at_once(here, body, combine, start, rows, length)
    if start is None:
        start = at_once(here, body, combine, None, [rows_of(x, 0, count) for x in rows], count)
        rows, length = [rows_of(x, count, length) for x in rows], length - count
    fold = _fold_of_parts(here.facts, body, combine, count)
    whole = length // count
    done = whole * count
    parts_ = [Reshape((whole, count, *x.shape[1:]))(rows_of(x, 0, done)) for x in rows]
    start = fold.last(here, start, parts_, whole)
    if done == length:
        return start
    rest = [rows_of(x, done, length) for x in rows]
    return at_once(here, body, combine, start, rest, length - done)


def _fold_of_parts(facts: Assumptions, body: Fold, combine: Fold, count: int) -> Fold:
    """Return a fold that combines `count` rows at a time."""
    others, own, carried = len(body.captured), len(combine.captured), combine.carried
    state = [var.type for var in combine.block.params[: own + carried]]
    rows = [var.type for var in body.block.params[others:]]

    def build(here: Builder, params: list[Value]) -> list[Value]:
        held, mine, start, slices = parts(params, others, own, carried)
        mapped, all_ = replace(body, captured=held), replace(combine, captured=mine)
        return at_once(here, mapped, all_, start, slices, count)

    types = [*[x.type for x in body.captured], *state, *[over_batch(t, count) for t in rows]]
    return Fold(closed(facts, types, build), [*body.captured, *combine.captured], carried)


def in_loops(
    here: Builder,
    body: Fold,
    combine: Fold,
    start: Sequence[Value] | None,
    rows: Sequence[Value],
    length: Size,
    block: int | None,
) -> list[Value]:
    """Apply the body to each row, and combine the results in loops; needs a row if no start."""
    blocks: Size = 0 if block is None else length // block
    if start is None and not here.facts.proves(Fact("<=", 1, blocks)):
        start = body.once(here, [row(x, 0) for x in rows])
        rows, length = [rows_of(x, 1, length) for x in rows], length - 1
        blocks = 0 if block is None else length // block
    fold = combine.after(here.facts, body)
    if block is None:
        assert start is not None
        return fold.last(here, start, rows, length)
    done = blocks * block
    columns = [side_by_side(x, block, blocks) for x in rows]
    first = body.over(here.facts, blocks).once(here, [row(x, 0) for x in columns])
    others = [rows_of(x, 1, block) for x in columns]
    totals = fold.over(here.facts, blocks).last(here, first, others, block - 1)
    if start is None:
        start = [row(x, 0) for x in totals]
        totals, blocks = [rows_of(x, 1, blocks) for x in totals], blocks - 1
    start = combine.last(here, start, totals, blocks)
    if done == length:
        return start
    return fold.last(here, start, [rows_of(x, done, length) for x in rows], length - done)


# A function of each row, its results combined.


@dataclass(frozen=True)
class MapReduce(Expanded, name="map_reduce"):
    """`combine(... combine(combine(init, body(x[0])), body(x[1])) ...)`, `combine` associative.

    Operands: the captures of `body`, those of `combine`, the initial value, the arrays. The initial
    value has `initial` parts: one for each result of `body`, or none if there is at least one row.
    Results: of the types of the body's. As the function is associative, results may be combined in
    any grouping, in their order.
    """

    body: Block
    combine: Block
    body_captured: int
    combine_captured: int
    initial: int
    length: Size

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        by_body, by_combine, initial, arrays = self.roles(operands)
        rows: list[ArrayType] = []
        for array in arrays:
            if not array.shape or not facts.equal(array.shape[0], self.length):
                self.ill_typed(f"an operand is {array}, the length is {self.length}")
            rows.append(array.with_shape(array.shape[1:]))
        self.require(facts, "what the body takes", (*by_body, *rows), self.body.in_types)
        values = self.body.out_types
        taken = (*by_combine, *values, *values)
        self.require(facts, "what the combination takes", taken, self.combine.in_types)
        self.require(facts, "what it gives", self.combine.out_types, values)
        _require_pure(self.body, self.combine)
        if initial:
            self.require(facts, "what comes first", initial, values)
        if not facts.proves(Fact("<=", 0 if initial else 1, self.length)):
            self.ill_typed(f"the length {self.length} may be too small")
        return values

    def roles(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Operands by role: captured by the body, by the combination, the first, the arrays."""
        groups = parts(operands, self.body_captured, self.combine_captured, self.initial)
        return groups[0], groups[1], groups[2], groups[3]

    @cached_property
    def layout(self) -> Layout:
        by_body = Group(Role.CONSTANT, self.body_captured, "body_captured")
        by_combine = Group(Role.CONSTANT, self.combine_captured, "combine_captured")
        count, has_initial = len(self.body.results), bool(self.initial)
        values = Group(Role.PARTIAL, count, "initial", "init", given=has_initial)
        rows = Group(Role.ROW, len(self.body.params) - self.body_captured, label="over")
        both = (by_combine, values, values)
        loop, length = Nesting.LOOP, self.length
        body = Region("body", self.body, (by_body, rows), (values,), loop, length, "map")
        combine = Region("combine", self.combine, both, (values,), loop, length)
        return Layout((by_body, by_combine, values, rows), (body, combine))

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        by_body, by_combine, state, arrays = self.roles(operands)
        for step in range(here.size(self.length)):
            value = here.block(self.body, [*by_body, *(np.asarray(x[step]) for x in arrays)])
            combined = here.block(self.combine, [*by_combine, *state, *value]) if state else value
            state = list(combined)
        return tuple(state)

    def as_reductions(self, facts: Assumptions, operands: Types) -> Block | None:
        if reductions(self.combine, self.combine_captured) is None:
            return None
        return self.program(facts, operands)

    def expansion(self, inputs: Types) -> Block:
        return self.program(Assumptions(), inputs)

    def program(self, facts: Assumptions, operands: Types) -> Block:
        """Return reductions, or loops over the rows, or over the rows of many blocks together."""
        length, width = self.length, self._width()
        sums = reductions(self.combine, self.combine_captured) is not None

        def build(here: Builder, params: list[Value], many: bool) -> list[Value]:
            by_body, by_combine, initial, arrays = self.roles(params)
            body = Fold(self.body, by_body, 0)
            combine = Fold(self.combine, by_combine, len(self.body.results))
            start = initial or None
            if not many or not sums:
                block = block_of_results(length, width) if many else None
                return in_loops(here, body, combine, start, arrays, length, block)
            if not isinstance(length, int) or width is None:
                return at_once(here, body, combine, start, arrays, length)
            count = max(1, AT_ONCE // width)
            return part_by_part(here, body, combine, start, arrays, length, count)

        apart = goes_apart(self.body, self.body_captured)
        apart = apart or goes_apart(self.combine, self.combine_captured)
        return many_at_once(facts, operands, build, not apart)

    def _width(self) -> int | None:
        """Return the size of the largest array that belongs to a row; None if it is unknown."""
        widths = widest(self.body, self.body_captured), widest(self.combine, self.combine_captured)
        return None if None in widths else max(width or 0 for width in widths)

    # Derivatives and batches: see below.

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        return differentiate_reduction(self, primals, tangents)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return batch_reduction(self, operands, batched, size)


# Differentiation and batching of combined results.


def differentiate_reduction(
    reduction: MapReduce, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    """Return the results of rows together with their tangents, combined."""
    here = primals[0].builder.program.current
    facts, count = here.facts, len(reduction.body.results)
    roles, moved = reduction.roles(primals), reduction.roles(tangents)
    by_body, by_combine, initial, arrays = [[t is not None for t in part] for part in moved]
    active = (*by_body, *arrays)
    _, active_values = jvp_block(facts, reduction.body, active)
    starts = initial or [False] * count
    wanted = [x or y for x, y in zip(active_values, starts, strict=True)]
    combine, active_rows = moving_pairs(facts, reduction.combine, by_combine, wanted)
    block, _ = jvp_block(facts, reduction.body, active, tuple(active_rows))
    counts = (len(by_body), len(arrays), sum(by_body))
    a, rows, da, drows = parts(block.params, *counts)
    together = replace(
        reduction,
        body=Block((*a, *da, *rows, *drows), block.equations, block.results),
        combine=combine,
        body_captured=len(by_body) + sum(by_body),
        combine_captured=len(by_combine) + sum(by_combine),
        initial=len(initial) + sum(active_rows) if initial else 0,
    )
    first = tangents_of(here, roles[2], moved[2], active_rows) if initial else []
    news = (present(moved[0]), present(moved[1]), first, present(moved[3]))
    operands = [x for pair in zip(roles, news, strict=True) for part in pair for x in part]
    results = here.bind(together, operands)
    more = iter(results[count:])
    return results[:count], [next(more) if keeps else None for keeps in active_rows]


def batch_reduction(
    reduction: MapReduce, operands: Sequence[Value], batched: Sequence[bool], size: Size
) -> tuple[Sequence[Value], Sequence[bool]]:
    """Return the results of rows over a batch, combined."""
    here = operands[0].builder.program.current
    by_body, by_combine, initial, arrays = reduction.roles(operands)
    body_many, combine_many, initial_many, arrays_many = reduction.roles(batched)
    many = (*body_many, *arrays_many)
    _, batched_values = batch_block(here.facts, reduction.body, many, size)
    starts = initial_many or [False] * len(batched_values)
    wanted = [x or y for x, y in zip(batched_values, starts, strict=True)]
    combine, batched_rows = batched_pairs(here.facts, reduction.combine, combine_many, wanted, size)
    body, _ = batch_block(here.facts, reduction.body, many, size, tuple(batched_rows))
    first = [
        repeated(x, size) if becomes and not is_batched else x
        for x, is_batched, becomes in zip(initial, initial_many, batched_rows, strict=False)
    ]
    rows = [
        swapped(x) if is_batched else x for x, is_batched in zip(arrays, arrays_many, strict=True)
    ]
    together = replace(reduction, body=body, combine=combine)
    return here.bind(together, [*by_body, *by_combine, *first, *rows]), batched_rows
