"""What forward mode cannot pass: functions that only say how to go backwards."""

from __future__ import annotations

from collections.abc import Sequence

from pscdsl._src.ir.program import Block, Equation, Function, walk
from pscdsl._src.ir.regions import functions_in
from pscdsl._src.primitives.control.custom_derivatives import BackwardOnly
from pscdsl.typing.codes.derivatives import NoForwardMode
from pscdsl.typing.diagnostics import Failure


def require_forward(equations: Sequence[Equation]) -> None:
    """Refuse equations, or functions that they call, with tangents that nobody can compute."""
    met: set[Function] = set()
    due = [Block((), tuple(equations), ())]
    while due:
        for equation in walk(due.pop()):
            primitive = equation.primitive
            if isinstance(primitive, BackwardOnly):
                raise Failure(NoForwardMode(function=primitive.function)).at(equation.span)
            for function in functions_in(primitive):
                if function not in met:
                    met.add(function)
                    due.append(function.body)
