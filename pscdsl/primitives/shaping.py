"""Primitives that move elements without computing: new axes, new orders, parts and joins.

Arrays of random keys take part: they are stored with a last axis of 2 that types do not show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TypeVar

import numpy as np

from pscdsl.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl.typing.arrays import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size, maximum
from pscdsl.typing.dtypes import KEY

T = TypeVar("T")


def stored(type: ArrayType) -> tuple[int, ...]:  # noqa: A002
    """The axes of an array that its type does not show: the two words of a key."""
    return (2,) if type.dtype is KEY else ()


def same_sizes(facts: Assumptions, left: Iterable[Size], right: Iterable[Size]) -> bool:
    """Whether two shapes of one rank are provably the same."""
    return all(a == b or facts.equal(a, b) for a, b in zip(left, right, strict=True))


def without(items: Sequence[T], axes: Iterable[int]) -> tuple[T, ...]:
    """The items that stand at none of the axes."""
    dropped = frozenset(axes)
    return tuple([item for axis, item in enumerate(items) if axis not in dropped])


def at_most(facts: Assumptions, low: Size, high: Size) -> bool:
    """Whether one size is provably not above another."""
    if isinstance(low, int) and isinstance(high, int):
        return low <= high
    return low == high or facts.proves(Fact("<=", low, high))


def are_axes(axes: Sequence[int], rank: int) -> bool:
    """Whether these are different axes of an array of this rank."""
    return len(frozenset(axes)) == len(axes) and all(0 <= axis < rank for axis in axes)


class Shaping(Primitive):
    """A primitive that costs no arithmetic."""

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0


@dataclass(frozen=True)
class Broadcast(Shaping, name="broadcast"):
    """Repeat along new axes: axis i of the operand becomes axis `dims[i]`, sizes stay."""

    shape: Shape
    dims: tuple[int, ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        dims, shape = self.dims, self.shape
        if (
            len(dims) != x.rank
            or any(a >= b for a, b in pairwise(dims))
            or not are_axes(dims, len(shape))
            or not same_sizes(facts, x.shape, [shape[axis] for axis in dims])
        ):
            self.ill_typed(f"{x} as axes {dims} of [{_text(shape)}]")
        return (ArrayType(x.dtype, shape),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        shape, words = here.shape(self.shape), x.shape[len(self.dims) :]
        aligned = [1] * len(shape)
        for axis, size in zip(self.dims, x.shape, strict=False):
            aligned[axis] = size
        return (np.broadcast_to(x.reshape((*aligned, *words)), (*shape, *words)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return (hlo.broadcast(operands[0], outputs[0], self.dims),)


@dataclass(frozen=True)
class Reshape(Shaping, name="reshape"):
    """The same elements, in the same order, counted by other axes."""

    shape: Shape

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if not facts.equal(size_of(x.shape), size_of(self.shape)):
            self.ill_typed(f"{x} as [{_text(self.shape)}]")
        return (ArrayType(x.dtype, self.shape),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        shape = here.shape(self.shape)
        # Twice the elements: keys.  An empty array of keys cannot be told from one of numbers.
        return (x.reshape(shape if prod(shape) == x.size else (*shape, 2)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return (hlo.reshape(operands[0], outputs[0]),)


@dataclass(frozen=True)
class Transpose(Shaping, name="transpose"):
    """Reorder the axes: axis i of the result is axis `permutation[i]` of the operand."""

    permutation: tuple[int, ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if len(self.permutation) != x.rank or not are_axes(self.permutation, x.rank):
            self.ill_typed(f"{self.permutation} does not reorder the axes of {x}")
        return (x.with_shape(tuple([x.shape[axis] for axis in self.permutation])),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        return (x.transpose(*self.permutation, *range(len(self.permutation), x.ndim)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        full = (*self.permutation, *(inputs[0].rank + i for i in range(len(stored(inputs[0])))))
        return hlo.op("transpose", operands, outputs, {"permutation": hlo.i64_array(full)})


@dataclass(frozen=True)
class Concatenate(Shaping, name="concatenate"):
    """Join arrays along an axis."""

    axis: int

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        if not operands or not 0 <= self.axis < operands[0].rank:
            self.ill_typed(f"no axis {self.axis}")
        first = operands[0]
        rest = without(first.shape, (self.axis,))
        total: Size = 0
        for each in operands:
            if (
                each.dtype is not first.dtype
                or each.rank != first.rank
                or not same_sizes(facts, without(each.shape, (self.axis,)), rest)
            ):
                self.ill_typed(f"operands are {', '.join(map(str, operands))}")
            total = total + each.shape[self.axis]
        return (first.with_shape((*rest[: self.axis], total, *rest[self.axis :])),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (np.concatenate(operands, axis=self.axis),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        if len(operands) == 1:
            return operands
        return hlo.op("concatenate", operands, outputs, {"dimension": self.axis})


@dataclass(frozen=True)
class Pad(Shaping, name="pad"):
    """Put copies of a scalar before, after and between the elements; operands x, scalar.

    A negative number of copies takes elements away, after those between have been put in.
    """

    low: tuple[Size, ...]
    high: tuple[Size, ...]
    interior: tuple[int, ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, scalar = operands
        if (
            x.dtype is KEY
            or scalar != ArrayType(x.dtype)
            or not len(self.low) == len(self.high) == len(self.interior) == x.rank
            or any(between < 0 for between in self.interior)
        ):
            self.ill_typed(f"operands are {x}, {scalar}")
        sizes: list[Size] = []
        for size, low, high, between in zip(
            x.shape, self.low, self.high, self.interior, strict=True
        ):
            result = low + size + high
            if between:
                gaps = size - 1 if at_most(facts, 1, size) else maximum(size - 1, 0)
                result = result + gaps * between
            if not at_most(facts, 0, result):
                self.ill_typed(f"{x} has no {-low} and {-high} elements to take away")
            sizes.append(result)
        return (x.with_shape(tuple(sizes)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, scalar = operands
        shape: list[int] = []
        source: list[slice] = []
        target: list[slice] = []
        for size, low, high, between in zip(
            x.shape, here.shape(self.low), here.shape(self.high), self.interior, strict=True
        ):
            step = between + 1
            width = low + high + max(size + (size - 1) * between, 0)
            first = max(0, -(low // step))  # the first that is not taken away
            count = max(first, min(size, -((low - width) // step)))
            shape.append(width)
            source.append(slice(first, count))
            target.append(slice(low + first * step, max(0, low + count * step), step))
        result = np.full(shape, scalar, x.dtype)
        part = x[tuple(source)]
        if part.size:
            result[tuple(target)] = part
        return (result,)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        attributes = {
            "edge_padding_low": hlo.i64_array(hlo.shape(self.low)),
            "edge_padding_high": hlo.i64_array(hlo.shape(self.high)),
            "interior_padding": hlo.i64_array(self.interior),
        }
        return hlo.op("pad", operands, outputs, attributes)


@dataclass(frozen=True)
class Slice(Shaping, name="slice"):
    """Every `stride`-th element from `start` up to, not including, `limit`."""

    start: tuple[Size, ...]
    limit: tuple[Size, ...]
    stride: tuple[int, ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if not len(self.start) == len(self.limit) == len(self.stride) == x.rank:
            self.ill_typed(f"{x} has {x.rank} axes")
        sizes: list[Size] = []
        for size, start, limit, stride in zip(
            x.shape, self.start, self.limit, self.stride, strict=True
        ):
            if stride < 1:
                self.ill_typed(f"stride {stride}")
            if not (
                at_most(facts, 0, start)
                and at_most(facts, start, limit)
                and at_most(facts, limit, size)
            ):
                self.ill_typed(f"{x} from {start} to {limit} along an axis of size {size}")
            length = limit - start
            sizes.append(length if stride == 1 else (length + (stride - 1)) // stride)
        return (x.with_shape(tuple(sizes)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        start, limit = here.shape(self.start), here.shape(self.limit)
        return (np.asarray(operands[0][tuple(map(slice, start, limit, self.stride))]),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        words = stored(inputs[0])
        attributes = {
            "start_indices": hlo.i64_array((*hlo.shape(self.start), *(0 for _ in words))),
            "limit_indices": hlo.i64_array((*hlo.shape(self.limit), *words)),
            "strides": hlo.i64_array((*self.stride, *(1 for _ in words))),
        }
        return hlo.op("slice", operands, outputs, attributes)


@dataclass(frozen=True)
class Reverse(Shaping, name="reverse"):
    """Count some axes from their end."""

    axes: tuple[int, ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if not are_axes(self.axes, x.rank):
            self.ill_typed(f"{self.axes} are not axes of {x}")
        return (x,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (np.flip(operands[0], self.axes),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.op("reverse", operands, outputs, {"dimensions": hlo.i64_array(self.axes)})


def _text(shape: Shape) -> str:
    return " ".join(map(str, shape))
