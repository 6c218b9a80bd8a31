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
        block, kept = jvp_block(here.facts, self.body, active)
        moving = [tangent for tangent in tangents if tangent is not None]
        results = here.bind(replace(self, body=block), [*primals, *moving])
        count = len(kept)
        found = iter(results[count:])
        return results[:count], [next(found) if moves else None for moves in kept]

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
        found = replay(cut.early, first, early)
        second = _second(facts, halves, saved, [each.type for each in moving])
        kept = [cut.later(each) for each in (*early, *found[count:])]
        last = cut.late.bind(Checkpoint(second, self.policy, True), [*kept, *moving])
        return halves.merged(found[:count], last)

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
        given = tuple([cotangent is not None for cotangent in cotangents])
        block, kept = transpose_block(here.facts, self.body, linear, given)
        known = [operand for operand in operands if not isinstance(operand, ArrayType)]
        moving = [cotangent for cotangent in cotangents if cotangent is not None]
        found = iter(here.bind(replace(self, body=block), [*known, *moving]))
        return [next(found) if keeps else None for keeps in kept]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        facts = operands[0].builder.facts
        block, kept = batch_block(facts, self.body, tuple(batched), size)
        return replace(self, body=block).bind(*operands), kept


def _second(
    facts: Assumptions, halves: Halves, saved: Sequence[int], moving: Sequence[ArrayType]
) -> Block:
    """What is done on the way back: the early half once more, but for what is saved, the late one.

    It takes the early operands, what is saved, and the late operands.
    """
    early = halves.early
    types = early.in_types
    kept = [early.results[at] for at in saved]
    wanted = dict.fromkeys(early.results[at] for kind, at in halves.saved if kind == "result")
    again = Block(
        early.params,
        tuple([each for each in early.equations if not set(each.outputs) & set(kept)]),
        tuple([atom for atom in wanted if atom not in kept]),
    )
    equations, _ = needed(again)

    def build(here: Builder, params: list[Value]) -> list[Value]:
        operands, rest = params[: len(types)], params[len(types) :]
        env = Environment(here, early.params, operands)
        env.values.update(zip(kept, rest, strict=False))
        for equation in equations:
            here.program.span = equation.span
            outputs = append(here, equation, env.all(equation.inputs))
            env.values.update(zip(equation.outputs, outputs, strict=True))
        given = [
            operands[at] if kind == "parameter" else env[early.results[at]]
            for kind, at in halves.saved
        ]
        return replay(here, halves.late, [*given, *rest[len(kept) :]])

    return closed(facts, (*types, *[each.type for each in kept], *moving), build)
