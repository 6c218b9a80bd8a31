"""Elements that lie next to each other, combined slice by slice before one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, TypeAlias

from pscdsl._src.ir.hlo import H, TargetHlo
from pscdsl._src.ir.primitive import Types
from pscdsl._src.primitives.reductions import (
    OPERATIONS,
    Largest,
    Reduce,
    Reduction,
    accumulator,
    combined,
    extreme,
    identity,
)
from pscdsl._src.targets.forms import Context, Form
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import BOOL, U8, DType

Axes: TypeAlias = tuple[int, ...]

FOLDED_REDUCTIONS = Form(
    "folded_reductions",
    "In loops, sums, products and extremes of neighbours are taken of slices first, elementwise, "
    "until few elements are left, which XLA combines one after another: sums of 64 numbers take "
    "0.8 of the time, of 256 0.5, the largest of 64 0.5, of 256 0.2.  Outside of loops so are "
    "whether some or all neighbours hold, extremes of integers, of floats in rows of 33 to 64, and "
    "places, and so are counts, in bytes: 0.1 to 0.3 of the time for a million elements.",
)
WIDTH: Final = 256
"""Bits of the elements that are left in loops: as wide as vectors are."""
MOST_ROWS: Final = 16
"""Of more rows XLA combines elements side by side."""
MOST_ELEMENTS: Final = 1 << 14
"""Loops with larger arrays are not native, and reductions in them not slow."""
MOST_SLICES: Final = 8
"""So many at once; ..."""
FEWER_SLICES: Final = 4
"""... outside of loops so many: by more, XLA reads what is computed at powers of 2 apart, which
took 3 to 5 times as long as one element after another."""
LEFT: Final = 16
"""So many elements are left outside of loops."""
LONG_ROW: Final = 33
"""From so many neighbours on it pays, ..."""
MANY: Final = 48 << 10
"""... in an array of so many elements."""
_BYTE: Final = 255
_IDEMPOTENT: Final = frozenset(("and", "or", "maximum", "minimum"))
"""Operations by which an element may be combined twice."""


def is_folded(here: Context | TargetHlo, count: int, dtype: DType) -> bool:
    """Whether so many neighbours are combined by slices, in a loop."""
    return (
        here.in_loop
        and (dtype.is_float or dtype.is_integer)
        and 2 * (WIDTH // dtype.bits) <= count <= MOST_ELEMENTS
    )


@FOLDED_REDUCTIONS.translation
def fewer(
    primitive: Reduce, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """A reduction of fewer elements, those that are left of slices."""
    (x,), (given,), (output,) = operands, inputs, outputs
    kind, axes = primitive.kind, primitive.axes
    wide = given.with_dtype(accumulator(kind, given.dtype))
    partial = output.with_dtype(wide.dtype)
    if kind == "sum":
        found, axes, wide = counted(hlo, hlo.convert(x, wide), axes, wide)
    else:
        found = hlo.convert(x, wide)
    found, axes, wide = folded(hlo, kind, found, axes, wide)
    if wide.dtype.is_float and (kind == "maximum" or kind == "minimum"):
        result = extreme(hlo, kind, found, axes, wide, partial)
    else:
        result = combined(hlo, kind, found, axes, wide, partial)
    return (hlo.convert(result, output),)


@FOLDED_REDUCTIONS.translation
def fewer_for_largest(
    primitive: Largest, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """The largest of fewer numbers."""
    x, axes, given = folded(hlo, "maximum", operands[0], primitive.axes, inputs[0])
    return (combined(hlo, "maximum", x, axes, given, outputs[0]),)


def folded(
    hlo: TargetHlo, kind: Reduction, x: H, axes: Axes, given: ArrayType
) -> tuple[H, Axes, ArrayType]:
    """Fewer elements, the axes along which to combine them, and their type.

    Without the axes the type is what it was without those given.  It is the array itself where
    that is as fast.
    """
    operation, neutral = OPERATIONS[kind], identity(kind, given.dtype)
    rows, count = _rows(hlo, axes, given)
    dtype = given.dtype
    if is_folded(hlo, count, dtype) and 0 < rows <= MOST_ROWS and rows * count <= MOST_ELEMENTS:
        folds = _Folds(hlo, operation, neutral, rows, WIDTH // dtype.bits, MOST_SLICES)
    elif is_long(hlo, rows, count) and operation in _IDEMPOTENT and _is_exact(dtype):
        folds = _Folds(hlo, operation, neutral, rows, LEFT, FEWER_SLICES)
    else:
        return x, axes, given
    return folds.of(x, given, len(axes), count)


def counted(
    hlo: TargetHlo, x: H, axes: Sequence[int], given: ArrayType
) -> tuple[H, Axes, ArrayType]:
    """The same for a sum of small numbers that are not negative, as truths are."""
    rows, count = _rows(hlo, axes, given)
    if given.dtype.bits < 32 or not given.dtype.is_integer or not is_long(hlo, rows, count):
        return x, tuple(axes), given
    low, high = hlo.bounds(x)
    if low < 0 or not 0 < high <= _BYTE // 2:
        return x, tuple(axes), given
    small = given.with_dtype(U8)
    folds = _Folds(hlo, "add", 0, rows, LEFT, FEWER_SLICES, most=_BYTE // int(high))
    found, axes, small = folds.of(hlo.convert(x, small), small, len(axes), count)
    given = small.with_dtype(given.dtype)
    return hlo.convert(found, given), axes, given


def _rows(hlo: TargetHlo, axes: Sequence[int], given: ArrayType) -> tuple[int, int]:
    """How many rows of neighbours are combined, and of how many; of none, if they are not that."""
    shape, first = hlo.shape(given.shape), given.rank - len(axes)
    if tuple(sorted(axes)) != tuple(range(first, given.rank)):
        return 0, 0
    return prod(shape[:first]), prod(shape[first:])


def is_long(here: Context | TargetHlo, rows: int, count: int) -> bool:
    """Whether rows of so many neighbours are combined by slices, outside of loops."""
    return not here.nested and count >= LONG_ROW and rows * count >= MANY


def _is_exact(dtype: DType) -> bool:
    """Whether XLA is slow with neighbours of a dtype, and they have no NaN."""
    return dtype is BOOL or (dtype.is_integer and dtype.bits >= 32)


@dataclass(frozen=True)
class _Folds:
    """So many slices of rows combined at once, until few elements are left; `most` are in each."""

    hlo: TargetHlo
    operation: str
    neutral: object
    rows: int
    left: int
    slices: int
    most: int = 1 << 62

    def of(self, x: H, given: ArrayType, axes: int, count: int) -> tuple[H, Axes, ArrayType]:
        """The array with fewer elements along its last axes, the last axis, and its type."""
        kept = given.shape[: given.rank - axes]
        rows = () if self.rows == 1 else (self.rows,)
        x = self.hlo.reshape(x, given.with_shape((*rows, count)))
        inside = 1
        while (whole := self._next(count, inside)) > 1:
            x, count = self._fold(x, given, rows, count, whole)
            inside *= whole
        left = given.with_shape((*kept, count))
        return self.hlo.reshape(x, left), (len(kept),), left

    def _next(self, count: int, inside: int) -> int:
        """How many slices are combined next."""
        most = min(count // self.left, self.most // inside)
        return min(self.slices, 1 << max(most.bit_length() - 1, 0))

    def _fold(
        self, x: H, given: ArrayType, rows: tuple[int, ...], count: int, whole: int
    ) -> tuple[H, int]:
        """The slices of each row combined, and how many elements they have."""
        hlo, none = self.hlo, [0] * len(rows)
        width = -(-count // whole)
        starts = list(range(0, count, width))
        if self.operation in _IDEMPOTENT:
            starts[-1] = count - width  # some elements may be there once more
        parts: list[H] = [
            hlo.slice(x, (*none, start), (*rows, min(start + width, count))) for start in starts
        ]
        if missing := starts[-1] + width - count:
            fill = hlo.full(self.neutral, ArrayType(given.dtype))
            parts[-1] = hlo.pad(parts[-1], fill, (*none, 0), (*none, missing))
        while len(parts) > 1:  # two by two: it is more accurate, and they need not wait
            pairs = zip(parts[::2], parts[1::2], strict=False)
            odd = parts[-1:] if len(parts) % 2 else []
            parts = [*(hlo.binary(self.operation, a, b) for a, b in pairs), *odd]
        return parts[0], width
