"""A function of each row of arrays, its results combined by an associative function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pscdsl._src.interpreters.batching import batch_block, over_batch, repeated
from pscdsl._src.interpreters.jvp import jvp_block
from pscdsl._src.interpreters.replay import closed
from pscdsl._src.ir.primitive import Evaluation, NDArray, Primitive, Types
from pscdsl._src.ir.program import Atom, Block
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control.associative_scan import (
    LENGTH,
    batched_pairs,
    goes_apart,
    many_at_once,
    moving_pairs,
    present,
    tangents_of,
)
from pscdsl._src.primitives.control.base import Expanded
from pscdsl._src.primitives.control.regions import Group, Layout, Nesting, Region, Role
from pscdsl._src.primitives.control.scan import Fold, parts, row, rows_of, side_by_side, swapped
from pscdsl._src.primitives.reductions import Reduce, Reduction, reducible
from pscdsl._src.primitives.shaping import Reshape
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


# Results of rows combined into one, as programs of loops (see `associative_scan`) and of sums.
#
# Combinations that are sums, products or extrema of each part alone are reductions of many rows
# at once, as many as fit into a cache.


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
"""How many elements there are at once of the largest array that is made of rows to be reduced."""
CACHED = 1 << 15
"""The same for a step that goes through blocks of rows."""
LANES = 512
"""So many blocks are gone through at once, at most."""
FEWEST = 4
"""Fewer blocks are none."""


def widest(block: Block, captured: int) -> int | None:
    """How many elements, at least 1, the largest array of each row has; None if not known."""
    outputs = [var for equation in block.equations for var in equation.outputs]
    sizes = [size_of(var.type.shape) for var in (*block.params[captured:], *outputs)]
    known = [size for size in sizes if isinstance(size, int)]
    return max([1, *known]) if len(known) == len(sizes) else None


def block_of_results(length: Size, width: int | None) -> int | None:
    """How long the blocks are whose results are combined; None where there are to be none."""
    if not isinstance(length, int) or width is None:
        return LENGTH
    lanes = min(LANES, CACHED // width, length // 8)
    return None if lanes < FEWEST else length // lanes


def reductions(combine: Block, captured: int) -> list[Reduction] | None:
    """What combines each part of two rows, if none has to do with another."""
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
    """What the body makes of each row, combined by reductions."""
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
    """The same for so many rows at a time."""
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
    """A fold that combines `count` rows at a time."""
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
    """What the body makes of each row, combined; without a start, of at least one row."""
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

    Operands: what the body captures, what the combination captures, what comes first (`initial`
    of them: as many as the body has results, or none if there is at least one row), the arrays.
    Results: of the types of the body's.  As the function is associative, results may be combined
    in any grouping, in their order.
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

    def expansion(self, inputs: Types) -> Block:
        return self.program(Assumptions(), inputs)

    def program(self, facts: Assumptions, operands: Types) -> Block:
        """Reductions, or loops over the rows, or over the rows of many blocks at once."""
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
        """How many elements the largest array has that there is of each row."""
        widths = widest(self.body, self.body_captured), widest(self.combine, self.combine_captured)
        return None if None in widths else max(width or 0 for width in widths)

    # Derivatives and batches: see below.

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        return differentiate(self, primals, tangents)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return batch(self, operands, batched, size)


# How combined results of rows are differentiated and batched.


def differentiate(
    reduction: MapReduce, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    """The results of rows together with their tangents, combined."""
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


def batch(
    reduction: MapReduce, operands: Sequence[Value], batched: Sequence[bool], size: Size
) -> tuple[Sequence[Value], Sequence[bool]]:
    """The results of rows over a batch, combined."""
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
