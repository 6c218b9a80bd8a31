"""Live devices: the client of each platform, made when first needed, and how arrays get there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.support.processes import once_a_client, require
from pscdsl._src.xla.device import CPU, Device, UnsupportedDeviceError
from pscdsl._src.xla.interrupts import watch
from pscdsl._src.xla.runtime import boot, device_arrays, plugins
from pscdsl._src.xla.runtime.device_arrays import prepare
from pscdsl._src.xla.runtime.memory import keep_freed_memory
from pscdsl._src.xla.runtime.settings import calls_wait

COPYING: Final = (True, False, boot.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL)
"""The contents are copied before the call returns: nobody's memory is ever shared."""
SHARING: Final = (True, False, boot.HostBufferSemantics.ZERO_COPY)
ALIGNMENT: Final = 64
"""At which addresses, in bytes, XLA wants arrays to begin."""


def _prepare() -> None:
    """What a client needs, of any platform."""
    require()
    boot.boot()
    prepare()
    watch()


@once_a_client
def _cpu_client() -> Any:
    _prepare()
    keep_freed_memory()
    return boot.xla.make_cpu_client(asynchronous=not calls_wait())


@once_a_client
def _cuda_client() -> Any:
    _prepare()
    plugins.load("cuda")
    return plugins.client("cuda", boot.xla.generate_pjrt_gpu_plugin_options())


@once_a_client
def _tpu_client() -> Any:
    _prepare()
    plugins.load("tpu")
    return plugins.client("tpu", {})


_CLIENTS: Final[Mapping[str, Callable[[], Any]]] = {
    "cpu": _cpu_client,
    "cuda": _cuda_client,
    "tpu": _tpu_client,
}
"""What makes the client of each platform, once in a process."""


class Placement(NamedTuple):
    """A device as jaxlib takes it: what compiles for it, and what places arrays on it."""

    client: Any
    devices: Any
    """The device alone, as compilation wants it."""
    sharding: Any
    """Where an array lies that is whole on the device."""
    batched_put: Any
    device_list: list[Any]

    def put(self, value: Any, aval: boot.Aval | None = None) -> Any:
        """A device array with the contents of a NumPy array or scalar, always a copy.

        With an `aval`, the value is brought to that dtype, and must have that shape.
        A TypeError if its dtype has no counterpart.
        """
        if aval is None:
            array = np.asarray(value)
            array = array.astype(to_numpy(from_numpy(array.dtype)), copy=False)  # our byte order
            aval = boot.Aval(array.shape, array.dtype)
        else:
            array = np.asarray(value, aval.dtype)
            if array.shape != aval.shape:
                raise ValueError(f"shape is {array.shape}, expected {aval.shape}")
        return self.copied(array, aval)

    def copied(self, array: Any, aval: boot.Aval) -> Any:
        """`put` for an array that is known to have the wanted dtype and shape."""
        return self.batched_put(
            aval, self.sharding, [array], self.device_list, *COPYING, enable_x64=True
        )

    def shared(self, array: Any, aval: boot.Aval) -> Any:
        """A device array in the memory of a NumPy array, which is aligned and contiguous."""
        return self.batched_put(
            aval, self.sharding, [array], self.device_list, *SHARING, enable_x64=True
        )

    def holds(self, array: Any) -> bool:
        """Whether a device array lies here, and not on another device or with another client."""
        sharding = array._sharding
        return sharding is self.sharding or bool(sharding == self.sharding)


@once_a_client
def _placements() -> dict[Device, Placement]:
    """The devices that were used, as jaxlib takes them."""
    return {}


def placement(device: Device) -> Placement:
    """A device as jaxlib takes it; the client of its platform is made if there is none."""
    device.require_supported()
    client = _CLIENTS[device.platform]()
    known = _placements().get(device)
    if known is None:
        there = client.devices()
        if not 0 <= device.number < len(there):
            raise UnsupportedDeviceError(
                f"there is no device {device}: this process has {len(there)} of that platform"
            )
        handle = there[device.number]
        made = Placement(
            client,
            boot.jax.DeviceList((handle,)),
            boot.jax.SingleDeviceSharding(handle),
            boot.jax.batched_device_put,
            [handle],
        )
        known = _placements().setdefault(device, made)  # the one of the thread that was first
    return known


def put(value: Any, aval: boot.Aval | None = None, device: Device = CPU) -> Any:
    """A copy of a NumPy array or scalar on a device; see `Placement.put`."""
    return placement(device).put(value, aval)


def from_dlpack(exporter: Any, *, copy: bool | None = None) -> Any:
    """Return an `Array` with the contents of another library's array: NumPy's, PyTorch's or jax's.

    The memory is shared if it is contiguous in C order and aligned to 64 bytes; its owner must not
    write to it afterwards. In the other direction, `np.from_dlpack`, `torch.from_dlpack` and
    `jax.numpy.from_dlpack` accept an `Array` and never copy.

    Args:
        exporter: An array with DLPack.
        copy: True always copies; False never does; None copies if the memory cannot be shared.

    Raises:
        BufferError: The memory cannot be shared and `copy` is False, or it is not host memory.
    """
    if type(exporter) is boot.ArrayImpl and not copy:
        return exporter
    array = host_view(exporter)
    if copy:
        return put(array)
    aval = boot.Aval(array.shape, to_numpy(from_numpy(array.dtype)))
    shares = array.flags.c_contiguous and not array.ctypes.data % ALIGNMENT
    if not shares and copy is False:
        how = "aligned to 64 bytes" if array.flags.c_contiguous else "contiguous in C order"
        raise BufferError(f"the memory cannot be shared: it is not {how}; copy=None copies it")
    here = placement(CPU)
    return here.shared(array, aval) if shares else here.copied(array, aval)


def host_view(exporter: Any) -> Any:
    """A NumPy array that shares another library's memory; a BufferError if none can."""
    try:
        return np.from_dlpack(exporter)
    except (BufferError, RuntimeError) as error:
        try:  # NumPy cannot read bf16
            return device_arrays.bfloats_view(exporter.__dlpack__())
        except (BufferError, RuntimeError):
            raise BufferError(str(error)) from None
