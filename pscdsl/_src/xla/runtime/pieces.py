# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
"""Arrays in pieces over the devices of a mesh: how they get there, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import prod
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy, is_masked
from pscdsl._src.ir.numpy_dtypes import to_numpy as numpy_dtype
from pscdsl._src.support.processes import once_a_client
from pscdsl._src.xla.device import JOB, Device, UnsupportedDeviceError
from pscdsl._src.xla.mesh import Mesh, PlacementError, Shard
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import ArrayImpl, Aval
from pscdsl._src.xla.runtime.devices import (
    COPYING,
    NDArray,
    handles_of,
    host_view,
    plain_truths,
    to_numpy,
)
from pscdsl.typing.placements import Placement

if TYPE_CHECKING:
    from pscdsl._src.xla.cluster import Cluster


class MeshSharding(boot.jax.GSPMDSharding):  # type: ignore[misc]
    """The way in which arrays of one placement lie on a mesh, as jaxlib takes it.

    A class of our own: that of jaxlib gets another Python half when a jax is imported.
    """

    def __init__(self, live: LiveMesh, placement: Placement, layout: Placement) -> None:
        super().__init__(live.device_list, boot.hlo.HloSharding.from_string(live.tiles(layout)))
        self.live = live
        self.mesh = live.mesh
        self.placement = placement
        """The placement as it was asked for."""
        self.layout = layout
        """The placement without mesh axes of size 1, which decides where the pieces are."""
        self.cuts = placement.cuts(live.mesh.axes)

    def _to_xla_hlo_sharding(self, rank: int) -> Any:
        return self._hlo_sharding

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of each piece."""
        return tuple([size // cut for size, cut in zip(shape, self.cuts, strict=True)])

    @property
    def device_set(self) -> set[Any]:
        """The devices that have a piece."""
        return set(self.live.handles)

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return self.live.handles

    @property
    def is_fully_addressable(self) -> bool:
        """True if all pieces are in this process."""
        return len(self.live.local) == len(self.live.handles)

    @property
    def is_fully_replicated(self) -> bool:
        """True if each device has the whole array."""
        return self.layout.is_whole

    @property
    def memory_kind(self) -> Any:
        """The kind of memory, by default that of the device."""
        return self._memory_kind

    def slices(self, shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
        """Return the part of an array that each device of the mesh holds, in order."""
        piece = self.shard_shape(shape)
        return [
            tuple([slice(k * n, (k + 1) * n) for k, n in zip(number, piece, strict=True)])
            for number in self.live.pieces(self.placement)
        ]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, MeshSharding):
            return False
        return self.layout == other.layout and self.mesh == other.mesh

    def __hash__(self) -> int:
        return hash((self.mesh, self.layout))

    def __repr__(self) -> str:
        return f"`{self.placement}` on {self.mesh}"


class LiveMesh:
    """A mesh in jaxlib's form: its devices, the shardings over it, and how arrays get there."""

    def __init__(self, mesh: Mesh) -> None:
        platform = mesh.devices[0].platform
        there = handles_of(platform)
        self.mesh = mesh
        self.client: Any = Device(platform).client
        self.process: int = self.client.process_index()
        found = [there.get((self._process_of(each), each.number)) for each in mesh.devices]
        missing = [each for each, handle in zip(mesh.devices, found, strict=True) if handle is None]
        if missing:
            raise UnsupportedDeviceError(f"{mesh} has the device {missing[0]}, which is not there")
        self.handles: tuple[Any, ...] = tuple(found)
        self.device_list: Any = boot.jax.DeviceList(self.handles)
        self.local: tuple[int, ...] = tuple(
            [at for at, each in enumerate(self.handles) if each.process_index == self.process]
        )
        """The indices of the devices of this process."""
        counts = {
            process: sum(each.process_index == process for each in self.handles)
            for process in range(1 + max(process for process, _ in there))
        }
        if len(set(counts.values())) > 1:
            raise PlacementError(
                f"{mesh} has devices of processes in unequal numbers ({counts}): meshes of other "
                "than equally many devices of every process are not supported yet"
            )
        self._shardings: dict[Placement, MeshSharding] = {}
        self._pieces: dict[Placement, list[tuple[int, ...]]] = {}

    def _process_of(self, device: Device) -> int:
        return self.process if device.process is None else device.process

    @property
    def is_in_one_process(self) -> bool:
        """True if all devices are in this process."""
        return len(self.local) == len(self.handles)

    def sharding(self, placement: Placement) -> MeshSharding:
        """Return the sharding of a placement; raise PlacementError for unknown mesh axes."""
        known = self._shardings.get(placement)
        if known is None:
            axes = self.mesh.axes
            for name in placement.used:
                if name not in axes:
                    raise PlacementError(
                        f"the placement `{placement}` names the mesh axis `{name}`, and the axes "
                        f"of {self.mesh} are {', '.join(axes)}"
                    )
            layout = Placement(
                tuple([tuple([n for n in names if axes[n] > 1]) for names in placement.axes])
            )
            made = MeshSharding(self, placement, layout)
            known = self._shardings.setdefault(placement, made)
        return known

    def tiles(self, layout: Placement) -> str:
        """Return a placement as XLA writes shardings."""
        axes = self.mesh.axes
        used = layout.used
        if not used:
            return "{replicated}"
        names = list(axes)
        rest = [name for name in names if name not in used]
        spare = prod([axes[name] for name in rest])
        order = [names.index(name) for name in (*used, *rest)]
        grid = ",".join(map(str, axes.values()))
        devices = (
            f"[{self.mesh.size}]"
            if order == sorted(order)
            else f"[{grid}]T({','.join(map(str, order))})"
        )
        cut = ",".join(map(str, [*layout.cuts(axes), *([spare] if spare > 1 else [])]))
        whole_along = " last_tile_dim_replicate" if spare > 1 else ""
        return f"{{devices=[{cut}]<={devices}{whole_along}}}"

    def pieces(self, placement: Placement) -> list[tuple[int, ...]]:
        """Return the number of the piece that each device holds, along each axis of the array."""
        known = self._pieces.get(placement)
        if known is None:
            sizes = self.mesh.axes
            grid = [
                dict(zip(sizes, np.unravel_index(at, tuple(sizes.values())), strict=True))
                for at in range(self.mesh.size)
            ]
            known = [tuple([_number(names, sizes, at) for names in placement.axes]) for at in grid]
            self._pieces[placement] = known
        return known

    def checked(self, shape: tuple[int, ...], placement: Placement) -> MeshSharding:
        """Return the sharding for arrays of a shape; raise PlacementError if it does not fit."""
        sharding = self.sharding(placement)
        if placement.rank != len(shape):
            raise PlacementError(
                f"the placement `{placement}` is one of {_axes(placement.rank)}, and the array has "
                f"shape {shape}"
            )
        for axis, (size, cut) in enumerate(zip(shape, sharding.cuts, strict=True)):
            if size % cut:
                along = "@".join(f"{n}={self.mesh.axes[n]}" for n in placement.axes[axis])
                raise PlacementError(
                    f"axis {axis} of an array of shape {shape} does not divide along {along}: "
                    f"{size} is not a multiple of {cut}"
                )
        return sharding

    def put(self, value: Any, placement: Placement, *, is_local: bool = False) -> Any:
        """Return an array over the mesh with the contents of a value; see `Mesh.put`."""
        if type(value) is ArrayImpl and boot.is_ours(value):
            require_undeleted(value)
            known = value._sharding
            if isinstance(known, MeshSharding) and not is_local:
                wanted = self.checked(value.aval.shape, placement)
                if known == wanted:
                    return value
                if not known.is_fully_addressable:
                    raise PlacementError(
                        f"an array that lies {known}, in pieces of several processes, cannot be "
                        f"moved to {wanted}: this is not supported yet; `psc.gather` gives its "
                        "contents to each process"
                    )
        array = _of_numpy(value)
        if is_local:
            return self._put_local(array, placement)
        sharding = self.checked(array.shape, placement)
        slices = sharding.slices(array.shape)
        return self.placed(array, [slices[at] for at in self.local], array.shape, sharding)

    def placed(
        self,
        array: NDArray,
        parts: Sequence[tuple[slice, ...]],
        shape: tuple[int, ...],
        sharding: MeshSharding,
    ) -> Any:
        """Return an array of a shape whose pieces in this process are parts of another one."""
        seen: set[tuple[tuple[int, int], ...]] = set()
        pieces: list[NDArray] = []
        for part in parts:
            bounds = tuple([(each.start, each.stop) for each in part])
            piece = np.asarray(array[part])
            # Where several devices are given the same memory, jaxlib fails unless it is shared.
            is_first = bounds not in seen and piece.flags.c_contiguous
            pieces.append(piece if is_first else np.array(piece, order="C"))
            seen.add(bounds)
        return self._put_pieces(pieces, Aval(shape, array.dtype), sharding)

    def _put_pieces(self, pieces: list[NDArray], aval: Aval, sharding: MeshSharding) -> Any:
        here = [self.handles[at] for at in self.local]
        if JOB.cluster is not None:
            JOB.cluster.require()
            self._agree(JOB.cluster, pieces, aval, sharding)
        return boot.jax.batched_device_put(aval, sharding, pieces, here, *COPYING, enable_x64=True)

    def _agree(
        self, cluster: Cluster, pieces: list[NDArray], aval: Aval, sharding: MeshSharding
    ) -> None:
        """Require that processes which have the same piece of an array have the same contents."""
        numbers = self.pieces(sharding.placement)
        mine = {numbers[at] for at in self.local}
        others = {number for at, number in enumerate(numbers) if at not in self.local}
        shared = mine & others
        if not shared:
            return
        title = f"an array {aval} that is put as `{sharding.placement}`"
        found = {
            f"its piece {number}": blake2b(piece.tobytes(), digest_size=16).hexdigest()
            for number, piece in zip([numbers[at] for at in self.local], pieces, strict=True)
            if number in shared
        }
        cluster.agree_once(title, found)

    def _put_local(self, array: NDArray, placement: Placement) -> Any:
        sharding = self.sharding(placement)
        if placement.rank != array.ndim:
            self.checked(array.shape, placement)
        numbers = self.pieces(placement)
        mine = [numbers[at] for at in self.local]
        along = [sorted({each[axis] for each in mine}) for axis in range(array.ndim)]
        if any(n[-1] - n[0] + 1 != len(n) for n in along) or len(set(mine)) != prod(
            map(len, along)
        ):
            raise PlacementError(
                f"the pieces of `{placement}` on the devices of this process are not one part of "
                f"the array on {self.mesh}: local arrays are not supported for it"
            )
        shape: list[int] = []
        for axis, (size, cut, there) in enumerate(
            zip(array.shape, sharding.cuts, along, strict=True)
        ):
            if size % len(there):
                raise PlacementError(
                    f"axis {axis} of the local array of shape {array.shape} does not divide: "
                    f"{size} is not a multiple of {len(there)}, the pieces in this process"
                )
            shape.append(size // len(there) * cut)
        piece = sharding.shard_shape(tuple(shape))
        parts = [
            tuple(
                [
                    slice((k - there[0]) * n, (k - there[0] + 1) * n)
                    for k, there, n in zip(each, along, piece, strict=True)
                ]
            )
            for each in mine
        ]
        return self.placed(array, parts, tuple(shape), sharding)

    def copied(self, array: Any) -> Any:
        """Return a copy of an array, in the same pieces."""
        pieces = [np.array(to_numpy(each)) for each in array._arrays]
        return self._put_pieces(pieces, Aval(array.aval.shape, array.aval.dtype), array._sharding)


def _number(names: tuple[str, ...], sizes: Mapping[str, int], at: Mapping[str, Any]) -> int:
    number = 0
    for name in names:
        number = number * sizes[name] + int(at[name])
    return number


def _axes(rank: int) -> str:
    return "1 axis" if rank == 1 else f"{rank} axes"


def _of_numpy(value: Any) -> NDArray:
    """Return the contents of a value as an array of NumPy's, in a dtype that we have."""
    if type(value) is ArrayImpl:
        array = to_numpy(value)
    elif is_masked(value):
        raise TypeError("a masked array has no place on devices: fill it first")
    elif hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray | np.generic):
        array = host_view(value)
    else:
        array = np.asarray(value)
    array = array.astype(numpy_dtype(from_numpy(array.dtype)), copy=False)
    return plain_truths(array) if array.dtype == np.bool_ else array


@once_a_client
def _live() -> dict[Mesh, LiveMesh]:
    """Return the meshes that were used, as jaxlib takes them."""
    return {}


def live_mesh(mesh: Mesh) -> LiveMesh:
    """Return a mesh in jaxlib's form; equal meshes have one."""
    known = _live().get(mesh)
    return _live().setdefault(mesh, LiveMesh(mesh)) if known is None else known


_pieces_given: Final = Event()
"""Set when pieces of an array were given to the user, who may delete or donate them.

Without that, pieces go where their array goes. Asking each is slow: jaxlib makes an array of it,
and looks for a jax to do so.
"""


def is_gone(array: Any) -> bool:
    """Return whether an array was deleted or donated, or one of its pieces was."""
    if array.is_deleted():
        return True
    return _pieces_given.is_set() and any([each.is_deleted() for each in array._arrays])


def require_undeleted(array: Any) -> None:
    """Raise a PlacementError about an array whose memory was given away."""
    if is_gone(array):
        raise PlacementError(
            "the array was deleted, or donated to an earlier call: what its memory holds now is "
            "that call's result"
        )


def whole(array: Any) -> NDArray:
    """Return the contents of an array in pieces, put together, as a read-only array of NumPy's."""
    if not boot.is_ours(array):
        of_jax: NDArray = np.asarray(array._value)
        return of_jax
    sharding = array._sharding
    if not sharding.is_fully_addressable:
        raise PlacementError(
            f"the array lies {sharding}, in pieces of several processes: `psc.gather(x)` gives its "
            "contents to each of them, `x.shards` has the pieces of this one"
        )
    require_undeleted(array)
    array.block_until_ready()
    if sharding.is_fully_replicated:
        return to_numpy(array._arrays[0])
    made = np.empty(array.aval.shape, array.aval.dtype)
    for piece, part in zip(array._arrays, sharding.slices(array.aval.shape), strict=True):
        made[part] = to_numpy(piece)
    made.flags.writeable = False
    return made


def copied(array: Any) -> Any:
    """Return a copy of an array in pieces, in the same place."""
    live: LiveMesh = array._sharding.live
    return live.copied(array)


def shards(array: Any) -> tuple[Shard, ...]:
    """Return the pieces of an array on the devices of this process, in the mesh's order."""
    aval, sharding = array.aval, array._sharding
    if not isinstance(sharding, MeshSharding):
        handle = sharding._device
        device = Device(handle.platform, _number_of(handle))
        return (Shard(device, tuple([slice(0, size) for size in aval.shape]), array),)
    require_undeleted(array)
    _pieces_given.set()
    live, parts = sharding.live, sharding.slices(aval.shape)
    piece = Aval(sharding.shard_shape(aval.shape), aval.dtype)
    return tuple(
        [
            Shard(
                live.mesh.devices[at],
                parts[at],
                boot.jax.ArrayImpl(
                    piece, boot.jax.SingleDeviceSharding(live.handles[at]), [each], True, True
                ),
            )
            for at, each in zip(live.local, array._arrays, strict=True)
        ]
    )


def _number_of(handle: Any) -> int:
    here = sorted(handle.client.local_devices(), key=lambda each: each.id)
    return here.index(handle)


def misplaced(array: Any) -> PlacementError:
    """Return the error about an array in pieces, given to a program for one device."""
    return PlacementError(
        f"an argument lies {array._sharding}, and this program runs on one device: "
        "`np.asarray(x)` puts its pieces together; a kernel whose signature names mesh axes "
        "(`f32['n@data']`) takes it as it is in the mesh's `with` block, and so does one that was "
        "exported with `mesh=`; what `lower(...).compile()` returns is for one device"
    )
