"""Arrays as HTML: shape, dtype, a picture of the numbers, and the values."""

from __future__ import annotations

from typing import Any

import numpy as np

from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.notebook import markup, pictures
from pscdsl._src.xla.runtime.devices import to_numpy

_FEW = 64
"""The most elements whose values are not folded."""
_LARGE = 1000
"""The least number of elements of which NumPy prints some."""


def html(array: Any) -> str:
    """Return a result of a kernel."""
    if array.is_deleted():
        return markup.box(markup.code(repr(array)))
    known = to_numpy(array)
    return markup.box(markup.code(f"pscdsl.Array {kind(known)}"), content(known))


def kind(array: NDArray) -> str:
    """Return the dtype and the shape of an array."""
    return f"{array.dtype} {array.shape}"


def is_numeric(array: NDArray) -> bool:
    """Return whether the elements are numbers or truth values."""
    return array.dtype.kind in "biufc" or array.dtype.name == "bfloat16"


def content(array: NDArray) -> str:
    """Return the statistics, the picture and the values of an array."""
    if not array.size:
        return f"<div>{markup.muted('no elements')}</div>"
    if not array.ndim or not is_numeric(array):
        return markup.pre(array)
    found = _grid(array)
    about = [markup.muted(_range(array, found)), pictures.legend(found)]
    shown = [f"<div>{' '.join(filter(None, about))}</div>", _picture(array, found)]
    text = np.array2string(array, separator=", ", threshold=_LARGE)
    values = markup.details(markup.muted("values"), markup.pre(text), opened=array.size <= _FEW)
    return "".join((*shown, values))


def _grid(array: NDArray) -> pictures.Grid:
    if array.ndim == 2:
        return pictures.grid(array, (pictures.SIDE, pictures.SIDE))
    return pictures.grid(array.reshape(-1, 1), (pictures.BINS, 1))


def _picture(array: NDArray, found: pictures.Grid) -> str:
    if array.ndim == 1:
        return pictures.line(found)
    return pictures.heat_map(found) if array.ndim == 2 else ""


def _range(array: NDArray, found: pictures.Grid) -> str:
    """Return the least and the greatest element in words."""
    if array.dtype.kind == "b":
        return f"{int(array.sum()):,} of {array.size:,} true"
    if array.dtype.kind in "iu":  # exact beyond 2**53
        return f"{array.min()} to {array.max()}"
    if found.range is None:
        return "no finite elements"
    low, high = (f"{value:.6g}" for value in found.range)
    return f"|z|: {low} to {high}" if array.dtype.kind == "c" else f"{low} to {high}"
