"""Trees of axes that go with trees of arrays: an axis for a whole subtree, or one for each leaf."""

from __future__ import annotations

from typing import Any

from pscdsl._src.frontend.transformations.parts import parts_of
from pscdsl._src.frontend.values.values import describe
from pscdsl.typing.array_types import ArrayType, Type, children, leaves
from pscdsl.typing.codes.control import AxisMismatch
from pscdsl.typing.diagnostics import Failure


def axes_of(name: str, axes: Any, tree: Type) -> list[int | None]:
    """The axis of each leaf of a tree; None for those that have none."""
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return [axes] * sum(1 for _ in leaves(tree))
    if isinstance(tree, ArrayType):
        given = f"{name} is {describe(axes)} for {tree}"
        raise Failure(AxisMismatch(given=given, why="the axis of an array is an integer, or None"))
    parts = parts_of(axes)
    own = children(tree)
    if parts is None or len(parts) != len(own):
        why = f"it goes with {tree}, which has {len(own)} parts"
        raise Failure(AxisMismatch(given=f"{name} is {describe(axes)}", why=why))
    found: list[int | None] = []
    for part, (_, inner) in zip(parts, own, strict=True):
        found.extend(axes_of(name, part, inner))
    return found
