"""Slices with computed bounds, `x[a:b]`, whose length is known only at run time.

They are the elements that the mask of the places from `a` up to `b` selects, and may be used like
these: see `masks`. But a mask makes a copy, and a slice is a view: it is valid until its array is
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pscdsl._src.frontend.interpreter.counters import size_of
from pscdsl._src.frontend.interpreter.masks import Selected, elementwise, selected
from pscdsl._src.frontend.interpreter.places import Cell, Located, apply_numpy
from pscdsl._src.frontend.values import AnyValue, Array, is_traced
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.primitives import elementwise as e
from pscdsl.numpy import indexing
from pscdsl.numpy.shorthand import cast
from pscdsl.typing.codes.purity import StaleView
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import I64, U64
from pscdsl.typing.python_containers import is_slice, is_tuple


class ComputedSlice(Selected):
    """The elements between two bounds: a view of the array, valid until the array is written."""

    __slots__ = ("_stamps",)

    def __init__(self, chosen: Selected, cells: Sequence[Cell]) -> None:
        super().__init__(chosen.full, chosen.mask, chosen.refusal, safe=True)
        self._stamps = tuple([(cell, cell.stamp) for cell in cells])

    def require_current(self) -> None:
        """Raise a Failure if the array may have changed since."""
        if any(cell.stamp != stamp for cell, stamp in self._stamps):
            raise Failure(StaleView(by="a slice with computed bounds"))

    def cells(self) -> Sequence[Cell]:
        """Return the cells of the array."""
        return [cell for cell, _ in self._stamps]


def part_of(here: Builder, owner: Located, index: AnyValue, refusal: Failure) -> Selected | None:
    """Return `owner[a:b]` of a vector with a computed bound; None for any other index."""
    whole = owner.load()
    mask = between(here, whole, index)
    chosen = None if mask is None else selected(here, whole, mask, refusal)
    return None if chosen is None else ComputedSlice(chosen, owner.cells())


def split(
    owner: Located, index: AnyValue
) -> tuple[tuple[AnyValue, ...], slice[Any, Any, Any]] | None:
    """Split an index `(k, a:b)` with a computed bound into `(k, :)` and `a:b`.

    The first part selects a vector, as every other item is an integer. None for any other index.
    """
    if not (is_tuple(index) and len(index) == owner.ndim > 1):
        return None
    slices = [each for each in index if is_slice(each)]
    if len(slices) != 1 or not all(is_slice(each) or _is_bound(each) for each in index):
        return None
    bounds = (slices[0].start, slices[0].stop)
    if any(each is None for each in index) or not any(map(_is_computed, bounds)):
        return None
    return tuple([slice(None) if is_slice(each) else each for each in index]), slices[0]


def between(here: Builder, whole: AnyValue, index: AnyValue) -> Value | None:
    """Return the mask of the places between two bounds, by Python's rules.

    None if the index is no slice of a vector with computed bounds.
    """
    only = index[0] if is_tuple(index) and len(index) == 1 else index
    if not (is_slice(only) and is_traced(whole) and whole.ndim == 1 and only.step in (None, 1)):
        return None
    bounds = (only.start, only.stop)
    if not any(map(_is_computed, bounds)) or not all(map(_is_bound, bounds)):
        return None
    size = whole.shape[0]
    places = apply_numpy(here, "arange", size, dtype=I64)
    low, high = (None if each is None else _from_front(here, each, size) for each in bounds)
    sides = [] if low is None else [here.elementwise(e.less_equal, [low, places])]
    sides += [] if high is None else [here.elementwise(e.less, [places, high])]
    mask = sides[0] if len(sides) == 1 else here.elementwise(e.bitwise_and, sides)
    assert isinstance(mask, Value)
    return mask


def _is_computed(bound: AnyValue) -> bool:
    """Return whether a bound is known only at run time: it is no size and no loop counter."""
    sized = size_of(bound) is not None or (isinstance(bound, Weak) and bound.made_of_sizes)
    return is_traced(bound) and not sized


def _is_bound(bound: AnyValue) -> bool:
    if bound is None or isinstance(bound, int | Dim):
        return not isinstance(bound, bool)
    if not is_traced(bound) or bound.ndim:
        return False
    if isinstance(bound, Weak):
        return bound.dtype.is_integer
    return bound.dtype.is_integer and bound.dtype is not U64


def _from_front(here: Builder, bound: Array | Size, size: Size) -> Array:
    """Convert a bound that counts from the end; the result may be out of range."""
    if isinstance(bound, Weak):
        value = bound.at(I64)
    else:
        value = cast(bound, I64) if isinstance(bound, Value) else here.size(bound, I64)
    from_end = here.elementwise(e.add, [value, here.size(size, I64)])
    is_negative = here.elementwise(e.less, [value, 0])
    found: Array = apply_numpy(here, "where", is_negative, from_end, value)
    return found


def as_mask(here: Builder, owner: Located, index: AnyValue) -> AnyValue:
    """Return the index of a store, with a slice with computed bounds as the mask of its places."""
    if not is_slice(index[0] if is_tuple(index) and len(index) == 1 else index):
        return index
    mask = between(here, owner.load(), index)
    return index if mask is None else mask


def taken(here: Builder, owner: Located, index: Selected) -> Selected:
    """Return `owner[index]` of a vector for selected indices; the same mask selects the result."""
    whole = owner.load()
    places = index.filled(here, 0)
    if isinstance(owner, Selected) or not is_traced(whole) or whole.ndim != 1:
        index.load()
    if not places.dtype.is_integer:
        index.load()
    inside = Selected(places, index.mask, index.refusal, safe=True)
    return elementwise(here, partial(indexing.getitem, whole), (inside,))
