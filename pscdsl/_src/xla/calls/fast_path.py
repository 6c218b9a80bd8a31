"""Calls that run in C++ once their program is known: what jaxlib calls `pjit`.

It finds the program, hands over device arrays, and makes results, without entering Python.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from pscdsl._src.xla.calls import trees
from pscdsl._src.xla.calls.binding import dtypes, is_native
from pscdsl._src.xla.compilation import disk, keys
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import ArrayImpl, Aval
from pscdsl._src.xla.runtime.device_arrays import to_numpy
from pscdsl._src.xla.runtime.devices import COPYING, Placement
from pscdsl._src.xla.runtime.executable import Executable, transfer
from pscdsl._src.xla.runtime.settings import calls_wait


class FastPath(NamedTuple):
    """What C++ wants to know of a program; it reads these names."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Sequence[Any]
    out_shardings: Sequence[Any]
    out_avals: Sequence[Aval]
    out_committed: Sequence[bool]
    kept_var_bitvec: Sequence[bool]
    in_device_local_layouts: Sequence[Any]
    const_args: Sequence[Any]


class Stale(ValueError):
    """A value does not fit the program that C++ has found for it; see Note [Host values]."""


# Note [Host values]
# For a value that is no device array, C++ asks Python for the transfer if the program names a
# layout for it.  We name one for just those: no real layout, but what the transfer needs to know.
# Small NumPy arrays need none where calls wait: C++ takes their memory as it is, or copies it at
# once, and has read it when the program has run.  Larger ones it may copy in another thread: then
# the program does not run where it is called, and the caller gets the array back too early.
# Two things can go wrong, both end in Stale and then in Python: C++ may take one dtype for another
# (a jax in the process has 64-bit types off: f64 reads as f32), and arrays that a jax made without
# committing them to a device look like host values, and then are asked for their layout.

READ_BYTES: Final = 1 << 16
"""Below, arrays are copied by the calling thread; 100 KiB is XLA:CPU's own limit for that."""


class HostValue:
    """Where C++ expects a layout: the type to which a host value is brought."""

    __slots__ = ("aval", "dtype", "placement")

    def __init__(self, aval: Aval, placement: Placement) -> None:
        self.aval = aval
        self.dtype = aval.dtype
        self.placement = placement

    def _to_xla_layout(self, dtype: object) -> object:
        raise Stale


def fast_path(
    executable: Executable,
    used: Sequence[Any],
    is_used: list[bool],
    outputs: list[Any],
    result: Any,
    donated: Collection[int] = (),
) -> FastPath | None:
    """How C++ does without us, if the result is made of arrays, containers and static values.

    It reads small NumPy arrays where they are, but for those whose memory is `donated`, by place.
    """
    structure = trees.result_structure(result, outputs)
    if structure is None:
        return None
    here = executable.placement.sharding
    return FastPath(
        executable.loaded,
        structure,
        [here] * len(used),
        [here] * len(outputs),
        executable.outputs,
        [True] * len(outputs),
        is_used,
        [
            None
            if type(leaf) is ArrayImpl or (place not in donated and _is_read(leaf, aval))
            else HostValue(aval, executable.placement)
            for place, (leaf, aval) in enumerate(zip(used, executable.inputs, strict=True))
        ],
        [],
    )


def _is_read(leaf: Any, aval: Aval) -> bool:
    """Whether C++ is done with a value of NumPy's when the call returns."""
    return (
        is_native(leaf)
        and leaf.dtype == aval.dtype
        and leaf.dtype in dtypes()
        and leaf.nbytes < READ_BYTES
        and calls_wait()
    )


def _transfer(leaf: Any, _: Any, target: HostValue) -> Any:
    if type(leaf) is np.ndarray and leaf.dtype is target.dtype:  # C++ has compared the shape
        here = target.placement  # what `copied` does, without its frame
        return here.batched_put(
            target.aval, here.sharding, [leaf], here.device_list, *COPYING, enable_x64=True
        )
    try:
        return transfer(leaf, target.aval, target.placement)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise Stale from error


class _Shared:
    """The key under which C++ keeps our functions."""


_shared = _Shared()


@boot.once
def _programs() -> Any:
    return boot.jax.PjitFunctionCache(8192)


def in_cpp(
    name: str,
    miss: Callable[..., Any],
    static_argnums: frozenset[int] = frozenset(),
    static_argnames: frozenset[str] = frozenset(),
    *,
    registry: Any = trees.registry,
) -> tuple[Any, Any]:
    """A function in C++ that asks `miss` where it has no program; and what must live as long.

    `registry` tells how arguments are taken apart.
    """

    def function(*args: Any, **kwargs: Any) -> Any:  # called if a jax has its jit disabled
        return miss(*args, **kwargs)[0]

    made = boot.jax.pjit(
        name,
        function,
        miss,
        sorted(static_argnums),
        sorted(static_argnames),
        _shared,
        registry,
        _transfer,
        _programs(),
    )
    return made, function


_WORKS: Final = b"works"


@cache
def fast_path_works(device: Device = CPU) -> bool:
    """Try the C++ path on a small program: jaxlib is private to another project and moves.

    That it worked is stored on disk, for the same jaxlib and our own files as they are.
    """
    store = disk.opened()
    key = keys.digest("trial", *keys.backend(device), *keys.reading())
    if store is not None and store.get(key) == _WORKS:
        return True
    try:
        works = trial(device)
    except Exception:  # whatever it is, calls take the way through Python
        return False
    if works and store is not None:
        store.put(key, _WORKS)
    return works


def trial(device: Device) -> bool:
    """Whether calls hit, share no memory and give the right values."""
    text = (
        "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    )
    aval = Aval((2,), np.dtype(np.float32))
    program = disk.from_text(text, [aval], [aval], device)
    misses: list[object] = []

    def miss(x: Any) -> tuple[Any, FastPath | None, bool]:
        misses.append(x)
        outputs = program.run([x])
        return outputs[0], fast_path(program, [x], [True], outputs, outputs[0]), False

    fast, _ = in_cpp("trial", miss)
    host = np.array([1, 2], np.float32)
    array = device.placement.put(host)
    results = [fast(value) for value in (array, array, host, host)]
    host[:] = 0
    return len(misses) == 2 and all(to_numpy(x).tolist() == [1, 2] for x in results)
