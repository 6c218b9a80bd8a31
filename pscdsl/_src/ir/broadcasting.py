"""NumPy's broadcasting with symbolic sizes: joint shapes, and values in larger shapes.

Two sizes fit if the facts prove that they are equal or that one of them is 1. A Failure names the
unproven fact; its text is that of `ShapesDoNotBroadcast`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pscdsl.typing.array_types import Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.shapes import ShapesDoNotBroadcast
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


def broadcast_shapes(facts: Assumptions, *shapes: Shape) -> Shape:
    """NumPy's broadcasting of shapes; a Failure where sizes are not provably equal or 1."""
    rank = max(map(len, shapes))
    result: list[Size] = []
    for axis in range(-rank, 0):
        size: Size = 1
        for shape in shapes:
            if len(shape) + axis < 0:
                continue
            other = shape[axis]
            if other == 1 or size == other:
                continue
            if size == 1:
                size = other
            elif not facts.equal(size, other):
                if facts.equal(other, 1):
                    continue
                if facts.equal(size, 1):
                    size = other
                    continue
                raise Failure(ShapesDoNotBroadcast.of(facts, shapes, axis, size, other))
        result.append(size)
    return tuple(result)


def broadcast_to(value: Value, shape: Shape) -> Value:
    """Return a value repeated along new leading axes and along axes of size 1."""
    if value.shape == shape:
        return value
    facts = value.builder.facts
    offset = len(shape) - value.ndim
    if offset < 0:
        axis = -len(shape) - 1
        shapes = (value.shape, shape)
        raise Failure(ShapesDoNotBroadcast.of(facts, shapes, axis, value.shape[axis], 1))
    kept: list[int] = []
    for axis, size in enumerate(value.shape):
        wanted = shape[axis + offset]
        if size == 1 and wanted != 1:
            continue
        if not facts.equal(size, wanted):
            if facts.equal(size, 1):
                continue
            raise Failure(
                ShapesDoNotBroadcast.of(
                    facts, (value.shape, shape), axis - value.ndim, size, shape[axis + offset]
                )
            )
        kept.append(axis)
    if len(kept) != value.ndim:
        value = squeeze(value, tuple(a for a in range(value.ndim) if a not in kept))
    if value.shape == shape:
        return value
    return value.builder.spread(value, shape, tuple(a + offset for a in kept))


def squeeze(value: Value, axes: tuple[int, ...]) -> Value:
    """Return a value without some of its axes of size 1."""
    shape = tuple(s for axis, s in enumerate(value.shape) if axis not in axes)
    return value.builder.reshape(value, shape)
