"""Loops that end when a condition says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pscdsl._src.interpreters.cut import Cut
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.base import Control, Nesting
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.derivatives import UnboundedReverse
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


@dataclass(frozen=True)
class While(Control, name="while"):
    """Repeat a body while a condition on the carry holds.

    Operands: what the condition captures, what the body captures, the carry.  Both blocks take
    what they capture and then the carry; results: the carry.  `bound` says how many steps there
    are at most, if that is known; its derivative saves the state every `every` steps.
    """

    cond: Block
    body: Block
    cond_captured: int
    body_captured: int
    bound: Size | None = None
    every: Size | None = None

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        by_cond, by_body, carry = self.roles(operands)
        self.require(facts, "what the condition takes", (*by_cond, *carry), self.cond.in_types)
        self.require(facts, "the condition's result", self.cond.out_types, (ArrayType(BOOL),))
        self.require(facts, "what the body takes", (*by_body, *carry), self.body.in_types)
        self.require(facts, "the next carry", self.body.out_types, carry)
        return tuple(carry)

    def roles(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Operands by role: captured by the condition, captured by the body, the carry."""
        first, second = self.cond_captured, self.cond_captured + self.body_captured
        return list(operands[:first]), list(operands[first:second]), list(operands[second:])

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        by_cond, by_body, carry = self.roles(operands)
        while here.block(self.cond, [*by_cond, *carry])[0]:
            carry = list(here.block(self.body, [*by_body, *carry]))
        return tuple(carry)

    @property
    def emitted(self) -> Mapping[str, Nesting]:
        return {"cond": Nesting.LOOP, "body": Nesting.LOOP}

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        by_cond, by_body, carry = self.roles(operands)
        return hlo.while_loop(
            carry,
            lambda now: hlo.block(self.cond, [*by_cond, *now])[0],
            lambda now: hlo.block(self.body, [*by_body, *now]),
        )

    def runs(self) -> tuple[tuple[Block, Size], ...]:
        """As often as they may be run at most; once if that is not known."""
        if self.bound is None:
            return (self.cond, 1), (self.body, 1)
        return (self.cond, self.bound + 1), (self.body, self.bound)

    # Derivatives and batches: see `while_rules`.

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        from pscdsl._src.primitives.control.while_rules import differentiate

        return differentiate(self, primals, tangents)

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        from pscdsl._src.primitives.control.while_split import split

        return split(self, cut, operands)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        """Loops with a bound are scans by now."""
        raise Failure(UnboundedReverse())

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        from pscdsl._src.primitives.control.while_rules import batch

        return batch(self, operands, batched, size)
