"""Rows, the parts of arrays along their first axis, and functions that fold them into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pscdsl._src.interpreters.batching import batch_block
from pscdsl._src.interpreters.replay import closed, replay
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.scan import Scan
from pscdsl._src.primitives.control.scan_rules import parts, swapped
from pscdsl._src.primitives.shaping import Concatenate, Reshape, part_of
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


def row_type(array: ArrayType) -> ArrayType:
    """The type of the rows of an array."""
    return array.with_shape(array.shape[1:])


def row(x: Value, index: int) -> Value:
    """One row."""
    return Reshape(x.shape[1:])(rows_of(x, index, index + 1))


def rows_of(x: Value, start: Size, stop: Size) -> Value:
    """The rows from one to another, which is not included."""
    if start == 0 and stop == x.shape[0]:
        return x
    return part_of(x.shape, 0, start, stop)(x)


def single(x: Value) -> Value:
    """An array of one row."""
    return Reshape((1, *x.shape))(x)


def joined(arrays: Sequence[Value]) -> Value:
    """The rows of all arrays."""
    return arrays[0] if len(arrays) == 1 else Concatenate(0)(*arrays)


def side_by_side(x: Value, length: Size, count: Size) -> Value:
    """So many blocks of rows side by side: the first row of each, then the second of each."""
    whole = rows_of(x, 0, count * length)
    return swapped(Reshape((count, length, *x.shape[1:]))(whole))


def one_after_the_other(x: Value) -> Value:
    """The rows of blocks that stand side by side, block after block."""
    length, count, *rest = x.shape
    return Reshape((count * length, *rest))(swapped(x))


@dataclass(frozen=True)
class Fold:
    """A function of what is accumulated and of rows; its block captures these values first."""

    block: Block
    captured: Sequence[Value]
    carried: int

    def over(self, facts: Assumptions, size: Size) -> Fold:
        """The same for many at once, each with rows of its own; what is captured they share."""
        return Fold(self._batched(facts, size, len(self.captured)), self.captured, self.carried)

    def over_rows(self, facts: Assumptions, size: Size) -> Fold:
        """The same for many rows, each with the same that is accumulated."""
        own = len(self.captured) + self.carried
        return Fold(self._batched(facts, size, own), self.captured, self.carried)

    def _batched(self, facts: Assumptions, size: Size, shared: int) -> Block:
        many = tuple([place >= shared for place in range(len(self.block.params))])
        wanted = (True,) * len(self.block.results)
        return batch_block(facts, self.block, many, size, wanted)[0]

    def after(self, facts: Assumptions, body: Fold) -> Fold:
        """It combines what a function of rows makes of them."""
        own, others = len(self.captured), len(body.captured)
        types = [var.type for var in self.block.params[: own + self.carried]]
        rows = [var.type for var in body.block.params[others:]]

        def build(here: Builder, params: list[Value]) -> list[Value]:
            held, mine, state, given = parts(params, others, own, self.carried)
            value = replay(here, body.block, [*held, *given])
            return replay(here, self.block, [*mine, *state, *value])

        block = closed(facts, [*[v.type for v in body.captured], *types, *rows], build)
        return Fold(block, [*body.captured, *self.captured], self.carried)

    def once(self, here: Builder, *operands: Sequence[Value]) -> list[Value]:
        """Apply it."""
        given = [each for group in operands for each in group]
        return replay(here, self.block, [*self.captured, *given])

    def last(
        self, here: Builder, start: Sequence[Value], rows: Sequence[Value], length: Size
    ) -> list[Value]:
        """What is accumulated in the end, row after row."""
        if length == 0:
            return list(start)
        scan = Scan(self.block, len(self.captured), self.carried, length)
        return list(here.bind(scan, [*self.captured, *start, *rows]))

    def before(
        self, here: Builder, start: Sequence[Value], rows: Sequence[Value], length: Size
    ) -> tuple[list[Value], list[Value]]:
        """What is accumulated before each row, stacked, and in the end."""
        block, count = self.block, len(self.captured)
        state = block.params[count : count + self.carried]
        block = Block(block.params, block.equations, (*block.results, *state))
        scan = Scan(block, count, self.carried, length)
        found = here.bind(scan, [*self.captured, *start, *rows])
        return list(found[self.carried :]), list(found[: self.carried])
