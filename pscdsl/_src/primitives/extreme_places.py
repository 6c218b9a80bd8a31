"""Where along an axis the extreme stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives.linear import WithoutTangents
from pscdsl._src.primitives.reductions import (
    Extreme,
    combinable,
    identity,
    reducible,
)
from pscdsl._src.primitives.shaping import are_axes, without
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


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
        counted = given.with_dtype(self.dtype)
        (counts,) = hlo.op("iota", (), (counted,), {"iota_dimension": self.axis})
        inits = (
            hlo.full(identity(self.kind, given.dtype), ArrayType(given.dtype)),
            hlo.full(0, ArrayType(self.dtype)),
        )
        best = given.with_shape(output.shape)
        combine = first_extreme(hlo, self.kind, given.dtype)
        _, place = hlo.reduce((x, counts), inits, (self.axis,), (best, output), combine)
        return (place,)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return (ArgReduce(self.kind, self.axis + 1, self.dtype)(*operands),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape)
