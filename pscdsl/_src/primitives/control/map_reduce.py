"""A function of each row of arrays, its results combined by an associative function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pscdsl._src.ir.primitive import Evaluation, NDArray, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.blockwise import goes_apart, many_at_once
from pscdsl._src.primitives.control.expanded import Expanded
from pscdsl._src.primitives.control.rows import Fold
from pscdsl._src.primitives.control.scan_rules import parts
from pscdsl._src.primitives.control.totals import (
    AT_ONCE,
    at_once,
    block_of_results,
    in_loops,
    part_by_part,
    reductions,
    widest,
)
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


@dataclass(frozen=True)
class MapReduce(Expanded, name="map_reduce"):
    """`combine(... combine(combine(init, body(x[0])), body(x[1])) ...)`, `combine` associative.

    Operands: what the body captures, what the combination captures, what comes first (`initial`
    of them: as many as the body has results, or none if there is at least one row), the arrays.
    Results: of the types of the body's.  As the function is associative, results may be combined
    in any grouping, in their order.
    """

    body: Block
    combine: Block
    body_captured: int
    combine_captured: int
    initial: int
    length: Size

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        by_body, by_combine, initial, arrays = self.roles(operands)
        rows: list[ArrayType] = []
        for each in arrays:
            if not each.shape or not facts.equal(each.shape[0], self.length):
                self.ill_typed(f"an operand is {each}, the length is {self.length}")
            rows.append(each.with_shape(each.shape[1:]))
        self.require(facts, "what the body takes", (*by_body, *rows), self.body.in_types)
        values = self.body.out_types
        taken = (*by_combine, *values, *values)
        self.require(facts, "what the combination takes", taken, self.combine.in_types)
        self.require(facts, "what it gives", self.combine.out_types, values)
        if initial:
            self.require(facts, "what comes first", initial, values)
        if not facts.proves(Fact("<=", 0 if initial else 1, self.length)):
            self.ill_typed(f"the length {self.length} may be too small")
        return values

    def roles(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Operands by role: captured by the body, by the combination, the first, the arrays."""
        found = parts(operands, self.body_captured, self.combine_captured, self.initial)
        return found[0], found[1], found[2], found[3]

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        by_body, by_combine, state, arrays = self.roles(operands)
        for step in range(here.size(self.length)):
            value = here.block(self.body, [*by_body, *(np.asarray(x[step]) for x in arrays)])
            found = here.block(self.combine, [*by_combine, *state, *value]) if state else value
            state = list(found)
        return tuple(state)

    def expansion(self, inputs: Types) -> Block:
        return self.program(Assumptions(), inputs)

    def runs(self) -> tuple[tuple[Block, Size], ...]:
        return (self.body, self.length), (self.combine, self.length)

    def program(self, facts: Assumptions, operands: Types) -> Block:
        """Reductions, or loops over the rows, or over the rows of many blocks at once."""
        length, width = self.length, self._width()
        sums = reductions(self.combine, self.combine_captured) is not None

        def build(here: Builder, params: list[Value], many: bool) -> list[Value]:
            by_body, by_combine, initial, arrays = self.roles(params)
            body = Fold(self.body, by_body, 0)
            combine = Fold(self.combine, by_combine, len(self.body.results))
            start = initial or None
            if not many or not sums:
                block = block_of_results(length, width) if many else None
                return in_loops(here, body, combine, start, arrays, length, block)
            if not isinstance(length, int) or width is None:
                return at_once(here, body, combine, start, arrays, length)
            count = max(1, AT_ONCE // width)
            return part_by_part(here, body, combine, start, arrays, length, count)

        apart = goes_apart(self.body, self.body_captured)
        apart = apart or goes_apart(self.combine, self.combine_captured)
        return many_at_once(facts, operands, build, not apart)

    def _width(self) -> int | None:
        """How many elements the largest array has that there is of each row."""
        found = widest(self.body, self.body_captured), widest(self.combine, self.combine_captured)
        return None if None in found else max(each or 0 for each in found)

    # Derivatives and batches: see `associative_rules`.

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        from pscdsl._src.primitives.control.map_reduce_rules import differentiate

        return differentiate(self, primals, tangents)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        from pscdsl._src.primitives.control.map_reduce_rules import batch

        return batch(self, operands, batched, size)
