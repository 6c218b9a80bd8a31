"""In which order the axes of a convolution's arrays stand.

XLA on CPUs gives convolutions to its libraries where channels come last.  It moves them there
itself, but not in loops and branches, where each product is then computed for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pscdsl._src.ir.hlo import TargetHlo
from pscdsl._src.ir.primitive import H, Types
from pscdsl._src.primitives.contractions import accumulator, widened
from pscdsl._src.primitives.convolution import Convolution
from pscdsl._src.targets.forms import Form
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import F32

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
    types = [each.with_dtype(wide) for each in inputs]
    axes = [str(axis) for axis in range(output.rank - 2)]
    spatial = tuple(range(2, output.rank))
    to_last = (0, *spatial, 1)
    moved = [
        _moved(hlo, x, each, order)
        for x, each, order in zip(operands, types, (to_last, (*spatial, 1, 0)), strict=True)
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
