"""Where along an axis the extreme stands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pscdsl._src.ir.forms import form
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives.dynamic_slicing import DynamicSlice
from pscdsl._src.primitives.elementwise import add, minimum, multiply
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.linear import WithoutTangents
from pscdsl._src.primitives.reductions import (
    Extreme,
    Reduce,
    combinable,
    combined,
    identity,
    reducible,
)
from pscdsl._src.primitives.rewritten import emit_as
from pscdsl._src.primitives.shaping import Concatenate, Reshape, Slice, are_axes, without
from pscdsl._src.targets.cpu.rows.by_slices import is_long
from pscdsl.typing.arrays import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

EXTREME_THEN_PLACE = form(
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


def first_extreme(
    hlo: Hlo, kind: Extreme, dtype: DType
) -> Callable[[Sequence[H], Sequence[H]], Sequence[H]]:
    """What keeps of two elements with their places the more extreme one, of equal ones the first.

    A NaN is more extreme than all numbers.
    """
    better = "GT" if kind == "maximum" else "LT"

    def combine(old: Sequence[H], new: Sequence[H]) -> Sequence[H]:
        (x, i), (y, j) = old, new
        x_wins = hlo.compare(better, x, y)
        tied = hlo.compare("EQ", x, y)
        if dtype.is_float:
            x_nan, y_nan = hlo.compare("NE", x, x), hlo.compare("NE", y, y)
            x_wins = hlo.binary("or", x_wins, x_nan)  # unless y is NaN too
            tied = hlo.binary("or", tied, hlo.binary("and", x_nan, y_nan))
        first = hlo.compare("LT", i, j)
        takes_x = hlo.select(tied, first, x_wins)
        return hlo.select(takes_x, x, y), hlo.select(takes_x, i, j)

    return combine


@dataclass(frozen=True)
class ArgReduce(WithoutTangents, name="arg_reduce"):
    """Where along an axis the extreme is first reached; a NaN is more extreme than all numbers."""

    kind: Extreme
    axis: int
    dtype: DType

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if (
            not are_axes((self.axis,), x.rank)
            or not reducible(self.kind, x.dtype)
            or not self.dtype.is_integer
        ):
            self.ill_typed(f"{self.dtype} index of the {self.kind} of {x} along axis {self.axis}")
        return (ArrayType(self.dtype, without(x.shape, (self.axis,))),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x = combinable(operands[0])
        if not x.shape[self.axis]:
            return (np.zeros(without(x.shape, (self.axis,)), to_numpy(self.dtype)),)
        find = np.argmax if self.kind == "maximum" else np.argmin
        return (np.asarray(find(x, axis=self.axis)).astype(to_numpy(self.dtype)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,), (output,) = operands, inputs, outputs
        used = hlo.uses(EXTREME_THEN_PLACE)
        if used and self._gains_by_blocks(hlo, given):
            if prod(hlo.shape(output.shape)) == 1:
                return emit_as(hlo, _in_vector, self, operands, inputs)
            if _block(hlo.size(given.shape[self.axis])) is not None:
                return emit_as(hlo, _in_rows, self, operands, inputs)
        counted = given.with_dtype(self.dtype)
        (counts,) = hlo.op("iota", (), (counted,), {"iota_dimension": self.axis})
        if used and self._gains(hlo, given):
            return (self._in_two_passes(hlo, x, counts, given, output),)
        inits = (
            hlo.full(identity(self.kind, given.dtype), ArrayType(given.dtype)),
            hlo.full(0, ArrayType(self.dtype)),
        )
        best = given.with_shape(output.shape)
        combine = first_extreme(hlo, self.kind, given.dtype)
        _, place = hlo.reduce((x, counts), inits, (self.axis,), (best, output), combine)
        return (place,)

    def _gains(self, hlo: Hlo, given: ArrayType) -> bool:
        """Whether two passes are the faster way; XLA is fast with integers in short rows."""
        shape = hlo.shape(given.shape)
        length, count = shape[self.axis], prod(shape)
        if length <= SHORT_ROW or count < LEAST_TWICE:
            return False
        if hlo.in_loop or self.axis < len(shape) - 1:
            return True
        if given.dtype.is_integer and given.dtype.bits >= 32:
            return length >= LONG_INTEGERS and is_long(hlo, count // length, length)
        return True

    def _gains_by_blocks(self, hlo: Hlo, given: ArrayType) -> bool:
        """Whether these are long rows, with places that their dtype can hold."""
        shape = hlo.shape(given.shape)
        length, halves = shape[self.axis], given.dtype.is_float and given.dtype.bits == 16
        return (
            length == prod(shape[self.axis :])
            and LEAST_ROW <= length <= self.dtype.range[1]
            and prod(shape) >= (LEAST_HALVES if halves else LEAST_IN_BLOCKS)
            and not hlo.in_loop
            and self._gains(hlo, given)
        )

    def _in_two_passes(self, hlo: Hlo, x: H, counts: H, given: ArrayType, output: ArrayType) -> H:
        (best,) = Reduce(self.kind, (self.axis,)).lower(
            hlo, (x,), (given,), (given.with_shape(output.shape),)
        )
        kept = without(range(given.rank), (self.axis,))
        chosen = hlo.compare("EQ", x, hlo.broadcast(best, given, kept))
        if given.dtype.is_float:
            chosen = hlo.binary("or", chosen, hlo.compare("NE", x, x))
        none = hlo.size(given.shape[self.axis]) - 1
        counted = given.with_dtype(self.dtype)
        counts = hlo.select(chosen, counts, hlo.full(none, counted))
        return combined(hlo, "minimum", counts, (self.axis,), counted, output)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return (ArgReduce(self.kind, self.axis + 1, self.dtype)(*operands),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape)


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
