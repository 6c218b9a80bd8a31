"""Sums, extremes and their places, and prefixes, in loops that become vector code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final, TypeAlias

from pscdsl._src.ir.primitive import H, Hlo, TargetHlo, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.elementwise import add, minimum, multiply
from pscdsl._src.primitives.indexing import DynamicSlice, Gather
from pscdsl._src.primitives.reductions import (
    OPERATIONS,
    ArgReduce,
    Cumulative,
    Largest,
    Reduce,
    Reduction,
    accumulator,
    combined,
    combiner,
    extreme,
    identity,
)
from pscdsl._src.primitives.shaping import Concatenate, Reshape, Slice, without
from pscdsl._src.targets.forms import Context, Form
from pscdsl._src.targets.rewriting import defined
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import BOOL, C64, C128, F32, F64, I32, U8, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


# Elements next to each other, combined slice by slice first, then one by one.


Axes: TypeAlias = tuple[int, ...]

FOLDED_REDUCTIONS = Form(
    "folded_reductions",
    "In loops, sums, products and extremes of neighbours are taken of slices first, elementwise, "
    "until few elements are left, which XLA combines one after another: sums of 64 numbers take "
    "0.8 of the time, of 256 0.5, the largest of 64 0.5, of 256 0.2.  Outside of loops so are "
    "whether some or all neighbours hold, extremes of integers, of floats in rows of 33 to 64, and "
    "places, and so are counts, in bytes: 0.1 to 0.3 of the time for a million elements.",
)
WIDTH: Final = 256
"""Bits of the elements that are left in loops: as wide as vectors are."""
MOST_ROWS: Final = 16
"""The most rows: XLA combines the elements of more rows side by side."""
MOST_ELEMENTS: Final = 1 << 14
"""Loops with larger arrays are not native, and reductions in them not slow."""
MOST_SLICES: Final = 8
"""The most slices that are combined in one operation, in loops."""
FEWER_SLICES: Final = 4
"""The most slices outside of loops: with more, XLA reads computed elements at distances of powers
of 2, which took 3 to 5 times as long as one element after another."""
LEFT: Final = 16
"""The number of elements that are left outside of loops."""
LONG_ROW: Final = 33
"""The least number of neighbours in a row that pays outside of loops."""
MANY: Final = 48 << 10
"""The least number of elements of the whole array there."""
_BYTE: Final = 255
_IDEMPOTENT: Final = frozenset(("and", "or", "maximum", "minimum"))
"""Operations by which an element may be combined twice."""


def is_folded(here: Context | TargetHlo, count: int, dtype: DType) -> bool:
    """Return whether `count` neighbours are combined by slices in a loop."""
    return (
        here.in_loop
        and (dtype.is_float or dtype.is_integer)
        and 2 * (WIDTH // dtype.bits) <= count <= MOST_ELEMENTS
    )


@FOLDED_REDUCTIONS.translation
def fewer(
    primitive: Reduce, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit a reduction of the fewer elements that are left of slices."""
    (x,), (array,), (output,) = operands, inputs, outputs
    kind, axes = primitive.kind, primitive.axes
    wide = array.with_dtype(accumulator(kind, array.dtype))
    partial = output.with_dtype(wide.dtype)
    if kind == "sum":
        wider, axes, wide = counted(hlo, hlo.convert(x, wide), axes, wide)
    else:
        wider = hlo.convert(x, wide)
    wider, axes, wide = folded(hlo, kind, wider, axes, wide)
    if wide.dtype.is_float and (kind == "maximum" or kind == "minimum"):
        result = extreme(hlo, kind, wider, axes, wide, partial)
    else:
        result = combined(hlo, kind, wider, axes, wide, partial)
    return (hlo.convert(result, output),)


@FOLDED_REDUCTIONS.translation
def fewer_for_largest(
    primitive: Largest, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit the largest of fewer numbers."""
    x, axes, array = folded(hlo, "maximum", operands[0], primitive.axes, inputs[0])
    return (combined(hlo, "maximum", x, axes, array, outputs[0]),)


def folded(
    hlo: TargetHlo, kind: Reduction, x: H, axes: Axes, given: ArrayType
) -> tuple[H, Axes, ArrayType]:
    """Return an array with fewer elements, the axes along which to combine them, and its type.

    It returns the array itself where that is as fast. Without the returned axes, the type equals
    the given one without the given axes.
    """
    operation, neutral = OPERATIONS[kind], identity(kind, given.dtype)
    rows, count = _rows(hlo, axes, given)
    dtype = given.dtype
    if is_folded(hlo, count, dtype) and 0 < rows <= MOST_ROWS and rows * count <= MOST_ELEMENTS:
        folds = _Folds(hlo, operation, neutral, rows, WIDTH // dtype.bits, MOST_SLICES)
    elif is_long(hlo, rows, count) and operation in _IDEMPOTENT and _is_exact(dtype):
        folds = _Folds(hlo, operation, neutral, rows, LEFT, FEWER_SLICES)
    else:
        return x, axes, given
    return folds.of(x, given, len(axes), count)


def counted(
    hlo: TargetHlo, x: H, axes: Sequence[int], given: ArrayType
) -> tuple[H, Axes, ArrayType]:
    """Fold a sum of small numbers that are not negative, such as truth values, in bytes."""
    rows, count = _rows(hlo, axes, given)
    if given.dtype.bits < 32 or not given.dtype.is_integer or not is_long(hlo, rows, count):
        return x, tuple(axes), given
    low, high = hlo.bounds(x)
    if low < 0 or not 0 < high <= _BYTE // 2:
        return x, tuple(axes), given
    small = given.with_dtype(U8)
    folds = _Folds(hlo, "add", 0, rows, LEFT, FEWER_SLICES, most=_BYTE // int(high))
    small_x, axes, small = folds.of(hlo.convert(x, small), small, len(axes), count)
    given = small.with_dtype(given.dtype)
    return hlo.convert(small_x, given), axes, given


def _rows(hlo: TargetHlo, axes: Sequence[int], given: ArrayType) -> tuple[int, int]:
    """Return the number of rows of neighbours and their length; zeros if other axes follow."""
    shape, first = hlo.shape(given.shape), given.rank - len(axes)
    if tuple(sorted(axes)) != tuple(range(first, given.rank)):
        return 0, 0
    return prod(shape[:first]), prod(shape[first:])


def is_long(here: Context | TargetHlo, rows: int, count: int) -> bool:
    """Return whether rows of `count` neighbours are combined by slices outside of loops."""
    return not here.nested and count >= LONG_ROW and rows * count >= MANY


def _is_exact(dtype: DType) -> bool:
    """Return whether a dtype has no NaN, and XLA combines its neighbours slowly."""
    return dtype is BOOL or (dtype.is_integer and dtype.bits >= 32)


@dataclass(frozen=True)
class _Folds:
    """A reduction by slices of rows of `most` elements, until few elements are left."""

    hlo: TargetHlo
    operation: str
    neutral: object
    rows: int
    left: int
    slices: int
    most: int = 1 << 62

    def of(self, x: H, given: ArrayType, axes: int, count: int) -> tuple[H, Axes, ArrayType]:
        """Emit the array with fewer elements along its last axes, the last axis, and its type."""
        shape = given.shape[: given.rank - axes]
        rows = () if self.rows == 1 else (self.rows,)
        x = self.hlo.reshape(x, given.with_shape((*rows, count)))
        inside = 1
        while (whole := self._next(count, inside)) > 1:
            x, count = self._fold(x, given, rows, count, whole)
            inside *= whole
        left = given.with_shape((*shape, count))
        return self.hlo.reshape(x, left), (len(shape),), left

    def _next(self, count: int, inside: int) -> int:
        """Return the number of slices to combine next."""
        most = min(count // self.left, self.most // inside)
        return min(self.slices, 1 << max(most.bit_length() - 1, 0))

    def _fold(
        self, x: H, given: ArrayType, rows: tuple[int, ...], count: int, whole: int
    ) -> tuple[H, int]:
        """Return the slices of each row combined, and how many elements they have."""
        hlo, none = self.hlo, [0] * len(rows)
        width = -(-count // whole)
        starts = list(range(0, count, width))
        if self.operation in _IDEMPOTENT:
            starts[-1] = count - width  # some elements may be there once more
        parts: list[H] = [
            hlo.slice(x, (*none, start), (*rows, min(start + width, count))) for start in starts
        ]
        if missing := starts[-1] + width - count:
            fill = hlo.full(self.neutral, ArrayType(given.dtype))
            parts[-1] = hlo.pad(parts[-1], fill, (*none, 0), (*none, missing))
        while len(parts) > 1:  # two by two: it is more accurate, and they need not wait
            pairs = zip(parts[::2], parts[1::2], strict=False)
            odd = parts[-1:] if len(parts) % 2 else []
            parts = [*(hlo.binary(self.operation, a, b) for a, b in pairs), *odd]
        return parts[0], width


# Places of extremes of large arrays: the extreme first, then its place.


EXTREME_THEN_PLACE = Form(
    "extreme_then_place",
    "The extreme first, then the first place where it stands, instead of pairs: 0.04 to 0.25 of "
    "the time for a million elements.  Of a long vector the extremes of its blocks, then the place "
    "in the first block that has the extreme of all, instead of a second pass over everything.",
)
SHORT_PLACE_ROW = 31
"""Places in rows of no more elements XLA finds fast."""
LEAST_TWICE = 1024
"""The least number of elements for two passes."""
LONG_INTEGERS = 64
"""The least length of rows of integers of 32 bits or more, if slices of rows are combined."""
BLOCK = 1024
"""The number of elements in a block of a vector."""
LEAST_ROW = 512
"""The least length of a row that is divided into blocks."""
LEAST_IN_BLOCKS = 1 << 16
"""The least number of elements in all for blocks."""
LEAST_HALVES = 1 << 18
"""The least number of elements in all for blocks of 16-bit floats."""


@EXTREME_THEN_PLACE.rewrite
def place_by_blocks(
    primitive: ArgReduce, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """Return the place in a long vector, or in long rows, by blocks of it."""
    (array,), (output,) = inputs, outputs
    if not _gains_by_blocks(primitive, here, array):
        return None
    if prod(numbers(output.shape)) == 1:
        return defined(_place_in_vector, primitive, inputs)
    if _block(numbers(array.shape)[primitive.axis]) is None:
        return None
    return defined(_places_in_rows, primitive, inputs)


@EXTREME_THEN_PLACE.translation
def extreme_then_place(
    primitive: ArgReduce, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit the extreme, and then its first place."""
    (x,), (array,), (output,) = operands, inputs, outputs
    if not _place_gains(primitive, hlo, array):
        return None
    counted = array.with_dtype(primitive.dtype)
    (counts,) = hlo.op("iota", (), (counted,), {"iota_dimension": primitive.axis})
    return (_place_in_two_passes(primitive, hlo, x, counts, array, output),)


def _place_gains(place: ArgReduce, here: Context | TargetHlo, given: ArrayType) -> bool:
    """Return whether two passes are faster; XLA is fast with integers in short rows."""
    shape = numbers(given.shape)
    length, count = shape[place.axis], prod(shape)
    if length <= SHORT_PLACE_ROW or count < LEAST_TWICE:
        return False
    if here.in_loop or place.axis < len(shape) - 1:
        return True
    if given.dtype.is_integer and given.dtype.bits >= 32:
        return length >= LONG_INTEGERS and is_long(here, count // length, length)
    return True


def _gains_by_blocks(place: ArgReduce, here: Context, given: ArrayType) -> bool:
    """Return whether rows are long enough for blocks, with places that their dtype can hold."""
    shape = numbers(given.shape)
    length, halves = shape[place.axis], given.dtype.is_float and given.dtype.bits == 16
    return (
        length == prod(shape[place.axis :])
        and LEAST_ROW <= length <= place.dtype.range[1]
        and prod(shape) >= (LEAST_HALVES if halves else LEAST_IN_BLOCKS)
        and not here.in_loop
        and _place_gains(place, here, given)
    )


def _place_in_two_passes(
    place: ArgReduce, hlo: TargetHlo, x: H, counts: H, given: ArrayType, output: ArrayType
) -> H:
    (best,) = hlo.lower(
        Reduce(place.kind, (place.axis,)), (x,), (given,), (given.with_shape(output.shape),)
    )
    other_axes = without(range(given.rank), (place.axis,))
    chosen = hlo.compare("EQ", x, hlo.broadcast(best, given, other_axes))
    if given.dtype.is_float:
        chosen = hlo.binary("or", chosen, hlo.compare("NE", x, x))
    none = hlo.size(given.shape[place.axis]) - 1
    counted = given.with_dtype(place.dtype)
    counts = hlo.select(chosen, counts, hlo.full(none, counted))
    (first_place,) = hlo.lower(Reduce("minimum", (place.axis,)), (counts,), (counted,), (output,))
    return first_place


def _block(length: int) -> int | None:
    """Return a good number of elements for each block of a row; None if it has no such parts."""
    wanted = 4 * math.isqrt(length)
    sizes = [size for size in range(wanted // 2, 2 * wanted) if length % size == 0]
    return min(sizes, key=lambda size: abs(size - wanted), default=None)


def _places_in_rows(primitive: ArgReduce, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the places in rows of blocks."""
    (x,) = operands
    length, rest = x.shape[primitive.axis], without(x.shape, (primitive.axis,))
    assert isinstance(length, int)
    size = _block(length)
    assert size is not None
    blocks = Reshape((size_of(rest), length // size, size))(x)
    place = ArgReduce(primitive.kind, 1, primitive.dtype)
    first = place(Reduce(primitive.kind, (2,))(blocks))
    picked = Gather((1,), 1)(blocks, Reshape((*first.shape, 1))(first))
    return (Reshape(rest)(add(multiply(first, size), place(picked))),)


def _place_in_vector(primitive: ArgReduce, operands: Sequence[Value]) -> Sequence[Value]:
    """Find the place in a vector of many blocks; the last block may have fewer elements."""
    (x,) = operands
    length, kept = x.shape[primitive.axis], without(x.shape, (primitive.axis,))
    assert isinstance(length, int)
    x, whole = Reshape((length,))(x), length - length % BLOCK
    blocks = Reshape((whole // BLOCK, BLOCK))(Slice((0,), (whole,), (1,))(x))
    extremes = Reduce(primitive.kind, (1,))(blocks)
    if whole < length:
        rest = Reshape((1, length - whole))(Slice((whole,), (length,), (1,))(x))
        extremes = Concatenate(0)(extremes, Reduce(primitive.kind, (1,))(rest))
    place = ArgReduce(primitive.kind, 0, primitive.dtype)
    # The elements that fill up the last block are less extreme.
    start = minimum(multiply(place(extremes), BLOCK), length - BLOCK)
    position = add(start, place(DynamicSlice((BLOCK,))(x, start)))
    return (Reshape(kept)(position),)


# Prefixes along an axis by a loop over chunks.
#
# XLA's windows make a tree of passes over the whole array.  A loop whose step is small becomes
# native code that reads and writes each element once: see `pscdsl._src.xla.compilation`.


PREFIX_LOOP = Form(
    "prefix_loop",
    "Prefix sums, products and extrema in a loop over chunks of a few, instead of a tree of "
    "windows: 0.1 to 0.3 of the time for a million elements, along any axis.",
)
CHUNK = 8
"""The number of elements that one step combines before adding the total of earlier steps."""
CHUNK_OF_ROW = 32
"""The number for rows of at least four times as many elements."""
FEW, LONG = 16, 1024
"""The most elements of an axis that is one chunk, and the least elements side by side for that."""
LEAST = 24
"""Arrays of fewer elements are left to XLA."""
SLOW_IN_LOOPS = range(512, 8192)
"""Sizes of arrays whose prefixes along rows prevent a loop around them from being native."""

Combine = Callable[[H, H], H]


@PREFIX_LOOP.translation
def prefix_loop(
    primitive: Cumulative, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit all prefixes along an axis, chunk by chunk."""
    (x,), (array,) = operands, inputs
    kind, axis, shape = primitive.kind, primitive.axis, hlo.shape(array.shape)
    if shape[axis] <= 1 or 0 in shape or not fits(hlo, shape, axis):
        return None
    dtype, combine = accumulator(kind, array.dtype), combiner(hlo, kind)
    loop = Prefixes(
        hlo,
        lambda x, y: combine((x,), (y,))[0],
        identity(kind, dtype),
        dtype,
        wide_total(dtype) if kind == "sum" else dtype,
        primitive.reverse,
    )
    return (loop.along(x, array, axis),)


def fits(hlo: TargetHlo, shape: tuple[int, ...], axis: int) -> bool:
    """Return whether the loop is faster."""
    elements = prod(shape)
    if prod(shape[axis + 1 :]) == 1 and (
        shape[axis] <= CHUNK or (hlo.in_loop and elements in SLOW_IN_LOOPS)
    ):
        return False
    return elements >= LEAST


def wide_total(dtype: DType) -> DType:
    """Return a dtype for sums over many chunks that makes their rounding errors negligible."""
    return {F32: F64, C64: C128}.get(dtype, dtype)


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Emits the prefixes along one axis.

    `dtype` is the dtype in which elements of a chunk are combined, `total` that of the combination
    of all earlier chunks.
    """

    hlo: Hlo
    combine: Combine
    identity: bool | int | float
    dtype: DType
    total: DType
    reverse: bool

    def along(self, x: H, given: ArrayType, axis: int) -> H:
        """Emit the prefixes, of the type that is given."""
        hlo, shape = self.hlo, self.hlo.shape(given.shape)
        lines = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
        flat = given.with_shape(lines)
        x = hlo.reshape(x, flat)
        if lines[1] <= (FEW if lines[2] >= LONG else CHUNK):
            prefixes = hlo.convert(self._chunk(x, flat)[0], flat)
        elif lines[0] == 1:
            prefixes = self._line(x, flat, hlo.full(0, ArrayType(I32)), hlo.full(0, flat))
        else:
            prefixes = self._lines(x, flat)
        return hlo.reshape(prefixes, given)

    def _lines(self, x: H, flat: ArrayType) -> H:
        def step(state: Sequence[H]) -> Sequence[H]:
            line, out = state
            return self._next(line), self._line(x, flat, line, out)

        first = self.hlo.full(0, ArrayType(I32))
        count = self.hlo.shape(flat.shape)[0]
        inits = (first, self.hlo.full(0, flat))
        return self.hlo.while_loop(inits, lambda state: self._below(state[0], count), step)[1]

    def _line(self, x: H, flat: ArrayType, line: H, out: H) -> H:
        """Write one line into the result."""
        hlo, (_, count, inner) = self.hlo, self.hlo.shape(flat.shape)
        length = CHUNK_OF_ROW if inner == 1 and count >= 4 * CHUNK_OF_ROW else CHUNK
        chunks, rest = divmod(count, length)

        def step(state: Sequence[H]) -> Sequence[H]:
            number, out, total = state
            place = hlo.binary("multiply", number, hlo.full(length, ArrayType(I32)))
            if self.reverse:
                end = hlo.full(count - length, ArrayType(I32))
                place = hlo.binary("subtract", end, place)
            out, total = self._write_chunk(x, flat, (line, place), length, out, total)
            return self._next(number), out, total

        start = hlo.full(self.identity, ArrayType(self.total, (1, 1, inner)))
        inits = (hlo.full(0, ArrayType(I32)), out, start)
        _, out, total = hlo.while_loop(inits, lambda state: self._below(state[0], chunks), step)
        if rest:
            place = hlo.full(0 if self.reverse else count - rest, ArrayType(I32))
            out, _ = self._write_chunk(x, flat, (line, place), rest, out, total)
        return out

    def _write_chunk(
        self, x: H, flat: ArrayType, at: tuple[H, H], length: int, out: H, total: H
    ) -> tuple[H, H]:
        """Emit the result with one more chunk, and the total with it."""
        hlo, inner = self.hlo, self.hlo.shape(flat.shape)[2]
        part = flat.with_shape((1, length, inner))
        starts = (*at, hlo.full(0, ArrayType(I32)))
        sizes = {"slice_sizes": hlo.i64_array((1, length, inner))}
        (piece,) = hlo.op("dynamic_slice", (x, *starts), (part,), sizes)
        prefixes, last = self._chunk(piece, part)
        wide, one = part.with_dtype(self.dtype), ArrayType(self.total, (1, 1, inner))
        earlier = hlo.convert(total, one.with_dtype(self.dtype))
        earlier = hlo.broadcast(hlo.reshape(earlier, wide.with_shape((1, inner))), wide, (0, 2))
        prefixes = hlo.convert(self.combine(earlier, prefixes), part)
        (out,) = hlo.op("dynamic_update_slice", (out, prefixes, *starts), (flat,))
        return out, self.combine(total, hlo.convert(last, one))

    def _chunk(self, x: H, given: ArrayType) -> tuple[H, H]:
        """Emit the prefixes of few elements, one after the other, and the last of them."""
        hlo, (outer, length, inner) = self.hlo, self.hlo.shape(given.shape)
        wide = given.with_dtype(self.dtype)
        x = hlo.convert(x, wide)
        order = range(length - 1, -1, -1) if self.reverse else range(length)
        parts: list[H] = []
        for place in order:
            piece = hlo.slice(x, (0, place, 0), (outer, place + 1, inner))
            parts.append(self.combine(parts[-1], piece) if parts else piece)
        last = parts[-1]
        if self.reverse:
            parts.reverse()
        (joined,) = hlo.op("concatenate", parts, (wide,), {"dimension": 1})
        return joined, last

    def _next(self, number: H) -> H:
        return self.hlo.binary("add", number, self.hlo.full(1, ArrayType(I32)))

    def _below(self, number: H, count: int) -> H:
        return self.hlo.compare("LT", number, self.hlo.full(count, ArrayType(I32)))
