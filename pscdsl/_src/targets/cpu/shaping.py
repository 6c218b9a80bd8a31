"""Elements that are repeated, read often or replaced, in forms that fuse well."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from pscdsl._src.ir.primitive import H, TargetHlo, Types
from pscdsl._src.primitives.indexing import DynamicUpdate
from pscdsl._src.primitives.shaping import Broadcast, Slice, stored
from pscdsl._src.targets.forms import Form
from pscdsl._src.targets.rewriting import ReadOften
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import F32, F64, I32

# Elements are computed before they are repeated, or read often, and not once more for each.


COMPUTED_ONCE = Form(
    "computed_once",
    "Elements that take many operations are written to memory before they are read more than once; "
    "XLA computes them again each time.  Repeated along axes before the last one, 1000 times 1000 "
    "take 0.04 of the time (along the last axis LLVM takes them out of the loop), differences of a "
    "million 0.5, their derivatives 0.05; and a step of a network whose first layer is a "
    "convolution of few channels, which is a sum of products, 0.8.",
)
EFFORT: Final = 24
"""Operations for an element; fewer are as fast done again as read."""
IN_SLICES: Final = 12
"""The operations for an element that slices read, if there are enough for all elements."""
WORK: Final = 1 << 20
TIMES: Final = 8
"""The least ratio of results to operands; fewer repetitions are as fast as a separate step."""
FEWEST: Final = 1 << 14
"""The least number of elements of the result; a separate step takes a microsecond."""


@COMPUTED_ONCE.translation
def repeated(
    primitive: Broadcast, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit a repetition whose operand is computed apart, where that pays."""
    (x,), (operand,), (output,) = operands, inputs, outputs
    dims = primitive.dims
    if not dims or dims[-1] != output.rank - 1 or not _fuses(hlo, operand):
        return None
    before, after = prod(hlo.shape(operand.shape)), prod(hlo.shape(output.shape))
    if after < max(FEWEST, TIMES * before) or hlo.effort(x, EFFORT) < EFFORT:
        return None
    return primitive.lower(hlo, (hlo.kept_apart(x),), inputs, outputs)


@COMPUTED_ONCE.translation
def sliced(
    primitive: Slice, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit a slice whose operand is computed apart from its several readers, where that pays.

    An operand that one operation reads is fused all the same. Slices of less than half of it may
    have no elements in common.
    """
    (x,), (operand,), (output,) = operands, inputs, outputs
    if not _fuses(hlo, operand):
        return None
    before, after = prod(hlo.shape(operand.shape)), prod(hlo.shape(output.shape))
    if after < FEWEST or 2 * after <= before:
        return None
    enough = max(IN_SLICES, min(EFFORT, WORK // before))
    if hlo.effort(x, enough) < enough:
        return None
    return primitive.lower(hlo, (hlo.kept_apart(x),), inputs, outputs)


@COMPUTED_ONCE.translation
def read_often(
    primitive: ReadOften, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit a sum of products that is not fused into several operations that read it."""
    (x,), (operand,) = operands, inputs
    if not _fuses(hlo, operand) or prod(hlo.shape(operand.shape)) < FEWEST:
        return None
    return (hlo.kept_apart(x),) if hlo.effort(x, EFFORT) >= EFFORT else None


def _fuses(hlo: TargetHlo, operand: ArrayType) -> bool:
    """Return whether XLA would fuse the operation, and its dtype can be kept apart."""
    return not hlo.nested and operand.dtype in (F32, F64)


# Parts of arrays replaced at known places, in a form that fuses with their computation.


PADDED_UPDATE = Form(
    "padded_update",
    "A part that is most of an array, at a known place, is padded and chosen by a mask, so that it "
    "is computed and written at once: 0.2 to 0.4 of the time for the inside of a grid.",
)
SMALL, LARGE = 1 << 10, 1 << 18
"""Arrays of fewer elements are changed in place; see `_gains`."""


@PADDED_UPDATE.translation
def padded_update(
    primitive: DynamicUpdate, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit a part at a known place, padded and chosen by a mask."""
    x, update, *starts = operands
    if not starts or stored(inputs[0]):
        return None
    numbers = [number for start in starts if (number := hlo.known(start)) is not None]
    if len(numbers) < len(starts) or not _gains(hlo, x, update, inputs, numbers):
        return None
    return (_pad(hlo, x, update, inputs, numbers),)


def _gains(hlo: TargetHlo, x: H, update: H, inputs: Types, starts: Sequence[int]) -> bool:
    """Return whether a padded part is faster.

    It is if the part is computed from other places of the array, which then cannot be changed in
    place, or if the rest is so small that it may as well be copied.
    """
    whole, part = (hlo.shape(type_.shape) for type_ in inputs[:2])
    count = prod(whole)
    if 4 * prod(part) < 3 * count:
        return False
    if hlo.reads_elsewhere(update, x, starts):
        return count >= (SMALL if whole[-1] != part[-1] else LARGE)
    return count >= LARGE and not hlo.in_loop


def _pad(hlo: TargetHlo, x: H, update: H, inputs: Types, starts: Sequence[int]) -> H:
    """Return an array with a part replaced, in a form that fuses with the part's computation."""
    given, whole, size = inputs[0], hlo.shape(inputs[0].shape), hlo.shape(inputs[1].shape)
    pairs = zip(starts, whole, size, strict=True)
    low = [min(max(start, 0), length - part) for start, length, part in pairs]
    high = [length - part - start for start, length, part in zip(low, whole, size, strict=True)]
    mask: H = None
    counted = given.with_dtype(I32)
    for axis, (before, after) in enumerate(zip(low, high, strict=True)):
        for margin, direction, bound in (
            (before, "GE", before),
            (after, "LT", whole[axis] - after),
        ):
            if margin:
                (count,) = hlo.op("iota", (), (counted,), {"iota_dimension": axis})
                inside = hlo.compare(direction, count, hlo.full(bound, counted))
                mask = inside if mask is None else hlo.binary("and", mask, inside)
    if mask is None:
        return update
    spread = hlo.pad(update, hlo.full(0, ArrayType(given.dtype)), low, high)
    return hlo.select(mask, spread, x)
