"""Floats as integers in the same order, which machines compare without exceptions for NaN."""

from __future__ import annotations

from typing import Final

from pscdsl._src.ir.primitive import H, Hlo
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import I8, I16, I32, I64, DType

SIGNED: Final[dict[int, DType]] = {8: I8, 16: I16, 32: I32, 64: I64}
"""The integers of so many bits."""


def ordered(hlo: Hlo, x: H, given: ArrayType, nan: int) -> H:
    """Signed integers in the order of floats, and a number of choice for each NaN."""
    whole = given.with_dtype(SIGNED[given.dtype.bits])
    (number,) = hlo.op("bitcast_convert", (x,), (whole,))
    number = _turned(hlo, number, whole)
    return hlo.select(hlo.compare("NE", x, x), hlo.full(nan, whole), number)


def from_ordered(hlo: Hlo, number: H, to: ArrayType) -> H:
    """The floats again; the integers at the ends of the order are NaN."""
    number = _turned(hlo, number, to.with_dtype(SIGNED[to.dtype.bits]))
    return hlo.op("bitcast_convert", (number,), (to,))[0]


def _turned(hlo: Hlo, number: H, whole: ArrayType) -> H:
    """Negative numbers in the other order: of the bits of floats in theirs; and back."""
    negative = hlo.compare("LT", number, hlo.full(0, whole))
    other = hlo.binary("xor", number, hlo.full(whole.dtype.range[1], whole))
    return hlo.select(negative, other, number)
