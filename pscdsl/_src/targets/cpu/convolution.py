"""Convolutions as sums of products with shifted images, and with channels at the end.

XLA on CPUs gives convolutions to its libraries where channels come last.  It moves them there
itself, but not in loops and branches, where each product is then computed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from pscdsl._src.ir.hlo import TargetHlo
from pscdsl._src.ir.primitive import H, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.contractions import accumulator, widened
from pscdsl._src.primitives.convolution import Convolution
from pscdsl._src.primitives.elementwise import Convert, add, multiply
from pscdsl._src.primitives.shaping import Broadcast, Pad, Reshape, Slice
from pscdsl._src.targets.forms import Context, Form
from pscdsl._src.targets.primitives import ReadOften
from pscdsl._src.targets.rewriting import defined
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import F32, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

SHIFTED_PRODUCTS = Form(
    "shifted_products",
    "A convolution of few channels, or of each channel for itself, is a sum of products with "
    "shifted images: 0.03 to 0.5 of the time; 3x3 on each of 64 channels 0.04.",
)
MOST_CHANNELS = 4
"""From so many channels of its operand an output of shifted products is made at most."""
MOST_TERMS = 49
"""The products that are added up for an output, at most; there are operations for each."""
LEAST_PRODUCTS_IN_ALL = 1 << 18
"""Fewer products than these in all are not worth it, where channels do not stand for themselves."""
LEAST_ROW = 16
"""Neither are shorter rows: they are what is added at once."""
MANY_OUTPUTS = 16
"""From more outputs on, XLA's library makes good use of many terms, and of 16-bit floats."""
MANY_TERMS = 32


@SHIFTED_PRODUCTS.rewrite
def few_channels(
    primitive: Convolution, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """A convolution of few channels, or of each for itself."""
    gains = are_shifted_products(primitive, inputs[1], outputs[0])
    return defined(shifted_products, primitive, inputs) if gains else None


def are_shifted_products(convolution: Convolution, kernel: ArrayType, output: ArrayType) -> bool:
    """Whether a convolution of these sizes is faster as such a sum."""
    if convolution.batch_groups != 1 or 0 in output.shape:
        return False
    outputs, taken, *window = numbers(kernel.shape)
    terms = taken * prod(window)
    if taken > MOST_CHANNELS or terms > MOST_TERMS:
        return False
    if convolution.groups != 1:
        return True
    places = numbers(output.shape)
    few = outputs <= MANY_OUTPUTS or (terms <= MANY_TERMS and output.dtype.bits > 16)
    return few and prod(places) * terms >= LEAST_PRODUCTS_IN_ALL and places[-1] >= LEAST_ROW


def shifted_products(convolution: Convolution, operands: Sequence[Value]) -> Sequence[Value]:
    """A sum over the elements of the kernel, each times all that it meets as it slides.

    Axes are the batch, the groups, the outputs of a group, then those along which it slides.
    """
    x, kernel = operands
    (output,) = convolution.type_rule(x.builder.facts, x.type, kernel.type)
    wide, places, groups = accumulator(x.dtype), output.shape[2:], convolution.groups
    x, kernel = _in(wide, x), _in(wide, kernel)
    outputs, taken, *window = numbers(kernel.shape)
    x = _spread(convolution, x)
    batch, channels, *sizes = x.shape
    each = outputs // groups
    x = Reshape((batch, groups, channels // groups, *sizes))(x)
    kernel = Reshape((groups, each, taken, *window))(kernel)
    over = (batch, groups, each, *places)
    apart = tuple(range(3, len(over)))
    total: Value | None = None
    for channel, *offset in product(*(range(size) for size in (taken, *window))):
        first = [at * step for at, step in zip(offset, convolution.right_dilation, strict=True)]
        pairs = zip(first, numbers(places), convolution.strides, strict=True)
        end = [at + (count - 1) * step + 1 for at, count, step in pairs]
        start, stop = (0, 0, channel, *first), (batch, groups, channel + 1, *end)
        met = Slice(start, stop, (1, 1, 1, *convolution.strides))(x)
        here = (channel, *offset)
        one = [at + 1 for at in here]
        weight = Slice((0, 0, *here), (groups, each, *one), (1,) * kernel.ndim)(kernel)
        met = Broadcast(over, (0, 1, *apart))(Reshape((batch, groups, *places))(met))
        weight = Broadcast(over, (1, 2))(Reshape((groups, each))(weight))
        (term,) = multiply.bind(met, weight)
        total = term if total is None else add.bind(total, term)[0]
    assert total is not None
    return (ReadOften()(_in(output.dtype, Reshape(output.shape)(total))),)


def _spread(convolution: Convolution, x: Value) -> Value:
    """The operand with what stands around and between its elements."""
    low, high = ((0, 0, *(pair[i] for pair in convolution.padding)) for i in (0, 1))
    between = (0, 0, *(step - 1 for step in convolution.left_dilation))
    if not any((*low, *high, *between)):
        return x
    return Pad(low, high, between)(x, x.builder.literal(0, x.dtype))


def _in(dtype: DType, x: Value) -> Value:
    return x if x.dtype is dtype else Convert(dtype)(x)


CHANNELS_LAST = Form(
    "channels_last",
    "Convolutions in loops and branches have their channels moved to the end, for XLA's libraries: "
    "of 8 channels 0.6 of the time, of 32 channels 0.05.",
)
LEAST_PRODUCTS = 32
"""With fewer pairs of a channel and an output the libraries are no faster."""
LEAST_OUTPUTS = 8
"""Nor with fewer outputs."""
LEAST_WORK = 1 << 18
"""Loops that do less become one native function, without libraries."""
MOST_AXES = 3
"""Of space: the libraries know no more."""


@CHANNELS_LAST.translation
def channels_last(
    primitive: Convolution, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """The convolution with channels moved to the end and back."""
    (output,) = outputs
    if not hlo.nested or not _gains(primitive, inputs[1], output):
        return None
    wide = accumulator(output.dtype)
    result = output.with_dtype(wide)
    operands = widened(hlo, operands, inputs, wide)
    types = [type_.with_dtype(wide) for type_ in inputs]
    axes = [str(axis) for axis in range(output.rank - 2)]
    spatial = tuple(range(2, output.rank))
    to_last = (0, *spatial, 1)
    moved = [
        _moved(hlo, x, type_, order)
        for x, type_, order in zip(operands, types, (to_last, (*spatial, 1, 0)), strict=True)
    ]
    seen, kernel = ", ".join(["b", *axes, "f"]), ", ".join([*axes, "i", "o"])
    attributes = primitive.attributes(hlo, f"[{seen}]x[{kernel}]->[{seen}]")
    turned = result.with_shape(tuple([result.shape[axis] for axis in to_last]))
    (found,) = hlo.op("convolution", moved, (turned,), attributes)
    found = _moved(hlo, found, turned, (0, output.rank - 1, *range(1, output.rank - 1)))
    return (hlo.convert(found, output),)


def _gains(convolution: Convolution, kernel: ArrayType, output: ArrayType) -> bool:
    """Whether channels are better moved to the end."""
    if accumulator(output.dtype) is not F32 or 0 in output.shape:
        return False
    if convolution.batch_groups != 1 or not 3 <= kernel.rank <= 2 + MOST_AXES:
        return False
    outputs, taken, *window = numbers(kernel.shape)
    (groups,) = numbers((convolution.groups,))
    each = outputs // groups
    work = prod(numbers(output.shape)) * taken * prod(window)
    return each >= LEAST_OUTPUTS and each * taken >= LEAST_PRODUCTS and work >= LEAST_WORK


def _moved(hlo: TargetHlo, x: H, given: ArrayType, order: Sequence[int]) -> H:
    wanted = given.with_shape(tuple([given.shape[axis] for axis in order]))
    return hlo.op("transpose", (x,), (wanted,), {"permutation": hlo.i64_array(order)})[0]
