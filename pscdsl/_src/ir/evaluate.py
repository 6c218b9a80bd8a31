"""The NumPy meaning of the typed program: the reference that every other execution must match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal
from pscdsl.typing import dims
from pscdsl.typing.array_types import Shape
from pscdsl.typing.dims import Size


def evaluate(
    function: Function, sizes: Mapping[str, int], operands: Sequence[NDArray]
) -> tuple[NDArray, ...]:
    """The results of a function at given sizes; operands are not checked against its type."""
    return Evaluator(sizes).block(function.body, operands)


def evaluate_block(
    block: Block, sizes: Mapping[str, int], operands: Sequence[NDArray]
) -> tuple[NDArray, ...]:
    """The results of a block at given sizes."""
    return Evaluator(sizes).block(block, operands)


class Evaluator:
    """Runs blocks at given sizes; what NumPy meanings see as `here`."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self._literals: dict[Literal, NDArray] = {}

    def size(self, size: Size) -> int:
        """The number a size stands for."""
        return size if isinstance(size, int) else dims.evaluate(size, self.sizes)

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """The numbers a shape stands for."""
        return tuple([self.size(size) for size in shape])

    def block(self, block: Block, operands: Sequence[NDArray]) -> tuple[NDArray, ...]:
        """The results of a block."""
        values: dict[Atom, NDArray] = dict(zip(block.params, operands, strict=True))
        for equation in block.equations:
            inputs = [self._value(atom, values) for atom in equation.inputs]
            results = self.results(equation, inputs)
            values.update(zip(equation.outputs, results, strict=True))
        return tuple([self._value(atom, values) for atom in block.results])

    def results(self, equation: Equation, inputs: Sequence[NDArray]) -> Sequence[NDArray]:
        """The results of an equation."""
        return equation.primitive.evaluate(self, *inputs)

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[NDArray]
    ) -> tuple[NDArray, ...]:
        """The results of another function, its sizes given in terms of the sizes here."""
        inner = {name: self.size(size) for name, size in sizes.items()}
        return Evaluator(inner).block(function.body, operands)

    def _value(self, atom: Atom, values: Mapping[Atom, NDArray]) -> NDArray:
        if not isinstance(atom, Literal):
            return values[atom]
        cached = self._literals.get(atom)
        if cached is None:
            cached = self._literals[atom] = literal_array(atom)
        return cached


def literal_array(literal: Literal) -> NDArray:
    """A literal as an array of rank 0."""
    with np.errstate(over="ignore"):
        return np.asarray(literal.value).astype(to_numpy(literal.type.dtype))
