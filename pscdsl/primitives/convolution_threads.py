"""Convolutions that all threads share.

XLA on CPUs gives convolutions of f32 along two axes to its library YNN, which computes each in one
thread; its own routine uses all.  The library takes none whose result or kernel is larger than its
operand along an axis.  So a row of padding is added, and what is found for it is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from pscdsl.forms import form
from pscdsl.primitives.contractions import accumulator
from pscdsl.primitives.shaping import Slice
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import F32

if TYPE_CHECKING:
    from pscdsl.builder import Value
    from pscdsl.primitives.convolution import Convolution

CONVOLUTION_IN_THREADS = form(
    "convolution_in_threads",
    "A convolution of f32 of a row more, which is cut off, where there are several processors: "
    "XLA's routine computes it in all threads, its library YNN those without in one: 0.35 to 0.75 "
    "of the time with two.",
)
LEAST_WORK = 1 << 25
"""Fewer products than these in all gain nothing, ..."""
LEAST_OF_FEW_CHANNELS = 1 << 24
"""... of few channels these."""
FEWEST_OUTPUTS, MOST_OUTPUTS = 32, 128
"""Of fewer the routine is slow, of more the library is fast."""
FEW_CHANNELS, FEW_TERMS = 8, 72
"""With fewer channels, or fewer products for an element, so is the routine, ..."""
FEW_OUTPUTS = 32
"""... but of so few outputs of few channels the library is slow, too."""
ROWS = 14
"""So many rows at least for each that is added."""


def added_rows(
    convolution: Convolution, x: ArrayType, kernel: ArrayType, output: ArrayType
) -> tuple[int, int] | None:
    """The axis along which rows are added, and how many; None if that is not faster.

    The sizes are numbers.
    """
    (outputs, taken, *window), places = numbers(kernel.shape), numbers(output.shape)
    terms = taken * prod(window)
    if (
        len(window) != 2
        or accumulator(output.dtype) is not F32
        or (convolution.groups, convolution.batch_groups) != (1, 1)
        or convolution.left_dilation != (1, 1)
        or not FEWEST_OUTPUTS <= outputs <= MOST_OUTPUTS
        or terms < FEW_TERMS
        or (taken < FEW_CHANNELS and outputs > FEW_OUTPUTS)
        or prod(places) * terms < (LEAST_WORK if taken >= FEW_CHANNELS else LEAST_OF_FEW_CHANNELS)
    ):
        return None
    given = numbers(x.shape)
    larger = [*zip(places[2:], given[2:], strict=True), *zip(window, given[2:], strict=True)]
    if any(size > of_x for size, of_x in larger):
        return None  # the library does not take it
    axis = min((2, 3), key=lambda axis: (given[axis] - places[axis]) / places[axis])
    count = given[axis] - places[axis] + 1
    # A row more takes more than one of padding where it goes by larger steps.
    if convolution.strides[axis - 2] != 1 or count * ROWS > places[axis]:
        return None
    return axis, count


def in_threads(convolution: Convolution, operands: Sequence[Value]) -> Sequence[Value]:
    """The convolution with more padding, of which the rows are taken that are wanted."""
    x, kernel = operands
    (output,) = convolution.type_rule(x.builder.facts, x.type, kernel.type)
    added = added_rows(convolution, x.type, kernel.type, output)
    assert added is not None
    axis, count = added
    padding = list(convolution.padding)
    low, high = padding[axis - 2]
    padding[axis - 2] = low, high + count
    found = replace(convolution, padding=tuple(padding))(x, kernel)
    return (Slice((0,) * 4, output.shape, (1,) * 4)(found),)
