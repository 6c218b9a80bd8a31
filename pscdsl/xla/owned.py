"""Copies of NumPy arrays for one call: C++ may take their memory, since nobody else holds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from pscdsl.numpy_dtypes import NUMPY
from pscdsl.xla import boot
from pscdsl.xla.arrays import to_numpy
from pscdsl.xla.boot import ArrayImpl, Aval
from pscdsl.xla.client import copied, put

LARGE: Final = 1 << 18
"""Bytes from which an array is copied to the device at once: C++ may copy it once more."""


def owned(value: Any) -> Any:
    """An argument, with copies of the NumPy arrays in it, and in tuples within tuples.

    Arrays elsewhere in it stay as they are: C++ asks for their transfer.
    """
    kind: type[Any] = value.__class__
    if kind is np.ndarray:
        dtype = value.dtype
        if dtype not in NUMPY:
            return value if dtype.isnative else owned(value.astype(dtype.newbyteorder("=")))
        return value.copy() if value.nbytes < LARGE else copied(value, Aval(value.shape, dtype))
    if kind is tuple:
        return tuple([x if type(x) is ArrayImpl and x._committed else owned(x) for x in value])
    if kind is ArrayImpl and not value._committed and not value.is_deleted():
        return put(to_numpy(value))  # C++ would take it for a NumPy array
    return value


def is_placed(value: Any) -> bool:
    """Whether a value is an array committed to a device."""
    return type(value) is ArrayImpl and bool(value._committed)


def copies_in(args: tuple[Any, ...]) -> frozenset[int]:
    """The ids of the arrays that `owned` made, of which C++ may take those that it reads rightly.

    A jax that keeps 64-bit types off has C++ read their arrays as narrower ones.
    """
    widest = 4 if boot.jax_is_loaded() else 16
    return frozenset(id(x) for x in _arrays(args) if x.dtype.itemsize <= widest)


def _arrays(value: Any) -> Iterator[Any]:
    kind: type[Any] = value.__class__
    if kind is np.ndarray:
        yield value
    elif kind is tuple:
        for each in value:
            yield from _arrays(each)
