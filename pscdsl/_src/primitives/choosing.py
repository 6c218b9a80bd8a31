"""Choices of each element: by a predicate, or by bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives.pointwise import Pointwise, gathered, joint_shape, spread
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, Kind

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


def _zero(value: Value) -> Value:
    """Zero in the dtype of a value."""
    return value.builder.literal(0, value.dtype)


@dataclass(frozen=True)
class Select(Pointwise, name="select", cheap=True):
    """Where the predicate holds the first, elsewhere the second."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        predicate, x, y = operands
        if predicate.dtype is not BOOL or x.dtype is not y.dtype:
            self.ill_typed(f"operands are {predicate}, {x}, {y}")
        return (ArrayType(x.dtype, joint_shape(self, facts, operands)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (np.asarray(np.where(*operands)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        shape = outputs[0].shape
        predicate, x, y = (
            h if t.shape or not shape or i == 0 else hlo.broadcast(h, t.with_shape(shape), ())
            for i, (h, t) in enumerate(zip(operands, inputs, strict=True))
        )
        return (hlo.select(predicate, x, y),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (output,), predicate = outputs, primals[0]
        zero = _zero(output)
        x, y = (zero if each is None else each for each in tangents[1:])
        return (spread(self(predicate, x, y), output.shape),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (predicate, x, y) = cotangents, operands
        assert cotangent is not None
        assert not isinstance(predicate, ArrayType)
        zero = _zero(cotangent)
        one = gathered(self(predicate, cotangent, zero), x) if isinstance(x, ArrayType) else None
        other = gathered(self(predicate, zero, cotangent), y) if isinstance(y, ArrayType) else None
        return (None, one, other)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape)


@dataclass(frozen=True)
class Clamp(Pointwise, name="clamp", cheap=True):
    """Bound from below and above: `minimum(maximum(x, low), high)`; operands low, x, high."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        low, x, high = operands
        if not low.dtype is x.dtype is high.dtype or x.dtype.kind not in (Kind.INT, Kind.FLOAT):
            self.ill_typed(f"operands are {low}, {x}, {high}")
        return (ArrayType(x.dtype, joint_shape(self, facts, operands)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        low, x, high = operands
        with np.errstate(all="ignore"):
            return (np.asarray(np.minimum(np.maximum(x, low), high)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        low, x, high = (
            h if t.shape == outputs[0].shape else hlo.broadcast(h, outputs[0], ())
            for h, t in zip(operands, inputs, strict=True)
        )
        return hlo.op("clamp", (low, x, high), outputs)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        from pscdsl._src.primitives.elementwise import maximum, minimum

        low, x, high = primals
        above = maximum(x, low)
        (tangent,) = maximum.jvp((above,), (x, low), (tangents[1], tangents[0]))
        return minimum.jvp(outputs, (above, high), (tangent, tangents[2]))

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * 2


def select_rows(predicate: Value, one: Value, other: Value) -> Value:
    """Of two batches, each lane from the one that its predicate says."""
    if one.ndim > 1:
        predicate = predicate.builder.spread(predicate, one.shape, (0,))
    return Select()(predicate, one, other)
