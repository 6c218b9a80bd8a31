"""Copies of NumPy arrays for one call: C++ may take their memory, since nobody else holds it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from pscdsl.numpy_dtypes import NUMPY
from pscdsl.xla import boot
from pscdsl.xla.arrays import to_numpy
from pscdsl.xla.boot import ArrayImpl, Aval
from pscdsl.xla.client import copied, put

LARGE: Final = 1 << 18
"""Bytes from which an array is copied to the device at once: C++ may copy it once more."""
NARROW: Final = NUMPY - {np.dtype(wide) for wide in ("f8", "i8", "u8", "c16")}
"""Dtypes that C++ reads rightly also where a jax in the process keeps 64-bit types off."""


def owned(values: Sequence[Any]) -> list[Any]:
    """Arguments, with copies of the NumPy arrays among them, and in tuples within tuples.

    Arrays elsewhere in them stay as they are: C++ asks for their transfer.
    """
    dtypes = NARROW if boot.JAX in sys.modules else NUMPY
    own: list[Any] = []
    for x in values:
        kind = x.__class__
        if kind is np.ndarray and x.dtype in dtypes and x.nbytes < LARGE:
            own.append(x.copy())
        else:
            own.append(x if kind is ArrayImpl and x._committed else _owned(x, dtypes))
    return own


def _owned(value: Any, dtypes: frozenset[np.dtype[Any]]) -> Any:
    kind: type[Any] = value.__class__
    if kind is tuple:
        return tuple(owned(value))
    if kind is np.ndarray:
        dtype = value.dtype
        if dtype not in NUMPY:
            if dtype.isnative:
                return value  # it is for others to say what is wrong
            return owned([value.astype(dtype.newbyteorder("="))])[0]
        return copied(value, Aval(value.shape, dtype))
    if kind is ArrayImpl and not value._committed and not value.is_deleted():
        return put(to_numpy(value))  # C++ would take it for a NumPy array
    if issubclass(kind, np.generic) and value.dtype in NUMPY and value.dtype not in dtypes:
        return put(value)
    return value


def is_placed(value: Any) -> bool:
    """Whether a value is an array committed to a device."""
    return type(value) is ArrayImpl and bool(value._committed)


def arrays_in(values: Sequence[Any]) -> frozenset[int]:
    """The ids of the NumPy arrays among these, and in tuples within tuples."""
    return frozenset(map(id, _arrays(tuple(values))))


def _arrays(value: Any) -> Iterator[Any]:
    kind: type[Any] = value.__class__
    if kind is np.ndarray:
        yield value
    elif kind is tuple:
        for each in value:
            yield from _arrays(each)
