"""The equations of a program on a mesh by which its devices send each other something."""

from __future__ import annotations

from collections.abc import Iterator

from pscdsl._src.analysis.cost import bytes_of
from pscdsl._src.ir.program import Equation, Function, callees, walk
from pscdsl._src.primitives.collectives import SENDING, AllGather
from pscdsl._src.transforms.partition import Partitioned
from pscdsl.typing.codes.performance import ArrayGathered
from pscdsl.typing.diagnostics import Diagnostic


def collectives(function: Function) -> Iterator[Equation]:
    """Yield the equations of a program, and of what it calls, for which something is sent."""
    due, met = [function], {function}
    while due:
        current = due.pop()
        for equation in walk(current.body):
            if isinstance(equation.primitive, SENDING):
                yield equation
        for callee in callees(current.body):
            if callee not in met:
                met.add(callee)
                due.append(callee)


def gathers(program: Partitioned) -> list[Diagnostic]:
    """Return a warning for each array that is put together although nobody asked for it."""
    found: dict[Diagnostic, None] = {}
    for equation in collectives(program.function):
        primitive = equation.primitive
        if isinstance(primitive, AllGather) and not primitive.asked:
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


__all__ = ["collectives", "gathers"]
