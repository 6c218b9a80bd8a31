"""Long computations of elements in stages, with what goes from one to the next in memory.

XLA on CPUs fuses all that is computed element by element into one loop.  Where each operation waits
for the one before, a processor has to work on several elements at a time; but it looks only some
hundred operations ahead, and in a long loop these are all for the same elements.  In a loop of few
operations they are for several, and to write and read memory takes less time than the waiting.

A computation is cut where one value is all that is left of what was computed before.  Parts that
compute the same are calls of one function, which XLA compiles in less time than one large loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Equation
from pscdsl._src.targets.cpu.blocks.runs import Run, Runs, taken
from pscdsl._src.targets.forms import Context, Form
from pscdsl._src.targets.primitives import Apart
from pscdsl.typing.dims import numbers

STAGES = Form(
    "stages",
    "Long chains of elementwise operations of 32 bits, of which each needs the one before, in "
    "stages of 40 to 80 instead of in one loop: 0.4 to 0.65 of the time.",
)
OPERATIONS: Final = 4
"""For a byte that a stage reads or writes; with fewer it waits for the memory."""
LEAST: Final = 160
"""Fewer operations are left in one loop."""
WORK: Final = 1 << 26
"""The same of those for all elements: several loops are mostly compiled in more time than one."""
WAITING: Final = 0.6
"""The part of the operations that wait for one another; with fewer, one element keeps a processor
busy."""
FEWEST: Final = 1 << 16
"""Elements; with fewer, to start a loop takes as much."""
FEWEST_IN_LOOPS: Final = 1 << 19
"""The same within a loop.  XLA cannot call a function whose operations have several threads in a
loop that is native: one that moves so many elements is none, by any bound (`loops.LARGEST`)."""
WIDTH: Final = 4
"""Bytes of the value that goes from stage to stage; with f64 nothing is gained."""


@STAGES.block_pass
def with_stages(block: Block, here: Context) -> Block:
    """The block with each stage as one equation; itself if there is none."""
    if len(block.equations) < 2:
        return block
    runs = Runs(here, block, FEWEST_IN_LOOPS if here.in_loop else FEWEST)
    instead: dict[Equation, Equation | None] = {}
    for run in runs.found:
        for stage in _stages(runs, run):
            last = stage[-1]
            steps = [step.equation for step in stage]
            inputs, own = taken(steps, runs.free)
            part = Block(tuple(inputs), (*own, *steps), (last.result,))
            instead.update(dict.fromkeys(steps))
            instead[last.equation] = Equation(
                Apart(part), part.params, (last.result,), last.equation.span
            )
    if not instead:
        return block
    equations = [instead.get(each, each) for each in block.equations]
    return Block(block.params, tuple([x for x in equations if x is not None]), block.results)


def _stages(runs: Runs, run: Run) -> Iterator[Run]:
    """The steps of each stage; the last one is fused into what uses it, unless it is as another."""
    left = sum([step.effort for step in run])
    if left < LEAST or left * prod(numbers(run[0].result.type.shape)) < WORK:
        return
    if max([step.depth for step in run]) < WAITING * left:
        return
    cuts = _Cuts(runs, run)
    stage: Run = []
    start = 0
    while (end := cuts.end(start, left)) is not None:
        stage = run[start:end]
        left -= sum([step.effort for step in stage])
        start = end
        yield stage
    last = run[start:]
    is_one = all([step.end < len(run) for step in last[:-1]])
    if stage and is_one and _primitives(last) == _primitives(stage):
        yield last


def _primitives(stage: Run) -> list[Primitive]:
    return [step.equation.primitive for step in stage]


class _Cuts:
    """Where stages of a run may end."""

    def __init__(self, runs: Runs, run: Run) -> None:
        self._run = run
        self._places = {step.result: place for place, step in enumerate(run)}
        self._last: dict[Atom, int] = {}
        """The last place that uses a value from elsewhere."""
        for place, step in enumerate(run):
            for value in step.operands:
                if value not in self._places:
                    self._last[value] = place
        self._bytes = {value: runs.bytes(value) for value in (*self._places, *self._last)}
        self._like: Primitive | None = None
        """What the stage before ended with."""

    def end(self, start: int, left: int) -> int | None:
        """Where the stage that starts here ends, of so many operations; None if it is the last one.

        Nothing behind it uses what is computed before, but for its last result, and what it reads
        is read again as little as can be.  Best that result is of a function that bounds it, as
        expensive ones mostly are.  Stages that end alike may be the same.
        """
        taken = moved = enough = 0
        latest = 0  # the last use of what is before
        read: set[Atom] = set()
        best: tuple[int, int, int] | None = None
        for place in range(start, len(self._run)):
            step = self._run[place]
            taken += step.effort
            if best is not None and taken > 3 * enough:
                break
            for value in step.operands:
                if value not in read and self._places.get(value, -1) < start:
                    read.add(value)
                    moved += self._bytes[value]
            if latest <= place < step.end:
                size = self._bytes[step.result]
                enough = OPERATIONS * (moved + size)
                if 2 * (left - taken) < enough:
                    break
                if size == WIDTH and taken >= enough:
                    if step.equation.primitive == self._like:
                        return place + 1
                    again = sum([self._bytes[x] for x in read if self._last.get(x, -1) > place])
                    if best is None or (again, -step.effort) < best[:2]:
                        best = again, -step.effort, place
            latest = max(latest, step.end)
        if best is None:
            return None
        self._like = self._run[best[2]].equation.primitive
        return best[2] + 1
