"""Sums of products along axes.

16-bit floats are accumulated in f32, and the result is rounded once; integers wrap around.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pscdsl._src.ir.axis_rules import AxisRule
from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives.elementwise import Convert, multiply
from pscdsl._src.primitives.pointwise import Bilinear
from pscdsl._src.primitives.shaping import (
    Transpose,
    are_axes,
    exactly,
    inverted,
    same_sizes,
    without,
)
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import F32, I32, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

Axes: TypeAlias = tuple[int, ...]
Pair: TypeAlias = tuple[Axes, Axes]
"""Axes of the first operand, and of the second."""


@dataclass(frozen=True)
class DotGeneral(Bilinear, name="dot_general"):
    """Sums of products along pairs of axes; those of `batched` are shared.

    The result has the shared axes, then the other axes of the first operand, then of the second.
    `result` is its dtype if that is wider than the operands'.
    """

    contract: Pair
    batched: Pair = ((), ())
    result: DType | None = None

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, y = operands
        kept = _remaining_axes(self.contract, self.batched, len(x.shape), len(y.shape))
        if kept is None or not same_sizes(
            facts,
            [x.shape[axis] for axis in (*self.batched[0], *self.contract[0])],
            [y.shape[axis] for axis in (*self.batched[1], *self.contract[1])],
        ):
            self.ill_typed(f"{x} and {y} along {self.contract}, sharing {self.batched}")
        if x.dtype is not y.dtype or not x.dtype.is_number:
            self.ill_typed(f"operands are {x} and {y}")
        wide = self.result or x.dtype
        if wide is not x.dtype and (
            wide.kind is not x.dtype.kind
            or wide.bits <= x.dtype.bits
            or wide.signed < x.dtype.signed
        ):
            self.ill_typed(f"{wide} is no wider than {x.dtype}")
        left = [x.shape[axis] for axis in (*self.batched[0], *kept[0])]
        return (ArrayType(wide, (*left, *[y.shape[axis] for axis in kept[1]])),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, y = operands
        dtype = to_numpy(self.result) if self.result else x.dtype
        wide = to_numpy(accumulator(from_numpy(dtype)))
        left, right = [
            without(range(operand.ndim), (*b, *c))
            for operand, b, c in zip(operands, self.batched, self.contract, strict=True)
        ]
        x = x.transpose(*self.batched[0], *left, *self.contract[0])
        y = y.transpose(*self.batched[1], *self.contract[1], *right)
        shared, inner = x.shape[: len(self.batched[0])], len(self.contract[0])
        rows, columns = x.shape[len(shared) : x.ndim - inner], y.shape[len(shared) + inner :]
        terms = prod(y.shape[len(shared) : len(shared) + inner])
        a = x.astype(wide).reshape(*shared, prod(rows), terms)
        b = y.astype(wide).reshape(*shared, terms, prod(columns))
        with np.errstate(all="ignore"):
            result = np.matmul(a, b).astype(dtype)
        return (result.reshape(shared + rows + columns),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (output,) = outputs
        wide = output.with_dtype(accumulator(output.dtype))
        operands = widened(hlo, operands, inputs, wide.dtype)
        axes = (*self.batched, *self.contract)
        numbers = hlo.parse_attribute(
            "#stablehlo.dot<lhs_batching_dimensions = {}, rhs_batching_dimensions = {}, "
            "lhs_contracting_dimensions = {}, rhs_contracting_dimensions = {}>".format(
                *map(list, axes)
            )
        )
        attributes = {"dot_dimension_numbers": numbers, "precision_config": precision(hlo)}
        (result,) = hlo.op("dot_general", operands, (wide,), attributes)
        return (hlo.convert(result, output),)

    def with_factor(self, place: int, rank: int, first: bool) -> tuple[DotGeneral, Axes]:
        """Return the contraction with a factor turned to be summed over its first or last axes.

        XLA multiplies matrices fastest on the CPU if the summed axes are the last of the first
        factor and the first of the second. The second result is the order of the factor's axes.
        """
        summed = self.contract[place]
        kept = without(range(rank), summed)
        order = (*summed, *kept) if first else (*kept, *summed)
        contract = list(self.contract)
        contract[place] = tuple([order.index(axis) for axis in summed])
        return DotGeneral((contract[0], contract[1]), self.batched, self.result), order

    def cotangent(self, cotangent: Value, operand: ArrayType, other: Value, place: int) -> Value:
        dot, swapped, order = _pull(self.contract, self.batched, place, operand.rank, other.ndim)
        other = _convert(other, self.result or operand.dtype)
        if not cotangent.ndim:
            result = multiply(other, cotangent)
        else:
            result = dot(other, cotangent) if swapped else dot(cotangent, other)
        result = _convert(result, operand.dtype)
        if order is not None:
            result = Transpose(order)(result)
        return exactly(result, operand.shape)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        shared, summed = (
            [
                tuple([axis + many for axis in each])
                for each, many in zip(axes, batched, strict=True)
            ]
            for axes in (self.batched, self.contract)
        )
        count = len(shared[0])
        if all(batched):
            both = ((0, *shared[0]), (0, *shared[1]))
            return (DotGeneral((summed[0], summed[1]), both, self.result)(*operands),), (True,)
        # The batch is one more axis that an operand keeps.
        left, right = [operand.ndim - count - len(summed[0]) for operand in operands]
        order = (1, 0) if batched[1] and right == 1 else (0, 1)
        x, y = [operands[i] for i in order]
        contract, sharing = ((each[order[0]], each[order[1]]) for each in (summed, shared))
        result = DotGeneral(contract, sharing, self.result)(x, y)
        place = count + (left if batched[1] and order == (0, 1) else 0)
        if place:
            result = Transpose((place, *without(range(result.ndim), (place,))))(result)
        return (result,), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        if not self.contract[0]:
            return size_of(outputs[0].shape)
        terms = size_of(tuple([inputs[0].shape[axis] for axis in self.contract[0]]))
        return size_of(outputs[0].shape) * terms * 2

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        (first, second), (left, right) = self.batched, self.contract
        x: dict[int, int] = {}
        y: dict[int, int] = {}
        for one, other in zip((*first, *left), (*second, *right), strict=True):
            x[one] = y[other] = len(x)
        rows = [axis for axis in range(inputs[0].rank) if axis not in x]
        columns = [axis for axis in range(inputs[1].rank) if axis not in y]
        for axis in rows:
            x[axis] = len(x)
        for number, axis in enumerate(columns, start=len(x)):
            y[axis] = number
        result = (*[x[a] for a in (*first, *rows)], *[y[a] for a in columns])
        operands = tuple([x[a] for a in range(len(x))]), tuple([y[a] for a in range(len(y))])
        return AxisRule(operands, (result,))


@lru_cache(maxsize=1024)
def _remaining_axes(contract: Pair, batched: Pair, left: int, right: int) -> Pair | None:
    """Return the axes that remain of operands of these ranks; None if the axes do not fit."""
    used = [(*b, *c) for b, c in zip(batched, contract, strict=True)]
    if (
        len(batched[0]) != len(batched[1])
        or len(contract[0]) != len(contract[1])
        or not are_axes(used[0], left)
        or not are_axes(used[1], right)
    ):
        return None
    return without(range(left), used[0]), without(range(right), used[1])


@lru_cache(maxsize=1024)
def _pull(
    contract: Pair, batched: Pair, place: int, rank: int, other_rank: int
) -> tuple[DotGeneral, bool, Axes | None]:
    """Return the contraction that computes an operand's cotangent from the result's.

    The three results are the contraction, whether the other operand is its first factor, and the
    permutation of its axes that gives the operand's order, if one is needed.
    """
    own, their = batched[place], batched[1 - place]
    summed, their_summed = contract[place], contract[1 - place]
    kept = without(range(rank), (*own, *summed))
    their_kept = without(range(other_rank), (*their, *their_summed))
    # The cotangent has the shared axes, then those kept from the first operand and the second.
    shared = tuple(range(len(own)))
    first = len(own) + (len(their_kept) if place else 0)
    left = tuple(range(first, first + len(kept)))
    gone = without(range(len(own) + len(kept) + len(their_kept)), (*shared, *left))
    # The result's last axes as axes of the operand, by the order of the two factors.
    restored = tuple([summed[their_summed.index(axis)] for axis in sorted(their_summed)])
    orders = ((*own, *kept, *restored), (*own, *restored, *kept))
    swapped = place if _is_sorted(orders[place]) else 1 - place
    if swapped:
        dot = DotGeneral((their_kept, gone), (their, shared))
    else:
        dot = DotGeneral((gone, their_kept), (shared, their))
    order = orders[swapped]
    return dot, bool(swapped), None if _is_sorted(order) else inverted(order)


def _is_sorted(axes: Sequence[int]) -> bool:
    return all(a < b for a, b in pairwise(axes))


def _convert(x: Value, dtype: DType) -> Value:
    return x if x.dtype is dtype else Convert(dtype)(x)


def accumulator(dtype: DType) -> DType:
    """Return the dtype in which products are summed."""
    if dtype.is_integer:
        return dtype if dtype.bits >= 32 else I32
    return F32 if dtype.is_float and dtype.bits == 16 else dtype


def widened(hlo: Hlo, operands: Sequence[H], inputs: Types, wide: DType) -> Sequence[H]:
    """Operands in the dtype of the sum, in which products are exact.

    XLA takes 16-bit floats as they are, but bf16 not in all layouts, and is no faster for it.
    """
    return [
        hlo.convert(x, type_.with_dtype(wide)) for x, type_ in zip(operands, inputs, strict=True)
    ]


def precision(hlo: Hlo) -> tuple[object, object]:
    """Return the attribute that keeps products of f32 in f32, even on devices with faster ones."""
    highest = hlo.parse_attribute("#stablehlo<precision HIGHEST>")
    return highest, highest
