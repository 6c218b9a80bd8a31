"""Warnings about what the devices of a mesh send each other."""

from __future__ import annotations

from pscdsl._src.analysis.cost import bytes_of
from pscdsl._src.ir.program import walk_called
from pscdsl._src.primitives.collectives import AllGather
from pscdsl._src.transforms.partition import Partitioned
from pscdsl.typing.codes.performance import ArrayGathered
from pscdsl.typing.diagnostics import Diagnostic


def gathers(program: Partitioned) -> list[Diagnostic]:
    """Return a warning for each array that is put together although nobody asked for it."""
    found: dict[Diagnostic, None] = {}
    for equation in walk_called(program.function.body):
        primitive = equation.primitive
        if isinstance(primitive, AllGather) and not primitive.meant:
            (result,) = equation.outputs
            found[
                ArrayGathered(
                    array=str(result.type),
                    along="@".join(primitive.over),
                    bytes=str(bytes_of(result.type)),
                    span=equation.span,
                )
            ] = None
    return list(found)
