"""Elements are computed before they are repeated, or read often, and not once more for each."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from pscdsl._src.ir.forms import form
from pscdsl._src.ir.hlo import H, Hlo
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dtypes import F32, F64

COMPUTED_ONCE = form(
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
"""The same where slices read them, if there are so many operations for all elements."""
WORK: Final = 1 << 20
TIMES: Final = 8
"""Repetitions; fewer are as fast as a step of its own."""
FEWEST: Final = 1 << 14
"""Elements of the result; a step of its own takes a microsecond."""


def computed_once(hlo: Hlo, x: H, given: ArrayType, output: ArrayType, dims: Sequence[int]) -> H:
    """The operand of a repetition, kept from being fused into what reads it where that pays."""
    if not dims or dims[-1] != output.rank - 1 or hlo.nested or given.dtype not in (F32, F64):
        return x
    before, after = prod(hlo.shape(given.shape)), prod(hlo.shape(output.shape))
    if after < max(FEWEST, TIMES * before) or not hlo.uses(COMPUTED_ONCE):
        return x
    return hlo.kept_apart(x) if hlo.effort(x, EFFORT) >= EFFORT else x


def sliced_once(hlo: Hlo, x: H, given: ArrayType, output: ArrayType) -> H:
    """The operand of a slice, kept from being fused into several that read it where that pays.

    If one alone reads it, it is fused all the same.  Of less than a half there may be slices that
    have no elements in common.
    """
    if hlo.nested or given.dtype not in (F32, F64) or not hlo.uses(COMPUTED_ONCE):
        return x
    before, after = prod(hlo.shape(given.shape)), prod(hlo.shape(output.shape))
    if after < FEWEST or 2 * after <= before:
        return x
    enough = max(IN_SLICES, min(EFFORT, WORK // before))
    return hlo.kept_apart(x) if hlo.effort(x, enough) >= enough else x


def summed_once(hlo: Hlo, x: H, given: ArrayType) -> H:
    """A sum of products, kept from being fused into several operations that read it."""
    if hlo.nested or given.dtype not in (F32, F64) or not hlo.uses(COMPUTED_ONCE):
        return x
    large = prod(hlo.shape(given.shape)) >= FEWEST
    return hlo.kept_apart(x) if large and hlo.effort(x, EFFORT) >= EFFORT else x
