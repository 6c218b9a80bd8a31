"""Loops over the leading axis of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pscdsl._src.interpreters.cut import Cut
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.base import Control, Nesting
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, I64, KEY

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


@dataclass(frozen=True)
class Scan(Control, name="scan"):
    """A loop over the leading axis of arrays that carries values from step to step.

    Operands: what the body captures, the first carry, the arrays; the body takes a slice of each
    array and gives the next carry and what is to be stacked.  Results: the last carry, the stacks.
    `reverse` starts at the end; stacks keep the order of the arrays.  If it is `counted`, the
    first captured operand, an i32, is how many steps are taken, at most `length`: those with the
    first slices, whichever the direction; the rest of the stacks is zero.  With `unordered_sums`
    a carry to which steps only add may be summed up in any order.
    """

    body: Block
    captured: int
    carried: int
    length: Size
    reverse: bool = False
    counted: bool = False
    unordered_sums: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        captured, carry, arrays = self.roles(operands)
        if self.counted and (not captured or captured[0] != ArrayType(I32)):
            self.ill_typed("it is counted, but takes no i32 first")
        slices: list[ArrayType] = []
        for each in arrays:
            if not each.shape or not facts.equal(each.shape[0], self.length):
                self.ill_typed(f"an operand is {each}, the length is {self.length}")
            slices.append(each.with_shape(each.shape[1:]))
        self.require(facts, "what the body takes", (*captured, *carry, *slices), self.body.in_types)
        results = self.body.out_types
        if len(carry) != self.carried:
            self.ill_typed(f"{self.carried} operands carried, {len(carry)} given")
        self.require(facts, "the next carry", results[: self.carried], carry)
        if not facts.proves(Fact("<=", 0, self.length)):
            self.ill_typed(f"the length {self.length} may be negative")
        stacks = [each.with_shape((self.length, *each.shape)) for each in results[self.carried :]]
        return (*carry, *stacks)

    def roles(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Operands by role: captured, the carry, the arrays."""
        first, second = self.captured, self.captured + self.carried
        return list(operands[:first]), list(operands[first:second]), list(operands[second:])

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        captured, carry, arrays = self.roles(operands)
        length = here.size(self.length)
        stacks: list[NDArray] = []
        for each in self.body.out_types[self.carried :]:
            shape = (length, *here.shape(each.shape), *((2,) if each.dtype is KEY else ()))
            stacks.append(np.zeros(shape, to_numpy(each.dtype)))
        steps = range(min(max(int(captured[0]), 0), length) if self.counted else length)
        for step in reversed(steps) if self.reverse else steps:
            results = here.block(self.body, [*captured, *carry, *(x[step] for x in arrays)])
            carry = list(results[: self.carried])
            for stack, result in zip(stacks, results[self.carried :], strict=True):
                stack[step] = result
        return (*carry, *stacks)

    @property
    def emitted(self) -> Mapping[str, Nesting]:
        return {"body": Nesting.LOOP}

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        captured, carry, arrays = self.roles(operands)
        length = hlo.size(self.length)
        stacks = [hlo.full(0, each) for each in outputs[self.carried :]]
        if length == 0:
            return (*carry, *stacks)
        counter = counter_type(length)
        limit = hlo.full(length, counter)
        if self.counted:
            limit = hlo.binary("minimum", hlo.convert(captured[0], counter), limit)
        taken = self.body.in_types[self.captured + self.carried :]
        given = self.body.out_types[self.carried :]

        def body(now: Sequence[H]) -> Sequence[H]:
            step, *state = now
            index = step
            if self.reverse:
                last = hlo.binary("subtract", limit, hlo.full(1, counter))
                index = hlo.binary("subtract", last, step)
            zero = hlo.full(0, counter)
            slices = [
                pick(hlo, x, index, zero, each) for x, each in zip(arrays, taken, strict=True)
            ]
            results = hlo.block(self.body, [*captured, *state[: self.carried], *slices])
            stacked = [
                put(hlo, stack, result, index, zero, each)
                for stack, result, each in zip(
                    state[self.carried :], results[self.carried :], given, strict=True
                )
            ]
            following = hlo.binary("add", step, hlo.full(1, counter))
            return (following, *results[: self.carried], *stacked)

        results = hlo.while_loop(
            (hlo.full(0, counter), *carry, *stacks),
            lambda now: hlo.compare("LT", now[0], limit),
            body,
        )
        return results[1:]

    def runs(self) -> tuple[tuple[Block, Size], ...]:
        return ((self.body, self.length),)

    # Derivatives and batches: see `scan_rules`.

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        from pscdsl._src.primitives.control.scan_rules import differentiate

        return differentiate(self, primals, tangents)

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        from pscdsl._src.primitives.control.scan_rules import split

        return split(self, cut, operands)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        from pscdsl._src.primitives.control.scan_rules import transpose

        return transpose(self, cotangents, operands)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        from pscdsl._src.primitives.control.scan_rules import batch

        return batch(self, operands, batched, size)


def counter_type(length: int) -> ArrayType:
    """The type of a counter of so many steps."""
    return ArrayType(I32 if length <= I32.range[1] else I64)


def pick(hlo: Hlo, x: H, index: H, zero: H, type: ArrayType) -> H:  # noqa: A002
    """The slice of an array at an index of its leading axis."""
    stored = hlo.type_of(x).shape  # a key has one more axis than its type says
    (row,) = hlo.op(
        "dynamic_slice",
        (x, index, *(zero for _ in stored[1:])),
        (type.with_shape((1, *type.shape)),),
        {"slice_sizes": hlo.i64_array((1, *stored[1:]))},
    )
    return hlo.reshape(row, type)


def put(hlo: Hlo, stack: H, x: H, index: H, zero: H, type: ArrayType) -> H:  # noqa: A002
    """The array with a slice replaced at an index of its leading axis."""
    stored = hlo.type_of(stack)
    row = hlo.reshape(x, type.with_shape((1, *type.shape)))
    starts = (index, *(zero for _ in stored.shape[1:]))
    return hlo.op("dynamic_update_slice", (stack, row, *starts), (stored,))[0]


@dataclass(frozen=True)
class Rows(Scan):
    """What a batch was made of: a loop over its rows, which nobody runs (see `ir.Origin`)."""
