"""The programs of kernels on the devices of a mesh, and their modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.ir.program import Function
from pscdsl._src.primitives.effects import without_effects
from pscdsl._src.support.effects import COMPILED
from pscdsl._src.transforms.partition import Partitioned
from pscdsl._src.transforms.simplify import with_largest
from pscdsl.typing.array_types import leaves
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
    donated = _donated(reading.instance(choice), placed, reading.donated_names())
    return DeviceProgram(placed, sizes_on(placed, sizes, mesh), tuple(donated))


def _donated(program: Function, placed: Partitioned, names: Sequence[str]) -> Iterator[int]:
    """Yield the indices of the arguments that give their memory to results of their placement."""
    body = placed.function.body
    free = Counter(zip(body.out_types, placed.results, strict=True))
    owners = [name for name, tree in program.parameters for _ in leaves(tree)]
    arguments = zip(owners, body.in_types, placed.arguments, strict=True)
    for at, (name, type_, placement) in enumerate(arguments):
        if name in names and free[type_, placement] > 0:
            free[type_, placement] -= 1
            yield at
