"""What only rewritten programs have: parts for the compiler, which compute nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pscdsl._src.ir.hlo import TargetHlo
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.base import Control
from pscdsl._src.primitives.control.regions import Layout
from pscdsl._src.targets.forms import Translation
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions


@dataclass(frozen=True)
class Apart(Control):
    """A block that XLA compiles by itself, computed of its parameters."""

    body: Block

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        self.require(facts, "operands", operands, self.body.in_types)
        return self.body.out_types

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return here.block(self.body, operands)

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(self.body)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.block(self.body, operands)


@dataclass(frozen=True)
class Barrier(Primitive):
    """Arrays as they are; the compiler computes them first, and not once for each use."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return operands

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.op("optimization_barrier", operands, outputs)


@dataclass(frozen=True)
class ReadOften(Primitive):
    """An array as it is; several operations may read it, which could all compute it again."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return operands

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return operands


@Translation
def call_apart(
    primitive: Apart, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H]:
    """The call of a function, which is the same for blocks that compute the same."""
    return hlo.apart(primitive.body, operands)
