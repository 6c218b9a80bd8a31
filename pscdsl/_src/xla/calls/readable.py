"""Which NumPy arrays C++ reads rightly, and what stands in for the others."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from operator import is_
from typing import Any, Final

import numpy as np

from pscdsl._src.ir.numpy_dtypes import NUMPY, is_masked
from pscdsl._src.xla.calls import trees
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.arrays import to_numpy
from pscdsl._src.xla.runtime.boot import ArrayImpl, Aval, is_committed
from pscdsl._src.xla.runtime.devices import Placement

NARROW: Final = NUMPY - {np.dtype(wide) for wide in ("f8", "i8", "u8", "c16")}
"""Dtypes that C++ reads rightly also where a jax in the process keeps 64-bit types off."""


def is_native(value: Any) -> bool:
    """Whether a value is NumPy's, an array of its own class or a scalar, in our byte order."""
    kind: type[Any] = value.__class__
    return (kind is np.ndarray or issubclass(kind, np.generic)) and value.dtype in NUMPY


def dtypes() -> frozenset[np.dtype[Any]]:
    """The dtypes, as NumPy has them, that C++ reads rightly just now."""
    config = sys.modules.get(boot.JAX)
    wide = config is None or getattr(getattr(config, "enable_x64", None), "value", False)
    return NUMPY if wide else NARROW


def is_placed(value: Any) -> bool:
    """Whether a value is an array committed to a device."""
    return type(value) is ArrayImpl and bool(is_committed(value))


def readable(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], here: Placement
) -> tuple[tuple[Any, ...], Mapping[str, Any]] | None:
    """Arguments with others in the places of arrays that C++ takes for something else.

    It knows NumPy's arrays by their class, or a subclass of it, and the size and kind of their
    dtype: it would read numbers in another byte order wrongly, and what a mask hides.  None if it
    must not be asked.
    """
    leaves, structure = trees.flatten((args, kwargs))
    known = dtypes()
    others: list[Any] = []
    for leaf in leaves:
        kind = leaf.__class__
        if (kind is np.ndarray and leaf.dtype in known) or (
            kind is ArrayImpl and is_committed(leaf)
        ):
            others.append(leaf)
        elif is_masked(leaf):
            return None
        else:
            others.append(_brought(leaf, known, here))
    if all(map(is_, leaves, others)):
        return args, kwargs
    args, kwargs = structure.unflatten(others)
    return tuple(args), kwargs


def _brought(value: Any, known: frozenset[np.dtype[Any]], here: Placement) -> Any:
    kind: type[Any] = value.__class__
    if kind is ArrayImpl:  # not committed to a device: C++ would take it for a NumPy array
        return value if value.is_deleted() else here.put(to_numpy(value))
    if not issubclass(kind, np.ndarray | np.generic):
        return value
    dtype = value.dtype.newbyteorder("=")
    if dtype not in NUMPY:
        return value  # it is for others to say what is wrong
    if issubclass(kind, np.ndarray):
        value = np.asarray(value, dtype)
    return value if dtype in known else here.copied(np.asarray(value), Aval(value.shape, dtype))
