"""What a value may be: bounds of real numbers, whether they may be NaN, and exact other values.

Every number that an execution may compute, with each operation as written and rounded as IEEE 754
says, lies within the bounds.  Where operands are known exactly and an operation is rounded
correctly, the bounds are one number.  What is left open:

* the order in which sums, and products of many numbers, are made;
* whether a product is rounded before it is added (a fused multiply-add rounds once);
* whether subnormal numbers are zeros;
* some units in the last place of functions like `exp`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from tests.differential.formats import Format, NDArray, as_array

NEVER: Final = 0
MAYBE: Final = 1
SURELY: Final = 2


@dataclass(frozen=True)
class Real:
    """Floating-point numbers: each lies between `low` and `high` unless it is NaN.

    A zero whose sign is known has it in both bounds.
    """

    format: Format
    low: NDArray
    high: NDArray
    nan: NDArray
    """NEVER, MAYBE or SURELY; where it is SURELY, the bounds say nothing."""
    fused: tuple[NDArray, NDArray] | None = None
    """The bounds of a product before it is rounded, wider than this; only a sum may take it so."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        shape: tuple[int, ...] = self.low.shape
        return shape

    @property
    def exact(self) -> NDArray:
        """Where the value is known exactly: one number, with its sign, or NaN."""
        same = (self.low == self.high) & (np.signbit(self.low) == np.signbit(self.high))
        return np.asarray((same & (self.nan == NEVER)) | (self.nan == SURELY))

    @property
    def numbers(self) -> NDArray:
        """The values in their own dtype, which hold where they are exact."""
        found = np.where(self.nan == SURELY, np.nan, self.low)
        return np.asarray(found.astype(self.format.dtype))

    def moved(self, move: Callable[[NDArray], Any]) -> Real:
        """The same function of places, as a reshape, of all parts."""
        low, high, nan = (np.array(move(each)) for each in (self.low, self.high, self.nan))
        fused = None
        if self.fused is not None:
            fused = (np.array(move(self.fused[0])), np.array(move(self.fused[1])))
        return Real(self.format, low, high, nan, fused)


@dataclass(frozen=True)
class Exact:
    """Integers and truth values, and where they are not known."""

    array: NDArray
    unknown: NDArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        shape: tuple[int, ...] = self.array.shape
        return shape

    def moved(self, move: Callable[[NDArray], Any]) -> Exact:
        """The same function of places of all parts."""
        return Exact(np.array(move(self.array)), np.array(move(self.unknown)))


Value: TypeAlias = Real | Exact


def known(array: Any) -> Exact:
    """Integers or truth values that are known."""
    array = np.asarray(array)
    return Exact(array, np.zeros(array.shape, bool))


def real(format: Format, array: Any) -> Real:
    """Floating-point numbers that are known."""
    wide = format.widened(array)
    nan = np.isnan(wide)
    wide = np.where(nan, wide.dtype.type(0), wide)
    return Real(format, wide, wide, np.where(nan, SURELY, NEVER).astype(np.int8))


def unknown(like: Real, where: NDArray) -> Real:
    """The same, with nothing known at some places."""
    return Real(
        like.format,
        np.where(where, -np.inf, like.low),
        np.where(where, np.inf, like.high),
        np.where(where, MAYBE, like.nan).astype(np.int8),
    )


def read(x: Real) -> Real:
    """What arithmetic may see of a value: zeros for subnormal numbers."""
    low, high = x.format.flushed(x.low, x.high)
    return Real(x.format, low, high, x.nan, x.fused)


def down(x: NDArray) -> NDArray:
    """The next lower wide number."""
    return np.asarray(np.nextafter(x, x.dtype.type(-np.inf)))


def up(x: NDArray) -> NDArray:
    """The next higher wide number."""
    return np.asarray(np.nextafter(x, x.dtype.type(np.inf)))


def joined(*values: Real) -> Real:
    """What is one of several values."""
    first, *others = values
    for each in others:
        first = _joined(first, each)
    return first


def _joined(a: Real, b: Real) -> Real:
    low = np.where(a.nan == SURELY, b.low, np.where(b.nan == SURELY, a.low, _least(a.low, b.low)))
    high = np.where(
        a.nan == SURELY, b.high, np.where(b.nan == SURELY, a.high, _most(a.high, b.high))
    )
    both = (a.nan == SURELY) & (b.nan == SURELY)
    nan = np.where(both, SURELY, np.where((a.nan > 0) | (b.nan > 0), MAYBE, NEVER))
    return Real(a.format, low, high, nan.astype(np.int8))


def _least(a: NDArray, b: NDArray) -> NDArray:
    """The minimum, with -0 below 0."""
    return np.where((a < b) | ((a == b) & np.signbit(a)), a, b)


def _most(a: NDArray, b: NDArray) -> NDArray:
    """The maximum, with -0 below 0."""
    return np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)


def finished(format: Format, low: Any, high: Any, nan: Any) -> Real:
    """A result of arithmetic whose bounds are wide numbers: rounded, and flushed if subnormal.

    The sign of a zero is not known.
    """
    low, high, nan = np.broadcast_arrays(as_array(low), as_array(high), as_array(nan))
    bounds = [format.rounded(np.where(nan == SURELY, 0, each)) for each in (low, high)]
    low, high = format.underflown(*bounds)
    low, high = with_any_sign(as_array(low), as_array(high))
    return Real(format, low, high, as_array(nan).astype(np.int8))


def with_any_sign(low: NDArray, high: NDArray) -> tuple[NDArray, NDArray]:
    """Bounds whose zeros may have either sign."""
    minus, plus = low.dtype.type(-0.0), high.dtype.type(0.0)
    return np.where(low == 0, minus, low), np.where(high == 0, plus, high)


def where_exact(exact: NDArray, format: Format, numbers: Any, otherwise: Real) -> Real:
    """Numbers of the dtype where they are exact, flushed if subnormal; bounds elsewhere."""
    point = real(format, numbers)
    low, high = format.underflown(point.low, point.high)
    return Real(
        format,
        np.where(exact, low, otherwise.low),
        np.where(exact, high, otherwise.high),
        np.where(exact, point.nan, otherwise.nan).astype(np.int8),
    )


def worst(*marks: Any) -> NDArray:
    """Whether a result is NaN, of operands with these marks."""
    found: Any = marks[0]
    for each in marks[1:]:
        found = np.maximum(found, each)
    return np.asarray(found)
