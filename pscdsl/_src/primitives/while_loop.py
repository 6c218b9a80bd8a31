"""Loops that end when a condition says so, and the rules of their derivatives and batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isqrt
from typing import TYPE_CHECKING, Any

from pscdsl._src.interpreters.cut import Cut
from pscdsl._src.interpreters.replay import batch_block, closed, jvp_block, repeated, replay, zeros
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Block, Var
from pscdsl._src.primitives.control import Control
from pscdsl._src.primitives.elementwise import less, minimum, select_rows
from pscdsl._src.primitives.indexing import DynamicUpdate
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.regions import Group, Layout, Nesting, Region, Role
from pscdsl._src.primitives.scan import (
    Saving,
    Scan,
    halves_of_loop,
    parts,
    with_effects_by_lane,
)
from pscdsl._src.primitives.shaping import Iota, Reshape
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.derivatives import UnboundedReverse
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


# Loops that end when a condition says so.


@dataclass(frozen=True)
class While(Control, name="while"):
    """Repeat a body while a condition on the carry holds.

    Operands: the condition's captures, the body's captures, the carry. Both blocks take their
    captures and then the carry; results: the carry. `bound` is the largest number of steps, if it
    is known; the derivative saves the state every `every` steps.
    """

    cond: Block
    body: Block
    cond_captured: int
    body_captured: int
    bound: Size | None = None
    every: Size | None = field(default=None, repr=False)

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        by_cond, by_body, carry = self.roles(operands)
        self.require(facts, "what the condition takes", (*by_cond, *carry), self.cond.in_types)
        self.require(facts, "the condition's result", self.cond.out_types, (ArrayType(BOOL),))
        self.require(facts, "what the body takes", (*by_body, *carry), self.body.in_types)
        self.require(facts, "the next carry", self.body.out_types, carry)
        return tuple(carry)

    def roles(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Operands by role: captured by the condition, captured by the body, the carry."""
        first, second = self.cond_captured, self.cond_captured + self.body_captured
        return list(operands[:first]), list(operands[first:second]), list(operands[second:])

    @cached_property
    def layout(self) -> Layout:
        by_cond = Group(Role.CONSTANT, self.cond_captured, "cond_captured")
        by_body = Group(Role.CONSTANT, self.body_captured, "body_captured")
        carry = Group(Role.CARRY, len(self.body.results), label="carry")
        test = Group(Role.DECISION, 1, given=False)
        asked = None if self.bound is None else self.bound + 1
        loop = Nesting.LOOP
        cond = Region("cond", self.cond, (by_cond, carry), (test,), loop, asked)
        body = Region("body", self.body, (by_body, carry), (carry,), loop, self.bound, "step")
        return Layout((by_cond, by_body, carry, test), (cond, body))

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        by_cond, by_body, carry = self.roles(operands)
        while here.block(self.cond, [*by_cond, *carry])[0]:
            carry = list(here.block(self.body, [*by_body, *carry]))
        return tuple(carry)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        by_cond, by_body, carry = self.roles(operands)
        return hlo.while_loop(
            carry,
            lambda now: hlo.block(self.cond, [*by_cond, *now])[0],
            lambda now: hlo.block(self.body, [*by_body, *now]),
        )

    # Derivatives and batches: see below.

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        return differentiate(self, primals, tangents)

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        return split(self, cut, operands)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        """Loops with a bound are scans by now."""
        raise Failure(UnboundedReverse())

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return batch(self, operands, batched, size)


# Differentiation and batching of loops that end by a condition.


def differentiate(
    loop: While, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    """Bind a loop that carries its tangents along; its condition ignores them."""
    here = primals[0].builder.program.current
    _, captured_tangents, carry_tangents = loop.roles(tangents)
    captured = [tangent is not None for tangent in captured_tangents]
    carry = [tangent is not None for tangent in carry_tangents]
    while True:
        block, active_results = jvp_block(here.facts, loop.body, (*captured, *carry), tuple(carry))
        if list(active_results) == carry:
            break
        carry = list(active_results)
    by_cond, by_body, start = loop.roles(primals)
    if not any(carry):
        return here.bind(loop, primals), [None] * len(carry)
    a, b, da, db = parts(block.params, len(captured), len(carry), sum(captured))
    body = Block((*a, *da, *b, *db), block.equations, block.results)
    ignored = [Var(var.type) for var in db]
    cond = Block((*loop.cond.params, *ignored), loop.cond.equations, loop.cond.results)
    moving = [
        zeros(here, p.type) if t is None else t
        for t, p, moves in zip(carry_tangents, start, carry, strict=True)
        if moves
    ]
    together = replace(loop, cond=cond, body=body, body_captured=len(by_body) + sum(captured))
    known = [tangent for tangent in captured_tangents if tangent is not None]
    results = here.bind(together, [*by_cond, *by_body, *known, *start, *moving])
    remaining = iter(results[len(start) :])
    return results[: len(start)], [next(remaining) if moves else None for moves in carry]


def batch(
    loop: While, operands: Sequence[Value], batched: Sequence[bool], size: Size
) -> tuple[Sequence[Value], Sequence[bool]]:
    """Bind a loop over the batch that goes on while any lane does; other lanes do not change."""
    here = operands[0].builder.program.current
    facts = here.facts
    many_cond, many_body, many = loop.roles(batched)
    by_cond, by_body, start = loop.roles(operands)
    while True:
        body, batched_results = batch_block(
            facts, loop.body, (*many_body, *many), size, tuple(many)
        )
        cond, (uneven,) = batch_block(facts, loop.cond, (*many_cond, *many), size)
        if uneven:
            batched_results = (True,) * len(many)
            body, _ = batch_block(facts, loop.body, (*many_body, *many), size, batched_results)
        if list(batched_results) == many:
            break
        many = list(batched_results)
    if uneven:
        pure = with_effects_by_lane(loop, operands, batched, size)
        if pure is not loop:
            return batch(pure, operands, batched, size)
        cond, body = _any_lane(facts, cond, body, len(by_cond), len(by_body))
        by_body = [*by_cond, *by_body]
    before = loop.roles(batched)[2]
    carry = [
        repeated(x, size) if becomes and not is_batched else x
        for x, becomes, is_batched in zip(start, many, before, strict=True)
    ]
    together = replace(loop, cond=cond, body=body, body_captured=len(by_body))
    return here.bind(together, [*by_cond, *by_body, *carry]), many


def _any_lane(
    facts: Assumptions, cond: Block, body: Block, by_cond: int, by_body: int
) -> tuple[Block, Block]:
    """Blocks of a loop that ends when the last lane does; a lane that has ended stays."""

    def goes_on(here: Builder, params: list[Value]) -> list[Value]:
        (lanes,) = replay(here, cond, params)
        return [Reduce("any", (0,))(lanes)]

    def step(here: Builder, params: list[Value]) -> list[Value]:
        asked, own, state = parts(params, by_cond, by_body)
        (lanes,) = replay(here, cond, [*asked, *state])
        results = replay(here, body, [*own, *state])
        return [select_rows(lanes, x, y) for x, y in zip(results, state, strict=True)]

    types = (*cond.in_types[:by_cond], *body.in_types)
    return closed(facts, cond.in_types, goes_on), closed(facts, types, step)


# Partition of loops that end by a condition, so that they can run backwards.
#
# The early loop saves rows in buffers with one row for each possible step; the late one is a scan
# over the filled rows. With checkpoints, the early loop only saves its state at regular intervals,
# and the late one computes each stretch between them once more.


MOST_SAVED = 1 << 17
"""The most bytes, if known, that all steps may save before only some states are saved.

Saving all takes a quarter less time if most of the steps are taken, but all rows are filled with
zeros first: at 128 kB that takes as long as it saves; at 5 MB it takes 2 ms, 10 times as long as 64
steps.
"""
STRETCH = 64
"""The steps between two checkpoints where the bound is a symbol."""


def split(loop: While, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
    """Bind the loop's early half, and a scan over the steps that it took."""
    by_cond, captured, carry = loop.roles(operands)
    facts = cut.early.facts
    halves, late_carry = halves_of_loop(
        facts, loop.body, list(map(cut.is_late, captured)), list(map(cut.is_late, carry)), []
    )
    asked = loop.cond.params[len(by_cond) :]
    decides = {atom for equation in loop.cond.equations for atom in equation.inputs}
    decides.update(loop.cond.results)
    late_ones = [var for var, late in zip(asked, late_carry, strict=True) if late]
    if any(map(cut.is_late, by_cond)) or not decides.isdisjoint(late_ones):
        return cut.late.bind(loop, [cut.later(operand) for operand in operands])
    saving = Saving(halves, cut, captured, carry, [])
    early_params = [var for var, late in zip(asked, late_carry, strict=True) if not late]
    cond = Block(
        (*loop.cond.params[: len(by_cond)], *early_params), loop.cond.equations, loop.cond.results
    )
    if loop.bound is None:
        again = cut.late.bind(loop, [cut.later(operand) for operand in operands])
        moving = [v for v, late in zip(again, late_carry, strict=True) if late]
        return halves.merged(_bind_early(loop, cond, by_cond, saving), moving)
    starts = [v for v, late in zip(carry, late_carry, strict=True) if late]
    rows = saving.early.out_types[len(saving.carry) :]
    every = loop.every if loop.every is not None else stretch(loop.bound, rows)
    if every == 1:
        final, last = _all_states(loop.bound, cond, by_cond, saving, starts)
    else:
        final, last = _checkpoints(loop.bound, every, cond, by_cond, saving, starts)
    return halves.merged(final, last)


def _bind_early(
    loop: While, cond: Block, by_cond: Sequence[Value], saving: Saving
) -> tuple[Value, ...]:
    """Bind the early half of a loop that can save nothing: the late one runs all of it again.

    So forward mode needs no bound; reverse mode is impossible (see `While.transpose`).
    """
    early = saving.early
    body = Block(early.params, early.equations, early.results[: len(saving.carry)])
    alone = replace(loop, cond=cond, body=body, body_captured=len(saving.captured))
    return saving.cut.early.bind(alone, [*by_cond, *saving.captured, *saving.carry])


def stretch(bound: Size, rows: Sequence[ArrayType]) -> Size:
    """Return the steps between saved states: 1 if all states fit, else the root of the bound."""
    if not isinstance(bound, int):
        return STRETCH
    bytes_ = 0
    for type_ in rows:
        count = type_.dtype.bits // 8
        for size in type_.shape:
            if not isinstance(size, int):
                return 1 if bound <= STRETCH else isqrt(bound)
            count *= size
        bytes_ += count
    return 1 if bytes_ * bound <= MOST_SAVED else isqrt(bound)


def _all_states(
    bound: Size, cond: Block, by_cond: Sequence[Value], saving: Saving, starts: Sequence[Value]
) -> tuple[Sequence[Value], Sequence[Value]]:
    """Bind an early loop that saves what the late scan needs of every step."""
    cut, count = saving.cut, len(saving.carry)
    rows = saving.early.out_types[count:]
    final, steps, buffers = _run(
        cut.early, cond, by_cond, saving.early, saving.captured, saving.carry, rows, bound
    )
    early_results = [*final, *buffers]
    last = saving.late_scan(steps, early_results, starts, [], bound, False)
    return final, last


def _run(
    here: Builder,
    cond: Block,
    by_cond: Sequence[Value],
    body: Block,
    captured: Sequence[Value],
    carry: Sequence[Value],
    rows: Sequence[ArrayType],
    length: Size,
) -> tuple[list[Value], Value, list[Value]]:
    """Bind a loop whose body returns the next carry and rows; return carry, steps and buffers."""
    facts, count = here.facts, len(carry)
    buffers = [type_.with_shape((length, *type_.shape)) for type_ in rows]
    state = [*[value.type for value in carry], ArrayType(I32), *buffers]

    def goes_on(inner: Builder, params: list[Value]) -> list[Value]:
        asked, now, _ = parts(params, len(by_cond), count)
        return replay(inner, cond, [*asked, *now])

    def step(inner: Builder, params: list[Value]) -> list[Value]:
        own, now, (number,), old = parts(params, len(captured), count, 1)
        results = replay(inner, body, [*own, *now])
        new = [_write_row(b, row, number) for b, row in zip(old, results[count:], strict=True)]
        return [*results[:count], number + 1, *new]

    test = closed(facts, (*[v.type for v in by_cond], *state), goes_on)
    block = closed(facts, (*[v.type for v in captured], *state), step)
    start = [*carry, here.literal(0, I32), *[zeros(here, buffer) for buffer in buffers]]
    loop = While(test, block, len(by_cond), len(captured), length, 1)
    found = here.bind(loop, [*by_cond, *captured, *start])
    final, (steps,), saved = parts(found, count, 1)
    return final, steps, saved


def _write_row(buffer: Value, row: Value, number: Value) -> Value:
    """Return a buffer with a row written."""
    zero = buffer.builder.literal(0, I32)
    update = Reshape((1, *row.shape))(row)
    return DynamicUpdate()(buffer, update, number, *[zero] * row.ndim)


def _checkpoints(
    bound: Size,
    every: Size,
    cond: Block,
    by_cond: Sequence[Value],
    saving: Saving,
    starts: Sequence[Value],
) -> tuple[Sequence[Value], Sequence[Value]]:
    """Bind stretches of steps: states between them are saved, the steps computed again."""
    cut, count = saving.cut, len(saving.carry)
    length = (bound + every - 1) // every
    captured = [*by_cond, *saving.captured]
    body = _stretch(cut.early, every, cond, len(by_cond), saving)
    steps = cut.early.literal(0, I32)
    asked = _ignoring_last(cut.early, cond)
    held = [value.type for value in saving.carry]
    final, stretches, buffers = _run(
        cut.early,
        asked,
        by_cond,
        body,
        captured,
        [*saving.carry, steps],
        held,
        length,
    )
    total, final = final[-1], final[:count]
    last = _backwards(saving, cut, every, length, stretches, total, buffers, starts)
    return final, last


def _ignoring_last(here: Builder, cond: Block) -> Block:
    """Return a condition that also takes the number of steps."""
    return closed(
        here.facts, (*cond.in_types, ArrayType(I32)), lambda inner, p: replay(inner, cond, p[:-1])
    )


def _stretch(here: Builder, every: Size, cond: Block, asked: int, saving: Saving) -> Block:
    """Return a block of several steps: the next carry, the steps so far, and the state before."""
    facts, captured, count = here.facts, len(saving.captured), len(saving.carry)
    early = Block(saving.early.params, saving.early.equations, saving.early.results[:count])
    by_cond = cond.in_types[:asked]
    held = early.in_types[captured:]
    number = ArrayType(I32)

    def goes_on(inner: Builder, params: list[Value]) -> list[Value]:
        own, now, (step,) = parts(params, asked, count)
        limit = inner.size(every, I32)
        return [replay(inner, cond, [*own, *now])[0] & less(step, limit)]

    def one(inner: Builder, params: list[Value]) -> list[Value]:
        own, now, (step,) = parts(params, captured, count)
        return [*replay(inner, early, [*own, *now]), step + 1]

    test = closed(facts, (*by_cond, *held, number), goes_on)
    block = closed(facts, (*early.in_types, number), one)

    def some(inner: Builder, params: list[Value]) -> list[Value]:
        own, now, (total,) = parts(params, asked + captured, count)
        loop = While(test, block, asked, captured, every)
        results = inner.bind(loop, [*own, *now, inner.literal(0, I32)])
        return [*results[:count], total + results[count], *now]

    return closed(facts, (*by_cond, *early.in_types, number), some)


def _backwards(
    saving: Saving,
    cut: Cut,
    every: Size,
    length: Size,
    stretches: Value,
    total: Value,
    buffers: Sequence[Value],
    starts: Sequence[Value],
) -> Sequence[Value]:
    """Bind a scan over the stretches, each computed again before its late half."""
    here = cut.late
    known = [cut.later(value) for value in saving.captured]
    count = len(saving.carry)
    late = saving.late_captured
    types = (
        ArrayType(I32),
        ArrayType(I32),
        *[value.type for value in known],
        *[value.type for value in late],
        *[start.type for start in starts],
        ArrayType(I32),
        *[value.type for value in saving.carry],
    )

    def build(inner: Builder, params: list[Value]) -> list[Value]:
        (_, steps), own, moving, tangents, (number,), state = parts(
            params, 2, len(known), len(late), len(starts), 1
        )
        size = inner.size(every, I32)
        steps_here = minimum(size, steps - number * size)
        again = Scan(_add_counter(saving.early), 1 + len(own), count, every, False, True)
        results = inner.bind(again, [steps_here, *own, *state])
        return list(saving.again(inner, steps_here, own, results, (moving, tangents), every))

    body = closed(here.facts, types, build)
    scan = Scan(body, 2 + len(known) + len(late), len(starts), length, False, True)
    numbers = here.bind(Iota((length,), 0, I32), ())[0]
    first = [cut.later(start) for start in starts]
    later = [cut.later(value) for value in (stretches, total)]
    rows = [cut.later(buffer) for buffer in buffers]
    return here.bind(scan, [*later, *known, *late, *first, numbers, *rows])


def _add_counter(block: Block) -> Block:
    """Return a block that first takes the number of steps."""
    return Block((Var(ArrayType(I32), "steps"), *block.params), block.equations, block.results)
