"""Running a kernel by NumPy's meaning, one equation after another: `kernel.interpret(…)`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pscdsl._src.analysis.show import show_equation
from pscdsl._src.calls import boundary
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import Equation, Evaluator, Function
from pscdsl._src.primitives.effects import shown_at
from pscdsl._src.xla.runtime.boot import ArrayImpl
from pscdsl._src.xla.runtime.devices import to_numpy as contents
from pscdsl.typing.signatures import Choice

if TYPE_CHECKING:
    from pscdsl._src.kernels.kernel import Kernel


@dataclass(frozen=True)
class InterpretedStep:
    """An equation that was computed."""

    path: str
    line: int
    """The place in the source."""
    operation: str
    """The equation, as `kernel.ir()` writes it."""
    operands: tuple[NDArray, ...]
    results: tuple[NDArray, ...]
    source: str
    """The line of the source, with its place."""

    def __str__(self) -> str:
        return f"{self.source.strip()}\n  {self.operation}"


Watcher = Callable[[InterpretedStep], object]


class _Stepping(Evaluator):
    """Runs a program, and gives each step to a function."""

    def __init__(
        self, sizes: Mapping[str, int], watcher: Watcher | None, breakpoints: Collection[int]
    ) -> None:
        super().__init__(sizes)
        self._watcher, self._breakpoints = watcher, breakpoints

    def results(self, equation: Equation, inputs: Sequence[NDArray]) -> Sequence[NDArray]:
        results = super().results(equation, inputs)
        span, text = equation.span, show_equation(equation)
        step = InterpretedStep(
            span.path, span.line, text, tuple(inputs), tuple(results), shown_at(span)
        )
        if self._watcher is not None:
            self._watcher(step)
        if span.line in self._breakpoints:
            breakpoint()  # `step` has the operands and the results
        return results

    def at(self, sizes: Mapping[str, int]) -> Evaluator:
        return _Stepping(sizes, self._watcher, self._breakpoints)


def interpret(
    kernel: Kernel[..., Any],
    instance: Callable[[Choice], Function],
    call: tuple[tuple[Any, ...], dict[str, Any]],
    watcher: Watcher | None,
    breakpoints: Collection[int],
) -> Any:
    """Return the result of a call, computed by NumPy; `watcher` gets each step."""
    leaves, types = kernel.arguments(*call)
    choice, sizes = kernel.matched(types)
    program = instance(choice)

    arrays = [
        np.asarray(contents(leaf) if type(leaf) is ArrayImpl else leaf, to_numpy(type_.dtype))
        for leaf, type_ in zip(leaves, program.body.in_types, strict=True)
    ]
    with np.errstate(all="ignore"):
        results = _Stepping(sizes, watcher, breakpoints).block(program.body, arrays)
    assert program.result is not None
    return boundary.result(program.result, iter(results))
