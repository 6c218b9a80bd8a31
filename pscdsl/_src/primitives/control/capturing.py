"""Bodies of loops that capture more than they did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pscdsl._src.ir.primitive import H
from pscdsl._src.ir.program import Block, Equation, Var


def capturing(
    block: Block,
    captured: Sequence[H],
    equations: Iterable[Equation],
    more: Iterable[tuple[Var, H]],
) -> tuple[Block, list[H]]:
    """A body with other equations, which take `more`: parameters, and what is captured for them.

    The first parameters are those for `captured`, and keep their places; what is new follows them.
    """
    added, first = tuple(more), len(captured)
    if not added:
        return block, list(captured)
    params = (*block.params[:first], *[var for var, _ in added], *block.params[first:])
    return (
        Block(params, tuple(equations), block.results),
        [*captured, *[value for _, value in added]],
    )
