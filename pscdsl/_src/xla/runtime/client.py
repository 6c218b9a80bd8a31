"""The device of this process, and how NumPy arrays get there."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.support.processes import once_a_client, require
from pscdsl._src.xla.interrupts import watch
from pscdsl._src.xla.runtime import bfloats, boot
from pscdsl._src.xla.runtime.arrays import prepare
from pscdsl._src.xla.runtime.memory import keep_freed_memory
from pscdsl._src.xla.runtime.waiting import calls_wait


@once_a_client
def client() -> Any:
    """The CPU client, made when first needed."""
    require()
    boot.boot()
    prepare()
    keep_freed_memory()
    watch()
    return boot.xla.make_cpu_client(asynchronous=not calls_wait())


@once_a_client
def device() -> Any:
    """The device on which everything runs."""
    return client().devices()[0]


@once_a_client
def devices() -> Any:
    """The same, as compilation wants it."""
    return boot.jax.DeviceList((device(),))


@once_a_client
def sharding() -> Any:
    """The placement of every array: whole, on the device."""
    return boot.jax.SingleDeviceSharding(device())


def put(value: Any, aval: boot.Aval | None = None) -> Any:
    """A device array with the contents of a NumPy array or scalar, always a copy.

    With an `aval`, the value is brought to that dtype, and must have that shape.
    A TypeError if its dtype has no counterpart.
    """
    if aval is None:
        array = np.asarray(value)
        array = array.astype(to_numpy(from_numpy(array.dtype)), copy=False)  # native byte order
        aval = boot.Aval(array.shape, array.dtype)
    else:
        array = np.asarray(value, aval.dtype)
        if array.shape != aval.shape:
            raise ValueError(f"shape is {array.shape}, expected {aval.shape}")
    return copied(array, aval)


class Placing(NamedTuple):
    """What places an array on the device, and where that is."""

    put: Any
    here: Any
    devices: list[Any]


@once_a_client
def placing() -> Placing:
    """How arrays are placed in this process."""
    return Placing(boot.jax.batched_device_put, sharding(), [device()])


COPYING: Final = (True, False, boot.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL)
"""The contents are copied before the call returns: nobody's memory is ever shared."""
SHARING: Final = (True, False, boot.HostBufferSemantics.ZERO_COPY)


def copied(array: Any, aval: boot.Aval) -> Any:
    """`put` for an array that is known to have the wanted dtype and shape."""
    return _placed(array, aval, COPYING)


def _placed(array: Any, aval: boot.Aval, how: tuple[Any, ...]) -> Any:
    at = placing()
    return at.put(aval, at.here, [array], at.devices, *how, enable_x64=True)


def from_dlpack(exporter: Any, *, copy: bool | None = None) -> Any:
    """A device array with the contents of another library's array, by DLPack; see `interchange`."""
    if type(exporter) is boot.ArrayImpl and not copy:
        return exporter
    array = view(exporter)
    if copy:
        return put(array)
    aval = boot.Aval(array.shape, to_numpy(from_numpy(array.dtype)))
    shares = array.flags.c_contiguous and not array.ctypes.data % ALIGNMENT
    if not shares and copy is False:
        how = "aligned to 64 bytes" if array.flags.c_contiguous else "contiguous in C order"
        raise BufferError(f"the memory cannot be shared: it is not {how}; copy=None copies it")
    return _placed(array, aval, SHARING if shares else COPYING)


ALIGNMENT = 64
"""At which addresses, in bytes, XLA wants arrays to begin."""


def view(exporter: Any) -> Any:
    """A NumPy array that shares another library's memory; a BufferError if none can."""
    try:
        return np.from_dlpack(exporter)
    except (BufferError, RuntimeError) as error:
        try:  # NumPy cannot read bf16
            return bfloats.view(exporter.__dlpack__())
        except (BufferError, RuntimeError):
            raise BufferError(str(error)) from None
