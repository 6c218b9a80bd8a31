"""The bytes that the devices of a mesh send each other, counted from the program of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from pscdsl._src.analysis.cost import bytes_of
from pscdsl._src.ir.program import Block, Equation, Function, callees, walk
from pscdsl._src.primitives.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    ReduceScatter,
)
from pscdsl._src.primitives.control import Call, Control
from pscdsl._src.transforms.partition import Partitioned
from pscdsl.typing.codes.performance import ArrayGathered
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import Size, substitute

SENDING = (AllReduce, AllGather, ReduceScatter, AllToAll)
"""The primitives for which something is sent."""


def sent(program: Partitioned) -> dict[str, Size]:
    """Return the bytes of the results of collectives on a device, by the axes of the mesh.

    A ring of R devices sends and receives `2*(R-1)/R` times as many for a sum, `(R-1)/R` times for
    arrays that are put together. Of branches the most counts, and of loops all steps.
    """
    facts = program.function.facts
    found = dict(_of_function(program.function))
    return {axes: facts.simplify(size) for axes, size in sorted(found.items())}


@lru_cache(maxsize=256)
def _of_function(function: Function) -> Mapping[str, Size]:
    return _of_block(function.body)


def _of_block(block: Block) -> Mapping[str, Size]:
    total: dict[str, Size] = {}
    for equation in block.equations:
        for axes, size in _of_equation(equation).items():
            total[axes] = total.get(axes, 0) + size
    return total


def _of_equation(equation: Equation) -> Mapping[str, Size]:
    primitive = equation.primitive
    if isinstance(primitive, SENDING):
        return {"@".join(primitive.over): bytes_of(equation.outputs[0].type)}
    if isinstance(primitive, Call):
        env = dict(primitive.sizes)
        inner = _of_function(primitive.function)
        return {axes: substitute(size, env) for axes, size in inner.items()}
    if isinstance(primitive, Control):
        layout = primitive.layout
        inside = [_of_block(region.block) for region in layout.run]
        every = dict.fromkeys(axes for each in inside for axes in each)
        return {
            axes: layout.total(lambda block, axes=axes: _of_block(block).get(axes, 0))  # type: ignore[misc]
            for axes in every
        }
    return {}


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


__all__ = ["collectives", "gathers", "sent"]
