"""Results of rows combined into one, as programs of loops (see `blockwise`) and of sums.

Combinations that are sums, products or extrema of each part by itself are reductions of many rows
at once, as many as fit into a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pscdsl._src.interpreters.batching import over_batch
from pscdsl._src.interpreters.replay import closed
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control.blockwise import LENGTH
from pscdsl._src.primitives.control.rows import Fold, row, rows_of, side_by_side
from pscdsl._src.primitives.control.scan_rules import parts
from pscdsl._src.primitives.reductions import Reduce, Reduction, reducible
from pscdsl._src.primitives.shaping import Reshape
from pscdsl.typing.array_types import size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value

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
    outputs = [var for each in block.equations for var in each.outputs]
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
        each.outputs[0]: (each.primitive, each.inputs) for each in combine.equations
    }
    found: list[Reduction] = []
    for one, other, result in zip(first, second, combine.results, strict=True):
        primitive, inputs = made.get(result, (None, ()))
        kind = None if primitive is None else _KINDS.get(primitive)
        if kind is None or set(inputs) != {one, other} or not reducible(kind, result.type.dtype):
            return None
        found.append(kind)
    return found


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
    found = [Reduce(kind, (0,))(x) for kind, x in zip(kinds, values, strict=True)]
    return found if start is None else combine.once(here, start, found)


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
    """It combines so many rows at a time."""
    others, own, carried = len(body.captured), len(combine.captured), combine.carried
    state = [var.type for var in combine.block.params[: own + carried]]
    rows = [var.type for var in body.block.params[others:]]

    def build(here: Builder, params: list[Value]) -> list[Value]:
        held, mine, start, given = parts(params, others, own, carried)
        each, all_ = replace(body, captured=held), replace(combine, captured=mine)
        return at_once(here, each, all_, start, given, count)

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
