"""All prefixes of the rows of arrays, combined by an associative function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.base import Nesting
from pscdsl._src.primitives.control.blockwise import (
    block_length,
    goes_apart,
    many_at_once,
    prefixes,
    width_of,
)
from pscdsl._src.primitives.control.expanded import Expanded
from pscdsl._src.primitives.control.rows import Fold
from pscdsl._src.primitives.control.scan import counter_type, pick, put
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


@dataclass(frozen=True)
class AssociativeScan(Expanded, name="associative_scan"):
    """`y[i] = combine(y[i-1], x[i])` along the leading axis, where `combine` is associative.

    Operands: what the combination captures, the arrays; it takes two rows, of one of each array,
    and gives another one.  Results: arrays of the types of those given.  As the function is
    associative, rows may be combined in any grouping, in their order.
    """

    combine: Block
    captured: int
    length: Size

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        captured, arrays = self.roles(operands)
        rows: list[ArrayType] = []
        for each in arrays:
            if not each.shape or not facts.equal(each.shape[0], self.length):
                self.ill_typed(f"an operand is {each}, the length is {self.length}")
            rows.append(each.with_shape(each.shape[1:]))
        taken = (*captured, *rows, *rows)
        self.require(facts, "what the combination takes", taken, self.combine.in_types)
        self.require(facts, "what it gives", self.combine.out_types, rows)
        if not facts.proves(Fact("<=", 0, self.length)):
            self.ill_typed(f"the length {self.length} may be negative")
        return tuple(arrays)

    def roles(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Operands by role: captured, the arrays."""
        return list(operands[: self.captured]), list(operands[self.captured :])

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        captured, arrays = self.roles(operands)
        results = [np.array(x) for x in arrays]
        for step in range(1, here.size(self.length)):
            rows = [*[y[step - 1] for y in results], *[x[step] for x in arrays]]
            found = here.block(self.combine, [*captured, *map(np.asarray, rows)])
            for result, each in zip(results, found, strict=True):
                result[step] = each
        return tuple(results)

    def expansion(self, inputs: Types) -> Block | None:
        if self.block_length(Assumptions()) is None:  # one row after the other
            return None
        return self.program(Assumptions(), inputs)

    @property
    def emitted(self) -> Mapping[str, Nesting]:
        return {"combine": Nesting.LOOP}

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        captured, arrays = self.roles(operands)
        length = hlo.size(self.length)
        if length < 2:
            return arrays
        # The first prefix is the first row, the others are written over.
        counter = counter_type(length)
        limit = hlo.full(length, counter)
        zero = hlo.full(0, counter)
        rows = self.combine.out_types

        def body(now: Sequence[H]) -> Sequence[H]:
            step, *state = now
            carry, stacks = state[: len(rows)], state[len(rows) :]
            given = [pick(hlo, x, step, zero, each) for x, each in zip(arrays, rows, strict=True)]
            found = hlo.block(self.combine, [*captured, *carry, *given])
            stacks = [
                put(hlo, stack, y, step, zero, each)
                for stack, y, each in zip(stacks, found, rows, strict=True)
            ]
            return (hlo.binary("add", step, hlo.full(1, counter)), *found, *stacks)

        first = [pick(hlo, x, zero, zero, each) for x, each in zip(arrays, rows, strict=True)]
        start = (hlo.full(1, counter), *first, *arrays)
        results = hlo.while_loop(start, lambda now: hlo.compare("LT", now[0], limit), body)
        return results[1 + len(rows) :]

    def runs(self) -> tuple[tuple[Block, Size], ...]:
        return ((self.combine, self.length),)

    def block_length(self, facts: Assumptions) -> int | None:
        """How many rows are combined one after the other, as one of many blocks of rows."""
        if goes_apart(self.combine, self.captured):
            return None
        return block_length(facts, self.length, width_of(self.combine.out_types))

    def program(self, facts: Assumptions, operands: Types) -> Block:
        """The prefixes as loops over rows, or over rows of many blocks at once."""
        block = self.block_length(facts)

        def build(here: Builder, params: list[Value], many: bool) -> list[Value]:
            captured, arrays = self.roles(params)
            combine = Fold(self.combine, captured, len(arrays))
            return prefixes(here, combine, arrays, self.length, block if many else None)

        return many_at_once(facts, operands, build, block is not None)

    # Derivatives and batches: see `associative_rules`.

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        from pscdsl._src.primitives.control.associative_rules import differentiate

        return differentiate(self, primals, tangents)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        from pscdsl._src.primitives.control.associative_rules import batch

        return batch(self, operands, batched, size)
