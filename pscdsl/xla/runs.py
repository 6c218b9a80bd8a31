"""What is computed element by element, one operation after the other, on arrays of one shape."""

from __future__ import annotations

from math import prod
from typing import Any, Final, TypeAlias

from pscdsl.xla import context as c
from pscdsl.xla.effort import weight

_OUTSIDE: Final = 1 << 30


class Step:
    """An operation of a run."""

    __slots__ = ("depth", "effort", "end", "name", "operands", "operation", "result")

    def __init__(self, operation: Any, effort: int) -> None:
        self.operation = operation
        self.name: str = operation.name
        self.operands = list(operation.operands)
        self.result = operation.result
        self.effort = effort
        self.depth = effort
        """The effort of all that it waits for, and its own."""
        self.end = 0
        """The place in the run of the last one that uses the result."""


Run: TypeAlias = list[Step]
"""Operations on arrays of one shape: nothing else depends on one of them, and one of them on it."""


def runs(block: Any, fewest: int, in_loops: int, *, in_loop: bool) -> list[Run]:
    """The runs of a block and of those of its operations, on arrays of at least so many elements.

    `in_loops` are the fewest within a loop; `in_loop` says that the block is in one.
    """
    return _Finder(fewest, in_loops).visit(block, in_loop=in_loop)


class _Finder:
    """Finds them, from the first operation to the last."""

    def __init__(self, fewest: int, in_loops: int) -> None:
        self._fewest = fewest
        self._in_loops = in_loops
        self._steps: dict[Any, tuple[Step, Run]] = {}
        self._growing: dict[tuple[int, ...], Run] = {}
        self._found: list[Run] = []

    def visit(self, block: Any, *, in_loop: bool) -> list[Run]:
        """All that were found, once it is known what uses their results."""
        fewest = self._in_loops if in_loop else self._fewest
        self._growing = {}
        for operation in block.operations:
            name = operation.name
            effort = weight(name)
            run = None if effort is None else self._run(operation.result, fewest)
            if run is not None and effort is not None:
                self._grow(run, Step(operation, effort))
                continue
            for value in operation.operands:
                self._leave(value)
            for region in operation.regions:
                for inner in region.blocks:
                    self.visit(inner, in_loop=in_loop or name == "stablehlo.while")
                    self._growing = {}  # what follows may depend on all that is used there
        return self._found

    def _run(self, result: Any, fewest: int) -> Run | None:
        """The run that operations with such a result belong to."""
        shape = c.facts(result.type).shape
        run = self._growing.get(shape)
        if run is None and prod(shape) >= fewest:
            run = self._growing[shape] = []
            self._found.append(run)
        return run

    def _grow(self, run: Run, step: Step) -> None:
        for value in step.operands:
            used, home = self._steps.get(value, (None, None))
            if used is not None and home is run:
                used.end = len(run)
                step.depth = max(step.depth, used.depth + step.effort)
            else:
                self._leave(value)
        run.append(step)
        self._steps[step.result] = step, run

    def _leave(self, value: Any) -> None:
        """Complete the run of a value: something else uses it."""
        if value in self._steps:
            used, home = self._steps[value]
            used.end = _OUTSIDE
            shape = c.facts(value.type).shape
            if self._growing.get(shape) is home:
                del self._growing[shape]
