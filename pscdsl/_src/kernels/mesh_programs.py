"""The programs of kernels on the devices of a mesh, and their modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.language.donation import matched
from pscdsl._src.primitives.effects import without_effects
from pscdsl._src.support.effects import COMPILED
from pscdsl._src.transforms.partition import Partitioned
from pscdsl._src.transforms.simplify import with_largest
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.signatures import Choice

if TYPE_CHECKING:
    from pscdsl._src.kernels.reading import Reading
    from pscdsl._src.xla.device import Device


def on_mesh(reading: Reading, choice: Choice, mesh: Sequence[str]) -> Partitioned:
    """Return the program of each device of a mesh with these axes; or raise CheckError."""
    definition = reading.definition
    program = without_effects(reading.instance(choice), COMPILED.kinds)
    try:
        placed = definition.partitioned(program, choice, mesh)
    except Failure as failure:
        raise CheckError(failure.at(definition.head).diagnostics) from None
    function = replace(with_largest(placed.function), fast_math=bool(definition.fast_math))
    return replace(placed, function=function)


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

    def module(self, device: Device) -> Any:
        """Return its StableHLO for a device; CheckError without a rule."""
        from pscdsl._src.kernels.emission import emitted  # costs need no compiler

        return emitted(self.placed.function, self.sizes, self.donate, device=device)


def device_program(
    reading: Reading, choice: Choice, sizes: Mapping[str, int], mesh: Mapping[str, int]
) -> DeviceProgram:
    """Return the program of each device of a mesh for whole arrays of these sizes."""
    placed = on_mesh(reading, choice, tuple(mesh))
    body = placed.function.body
    donated = matched(  # pieces of one type lie in the same way only at one placement
        reading.instance(choice),
        reading.donated_names(),
        [*zip(body.in_types, placed.arguments, strict=True)],
        [*zip(body.out_types, placed.results, strict=True)],
    )
    return DeviceProgram(placed, sizes_on(placed, sizes, mesh), tuple(sorted(donated)))
