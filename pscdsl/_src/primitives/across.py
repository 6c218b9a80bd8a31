"""Primitives of one device's part of a program, which combine the parts of several devices.

They are only in a function while `psc.on_each` reads it. It runs the function on all parts
together, over a batch with one part for each device, where sums and pieces of other devices are
ordinary operations along the axis of the batch. The last operand is the place of the device: where
it is batched, that batch is the one over devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from pscdsl._src.interpreters.replay import repeated
from pscdsl._src.ir.primitive import Primitive, Types
from pscdsl._src.primitives.collectives import PlaceAlong
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Reshape, Rotate, Transpose
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size, substitute, variable

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


@dataclass(frozen=True)
class Across(Primitive):
    """Base of the primitives whose operands are an array and the place of the device."""

    axis: str
    keeps: ClassVar[bool] = False
    """Whether its result differs between devices, unless its operand is the same on all."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return operands[:1]

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        x, place = operands
        if not batched[1]:
            return self.over_rows().bind(x, place), (True,)
        if self.keeps and not batched[0]:
            return (x,), (False,)
        return (self.combined(x if batched[0] else repeated(x, size)),), (self.keeps,)

    def over_rows(self) -> Self:
        """Return the primitive for a batch of arrays on each device."""
        return self

    def combined(self, x: Value) -> Value:
        """Return the result for the arrays of all devices along a first axis."""
        raise NotImplementedError


@dataclass(frozen=True)
class AcrossSum(Across, name="axis_sum"):
    """The sum of the arrays of all devices."""

    def combined(self, x: Value) -> Value:
        return Reduce("sum", (0,))(x)


@dataclass(frozen=True)
class AcrossGather(Across, name="axis_gather"):
    """The arrays of all devices, put together along an axis."""

    dim: int

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x = operands[0]
        return (x.with_shape(self._joined(facts, x.shape)),)

    def over_rows(self) -> Self:
        return replace(self, dim=self.dim + 1)

    def combined(self, x: Value) -> Value:
        whole = PlaceAlong(((), *(None,) * (x.ndim - 1)))(x)
        return merged(whole, self.dim, self._joined(x.builder.facts, x.shape[1:]))

    def _joined(self, facts: Assumptions, shape: Shape) -> Shape:
        return with_all(facts, self.axis, shape, self.dim)


@dataclass(frozen=True)
class AcrossShift(Across, name="axis_shift"):
    """The array of the device some places before, in a ring."""

    by: int
    keeps: ClassVar[bool] = True

    def combined(self, x: Value) -> Value:
        return Rotate(0, self.by)(x)


def with_all(facts: Assumptions, axis: str, piece: Shape, dim: int) -> Shape:
    """Return the shape of the pieces of all devices put together along one of their axes.

    The length is written without the number of devices where it does not depend on it.
    """
    length = variable(axis) * piece[dim]
    alone = substitute(length, {axis: 1})
    whole = alone if facts.equal(length, alone) else length
    return (*piece[:dim], whole, *piece[dim + 1 :])


def merged(x: Value, axis: int, shape: Shape) -> Value:
    """Return arrays along a first axis put together along an axis of theirs."""
    order = (*range(1, axis + 1), 0, *range(axis + 1, x.ndim))
    return Reshape(shape)(x if not axis else Transpose(order)(x))
