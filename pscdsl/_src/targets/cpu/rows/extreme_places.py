"""Places of extremes of large arrays: the extreme first, then where it stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from pscdsl._src.ir.hlo import H, TargetHlo
from pscdsl._src.ir.primitive import Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.dynamic_slicing import DynamicSlice
from pscdsl._src.primitives.elementwise import add, minimum, multiply
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.reductions import ArgReduce, Reduce
from pscdsl._src.primitives.shaping import Concatenate, Reshape, Slice, without
from pscdsl._src.targets.cpu.rows.by_slices import is_long
from pscdsl._src.targets.forms import Context, Form
from pscdsl._src.targets.rewriting import defined
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.dims import numbers

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

EXTREME_THEN_PLACE = Form(
    "extreme_then_place",
    "The extreme first, then the first place where it stands, instead of pairs: 0.04 to 0.25 of "
    "the time for a million elements.  Of a long vector the extremes of its blocks, then the place "
    "in the first block that has the extreme of all, instead of a second pass over everything.",
)
SHORT_ROW = 31
"""Places in rows of no more elements XLA finds fast."""
LEAST_TWICE = 1024
"""So many elements are passed over twice."""
LONG_INTEGERS = 64
"""So many integers of 32 bits and more in a row are, if slices of rows are combined."""
BLOCK = 1024
"""So many elements of a vector are a block, ..."""
LEAST_ROW = 512
"""So many elements of a row are taken in blocks."""
LEAST_IN_BLOCKS = 1 << 16
"""So many elements in all are."""
LEAST_HALVES = 1 << 18
"""The same for floats of 16 bits."""


@EXTREME_THEN_PLACE.rewrite
def place_by_blocks(
    primitive: ArgReduce, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """The place in a long vector, or in long rows, by blocks of it."""
    (given,), (output,) = inputs, outputs
    if not _gains_by_blocks(primitive, here, given):
        return None
    if prod(numbers(output.shape)) == 1:
        return defined(_in_vector, primitive, inputs)
    if _block(numbers(given.shape)[primitive.axis]) is None:
        return None
    return defined(_in_rows, primitive, inputs)


@EXTREME_THEN_PLACE.translation
def extreme_then_place(
    primitive: ArgReduce, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """The extreme, and the first place where it stands."""
    (x,), (given,), (output,) = operands, inputs, outputs
    if not _gains(primitive, hlo, given):
        return None
    counted = given.with_dtype(primitive.dtype)
    (counts,) = hlo.op("iota", (), (counted,), {"iota_dimension": primitive.axis})
    return (_in_two_passes(primitive, hlo, x, counts, given, output),)


def _gains(place: ArgReduce, here: Context | TargetHlo, given: ArrayType) -> bool:
    """Whether two passes are the faster way; XLA is fast with integers in short rows."""
    shape = numbers(given.shape)
    length, count = shape[place.axis], prod(shape)
    if length <= SHORT_ROW or count < LEAST_TWICE:
        return False
    if here.in_loop or place.axis < len(shape) - 1:
        return True
    if given.dtype.is_integer and given.dtype.bits >= 32:
        return length >= LONG_INTEGERS and is_long(here, count // length, length)
    return True


def _gains_by_blocks(place: ArgReduce, here: Context, given: ArrayType) -> bool:
    """Whether these are long rows, with places that their dtype can hold."""
    shape = numbers(given.shape)
    length, halves = shape[place.axis], given.dtype.is_float and given.dtype.bits == 16
    return (
        length == prod(shape[place.axis :])
        and LEAST_ROW <= length <= place.dtype.range[1]
        and prod(shape) >= (LEAST_HALVES if halves else LEAST_IN_BLOCKS)
        and not here.in_loop
        and _gains(place, here, given)
    )


def _in_two_passes(
    place: ArgReduce, hlo: TargetHlo, x: H, counts: H, given: ArrayType, output: ArrayType
) -> H:
    (best,) = hlo.lower(
        Reduce(place.kind, (place.axis,)), (x,), (given,), (given.with_shape(output.shape),)
    )
    kept = without(range(given.rank), (place.axis,))
    chosen = hlo.compare("EQ", x, hlo.broadcast(best, given, kept))
    if given.dtype.is_float:
        chosen = hlo.binary("or", chosen, hlo.compare("NE", x, x))
    none = hlo.size(given.shape[place.axis]) - 1
    counted = given.with_dtype(place.dtype)
    counts = hlo.select(chosen, counts, hlo.full(none, counted))
    (found,) = hlo.lower(Reduce("minimum", (place.axis,)), (counts,), (counted,), (output,))
    return found


def _block(length: int) -> int | None:
    """A good number of elements for each block of a row; None if it has no such parts."""
    wanted = 4 * math.isqrt(length)
    sizes = [size for size in range(wanted // 2, 2 * wanted) if length % size == 0]
    return min(sizes, key=lambda size: abs(size - wanted), default=None)


def _in_rows(primitive: ArgReduce, operands: Sequence[Value]) -> Sequence[Value]:
    """The places in rows of blocks."""
    (x,) = operands
    length, kept = x.shape[primitive.axis], without(x.shape, (primitive.axis,))
    assert isinstance(length, int)
    size = _block(length)
    assert size is not None
    blocks = Reshape((size_of(kept), length // size, size))(x)
    place = ArgReduce(primitive.kind, 1, primitive.dtype)
    first = place(Reduce(primitive.kind, (2,))(blocks))
    picked = Gather((1,), 1)(blocks, Reshape((*first.shape, 1))(first))
    return (Reshape(kept)(add(multiply(first, size), place(picked))),)


def _in_vector(primitive: ArgReduce, operands: Sequence[Value]) -> Sequence[Value]:
    """The place in a vector of many blocks, the last of which may have fewer elements."""
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
    # What the last block brings along, to be as long as the others, is less extreme.
    start = minimum(multiply(place(extremes), BLOCK), length - BLOCK)
    found = add(start, place(DynamicSlice((BLOCK,))(x, start)))
    return (Reshape(kept)(found),)
