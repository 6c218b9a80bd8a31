"""Convolutions with large kernels, a part of their channels at a time.

The gradient of a convolution with respect to its kernel is one: the cotangent slides over the
operand, with the batch in the place of the channels.  XLA's library goes through the whole kernel
for each place; one that does not fit the cache beside the processor is read from farther away
each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from pscdsl.forms import form
from pscdsl.primitives.contractions import accumulator
from pscdsl.primitives.elementwise import Convert, add
from pscdsl.primitives.shaping import Slice
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import F32

if TYPE_CHECKING:
    from pscdsl.builder import Value
    from pscdsl.primitives.convolution import Convolution

Numbers: TypeAlias = tuple[int, ...]

KERNEL_IN_PARTS = form(
    "kernel_in_parts",
    "A convolution whose kernel is larger than its result, and than a cache, is the sum of some "
    "with parts of its channels, so the gradient of one with respect to its kernel: 0.3 to 0.7 of "
    "the time.",
)
LEAST_KERNEL = 1 << 21
"""Kernels of fewer bytes stay in the cache."""
LEAST_PLACES = 64
"""Kernels that see fewer places are read fast enough."""
LEAST_WORK = 1 << 25
"""Fewer products than these in all gain nothing."""
PART = 1 << 19
"""The bytes of a part, ..."""
LARGER_PART = 1 << 20
"""... of parts of few columns, which the library is slow with, ..."""
LARGEST_PART = 1 << 21
"""... and at most."""
COLUMNS = 256
"""A part of fewer channels times outputs is of few columns, ..."""
LEAST_COLUMNS = 64
"""... and with fewer than these it is slower than the whole."""
MOST_PARTS = 32


def channels_of_a_part(kernel: ArrayType, output: ArrayType) -> int | None:
    """How many channels at a time are faster than all of them, if any number is.

    The sizes are numbers.
    """
    outputs, taken, *window = numbers(kernel.shape)
    batch, _, *places = numbers(output.shape)
    seen, each = prod(window), prod(window) * outputs * 4
    if (
        accumulator(output.dtype) is not F32
        or seen < max(LEAST_PLACES, prod(places) + 1)
        or each * taken < LEAST_KERNEL
        or batch * outputs * taken * prod(places) * seen < LEAST_WORK
    ):
        return None
    count = max(
        PART // each,
        min(-(-COLUMNS // outputs), LARGER_PART // each),
        -(-LEAST_COLUMNS // outputs),
        -(-taken // MOST_PARTS),
    )
    return count if count < taken and count * each <= LARGEST_PART else None


def in_parts(convolution: Convolution, operands: Sequence[Value]) -> Sequence[Value]:
    """The sum of the convolutions of parts of the channels; 16-bit floats are added up in f32."""
    x, kernel = operands
    (output,) = convolution.type_rule(x.builder.facts, x.type, kernel.type)
    count = channels_of_a_part(kernel.type, output)
    assert count is not None
    x, kernel = (_in_f32(each) for each in (x, kernel))
    taken, total = numbers(kernel.type.shape)[1], None
    for start in range(0, taken, count):
        channels = start, min(start + count, taken)
        term = convolution(_channels(x, *channels), _channels(kernel, *channels))
        total = term if total is None else add.bind(total, term)[0]
    assert total is not None
    return (total if output.dtype is F32 else Convert(output.dtype)(total),)


def _channels(x: Value, start: int, stop: int) -> Value:
    """Some of the second axis."""
    rest = x.shape[2:]
    first, last = (0, start, *(0 for _ in rest)), (x.shape[0], stop, *rest)
    return Slice(first, last, (1,) * x.ndim)(x)


def _in_f32(x: Value) -> Value:
    return x if x.dtype is F32 else Convert(F32)(x)
