"""The contents of arrays in pieces of several processes, for each of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.ir.program import Block, Function, Var
from pscdsl._src.kernels.emission import emitted
from pscdsl._src.support.processes import once_a_client
from pscdsl._src.support.tracebacks import public
from pscdsl._src.transforms.partition import partition
from pscdsl._src.xla.device import Device
from pscdsl._src.xla.mesh_executable import MeshExecutable, mesh_executable
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import ArrayImpl, Aval
from pscdsl._src.xla.runtime.devices import NDArray, to_numpy
from pscdsl._src.xla.runtime.pieces import MeshSharding, require_undeleted
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import variable
from pscdsl.typing.placements import Placement


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
            _module(sharding, aval),
            sharding.mesh,
            [sharding.placement],
            [Placement.whole(len(aval.shape))],
            title=f"psc.gather of an array {aval} that lies `{sharding.placement}`",
        )
    return known


def _module(sharding: MeshSharding, aval: Aval) -> Any:
    """Return the module of a device for the program that returns an array as a whole."""
    dims = tuple([f"n{axis}" for axis in range(len(aval.shape))])
    x = Var(ArrayType(from_numpy(aval.dtype), tuple(map(variable, dims))))
    facts = Assumptions(tuple([Fact("<=", 0, variable(name)) for name in dims]))
    program = Function("gather", dims, facts, Block((x,), (), (x,)))
    axes, whole = sharding.mesh.axes, Placement.whole(len(dims))
    placed = partition(program, [sharding.placement], [whole], tuple(axes))
    sizes = placed.sizes(dict(zip(dims, aval.shape, strict=True)), axes)
    device = Device(sharding.mesh.devices[0].platform)
    return emitted(placed.function, sizes, device=device)
