"""Sums of neighbours: what an area under evenly spaced samples is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pscdsl.forms import form
from pscdsl.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl.primitives.creation import Iota
from pscdsl.primitives.elementwise import Select, bitwise_or, equal, multiply
from pscdsl.primitives.linear import Bilinear
from pscdsl.primitives.reductions import Reduce, accumulator, combined
from pscdsl.primitives.shaping import Broadcast, are_axes, without
from pscdsl.typing.arrays import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32

if TYPE_CHECKING:
    from pscdsl.builder import Value

NEIGHBOURS_BY_ENDS = form(
    "neighbours_by_ends",
    "Sums of neighbours of large arrays, for `np.trapezoid`, by the sum of all and the two ends "
    "instead of two slices, which XLA stores: 0.2 of the time for a million elements.",
)
FEWEST = 1 << 13
"""In smaller arrays XLA reads the slices where they are."""
FEWEST_ALONG = 32
"""The ends of a short axis would count for much."""


@dataclass(frozen=True)
class NeighbourSum(Bilinear, name="neighbour_sum"):
    """The sum of `(x[i] + x[i + 1]) * step` along an axis that has elements; of one it is 0.

    The operands are an inexact array and a scalar of its dtype.
    """

    axis: int

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, step = operands
        if (
            not are_axes((self.axis,), x.rank)
            or not x.dtype.is_inexact
            or step.dtype is not x.dtype
            or step.rank
        ):
            self.ill_typed(f"operands are {x} and {step}, along axis {self.axis}")
        return (x.with_shape(without(x.shape, (self.axis,))),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, step = operands
        wide = np.moveaxis(x, self.axis, -1)
        if x.dtype.itemsize == 2:
            wide, step = wide.astype(np.float32), step.astype(np.float32)
        with np.errstate(all="ignore"):
            found = np.sum((wide[..., 1:] + wide[..., :-1]) * step, axis=-1)
        return (np.asarray(found).astype(x.dtype),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (given, scalar), (output,) = inputs, outputs
        shape = hlo.shape(given.shape)
        count = shape[self.axis]
        if count <= 1 or 0 in shape:
            return (hlo.full(0, output),)
        dtype = accumulator("sum", given.dtype)
        given, scalar, wide = (each.with_dtype(dtype) for each in (given, scalar, output))
        x, step = (hlo.convert(each, t) for each, t in zip(operands, (given, scalar), strict=True))
        large = prod(shape) >= FEWEST and count >= FEWEST_ALONG
        if not large or not dtype.is_float or hlo.nested or not hlo.uses(NEIGHBOURS_BY_ENDS):
            return (hlo.convert(self._by_pairs(hlo, x, step, given, wide), output),)
        found = self._by_ends(hlo, x, step, given, wide)
        # A sum of all can be infinite, or NaN, where that of the pairs is not: that is rare.
        flags, flag = wide.with_dtype(BOOL), ArrayType(BOOL)
        unsure = hlo.unary("not", hlo.op("is_finite", (found,), (flags,))[0])
        if wide.rank:
            unsure = combined(hlo, "any", unsure, tuple(range(wide.rank)), flags, flag)

        def again() -> Sequence[H]:
            return (self._by_pairs(hlo, x, step, given, wide),)

        (found,) = hlo.case(unsure, (lambda: (found,), again), (wide,))
        return (hlo.convert(found, output),)

    def _by_pairs(self, hlo: Hlo, x: H, step: H, given: ArrayType, output: ArrayType) -> H:
        shape = hlo.shape(given.shape)
        count = shape[self.axis] - 1
        less = given.with_shape((*shape[: self.axis], count, *shape[self.axis + 1 :]))
        pairs = hlo.binary(
            "add", *[_part(hlo, x, self.axis, shape, start, count + start) for start in (1, 0)]
        )
        scaled = hlo.binary("multiply", pairs, hlo.broadcast(step, less, ()))
        return combined(hlo, "sum", scaled, (self.axis,), less, output)

    def _by_ends(self, hlo: Hlo, x: H, step: H, given: ArrayType, output: ArrayType) -> H:
        """Twice the sum of all, less the ends."""
        shape = hlo.shape(given.shape)
        total = combined(hlo, "sum", x, (self.axis,), given, output)
        first, last = (
            hlo.reshape(_part(hlo, x, self.axis, shape, i, i + 1), output)
            for i in (0, shape[self.axis] - 1)
        )
        inner = hlo.binary("subtract", total, hlo.binary("add", first, last))
        scaled = hlo.binary("add", total, inner)
        return hlo.binary("multiply", scaled, hlo.broadcast(step, output, ()))

    def cotangent(self, cotangent: Value, operand: ArrayType, other: Value, place: int) -> Value:
        if place:
            x, here = other, other.builder
            found = multiply(cotangent, self(x, here.literal(1, x.dtype)))
            axes = tuple(range(found.ndim))
            return Reduce("sum", axes)(found) if axes else found
        # Every element counts twice, the ends once; if there is one alone, it does not count.
        shape = operand.shape
        one: Value = multiply(cotangent, other)
        spread = Broadcast(shape, without(range(operand.rank), (self.axis,)))
        (index,) = one.builder.bind(Iota(shape, self.axis, I32), ())
        size = one.builder.size(shape[self.axis], I32)
        is_end = bitwise_or(equal(index, 0), equal(index, size - 1))
        twice: Value = multiply(one, 2)
        end = Select()(equal(size, 1), one.builder.literal(0, one.dtype), one)
        return Select()(is_end, spread(end), spread(twice))

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        (x, step), (many, many_steps) = operands, batched
        along = NeighbourSum(self.axis + 1)
        if not many_steps:
            return (along(x, step),), (True,)
        if many:
            x = multiply(x, Broadcast(x.shape, (0,))(step))
            return (along(x, x.builder.literal(1, x.dtype)),), (True,)
        found = self(x, x.builder.literal(1, x.dtype))
        shape = (size, *found.shape)
        steps, sums = (
            Broadcast(shape, (0,))(step),
            Broadcast(shape, tuple(range(1, len(shape))))(found),
        )
        return (multiply(steps, sums),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape) * 3


def _part(hlo: Hlo, x: H, axis: int, shape: Sequence[int], start: int, limit: int) -> H:
    starts, limits = [0] * len(shape), list(shape)
    starts[axis], limits[axis] = start, limit
    return hlo.slice(x, starts, limits)
