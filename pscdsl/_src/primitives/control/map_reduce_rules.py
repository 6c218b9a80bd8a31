"""How combined results of rows are differentiated and batched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pscdsl._src.interpreters.batching import batch_block, repeated
from pscdsl._src.interpreters.jvp import jvp_block
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.associative_rules import (
    batched_pairs,
    moving_pairs,
    present,
    tangents_of,
)
from pscdsl._src.primitives.control.scan_rules import parts, swapped
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value
    from pscdsl._src.primitives.control.map_reduce import MapReduce


def differentiate(
    reduction: MapReduce, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    """The results of rows together with their tangents, combined."""
    here = primals[0].builder.program.current
    facts, count = here.facts, len(reduction.body.results)
    roles, moved = reduction.roles(primals), reduction.roles(tangents)
    by_body, by_combine, initial, arrays = [[t is not None for t in part] for part in moved]
    active = (*by_body, *arrays)
    _, found = jvp_block(facts, reduction.body, active)
    starts = initial or [False] * count
    wanted = [x or y for x, y in zip(found, starts, strict=True)]
    combine, kept = moving_pairs(facts, reduction.combine, by_combine, wanted)
    block, _ = jvp_block(facts, reduction.body, active, tuple(kept))
    counts = (len(by_body), len(arrays), sum(by_body))
    a, rows, da, drows = parts(block.params, *counts)
    together = replace(
        reduction,
        body=Block((*a, *da, *rows, *drows), block.equations, block.results),
        combine=combine,
        body_captured=len(by_body) + sum(by_body),
        combine_captured=len(by_combine) + sum(by_combine),
        initial=len(initial) + sum(kept) if initial else 0,
    )
    first = tangents_of(here, roles[2], moved[2], kept) if initial else []
    news = (present(moved[0]), present(moved[1]), first, present(moved[3]))
    operands = [x for pair in zip(roles, news, strict=True) for part in pair for x in part]
    results = here.bind(together, operands)
    more = iter(results[count:])
    return results[:count], [next(more) if keeps else None for keeps in kept]


def batch(
    reduction: MapReduce, operands: Sequence[Value], batched: Sequence[bool], size: Size
) -> tuple[Sequence[Value], Sequence[bool]]:
    """The results of rows over a batch, combined."""
    here = operands[0].builder.program.current
    by_body, by_combine, initial, arrays = reduction.roles(operands)
    body_many, combine_many, initial_many, arrays_many = reduction.roles(batched)
    many = (*body_many, *arrays_many)
    _, found = batch_block(here.facts, reduction.body, many, size)
    starts = initial_many or [False] * len(found)
    wanted = [x or y for x, y in zip(found, starts, strict=True)]
    combine, kept = batched_pairs(here.facts, reduction.combine, combine_many, wanted, size)
    body, _ = batch_block(here.facts, reduction.body, many, size, tuple(kept))
    first = [
        repeated(x, size) if becomes and not is_batched else x
        for x, is_batched, becomes in zip(initial, initial_many, kept, strict=False)
    ]
    rows = [swapped(x) if each else x for x, each in zip(arrays, arrays_many, strict=True)]
    together = replace(reduction, body=body, combine=combine)
    return here.bind(together, [*by_body, *by_combine, *first, *rows]), kept
