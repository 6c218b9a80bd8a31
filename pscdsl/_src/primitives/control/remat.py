"""Programs of which little is saved for the way back: they are computed again (rematerialised)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from pscdsl._src.interpreters.batching import batch_block
from pscdsl._src.interpreters.cut import Cut, Halves, needed, split_block
from pscdsl._src.interpreters.jvp import jvp_block
from pscdsl._src.interpreters.replay import Environment, append, closed, replay
from pscdsl._src.interpreters.transpose import transpose_block
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Atom, Block
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control.base import Control
from pscdsl._src.primitives.control.regions import Layout
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value

Policy: TypeAlias = Literal["nothing", "dots", "everything"]


@dataclass(frozen=True)
class Checkpoint(Control, name="checkpoint"):
    """A program that is computed again on the way back, but for what its policy saves.

    `again` marks the second time: the compiler must not find the first one's values for it.
    """

    body: Block
    policy: Policy = "nothing"
    again: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        self.require(facts, "operands", operands, self.body.in_types)
        return self.body.out_types

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return here.block(self.body, operands)

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(self.body)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        if self.again and operands:
            types = [hlo.type_of(operand) for operand in operands]
            operands = hlo.op("optimization_barrier", operands, types)
        return hlo.block(self.body, operands)

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        here = primals[0].builder.program.current
        active = tuple([tangent is not None for tangent in tangents])
        block, active_results = jvp_block(here.facts, self.body, active)
        moving = [tangent for tangent in tangents if tangent is not None]
        results = here.bind(replace(self, body=block), [*primals, *moving])
        count = len(active_results)
        remaining = iter(results[count:])
        return results[:count], [next(remaining) if moves else None for moves in active_results]

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        facts = cut.early.facts
        late = tuple(map(cut.is_late, operands))
        halves = split_block(facts, self.body, late)
        early = [operand for operand in operands if not cut.is_late(operand)]
        moving = [operand for operand in operands if cut.is_late(operand)]
        count = len(self.body.results) - sum(halves.late_results)
        saved = self._saved(halves, count)
        first = Block(
            halves.early.params,
            halves.early.equations,
            (*halves.early.results[:count], *[halves.early.results[at] for at in saved]),
        )
        results = replay(cut.early, first, early)
        second = _second(facts, halves, saved, [operand.type for operand in moving])
        early_values = [cut.later(value) for value in (*early, *results[count:])]
        last = cut.late.bind(Checkpoint(second, self.policy, True), [*early_values, *moving])
        return halves.merged(results[:count], last)

    def _saved(self, halves: Halves, count: int) -> list[int]:
        """The places of what the early half returns, beside results, that the policy saves."""
        extra = range(count, len(halves.early.results))
        if self.policy == "everything":
            return list(extra)
        if self.policy == "nothing":
            return []
        dear: set[Atom] = {
            var
            for equation in halves.early.equations
            if isinstance(equation.primitive, DotGeneral)
            or equation.primitive.name == "convolution"
            for var in equation.outputs
        }
        return [at for at in extra if halves.early.results[at] in dear]

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        here = next(v for v in cotangents if v is not None).builder.program.current
        linear = tuple([isinstance(operand, ArrayType) for operand in operands])
        has_cotangent = tuple([cotangent is not None for cotangent in cotangents])
        block, with_cotangents = transpose_block(here.facts, self.body, linear, has_cotangent)
        known = [operand for operand in operands if not isinstance(operand, ArrayType)]
        moving = [cotangent for cotangent in cotangents if cotangent is not None]
        remaining = iter(here.bind(replace(self, body=block), [*known, *moving]))
        return [next(remaining) if keeps else None for keeps in with_cotangents]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        facts = operands[0].builder.facts
        block, batched_results = batch_block(facts, self.body, tuple(batched), size)
        return replace(self, body=block).bind(*operands), batched_results


def _second(
    facts: Assumptions, halves: Halves, saved: Sequence[int], moving: Sequence[ArrayType]
) -> Block:
    """What is done on the way back: the early half once more, but for what is saved, the late one.

    It takes the early operands, what is saved, and the late operands.
    """
    early = halves.early
    types = early.in_types
    saved_atoms = [early.results[at] for at in saved]
    wanted = dict.fromkeys(early.results[at] for kind, at in halves.saved if kind == "result")
    again = Block(
        early.params,
        tuple(
            [
                equation
                for equation in early.equations
                if not set(equation.outputs) & set(saved_atoms)
            ]
        ),
        tuple([atom for atom in wanted if atom not in saved_atoms]),
    )
    equations, _ = needed(again)

    def build(here: Builder, params: list[Value]) -> list[Value]:
        operands, rest = params[: len(types)], params[len(types) :]
        env = Environment(here, early.params, operands)
        env.values.update(zip(saved_atoms, rest, strict=False))
        for equation in equations:
            here.program.span = equation.span
            outputs = append(here, equation, env.all(equation.inputs))
            env.values.update(zip(equation.outputs, outputs, strict=True))
        late_saved = [
            operands[at] if kind == "parameter" else env[early.results[at]]
            for kind, at in halves.saved
        ]
        return replay(here, halves.late, [*late_saved, *rest[len(saved_atoms) :]])

    return closed(facts, (*types, *[atom.type for atom in saved_atoms], *moving), build)
