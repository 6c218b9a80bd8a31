"""Arrays of bf16 as NumPy's, by DLPack, where NumPy itself reads none.

jaxlib does, but imports jax for it, if there is one: a second to load, and from then on jax's
operators on our own arrays.  So the tensor is read as it lies in memory, by the
layout that DLPack's specification (dlpack.h) fixes for good: the versions that differ in it are
exported under another name, and only to those who ask for them.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any

import ml_dtypes
import numpy as np

_CPU, _BFLOAT = 1, 4


class _Tensor(ctypes.Structure):
    """A DLTensor."""

    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class _Memory:
    """What NumPy takes an array from; it keeps the capsule, which keeps the memory."""

    def __init__(self, capsule: Any, interface: dict[str, Any]) -> None:
        self.capsule = capsule
        self.__array_interface__ = interface


_pointer: Any = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, (ctypes.py_object, c_char_p)


def view(capsule: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """A read-only NumPy array in the memory of bf16 numbers; a BufferError for all others."""
    try:
        tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    except ValueError as error:
        raise BufferError(str(error)) from None
    if (tensor.device_type, tensor.code, tensor.bits, tensor.lanes) != (_CPU, _BFLOAT, 16, 1):
        raise BufferError("no numbers of bf16 in the memory of this host")
    strides = tensor.strides
    shape = tuple(tensor.shape[: tensor.ndim])
    interface = {
        "version": 3,
        "typestr": "<V2",
        "shape": shape,
        "strides": tuple([2 * n for n in strides[: tensor.ndim]]) if strides else None,
        "data": ((tensor.data or 0) + tensor.byte_offset, True),
    }
    if 0 in shape:  # which need not lie anywhere
        return np.frombuffer(b"", ml_dtypes.bfloat16).reshape(shape)
    return np.asarray(_Memory(capsule, interface)).view(ml_dtypes.bfloat16)
