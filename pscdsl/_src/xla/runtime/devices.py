# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false
"""Live devices, and the arrays on them: made when needed, immutable, read through NumPy."""

from __future__ import annotations

import ctypes
import operator
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any, Final, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.ir.numpy_dtypes import to_numpy as numpy_dtype
from pscdsl._src.language.elements import Array
from pscdsl._src.support.notebooks import html_method
from pscdsl._src.support.processes import once, once_a_client, require
from pscdsl._src.xla import beside_jax
from pscdsl._src.xla.device import CPU, DEVICES_VARIABLE, JOB, Device, UnsupportedDeviceError
from pscdsl._src.xla.interrupts import watch
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.memory import keep_freed_memory
from pscdsl._src.xla.runtime.settings import PROCESSORS_VARIABLE, calls_wait, processors
from pscdsl.typing.placements import Placement

# Results are jaxlib's arrays: immutable, maybe still being computed, read through NumPy.
#
# jaxlib's class has next to no Python surface; `prepare` attaches one. NumPy computes everything
# outside of a kernel (`a + 1`, `a[0]`) and returns NumPy arrays, even if jax is loaded, which
# attaches its own surface (`beside_jax`).


# Arrays of bf16 as NumPy's, by DLPack, where NumPy itself reads none.
#
# jaxlib reads them, but imports jax for that, if it is installed: a second to load, and from then
# on our arrays have jax's operators. So the tensor is read directly, by the layout that DLPack's
# specification (dlpack.h) fixes permanently: versions with another layout are exported under
# another name, and only on request.


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
    """An object that NumPy takes an array from; it keeps the capsule, which keeps the memory."""

    def __init__(self, capsule: Any, interface: dict[str, Any]) -> None:
        self.capsule = capsule
        self.__array_interface__ = interface


_pointer: Any = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, (ctypes.py_object, c_char_p)


def bfloats_view(capsule: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Return a read-only NumPy array in the memory of bf16 numbers, or raise BufferError."""
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
    if 0 in shape:  # which needs no memory
        return np.frombuffer(b"", ml_dtypes.bfloat16).reshape(shape)
    return np.asarray(_Memory(capsule, interface)).view(ml_dtypes.bfloat16)


NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def to_numpy(array: Any) -> NDArray:
    """Return the contents, once computed, as a read-only NumPy array that shares their memory."""
    try:
        return np.asarray(memoryview(array))
    except BufferError:  # bf16, devices other than the CPU, and arrays in pieces
        pass
    if is_in_pieces(array):
        from pscdsl._src.xla.runtime.pieces import whole  # programs on one device start without it

        return whole(array)
    array.block_until_ready()
    try:
        return bfloats_view(boot.jax.buffer_to_dlpack_managed_tensor(array))
    except (BufferError, RuntimeError):
        value: NDArray = array._single_device_array_to_np_array_did_copy()[0]
        return value


def is_in_pieces(array: Any) -> bool:
    """Return whether an array lies on other than one device."""
    return type(array._sharding) is not boot.jax.SingleDeviceSharding and (
        len(array._sharding._device_assignment) != 1
    )


def _require_one_device(array: Any) -> None:
    """Raise a BufferError if an array has no memory of its own in one place."""
    if is_in_pieces(array):
        raise BufferError(
            f"the array lies in pieces on {len(array._sharding._device_assignment)} devices: "
            "`np.asarray(x)` puts them together, and `x.shards` has each"
        )


def _to_array(self: Any, dtype: Any = None, copy: bool | None = None) -> NDArray:
    value = to_numpy(self)
    if dtype is not None and np.dtype(dtype) != value.dtype:
        if copy is False:
            raise ValueError(f"a copy is needed to convert {value.dtype} to {np.dtype(dtype)}")
        return value.astype(dtype)
    return value.copy() if copy else value


def _dlpack(
    self: Any,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: Any = None,
) -> Any:

    _require_one_device(self)
    if dl_device is not None and tuple(dl_device) != _dlpack_device(self):
        raise BufferError("an array can only be exported on its own device")
    self.block_until_ready()
    return boot.jax.buffer_to_dlpack_managed_tensor(put(to_numpy(self)) if copy else self)


def _dlpack_device(self: Any) -> tuple[int, int]:
    _require_one_device(self)
    (device,) = self._sharding._device_assignment
    if device.platform == "cpu":
        return (1, 0)  # kDLCPU
    return (2, device.local_hardware_id)  # kDLCUDA


def _length(self: Any) -> int:
    if not self.aval.shape:
        raise TypeError("len() of an array without axes")
    return int(self.aval.shape[0])


def _iterate(self: Any) -> Iterator[Any]:
    if not self.aval.shape:
        raise TypeError("iteration over an array without axes")
    return iter(to_numpy(self))


def _is_here(array: Any) -> bool:
    """Return whether all of an array is in this process."""
    return bool(array._sharding.is_fully_addressable)


def _repr(self: Any) -> str:
    if self.is_deleted() or (is_in_pieces(self) and any(x.is_deleted() for x in self._arrays)):
        return f"pscdsl.Array(<donated>, shape={self.aval.shape}, dtype={self.aval.dtype})"
    if not _is_here(self):
        where = f"<in pieces of several processes: {self.placement}>"
        return f"pscdsl.Array({where}, shape={self.aval.shape}, dtype={self.aval.dtype})"
    text = np.array2string(to_numpy(self), separator=", ", prefix="pscdsl.Array(")
    shape = f", shape={self.aval.shape}" if 0 in self.aval.shape else ""
    return f"pscdsl.Array({text}{shape}, dtype={self.aval.dtype})"


def _format(self: Any, spec: str) -> str:
    return format(to_numpy(self)[()], spec) if not self.aval.shape else format(str(self), spec)


def _set_item(self: Any, index: Any, value: Any) -> None:
    raise TypeError(
        "an array that a kernel returned cannot be written: `psc.update(x, index, value)` is a "
        "changed copy, and `np.array(x)` one that can be written"
    )


def _sort(self: Any, *args: Any, **options: Any) -> None:
    raise TypeError(
        "an array that a kernel returned cannot be sorted in place: `np.sort(x)` is a sorted copy"
    )


def _number(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda self: convert(to_numpy(self))


def _index(self: Any) -> int:
    return operator.index(to_numpy(self)[()])


def _binary(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)
    return lambda self, other: function(to_numpy(self), _plain(other))


def _reflect(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)
    return lambda self, other: function(_plain(other), to_numpy(self))


def _plain(operand: Any) -> Any:
    return to_numpy(operand) if type(operand) is boot.ArrayImpl else operand


def _property(name: str) -> property:
    return property(lambda self: getattr(to_numpy(self), name))


def _method(name: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(to_numpy(self), name)(*args, **options)

    return call


def _rebuild(value: NDArray) -> Any:

    return put(value)


def _copy(self: Any, memo: Any = None) -> Any:
    """Return a copy in the same place."""
    if is_in_pieces(self):
        from pscdsl._src.xla.runtime.pieces import copied

        return copied(self)
    return _rebuild(to_numpy(self))


def _placement(self: Any) -> Placement:
    """Return how the array lies on the devices of its mesh; whole, if it is on one device."""
    known: Placement | None = getattr(self._sharding, "placement", None)
    return Placement.whole(len(self.aval.shape)) if known is None else known


def _shards(self: Any) -> tuple[Any, ...]:
    """Return the pieces on the devices of this process."""
    from pscdsl._src.xla.runtime.pieces import shards

    return shards(self)


ARITHMETIC = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
UNARY = ("neg", "pos", "abs", "invert")
_METHODS = (
    *("item", "tolist", "astype", "tobytes", "sum", "mean", "min", "max", "all", "any"),
    *("argmin", "argmax", "std", "var", "prod", "cumsum", "reshape", "ravel", "flatten"),
    *("squeeze", "transpose", "swapaxes", "round", "clip", "dot", "diagonal", "trace", "repeat"),
    *("conj", "conjugate", "nonzero", "view", "copy", "take", "choose", "compress", "cumprod"),
    *("argsort", "argpartition", "searchsorted", "byteswap", "to_device", "__array_namespace__"),
)
_PROPERTIES = ("T", "mT", "flat", "device")


@boot.once
def prepare() -> None:
    """Give jaxlib's arrays their Python surface and make them `pscdsl.Array`s."""
    surface: dict[str, Any] = {
        "shape": property(lambda self: self.aval.shape),
        "dtype": property(lambda self: self.aval.dtype),
        "ndim": property(lambda self: len(self.aval.shape)),
        "size": property(lambda self: int(np.prod(self.aval.shape, dtype=np.int64))),
        "itemsize": property(lambda self: self.aval.dtype.itemsize),
        "nbytes": property(lambda self: self.size * self.aval.dtype.itemsize),
        "real": property(lambda self: np.real(to_numpy(self))),
        "imag": property(lambda self: np.imag(to_numpy(self))),
        "__array__": _to_array,
        "__array_priority__": 100,
        "__dlpack__": _dlpack,
        "__dlpack_device__": _dlpack_device,
        "to_numpy": to_numpy,
        "__len__": _length,
        "__iter__": _iterate,
        "__setitem__": _set_item,
        "sort": _sort,
        "__getitem__": lambda self, index: to_numpy(self)[_plain(index)],
        "__contains__": lambda self, item: _plain(item) in to_numpy(self),
        "__float__": _number(float),
        "__int__": _number(int),
        "__complex__": _number(complex),
        "__bool__": _number(bool),
        "__index__": _index,
        "__repr__": _repr,
        "_repr_html_": html_method("arrays"),
        "__str__": lambda self: str(to_numpy(self)) if _is_here(self) else _repr(self),
        "__format__": _format,
        "__hash__": None,
        "__reduce__": lambda self: (_rebuild, (to_numpy(self),)),
        "__copy__": _copy,
        "__deepcopy__": _copy,
        "placement": property(_placement),
        "shards": property(_shards),
        "__divmod__": lambda self, other: divmod(to_numpy(self), _plain(other)),
        "__rdivmod__": lambda self, other: divmod(_plain(other), to_numpy(self)),
        "__round__": lambda self, digits=0: np.round(to_numpy(self), digits),
    }
    for name in ARITHMETIC:
        plain = f"{name}_" if name in ("and", "or") else name
        surface[f"__{name}__"] = _binary(plain)
        surface[f"__r{name}__"] = _reflect(plain)
    surface.update((f"__{name}__", _binary(name)) for name in COMPARISONS)
    surface.update((f"__{name}__", _number(getattr(operator, name))) for name in UNARY)
    surface.update((name, _method(name)) for name in _METHODS if hasattr(np.ndarray, name))
    surface.update((name, _property(name)) for name in _PROPERTIES if hasattr(np.ndarray, name))
    beside_jax.share(surface)
    Array.register(boot.ArrayImpl)

    def jax_is_loaded() -> None:
        boot.leave_to_jax()
        beside_jax.share(surface)

    beside_jax.whenever_jax_is_loaded(jax_is_loaded)


def is_result(value: object) -> bool:
    """Return whether a value is the result of a kernel, and not one of jax's arrays."""
    return type(value) is boot.ArrayImpl and boot.is_ours(value)


# Live devices: the client of each platform, made when first needed, and how arrays get there.


COPYING: Final = (True, False, boot.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL)
"""Copy the contents before the call returns, so that no memory is ever shared."""
SHARING: Final = (True, False, boot.HostBufferSemantics.ZERO_COPY)
ALIGNMENT: Final = 64
"""At which addresses, in bytes, XLA wants arrays to begin."""


def _prepare() -> None:
    """Prepare the process for a client of any platform."""
    require()
    boot.boot()
    prepare()
    watch()


@once_a_client
def _cpu_client() -> Any:
    _prepare()
    keep_freed_memory()
    count, options = cpu_devices(), {} if JOB.cluster is None else JOB.cluster.cpu_options()
    if count == 1 and not options:
        return boot.xla.make_cpu_client(asynchronous=not calls_wait())
    with _enough_threads(count):
        return boot.xla.make_cpu_client(asynchronous=not calls_wait(), num_devices=count, **options)


@once
def cpu_devices() -> int:
    """Return the number of CPU devices in this process, by `PSCDSL_DEVICES`, or 1."""
    given = os.environ.get(DEVICES_VARIABLE, "").strip() or "1"
    if not given.isdecimal() or not 1 <= int(given) <= MOST_DEVICES:
        raise ValueError(
            f"{DEVICES_VARIABLE} is `{given}`: a number from 1 to {MOST_DEVICES} of CPU devices"
        )
    return int(given)


MOST_DEVICES: Final = 1024
"""The most CPU devices of a process: each has several threads."""


@contextmanager
def _enough_threads(count: int) -> Generator[None, None, None]:
    """Have XLA start so many threads that collectives of all devices cannot block each other.

    XLA's devices share one pool, and a device that waits for the others in a collective holds a
    thread of it.  With fewer than twice as many threads as devices, programs may never end.
    """
    before = os.environ.get(PROCESSORS_VARIABLE)
    os.environ[PROCESSORS_VARIABLE] = str(max(2 * count, processors()))
    try:
        yield
    finally:
        if before is None:
            del os.environ[PROCESSORS_VARIABLE]
        else:
            os.environ[PROCESSORS_VARIABLE] = before


@once_a_client
def _cuda_client() -> Any:
    from pscdsl._src.xla.runtime import plugins  # programs on CPUs start without it

    _prepare()
    plugins.load("cuda")
    options = boot.xla.generate_pjrt_gpu_plugin_options()
    if JOB.cluster is None:
        return plugins.client("cuda", options)
    options = {**options, **JOB.cluster.plugin_options()}
    return plugins.client("cuda", options, JOB.cluster.client)


@once_a_client
def _tpu_client() -> Any:
    from pscdsl._src.xla.runtime import plugins

    if JOB.cluster is not None:
        raise UnsupportedDeviceError("TPUs of several processes are not supported yet")
    _prepare()
    plugins.load("tpu")
    return plugins.client("tpu", {})


_CLIENTS: Final[Mapping[str, Callable[[], Any]]] = {
    "cpu": _cpu_client,
    "cuda": _cuda_client,
    "tpu": _tpu_client,
}
"""The functions that make the clients of platforms, once in a process."""


def is_aligned(array: NDArray) -> bool:
    """Return whether XLA can read the memory of an array as it is."""
    return array.flags.c_contiguous and not array.__array_interface__["data"][0] % ALIGNMENT


SMALL: Final = 1 << 11
"""The most bytes that are faster examined as `bytes`."""


def plain_truths(array: NDArray) -> NDArray:
    """Return an array of bools, copied unless all bytes are 0 or 1: XLA reads the lowest bit."""
    if array.nbytes <= SMALL:
        is_plain = not array.tobytes().translate(None, b"\0\1")
    else:
        is_plain = bool(array.view(np.uint8).max() <= 1)
    return array if is_plain else array.view(np.uint8) != 0


class LiveDevice(NamedTuple):
    """A device in jaxlib's form, with the client that compiles for it and places arrays on it."""

    client: Any
    devices: Any
    """The device list for compilation."""
    sharding: Any
    """The sharding of an array that is whole on the device."""
    batched_put: Any
    device_list: list[Any]

    def put(self, value: Any, aval: boot.Aval | None = None) -> Any:
        """Return a device array with the contents of a NumPy array or scalar, always a copy.

        With an `aval`, the value is brought to that dtype, and must have that shape.
        A TypeError if its dtype has no counterpart.
        """
        if aval is None:
            array = np.asarray(value)
            array = array.astype(numpy_dtype(from_numpy(array.dtype)), copy=False)  # our byte order
            aval = boot.Aval(array.shape, array.dtype)
        else:
            array = np.asarray(value, aval.dtype)
            if array.shape != aval.shape:
                raise ValueError(f"shape is {array.shape}, expected {aval.shape}")
        if array.dtype == np.bool_:
            array = plain_truths(array)
        return self.copied(array, aval)

    def copied(self, array: Any, aval: boot.Aval) -> Any:
        """`put` for an array that is known to have the wanted dtype and shape."""
        return self.batched_put(
            aval, self.sharding, [array], self.device_list, *COPYING, enable_x64=True
        )

    def shared(self, array: Any, aval: boot.Aval) -> Any:
        """Return a device array in the memory of a NumPy array, which is aligned and contiguous."""
        return self.batched_put(
            aval, self.sharding, [array], self.device_list, *SHARING, enable_x64=True
        )

    def holds(self, array: Any) -> bool:
        """Return whether a device array is on this device, with this client."""
        sharding = array._sharding
        return sharding is self.sharding or bool(sharding == self.sharding)


@once_a_client
def _placements() -> dict[Device, LiveDevice]:
    """Return the devices that were used, as jaxlib takes them."""
    return {}


def placement(device: Device) -> LiveDevice:
    """Return a device in jaxlib's form; make the client of its platform if there is none."""
    device.require_supported()
    client = _CLIENTS[device.platform]()
    known = _placements().get(device)
    if known is None:
        if device.process not in (None, client.process_index()):
            raise UnsupportedDeviceError(
                f"{device} is in another process: this is process {client.process_index()}"
            )
        there = client.local_devices()
        if not 0 <= device.number < len(there):
            raise UnsupportedDeviceError(
                f"there is no device {device}: this process has {len(there)} of that platform"
            )
        handle = there[device.number]
        made = LiveDevice(
            client,
            boot.jax.DeviceList((handle,)),
            boot.jax.SingleDeviceSharding(handle),
            boot.jax.batched_device_put,
            [handle],
        )
        known = _placements().setdefault(device, made)  # the one of the thread that was first
    return known


def all_devices(device: Device) -> tuple[Device, ...]:
    """Return the devices of the platform of a device, those of all processes."""
    device.require_supported()
    handles = handles_of(device.platform)
    several = len({process for process, _ in handles}) > 1
    return tuple(
        [
            Device(device.platform, number, process if several else None)
            for process, number in handles
        ]
    )


def handles_of(platform: str) -> dict[tuple[int, int], Any]:
    """Return jaxlib's devices of a platform by process and by number in it, in that order."""
    by_process: dict[int, list[Any]] = {}
    for each in _CLIENTS[platform]().devices():
        by_process.setdefault(each.process_index, []).append(each)
    return {
        (process, number): handle
        for process in sorted(by_process)
        for number, handle in enumerate(sorted(by_process[process], key=lambda each: each.id))
    }


def put(value: Any, aval: boot.Aval | None = None, device: Device = CPU) -> Any:
    """Return a copy of a NumPy array or scalar on a device; see `LiveDevice.put`."""
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

    Examples:
        >>> psc.from_dlpack(np.array([1.0, 2.0]))
        pscdsl.Array([1., 2.], dtype=float64)
    """
    if type(exporter) is boot.ArrayImpl and not copy:
        return exporter
    array = host_view(exporter)
    if copy:
        return put(array)
    if array.dtype == np.bool_:
        plain = plain_truths(array)
        if copy is False and plain is not array:
            raise BufferError("the memory cannot be shared: bools are stored as 0 and 1")
        array = plain
    aval = boot.Aval(array.shape, numpy_dtype(from_numpy(array.dtype)))
    shares = array.flags.c_contiguous and not array.ctypes.data % ALIGNMENT
    if not shares and copy is False:
        how = "aligned to 64 bytes" if array.flags.c_contiguous else "contiguous in C order"
        raise BufferError(f"the memory cannot be shared: it is not {how}; copy=None copies it")
    here = placement(CPU)
    return here.shared(array, aval) if shares else here.copied(array, aval)


def host_view(exporter: Any) -> Any:
    """Return a NumPy array that shares another library's memory; raise BufferError if none can."""
    try:
        return np.from_dlpack(exporter)
    except (BufferError, RuntimeError) as error:
        try:  # NumPy cannot read bf16
            return bfloats_view(exporter.__dlpack__())
        except (BufferError, RuntimeError):
            raise BufferError(str(error)) from None
