"""The programs of kernels on the devices of a mesh, and their modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pscdsl._src.analysis.intervals import require_fitting
from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.primitives.effects import without_effects
from pscdsl._src.support.effects import COMPILED
from pscdsl._src.transforms.partition import Partitioned
from pscdsl._src.transforms.simplify import require_compilable, with_largest
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


def module_on(
    placed: Partitioned, sizes: Mapping[str, int], device: Device, donate: Sequence[int] = ()
) -> Any:
    """Return the StableHLO of the program of a device."""
    from pscdsl._src.kernels.emission import target_of  # costs need no compiler
    from pscdsl._src.targets.pipeline import lower_module

    function = placed.function
    try:
        require_compilable(function)
        require_fitting(function, sizes)
        return lower_module(function, sizes, donate=donate, target=target_of(device))
    except Failure as failure:
        raise CheckError(failure.at(function.span).diagnostics) from None
