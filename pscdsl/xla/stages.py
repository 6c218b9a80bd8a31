"""Long computations of elements in stages, with what goes from one to the next in memory.

XLA on CPUs fuses all that is computed element by element into one loop.  Where each operation waits
for the one before, a processor has to work on several elements at a time; but it looks only some
hundred operations ahead, and in a long loop these are all for the same elements.  In a loop of few
operations they are for several, and to write and read memory takes less time than the waiting.

A computation is cut where one value is all that is left of what was computed before.  Parts that
compute the same are calls of one function, which XLA compiles in less time than one large loop.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import prod
from typing import Any, Final

from pscdsl.forms import form
from pscdsl.xla import context as c
from pscdsl.xla.runs import Run, Step, runs

STAGES = form(
    "stages",
    "Long chains of elementwise operations of 32 bits, of which each needs the one before, in "
    "stages of 40 to 80 instead of in one loop: 0.4 to 0.75 of the time.",
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
_FREE: Final = frozenset({"stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.iota"})
"""What each stage makes for itself."""
_ATTRIBUTES: Final = "mhlo.frontend_attributes"
_APART: Final = {"inlineable": "false"}
"""XLA's word for calls that it is to leave as they are."""


def is_stage(operation: Any) -> bool:
    """Whether it is the call of a stage."""
    return operation.name == "func.call" and _ATTRIBUTES in operation.attributes


class Stages:
    """Divides the long computations of a module."""

    def __init__(self, module: Any, names: set[str]) -> None:
        self._module = module
        self._names = names
        """Of the functions of the module."""
        self._made: dict[Hashable, str] = {}
        """Functions by what they compute."""

    def divide(self, block: Any, tensors: Iterable[Any], *, in_loop: bool) -> None:
        """Divide what is computed in a block, and in those of its operations, if `tensors` may be.

        These are the types of what is computed there.
        """
        if not any(prod(c.facts(each).shape) >= FEWEST for each in tensors):
            return
        found = runs(block, FEWEST, FEWEST_IN_LOOPS, in_loop=in_loop)
        for stage in [stage for run in found for stage in _stages(run)]:
            self._outline(stage)  # by which steps of others get other operands

    def _outline(self, stage: Run) -> None:
        """Move steps to a function, and call it there; one that was made for such steps serves."""
        made, names = self._made, self._names
        for step in stage:
            step.operands = list(step.operation.operands)
        inputs, free = _taken(stage)
        key = _key(stage, inputs, free)
        known = key in made
        if not known:
            made[key] = next(name for name in map("stage_{}".format, count(1)) if name not in names)
            names.add(made[key])
        last = stage[-1]
        with c.context(), last.operation.location:
            callee = c.mlir.FlatSymbolRefAttr.get(made[key])
            call = c.mlir.Operation.create(
                "func.call",
                [last.result.type],
                inputs,
                {"callee": callee, _ATTRIBUTES: c.attribute(_APART)},
                ip=c.mlir.InsertionPoint(last.operation),
            )
            for use in list(last.result.uses):
                use.owner.operands[use.operand_number] = call.result
            if known:
                for step in reversed(stage):
                    step.operation.erase()
            else:
                _define(self._module, made[key], stage, inputs, free)


def _stages(run: Run) -> Iterator[Run]:
    """The steps of each stage but the last one, which is fused into what uses its results."""
    left = sum([step.effort for step in run])
    if left < LEAST or left * prod(c.facts(run[0].result.type).shape) < WORK:
        return
    if max([step.depth for step in run]) < WAITING * left:
        return
    places = {step.result: place for place, step in enumerate(run)}
    start = 0
    like = ""
    while (end := _end(run, places, start, left, like)) is not None:
        stage = run[start:end]
        left -= sum([step.effort for step in stage])
        start, like = end, stage[-1].name
        yield stage


def _end(run: Run, places: Mapping[Any, int], start: int, left: int, like: str) -> int | None:
    """Where the stage that starts here ends; None if it is the last one.

    Nothing behind it uses what is before, but for its last result.  That is best an expensive one:
    XLA may compute it again for each that uses it.  Stages that end alike may be the same.
    """
    taken = moved = enough = 0
    latest = 0  # the last use of what is before
    read: set[Any] = set()
    found: Step | None = None
    end: int | None = None
    for place in range(start, len(run)):
        step = run[place]
        taken += step.effort
        if found is not None and taken > 3 * enough:
            break
        for value in step.operands:
            if value not in read and places.get(value, -1) < start:
                read.add(value)
                moved += _bytes(value)
        if latest <= place < step.end:
            size = _bytes(step.result)
            enough = OPERATIONS * (moved + size)
            if 2 * (left - taken) < enough:
                break
            if size == WIDTH and taken >= enough:
                if step.name == like:
                    return place + 1
                if found is None or step.effort > found.effort:
                    found, end = step, place + 1
        latest = max(latest, step.end)
    return end


def _bytes(value: Any) -> int:
    """What an element takes, of an array that is read or written."""
    known = c.facts(value.type)
    free = prod(known.shape) < FEWEST or getattr(value.owner, "name", "") in _FREE
    return 0 if free else max(1, known.dtype.bits // 8)


def _taken(stage: Run) -> tuple[list[Any], list[Any]]:
    """What the steps of a stage use that is made elsewhere, and what it makes for itself."""
    results = {step.result for step in stage}
    free: dict[Any, None] = {}
    inputs: dict[Any, None] = {}

    def take(value: Any) -> None:
        if value in results or value in free or value in inputs:
            return
        maker = value.owner
        if getattr(maker, "name", "") in _FREE:
            for each in maker.operands:
                take(each)
            free[value] = None
        else:
            inputs[value] = None

    for step in stage:
        for value in step.operands:
            take(value)
    return list(inputs), list(free)


def _key(stage: Run, inputs: Sequence[Any], free: Sequence[Any]) -> Hashable:
    """The same for stages that compute the same."""
    numbers = {value: number for number, value in enumerate([*inputs, *free])}
    parts: list[Hashable] = [value.type for value in inputs]
    made = [(value.owner, value, list(value.owner.operands)) for value in free]
    made += [(step.operation, step.result, step.operands) for step in stage]
    for operation, result, operands in made:
        numbers.setdefault(result, len(numbers))
        parts += operation.name, result.type
        parts += [numbers[each] for each in operands]
        attributes = operation.attributes
        for number in range(len(attributes)):
            parts += attributes[number].name, attributes[number].attr
    return tuple(parts)


def _define(module: Any, name: str, stage: Run, inputs: Sequence[Any], free: Sequence[Any]) -> None:
    """Move the steps to a function of this name."""
    types = [value.type for value in inputs], [stage[-1].result.type]
    block = c.function(module, name, *types, stage[-1].operation.location)
    inner = dict(zip(inputs, block.arguments, strict=True))
    end = c.mlir.Operation.create(
        "func.return", [], [stage[-1].result], ip=c.mlir.InsertionPoint(block)
    )
    for value in free:
        copy = value.owner.clone(ip=c.mlir.InsertionPoint(end))
        _rename(copy, list(copy.operands), inner)
        inner[value] = copy.result
    for step in stage:
        step.operation.move_before(end)
        _rename(step.operation, step.operands, inner)


def _rename(operation: Any, operands: Sequence[Any], names: Mapping[Any, Any]) -> None:
    """Let an operation use other values than these operands."""
    for number, value in enumerate(operands):
        if value in names:
            operation.operands[number] = names[value]
