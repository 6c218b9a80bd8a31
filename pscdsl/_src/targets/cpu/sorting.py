"""Sorts in loops that become native code, and the largest few of many elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt, prod

import numpy as np

from pscdsl._src.ir.primitive import H, TargetHlo, Types
from pscdsl._src.primitives.reductions import SIGNED, combiner, from_ordered, identity, ordered
from pscdsl._src.primitives.sorting import SortWords, TopK, linear, take
from pscdsl._src.targets.cpu.reductions import Prefixes
from pscdsl._src.targets.forms import Form
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import BOOL, I32, DType

# Integers sorted in loops that become native code; XLA's own sort compares by a call.
#
# Both ways take the same steps for all numbers: see Notes [Network] and [Digits].


SORTING = Form(
    "sorting",
    "Many lines of up to 2048 numbers are sorted by a network, 64 lines side by side: 0.25 to 0.5 "
    "of the time of XLA's sort of integers.  Long lines of 32-bit numbers are sorted by 11 bits at "
    "a time: 0.2 to 0.7 of the time.",
)
LANES = 64
"""The number of lines that a network sorts side by side."""
LONGEST = 2048
"""The longest lines that are sorted by a network."""
LEAST = 1 << 14
"""The least number of elements; XLA's code is faster to compile. It is also the least length of a
line that is sorted by digits."""
DIGIT = 11
"""The bits of a digit."""


@SORTING.translation
def by_network(
    primitive: SortWords, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Many short lines, sorted side by side."""
    (x,), (given,) = operands, inputs
    shape, axis = hlo.shape(given.shape), primitive.axis
    lines = prod(shape) // max(1, shape[axis])
    if hlo.in_loop or not given.dtype.is_integer or prod(shape) < LEAST:
        return None
    if lines < LANES or shape[axis] > LONGEST:
        return None
    return (_Network(hlo, given.dtype, primitive.descending).along(x, shape, axis),)


@SORTING.translation
def by_digits(
    primitive: SortWords, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Long lines of 32 bits that count."""
    (x,), (given,) = operands, inputs
    shape, axis = hlo.shape(given.shape), primitive.axis
    fits = given.dtype.is_integer and given.dtype.bits - primitive.low == 32
    if hlo.in_loop or not fits or shape[axis] < LEAST or axis != len(shape) - 1:
        return None
    if prod(shape) < LEAST:
        return None
    return (_sort_by_digits(hlo, x, given, primitive.descending, primitive.low),)


# Note [Network]
# Batcher's bitonic sorter in the form in which every comparator puts the smaller number first
# (Knuth, The Art of Computer Programming, volume 3, section 5.3.4): to merge two sorted halves of
# a block, compare each element with its mirror image in the block; then halves, quarters, … with
# each other.  A line is padded to a power of two with numbers that come last.  The numbers of one
# place in several lines lie side by side, and are compared by vector instructions.  A stage reads
# one buffer and writes the other, so stages come in pairs; the last may be done twice.


@dataclass(frozen=True, slots=True)
class _Network:
    hlo: TargetHlo
    dtype: DType
    descending: bool

    def along(self, x: H, shape: tuple[int, ...], axis: int) -> H:
        hlo, count = self.hlo, shape[axis]
        lines = prod(shape) // count
        order = (axis, *(a for a in range(len(shape)) if a != axis))
        moved = ArrayType(self.dtype, tuple([shape[a] for a in order]))
        x = hlo.reshape(self._transpose(x, order, moved), self._type(count, lines))
        size = 1 << (count - 1).bit_length()
        first, last = hlo.full(0, ArrayType(I32)), self.dtype.range[0 if self.descending else 1]
        low, high = [0, 0], [size - count, 0]

        def block(state: Sequence[H]) -> Sequence[H]:
            number, out = state
            # The last block ends where the array does: some lines may be sorted twice.
            start = hlo.binary("multiply", number, hlo.full(LANES, ArrayType(I32)))
            start = hlo.binary("minimum", start, hlo.full(lines - LANES, ArrayType(I32)))
            sizes = {"slice_sizes": hlo.i64_array((count, LANES))}
            part = self._type(count, LANES)
            (piece,) = hlo.op("dynamic_slice", (x, first, start), (part,), sizes)
            if size != count:
                fill = hlo.full(last, ArrayType(self.dtype))
                piece = hlo.pad(piece, fill, low, high)
            piece = self._sort_block(piece, size)
            if size != count:
                piece = hlo.slice(piece, (0, 0), (count, LANES))
            whole = self._type(count, lines)
            (out,) = hlo.op("dynamic_update_slice", (out, piece, first, start), (whole,))
            return _next(hlo, number), out

        inits = (first, hlo.full(0, self._type(count, lines)))
        (_, out) = hlo.while_loop(inits, _below(hlo, -(-lines // LANES)), block)
        back = tuple([order.index(a) for a in range(len(shape))])
        return self._transpose(hlo.reshape(out, moved), back, ArrayType(self.dtype, shape))

    def _sort_block(self, x: H, size: int) -> H:
        """Emit the columns of one block in order."""
        hlo = self.hlo
        stages = [
            (half, half == block // 2)
            for block in (2 << power for power in range((size - 1).bit_length()))
            for half in (block >> power for power in range(1, block.bit_length()))
        ]
        stages += stages[-1:] * (len(stages) % 2)
        numbers = ArrayType(I32, (len(stages),))
        halves = hlo.constant(np.array([half for half, _ in stages]), numbers)
        mirrors = hlo.constant(np.array([int(mirror) for _, mirror in stages]), numbers)

        def pair(state: Sequence[H]) -> Sequence[H]:
            number, one, other = state
            other = self._stage(
                one, other, size, _at(hlo, halves, number), _at(hlo, mirrors, number)
            )
            number = _next(hlo, number)
            one = self._stage(other, one, size, _at(hlo, halves, number), _at(hlo, mirrors, number))
            return _next(hlo, number), one, other

        inits = (hlo.full(0, ArrayType(I32)), x, hlo.full(0, self._type(size, LANES)))
        return hlo.while_loop(inits, _below(hlo, len(stages)), pair)[1]

    def _stage(self, source: H, target: H, size: int, half: H, mirror: H) -> H:
        """Compare every element with another one, from one buffer to the other."""
        hlo, number = self.hlo, ArrayType(I32)
        first, one, row = hlo.full(0, number), hlo.full(1, number), self._type(1, LANES)
        last = hlo.binary("subtract", half, one)
        mirrored = hlo.compare("NE", mirror, first)

        def compared(state: Sequence[H]) -> Sequence[H]:
            count, target = state
            inner = hlo.binary("and", count, last)
            start = hlo.binary("shift_left", hlo.binary("subtract", count, inner), one)
            low = hlo.binary("add", start, inner)
            end = hlo.binary("add", start, hlo.binary("add", half, last))
            high = hlo.select(
                mirrored, hlo.binary("subtract", end, inner), hlo.binary("add", low, half)
            )
            sizes = {"slice_sizes": hlo.i64_array((1, LANES))}
            x, y = (
                hlo.op("dynamic_slice", (source, place, first), (row,), sizes)[0]
                for place in (low, high)
            )
            for place, name in ((low, "minimum"), (high, "maximum")):
                if self.descending:
                    name = "maximum" if name == "minimum" else "minimum"
                found = hlo.binary(name, x, y)
                whole = self._type(size, LANES)
                (target,) = hlo.op("dynamic_update_slice", (target, found, place, first), (whole,))
            return _next(hlo, count), target

        return hlo.while_loop((first, target), _below(hlo, size // 2), compared)[1]

    def _transpose(self, x: H, order: tuple[int, ...], to: ArrayType) -> H:
        if order == tuple(range(len(order))):
            return x
        return self.hlo.op("transpose", (x,), (to,), {"permutation": self.hlo.i64_array(order)})[0]

    def _type(self, *shape: int) -> ArrayType:
        return ArrayType(self.dtype, shape)


# Note [Digits]
# Radix sort from the lowest digit on: numbers are moved to where those of their digit begin, in
# their order, digit by digit; how many there are of each is counted once for all digits.


def _sort_by_digits(hlo: TargetHlo, x: H, given: ArrayType, descending: bool, low: int) -> H:
    """Lines of 32 bits that count, in order, along the last axis."""
    shape = hlo.shape(given.shape)
    lines, count = prod(shape[:-1]), shape[-1]
    whole = given.with_shape((lines, count))
    x = hlo.reshape(x, whole)
    turn = given.dtype.range[0] if given.dtype.signed else 0
    if descending:
        turn = ~turn if given.dtype.signed else given.dtype.range[1]
    if turn:
        x = hlo.binary("xor", x, hlo.full(turn, whole))
    sort = _Digits(hlo, whole, low)
    counts = sort.counted(x)
    table = ArrayType(I32, (lines, 1 << DIGIT))

    def add(x: H, y: H) -> H:
        return hlo.binary("add", x, y)

    for index, each in enumerate(counts):
        ends = Prefixes(hlo, add, 0, I32, I32, False).along(each, table, 1)
        x = sort.moved(x, index, hlo.binary("subtract", ends, each))
    if turn:
        x = hlo.binary("xor", x, hlo.full(turn, whole))
    return hlo.reshape(x, given)


@dataclass(frozen=True, slots=True)
class _Digits:
    hlo: TargetHlo
    whole: ArrayType
    low: int

    def counted(self, x: H) -> Sequence[H]:
        """Count each digit by line, value and place."""
        hlo, (lines, _) = self.hlo, self.hlo.shape(self.whole.shape)
        places = -(-(self.whole.dtype.bits - self.low) // DIGIT)

        def step(line: H, place: H, tables: Sequence[H]) -> Sequence[H]:
            number = self._read(x, self.whole, line, place)
            return [
                self._more(table, line, self._digit(number, index))
                for index, table in enumerate(tables)
            ]

        table = ArrayType(I32, (lines, 1 << DIGIT))
        return self._loop_over([hlo.full(0, table) for _ in range(places)], step)

    def moved(self, x: H, index: int, starts: H) -> H:
        """Emit numbers in the order of a digit, given where those with each value of it begin."""
        hlo = self.hlo
        table = ArrayType(I32, tuple(hlo.type_of(starts).shape))

        def step(line: H, place: H, state: Sequence[H]) -> Sequence[H]:
            out, starts = state
            number = self._read(x, self.whole, line, place)
            digit = self._digit(number, index)
            # Read after it is written: in the other order the table would be copied.
            starts = self._more(starts, line, digit)
            after = hlo.reshape(self._read(starts, table, line, digit), ArrayType(I32))
            target = hlo.binary("subtract", after, hlo.full(1, ArrayType(I32)))
            operands = (out, number, line, target)
            return hlo.op("dynamic_update_slice", operands, (self.whole,))[0], starts

        return self._loop_over((hlo.full(0, self.whole), starts), step)[0]

    def _loop_over(
        self, inits: Sequence[H], step: Callable[[H, H, Sequence[H]], Sequence[H]]
    ) -> Sequence[H]:
        """Run a step for each number, line by line."""
        hlo, (lines, count) = self.hlo, self.hlo.shape(self.whole.shape)
        first = hlo.full(0, ArrayType(I32))

        def along(line: H, state: Sequence[H]) -> Sequence[H]:
            def once(state: Sequence[H]) -> Sequence[H]:
                return _next(hlo, state[0]), *step(line, state[0], state[1:])

            return hlo.while_loop((first, *state), _below(hlo, count), once)[1:]

        if lines == 1:
            return along(first, inits)

        def line(state: Sequence[H]) -> Sequence[H]:
            return _next(hlo, state[0]), *along(state[0], state[1:])

        return hlo.while_loop((first, *inits), _below(hlo, lines), line)[1:]

    def _digit(self, number: H, index: int) -> H:
        hlo, one = self.hlo, self.whole.with_shape((1, 1))
        shift = hlo.full(self.low + DIGIT * index, one)
        number = hlo.binary("shift_right_logical", number, shift)
        number = hlo.binary("and", number, hlo.full((1 << DIGIT) - 1, one))
        return hlo.reshape(hlo.convert(number, one.with_dtype(I32)), ArrayType(I32))

    def _read(self, x: H, given: ArrayType, line: H, place: H) -> H:
        sizes = {"slice_sizes": self.hlo.i64_array((1, 1))}
        single = given.with_shape((1, 1))
        return self.hlo.op("dynamic_slice", (x, line, place), (single,), sizes)[0]

    def _more(self, table: H, line: H, digit: H) -> H:
        hlo, one = self.hlo, ArrayType(I32, (1, 1))
        given = ArrayType(I32, tuple(hlo.type_of(table).shape))
        count = hlo.binary("add", self._read(table, given, line, digit), hlo.full(1, one))
        return hlo.op("dynamic_update_slice", (table, count, line, digit), (given,))[0]


def _next(hlo: TargetHlo, number: H) -> H:
    return hlo.binary("add", number, hlo.full(1, ArrayType(I32)))


def _below(hlo: TargetHlo, count: int) -> Callable[[Sequence[H]], H]:
    return lambda state: hlo.compare("LT", state[0], hlo.full(count, ArrayType(I32)))


def _at(hlo: TargetHlo, numbers: H, place: H) -> H:
    sizes = {"slice_sizes": hlo.i64_array((1,))}
    (found,) = hlo.op("dynamic_slice", (numbers, place), (ArrayType(I32, (1,)),), sizes)
    return hlo.reshape(found, ArrayType(I32))


# The largest few of many elements, looked for in the blocks with the largest elements.


TOP_OF_BLOCKS = Form(
    "top_of_blocks",
    "The largest few of many elements are looked for in the blocks with the largest elements, "
    "instead of sorting all: 0.1 of the time for ten of each of 1024 rows, 0.002 for ten of a "
    "million.",
)
LEAST_BLOCKED = 1 << 9
"""The least length of a row that is divided into blocks."""
FEW = 32
"""The least ratio of the row's length to the number of results for blocks."""
BLOCK_LANES = 32
"""See `_largest_of_rows`."""


@TOP_OF_BLOCKS.translation
def top_of_blocks(
    primitive: TopK, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit the largest of the blocks that have the largest elements."""
    block = _block(primitive, hlo, inputs[0])
    return None if block is None else _top_of_blocks(primitive, hlo, operands[0], inputs[0], block)


def _block(top: TopK, hlo: TargetHlo, given: ArrayType) -> int | None:
    """Return the number of elements of a block; None if there are too few for blocks."""
    length, count = hlo.size(given.shape[-1]), hlo.size(top.k)
    if length < LEAST_BLOCKED or given.dtype is BOOL or not 0 < count <= length // FEW:
        return None
    return 1 << (isqrt(length // count).bit_length() - 1)


def _top_of_blocks(top: TopK, hlo: TargetHlo, x: H, given: ArrayType, block: int) -> Sequence[H]:
    """Emit the largest of the blocks that have the largest elements."""
    (*rows, length), count = hlo.shape(given.shape), hlo.size(top.k)
    blocks = -(-length // block)
    chosen = ArrayType(I32, (*rows, count, block))
    flat, few = (*rows, count * block), ArrayType(I32, (*rows, count))
    best = _largest_of_rows(hlo, x, given.with_shape((*rows, length)), block)
    among = given.with_shape((*rows, blocks))
    _, number = _lower_top(hlo, best, among, count)
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
    values, at = _lower_top(hlo, found, part, count)
    at = linear(hlo, at, flat, len(rows))
    return values, take(hlo, places, I32, at, (*rows, count))


def _lower_top(hlo: TargetHlo, x: H, given: ArrayType, count: int) -> Sequence[H]:
    """Emit the largest of the fewer elements."""
    shape = (*given.shape[:-1], count)
    outputs = given.with_shape(shape), ArrayType(I32, shape)
    return hlo.lower(TopK(count), (x,), (given,), outputs)


def _largest_of_rows(hlo: TargetHlo, x: H, given: ArrayType, block: int) -> H:
    """Emit the largest of each of the blocks of the last axis, NaN first of all and 0 before -0."""
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
    lanes = min(
        BLOCK_LANES, block
    )  # which XLA combines side by side, where it is slow with neighbours
    number = hlo.reshape(number, whole.with_shape((*rows, blocks, block // lanes, lanes)))
    best, larger = whole.with_shape((*rows, blocks)), combiner(hlo, "maximum")
    for left in (whole.with_shape((*rows, blocks, lanes)), best):
        (number,) = hlo.reduce((number,), (init,), (len(rows) + 1,), (left,), larger)
    if not dtype.is_float:
        return number
    return from_ordered(hlo, number, best.with_dtype(dtype))
