"""The length of a module's longest chain of dependent operations.

Where XLA's older emitter makes a loop of fused operations, it visits the operands of each by
recursion, in threads with 2 MB of stack: a chain of some 6,000 operations ends the process. It
makes the loops within native functions (`compile_module`); the newer emitter visits operations in
order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.facts import is_apart

DEEPEST: Final = 1500
"""The longest chain of operations that is left to the older emitter."""
_OF_CHLO: Final = 50
"""Into how many one of CHLO is translated, about."""
_STORED: Final = frozenset(
    f"stablehlo.{name}"
    for name in "case convolution custom_call dot_general fft sort triangular_solve while".split()
)
"""Operations whose results are in memory, and which XLA fuses with no others."""


class Circle(ValueError):
    """Functions of a module call each other in a circle, which XLA follows for ever."""


class Depths:
    """The depth of each function of a module; a call is as deep as the function called.

    Raise a `Circle` if functions call each other recursively, as in no module of ours.
    """

    def __init__(self, module: Any) -> None:
        self._deepest: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        self.loops = 0
        """The depth of the deepest body of a loop."""
        functions = {_name(each): each for each in module.body.operations}
        for name in _callees_first(functions):
            self._length = 0
            self._deepest[name] = self._region(functions[name].regions[0])
            self._lengths[name] = self._length

    @property
    def main(self) -> int:
        """Return the depth of the public function."""
        return self._deepest["main"]

    @property
    def length(self) -> int:
        """Return the number of its operations after inlining the calls."""
        return self._lengths["main"]

    def _region(self, region: Any) -> int:
        deepest = 0
        for block in region.blocks:
            depths: dict[Any, int] = {}
            for operation in block.operations:
                self._length += self._written_out(operation)
                below = [self._region(inner) for inner in operation.regions]
                if operation.name == "stablehlo.while":
                    self.loops = max(self.loops, *below)
                before = max([depths.get(operand, 0) for operand in operation.operands], default=0)
                depth = before + self._own(operation)
                deepest = max(deepest, depth)
                kept = 0 if operation.name in _STORED or is_apart(operation) else depth
                for result in operation.results:
                    depths[result] = kept
        return deepest

    def _written_out(self, operation: Any) -> int:
        return self._lengths[_called(operation)] if operation.name == "func.call" else 1

    def _own(self, operation: Any) -> int:
        if operation.name == "func.call":
            return self._deepest[_called(operation)]
        return _OF_CHLO if operation.name.startswith("chlo.") else 1


def _callees_first(functions: dict[str, Any]) -> Iterator[str]:
    """Yield the names of functions, each after its callees, which may be a long chain."""
    done: set[str] = set()
    begun: set[str] = set()
    due = [*functions]
    while due:
        name = due[-1]
        before = [] if name in done else [x for x in _calls(functions[name]) if x not in done]
        if before:
            if not begun.isdisjoint(before):
                raise Circle(f"its function `{name}` calls one that calls it")
            begun.add(name)
            due += before
            continue
        due.pop()
        if name not in done:
            done.add(name)
            yield name


def _calls(function: Any) -> list[str]:
    found: dict[str, None] = {}

    def visit(operation: Any) -> Any:
        if operation.name == "func.call":
            found[_called(operation)] = None
        return c.mlir.WalkResult.ADVANCE

    function.operation.walk(visit)
    return [*found]


def _called(operation: Any) -> str:
    return str(operation.attributes["callee"].value)


def _name(function: Any) -> str:
    return str(function.attributes["sym_name"].value)
