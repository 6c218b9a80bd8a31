# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
"""Programs over a mesh: each device runs the same module on its pieces of the arrays.

The module is that of one device: it takes and gives pieces, and its collectives name replicas,
which are the devices in the order of the mesh.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from time import perf_counter
from typing import Any, Final

import numpy as np

from pscdsl._src.ir.numpy_dtypes import is_masked
from pscdsl._src.support.processes import once_a_client, require
from pscdsl._src.xla import disk, exactness, lapack
from pscdsl._src.xla.compilation import foreign, signature, targets
from pscdsl._src.xla.device import JOB, Device
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.replicas import for_replicas
from pscdsl._src.xla.exchanged import Exchanged, exchanged
from pscdsl._src.xla.executable_store import without_places
from pscdsl._src.xla.mesh import Mesh, PlacementError
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import ArrayImpl, Aval
from pscdsl._src.xla.runtime.devices import to_numpy
from pscdsl._src.xla.runtime.executable import (
    CompilationFailed,
    Executable,
    compile_options,
    set_replicas,
)
from pscdsl._src.xla.runtime.pieces import LiveMesh, MeshSharding, is_gone
from pscdsl._src.xla.runtime.settings import LOOP_BYTES, calls_wait
from pscdsl.typing.placements import Placement

log: Final = logging.getLogger("pscdsl.compile")


class MeshExecutable(Executable):
    """A compiled program over a mesh: arrays in pieces to arrays in pieces.

    What jaxlib is given is checked here, each time: wrong arguments to a program of several devices
    end the process.
    """

    has_effects = True
    """Calls go through Python, which checks them; neither C++ nor a later process starts them."""

    def __init__(
        self,
        loaded: Any,
        live: LiveMesh,
        inputs: Sequence[tuple[Aval, MeshSharding]],
        outputs: Sequence[tuple[Aval, MeshSharding]],
        donated: Sequence[int],
        names: Sequence[str] = (),
        title: str = "a program",
        digest: str = "",
    ) -> None:
        super().__init__(
            loaded,
            [aval for aval, _ in inputs],
            [aval for aval, _ in outputs],
            Device(live.mesh.devices[0].platform),
        )
        self.live = live
        self.title, self.digest = title, digest
        self._is_agreed = False
        self.names = tuple(names)
        """The names of the arguments in messages."""
        self.arguments = tuple([sharding for _, sharding in inputs])
        self.results = tuple([sharding for _, sharding in outputs])
        self.donated = tuple(donated)
        """The indices of the arguments whose memory the results take."""
        self._handlers = [boot.result_handler(aval, sharding) for aval, sharding in outputs]

    @property
    def collectives(self) -> Mapping[str, Exchanged]:
        """The collectives by kind, as `all-reduce`: how many, and the bytes of their results."""
        return exchanged(self.text())

    @property
    def mesh(self) -> Mesh:
        """The mesh that it runs on."""
        return self.live.mesh

    def run(self, leaves: Sequence[Any]) -> list[Any]:
        """Start the program on arrays over the mesh, NumPy's arrays and numbers, checked.

        What is not on any device is copied to the mesh; arrays that lie otherwise are refused.
        """
        if len(leaves) != len(self.inputs):
            raise ValueError(f"{len(leaves)} arguments for {len(self.inputs)} parameters")
        return self.execute([self._placed(at, leaf) for at, leaf in enumerate(leaves)])

    def start(self, buffers: Sequence[Any]) -> list[Any]:
        """Start the program on arrays over the mesh; a PlacementError if one does not fit."""
        require()
        if len(buffers) != len(self.inputs):
            raise ValueError(f"{len(buffers)} arguments for {len(self.inputs)} parameters")
        for at, array in enumerate(buffers):
            self._check(at, array)
        self._check_donated(buffers)
        cluster = JOB.cluster
        try:
            with _turns(), nullcontext() if cluster is None else cluster.call():
                if cluster is not None and not self._is_agreed:
                    cluster.agree(self.title, {"the program": self.digest})
                    self._is_agreed = True
                results: list[Any] = self.loaded.execute_sharded(buffers).consume_with_handlers(
                    self._handlers
                )
                _turns().ended(results)
        finally:
            for at in self.donated:  # jaxlib does not remember it by itself
                if is_gone(buffers[at]):
                    buffers[at].delete()
        return results

    def _name(self, at: int) -> str:
        return f"`{self.names[at]}`" if at < len(self.names) else str(at)

    def _placed(self, at: int, leaf: Any) -> Any:
        if type(leaf) is ArrayImpl and boot.is_ours(leaf):
            return leaf
        aval, sharding = self.inputs[at], self.arguments[at]
        if is_masked(leaf):
            raise TypeError(f"argument {self._name(at)} is a masked array")
        if type(leaf) is ArrayImpl:
            leaf = to_numpy(leaf)
        dtype = getattr(leaf, "dtype", None)
        if dtype is None:
            with np.errstate(over="raise"):  # a float that its dtype cannot hold
                leaf = np.asarray(leaf, aval.dtype)
        elif dtype.newbyteorder("=") != aval.dtype:
            raise ValueError(f"argument {self._name(at)} is {dtype}, expected {aval.dtype}")
        if leaf.shape != aval.shape:
            raise ValueError(f"argument {self._name(at)} is {leaf.shape}, expected {aval.shape}")
        return self.live.put(leaf, sharding.placement)

    def _check(self, at: int, array: Any) -> None:
        """Raise an error about an array that jaxlib must not be given."""
        if type(array) is not ArrayImpl or not boot.is_ours(array):
            raise TypeError(f"argument {self._name(at)} is no array on devices")
        if array.aval != self.inputs[at]:
            raise ValueError(
                f"argument {self._name(at)} is {array.aval}, expected {self.inputs[at]}"
            )
        wanted, known = self.arguments[at], array._sharding
        if known is not wanted and not (type(known) is MeshSharding and known == wanted):
            raise PlacementError(_misplaced(self._name(at), known, wanted))
        if is_gone(array):
            raise PlacementError(
                f"argument {self._name(at)} was deleted, or donated to an earlier call: what its "
                "memory holds now is that call's result; use this, or pass a copy"
            )

    def _check_donated(self, buffers: Sequence[Any]) -> None:
        for at in self.donated:
            for other, array in enumerate(buffers):
                if other != at and array is buffers[at]:
                    raise PlacementError(
                        f"argument {self._name(at)} is the same array as {self._name(other)}, and "
                        "its memory is donated: pass a copy of one of them"
                    )


def _misplaced(name: str, known: Any, wanted: MeshSharding) -> str:
    if not isinstance(known, MeshSharding):
        (device,) = known._device_assignment
        return (
            f"argument {name} lies on one device, {device}, and is wanted {wanted}: "
            f'`mesh.put(x, "{wanted.placement}")` moves it'
        )
    if known.mesh == wanted.mesh:
        return (
            f"argument {name} lies `{known.placement}` on {known.mesh}, and is wanted "
            f'`{wanted.placement}`: `mesh.put(x, "{wanted.placement}")` moves it'
        )
    if known.mesh.devices != wanted.mesh.devices and known.mesh.axes == wanted.mesh.axes:
        return (
            f"argument {name} lies on a mesh of other devices, or in another order: "
            f"{_devices(known.mesh)}, and is wanted on {_devices(wanted.mesh)}"
        )
    return (
        f"argument {name} lies {known}, on another mesh, and is wanted {wanted}: "
        f'`mesh.put(x, "{wanted.placement}")` moves it'
    )


def _devices(mesh: Mesh) -> str:
    return ", ".join(map(str, mesh.devices))


class _Turns:
    """Calls of programs over meshes, one after the other.

    Two programs at a time could each hold threads that the other's collectives wait for.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._last: tuple[int, list[Any]] = (0, [])

    def __enter__(self) -> None:
        """Begin a call, when those of other threads have ended."""
        self._lock.acquire()
        thread, results = self._last
        if thread != threading.get_ident():
            _wait(results)

    def __exit__(self, *problem: object) -> None:
        self._lock.release()

    def ended(self, results: list[Any]) -> None:
        """Wait for the results of a call, or remember them if calls do not wait."""
        if calls_wait() or JOB.cluster is not None:
            _wait(results)
            results = []
        self._last = threading.get_ident(), results


def _wait(results: Sequence[Any]) -> None:
    for each in results:
        if not is_gone(each):
            each.block_until_ready()


@once_a_client
def _turns() -> _Turns:
    return _Turns()


# Compiling.


def mesh_executable(
    module: Any,
    mesh: Mesh,
    arguments: Sequence[Placement],
    results: Sequence[Placement],
    *,
    options: Mapping[str, Any] | None = None,
    loop_bytes: int | None = LOOP_BYTES,
    names: Sequence[str] = (),
    title: str = "a program",
) -> MeshExecutable:
    """Return the executable over a mesh of a module for one device, from disk or compiled.

    Args:
        module: A module of StableHLO, or its text. Its `main` takes and gives the pieces that one
            device holds; its collectives name the mesh's devices by their numbers in its order.
            Parameters with `tf.aliasing_output` or `jax.buffer_donor` are donated.
        mesh: The mesh.
        arguments: The placement of each argument.
        results: The placement of each result.
        options: XLA's options besides those of `exactness`.
        loop_bytes: See `compile_module`.
        names: The names of the arguments in messages.
        title: The name of the program in messages.

    Raises:
        CompilationFailed: XLA does not compile the module.
        ValueError: The placements do not fit the module.
    """
    module = for_replicas(module, mesh.size)
    live = mesh.live
    local_inputs, local_outputs = signature(module)
    inputs = _whole(live, local_inputs, arguments, "arguments")
    outputs = _whole(live, local_outputs, results, "results")
    device = Device(mesh.devices[0].platform)
    chosen = _mesh_options(
        live, loop_bytes, {**exactness.options(module), **(options or {})}, device
    )
    started = perf_counter()
    key, store = _key(module, live, chosen, device), disk.opened()
    is_lapack = any(name.startswith(lapack.PREFIX) for name in targets(module))
    if is_lapack:
        boot.lapack()
    loaded = None if store is None or key is None else _loaded(store, key, live, chosen)
    is_from_disk = loaded is not None
    if loaded is None:
        try:
            loaded = live.client.compile_and_load(
                c.module_bytecode(module), live.device_list, chosen
            )
        except Exception as error:
            raise CompilationFailed(str(error)) from error
    digest = disk.digest(
        "agreed", without_places(module), repr((mesh.devices, mesh.axes, arguments, results))
    )
    made = MeshExecutable(
        loaded, live, inputs, outputs, _donated(module), names, title, digest[:32]
    )
    made.seconds = perf_counter() - started
    if is_from_disk:
        made.source, made.entry = "disk", key or ""
    elif store is None or key is None:
        made.not_stored = "there is no cache" if store is None else "it calls functions of others"
    else:
        disk.save(store, key, made)
    return made


def _whole(
    live: LiveMesh, local: Sequence[Aval], placements: Sequence[Placement], what: str
) -> list[tuple[Aval, MeshSharding]]:
    """Return the types of whole arrays, and where their pieces lie, from the types of pieces."""
    if len(local) != len(placements):
        raise ValueError(f"{len(placements)} placements for {len(local)} {what} of the module")
    found: list[tuple[Aval, MeshSharding]] = []
    for piece, placement in zip(local, placements, strict=True):
        sharding = live.sharding(placement)
        if placement.rank != len(piece.shape):
            raise ValueError(f"the placement `{placement}` is given for pieces {piece}")
        shape = tuple([n * cut for n, cut in zip(piece.shape, sharding.cuts, strict=True)])
        found.append((Aval(shape, piece.dtype), sharding))
    return found


def _mesh_options(
    live: LiveMesh, loop_bytes: int | None, options: Mapping[str, Any], device: Device
) -> Any:
    chosen = compile_options(loop_bytes, options, device)
    set_replicas(chosen, [each.id for each in live.handles])
    return chosen


def _key(module: Any, live: LiveMesh, chosen: Any, device: Device) -> str | None:
    """Return the key on disk: by the mesh's shape, not its devices; None if there can be none.

    On CPUs the code does not depend on how many processes have the devices.
    """
    if foreign(targets(module)):
        return None
    anywhere = boot.xla.CompileOptions.ParseFromString(chosen.SerializeAsString())
    set_replicas(anywhere, range(live.mesh.size))
    on_cpu = device.platform == "cpu"
    processes = None if on_cpu else [each.process_index for each in live.handles]
    return disk.digest(
        "mesh",
        *disk.mesh_backend(device),
        anywhere.SerializeAsString(),
        repr((list(live.mesh.axes.items()), processes)),
        without_places(module),
    )


def _loaded(store: Any, key: str, live: LiveMesh, chosen: Any) -> Any:
    """Return the program under a key; None if there is no usable one."""
    code = store.get(key)
    if code is None:
        return None
    try:
        return live.client.deserialize_executable(code, live.device_list, chosen)
    except Exception as error:  # any error of jaxlib's
        log.info("compiled code cannot be loaded, and is removed: %s", error)
        store.remove(key)
        return None


def _donated(module: Any) -> list[int]:
    """Return the indices of the parameters whose memory results may take."""
    attributes = c.main(module).attributes
    if "arg_attrs" not in attributes:
        return []
    return [
        at
        for at, each in enumerate(c.mlir.ArrayAttr(attributes["arg_attrs"]))
        if "tf.aliasing_output" in each or "jax.buffer_donor" in each
    ]
