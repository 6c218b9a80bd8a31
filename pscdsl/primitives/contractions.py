"""Sums of products, and combinations over windows that slide along axes.

16-bit floats are accumulated in f32, and the result is rounded once; integers wrap around.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pscdsl.numpy_dtypes import from_numpy, to_numpy
from pscdsl.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl.primitives.elementwise import Convert, add
from pscdsl.primitives.reductions import (
    UFUNCS,
    Reduction,
    accumulator,
    combiner,
    identity,
    reducible,
)
from pscdsl.primitives.shaping import (
    Transpose,
    are_axes,
    at_most,
    exactly,
    inverted,
    same_sizes,
    without,
)
from pscdsl.typing.arrays import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size, maximum
from pscdsl.typing.dtypes import F32, I32, DType

if TYPE_CHECKING:
    from pscdsl.builder import Value

Axes: TypeAlias = tuple[int, ...]
Padding: TypeAlias = tuple[tuple[Size, Size], ...]


@dataclass(frozen=True)
class DotGeneral(Primitive, name="dot_general"):
    """Sums of products along pairs of axes; those of `batched` are shared.

    The result has the shared axes, then what is left of the first operand, then of the second.
    `result` is its dtype where that is wider than the operands'.
    """

    contract: tuple[Axes, Axes]
    batched: tuple[Axes, Axes] = ((), ())
    result: DType | None = None

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, y = operands
        used = [(*b, *c) for b, c in zip(self.batched, self.contract, strict=True)]
        if (
            len(self.batched[0]) != len(self.batched[1])
            or len(self.contract[0]) != len(self.contract[1])
            or not are_axes(used[0], x.rank)
            or not are_axes(used[1], y.rank)
            or not same_sizes(facts, [x.shape[a] for a in used[0]], [y.shape[a] for a in used[1]])
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
        shared = tuple([x.shape[axis] for axis in self.batched[0]])
        left, right = without(x.shape, used[0]), without(y.shape, used[1])
        return (ArrayType(wide, shared + left + right),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, y = operands
        dtype = to_numpy(self.result) if self.result else x.dtype
        wide = to_numpy(_accumulator(from_numpy(dtype)))
        left, right = [
            without(range(each.ndim), (*b, *c))
            for each, b, c in zip(operands, self.batched, self.contract, strict=True)
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
        wide = output.with_dtype(_accumulator(output.dtype))
        operands = _widened(hlo, operands, inputs, wide.dtype)
        axes = (*self.batched, *self.contract)
        numbers = hlo.parse_attribute(
            "#stablehlo.dot<lhs_batching_dimensions = {}, rhs_batching_dimensions = {}, "
            "lhs_contracting_dimensions = {}, rhs_contracting_dimensions = {}>".format(
                *map(list, axes)
            )
        )
        attributes = {"dot_dimension_numbers": numbers, "precision_config": _precision(hlo)}
        (result,) = hlo.op("dot_general", operands, (wide,), attributes)
        return (hlo.convert(result, output),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (x, y), (dx, dy) = primals, tangents
        parts = ([] if dx is None else [self(dx, y)]) + ([] if dy is None else [self(x, dy)])
        return (parts[0] if len(parts) == 1 else add(*parts),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x, y) = cotangents, operands
        assert cotangent is not None
        if isinstance(x, ArrayType) and not isinstance(y, ArrayType):
            return self._cotangent(cotangent, x, y, 0), None
        if isinstance(y, ArrayType) and not isinstance(x, ArrayType):
            return None, self._cotangent(cotangent, y, x, 1)
        self.ill_typed("it is linear in each of its operands, not in both together")

    def _cotangent(self, cotangent: Value, operand: ArrayType, other: Value, place: int) -> Value:
        """The cotangent of the operand at a place, the other operand known."""
        own, their = self.batched[place], self.batched[1 - place]
        summed, their_summed = self.contract[place], self.contract[1 - place]
        kept = without(range(operand.rank), (*own, *summed))
        their_kept = without(range(other.ndim), (*their, *their_summed))
        # The cotangent has the shared axes, then what the first operand keeps, then the second.
        shared = tuple(range(len(own)))
        first = len(own) + (len(their_kept) if place else 0)
        left = tuple(range(first, first + len(kept)))
        gone = without(range(cotangent.ndim), (*shared, *left))
        # What the axes of the result will be in the operand, by the order of the two factors.
        restored = tuple([summed[their_summed.index(axis)] for axis in sorted(their_summed)])
        orders = ((*own, *kept, *restored), (*own, *restored, *kept))
        swapped = place if _is_sorted(orders[place]) else 1 - place
        other = _converted(other, self.result or operand.dtype)
        if swapped:
            result = DotGeneral((their_kept, gone), (their, shared))(other, cotangent)
        else:
            result = DotGeneral((gone, their_kept), (shared, their))(cotangent, other)
        result = _converted(result, operand.dtype)
        order = orders[swapped]
        if not _is_sorted(order):
            result = Transpose(inverted(order))(result)
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
        left, right = [each.ndim - count - len(summed[0]) for each in operands]
        order = (1, 0) if batched[1] and right == 1 else (0, 1)
        x, y = [operands[i] for i in order]
        contract, sharing = ((each[order[0]], each[order[1]]) for each in (summed, shared))
        result = DotGeneral(contract, sharing, self.result)(x, y)
        place = count + (left if batched[1] and order == (0, 1) else 0)
        if place:
            result = Transpose((place, *without(range(result.ndim), (place,))))(result)
        return (result,), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        terms = size_of(tuple([inputs[0].shape[axis] for axis in self.contract[0]]))
        return size_of(outputs[0].shape) * terms * 2


def _is_sorted(axes: Sequence[int]) -> bool:
    return all(a < b for a, b in pairwise(axes))


def _converted(x: Value, dtype: DType) -> Value:
    return x if x.dtype is dtype else Convert(dtype)(x)


def _accumulator(dtype: DType) -> DType:
    if dtype.is_integer:
        return dtype if dtype.bits >= 32 else I32
    return F32 if dtype.is_float and dtype.bits == 16 else dtype


def _widened(hlo: Hlo, operands: Sequence[H], inputs: Types, wide: DType) -> Sequence[H]:
    """Operands in the dtype of the sum; XLA takes 16-bit floats as they are."""
    if wide is F32:
        return operands
    return [hlo.convert(x, each.with_dtype(wide)) for x, each in zip(operands, inputs, strict=True)]


def _precision(hlo: Hlo) -> tuple[object, object]:
    """That products of f32 are f32, also where a device has something faster."""
    highest = hlo.parse_attribute("#stablehlo<precision HIGHEST>")
    return highest, highest


@dataclass(frozen=True, slots=True)
class Window:
    """What slides along one axis, and how."""

    size: Size
    stride: int = 1
    low: Size = 0
    high: Size = 0
    base_dilation: int = 1
    dilation: int = 1

    def at(self, here: Evaluation) -> Window:
        """The window at given sizes."""
        low, high = here.size(self.low), here.size(self.high)
        size = here.size(self.size)
        return Window(size, self.stride, low, high, self.base_dilation, self.dilation)

    def places(self, facts: Assumptions, size: Size) -> Size | None:
        """How many places there are along an axis; None if the window may be empty."""
        if not at_most(facts, 1, self.size):
            return None
        holes = (size - 1) * (self.base_dilation - 1)
        spread = size + (holes if at_most(facts, 1, size) else maximum(holes, 0))
        room = spread + self.low + self.high - ((self.size - 1) * self.dilation + 1)
        if at_most(facts, 0, room):
            return room // self.stride + 1
        return maximum((room + self.stride) // self.stride, 0)


def _slide(
    facts: Assumptions, windows: Sequence[Window], shape: Sequence[Size]
) -> tuple[Size, ...] | None:
    places: list[Size] = []
    for window, size in zip(windows, shape, strict=True):
        count = window.places(facts, size)
        if count is None:
            return None
        places.append(count)
    return tuple(places)


def _spread(here: Evaluation, x: NDArray, windows: Sequence[Window], padding: object) -> NDArray:
    """An array with what stands between and around its elements, along its last axes."""
    first = x.ndim - len(windows)
    for axis, window in enumerate(windows, first):
        count = x.shape[axis]
        low, high = here.size(window.low), here.size(window.high)
        length = max((count - 1) * window.base_dilation + 1, 0) + low + high
        result = np.full((*x.shape[:axis], max(length, 0), *x.shape[axis + 1 :]), padding, x.dtype)
        places = [at for i in range(count) if 0 <= (at := i * window.base_dilation + low) < length]
        skipped = len([i for i in range(count) if i * window.base_dilation + low < 0])
        np.moveaxis(result, axis, 0)[places] = np.moveaxis(x, axis, 0)[skipped:][: len(places)]
        x = result
    return x


def _all(count: int) -> tuple[slice, ...]:
    return (slice(None),) * count


def _offsets(
    here: Evaluation, windows: Sequence[Window], places: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each place in the window, and the elements that stand there as it slides."""
    for offset in product(*(range(here.size(window.size)) for window in windows)):
        yield (
            offset,
            tuple(
                [
                    slice(at * w.dilation, at * w.dilation + count * w.stride, w.stride)
                    for at, w, count in zip(offset, windows, places, strict=True)
                ]
            ),
        )


@dataclass(frozen=True)
class Convolution(Primitive, name="convolution"):
    """Slide a kernel over the spatial axes without flipping it; operands x, kernel.

    x is [N, C, *spatial], the kernel [O, C/groups, *spatial], the result [N, O, *spatial].  With
    `batch_groups` the batch is split too: each part meets its part of the kernel's outputs.
    """

    strides: tuple[int, ...]
    padding: Padding
    left_dilation: tuple[int, ...]
    right_dilation: tuple[int, ...]
    groups: int = 1
    batch_groups: int = 1

    def windows(self, kernel: ArrayType) -> list[Window]:
        """The kernel along each spatial axis."""
        return [
            Window(size, stride, low, high, base, dilation)
            for size, stride, (low, high), base, dilation in zip(
                kernel.shape[2:],
                self.strides,
                self.padding,
                self.left_dilation,
                self.right_dilation,
                strict=True,
            )
        ]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, kernel = operands
        count = x.rank - 2
        if (
            x.dtype is not kernel.dtype
            or not x.dtype.is_number
            or count < 0
            or kernel.rank != x.rank
            or any(len(each) != count for each in (self.strides, self.padding))
            or any(len(each) != count for each in (self.left_dilation, self.right_dilation))
            or min((1, *self.strides, *self.left_dilation, *self.right_dilation)) < 1
        ):
            self.ill_typed(f"operands are {x} and {kernel}")
        groups, batch_groups = self.groups, self.batch_groups
        if min(groups, batch_groups) != 1:
            self.ill_typed(f"{groups} groups and {batch_groups} batch groups")
        (batch, channels), (outputs, taken) = x.shape[:2], kernel.shape[:2]
        if (
            not facts.equal(channels, taken * groups)
            or not facts.equal(outputs % groups, 0)
            or not facts.equal(outputs % batch_groups, 0)
            or not facts.equal(batch % batch_groups, 0)
        ):
            self.ill_typed(f"operands are {x} and {kernel}, groups {groups} and {batch_groups}")
        places = _slide(facts, self.windows(kernel), x.shape[2:])
        if places is None:
            self.ill_typed(f"the kernel is {kernel}")
        return (x.with_shape((batch // batch_groups, outputs, *places)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, kernel = operands
        named = self.windows(ArrayType(from_numpy(kernel.dtype), kernel.shape))
        windows = [window.at(here) for window in named]
        counts = here.shape(_slide(Assumptions(), windows, x.shape[2:]) or ())
        wide = to_numpy(_accumulator(from_numpy(x.dtype)))
        spread = _spread(here, x.astype(wide), windows, 0)
        if self.batch_groups > 1:  # parts of the batch as groups of channels
            each = spread.shape[0] // self.batch_groups
            parts = spread.reshape(self.batch_groups, each, *spread.shape[1:])
            channels = self.batch_groups * spread.shape[1]
            spread = parts.swapaxes(0, 1).reshape(each, channels, *spread.shape[2:])
        groups = self.groups * self.batch_groups
        batch, outputs = spread.shape[0], kernel.shape[0]
        spread = spread.reshape(batch, groups, kernel.shape[1], *spread.shape[2:])
        weights = kernel.astype(wide).reshape(groups, outputs // groups, *kernel.shape[1:])
        weights = np.moveaxis(weights, (0, 1, 2), (-3, -2, -1))
        total = np.zeros((batch, groups, outputs // groups, prod(counts)), wide)
        with np.errstate(all="ignore"):
            for offset, there in _offsets(here, windows, counts):
                picked = spread[(*_all(3), *there)].reshape(*spread.shape[:3], prod(counts))
                total += np.matmul(weights[offset], picked)
        return (total.reshape(batch, outputs, *counts).astype(x.dtype),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (output,) = outputs
        wide = _accumulator(output.dtype)
        operands = _widened(hlo, operands, inputs, wide)
        spatial = ", ".join(map(str, range(inputs[0].rank - 2)))
        spatial = f", {spatial}" if spatial else ""
        numbers = hlo.parse_attribute(
            f"#stablehlo.conv<[b, f{spatial}]x[o, i{spatial}]->[b, f{spatial}]>"
        )
        attributes = {
            "window_strides": hlo.i64_array(self.strides),
            "padding": _emit_padding(hlo, self.padding),
            "lhs_dilation": hlo.i64_array(self.left_dilation),
            "rhs_dilation": hlo.i64_array(self.right_dilation),
            "dimension_numbers": numbers,
            "feature_group_count": self.groups,
            "batch_group_count": self.batch_groups,
            "precision_config": _precision(hlo),
        }
        (result,) = hlo.op("convolution", operands, (output.with_dtype(wide),), attributes)
        return (hlo.convert(result, output),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * size_of(inputs[1].shape[1:]) * 2


def _emit_padding(hlo: Hlo, padding: Padding) -> object:
    pairs = [[hlo.size(low), hlo.size(high)] for low, high in padding]
    return hlo.i64_elements(np.array(pairs, np.int64).reshape(len(pairs), 2))


@dataclass(frozen=True)
class ReduceWindow(Primitive, name="reduce_window"):
    """The elements in a window combined, as it slides over all axes."""

    kind: Reduction
    window: Shape
    strides: tuple[int, ...]
    padding: Padding
    dilation: tuple[int, ...]

    def windows(self) -> list[Window]:
        """The window along each axis."""
        return [
            Window(size, stride, low, high, 1, dilation)
            for size, stride, (low, high), dilation in zip(
                self.window, self.strides, self.padding, self.dilation, strict=True
            )
        ]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        parts = (self.window, self.strides, self.padding, self.dilation)
        if (
            any(len(part) != x.rank for part in parts)
            or min((1, *self.strides, *self.dilation)) < 1
            or not reducible(self.kind, x.dtype)
        ):
            self.ill_typed(f"{self.kind} over windows of {x}")
        places = _slide(facts, self.windows(), x.shape)
        if places is None:
            self.ill_typed(f"the window is {self.window}")
        return (x.with_shape(places),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        dtype = accumulator(self.kind, from_numpy(x.dtype))
        neutral = identity(self.kind, dtype)
        windows = [window.at(here) for window in self.windows()]
        counts = here.shape(_slide(Assumptions(), windows, x.shape) or ())
        wide = x.astype(to_numpy(dtype))
        if dtype is not F32 and x.dtype.itemsize == 2 and dtype.is_float:
            wide = wide.astype(np.float32)  # exact, and NumPy's loops know it
        spread = _spread(here, wide, windows, neutral)
        total = np.full(counts, neutral, wide.dtype)
        with np.errstate(all="ignore"):
            for _, there in _offsets(here, windows, counts):
                total = UFUNCS[self.kind](total, spread[there])
        return (np.asarray(total).astype(x.dtype),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,), (output,) = operands, inputs, outputs
        dtype = accumulator(self.kind, given.dtype)
        scalar, combine = ArrayType(dtype), combiner(hlo, self.kind)
        init = hlo.full(identity(self.kind, dtype), scalar)
        region = hlo.region((scalar, scalar), lambda pair: combine(pair[:1], pair[1:]))
        attributes = {
            "window_dimensions": hlo.i64_array(hlo.shape(self.window)),
            "window_strides": hlo.i64_array(self.strides),
            "window_dilations": hlo.i64_array(self.dilation),
            "padding": _emit_padding(hlo, self.padding),
        }
        wide = hlo.convert(x, given.with_dtype(dtype))
        result = output.with_dtype(dtype)
        (found,) = hlo.op("reduce_window", (wide, init), (result,), attributes, (region,))
        return (hlo.convert(found, output),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * size_of(self.window)
