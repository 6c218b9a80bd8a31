"""Our dtypes and NumPy's, both ways."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import ml_dtypes
import numpy as np

from pscdsl.typing import dtypes
from pscdsl.typing.dtypes import DType

_PAIRS: tuple[tuple[DType, Any], ...] = (
    (dtypes.BOOL, np.bool_),
    (dtypes.I8, np.int8),
    (dtypes.I16, np.int16),
    (dtypes.I32, np.int32),
    (dtypes.I64, np.int64),
    (dtypes.U8, np.uint8),
    (dtypes.U16, np.uint16),
    (dtypes.U32, np.uint32),
    (dtypes.U64, np.uint64),
    (dtypes.BF16, ml_dtypes.bfloat16),
    (dtypes.F16, np.float16),
    (dtypes.F32, np.float32),
    (dtypes.F64, np.float64),
    (dtypes.C64, np.complex64),
    (dtypes.C128, np.complex128),
)
_TO_NUMPY: dict[DType, np.dtype[Any]] = {ours: np.dtype(theirs) for ours, theirs in _PAIRS}
_TO_NUMPY[dtypes.KEY] = np.dtype(np.uint32)  # with a trailing axis of 2
_FROM_NUMPY: dict[np.dtype[Any], DType] = {np.dtype(theirs): ours for ours, theirs in _PAIRS}

NUMPY = frozenset(_FROM_NUMPY)
"""The NumPy dtypes that have a counterpart, in the machine's byte order."""


def to_numpy(dtype: DType) -> np.dtype[Any]:
    """Return the NumPy dtype that stores this one."""
    return _TO_NUMPY[dtype]


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """Return our dtype for NumPy's; raise TypeError if there is none (objects, strings, dates)."""
    found = _FROM_NUMPY.get(dtype)
    if found is None:
        found = _FROM_NUMPY.get(dtype.newbyteorder("="))
        if found is None:
            raise TypeError(f"NumPy dtype {dtype} has no counterpart")
    return found


def meant_by(given: object) -> DType | None:
    """Return our dtype for an object that NumPy accepts as one; None if there is none.

    It is also None for the other byte order, whose arrays kernels do not have.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old names for dtypes
        try:
            return _FROM_NUMPY.get(np.dtype(given))  # type: ignore[call-overload]
        except (TypeError, ValueError, SyntaxError):
            return None


def is_masked(value: object) -> bool:
    """Return whether a value is a masked array of NumPy, without loading that module."""
    module: Any = sys.modules.get("numpy.ma")
    return module is not None and isinstance(value, module.MaskedArray)


def finfo(dtype: DType) -> Any:
    """Return the limits of a floating-point dtype, or of the parts of a complex one."""
    find: Any = ml_dtypes.finfo
    return find(to_numpy(dtype.real))
