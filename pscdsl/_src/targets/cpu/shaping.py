"""Elements that are computed once before they are repeated or read often."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from pscdsl._src.ir.primitive import H, TargetHlo, Types
from pscdsl._src.primitives.shaping import Broadcast, Slice
from pscdsl._src.targets.forms import Form
from pscdsl._src.targets.rewriting import ReadOften
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import F32, F64

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
