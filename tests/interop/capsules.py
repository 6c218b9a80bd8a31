"""What a DLPack capsule says, changed: kernels of a module that imports ctypes read nothing."""

from __future__ import annotations

import ctypes
from typing import Any


def on_a_gpu(capsule: Any) -> Any:
    """The capsule of a tensor in CPU memory, which says that it is on a GPU."""
    find: Any = ctypes.pythonapi.PyCapsule_GetPointer
    find.restype, find.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    device = ctypes.c_int32.from_address(find(capsule, b"dltensor") + 8)
    assert device.value == 1
    device.value = 2
    return capsule
