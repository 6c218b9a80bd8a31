"""Diagonals of matrices, read where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.elementwise import Select, equal, subtract
from pscdsl._src.primitives.shaping import Broadcast, Pad, Shaping, at_most, stored, without
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


@dataclass(frozen=True)
class Diagonal(Shaping, name="diagonal"):
    """So many elements of an axis and the next one, from a row and a column on, along one axis.

    Where there are any, there are as many rows and columns from there on.  In a derivative zeros
    are selected elsewhere, which is done together with what is computed of them.
    """

    axis: int
    count: Size
    row: Size = 0
    column: Size = 0

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        axis = self.axis
        if not 0 <= axis < x.rank - 1 or not at_most(facts, 0, self.count):
            self.ill_typed(f"{self.count} of axes {axis} and {axis + 1} of {x}")
        return (x.with_shape((*x.shape[:axis], self.count, *x.shape[axis + 2 :])),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        count, row, column = here.shape((self.count, self.row, self.column))
        places = np.arange(count)
        index: list[Any] = [slice(None)] * self.axis
        index += [row + places, column + places]
        return (np.asarray(operands[0][tuple(index)]),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (given,), (output,), axis = inputs, outputs, self.axis
        if 0 in hlo.shape(output.shape):
            return (hlo.full(0, output),)
        places = ArrayType(I32, (self.count, 2))
        (pairs,) = hlo.op("iota", (), (places,), {"iota_dimension": 0})
        start = hlo.shape((self.row, self.column))
        if any(start):
            first = hlo.constant(np.array(start, np.int32), ArrayType(I32, (2,)))
            pairs = hlo.binary("add", pairs, hlo.broadcast(first, places, (1,)))
        whole = [*hlo.shape(given.shape), *stored(given)]
        kept = [place for place in range(len(whole) - 1) if place != axis]
        numbers = hlo.parse_attribute(
            f"#stablehlo.gather<offset_dims = {kept}, "
            f"collapsed_slice_dims = {[axis, axis + 1]}, "
            f"start_index_map = {[axis, axis + 1]}, index_vector_dim = 1>"
        )
        whole[axis] = whole[axis + 1] = 1
        attributes = {"dimension_numbers": numbers, "slice_sizes": hlo.i64_array(whole)}
        return hlo.op("gather", (operands[0], pairs), outputs, attributes)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x,) = cotangents, operands
        assert cotangent is not None
        assert isinstance(x, ArrayType)
        here, axis, columns = cotangent.builder, self.axis, x.shape[self.axis + 1]
        zero = here.literal(0, x.dtype)
        if self.column != 0 or self.count != columns:
            before: list[Size] = [0] * cotangent.ndim
            after = list(before)
            before[axis], after[axis] = self.column, columns - self.column - self.count
            inside = (0,) * cotangent.ndim
            cotangent = Pad(tuple(before), tuple(after), inside)(cotangent, zero)
        across = Broadcast(x.shape, without(range(x.rank), (axis,)))(cotangent)
        row, column = (here.bind(Iota(x.shape, each, I32), ())[0] for each in (axis, axis + 1))
        if self.row != self.column:
            column = subtract(column, here.size(self.column - self.row, I32))
        return (Select()(equal(row, column), across, zero),)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return replace(self, axis=self.axis + 1).bind(*operands), (True,)
