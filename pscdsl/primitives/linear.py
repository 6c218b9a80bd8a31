"""Primitives that are linear in all their operands that can have a tangent, taken together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pscdsl.primitive import Primitive

if TYPE_CHECKING:
    from pscdsl.builder import Value


class Linear(Primitive):
    """A primitive that is its own derivative: the same of the tangents, where others stay."""

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        from pscdsl.interpreters.replay import zeros

        moved: list[Value] = []
        for primal, tangent in zip(primals, tangents, strict=True):
            if tangent is not None:
                moved.append(tangent)
            elif primal.dtype.is_inexact:
                moved.append(zeros(primal.builder, primal.type))
            else:
                moved.append(primal)
        return self.bind(*moved)
