"""Elements picked along an axis, at a place of its own for each: how rules write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.shaping import Pad, Reshape, Transpose, at_most, inverted, without

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


def take_along(x: Value, places: Value, axis: int, *, unique: bool = False) -> Value:
    """Elements of x along an axis, of the shape of `places`, which has the other axes of x too.

    A place is an integer below the size of x along the axis; `unique` promises that none occurs
    twice along it.
    """
    last = x.ndim - 1
    if not at_most(x.builder.facts, 1, x.shape[axis]):
        # There may be nothing to pick from, and then no place; an index needs something there.
        none = (0,) * x.ndim
        more = tuple([int(a == axis) for a in range(x.ndim)])
        x = Pad(none, more, none)(x, x.builder.literal(0, x.dtype))
    front = without(range(x.ndim), (axis,))
    if axis != last:
        x, places = (Transpose((*front, axis))(each) for each in (x, places))
    found = Gather((last,), last, unique)(x, Reshape((*places.shape, 1))(places))
    return found if axis == last else Transpose(inverted((*front, axis)))(found)
