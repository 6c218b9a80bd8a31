"""How associative combinations of rows are differentiated and batched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pscdsl._src.interpreters.batching import batch_block
from pscdsl._src.interpreters.jvp import jvp_block
from pscdsl._src.interpreters.replay import zeros
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.scan_rules import parts, swapped
from pscdsl._src.primitives.shaping import Broadcast
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value
    from pscdsl._src.primitives.control.associative_scan import AssociativeScan


def moving_pairs(
    facts: Assumptions, combine: Block, captured: Sequence[bool], rows: Sequence[bool]
) -> tuple[Block, list[bool]]:
    """The combination of rows with their tangents, which is associative too; which rows have one.

    It takes what is captured, then its tangents, then a row and its tangents, twice.
    """
    flags = list(rows)
    while True:
        active = (*captured, *flags, *flags)
        block, kept = jvp_block(facts, combine, active, tuple(flags))
        if list(kept) == flags:
            break
        flags = list(kept)
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
    return [each for each in tangents if each is not None]


def differentiate(
    scan: AssociativeScan, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    """The prefixes of rows together with their tangents."""
    here = primals[0].builder.program.current
    (captured, arrays), (held, moved) = scan.roles(primals), scan.roles(tangents)
    given = [[each is not None for each in part] for part in (held, moved)]
    block, kept = moving_pairs(here.facts, scan.combine, *given)
    together = replace(scan, combine=block, captured=len(captured) + sum(given[0]))
    rows = tangents_of(here, arrays, moved, kept)
    results = here.bind(together, [*captured, *present(held), *arrays, *rows])
    found = iter(results[len(arrays) :])
    return results[: len(arrays)], [next(found) if keeps else None for keeps in kept]


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
        block, kept = batch_block(facts, combine, many, size, tuple(flags))
        if list(kept) == flags:
            return block, flags
        flags = list(kept)


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
    block, kept = batched_pairs(here.facts, scan.combine, shared, many, size)
    rows = [rows_over(*each, size) for each in zip(arrays, many, kept, strict=True)]
    found = here.bind(replace(scan, combine=block), [*captured, *rows])
    return [swapped(x) if each else x for x, each in zip(found, kept, strict=True)], kept
