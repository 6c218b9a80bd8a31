"""The search for the equation that makes a NaN or an infinity, by the NumPy meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import (
    Atom,
    Block,
    Equation,
    Evaluator,
    Function,
    Literal,
    literal_array,
)
from pscdsl._src.primitives.effects import shown_at

IsBad = Callable[[NDArray], bool]
_SHOWN = 8
"""The most elements of an operand that are shown."""


@dataclass(frozen=True)
class BadValueSource:
    """The equation that makes a value which none of its operands has."""

    equation: Equation
    operands: tuple[NDArray, ...]

    def __str__(self) -> str:
        lines = [f"it is made by `{self.equation.primitive.label}`"]
        lines += [shown_at(span) for span in self.equation.span.frames()]
        for atom, operand in zip(self.equation.inputs, self.operands, strict=True):
            called = getattr(atom, "hint", "") or "operand"
            shown = np.array2string(operand, threshold=_SHOWN, edgeitems=2)
            lines.append(f"    {called} = {shown}")
        return "\n".join(lines)


class _Found(Exception):
    def __init__(self, source: BadValueSource) -> None:
        super().__init__()
        self.source = source


class _Searching(Evaluator):
    """Runs a program until a block returns a bad value, and looks for its source there."""

    def __init__(self, sizes: Mapping[str, int], is_bad: IsBad) -> None:
        super().__init__(sizes)
        self._is_bad = is_bad

    def block(self, block: Block, operands: Sequence[NDArray]) -> tuple[NDArray, ...]:
        values: dict[Atom, NDArray] = dict(zip(block.params, operands, strict=True))
        plain = Evaluator(self.sizes)
        made: dict[Atom, Equation] = {}

        def value(atom: Atom) -> NDArray:
            return literal_array(atom) if isinstance(atom, Literal) else values[atom]

        for equation in block.equations:
            results = plain.results(equation, [value(atom) for atom in equation.inputs])
            values.update(zip(equation.outputs, results, strict=True))
            made.update(dict.fromkeys(equation.outputs, equation))
        results = tuple([value(atom) for atom in block.results])
        if any(has(self._is_bad, x) for x in operands):
            return results  # it was there before
        for atom in block.results:
            if has(self._is_bad, value(atom)) and atom in made:
                self._trace(atom, made, value)
        return results

    def _trace(
        self, atom: Atom, made: Mapping[Atom, Equation], value: Callable[[Atom], NDArray]
    ) -> None:
        """Raise the source of a bad value."""
        equation = made[atom]
        while True:
            bad = [x for x in equation.inputs if x in made and has(self._is_bad, value(x))]
            if not bad:
                break
            equation = made[bad[0]]
        operands = tuple([value(x) for x in equation.inputs])
        if equation.primitive.blocks() or hasattr(equation.primitive, "function"):
            equation.primitive.evaluate(self, *operands)  # raises if a block of it is the source
        raise _Found(BadValueSource(equation, operands))

    def at(self, sizes: Mapping[str, int]) -> Evaluator:
        return _Searching(sizes, self._is_bad)


def source_of(
    function: Function, sizes: Mapping[str, int], operands: Sequence[NDArray], is_bad: IsBad
) -> BadValueSource | None:
    """Return the equation that makes the first bad value of a function's results."""
    with np.errstate(all="ignore"):
        try:
            _Searching(sizes, is_bad).block(function.body, operands)
        except _Found as found:
            return found.source
    return None


def has(is_bad: IsBad, x: NDArray) -> bool:
    """Return whether an array has a bad value; only real and complex numbers are."""
    return x.dtype.kind in "fcV" and is_bad(x)
