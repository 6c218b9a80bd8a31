"""The elements that windows see as an axis of their own: how rules write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pscdsl._src.primitives.choosing import Select
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.elementwise import equal, floor_divide, remainder
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.shaping import Pad, Reshape, Transpose
from pscdsl._src.primitives.sliding import Window
from pscdsl.typing.array_types import size_of
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


def patches(x: Value, windows: Sequence[Window], fill: float) -> Value:
    """What each place of the windows sees: a last axis, of the size of a window.

    x has an axis for each window; the result has the places along each, then the elements of a
    window in order.  What is not in x is `fill`.
    """
    for window in reversed(windows):
        # The last axis becomes two in front: the places, and the elements seen from each.
        last = x.ndim - 1
        if window == Window(1):
            x = Transpose((last, *range(last)))(x)
            x = Reshape((x.shape[0], 1, *x.shape[1:]))(x)
            continue
        none = (0,) * x.ndim
        padded = Pad(none, (*none[1:], 1), none)(x, x.builder.literal(fill, x.dtype))
        x = Gather((last,))(padded, _indices(x.builder, window, x.shape[last]))
    rank = len(windows)
    x = Transpose((*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)))(x)
    seen = size_of(tuple([window.size for window in windows]))
    return Reshape((*x.shape[:rank], seen))(x)


def _indices(here: Builder, window: Window, size: Size) -> Value:
    """Where the elements stand that a window along an axis sees; those that are none at the end."""
    places = window.places(here.facts, size)
    assert places is not None
    shape = (places, window.size)
    (start,), (step,) = (here.bind(Iota(shape, axis, I32), ()) for axis in (0, 1))
    place = start * window.stride + step * window.dilation - here.size(window.low, I32)
    base, end = window.base_dilation, here.size(size, I32)
    element = place if base == 1 else floor_divide(place, base)
    exists: Value = (place >= 0) & (element < end)
    if base != 1:
        exists = exists & equal(remainder(place, base), 0)
    return Reshape((*shape, 1))(Select()(exists, element, end))
