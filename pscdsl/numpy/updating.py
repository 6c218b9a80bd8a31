"""Functional update: a new array that differs from another in a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.ir.builder import Builder, Value, Weak, broadcast_to
from pscdsl._src.language.meanings import describe, function
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.dynamic_slicing import DynamicSlice, DynamicUpdate
from pscdsl._src.primitives.indexing import Combine, Scatter
from pscdsl.numpy.arguments import as_items
from pscdsl.numpy.elementwise import require
from pscdsl.numpy.indexing import (
    computed_starts,
    cropped,
    index_tuples,
    require_fit,
    result_shape,
    starts_of,
)
from pscdsl.numpy.openness import as_operand, met
from pscdsl.numpy.selections import (
    Along,
    At,
    Dots,
    New,
    Part,
    Picked,
    Selection,
    require_elements,
    selection,
)
from pscdsl.numpy.shorthand import iota, reshaped, reversed_along, transposed, where
from pscdsl.numpy.slices import Cut
from pscdsl.typing.arrays import Shape
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_manipulation import DataDependentShape
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32

_COMBINE: dict[str, tuple[Combine, e.Elementwise | None]] = {
    "set": ("set", None),
    "add": ("add", e.add),
    "multiply": ("multiply", e.multiply),
    "minimum": ("minimum", e.minimum),
    "maximum": ("maximum", e.maximum),
}


@function("pscdsl.update")
def update(here: Builder, x: Any, index: Any, value: Any, combine: str = "set") -> Value | Weak:
    """`x` with `x[index]` replaced by, or combined with, `value`; computed indices are clamped."""
    if combine not in _COMBINE:
        problem = f"takes `combine` as {', '.join(map(repr, _COMBINE))}, not {describe(combine)}"
        raise Failure(BadArguments(function="pscdsl.update", problem=problem))
    return met(here, (x, value), None, lambda pair: _updated(pair[0], pair[1], index, combine))


@function("pscdsl.dynamic_update")
def dynamic_update(here: Builder, x: Any, update: Any, starts: Any) -> Value | Weak:
    """`x` with a part replaced, at a computed place that is clamped so that the part fits."""

    def build(pair: Any) -> Value:
        array, part = pair
        require_fit(here, "pscdsl.dynamic_update", part.shape, array.shape)
        return DynamicUpdate()(array, part, *places)

    rank = as_operand(here, x).ndim
    places = computed_starts(here, "pscdsl.dynamic_update", rank, starts)
    return met(here, (x, update), None, build)


def _updated(x: Value, value: Value, index: Any, combine: str) -> Value:
    if combine in ("minimum", "maximum"):
        require("pscdsl.update", x, "bool, integer or float")
    elif combine != "set":
        require("pscdsl.update", x, "numeric")
    mask = _mask(index)
    if mask is not None:
        return _masked(x, mask, value, combine)
    chosen = selection(x, index)
    if any(size == 0 for size in x.shape):
        return x
    if chosen.has_arrays or any(part.cut.stride != 1 for part in chosen.along()):
        return _scattered(x, chosen, value, combine)
    return _replaced(x, chosen, value, combine)


def _combined(old: Value, new: Value, combine: str) -> Value:
    primitive = _COMBINE[combine][1]
    if primitive is None:
        return new
    result: Value = primitive(old, new)
    return result


def _mask(index: Any) -> Value | None:
    items = as_items(index)
    only = items[0] if len(items) == 1 else None
    return only if isinstance(only, Value) and only.dtype is BOOL else None


def _masked(x: Value, mask: Value, value: Value, combine: str) -> Value:
    """Where a mask over the leading axes holds; the value is the same at each such place."""
    rest = x.shape[mask.ndim :]
    value = _without_leading(value, len(rest))
    if value.ndim > len(rest):
        raise Failure(
            DataDependentShape(
                what="the part that a mask selects",
                instead="`np.where(mask, values, x)` takes values for all places",
            )
        )
    mask = reshaped(mask, (*mask.shape, *(1 for _ in rest)))
    whole = broadcast_to(value, x.shape)
    return where(broadcast_to(mask, x.shape), _combined(x, whole, combine), x)


def _without_leading(value: Value, rank: int) -> Value:
    """A value without axes of size 1 that a part of this rank does not have."""
    while value.ndim > rank and value.shape[0] == 1:
        value = reshaped(value, value.shape[1:])
    return value


def _fitted(value: Value, shape: Shape) -> Value:
    """A value broadcast to the shape of the part that it replaces."""
    return broadcast_to(_without_leading(value, len(shape)), shape)


def _replaced(x: Value, chosen: Selection, value: Value, combine: str) -> Value:
    """A part that is contiguous, up to the direction of its axes."""
    part = _fitted(value, result_shape(chosen))
    sizes: list[Size] = [1] * x.ndim
    starts: list[Size] = [0] * x.ndim
    backwards: list[int] = []
    for each in chosen.parts:
        if isinstance(each, Along):
            sizes[each.axis], starts[each.axis] = each.cut.size, each.cut.start
            if each.cut.backwards:
                backwards.append(each.axis)
        elif isinstance(each, At):
            starts[each.axis] = each.index
    part = reversed_along(reshaped(part, tuple(sizes)), *backwards)
    if tuple(sizes) == x.shape:
        return _combined(x, part, combine)
    computed = starts_of(x, chosen)
    places = [
        now if start == 0 else x.builder.size(start, I32)
        for now, start in zip(computed, starts, strict=True)
    ]
    if combine != "set":
        part = _combined(DynamicSlice(tuple(sizes))(x, *places), part, combine)
    return DynamicUpdate()(x, part, *places)


def _scattered(x: Value, chosen: Selection, value: Value, combine: str) -> Value:
    """A part with gaps, or at computed places."""
    # The slices without gaps are cut out first and put back last.
    outside = Selection(tuple(_outer(part, x.shape) for part in chosen.parts))
    inside = Selection(tuple(_inner(part) for part in chosen.parts))
    window = cropped(x, outside)
    changed = _scattered_inside(window, inside, value, combine)
    if window is x:
        return changed
    return _replaced(x, _plain(outside), changed, "set")


def _outer(part: Part, shape: Shape) -> Part:
    if isinstance(part, Along) and part.cut.stride == 1:
        return Along(part.axis, Cut(part.cut.start, part.cut.limit))
    if isinstance(part, New | Dots):
        return part
    return Along(part.axis, Cut(0, shape[part.axis]))


def _inner(part: Part) -> Part:
    if isinstance(part, Along) and part.cut.stride == 1:
        return Along(part.axis, Cut(0, part.cut.width, 1, part.cut.backwards))
    return part


def _plain(chosen: Selection) -> Selection:
    return Selection(tuple(part for part in chosen.parts if not isinstance(part, New)))


def _scattered_inside(x: Value, chosen: Selection, value: Value, combine: str) -> Value:
    picking = chosen.picking()
    strided = [part for part in chosen.along() if part.cut.stride != 1]
    whole = [part for part in chosen.along() if part.cut.stride == 1]
    for each in (*picking, *strided):
        require_elements(x.builder.facts, x.shape[each.axis], each.axis)
    common = index_tuples(x, picking).shape[:-1] if picking else ()
    part = _fitted(value, _region(chosen, common))
    layout = chosen.layout(len(common))
    part = reshaped(part, tuple([s for s, e in zip(part.shape, layout, strict=True) if e != "new"]))
    layout = [each for each in layout if each != "new"]
    order = [f"array {axis}" for axis in range(len(common))]
    order += [f"slice {each.axis}" for each in (*strided, *whole)]
    part = transposed(part, [layout.index(each) for each in order])
    backwards = [order.index(f"slice {each.axis}") for each in whole if each.cut.backwards]
    part = reversed_along(part, *backwards)
    places = _tuples(x, picking, strided)
    scatter = Scatter(
        tuple(each.axis for each in (*picking, *strided)),
        _COMBINE[combine][0],
        unique=not picking,
    )
    return scatter(x, index_tuples(x, places), part)


def _tuples(
    x: Value, picking: Sequence[At | Picked], strided: Sequence[Along]
) -> list[At | Picked]:
    """Places that broadcast to the axes of the arrays, then one for each slice with gaps."""
    after = tuple([1] * len(strided))
    places: list[At | Picked] = [
        Picked(part.axis, reshaped(part.places, (*part.places.shape, *after)))
        if isinstance(part, Picked) and part.places.ndim
        else part
        for part in picking
    ]
    for number, part in enumerate(strided):
        steps = _steps(x, part.cut)
        places.append(Picked(part.axis, reshaped(steps, (*steps.shape, *after[number + 1 :]))))
    return places


def _steps(x: Value, cut: Cut) -> Value:
    """The places of a slice with a stride."""
    steps = e.multiply(iota(x, cut.size), cut.stride)
    result: Value = e.subtract(cut.limit - 1, steps) if cut.backwards else e.add(steps, cut.start)
    return result


def _region(chosen: Selection, common: Shape) -> Shape:
    """The shape of the part that an index picks."""
    sizes: dict[str, Size] = {f"array {axis}": size for axis, size in enumerate(common)}
    sizes |= {f"slice {part.axis}": part.cut.size for part in chosen.along()}
    return tuple([sizes.get(each, 1) for each in chosen.layout(len(common))])
