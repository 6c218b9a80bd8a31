"""Casts: to another dtype by value, or by the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives import scalar_functions as f
from pscdsl._src.primitives.pointwise import Pointwise
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import KEY, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


@dataclass(frozen=True)
class Convert(Pointwise, name="convert", cheap=True):
    """Cast to another dtype: floats to integers by truncation, complex to real by its real part."""

    dtype: DType

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if KEY in (x.dtype, self.dtype):
            self.ill_typed(f"{x} as {self.dtype}")
        return (x.with_dtype(self.dtype),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (f.convert(operands[0], to_numpy(self.dtype)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,), (output,) = operands, inputs, outputs
        return (f.emit_convert(hlo, x, given, output),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (tangent,) = tangents
        if tangent is None or not self.dtype.is_inexact:
            return (None,)
        return (self(tangent),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (operand,) = cotangents, operands
        assert cotangent is not None
        return (Convert(operand.dtype)(cotangent),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0


@dataclass(frozen=True)
class Bitcast(Pointwise, name="bitcast"):
    """Read the same bits as another dtype of the same width."""

    dtype: DType

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        pair = (x.dtype, self.dtype)
        if x.dtype.bits != self.dtype.bits or not all(d.is_integer or d.is_float for d in pair):
            self.ill_typed(f"{x.dtype} and {self.dtype} differ in width, or are not numbers")
        return (x.with_dtype(self.dtype),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (
            np.ascontiguousarray(operands[0]).view(to_numpy(self.dtype)).reshape(operands[0].shape),
        )

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.op("bitcast_convert", operands, outputs)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # The bits of a number as another dtype are no smooth function of it.
        return tangents if primals[0].dtype is self.dtype else (None,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0
