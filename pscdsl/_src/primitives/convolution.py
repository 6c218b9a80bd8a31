"""Convolutions: a kernel that slides over the spatial axes of an array.

16-bit floats are accumulated in f32, and the result is rounded once; integers wrap around.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives.contractions import accumulator, precision, widened
from pscdsl._src.primitives.linear import Bilinear
from pscdsl._src.primitives.shaping import Pad, Reshape, Reverse, Transpose, at_most, exactly
from pscdsl._src.primitives.windows import Padding, Window, emit_padding, laid_out, offsets, slide
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


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
        wide = to_numpy(accumulator(from_numpy(x.dtype)))
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
        wide = accumulator(output.dtype)
        operands = widened(hlo, operands, inputs, wide)
        axes = [str(axis) for axis in range(output.rank - 2)]
        seen, kernel = ", ".join(["b", "f", *axes]), ", ".join(["o", "i", *axes])
        attributes = self.attributes(hlo, f"[{seen}]x[{kernel}]->[{seen}]")
        (result,) = hlo.op("convolution", operands, (output.with_dtype(wide),), attributes)
        return (hlo.convert(result, output),)

    def attributes(self, hlo: Hlo, layout: str) -> dict[str, object]:
        """The attributes of the operation, for arrays whose axes are laid out so."""
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
            self._of_kernel(cotangent, operand, other)
            if place
            else self._of_x(cotangent, operand, other)
        )

    def _of_x(self, cotangent: Value, x: ArrayType, kernel: Value) -> Value:
        """What meets each element: the kernel turned round slides over the cotangent."""
        facts, sizes = kernel.builder.facts, zip(x.shape[2:], cotangent.shape[2:], strict=True)
        windows = [
            window.back(facts, size, places)
            for window, (size, places) in zip(self.windows(kernel.type), sizes, strict=True)
        ]
        groups, parts = self.groups * self.batch_groups, self.batch_groups
        result = _sliding(windows, groups)(cotangent, _turned(kernel, groups))
        if parts != 1:  # the parts of the batch, so far groups of channels
            (batch, channels), spatial = x.shape[:2], result.shape[2:]
            result = Reshape((batch // parts, parts, channels, *spatial))(result)
            result = _swapped(result)
            return Reshape(x.shape)(result)
        return exactly(result, x.shape)

    def _of_kernel(self, cotangent: Value, kernel: ArrayType, x: Value) -> Value:
        """What meets each element of the kernel: the cotangent slides over x.

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
        return exactly(_swapped(slide_back(_swapped(x), _swapped(cotangent))), kernel.shape)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        (x, kernel), (many_x, many_kernels) = operands, batched
        if many_x and many_kernels:
            return (self._both_batched(x, kernel, size),), (True,)
        if many_x:
            return (self._x_batched(x, kernel, size),), (True,)
        return (self._kernel_batched(x, kernel, size),), (True,)

    def _x_batched(self, x: Value, kernel: Value, size: Size) -> Value:
        """The batch joins that of x, inside its parts."""
        (batch, *rest), parts = x.shape[1:], self.batch_groups
        each = batch // parts
        if parts != 1:
            x = _swapped(Reshape((size, parts, each, *rest))(x))
        result = self(Reshape((parts * size * each, *rest))(x), kernel)
        return Reshape((size, each, *result.shape[1:]))(result)

    def _kernel_batched(self, x: Value, kernel: Value, size: Size) -> Value:
        """The batch joins the outputs, inside their groups."""
        (outputs, *rest), groups = kernel.shape[1:], self.groups * self.batch_groups
        each = outputs // groups
        if groups != 1:
            kernel = _swapped(Reshape((size, groups, each, *rest))(kernel))
        result = self(x, Reshape((groups * size * each, *rest))(kernel))
        batch, _, *places = result.shape
        if groups == 1:
            return _swapped(Reshape((batch, size, outputs, *places))(result))
        result = Reshape((batch, groups, size, each, *places))(result)
        result = Transpose((2, 0, 1, *range(3, result.ndim)))(result)
        return Reshape((size, batch, outputs, *places))(result)

    def _both_batched(self, x: Value, kernel: Value, size: Size) -> Value:
        """Each lane is a group of its own; parts of the batch become groups too."""
        (batch, channels, *spatial), parts = x.shape[1:], self.batch_groups
        each = batch // parts
        if parts == 1:
            x = _swapped(x)
        else:
            x = Reshape((size, parts, each, channels, *spatial))(x)
            x = Transpose((2, 0, 1, *range(3, x.ndim)))(x)
        x = Reshape((each, size * parts * channels, *spatial))(x)
        outputs, *rest = kernel.shape[1:]
        groups = size * self.groups * parts
        many = replace(self, groups=groups, batch_groups=1)
        result = many(x, Reshape((size * outputs, *rest))(kernel))
        return _swapped(Reshape((each, size, outputs, *result.shape[2:]))(result))

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * size_of(inputs[1].shape[1:]) * 2


def _sliding(windows: Sequence[Window], groups: Size, batch_groups: Size = 1) -> Convolution:
    """The convolution with these windows."""
    return Convolution(
        tuple([window.stride for window in windows]),
        tuple([(window.low, window.high) for window in windows]),
        tuple([window.base_dilation for window in windows]),
        tuple([window.dilation for window in windows]),
        groups,
        batch_groups,
    )


def _swapped(x: Value) -> Value:
    """The first two axes in each other's place."""
    return Transpose((1, 0, *range(2, x.ndim)))(x)


def _turned(kernel: Value, groups: Size) -> Value:
    """The kernel seen from the other side: reversed, from its outputs to what it takes."""
    outputs, taken, *spatial = kernel.shape
    axes = tuple([axis for axis, size in enumerate(spatial, 2) if size != 1])
    if axes:
        kernel = Reverse(axes)(kernel)
    if groups == 1:
        return _swapped(kernel)
    each = outputs // groups
    kernel = Reshape((groups, each, taken, *spatial))(kernel)
    kernel = Transpose((0, 2, 1, *range(3, kernel.ndim)))(kernel)
    return Reshape((groups * taken, each, *spatial))(kernel)
