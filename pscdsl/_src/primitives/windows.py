"""Windows that slide along axes: their places, their elements, combinations, convolutions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from pscdsl._src.ir.axis_rules import AxisRule, along
from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.contractions import accumulator as product_accumulator
from pscdsl._src.primitives.contractions import precision, widened
from pscdsl._src.primitives.elementwise import Select, equal, floor_divide, multiply, remainder
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.pointwise import Bilinear, WithoutTangents
from pscdsl._src.primitives.reductions import (
    UFUNCS,
    Extreme,
    Reduce,
    Reduction,
    accumulator,
    combiner,
    first_extreme,
    identity,
    product_of_others,
    reducible,
)
from pscdsl._src.primitives.shaping import (
    Iota,
    Pad,
    Reshape,
    Reverse,
    Transpose,
    at_most,
    exactly,
    with_gaps,
)
from pscdsl.typing.array_types import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size, maximum
from pscdsl.typing.dtypes import F32, I32

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


# Windows that slide along axes: their places, their elements, and combinations of these.


# Windows that slide along axes: their places, and the elements that they see.


Padding: TypeAlias = tuple[tuple[Size, Size], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """The size, steps and padding of a window along one axis."""

    size: Size
    stride: int = 1
    low: Size = 0
    high: Size = 0
    base_dilation: int = 1
    dilation: int = 1

    def at(self, here: Evaluation) -> Window:
        """Return the window at given sizes."""
        low, high = here.size(self.low), here.size(self.high)
        size = here.size(self.size)
        return Window(size, self.stride, low, high, self.base_dilation, self.dilation)

    @property
    def reach(self) -> Size:
        """Return the distance from its first to its last element."""
        return (self.size - 1) * self.dilation

    def always_sees(self, facts: Assumptions, size: Size) -> bool:
        """Return whether it certainly sees an element from each place, if there are any places."""
        if self == Window(1):
            return True
        if self.base_dilation != 1 or not at_most(facts, 1, size):
            return False
        most = self.size - 1 if self.dilation == 1 else 0
        return at_most(facts, self.low, most) and at_most(facts, self.high, most)

    def back(self, facts: Assumptions, size: Size, places: Size) -> Window:
        """Return a window over the places that reaches, at each element, all places that saw it.

        Its last elements correspond to the first ones of this window.
        """
        spread = with_gaps(facts, places, self.stride - 1)
        high = (size - 1) * self.base_dilation + 1 - spread + self.low
        low = self.reach - self.low
        return Window(self.size, self.base_dilation, low, high, self.stride, self.dilation)

    def across(self, facts: Assumptions, size: Size, places: Size) -> Window:
        """Return a window that slides the places over `size` elements.

        It has one place for each element of this window, and reaches all pairs that met there.
        """
        spread = with_gaps(facts, size, self.base_dilation - 1)
        high = self.reach + (places - 1) * self.stride + 1 - spread - self.low
        return Window(places, self.dilation, self.low, high, self.base_dilation, self.stride)

    def places(self, facts: Assumptions, size: Size) -> Size | None:
        """Return the number of places along an axis; None if the window may be empty."""
        if not at_most(facts, 1, self.size):
            return None
        spread = with_gaps(facts, size, self.base_dilation - 1)
        room = spread + self.low + self.high - self.reach - 1
        if at_most(facts, 0, room):
            return room // self.stride + 1
        count = (room + self.stride) // self.stride
        return count if at_most(facts, 0, count) else maximum(count, 0)


def slide(
    facts: Assumptions, windows: Sequence[Window], shape: Sequence[Size]
) -> tuple[Size, ...] | None:
    """Return the number of places along each axis; None if a window may be empty."""
    places: list[Size] = []
    for window, size in zip(windows, shape, strict=True):
        count = window.places(facts, size)
        if count is None:
            return None
        places.append(count)
    return tuple(places)


def laid_out(here: Evaluation, x: NDArray, windows: Sequence[Window], padding: object) -> NDArray:
    """Return an array with padding around and between its elements, along its last axes."""
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


def offsets(
    here: Evaluation, windows: Sequence[Window], places: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield each place in the window, and the elements at that place as it slides."""
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


def emit_padding(hlo: Hlo, padding: Padding) -> object:
    """Return the padding as an attribute."""
    pairs = [[hlo.size(low), hlo.size(high)] for low, high in padding]
    return hlo.i64_elements(np.array(pairs, np.int64).reshape(len(pairs), 2))


# The elements that windows see as a separate axis: the form for derivative rules.


def patches(x: Value, windows: Sequence[Window], fill: float) -> Value:
    """Return the elements that each place of the windows sees, along a new last axis.

    x has an axis for each window; the result has the places along each, then the elements of a
    window in order. Elements outside of x are `fill`.
    """
    for window in reversed(windows):
        # The last axis becomes two in front: the places, and the elements seen from each.
        last = x.ndim - 1
        if window == Window(1):
            x = Transpose((last, *range(last)))(x)
            x = Reshape((x.shape[0], 1, *x.shape[1:]))(x)
            continue
        none = (0,) * x.ndim
        padded = Pad(none, (*none[1:], 1), none)(x, x.builder.literal(fill, x.dtype))
        x = Gather((last,))(padded, _indices(x.builder, window, x.shape[last]))
    rank = len(windows)
    x = Transpose((*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)))(x)
    seen = size_of(tuple([window.size for window in windows]))
    return Reshape((*x.shape[:rank], seen))(x)


def _indices(here: Builder, window: Window, size: Size) -> Value:
    """Return the indices of the elements that a window sees; missing ones are at the end."""
    places = window.places(here.facts, size)
    assert places is not None
    shape = (places, window.size)
    (start,), (step,) = (here.bind(Iota(shape, axis, I32), ()) for axis in (0, 1))
    place = start * window.stride + step * window.dilation - here.size(window.low, I32)
    base, end = window.base_dilation, here.size(size, I32)
    element = place if base == 1 else floor_divide(place, base)
    exists: Value = (place >= 0) & (element < end)
    if base != 1:
        exists = exists & equal(remainder(place, base), 0)
    return Reshape((*shape, 1))(Select()(exists, element, end))


# Combinations over windows that slide along all axes, and the places of their extremes.


@dataclass(frozen=True)
class Sliding(Primitive):
    """A primitive with a window along each axis of its operand."""

    kind: Reduction
    window: Shape
    strides: tuple[int, ...]
    padding: Padding
    dilation: tuple[int, ...]
    base_dilation: tuple[int, ...]

    def windows(self) -> list[Window]:
        """Return the window along each axis."""
        return [
            Window(size, stride, low, high, base, dilation)
            for size, stride, (low, high), base, dilation in zip(
                self.window,
                self.strides,
                self.padding,
                self.base_dilation,
                self.dilation,
                strict=True,
            )
        ]

    def places(self, facts: Assumptions, x: ArrayType) -> Shape:
        """Check the window, and return the number of places along each axis."""
        parts = (self.window, self.strides, self.padding, self.dilation, self.base_dilation)
        if (
            any(len(part) != x.rank for part in parts)
            or min((1, *self.strides, *self.dilation, *self.base_dilation)) < 1
            or not reducible(self.kind, x.dtype)
        ):
            self.ill_typed(f"{self.kind} over windows of {x}")
        found = slide(facts, self.windows(), x.shape)
        if found is None:
            self.ill_typed(f"the window is {self.window}")
        return found

    def with_batch(self) -> Self:
        """Return the window over a batch."""
        return replace(
            self,
            window=(1, *self.window),
            strides=(1, *self.strides),
            padding=((0, 0), *self.padding),
            dilation=(1, *self.dilation),
            base_dilation=(1, *self.base_dilation),
        )

    def attributes(self, hlo: Hlo) -> dict[str, object]:
        """Return the windows as attributes of StableHLO's operation."""
        return {
            "window_dimensions": hlo.i64_array(hlo.shape(self.window)),
            "window_strides": hlo.i64_array(self.strides),
            "window_dilations": hlo.i64_array(self.dilation),
            "base_dilations": hlo.i64_array(self.base_dilation),
            "padding": emit_padding(hlo, self.padding),
        }

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * size_of(self.window)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        alone = (1, 1, (0, 0), 1, 1)
        parts = zip(
            self.window, self.strides, self.padding, self.dilation, self.base_dilation, strict=True
        )
        factors = along(len(self.window), [a for a, part in enumerate(parts) if part != alone])
        return AxisRule((factors,), (factors,) * len(outputs))


@dataclass(frozen=True)
class ReduceWindow(Sliding, name="reduce_window"):
    """The elements in a window combined, as it slides over all axes."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        return (x.with_shape(self.places(facts, x)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        dtype = accumulator(self.kind, from_numpy(x.dtype))
        neutral = identity(self.kind, dtype)
        windows = [window.at(here) for window in self.windows()]
        counts = here.shape(slide(Assumptions(), windows, x.shape) or ())
        wide = x.astype(to_numpy(dtype))
        if dtype is not F32 and x.dtype.itemsize == 2 and dtype.is_float:
            wide = wide.astype(np.float32)  # exact, and NumPy's loops know it
        spread = laid_out(here, wide, windows, neutral)
        total = np.full(counts, neutral, wide.dtype)
        with np.errstate(all="ignore"):
            for _, there in offsets(here, windows, counts):
                total = UFUNCS[self.kind](total, spread[there])
        return (np.asarray(total).astype(x.dtype),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,), (output,) = operands, inputs, outputs
        dtype = accumulator(self.kind, given.dtype)
        scalar, combine = ArrayType(dtype), combiner(hlo, self.kind)
        init = hlo.full(identity(self.kind, dtype), scalar)
        region = hlo.region((scalar, scalar), lambda pair: combine(pair[:1], pair[1:]))
        wide = hlo.convert(x, given.with_dtype(dtype))
        result, attributes = output.with_dtype(dtype), self.attributes(hlo)
        if output.shape:
            (found,) = hlo.op("reduce_window", (wide, init), (result,), attributes, (region,))
        else:  # XLA on CPUs has no code for a window without axes
            (found,) = combine((init,), (wide,))
        return (hlo.convert(found, output),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (x,), (tangent,) = primals, tangents
        assert tangent is not None
        windows = self.windows()
        if self.kind == "sum" or all(map(_is_single, windows)):
            return (self(tangent),)
        if self.kind == "product":
            last = x.ndim
            others = product_of_others(patches(x, windows, 1), (last,))
            moved = multiply(patches(tangent, windows, 0), others)
            return (exactly(Reduce("sum", (last,))(moved), outputs[0].shape),)
        if self.kind == "maximum" or self.kind == "minimum":
            return (self._pick_tangent(tangent, x),)
        return (None,)

    def _pick_tangent(self, tangent: Value, x: Value) -> Value:
        """Return the tangent at the first extreme in each window, 0 where a window sees nothing."""
        windows, facts = self.windows(), x.builder.facts
        shared = next(axis for axis, window in enumerate(windows) if not _is_single(window))
        places = ArgReduceWindow(
            self.kind,
            self.window,
            self.strides,
            self.padding,
            self.dilation,
            self.base_dilation,
            shared,
        )(x)
        flat = size_of(x.shape[shared:])
        tangent = Reshape((*x.shape[:shared], flat))(tangent)
        pairs = zip(windows[shared:], x.shape[shared:], strict=True)
        seen = all(window.always_sees(facts, size) for window, size in pairs)
        if not seen or not at_most(facts, 1, flat):
            none = (0,) * tangent.ndim
            zero = tangent.builder.literal(0, tangent.dtype)
            tangent = Pad(none, (*none[1:], 1), none)(tangent, zero)
        return Gather((shared,), shared)(tangent, Reshape((*places.shape, 1))(places))

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x,) = cotangents, operands
        if self.kind != "sum" and not all(map(_is_single, self.windows())):
            self.ill_typed(f"{self.kind} over windows is not linear")
        assert cotangent is not None
        assert isinstance(x, ArrayType)
        facts, sizes = cotangent.builder.facts, zip(x.shape, cotangent.shape, strict=True)
        windows = [
            window.back(facts, size, places)
            for window, (size, places) in zip(self.windows(), sizes, strict=True)
        ]
        over = ReduceWindow(
            "sum",
            self.window,
            tuple([window.stride for window in windows]),
            tuple([(window.low, window.high) for window in windows]),
            tuple([window.dilation for window in windows]),
            tuple([window.base_dilation for window in windows]),
        )
        return (exactly(over(cotangent), x.shape),)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return self.with_batch().bind(*operands), (True,)


@dataclass(frozen=True)
class ArgReduceWindow(WithoutTangents, Sliding, name="arg_reduce_window"):
    """The place of the first extreme in a window as it slides; NaN is the most extreme.

    The first `shared` axes have no windows. A place (i32) counts the elements along the other axes,
    in order; if a window sees no element, it is the number of all elements.
    """

    shared: int = 0

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if self.kind not in ("maximum", "minimum"):
            self.ill_typed(f"{self.kind} is reached nowhere")
        places = self.places(facts, x)
        if not all(map(_is_single, self.windows()[: self.shared])):
            self.ill_typed(f"it slides along the first {self.shared} axes")
        return (ArrayType(I32, places),)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        return None  # places count the elements of the whole array

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        windows = [window.at(here) for window in self.windows()]
        counts = here.shape(slide(Assumptions(), windows, x.shape) or ())
        wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
        inner = prod(x.shape[self.shared :])
        numbers: NDArray = np.arange(inner, dtype=np.int32)
        numbers = numbers.reshape(x.shape[self.shared :])
        neutral = identity(self.kind, from_numpy(wide.dtype))
        elements = laid_out(here, wide, windows, neutral)
        standing = laid_out(here, np.broadcast_to(numbers, x.shape), windows, inner)
        best, result = np.full(counts, neutral, wide.dtype), np.full(counts, inner, np.int32)
        better = np.greater if self.kind == "maximum" else np.less
        for _, there in offsets(here, windows, counts):
            new, place = elements[there], standing[there]
            wins = (better(new, best) | (new != new)) & (best == best)
            wins |= (new == best) & (place < result)
            best, result = np.where(wins, new, best), np.where(wins, place, result)
        return (np.asarray(result),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,), (output,) = operands, inputs, outputs
        if not output.shape:  # see ReduceWindow
            return (hlo.full(0, output),)
        extreme: Extreme = "maximum" if self.kind == "maximum" else "minimum"
        combine = first_extreme(hlo, extreme, given.dtype)
        scalars = (ArrayType(given.dtype), ArrayType(I32))
        region = hlo.region(
            (*scalars, *scalars), lambda each: combine(tuple(each[:2]), tuple(each[2:]))
        )
        shape = hlo.shape(given.shape)
        inner = shape[self.shared :]
        numbers = given.with_dtype(I32)
        flat = ArrayType(I32, (prod(inner),))
        (count,) = hlo.op("iota", (), (flat,), {"iota_dimension": 0})
        count = hlo.reshape(count, flat.with_shape(inner))
        count = hlo.broadcast(count, numbers, tuple(range(self.shared, len(shape))))
        inits = (
            hlo.full(identity(self.kind, given.dtype), scalars[0]),
            hlo.full(prod(inner), scalars[1]),
        )
        results = (given.with_shape(output.shape), output)
        attributes = self.attributes(hlo)
        return hlo.op("reduce_window", (x, count, *inits), results, attributes, (region,))[1:]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return replace(self.with_batch(), shared=self.shared + 1).bind(*operands), (True,)


def _is_single(window: Window) -> bool:
    return window == Window(1)


# Convolutions: a kernel that slides over the spatial axes of an array.
#
# 16-bit floats are accumulated in f32, and the result is rounded once; integers wrap around.


@dataclass(frozen=True)
class Convolution(Bilinear, name="convolution"):
    """Slide a kernel over the spatial axes without flipping it; operands x, kernel.

    x is [N, C, *spatial], the kernel [O, C/groups, *spatial], the result [N, O, *spatial].  With
    `batch_groups` the batch is split too: each part meets its part of the kernel's outputs.
    """

    strides: tuple[int, ...]
    padding: Padding
    left_dilation: tuple[int, ...]
    right_dilation: tuple[int, ...]
    groups: Size = 1
    batch_groups: Size = 1

    def windows(self, kernel: ArrayType) -> list[Window]:
        """Return the kernel along each spatial axis."""
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
        if 1 not in (groups, batch_groups) or not at_most(facts, 0, groups * batch_groups):
            self.ill_typed(f"{groups} groups and {batch_groups} batch groups")
        (batch, channels), (outputs, taken) = x.shape[:2], kernel.shape[:2]
        if (
            not facts.equal(channels, taken * groups)
            or not facts.equal(outputs % groups, 0)
            or not facts.equal(outputs % batch_groups, 0)
            or not facts.equal(batch % batch_groups, 0)
        ):
            self.ill_typed(f"operands are {x} and {kernel}, groups {groups} and {batch_groups}")
        places = slide(facts, self.windows(kernel), x.shape[2:])
        if places is None:
            self.ill_typed(f"the kernel is {kernel}")
        return (x.with_shape((batch // batch_groups, outputs, *places)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, kernel = operands
        named = self.windows(ArrayType(from_numpy(kernel.dtype), kernel.shape))
        windows = [window.at(here) for window in named]
        counts = here.shape(slide(Assumptions(), windows, x.shape[2:]) or ())
        wide = to_numpy(product_accumulator(from_numpy(x.dtype)))
        spread = laid_out(here, x.astype(wide), windows, 0)
        groups, parts = here.size(self.groups), here.size(self.batch_groups)
        batch, outputs = x.shape[0] // max(parts, 1), kernel.shape[0]
        if groups == 0 or parts == 0:
            return (np.zeros((batch, outputs, *counts), x.dtype),)
        if parts > 1:  # parts of the batch as groups of channels
            split = spread.reshape(parts, batch, *spread.shape[1:]).swapaxes(0, 1)
            spread = split.reshape(batch, parts * spread.shape[1], *spread.shape[2:])
        groups = groups * parts
        spread = spread.reshape(batch, groups, kernel.shape[1], *spread.shape[2:])
        weights = kernel.astype(wide).reshape(groups, outputs // groups, *kernel.shape[1:])
        weights = np.moveaxis(weights, (0, 1, 2), (-3, -2, -1))
        total = np.zeros((batch, groups, outputs // groups, prod(counts)), wide)
        with np.errstate(all="ignore"):
            for offset, there in offsets(here, windows, counts):
                picked = spread[(slice(None),) * 3 + there].reshape(*spread.shape[:3], prod(counts))
                total += np.matmul(weights[offset], picked)
        return (total.reshape(batch, outputs, *counts).astype(x.dtype),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (output,) = outputs
        if 0 in hlo.shape(output.shape):
            return (hlo.full(0, output),)
        wide = product_accumulator(output.dtype)
        operands = widened(hlo, operands, inputs, wide)
        axes = [str(axis) for axis in range(output.rank - 2)]
        seen, kernel = ", ".join(["b", "f", *axes]), ", ".join(["o", "i", *axes])
        attributes = self.attributes(hlo, f"[{seen}]x[{kernel}]->[{seen}]")
        (result,) = hlo.op("convolution", operands, (output.with_dtype(wide),), attributes)
        return (hlo.convert(result, output),)

    def attributes(self, hlo: Hlo, layout: str) -> dict[str, object]:
        """Return the attributes of the operation for arrays with this layout of axes."""
        return {
            "window_strides": hlo.i64_array(self.strides),
            "padding": emit_padding(hlo, self.padding),
            "lhs_dilation": hlo.i64_array(self.left_dilation),
            "rhs_dilation": hlo.i64_array(self.right_dilation),
            "feature_group_count": hlo.size(self.groups),
            "batch_group_count": hlo.size(self.batch_groups),
            "precision_config": precision(hlo),
            "dimension_numbers": hlo.parse_attribute(f"#stablehlo.conv<{layout}>"),
        }

    def cotangent(self, cotangent: Value, operand: ArrayType, other: Value, place: int) -> Value:
        return (
            self._cotangent_of_kernel(cotangent, operand, other)
            if place
            else self._cotangent_of_x(cotangent, operand, other)
        )

    def _cotangent_of_x(self, cotangent: Value, x: ArrayType, kernel: Value) -> Value:
        """Return the cotangent of x: the reversed kernel slides over the result's cotangent."""
        facts, sizes = kernel.builder.facts, zip(x.shape[2:], cotangent.shape[2:], strict=True)
        windows = [
            window.back(facts, size, places)
            for window, (size, places) in zip(self.windows(kernel.type), sizes, strict=True)
        ]
        groups, parts = self.groups * self.batch_groups, self.batch_groups
        result = _sliding(windows, groups)(cotangent, _turn_kernel(kernel, groups))
        if parts != 1:  # the parts of the batch, so far groups of channels
            (batch, channels), spatial = x.shape[:2], result.shape[2:]
            result = Reshape((batch // parts, parts, channels, *spatial))(result)
            result = _swap(result)
            return Reshape(x.shape)(result)
        return exactly(result, x.shape)

    def _cotangent_of_kernel(self, cotangent: Value, kernel: ArrayType, x: Value) -> Value:
        """Return the cotangent of the kernel: the result's cotangent slides over x.

        The sum is over the batch now: it takes the place of the channels, and these its own.
        """
        facts = x.builder.facts
        high: list[Size] = []
        windows: list[Window] = []
        places = cotangent.shape[2:]
        for window, size, count in zip(self.windows(kernel), x.shape[2:], places, strict=True):
            high.append(0 if at_most(facts, 1, count) else 1)  # a kernel may not be empty
            windows.append(window.across(facts, size, count + high[-1]))
        if any(high):
            none = (0,) * cotangent.ndim
            zero = cotangent.builder.literal(0, cotangent.dtype)
            cotangent = Pad(none, (0, 0, *high), none)(cotangent, zero)
        slide_back = _sliding(windows, self.batch_groups, self.groups)
        return exactly(_swap(slide_back(_swap(x), _swap(cotangent))), kernel.shape)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        (x, kernel), (many_x, many_kernels) = operands, batched
        if many_x and many_kernels:
            return (self._batch_both(x, kernel, size),), (True,)
        if many_x:
            return (self._batch_x(x, kernel, size),), (True,)
        return (self._batch_kernel(x, kernel, size),), (True,)

    def _batch_x(self, x: Value, kernel: Value, size: Size) -> Value:
        """Join the batch with that of x, inside its parts."""
        (batch, *rest), parts = x.shape[1:], self.batch_groups
        each = batch // parts
        if parts != 1:
            x = _swap(Reshape((size, parts, each, *rest))(x))
        result = self(Reshape((parts * size * each, *rest))(x), kernel)
        return Reshape((size, each, *result.shape[1:]))(result)

    def _batch_kernel(self, x: Value, kernel: Value, size: Size) -> Value:
        """Join the batch with the outputs, inside their groups."""
        (outputs, *rest), groups = kernel.shape[1:], self.groups * self.batch_groups
        each = outputs // groups
        if groups != 1:
            kernel = _swap(Reshape((size, groups, each, *rest))(kernel))
        result = self(x, Reshape((groups * size * each, *rest))(kernel))
        batch, _, *places = result.shape
        if groups == 1:
            return _swap(Reshape((batch, size, outputs, *places))(result))
        result = Reshape((batch, groups, size, each, *places))(result)
        result = Transpose((2, 0, 1, *range(3, result.ndim)))(result)
        return Reshape((size, batch, outputs, *places))(result)

    def _batch_both(self, x: Value, kernel: Value, size: Size) -> Value:
        """Treat each lane as a separate group; parts of the batch become groups too."""
        (batch, channels, *spatial), parts = x.shape[1:], self.batch_groups
        each = batch // parts
        if parts == 1:
            x = _swap(x)
        else:
            x = Reshape((size, parts, each, channels, *spatial))(x)
            x = Transpose((2, 0, 1, *range(3, x.ndim)))(x)
        x = Reshape((each, size * parts * channels, *spatial))(x)
        outputs, *rest = kernel.shape[1:]
        groups = size * self.groups * parts
        many = replace(self, groups=groups, batch_groups=1)
        result = many(x, Reshape((size * outputs, *rest))(kernel))
        return _swap(Reshape((each, size, outputs, *result.shape[2:]))(result))

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * size_of(inputs[1].shape[1:]) * 2

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        space = (None,) * (inputs[0].rank - 2)
        if not self.groups == self.batch_groups == 1:
            images = 0 if self.batch_groups == 1 else None
            operands = (images, None, *space), (None, None, *space)
            return AxisRule(operands, ((images, None, *space),))
        return AxisRule(((0, 1, *space), (2, 1, *space)), ((0, 2, *space),))


def _sliding(windows: Sequence[Window], groups: Size, batch_groups: Size = 1) -> Convolution:
    """Return the convolution with these windows."""
    return Convolution(
        tuple([window.stride for window in windows]),
        tuple([(window.low, window.high) for window in windows]),
        tuple([window.base_dilation for window in windows]),
        tuple([window.dilation for window in windows]),
        groups,
        batch_groups,
    )


def _swap(x: Value) -> Value:
    """Exchange the first two axes."""
    return Transpose((1, 0, *range(2, x.ndim)))(x)


def _turn_kernel(kernel: Value, groups: Size) -> Value:
    """Return the kernel for the transposed direction: reversed, from its outputs to its inputs."""
    outputs, taken, *spatial = kernel.shape
    axes = tuple([axis for axis, size in enumerate(spatial, 2) if size != 1])
    if axes:
        kernel = Reverse(axes)(kernel)
    if groups == 1:
        return _swap(kernel)
    each = outputs // groups
    kernel = Reshape((groups, each, taken, *spatial))(kernel)
    kernel = Transpose((0, 2, 1, *range(3, kernel.ndim)))(kernel)
    return Reshape((groups * taken, each, *spatial))(kernel)
