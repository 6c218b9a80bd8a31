"""Primitives that say what is computed; a program of other primitives says how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

from pscdsl._src.interpreters.cut import Cut, cut_through, split_block
from pscdsl._src.interpreters.replay import replay
from pscdsl._src.interpreters.transpose import transpose
from pscdsl._src.ir.primitive import Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.base import Control
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


@dataclass(frozen=True)
class Expanded(Control):
    """Base of those that are cut in two, and transposed, as their program is."""

    def program(self, facts: Assumptions, operands: Types) -> Block:
        """A program that computes the same of operands of these types."""
        raise NotImplementedError

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        if all(map(cut.is_late, operands)):
            return super().split(cut, operands)
        types = tuple([each.type for each in operands])
        block = self.program(cut.early.facts, types)
        given = dict(zip(block.params, operands, strict=True))
        return tuple(cut_through(cut, block, given))

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        here = next(v for v in cotangents if v is not None).builder.program.current
        types = tuple([each if isinstance(each, ArrayType) else each.type for each in operands])
        linear = tuple([isinstance(each, ArrayType) for each in operands])
        block = self.program(here.facts, types)
        halves = split_block(here.facts, block, linear, (True,) * len(block.results))
        known = [each for each in operands if not isinstance(each, ArrayType)]
        saved = halves.gather(known, replay(here, halves.early, known))
        found = iter(
            transpose(here, halves.late, [*saved, *compress(types, linear)], cotangents)[
                len(saved) :
            ]
        )
        return [next(found) if is_linear else None for is_linear in linear]
