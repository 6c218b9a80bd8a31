"""A program at given sizes as a function of arrays, with everything derived from it made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pscdsl._src.interop.derived_programs import as_function
from pscdsl._src.interpreters.batching import batch_block
from pscdsl._src.interpreters.jvp import Mask, has_tangent
from pscdsl._src.interpreters.replay import closed
from pscdsl._src.interpreters.transpose import transpose_block
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block, Function
from pscdsl._src.transforms.linearize import Linear, linearize
from pscdsl._src.transforms.simplify.simplify import simplify
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dims import evaluate

T = TypeVar("T")


@dataclass(frozen=True)
class Linearization:
    """A program split in two, for the derivative in some of its operands.

    values   takes the operands; returns the results, then what is saved
    tangents takes what is saved, then tangents of the active operands; linear in these
    moving   which results have a tangent
    """

    values: ArrayProgram
    tangents: ArrayProgram
    moving: Mask


@dataclass(frozen=True, eq=False)
class ArrayProgram:
    """A flat program: arrays in, arrays out, at sizes that are known; compared by identity."""

    function: Function
    sizes: Mapping[str, int]
    _made: dict[object, object] = field(default_factory=dict[object, object], repr=False)

    @property
    def inputs(self) -> tuple[ArrayType, ...]:
        """The types of its operands, with numbers for sizes."""
        return tuple(map(self._at_sizes, self.function.body.in_types))

    @property
    def outputs(self) -> tuple[ArrayType, ...]:
        """The types of its results, with numbers for sizes."""
        return tuple(map(self._at_sizes, self.function.body.out_types))

    def linearized(self, active: Mask) -> Linearization:
        """Its derivative in the operands that are active; each of them has tangents."""
        return self._once(("linearized", active), lambda: self._linearize(active))

    def transposed(self, linear: Mask, given: Mask) -> ArrayProgram:
        """The transpose in operands in which it is linear, for cotangents of the given results.

        It takes the other operands, then these cotangents, and returns a cotangent for each
        linear operand.
        """

        def make() -> ArrayProgram:
            body = self.function.body
            block, _ = transpose_block(self.function.facts, body, linear, given, linear)
            return self._like(block)

        return self._once(("transposed", linear, given), make)

    def batched(self, batched: Mask, size: int) -> tuple[ArrayProgram, Mask]:
        """The program over a batch, the first axis of batched operands; and which results are."""

        def make() -> tuple[ArrayProgram, Mask]:
            block, kept = batch_block(self.function.facts, self.function.body, batched, size)
            return self._like(block), kept

        return self._once(("batched", batched, size), make)

    def _linearize(self, active: Mask) -> Linearization:
        function = self.function
        count = len(function.body.results)
        made: list[Linear] = []

        def build(here: Builder, params: list[Value]) -> list[Value]:
            results, linear = linearize(here, function.body, params, active)
            made.append(linear)
            return [*results[:count], *linear.saved]

        values = closed(function.facts, function.body.in_types, build)
        moving = tuple(map(has_tangent, function.body.out_types))
        return Linearization(self._like(values), self._like(made[0].block), moving)

    def _like(self, block: Block) -> ArrayProgram:
        return ArrayProgram(simplify(as_function(self.function, block)), self.sizes)

    def _once(self, key: object, make: Callable[[], T]) -> T:
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return found  # type: ignore[return-value] # pyright: ignore[reportReturnType]

    def _at_sizes(self, type: ArrayType) -> ArrayType:  # noqa: A002
        shape = tuple([evaluate(size, self.sizes) for size in type.shape])
        return type.with_shape(shape)
