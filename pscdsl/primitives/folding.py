"""Elements that lie next to each other, combined slice by slice before one by one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final, TypeAlias

from pscdsl.forms import form
from pscdsl.primitive import H, Hlo
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dtypes import DType

Axes: TypeAlias = tuple[int, ...]

FOLDED_REDUCTIONS = form(
    "folded_reductions",
    "In loops, sums, products and extremes of neighbours are taken of slices first, elementwise, "
    "until few elements are left, which XLA combines one after another: sums of 64 numbers take "
    "0.8 of the time, of 256 0.5, the largest of 64 0.5, of 256 0.2.",
)
WIDTH: Final = 256
"""Bits of the elements that are left: as wide as vectors are."""
MOST_ROWS: Final = 16
"""Of more rows XLA combines elements side by side."""
MOST_ELEMENTS: Final = 1 << 14
"""Loops with larger arrays are not native, and reductions in them not slow."""
MOST_SLICES: Final = 8
"""So many at once."""


def is_folded(hlo: Hlo, count: int, dtype: DType) -> bool:
    """Whether so many neighbours are combined by slices."""
    return (
        hlo.in_loop
        and hlo.uses(FOLDED_REDUCTIONS)
        and (dtype.is_float or dtype.is_integer)
        and 2 * _left(dtype) <= count <= MOST_ELEMENTS
    )


def folded(
    hlo: Hlo, operation: str, neutral: object, x: H, axes: Sequence[int], given: ArrayType
) -> tuple[H, Axes, ArrayType]:
    """Fewer elements, the axes along which to combine them, and their type.

    Without the axes the type is what it was without those given.  It is the array itself where
    that is as fast.  What is `neutral` changes nothing that it is combined with.
    """
    shape, first = hlo.shape(given.shape), given.rank - len(axes)
    kept, count = shape[:first], prod(shape[first:])
    if (
        tuple(sorted(axes)) != tuple(range(first, given.rank))
        or not is_folded(hlo, count, given.dtype)
        or not 0 < prod(kept) <= MOST_ROWS
        or prod(shape) > MOST_ELEMENTS
    ):
        return x, tuple(axes), given
    rows = () if prod(kept) == 1 else (prod(kept),)
    x = hlo.reshape(x, given.with_shape((*rows, count)))
    fill = hlo.full(neutral, ArrayType(given.dtype))
    while count >= 2 * _left(given.dtype):
        x, count = _fold(hlo, operation, fill, x, rows, count, count // _left(given.dtype))
    left = given.with_shape((*kept, count))
    return hlo.reshape(x, left), (first,), left


def _fold(
    hlo: Hlo, operation: str, fill: H, x: H, rows: tuple[int, ...], count: int, most: int
) -> tuple[H, int]:
    """The slices of each row combined, and how many elements they have."""
    none, whole = [0] * len(rows), min(MOST_SLICES, 1 << most.bit_length() - 1)
    width = -(-count // whole)
    parts: list[H] = []
    for start in range(0, count, width):
        part = hlo.slice(x, (*none, start), (*rows, min(start + width, count)))
        if missing := max(start + width - count, 0):
            part = hlo.pad(part, fill, (*none, 0), (*none, missing))
        parts.append(part)
    while len(parts) > 1:  # two by two: it is more accurate, and they need not wait for each other
        pairs = zip(parts[::2], parts[1::2], strict=False)
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [*(hlo.binary(operation, a, b) for a, b in pairs), *odd]
    return parts[0], width


def _left(dtype: DType) -> int:
    return WIDTH // dtype.bits
