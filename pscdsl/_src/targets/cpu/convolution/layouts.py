"""In which order the axes of a convolution's arrays stand.

XLA on CPUs gives convolutions to its libraries where channels come last.  It moves them there
itself, but not in loops and branches, where each product is then computed for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from pscdsl._src.ir.forms import form
from pscdsl._src.ir.primitive import H, Hlo, Types
from pscdsl._src.primitives.contractions import accumulator
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import F32

if TYPE_CHECKING:
    from pscdsl._src.primitives.convolution import Convolution

CHANNELS_LAST = form(
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


def channels_are_last(
    hlo: Hlo, convolution: Convolution, kernel: ArrayType, output: ArrayType
) -> bool:
    """Whether channels are moved to the end; sizes are numbers."""
    if not hlo.nested or accumulator(output.dtype) is not F32 or not hlo.uses(CHANNELS_LAST):
        return False
    if convolution.batch_groups != 1 or not 3 <= kernel.rank <= 2 + MOST_AXES:
        return False
    outputs, taken, *window = numbers(kernel.shape)
    each = outputs // hlo.size(convolution.groups)
    work = prod(numbers(output.shape)) * taken * prod(window)
    return each >= LEAST_OUTPUTS and each * taken >= LEAST_PRODUCTS and work >= LEAST_WORK


def emit_convolution(
    hlo: Hlo,
    operands: Sequence[H],
    inputs: Types,
    output: ArrayType,
    attributes: Mapping[str, Any],
    last: bool,
) -> H:
    """The convolution, with channels moved to the end and back if they are to be last."""
    axes = [str(axis) for axis in range(output.rank - 2)]
    if not last:
        seen, kernel = ", ".join(["b", "f", *axes]), ", ".join(["o", "i", *axes])
        results = hlo.op(
            "convolution", operands, (output,), _laid_out(hlo, attributes, seen, kernel)
        )
        return results[0]
    spatial = tuple(range(2, output.rank))
    to_last = (0, *spatial, 1)
    moved = [
        _moved(hlo, x, given, order)
        for x, given, order in zip(operands, inputs, (to_last, (*spatial, 1, 0)), strict=True)
    ]
    seen, kernel = ", ".join(["b", *axes, "f"]), ", ".join([*axes, "i", "o"])
    wanted = output.with_shape(tuple([output.shape[axis] for axis in to_last]))
    (result,) = hlo.op("convolution", moved, (wanted,), _laid_out(hlo, attributes, seen, kernel))
    return _moved(hlo, result, wanted, (0, output.rank - 1, *range(1, output.rank - 1)))


def _laid_out(hlo: Hlo, attributes: Mapping[str, Any], seen: str, kernel: str) -> dict[str, Any]:
    numbers = hlo.parse_attribute(f"#stablehlo.conv<[{seen}]x[{kernel}]->[{seen}]>")
    return {**attributes, "dimension_numbers": numbers}


def _moved(hlo: Hlo, x: H, given: ArrayType, order: Sequence[int]) -> H:
    wanted = given.with_shape(tuple([given.shape[axis] for axis in order]))
    return hlo.op("transpose", (x,), (wanted,), {"permutation": hlo.i64_array(order)})[0]
