"""Calls of functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pscdsl._src.interpreters.batching import batch_function
from pscdsl._src.interpreters.cut import Cut, split_function
from pscdsl._src.interpreters.jvp import jvp_function
from pscdsl._src.interpreters.transpose import transpose_function
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Function
from pscdsl._src.primitives.control.base import Control, block_cost
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size, substitute

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


@lru_cache(maxsize=1024)
def function_cost(function: Function) -> Size:
    """The cost of one run of a function, in its own sizes."""
    return block_cost(function.body)


@dataclass(frozen=True)
class Call(Control, name="call"):
    """Another function at certain sizes; what it requires of them must be proven."""

    function: Function
    sizes: tuple[tuple[str, Size], ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        function, env = self.function, dict(self.sizes)
        if set(env) != set(function.dims) or len(env) != len(self.sizes):
            self.ill_typed(f"sizes given: {', '.join(env)}; taken: {', '.join(function.dims)}")
        body = function.body
        known: dict[ArrayType, ArrayType] = {}  # many operands and results are of few types

        def here(declared: ArrayType) -> ArrayType:
            found = known.get(declared)
            if found is None:
                found = known[declared] = declared.substitute(env)
            return found

        self.require(facts, "operands", operands, [here(var.type) for var in body.params])
        required = [fact.substitute(env) for fact in function.facts.facts]
        for name, size in self.sizes:
            required.append(Fact("<=", function.facts.lower_bound(name), size))
        for fact in required:
            if not facts.proves(fact):
                self.ill_typed(f"{fact} is not known to hold")
        return tuple([here(atom.type) for atom in body.results])

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return here.call(self.function, dict(self.sizes), operands)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.call(self.function, dict(self.sizes), operands)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return substitute(function_cost(self.function), dict(self.sizes))

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        active = tuple([each is not None for each in tangents])
        function, kept = jvp_function(self.function, active)
        moving = [each for each in tangents if each is not None]
        results = Call(function, self.sizes).bind(*primals, *moving)
        found = iter(results[len(kept) :])
        return results[: len(kept)], [next(found) if moves else None for moves in kept]

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        late = tuple(map(cut.is_late, operands))
        early_function, late_function, halves = split_function(self.function, late)
        first = [each for each in operands if not cut.is_late(each)]
        early = cut.early.bind(Call(early_function, self.sizes), first)
        saved = [cut.later(each) for each in halves.gather(first, early)]
        second = [each for each in operands if cut.is_late(each)]
        found = cut.late.bind(Call(late_function, self.sizes), [*saved, *second])
        return halves.merged(early, found)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        linear = tuple([isinstance(each, ArrayType) for each in operands])
        given = tuple([each is not None for each in cotangents])
        function, kept = transpose_function(self.function, linear, given)
        known = [each for each in operands if not isinstance(each, ArrayType)]
        moving = [each for each in cotangents if each is not None]
        found = iter(Call(function, self.sizes).bind(*known, *moving))
        return [next(found) if keeps else None for keeps in kept]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        facts = operands[0].builder.facts
        may_be_empty = not facts.proves(Fact("<=", 1, size))
        function, called, kept = batch_function(self.function, tuple(batched), may_be_empty)
        return Call(function, (*self.sizes, (called, size))).bind(*operands), kept
