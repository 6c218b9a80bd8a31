"""Calls of kernels whose signatures name mesh axes: on the mesh whose `with` block this is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias

from pscdsl._src.calls import boundary
from pscdsl._src.calls.called import Called, admit
from pscdsl._src.kernels.mesh_programs import device_program
from pscdsl._src.primitives.shaping import stored
from pscdsl._src.support.effects import COMPILED
from pscdsl._src.support.tracebacks import public
from pscdsl._src.targets.cpu.loops import loop_bytes
from pscdsl._src.xla.binding import register_class
from pscdsl._src.xla.device import Device
from pscdsl._src.xla.mesh import Mesh, current_mesh
from pscdsl._src.xla.mesh_executable import MeshExecutable, mesh_executable
from pscdsl.typing.array_types import ArrayType, paths
from pscdsl.typing.placements import Placement
from pscdsl.typing.signatures import Choice

if TYPE_CHECKING:
    from pscdsl._src.kernels.reading import Reading


Make: TypeAlias = Callable[[Choice, Mapping[str, int], Mesh], tuple[MeshExecutable, Any]]
"""Makes the program on a mesh for arguments of some sizes, and the tree of its result."""


class MeshCalls:
    """Calls a function on the mesh of the innermost `with` block, or on one device without one."""

    def __init__(self, called: Called[..., Any], alone: Any, make: Make) -> None:
        self._called = called
        self._alone = alone
        """The dispatcher of calls without a mesh."""
        self._make = make
        self._made: dict[Hashable, tuple[MeshExecutable, Any]] = {}
        self._lock = RLock()

    @public
    def entry(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of a call."""
        mesh = current_mesh()
        if mesh is None:
            return self._alone.entry(*args, **kwargs)
        called = self._called
        given, types = called.arguments(args, kwargs)
        choice, sizes = called.matched(types)
        key = mesh, choice, tuple(sizes.items()), COMPILED.kinds
        with self._lock:
            known = self._made.get(key)
            if known is None:
                known = self._made[key] = self._make(choice, sizes, mesh)
        executable, tree = known
        return boundary.result(tree, iter(executable.run(given)))


def compiled(
    reading: Reading, choice: Choice, sizes: Mapping[str, int], mesh: Mesh
) -> tuple[MeshExecutable, Any]:
    """Return the program on a mesh for arguments of these sizes, and the tree of its result."""
    program = reading.instance(choice)
    admit(program.name, program.dims, program.facts, sizes)
    made = device_program(reading, choice, sizes, mesh.axes)
    placed, device = made.placed, Device(mesh.devices[0].platform)
    tree = program.result
    assert tree is not None
    boundary.register_result(tree, register_class)
    names = [path for name, each in program.parameters for path, _ in paths(each, name)]
    on_cpu = device.platform == "cpu"
    executable = mesh_executable(
        made.module(device),
        mesh,
        stored_placements(placed.arguments, placed.function.body.in_types),
        stored_placements(placed.results, placed.function.body.out_types),
        loop_bytes=loop_bytes(placed.function, made.sizes) if on_cpu else None,
        names=names,
        title=program.name,
    )
    return executable, tree


def stored_placements(
    placements: Sequence[Placement], types: Sequence[ArrayType]
) -> list[Placement]:
    """Return the placements of arrays as they are stored: keys have a last axis of two words."""
    return [
        Placement((*each.axes, *[()] * len(stored(type_))))
        for each, type_ in zip(placements, types, strict=True)
    ]
