"""Primitives without operands: constants, sizes as numbers, counting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import DType


@dataclass(frozen=True)
class Constant(Primitive, name="constant", cheap=True):
    """An array known while building; held as bytes, so that equal constants are equal."""

    data: bytes
    type: ArrayType

    @classmethod
    def of(cls, array: Any, dtype: DType) -> Self:
        """An array captured by value."""
        array = np.ascontiguousarray(array, to_numpy(dtype))
        return cls(array.tobytes(), ArrayType(dtype, array.shape))

    def array(self) -> NDArray:
        """The array itself."""
        shape = tuple(int(size) for size in self.type.shape)  # type: ignore[arg-type]
        return np.frombuffer(self.data, to_numpy(self.type.dtype)).reshape(shape)

    def __repr__(self) -> str:
        return f"constant[{np.array2string(self.array(), threshold=4, edgeitems=2)}]"

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return (self.type,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (self.array(),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return (hlo.constant(self.array(), self.type),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0


@dataclass(frozen=True)
class SizeValue(Primitive, name="size", cheap=True):
    """A size as a number."""

    size: Size
    dtype: DType

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return (ArrayType(self.dtype),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (np.asarray(here.size(self.size), to_numpy(self.dtype)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return (hlo.full(hlo.size(self.size), outputs[0]),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0


@dataclass(frozen=True)
class Iota(Primitive, name="iota", cheap=True):
    """Counts 0, 1, 2, … along one axis."""

    shape: Shape
    axis: int
    dtype: DType

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        if not 0 <= self.axis < len(self.shape) or not self.dtype.is_number:
            self.ill_typed(f"{self.dtype} numbers along axis {self.axis} of {self.shape}")
        return (ArrayType(self.dtype, self.shape),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        shape = here.shape(self.shape)
        counts = np.arange(shape[self.axis]).astype(to_numpy(self.dtype))
        aligned = counts.reshape([-1 if a == self.axis else 1 for a in range(len(shape))])
        return (np.broadcast_to(aligned, shape),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.op("iota", (), outputs, {"iota_dimension": self.axis})

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0
