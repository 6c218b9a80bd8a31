"""The largest few of each of many rows, by as many passes over all rows.

XLA's own routine takes row after row, in one thread.  Here each pass finds, in all rows, the
largest of what comes after the one before; of long rows first the blocks with the largest elements,
and then the elements of these blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pscdsl.forms import form
from pscdsl.primitive import H, Hlo
from pscdsl.primitives.reductions import combiner
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dtypes import I32, I64

TOP_BY_PASSES = form(
    "top_by_passes",
    "The largest few of each of many rows of f32, outside of loops, by passes over all rows "
    "instead of by XLA's routine, row after row: 0.5 of the time for ten of each of 1024 rows.",
)
MOST = 16
"""So many of each row at most."""
LEAST_ROWS = 256
LEAST = 1 << 15
"""So many elements in all rows at least."""
LONGEST = 1 << 11
"""So many elements in a row at most."""
LONGEST_WHOLE = 256
"""Rows of more elements than these are taken in blocks."""
BLOCK = 8
LANES = 32
"""XLA combines so many side by side, where it is slow with neighbours."""


def fits(hlo: Hlo, shape: Sequence[int], count: int) -> bool:
    """Whether there are so many rows, and so few elements wanted, that passes are faster."""
    if not hlo.uses(TOP_BY_PASSES) or hlo.in_loop or not 0 < count <= MOST:
        return False
    *rows, length = shape
    in_blocks = length % BLOCK == 0 and 4 * BLOCK * count <= length <= LONGEST
    many = prod(rows) >= LEAST_ROWS and prod(shape) >= LEAST
    return many and (LANES <= length <= LONGEST_WHOLE or in_blocks)


def largest(hlo: Hlo, x: H, shape: Sequence[int], count: int) -> tuple[H, H]:
    """The largest integers (i32) of each row, in descending order, and the places, first ones."""
    *rows, length = shape
    if length <= LONGEST_WHOLE:
        given = ArrayType(I32, (prod(rows), length))
        (place,) = hlo.op("iota", (), (given,), {"iota_dimension": 1})
        return _passes(hlo, _packed(hlo, hlo.reshape(x, given), place, given), given, rows, count)
    blocks = length // BLOCK
    cut = ArrayType(I32, (prod(rows), BLOCK, blocks))
    among = ArrayType(I32, (prod(rows), blocks))
    x = hlo.reshape(x, cut)
    (step,) = hlo.op("iota", (), (cut,), {"iota_dimension": 1})
    (number,) = hlo.op("iota", (), (cut,), {"iota_dimension": 2})
    place = hlo.binary("add", hlo.binary("multiply", step, hlo.full(blocks, cut)), number)
    least = hlo.full(I64.range[0], ArrayType(I64))
    best = _maxima(hlo, _packed(hlo, x, place, cut), among.with_dtype(I64), least)
    _, number = _passes(hlo, best, among, rows, count)
    few = ArrayType(I32, (*rows, count))
    number = hlo.binary("remainder", number, hlo.full(blocks, few))
    pair = ArrayType(I32, (prod(rows), count, 1))
    (row,) = hlo.op("iota", (), (pair,), {"iota_dimension": 0})
    number = hlo.reshape(number, pair)
    flat = ArrayType(I32, (prod(rows), count))
    starts = ArrayType(I32, (prod(rows), count, 2))
    (at,) = hlo.op("concatenate", (row, number), (starts,), {"dimension": 2})
    numbers = hlo.parse_attribute(
        "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0, 2], "
        "start_index_map = [0, 2], index_vector_dim = 2>"
    )
    attributes = {"dimension_numbers": numbers, "slice_sizes": hlo.i64_array((1, BLOCK, 1))}
    taken = ArrayType(I32, (prod(rows), count, BLOCK))
    (found,) = hlo.op("gather", (x, at), (taken,), attributes)
    (offset,) = hlo.op("iota", (), (taken,), {"iota_dimension": 2})
    offset = hlo.binary("multiply", offset, hlo.full(blocks, taken))
    place = hlo.binary("add", hlo.broadcast(hlo.reshape(number, flat), taken, (0, 1)), offset)
    chosen = ArrayType(I32, (prod(rows), count * BLOCK))
    among_chosen = _packed(hlo, hlo.reshape(found, chosen), hlo.reshape(place, chosen), chosen)
    return _passes(hlo, among_chosen, chosen, rows, count)


def _packed(hlo: Hlo, x: H, place: H, given: ArrayType) -> H:
    """An element and its place as one number of 64 bits, of equal ones the first the largest."""
    wide = given.with_dtype(I64)
    upper = hlo.binary("shift_left", hlo.convert(x, wide), hlo.full(32, wide))
    lower = hlo.binary("subtract", hlo.full(I32.range[1], given), place)
    return hlo.binary("or", upper, hlo.convert(lower, wide))


def _passes(hlo: Hlo, number: H, given: ArrayType, rows: Sequence[int], count: int) -> tuple[H, H]:
    """The largest of packed numbers in rows, taken apart again."""
    _, length = hlo.shape(given.shape)
    init = hlo.full(I64.range[0], ArrayType(I64))
    parts = -(-length // LANES)
    number = _padded(hlo, number, init, (prod(rows), length), parts * LANES)
    laned = ArrayType(I64, (prod(rows), parts, LANES))
    (number,) = hlo.op("optimization_barrier", (hlo.reshape(number, laned),), (laned,))
    side, one = ArrayType(I64, (prod(rows), LANES)), ArrayType(I64, (prod(rows),))
    found: list[H] = []
    for _ in range(count):
        left = number
        if found:
            below = hlo.compare("LT", number, hlo.broadcast(found[-1], laned, (0,)))
            left = hlo.select(below, number, hlo.full(I64.range[0], laned))
        left = _maxima(hlo, left, side, init)
        # Both reductions would be made one again.
        (left,) = hlo.op("optimization_barrier", (left,), (side,))
        found.append(_maxima(hlo, left, one, init))
    column = ArrayType(I64, (prod(rows), 1))
    joined = ArrayType(I64, (*rows, count))
    columns = [hlo.reshape(each, column) for each in found]
    flat = ArrayType(I64, (prod(rows), count))
    (every,) = hlo.op("concatenate", columns, (flat,), {"dimension": 1})
    every = hlo.reshape(every, joined)
    whole = joined.with_dtype(I32)
    upper = hlo.binary("shift_right_arithmetic", every, hlo.full(32, joined))
    lower = hlo.binary("and", every, hlo.full(I32.range[1], joined))
    most = hlo.full(I32.range[1], whole)
    return hlo.convert(upper, whole), hlo.binary("subtract", most, hlo.convert(lower, whole))


def _maxima(hlo: Hlo, x: H, output: ArrayType, init: H) -> H:
    """The largest along the second axis."""
    return hlo.reduce((x,), (init,), (1,), (output,), combiner(hlo, "maximum"))[0]


def _padded(hlo: Hlo, x: H, filler: H, shape: Sequence[int], length: int) -> H:
    """Rows of packed numbers made longer."""
    *rows, old = shape
    if old == length:
        return x
    none = [0] * len(rows)
    return hlo.pad(x, filler, (*none, 0), (*none, length - old))
