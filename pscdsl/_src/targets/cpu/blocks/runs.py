"""What is computed element by element, one equation after the other, on arrays of one shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, prod
from typing import Final, TypeAlias

from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.pointwise import Pointwise
from pscdsl._src.primitives.shaping import Broadcast
from pscdsl._src.targets.forms import Context
from pscdsl.typing.dims import numbers

_OUTSIDE: Final = 1 << 30


class Step:
    """An equation of a run."""

    __slots__ = ("depth", "effort", "end", "equation", "operands", "result")

    def __init__(self, equation: Equation, effort: int, depth: int) -> None:
        self.equation = equation
        self.operands = [atom for atom in equation.inputs if isinstance(atom, Var)]
        (self.result,) = equation.outputs
        self.effort = effort
        """About how many operations an element takes."""
        self.depth = depth
        """How many of these, and of all before, wait for one another."""
        self.end = 0
        """The place in the run of the last one that uses the result."""


Run: TypeAlias = list[Step]
"""Equations of arrays of one shape: nothing else depends on one of them, and one of them on it."""


class Runs:
    """Finds those of a block, for arrays of at least so many elements."""

    def __init__(self, here: Context, block: Block, fewest: int) -> None:
        self.found: list[Run] = []
        self.free: dict[Atom, Equation] = {}
        """By what large arrays are made that need not be in memory."""
        self._here = here
        self._fewest = fewest
        self._steps: dict[Atom, tuple[Step, Run]] = {}
        self._growing: dict[tuple[int, ...], Run] = {}
        self._sizes: dict[Atom, float] = {}
        """How large elements are at most, where that is seen."""
        for equation in block.equations:
            if not self._is_step(equation):
                if isinstance(equation.primitive, Broadcast | Iota):
                    self.free[equation.outputs[0]] = equation
                for atom in equation.inputs:
                    self._leave(atom)
        for atom in block.results:
            self._leave(atom)

    def bytes(self, atom: Atom) -> int:
        """What an element takes, of an array that is read or written; none of small arrays."""
        if atom in self.free or prod(numbers(atom.type.shape)) < self._fewest:
            return 0
        return max(1, atom.type.dtype.bits // 8)

    def _size(self, atom: Atom) -> float:
        """How large elements are at most, where that is seen; of NaN nothing is."""
        if isinstance(atom, Literal):
            return abs(atom.value)
        return self._sizes.get(atom, inf)

    def _is_step(self, equation: Equation) -> bool:
        """Add an equation to the run that it belongs to, if there is one."""
        if not isinstance(equation.primitive, Pointwise) or len(equation.outputs) != 1:
            return False
        shape = numbers(equation.outputs[0].type.shape)
        if prod(shape) < self._fewest:
            return False
        sizes = [self._size(each) for each in equation.inputs]
        known = self._here.effort_of(equation, sizes)
        if known is None:
            return False
        self._sizes[equation.outputs[0]] = known.size
        run = self._growing.get(shape)
        if run is None:
            run = self._growing[shape] = []
            self.found.append(run)
        step = Step(equation, known.total, known.depth)
        own = step.depth
        for value in step.operands:
            used, home = self._steps.get(value, (None, None))
            if used is not None and home is run:
                used.end = len(run)
                step.depth = max(step.depth, used.depth + own)
            else:
                self._leave(value)
        run.append(step)
        self._steps[step.result] = step, run
        return True

    def _leave(self, value: Atom) -> None:
        """Complete the run of a value: something else uses it."""
        if value in self._steps:
            used, home = self._steps[value]
            used.end = _OUTSIDE
            shape = numbers(value.type.shape)
            if self._growing.get(shape) is home:
                del self._growing[shape]


def taken(
    equations: Sequence[Equation], free: Mapping[Atom, Equation]
) -> tuple[list[Var], list[Equation]]:
    """What equations use that is made elsewhere, and what they make for themselves."""
    results = {output for each in equations for output in each.outputs}
    inputs: dict[Var, None] = {}
    own: dict[Var, Equation] = {}

    def take(value: Atom) -> None:
        if value in results or value in inputs or value in own or not isinstance(value, Var):
            return
        maker = free.get(value)
        if maker is None:
            inputs[value] = None
            return
        for each in maker.inputs:
            take(each)
        own[value] = maker

    for equation in equations:
        for value in equation.inputs:
            take(value)
    return list(inputs), list(own.values())
