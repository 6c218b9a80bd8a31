"""Floating-point dtypes, their awkward values, and rounding to them from wider numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

NDArray: TypeAlias = np.ndarray[Any, Any]


def as_array(x: Any) -> NDArray:
    """An array, of whatever dtype."""
    found: NDArray = np.asarray(x)
    return found


@dataclass(frozen=True)
class Format:
    """A floating-point dtype, and the wider one in which its numbers are enclosed."""

    name: str
    dtype: np.dtype[Any]
    precision: int
    """The bits of a significand."""
    largest: float
    least: float
    """The smallest normal number."""
    smallest: float
    """The smallest subnormal one."""
    wide: np.dtype[Any]
    sums: str
    """The format in which sums and products of matrices are accumulated."""

    @property
    def unit(self) -> float:
        """Half the distance from 1 to the next number: the error of one rounding."""
        return 2.0**-self.precision

    def widened(self, x: Any) -> NDArray:
        """Numbers of this dtype as wider ones."""
        return as_array(x).astype(self.wide)

    def rounded(self, x: Any) -> NDArray:
        """Each wide number as the nearest one of this dtype, which a wide one holds."""
        return self.narrowed(x).astype(self.wide)

    def narrowed(self, x: Any) -> NDArray:
        """Each wide number as the nearest one of this dtype."""
        wide = as_array(x)
        if self.name in ("f32", "f64"):
            return wide.astype(self.dtype)
        return _odd(_odd(wide, np.float64), np.float32).astype(self.dtype)

    def flushed(self, low: NDArray, high: NDArray) -> tuple[NDArray, NDArray]:
        """Bounds of numbers of which those that are subnormal may have become zeros."""
        low = np.where((low > 0) & (low < self.least), 0.0, low)
        high = np.where((high < 0) & (high > -self.least), -0.0, high)
        return low, high

    def underflown(self, low: NDArray, high: NDArray) -> tuple[NDArray, NDArray]:
        """The same of rounded results: what is rounded up to the least number was below it."""
        low = np.where((low > 0) & (low <= self.least), 0.0, low)
        high = np.where((high < 0) & (high >= -self.least), -0.0, high)
        return low, high


def _odd(x: NDArray, dtype: Any) -> NDArray:
    """Rounded to odd, so that rounding again to a much narrower dtype is rounding once."""
    near = x.astype(dtype)
    if near.dtype == x.dtype:
        return near
    bits = np.uint32 if near.dtype.itemsize == 4 else np.uint64
    back = near.astype(x.dtype)
    inexact = (back != x) & np.isfinite(x)
    cut = np.where(
        inexact & (np.abs(back) > np.abs(x)), np.nextafter(near, near.dtype.type(0)), near
    )
    cut = cut.astype(dtype)
    return np.asarray((cut.view(bits) | inexact.astype(bits)).view(dtype))


def _format(name: str, dtype: Any, wide: Any, sums: str) -> Format:
    find: Any = ml_dtypes.finfo
    info: Any = find(dtype)
    return Format(
        name,
        np.dtype(dtype),
        int(info.nmant) + 1,
        float(info.max),
        float(info.smallest_normal),
        float(info.smallest_subnormal),
        np.dtype(wide),
        sums,
    )


FORMATS: Final = {
    each.name: each
    for each in (
        _format("f16", np.float16, np.float64, "f32"),
        _format("bf16", ml_dtypes.bfloat16, np.float64, "f32"),
        _format("f32", np.float32, np.float64, "f32"),
        _format("f64", np.float64, np.longdouble, "f64"),
    )
}
FLOATS: Final = tuple(FORMATS)
INTEGERS: Final = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
DTYPES: Final[dict[str, np.dtype[Any]]] = {
    **{name: each.dtype for name, each in FORMATS.items()},
    **{name: np.dtype(("u" if name[0] == "u" else "") + "int" + name[1:]) for name in INTEGERS},
    "bool_": np.dtype(np.bool_),
}
NAMES: Final[dict[np.dtype[Any], str]] = {dtype: name for name, dtype in DTYPES.items()}


def integers(name: str) -> np.iinfo[Any]:
    """The range of an integer dtype."""
    dtype: Any = DTYPES[name]
    return np.iinfo(dtype)
