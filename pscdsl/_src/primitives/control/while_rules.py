"""How loops that end by a condition are differentiated and batched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pscdsl._src.interpreters.batching import batch_block, repeated
from pscdsl._src.interpreters.jvp import jvp_block
from pscdsl._src.interpreters.replay import closed, replay, zeros
from pscdsl._src.ir.program import Block, Var
from pscdsl._src.primitives.choosing import select_rows
from pscdsl._src.primitives.control.scan_rules import parts
from pscdsl._src.primitives.reductions import Reduce
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value
    from pscdsl._src.primitives.control.while_loop import While


def differentiate(
    loop: While, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    """A loop that carries its tangents along; its condition does not look at them."""
    here = primals[0].builder.program.current
    _, captured_tangents, carry_tangents = loop.roles(tangents)
    captured = [each is not None for each in captured_tangents]
    carry = [each is not None for each in carry_tangents]
    while True:
        block, kept = jvp_block(here.facts, loop.body, (*captured, *carry), tuple(carry))
        if list(kept) == carry:
            break
        carry = list(kept)
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
    known = [each for each in captured_tangents if each is not None]
    results = here.bind(together, [*by_cond, *by_body, *known, *start, *moving])
    found = iter(results[len(start) :])
    return results[: len(start)], [next(found) if moves else None for moves in carry]


def batch(
    loop: While, operands: Sequence[Value], batched: Sequence[bool], size: Size
) -> tuple[Sequence[Value], Sequence[bool]]:
    """A loop over the batch, which goes on while any lane does; the others stay as they are."""
    here = operands[0].builder.program.current
    facts = here.facts
    many_cond, many_body, many = loop.roles(batched)
    by_cond, by_body, start = loop.roles(operands)
    while True:
        body, kept = batch_block(facts, loop.body, (*many_body, *many), size, tuple(many))
        cond, (uneven,) = batch_block(facts, loop.cond, (*many_cond, *many), size)
        if uneven:
            kept = (True,) * len(many)
            body, _ = batch_block(facts, loop.body, (*many_body, *many), size, kept)
        if list(kept) == many:
            break
        many = list(kept)
    if uneven:
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
