"""The largest few of many elements, looked for in the blocks with the largest elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from pscdsl._src.ir.hlo import H, TargetHlo
from pscdsl._src.ir.primitive import Types
from pscdsl._src.primitives.reductions import SIGNED, combiner, from_ordered, identity, ordered
from pscdsl._src.primitives.sorting import SortWords, TopK, linear, take
from pscdsl._src.targets.forms import Form
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import BOOL, I32

TOP_OF_BLOCKS = Form(
    "top_of_blocks",
    "The largest few of many elements are looked for in the blocks with the largest elements, "
    "instead of sorting all: 0.1 of the time for ten of each of 1024 rows, 0.002 for ten of a "
    "million.",
)
LEAST_BLOCKED = 1 << 9
"""So many elements of a row are taken in blocks."""
FEW = 32
"""No more than one of so many is wanted then."""
LANES = 32
"""See `_largest_of_rows`."""


@TOP_OF_BLOCKS.translation
def top_of_blocks(
    primitive: TopK, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """The largest of the blocks that have the largest elements."""
    block = _block(primitive, hlo, inputs[0])
    return None if block is None else _of_blocks(primitive, hlo, operands[0], inputs[0], block)


def _block(top: TopK, hlo: TargetHlo, given: ArrayType) -> int | None:
    """How many elements a block should have; None if there are too few for blocks."""
    length, count = hlo.size(given.shape[-1]), hlo.size(top.k)
    if length < LEAST_BLOCKED or given.dtype is BOOL or not 0 < count <= length // FEW:
        return None
    return 1 << (isqrt(length // count).bit_length() - 1)


def _of_blocks(top: TopK, hlo: TargetHlo, x: H, given: ArrayType, block: int) -> Sequence[H]:
    """The largest of the blocks that have the largest elements."""
    (*rows, length), count = hlo.shape(given.shape), hlo.size(top.k)
    blocks = -(-length // block)
    chosen = ArrayType(I32, (*rows, count, block))
    flat, few = (*rows, count * block), ArrayType(I32, (*rows, count))
    best = _largest_of_rows(hlo, x, given.with_shape((*rows, length)), block)
    among = given.with_shape((*rows, blocks))
    _, number = _lowered(hlo, best, among, count)
    # Of equal elements the first wins.
    (number,) = hlo.lower(SortWords(len(rows)), (number,), (few,), (few,))
    first = hlo.binary("multiply", number, hlo.full(block, few))
    (offset,) = hlo.op("iota", (), (chosen,), {"iota_dimension": len(rows) + 1})
    spread = hlo.broadcast(first, chosen, tuple(range(len(rows) + 1)))
    places = hlo.reshape(hlo.binary("add", spread, offset), ArrayType(I32, flat))
    last = hlo.full(length - 1, ArrayType(I32, flat))
    at = linear(hlo, hlo.binary("minimum", places, last), (*rows, length), len(rows))
    found = take(hlo, x, given.dtype, at, flat)
    inside = hlo.compare("LE", places, last)
    part = given.with_shape(flat)
    found = hlo.select(inside, found, hlo.full(identity("maximum", given.dtype), part))
    values, at = _lowered(hlo, found, part, count)
    at = linear(hlo, at, flat, len(rows))
    return values, take(hlo, places, I32, at, (*rows, count))


def _lowered(hlo: TargetHlo, x: H, given: ArrayType, count: int) -> Sequence[H]:
    """The largest of fewer."""
    shape = (*given.shape[:-1], count)
    outputs = given.with_shape(shape), ArrayType(I32, shape)
    return hlo.lower(TopK(count), (x,), (given,), outputs)


def _largest_of_rows(hlo: TargetHlo, x: H, given: ArrayType, block: int) -> H:
    """The largest of each of the blocks of the last axis, NaN first of all and 0 before -0."""
    (*rows, length), dtype = hlo.shape(given.shape), given.dtype
    blocks = -(-length // block)
    number, whole = x, given
    if dtype.is_float:
        whole = given.with_dtype(SIGNED[dtype.bits])
        most = whole.dtype.range[1]
        number = ordered(hlo, x, given, most)
    init = hlo.full(whole.dtype.range[0], ArrayType(whole.dtype))
    if missing := blocks * block - length:
        none = [0] * len(rows)
        number = hlo.pad(number, init, (*none, 0), (*none, missing))
    lanes = min(LANES, block)  # which XLA combines side by side, where it is slow with neighbours
    number = hlo.reshape(number, whole.with_shape((*rows, blocks, block // lanes, lanes)))
    best, larger = whole.with_shape((*rows, blocks)), combiner(hlo, "maximum")
    for left in (whole.with_shape((*rows, blocks, lanes)), best):
        (number,) = hlo.reduce((number,), (init,), (len(rows) + 1,), (left,), larger)
    if not dtype.is_float:
        return number
    return from_ordered(hlo, number, best.with_dtype(dtype))
