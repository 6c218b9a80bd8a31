"""A part of a block that XLA compiles by itself."""

from __future__ import annotations

from collections.abc import Sequence

from pscdsl._src.ir.primitive import H, Hlo, Primitive, Types
from pscdsl._src.ir.program import Block


class Apart(Primitive):
    """A block, computed of its parameters."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        """The call of a function, which is the same for blocks that compute the same."""
        return hlo.apart(self._block, operands)
