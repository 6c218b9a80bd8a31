"""The contents of arrays in pieces of several processes, for each of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import numpy as np

from pscdsl._src.support.processes import once_a_client
from pscdsl._src.support.tracebacks import public
from pscdsl._src.xla.mesh_executable import MeshExecutable, mesh_executable
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import ArrayImpl, Aval
from pscdsl._src.xla.runtime.devices import NDArray, to_numpy
from pscdsl._src.xla.runtime.pieces import MeshSharding, require_undeleted
from pscdsl.typing.placements import Placement

_ELEMENTS: Final = {
    **{"bool": "i1", "complex64": "complex<f32>", "complex128": "complex<f64>"},
    **{"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64"},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
}
"""The names of dtypes in StableHLO, by NumPy's."""


@public
def gather(tree: Any) -> Any:
    """Return the contents of the arrays of a tree as NumPy's, in each process.

    In a job of several processes all of them call it, with the same arrays, and the pieces are
    sent to each. Where all pieces are in this process it is `np.asarray`.

    Args:
        tree: An array, or a tuple, record, dict or other tree of arrays.

    Examples:
        >>> mesh = psc.Mesh(data=1)
        >>> psc.gather(mesh.put(np.arange(3.0), "n@data"))
        array([0., 1., 2.])
    """
    if hasattr(tree, "dtype"):
        return _whole(tree)
    trees: Any = import_module("pscdsl.tree.outside")  # a later room, which few calls need
    leaves = trees.flat("gather", tree).leaves
    return trees.with_leaves("gather", tree, [_whole(leaf) for leaf in leaves])


def _whole(array: Any) -> NDArray:
    if type(array) is not ArrayImpl:
        host: NDArray = np.asarray(array)
        return host
    sharding: Any = array._sharding
    if not boot.is_ours(array) or sharding.is_fully_addressable:
        return to_numpy(array)
    require_undeleted(array)
    if not sharding.is_fully_replicated:
        (array,) = _gathering(sharding, array.aval).run([array])
    return to_numpy(array._arrays[0])


@once_a_client
def _programs() -> dict[tuple[MeshSharding, Aval], MeshExecutable]:
    return {}


def _gathering(sharding: MeshSharding, aval: Aval) -> MeshExecutable:
    """Return the program that gives each device the whole of an array."""
    known = _programs().get((sharding, aval))
    if known is None:
        known = _programs()[sharding, aval] = mesh_executable(
            module_text(sharding, aval),
            sharding.mesh,
            [sharding.placement],
            [Placement.whole(len(aval.shape))],
            title=f"psc.gather of an array {aval} that lies `{sharding.placement}`",
        )
    return known


def module_text(sharding: MeshSharding, aval: Aval) -> str:
    """Return a module that gathers an array along each axis that is in pieces."""
    element = _ELEMENTS[aval.dtype.name]
    shape = list(sharding.shard_shape(aval.shape))
    lines: list[str] = []
    value, kind = "%x0", _tensor(shape, element)
    first = kind
    for axis, cut in enumerate(sharding.cuts):
        if cut == 1:
            continue
        shape[axis] *= cut
        wider, made = _tensor(shape, element), f"%x{len(lines) + 1}"
        groups = _groups(sharding, axis)
        lines.append(
            f'{made} = "stablehlo.all_gather"({value}) {{all_gather_dim = {axis} : i64, '
            f"replica_groups = dense<{groups}> : tensor<{len(groups)}x{cut}xi64>}} : "
            f"({kind}) -> {wider}"
        )
        value, kind = made, wider
    body = "\n".join(lines)
    return f"func.func public @main(%x0: {first}) -> {kind} {{\n{body}\nreturn {value} : {kind}\n}}"


def _tensor(shape: list[int], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def _groups(sharding: MeshSharding, axis: int) -> list[list[int]]:
    """Return the devices that differ in the pieces along one axis alone, in the pieces' order."""
    live = sharding.live
    names = sharding.placement.axes[axis]
    own = Placement((names,))
    others = Placement(tuple([(name,) for name in live.mesh.axes if name not in names]))
    found: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for at, ((piece,), rest) in enumerate(zip(live.pieces(own), live.pieces(others), strict=True)):
        found.setdefault(rest, []).append((piece, at))
    return [[at for _, at in sorted(group)] for group in found.values()]
