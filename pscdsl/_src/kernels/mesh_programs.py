"""The programs of kernels on the devices of a mesh, and their modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.language.donation import matched
from pscdsl._src.primitives.effects import without_effects
from pscdsl._src.support.effects import COMPILED, Kind
from pscdsl._src.transforms.partition import Partitioned
from pscdsl._src.transforms.simplify import with_largest
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.signatures import Choice, Signature

if TYPE_CHECKING:
    from pscdsl._src.kernels.reading import Reading
    from pscdsl._src.xla.device import Device


def on_mesh(
    reading: Reading,
    choice: Choice,
    mesh: Sequence[str],
    effects: frozenset[Kind] | None = None,
) -> Partitioned:
    """Return the program of each device of a mesh with these axes; or raise CheckError.

    It has these kinds of effects, by default all that are compiled.
    """
    definition = reading.definition
    kinds = COMPILED.kinds if effects is None else effects
    program = without_effects(reading.instance(choice, over_mesh=True), kinds)
    try:
        placed = definition.partitioned(program, choice, mesh)
    except Failure as failure:
        raise CheckError(failure.at(definition.head).diagnostics) from None
    function = replace(with_largest(placed.function), fast_math=bool(definition.fast_math))
    return replace(placed, function=function)


def require_axes(name: str, signature: Signature, mesh: Mapping[str, int]) -> None:
    """Refuse a mesh that cannot be, or for a kernel that runs on one device."""
    if not mesh:
        raise ArgumentError("a mesh has at least one axis, for instance data=8")
    for axis, size in mesh.items():
        if type(size) is not int or size < 1:
            raise ArgumentError(f"the mesh axis `{axis}` has size {size}: a positive integer")
    if not signature.mesh_axes():
        raise ArgumentError(f"the signature of {name} names no mesh axis: it runs on 1 device")


def sizes_on(
    placed: Partitioned, sizes: Mapping[str, int], mesh: Mapping[str, int]
) -> dict[str, int]:
    """Return the sizes of the program of a device; an ArgumentError if pieces are not equal."""
    try:
        return placed.sizes(sizes, mesh)
    except Failure as failure:
        (finding,) = failure.diagnostics
        raise ArgumentError(f"{placed.function.name}: {finding.message()}") from None


@dataclass(frozen=True)
class DeviceProgram:
    """The program of each device of a mesh, at numbers for its sizes."""

    placed: Partitioned
    sizes: Mapping[str, int]
    donate: tuple[int, ...]
    """The indices of the arguments that give their memory to results."""

    def module(self, device: Device, *, portable: bool = False) -> Any:
        """Return its StableHLO for a device; CheckError without a rule."""
        from pscdsl._src.kernels.emission import emitted  # costs need no compiler

        return emitted(
            self.placed.function, self.sizes, self.donate, device=device, portable=portable
        )


def device_program(
    reading: Reading,
    choice: Choice,
    sizes: Mapping[str, int],
    mesh: Mapping[str, int],
    *,
    donate: Sequence[str] | None = None,
    effects: frozenset[Kind] | None = None,
) -> DeviceProgram:
    """Return the program of each device of a mesh for whole arrays of these sizes.

    Results may take the memory of the parameters to `donate`, by default those of the kernel.
    """
    placed = on_mesh(reading, choice, tuple(mesh), effects)
    body = placed.function.body
    donated = matched(  # pieces of one type lie in the same way only at one placement
        reading.instance(choice),
        reading.donated_names() if donate is None else donate,
        [*zip(body.in_types, placed.arguments, strict=True)],
        [*zip(body.out_types, placed.results, strict=True)],
    )
    return DeviceProgram(placed, sizes_on(placed, sizes, mesh), tuple(sorted(donated)))
