"""What stands between the brackets of `x[...]`, read against the axes of `x`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

from pscdsl._src.ir.builder import Value, Weak
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Constant
from pscdsl.numpy.arguments import as_known_integer
from pscdsl.numpy.openness import Known
from pscdsl.numpy.shorthand import cast, joined, reshaped, where
from pscdsl.numpy.slices import Cut, cut, place
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_indexing import NotAnIndex, TooManyIndices
from pscdsl.typing.codes.shapes_manipulation import DataDependentShape, UnprovenSize
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import BOOL, I32, I64, Kind
from pscdsl.typing.python_containers import NDArray, is_known_array, is_sequence, is_slice


@dataclass(frozen=True)
class New:
    """`None`: a new axis of size 1."""


@dataclass(frozen=True)
class Dots:
    """`...` that stands for no axis: it still sets apart what is picked on its two sides."""


@dataclass(frozen=True)
class At:
    """One place on an axis, known while checking and proven to be on it."""

    axis: int
    index: Size


@dataclass(frozen=True)
class Along:
    """A slice of an axis."""

    axis: int
    cut: Cut


@dataclass(frozen=True)
class Picked:
    """Places on an axis computed by the program, counted from the front; clamped when it runs."""

    axis: int
    places: Value


Part: TypeAlias = New | Dots | At | Along | Picked


@dataclass(frozen=True)
class Selection:
    """An index of an array, one part for each axis and each new one, in the order written."""

    parts: tuple[Part, ...]

    @property
    def has_arrays(self) -> bool:
        """Whether an array of one axis or more picks."""
        return any(isinstance(part, Picked) and part.places.ndim for part in self.parts)

    def along(self) -> tuple[Along, ...]:
        """The slices."""
        return tuple(part for part in self.parts if isinstance(part, Along))

    def picking(self) -> tuple[At | Picked, ...]:
        """The single places and arrays of places."""
        return tuple(part for part in self.parts if isinstance(part, At | Picked))

    def layout(self, count: int) -> list[str]:
        """The axes of the result in order, when the arrays together have `count` of them.

        `slice 2` is that of axis 2, `array 0` the first that the arrays give, `new` a new one.
        What picks together gives its axes in its place; if it stands apart, first, as in NumPy.
        """
        kinds = [isinstance(part, At | Picked) for part in self.parts]
        first = kinds.index(True) if any(kinds) else 0
        apart = not all(kinds[first : first + sum(kinds)])
        arrays = [f"array {axis}" for axis in range(count)]
        found = arrays if apart else []
        for position, part in enumerate(self.parts):
            if isinstance(part, New):
                found = [*found, "new"]
            elif isinstance(part, Along):
                found = [*found, f"slice {part.axis}"]
            elif position == first and not apart:
                found = [*found, *arrays]
        return found


def selection(x: Value, index: Any) -> Selection:
    """An index of this array, with missing axes filled in."""
    items: list[Any] = list(index) if isinstance(index, tuple) else [index]  # pyright: ignore[reportUnknownArgumentType]
    if any(isinstance(item, bool | np.bool_) for item in items):
        raise Failure(NotAnIndex(what="`True` or `False`"))
    used = sum(1 for item in items if item is not None and item is not Ellipsis)
    if used > x.ndim:
        raise Failure(TooManyIndices(given=x.type, count=used))
    dots = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise Failure(NotAnIndex(what="more than one `...`"))
    whole: list[Any] = [slice(None)] * (x.ndim - used)
    if dots and not whole:
        whole.append(Ellipsis)
    at = dots[0] if dots else len(items)
    items[at : at + 1] = whole
    return Selection(tuple(_parts(x, items)))


def _parts(x: Value, items: Sequence[Any]) -> Iterator[Part]:
    facts = x.builder.facts
    axis = 0
    for item in items:
        if item is None or item is Ellipsis:
            yield New() if item is None else Dots()
            continue
        size = x.shape[axis]
        index = as_known_integer(item)
        if is_slice(item):
            yield Along(axis, cut(facts, item, size))
        elif index is not None:
            yield At(axis, place(facts, index, size, axis))
        else:
            yield Picked(axis, _places(x, item, axis))
        axis += 1


def _places(x: Value, item: Any, axis: int) -> Value:
    facts, size = x.builder.facts, x.shape[axis]
    if is_sequence(item):
        item = _from_list(x, item, axis)
    elif is_known_array(item):
        item = _from_constant(x, item, axis)
    elif isinstance(item, Known) and item.kind <= Kind.INT:
        item = _from_constant(x, item.numbers, axis)
    if isinstance(item, Weak):
        if item.kind > Kind.INT:
            raise Failure(NotAnIndex(what=f"an array of dtype {item.dtype}"))
        item = item.default()
    if not isinstance(item, Value):
        raise Failure(NotAnIndex(what=describe(item)))
    if item.dtype is BOOL:
        refuse_mask()
    if not item.dtype.is_integer:
        raise Failure(NotAnIndex(what=f"an array of dtype {item.dtype}"))
    require_elements(facts, size, axis)
    return from_front(item, size)


def refuse_mask() -> NoReturn:
    """Refuse an index whose result would have as many elements as a mask has True."""
    raise Failure(
        DataDependentShape(
            what="an array indexed by a mask",
            instead="`np.where(mask, x, 0)` keeps the shape, for a sum; "
            "for a maximum, `np.where(mask, x, -np.inf)`",
        )
    )


def require_elements(facts: Assumptions, size: Size, axis: int) -> None:
    """Refuse to pick from an axis that may be empty."""
    claim = Fact("<=", 1, size)
    if not facts.proves(claim):
        what = f"an element is picked from axis {axis} of size {size}"
        raise Failure(UnprovenSize.of(facts, what, claim))


def from_front(places: Value, size: Size) -> Value:
    """Computed places with negative ones, which count from the end, made positive."""
    if not places.dtype.signed:
        return places
    wide = cast(places, I32 if places.dtype.bits <= 32 else I64)
    return where(e.less(wide, 0), e.add(wide, size), wide)


def _from_list(x: Value, item: Sequence[Any], axis: int) -> Value:
    """Nested lists of places; those known while checking must be on the axis."""
    facts, size, here = x.builder.facts, x.shape[axis], x.builder
    leaves = list(_leaves(item))
    truths = [isinstance(leaf, bool | np.bool_) for leaf in leaves]
    if truths and all(truths):
        return _from_constant(x, np.array(leaves).reshape(_lengths(item)), axis)
    if any(truths):
        raise Failure(NotAnIndex(what="a list of numbers and of `True` and `False`"))
    found: list[Any] = []
    for leaf in leaves:
        index = as_known_integer(leaf)
        if index is not None:
            leaf = place(facts, index, size, axis)
        elif not isinstance(leaf, Value | Weak):
            raise Failure(NotAnIndex(what=describe(leaf)))
        found.append(leaf)
    shape = _lengths(item)
    if all(isinstance(leaf, int) for leaf in found):
        return here.bind(Constant.of(np.array(found, np.int32).reshape(shape), I32), ())[0]
    pieces: list[Value] = []
    for leaf in found:
        value = here.size(leaf, I32) if isinstance(leaf, int | Dim) else _places(x, leaf, axis)
        if value.ndim:
            raise Failure(NotAnIndex(what="a list of arrays"))
        pieces.append(reshaped(cast(value, I32 if value.dtype.bits <= 32 else I64), (1,)))
    widest = I64 if any(piece.dtype is I64 for piece in pieces) else I32
    return reshaped(joined([cast(piece, widest) for piece in pieces], 0), shape)


def _from_constant(x: Value, item: NDArray, axis: int) -> Value:
    """An array known while checking; its places must be on the axis."""
    facts, size = x.builder.facts, x.shape[axis]
    if item.dtype == np.bool_:
        if item.ndim != 1:
            raise Failure(NotAnIndex(what=f"a mask of {item.ndim} axes"))
        claim = Fact("==", size, len(item))
        if facts.proves(claim.negated()):
            raise Failure(NotAnIndex(what=f"a mask of {len(item)} elements for {size} of an axis"))
        if not facts.proves(claim):
            raise Failure(UnprovenSize.of(facts, "a mask", claim))
        item = np.flatnonzero(item)
    if item.dtype.kind not in "iu":
        raise Failure(NotAnIndex(what=f"an array of dtype {item.dtype}"))
    if item.size:
        for end in (int(item.min()), int(item.max())):
            place(facts, end, size, axis)
    if isinstance(size, int):
        item = np.where(item < 0, item + size, item)
    return x.builder.bind(Constant.of(item, I32), ())[0]


def _leaves(item: Any) -> Iterator[Any]:
    if is_sequence(item):
        for each in item:
            yield from _leaves(each)
    else:
        yield item


def _lengths(item: Any) -> tuple[int, ...]:
    if not is_sequence(item):
        return ()
    shapes = {_lengths(each) for each in item}
    if len(shapes) > 1:
        problem = "takes lists of equal lengths as indices"
        raise Failure(BadArguments(function="x[...]", problem=problem))
    return (len(item), *(shapes.pop() if shapes else ()))
