"""Primitives that compute nothing of elements: new arrays, new axes, new orders, parts, joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import numpy as np

from pscdsl._src.interpreters.replay import repeated
from pscdsl._src.ir.axis_rules import AxisRule, along, matched
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import CountedPart, Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.elementwise import Convert, Select, add
from pscdsl._src.primitives.pointwise import Linear
from pscdsl.typing.array_types import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size, maximum
from pscdsl.typing.dtypes import BOOL, I64, KEY, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


# Primitives without operands: constants, sizes as numbers, counting.


@dataclass(frozen=True)
class Constant(Primitive, name="constant", cheap=True):
    """An array known while building; held as bytes, so that equal constants are equal."""

    data: bytes
    type: ArrayType

    @classmethod
    def of(cls, array: Any, dtype: DType) -> Self:
        """Return an array captured by value."""
        array = np.ascontiguousarray(array, to_numpy(dtype))
        return cls(array.tobytes(), ArrayType(dtype, array.shape))

    def array(self) -> NDArray:
        """Return the array itself."""
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

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        return AxisRule((), (tuple(range(len(self.shape))),), counted=(self.axis,))

    def resized(self, inputs: Types, outputs: Types) -> Self:
        return replace(self, shape=outputs[0].shape)

    def counted_part(self, operands: Sequence[Value], part: CountedPart) -> Value:
        # Counts in i64 are converted as the whole ones are.
        counts = part.here.bind(Iota(part.type.shape, self.axis, I64), ())[0]
        return Convert(self.dtype)(add(counts, part.starts[self.axis]))


# Primitives that move elements without computing: new axes, new orders, parts and joins.
#
# Arrays of random keys take part: they are stored with a last axis of 2 that types do not show.


T = TypeVar("T")
Results: TypeAlias = "tuple[Sequence[Value], Sequence[bool]]"


def stored(type: ArrayType) -> tuple[int, ...]:  # noqa: A002
    """Return the axes of an array that its type does not show: the two words of a key."""
    return (2,) if type.dtype is KEY else ()


def same_sizes(facts: Assumptions, left: Iterable[Size], right: Iterable[Size]) -> bool:
    """Return whether two shapes of one rank are provably equal."""
    return all(a == b or facts.equal(a, b) for a, b in zip(left, right, strict=True))


def without(items: Sequence[T], axes: Iterable[int]) -> tuple[T, ...]:
    """Return the items whose indices are not among the axes."""
    dropped = frozenset(axes)
    return tuple([item for axis, item in enumerate(items) if axis not in dropped])


def at_most(facts: Assumptions, low: Size, high: Size) -> bool:
    """Return whether one size is provably not above another."""
    if isinstance(low, int) and isinstance(high, int):
        return low <= high
    return low == high or facts.proves(Fact("<=", low, high))


def are_axes(axes: Sequence[int], rank: int) -> bool:
    """Return whether these are different axes of an array of this rank."""
    return len(frozenset(axes)) == len(axes) and all(0 <= axis < rank for axis in axes)


def inverted(permutation: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that undoes another."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def with_gaps(facts: Assumptions, size: Size, between: int) -> Size:
    """Return the length of an axis after inserting `between` elements between each two."""
    if not between:
        return size
    return size + (size - 1 if at_most(facts, 1, size) else maximum(size - 1, 0)) * between


def part_of(shape: Shape, axis: int, start: Size, stop: Size) -> Slice:
    """Return the slice that cuts one axis of this shape, and leaves the others whole."""
    low: list[Size] = [0 for _ in shape]
    high = list(shape)
    low[axis] = start
    high[axis] = stop
    return Slice(tuple(low), tuple(high), (1,) * len(shape))


def each_batched(operands: Sequence[Value], batched: Sequence[bool], size: Size) -> list[Value]:
    """Return operands over a batch, repeating those that have no batch."""
    return [x if m else repeated(x, size) for x, m in zip(operands, batched, strict=True)]


def exactly(value: Value, shape: Shape) -> Value:
    """Return a value with its sizes, provably equal to these, also written like these."""
    return value if value.shape == shape else Reshape(shape)(value)


class Shaping(Linear):
    """A primitive that costs no arithmetic, and is linear in all of its operands together."""

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0


@dataclass(frozen=True)
class Broadcast(Shaping, name="broadcast", cheap=True):
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

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x,) = cotangents, operands
        assert cotangent is not None
        new = without(range(len(self.shape)), self.dims)
        return (exactly(cotangent.builder.total(cotangent, new) if new else cotangent, x.shape),)

    def batch(self, operands: Sequence[Value], batched: Sequence[bool], size: Size) -> Results:
        moved = Broadcast((size, *self.shape), (0, *(axis + 1 for axis in self.dims)))
        return moved.bind(*operands), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        return AxisRule((self.dims,), (tuple(range(len(self.shape))),), linear=((0,),))

    def resized(self, inputs: Types, outputs: Types) -> Self:
        return replace(self, shape=outputs[0].shape)


@dataclass(frozen=True)
class Reshape(Shaping, name="reshape", cheap=True):
    """The elements of an array, in the same order, in another shape."""

    shape: Shape

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        alike = x.rank == len(self.shape) and same_sizes(facts, x.shape, self.shape)
        if not alike and not facts.equal(size_of(x.shape), size_of(self.shape)):
            self.ill_typed(f"{x} as [{_text(self.shape)}]")
        return (ArrayType(x.dtype, self.shape),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        shape = here.shape(self.shape)
        # Twice the elements: keys.  An empty array of keys cannot be told from one of numbers.
        return (x.reshape(shape if prod(shape) == x.size else (*shape, 2)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return (hlo.reshape(operands[0], outputs[0]),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x,) = cotangents, operands
        assert cotangent is not None
        return Reshape(x.shape).bind(cotangent)

    def batch(self, operands: Sequence[Value], batched: Sequence[bool], size: Size) -> Results:
        return Reshape((size, *self.shape)).bind(*operands), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        old, new = matched(inputs[0].shape, self.shape)
        return AxisRule((old,), (new,), linear=((0,),))

    def resized(self, inputs: Types, outputs: Types) -> Self:
        return replace(self, shape=outputs[0].shape)


@dataclass(frozen=True)
class Transpose(Shaping, name="transpose", cheap=True):
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

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,) = cotangents
        assert cotangent is not None
        return Transpose(inverted(self.permutation)).bind(cotangent)

    def batch(self, operands: Sequence[Value], batched: Sequence[bool], size: Size) -> Results:
        return Transpose((0, *(axis + 1 for axis in self.permutation))).bind(*operands), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        ranks = tuple(range(inputs[0].rank))
        return AxisRule((ranks,), (self.permutation,), linear=((0,),))


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
        for operand in operands:
            if (
                operand.dtype is not first.dtype
                or operand.rank != first.rank
                or not same_sizes(facts, without(operand.shape, (self.axis,)), rest)
            ):
                self.ill_typed(f"operands are {', '.join(map(str, operands))}")
            total = total + operand.shape[self.axis]
        return (first.with_shape((*rest[: self.axis], total, *rest[self.axis :])),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (np.concatenate(operands, axis=self.axis),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        if len(operands) == 1:
            return operands
        return hlo.op("concatenate", operands, outputs, {"dimension": self.axis})

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), axis = cotangents, self.axis
        assert cotangent is not None
        shape = cotangent.shape
        start: Size = 0
        found: list[Value | None] = []
        for operand in operands:
            stop = start + operand.shape[axis]
            if isinstance(operand, ArrayType):
                part = part_of(shape, axis, start, stop)(cotangent)
                found.append(exactly(part, operand.shape))
            else:
                found.append(None)
            start = stop
        return found

    def batch(self, operands: Sequence[Value], batched: Sequence[bool], size: Size) -> Results:
        return Concatenate(self.axis + 1).bind(*each_batched(operands, batched, size)), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        factors = along(outputs[0].rank, (self.axis,))
        return AxisRule((factors,) * len(inputs), (factors,), linear=(tuple(range(len(inputs))),))


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
            result = low + with_gaps(facts, size, between) + high
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
        x, value = operands
        return [hlo.pad(x, value, hlo.shape(self.low), hlo.shape(self.high), self.interior)]

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x, scalar) = cotangents, operands
        assert cotangent is not None
        inner = self._take_out(cotangent, x.shape) if isinstance(x, ArrayType) else None
        around = self._around(cotangent, x.shape) if isinstance(scalar, ArrayType) else None
        return inner, around

    def _take_out(self, cotangent: Value, shape: Shape) -> Value:
        """Return the cotangent at the elements of x, which has this shape."""
        steps = tuple([between + 1 for between in self.interior])
        # Every element with as many places behind it as there are between two: whole periods.
        periods = tuple([size * step for size, step in zip(shape, steps, strict=True)])
        low = tuple([-each for each in self.low])
        high = tuple(
            [p - c + first for p, c, first in zip(periods, cotangent.shape, self.low, strict=True)]
        )
        none = (0,) * len(shape)
        zero = cotangent.builder.literal(0, cotangent.dtype)
        inner = Pad(low, high, none)(cotangent, zero)
        if all(step == 1 for step in steps):
            return exactly(inner, shape)
        return exactly(Slice(none, periods, steps)(inner), shape)

    def _around(self, cotangent: Value, shape: Shape) -> Value | None:
        """Return the sum of the cotangent over the places without an element of x."""
        if not shape:
            return None
        zero = cotangent.builder.literal(0, cotangent.dtype)
        outside = Select()(self._is_outside(cotangent.builder, shape), cotangent, zero)
        return outside.builder.total(outside, tuple(range(len(shape))))

    def _is_outside(self, here: Builder, shape: Shape) -> Value:
        """Return the mask of the scalar's place, given the shape of x."""
        return self(here.full(False, shape, BOOL), here.literal(True, BOOL))

    def batch(self, operands: Sequence[Value], batched: Sequence[bool], size: Size) -> Results:
        (x, scalar), (many, many_scalars) = operands, batched
        over = Pad((0, *self.low), (0, *self.high), (0, *self.interior))
        if not many_scalars:
            return over.bind(x, scalar), (True,)
        here = x.builder
        if not self.low:
            return (x,), (many,)
        zero = here.literal(0 if x.dtype.is_number else False, x.dtype)
        inner = over(x, zero) if many else self(x, zero)
        shape = (size, *inner.shape[many:])
        outside = Broadcast(shape, tuple(range(1, len(shape))))(
            self._is_outside(here, x.shape[many:])
        )
        if not many:
            (inner,) = each_batched((inner,), (False,), size)
        return (Select()(outside, Broadcast(shape, (0,))(scalar), inner),), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        pads = zip(self.low, self.high, self.interior, strict=True)
        moved = [
            axis
            for axis, (low, high, between) in enumerate(pads)
            if not low == high == between == 0
        ]
        factors = along(inputs[0].rank, moved)
        return AxisRule((factors, ()), (factors,))


@dataclass(frozen=True)
class Slice(Shaping, name="slice", cheap=True):
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

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x,) = cotangents, operands
        assert cotangent is not None
        here = cotangent.builder
        gaps = tuple([stride - 1 for stride in self.stride])
        high = tuple(
            [
                whole - start - with_gaps(here.facts, size, between)
                for whole, start, size, between in zip(
                    x.shape, self.start, cotangent.shape, gaps, strict=True
                )
            ]
        )
        return Pad(self.start, high, gaps).bind(cotangent, here.literal(0, x.dtype))

    def batch(self, operands: Sequence[Value], batched: Sequence[bool], size: Size) -> Results:
        over = Slice((0, *self.start), (size, *self.limit), (1, *self.stride))
        return over.bind(*operands), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        factors = along(inputs[0].rank, self._cut_axes(inputs[0]))
        return AxisRule((factors,), (factors,), linear=((0,),))

    def _cut_axes(self, x: ArrayType) -> list[int]:
        """Return the axes of which something is left out."""
        parts = zip(x.shape, self.start, self.limit, self.stride, strict=True)
        return [
            axis
            for axis, (size, start, limit, stride) in enumerate(parts)
            if not (start == 0 and limit == size and stride == 1)
        ]

    def resized(self, inputs: Types, outputs: Types) -> Self:
        limits = zip(inputs[0].shape, outputs[0].shape, self.limit, strict=True)
        return replace(self, limit=tuple([x if x == y else limit for x, y, limit in limits]))


@dataclass(frozen=True)
class Reverse(Shaping, name="reverse", cheap=True):
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

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,) = cotangents
        assert cotangent is not None
        return self.bind(cotangent)

    def batch(self, operands: Sequence[Value], batched: Sequence[bool], size: Size) -> Results:
        return Reverse(tuple([axis + 1 for axis in self.axes])).bind(*operands), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        factors = along(inputs[0].rank, self.axes)
        return AxisRule((factors,), (factors,), linear=((0,),))


@dataclass(frozen=True)
class Rotate(Shaping, name="rotate"):
    """Move what lies along an axis some places on; what leaves the end comes in at the start."""

    axis: int
    by: int

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if not are_axes((self.axis,), x.rank):
            self.ill_typed(f"{self.axis} is no axis of {x}")
        return (x,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (np.roll(operands[0], self.by, self.axis),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,) = operands
        shape = (*hlo.shape(inputs[0].shape), *stored(inputs[0]))
        length = shape[self.axis]
        cut = -self.by % length if length else 0
        if not cut:
            return (x,)
        zeros, middle = [0] * len(shape), [*shape]
        start = [*zeros]
        start[self.axis] = middle[self.axis] = cut
        parts = hlo.slice(x, start, shape), hlo.slice(x, zeros, middle)
        return hlo.op("concatenate", parts, outputs, {"dimension": self.axis})

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,) = cotangents
        assert cotangent is not None
        return Rotate(self.axis, -self.by).bind(cotangent)

    def batch(self, operands: Sequence[Value], batched: Sequence[bool], size: Size) -> Results:
        return Rotate(self.axis + 1, self.by).bind(*operands), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        factors = along(inputs[0].rank, (self.axis,))
        return AxisRule((factors,), (factors,), linear=((0,),))


def _text(shape: Shape) -> str:
    return " ".join(map(str, shape))
