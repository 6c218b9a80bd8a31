"""Meshes: devices in a grid with named axes, over which arrays lie in pieces.

A `Mesh` is a plain value: its axes and the devices in order.  jaxlib's half of it, which holds
arrays and runs programs, is in `runtime.pieces`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pscdsl._src.support.tracebacks import UsersError, public
from pscdsl._src.xla.device import DEVICES_VARIABLE, Device, devices
from pscdsl.typing.placements import Placement

if TYPE_CHECKING:
    from pscdsl._src.xla.runtime.pieces import LiveMesh

R = TypeVar("R")


class PlacementError(UsersError, ValueError):
    """An array does not fit the mesh, or does not lie where it is wanted.

    Examples:
        >>> psc.Mesh(data=1).put(np.ones(4), "n@model")
        Traceback (most recent call last):
        pscdsl.PlacementError: the placement `_@model` names the mesh axis `model`…
    """

    __module__ = "pscdsl"


_entered: Final[ContextVar[tuple[Mesh, ...]]] = ContextVar("entered", default=())
"""The meshes whose `with` blocks this thread or task is in, the innermost last."""


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """A piece of an array, on one device.

    Examples:
        >>> [piece] = psc.Mesh(data=1).put(np.ones((4, 2)), "n@data d").shards
        >>> piece.index, piece.data.shape
        ((slice(0, 4, None), slice(0, 2, None)), (4, 2))
    """

    device: Device
    index: tuple[slice, ...]
    """The part of the array that it is."""
    data: Any
    """The piece as an array on its device."""

    __module__ = "pscdsl"


class Mesh:
    """Devices in a grid with named axes, over which arrays lie in pieces.

    The last axis has devices that are next to each other. A mesh is immutable and hashable, and
    two are equal if their axes and devices are, in their order. In a `with` block, kernels whose
    signatures name mesh axes run on the mesh.

    Args:
        given: The devices, as many as the product of the sizes; by default the first of
            `psc.devices()`. With the environment variable `PSCDSL_DEVICES=8`, a process has so many
            CPU devices.
        axes: The size of each axis, by name.

    Raises:
        ValueError: A size is not a positive integer, or the devices are not as many, or not
            different, or not of one platform.
        UnsupportedDeviceError: There are not enough devices.

    Examples:
        >>> mesh = psc.Mesh(data=1)
        >>> mesh
        Mesh(data=1)
        >>> with mesh:
        ...     x = mesh.put(np.arange(4.0), "n@data")
        >>> x.placement
        Placement(axes=(('data',),))
    """

    __slots__ = ("_axes", "_devices", "_hash")
    _axes: Mapping[str, int]
    _devices: tuple[Device, ...]
    _hash: int

    @public
    def __init__(self, given: Sequence[Device] | None = None, /, **axes: int) -> None:
        for name, size in axes.items():
            if type(size) is not int or size < 1:
                raise ValueError(f"the mesh axis `{name}` has size {size!r}: a positive integer")
        if not axes:
            raise ValueError("a mesh has at least one axis: Mesh(data=4)")
        wanted = prod(axes.values())
        named = ", ".join(f"{name}={size}" for name, size in axes.items())
        chosen = _first_devices(wanted, named) if given is None else tuple(given)
        _check(chosen, wanted, named)
        object.__setattr__(self, "_axes", MappingProxyType(dict(axes)))
        object.__setattr__(self, "_devices", chosen)
        object.__setattr__(self, "_hash", hash((tuple(axes.items()), chosen)))

    @property
    def axes(self) -> Mapping[str, int]:
        """The size of each axis by name, in order.

        Examples:
            >>> dict(psc.Mesh(data=1, model=1).axes)
            {'data': 1, 'model': 1}
        """
        return self._axes

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices in order: the last axis varies fastest.

        Examples:
            >>> psc.Mesh(data=1).devices
            (Device(platform='cpu', number=0),)
        """
        return self._devices

    @property
    def size(self) -> int:
        """The number of devices.

        Examples:
            >>> psc.Mesh(data=1, model=1).size
            1
        """
        return len(self._devices)

    @property
    def live(self) -> LiveMesh:
        """The mesh in jaxlib's form, made when first needed."""
        from pscdsl._src.xla.runtime.pieces import live_mesh  # naming a mesh needs no jaxlib

        return live_mesh(self)

    @public
    def put(self, tree: Any, placement: Any, *, local: bool = False) -> Any:
        """Return the arrays of a tree, copied to the devices of the mesh in pieces.

        An array that lies there already is returned as it is. In a job of several processes each
        of them calls `put` with the same arrays, and touches only its own pieces; with `local`,
        each has only the part of the arrays that its devices hold.

        Args:
            tree: An array or number, or a tuple, record, dict or other tree of them.
            placement: A text such as `"n@data d"` or a `Placement`, for all arrays; or a tree of
                them, of the same structure.
            local: If true, the arrays are the part of this process.

        Raises:
            PlacementError: A size does not divide into pieces, the mesh has no such axis, or an
                array has been deleted or donated.

        Examples:
            >>> mesh = psc.Mesh(data=1)
            >>> x, y = mesh.put((np.ones((4, 2)), np.ones(4)), ("n@data d", "n@data"))
            >>> len(x.shards)
            1
        """
        live = self.live
        if isinstance(placement, str | Placement) and not _is_tree(tree):
            return live.put(tree, as_placement(placement), is_local=local)
        trees: Any = import_module("pscdsl.tree.outside")  # a later room, which few calls need
        leaves = trees.flat("put", tree).leaves
        if isinstance(placement, str | Placement):
            wanted = [as_placement(placement)] * len(leaves)
        else:
            wanted = [as_placement(each) for each in _beside(tree, placement, trees)]
        moved = [
            live.put(leaf, each, is_local=local) for leaf, each in zip(leaves, wanted, strict=True)
        ]
        return trees.with_leaves("put", tree, moved)

    def __enter__(self) -> Mesh:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *problem: object) -> None:
        _entered.set(_entered.get()[:-1])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a mesh is immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a mesh is immutable: {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        same_axes = tuple(self._axes.items()) == tuple(other._axes.items())
        return self is other or (same_axes and self._devices == other._devices)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{name}={size}' for name, size in self._axes.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self._devices, dict(self._axes))

    __module__ = "pscdsl"


def _made(given: tuple[Device, ...], axes: Mapping[str, int]) -> Mesh:
    return Mesh(given, **axes)


def current_mesh() -> Mesh | None:
    """Return the mesh of the innermost `with` block that this thread or task is in."""
    entered = _entered.get()
    return entered[-1] if entered else None


@public
def place(x: R, placement: str) -> R:
    """Return an array cut along axes of the mesh, in a kernel or outside of one.

    In a kernel that runs on a mesh, pieces move between devices where the array is cut in another
    way; `pscdsl cost --mesh` tells how many bytes that sends. Outside of kernels, it is `put` on
    the mesh whose `with` block this is. Without a mesh, the array is returned as it is.

    Args:
        x: An array, or a tree of arrays of one number of axes.
        placement: A word for each axis, with the mesh axes along which it is cut: `"n@data d"`.

    Raises:
        PlacementError: A size does not divide into pieces, or the mesh has no such axis.

    Examples:
        >>> psc.place(np.arange(4.0), "n@data").shape
        (4,)
    """
    mesh = current_mesh()
    if mesh is None:
        as_placement(placement)
        return x
    moved: R = mesh.put(x, placement)
    return moved


@lru_cache(256)
def as_placement(given: object) -> Placement:
    """Return a placement that is given as a text or as such."""
    if isinstance(given, Placement):
        return given
    if isinstance(given, str):
        return Placement.parse(given)
    raise TypeError(f"a placement is a text such as 'n@data d', or a Placement, not {given!r}")


def _first_devices(wanted: int, named: str) -> tuple[Device, ...]:
    there = devices()
    if len(there) < wanted:
        platform = there[0].platform
        more = (
            f": with the environment variable {DEVICES_VARIABLE}={wanted} it has so many"
            if platform == "cpu" and there[0].process is None
            else ""
        )
        raise ValueError(
            f"Mesh({named}) needs {wanted} devices, and there {_are(len(there))} of platform "
            f"{platform}{more}"
        )
    return there[:wanted]


def _are(count: int) -> str:
    return f"is {count}" if count == 1 else f"are {count}"


def _check(chosen: tuple[Device, ...], wanted: int, named: str) -> None:
    if len(chosen) != wanted:
        raise ValueError(f"Mesh({named}) needs {wanted} devices, and {len(chosen)} are given")
    if len(set(chosen)) < wanted:
        raise ValueError(f"Mesh({named}) is given a device more than once")
    platforms = sorted({each.platform for each in chosen})
    if len(platforms) > 1:
        raise ValueError(f"Mesh({named}) is given devices of {' and '.join(platforms)}")


def _is_tree(value: Any) -> bool:
    return not (hasattr(value, "dtype") or isinstance(value, bool | int | float | complex))


def _beside(tree: Any, placements: Any, trees: Any) -> list[Any]:
    """Return the placement of each array of a tree, from a tree of placements."""
    ways = trees.Outside("put")

    def walk(value: Any, wanted: Any, path: str) -> list[Any]:
        node = ways.node(value)
        if node is None or isinstance(wanted, str | Placement):
            count = len(trees.flat("put", value).leaves)
            return [wanted] * count
        other = ways.node(wanted) if type(wanted) is type(value) else None
        if other is None or len(other.parts) != len(node.parts):
            raise PlacementError(
                f"the placements are no tree like the arrays: at `tree{path}` there is "
                f"{type(value).__name__}, and {type(wanted).__name__} for its placements"
            )
        return [
            each
            for place, (part, its) in enumerate(zip(node.parts, other.parts, strict=True))
            for each in walk(part, its, f"{path}[{place}]")
        ]

    return walk(tree, placements, "")
