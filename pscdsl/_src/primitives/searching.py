"""Places in sorted arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives.indexing import Gather, moved
from pscdsl._src.primitives.linear import WithoutTangents
from pscdsl._src.primitives.reductions import combinable
from pscdsl._src.primitives.shaping import each_batched, same_sizes
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

Side: TypeAlias = Literal["left", "right"]

FEW = 64
"""Up to so many elements all are compared; above, halves are discarded one after the other."""


@dataclass(frozen=True)
class SearchSorted(WithoutTangents, name="search_sorted"):
    """The i32 places at which elements go into a sorted array; operands a, v.

    A place is the number of elements of a before it: those that are smaller, for the side
    "right" also those that are equal.  NaN is the largest.  The last axis of a is sorted, those
    before it are shared with v.  What is found in an array that is not sorted is some place.

    Of many elements, the largest power of two that stays before the place is taken, then the next
    one; every element of v takes its step at the same time.
    """

    side: Side

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a, v = operands
        shared = a.rank - 1
        if (
            a.dtype is not v.dtype
            or not (a.dtype is BOOL or a.dtype.is_integer or a.dtype.is_float)
            or not 0 <= shared <= v.rank
            or not same_sizes(facts, a.shape[:shared], v.shape[:shared])
        ):
            self.ill_typed(f"operands are {a} and {v}")
        return (v.with_dtype(I32),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        a, v = map(combinable, operands)
        shared, count = a.ndim - 1, a.shape[-1]
        lines = a.reshape(*a.shape[:shared], *(1,) * (v.ndim - shared), count)
        if count <= FEW:
            before = self._before(lines, v[..., None])
            return (np.asarray(np.sum(before, axis=-1, dtype=np.int32)),)
        place = np.zeros(v.shape, np.int32)
        for step in _steps(count):
            further = np.minimum(place + step, count)
            other = np.take_along_axis(
                np.broadcast_to(lines, (*v.shape, count)), further[..., None] - 1, -1
            )[..., 0]
            good = (place + step <= count) & self._before(other, v)
            place = np.where(good, place + step, place)
        return (place,)

    def _before(self, a: NDArray, v: NDArray) -> NDArray:
        found: NDArray = (a < v) | ((v != v) & (a == a)) if self.side == "left" else a <= v
        return found if self.side == "left" else found | (v != v)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (a, v), (row, wanted), (output,) = operands, inputs, outputs
        count, shared = hlo.size(row.shape[-1]), row.rank - 1
        place = hlo.full(0, output)
        if not count or 0 in hlo.shape(wanted.shape):
            return (place,)
        if count <= FEW:
            return (self._counted(hlo, a, v, (row, wanted, output)),)
        pick, one = Gather((shared,), shared), hlo.full(1, output)
        tuples = output.with_shape((*output.shape, 1))
        for step in _steps(count):
            further = hlo.binary("add", place, hlo.full(step, output))
            index = hlo.reshape(hlo.binary("subtract", further, one), tuples)
            (other,) = pick.lower(hlo, (a, index), (row, tuples), (wanted,))
            inside = hlo.compare("LE", further, hlo.full(count, output))
            good = hlo.binary("and", inside, self._is_before(hlo, other, v, wanted))
            place = hlo.select(good, further, place)
        return (place,)

    def _counted(self, hlo: Hlo, a: H, v: H, types: Types) -> H:
        """The places by comparing with all elements: NaN is before nothing, and comes after all."""
        row, wanted, output = types
        place = hlo.full(0, output)
        for index in range(hlo.size(row.shape[-1])):
            place = self._further(hlo, self._element(hlo, a, row, index, wanted), v, place, output)
        if not wanted.dtype.is_float:
            return place
        return hlo.select(hlo.compare("NE", v, v), self._last(hlo, a, row, output), place)

    def _further(self, hlo: Hlo, other: H, v: H, place: H, output: ArrayType) -> H:
        """One place further where an element is before what is sought."""
        before = hlo.compare("LT" if self.side == "left" else "LE", other, v)
        return hlo.binary("add", place, hlo.convert(before, output))

    def _last(self, hlo: Hlo, a: H, row: ArrayType, output: ArrayType) -> H:
        """The places of NaN: after all elements, for the side "left" those that are numbers."""
        if self.side == "right":
            return hlo.full(hlo.size(row.shape[-1]), output)
        numbers = hlo.convert(hlo.compare("EQ", a, a), row.with_dtype(I32))
        shared = ArrayType(I32, row.shape[:-1])
        (found,) = hlo.reduce(
            [numbers],
            [hlo.full(0, ArrayType(I32))],
            (row.rank - 1,),
            [shared],
            lambda x, y: [hlo.binary("add", x[0], y[0])],
        )
        return hlo.broadcast(found, output, tuple(range(row.rank - 1)))

    def _element(self, hlo: Hlo, a: H, row: ArrayType, index: int, wanted: ArrayType) -> H:
        """An element of each line, spread over those of v that it is compared with."""
        front, none = hlo.shape(row.shape[:-1]), [0] * (row.rank - 1)
        one = hlo.slice(a, (*none, index), (*front, index + 1))
        return hlo.broadcast(
            hlo.reshape(one, row.with_shape(front)), wanted, tuple(range(len(front)))
        )

    def _is_before(self, hlo: Hlo, a: H, v: H, given: ArrayType) -> H:
        before = hlo.compare("LT" if self.side == "left" else "LE", a, v)
        if not given.dtype.is_float:
            return before
        last = hlo.compare("NE", v, v)
        if self.side == "left":
            last = hlo.binary("and", last, hlo.compare("EQ", a, a))
        return hlo.binary("or", before, last)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        (a, v), (many, many_v) = operands, batched
        if many_v and not many:
            shared = a.ndim - 1
            return (moved(self(a, moved(v, 0, shared)), shared, 0),), (True,)
        return self.bind(*each_batched(operands, batched, size)), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        """Nothing: comparisons are no arithmetic."""
        return 0


def _steps(count: int) -> list[int]:
    """Powers of two, from the largest that is no more than a number down."""
    return [1 << power for power in reversed(range(count.bit_length()))]
