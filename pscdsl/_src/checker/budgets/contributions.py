"""Where a program costs what it costs: the equations, and arrays, that take most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pscdsl._src.analysis.cost import moments
from pscdsl._src.analysis.traffic import bytes_of, traffic
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Var
from pscdsl._src.primitives.control import Control
from pscdsl.typing.diagnostics import Label
from pscdsl.typing.dims import Size, evaluate
from pscdsl.typing.spans import NOWHERE, Span

_MOST = 3
_LEAST = 0.05
"""What takes less than this part is not worth naming."""


def contributions(function: Function, measure: str, sizes: Mapping[str, int]) -> tuple[Label, ...]:
    """The places in the source that have most of a cost at these sizes, with their part of it."""
    found: dict[Span, Size] = {}
    for span, amount in _amounts(function, measure, sizes):
        frames = [each for each in reversed(span.frames()) if each != function.span]
        place = frames[0] if frames else span
        if place is not NOWHERE:
            found[place] = found.get(place, 0) + amount
    numbers = {span: evaluate(amount, sizes) for span, amount in found.items()}
    total = sum(numbers.values())
    ranked = sorted(numbers, key=lambda span: (-numbers[span], span.line, span.column))
    return tuple(
        [
            Label(span, f"{found[span]}, {100 * numbers[span] / total:.0f} %")
            for span in ranked[:_MOST]
            if numbers[span] >= _LEAST * total > 0
        ]
    )


def _amounts(
    function: Function, measure: str, sizes: Mapping[str, int]
) -> Iterator[tuple[Span, Size]]:
    match measure:
        case "flops":
            yield from _counted(function.body, _flops, 1)
        case "bytes":
            yield from _counted(function.body, traffic, 1)
        case "arguments":
            for var in function.body.params:
                yield var.origin, bytes_of(var.type)
        case "results":
            made = _makers(function.body)
            for atom in function.body.results:
                yield made.get(atom, NOWHERE), bytes_of(atom.type)
        case _:
            yield from _alive(function, sizes)


def _counted(
    block: Block, count: Callable[[Equation], Size], times: Size
) -> Iterator[tuple[Span, Size]]:
    """What each equation takes, those of loops with all their steps."""
    for equation in block.equations:
        primitive = equation.primitive
        runs = primitive.runs() if isinstance(primitive, Control) else ()
        if not runs:
            yield equation.span, count(equation) * times
        for inner, repeated in runs:
            yield from _counted(inner, count, times * repeated)


def _flops(equation: Equation) -> Size:
    inputs = tuple([atom.type for atom in equation.inputs])
    return equation.primitive.cost(inputs, tuple([var.type for var in equation.outputs]))


def _makers(block: Block) -> dict[Atom, Span]:
    """Where each variable is made."""
    made: dict[Atom, Span] = {var: var.origin for var in block.params}
    for equation in block.equations:
        made.update(dict.fromkeys(equation.outputs, equation.span))
    return made


def _alive(function: Function, sizes: Mapping[str, int]) -> Iterator[tuple[Span, Size]]:
    """What is in memory at the moment when most is."""
    block = function.body
    totals = list(moments(function.facts, block))
    amounts = [evaluate(each, sizes) for each in totals]
    worst = max(range(len(amounts)), key=amounts.__getitem__)
    first: dict[Atom, int] = {var: 0 for var in block.params}
    last: dict[Atom, int] = {}
    for place, equation in enumerate(block.equations, 1):
        last.update(dict.fromkeys(equation.inputs, place))
        for var in equation.outputs:
            first[var] = last[var] = place
    last.update(dict.fromkeys((*block.params, *block.results), len(amounts)))
    made = _makers(block)
    there: Size = 0
    for atom, start in first.items():
        if isinstance(atom, Var) and start <= worst <= last[atom]:
            there = there + bytes_of(atom.type)
            yield made[atom], bytes_of(atom.type)
    if worst:  # what the equation needs inside, its own operands and results left out
        yield block.equations[worst - 1].span, totals[worst] - there
