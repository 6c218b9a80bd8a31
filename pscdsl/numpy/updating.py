"""Arrays with more elements, fewer or others: padded, repeated, replaced, left out, put in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.builder import Builder, Value, Weak, promote
from pscdsl._src.language.meanings import OMITTED, describe, function
from pscdsl._src.language.results import Result
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import Combine, DynamicSlice, DynamicUpdate, Gather, Scatter
from pscdsl._src.primitives.shaping import Constant, Pad
from pscdsl.numpy.calling import (
    as_count,
    as_items,
    as_known_integer,
    as_operand,
    as_shape,
    as_size,
    met,
    normalize_axis,
    of_arrays,
)
from pscdsl.numpy.elementwise import require
from pscdsl.numpy.indexing import (
    Along,
    At,
    Cut,
    Dots,
    New,
    Part,
    Picked,
    Selection,
    computed_starts,
    cropped,
    cut,
    from_front,
    index_tuples,
    known_places,
    place,
    read,
    require_elements,
    require_fit,
    require_unrepeated,
    result_shape,
    selection,
    starts_of,
)
from pscdsl.numpy.manipulation import concatenated
from pscdsl.numpy.shorthand import (
    at,
    cast,
    filled,
    iota,
    joined,
    largest,
    moved,
    part,
    raveled,
    reshaped,
    reversed_along,
    spread,
    transposed,
    where,
)
from pscdsl.typing.array_types import Shape, size_of
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.codes.shapes import (
    DataDependentShape,
    NotAnIndex,
    ShapesDoNotBroadcast,
    UnprovenSize,
    WrongNumberOfAxes,
)
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32, I64, U32, U64
from pscdsl.typing.python_containers import is_dict, is_known_array, is_sequence, is_slice

# Elements repeated, and put around an array.


# Elements repeated.


@of_arrays("numpy.tile", together=("A",), traced=("reps",), result=Result.ARRAY)
def tile(A: Value, reps: Any) -> Value:
    """The whole array repeated along its axes, the last counts of `reps` for its last axes."""
    counts = as_shape(reps, "numpy.tile", A.builder.facts)
    rank = max(A.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    x = reshaped(A, (1,) * (rank - A.ndim) + A.shape)
    outer: list[Size] = []
    for count, size in zip(counts, x.shape, strict=True):
        outer += [count, size]
    repeated = spread(x, tuple(outer), range(1, 2 * rank, 2))
    return reshaped(repeated, tuple([c * s for c, s in zip(counts, x.shape, strict=True)]))


@of_arrays("numpy.repeat", together=("a",), traced=("repeats",), result=Result.NEW)
def repeat(a: Value, repeats: Any, axis: int | None = None) -> Value:
    """Each element repeated along an axis, or each as often as its own static count says."""
    if axis is None:
        a, place = raveled(a), 0
    else:
        place = normalize_axis(axis, a.ndim, "numpy.repeat")
    if isinstance(repeats, Value | Weak):
        raise Failure(
            DataDependentShape(
                what="`repeat` with computed counts", instead="give counts as static integers"
            )
        )
    if isinstance(repeats, np.ndarray):
        repeats = repeats.tolist()
    if is_sequence(repeats):
        if len(repeats) != 1:
            return _by_counts(a, repeats, place)
        (repeats,) = repeats
    count = as_count(repeats, "numpy.repeat", a.builder.facts)
    shape = (*a.shape[: place + 1], count, *a.shape[place + 1 :])
    dims = [axis for axis in range(a.ndim + 1) if axis != place + 1]
    merged = (*a.shape[:place], a.shape[place] * count, *a.shape[place + 1 :])
    return reshaped(spread(a, shape, dims), merged)


def _by_counts(a: Value, counts: Sequence[Any], axis: int) -> Value:
    size = a.shape[axis]
    if size != len(counts) or not all(isinstance(count, int) and count >= 0 for count in counts):
        problem = f"takes one static count for each of {size} elements, not {describe(counts)}"
        raise Failure(BadArguments(function="numpy.repeat", problem=problem))
    places = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    if not len(counts):
        return a
    return taken(a, a.builder.bind(Constant.of(places, I32), ())[0], axis)


def taken(a: Value, places: Value, axis: int) -> Value:
    """The elements at places along an axis, whose axes stand in its place; all are in range."""
    tuples = reshaped(places, (*places.shape, 1))
    require_elements(a.builder.facts, a.shape[axis], axis)
    picked = Gather((axis,))(a, tuples)
    order = [*range(places.ndim, places.ndim + axis), *range(places.ndim)]
    order += range(places.ndim + axis, picked.ndim)
    return transposed(picked, order)


@of_arrays("numpy.resize", together=("a",), traced=("new_shape",), result=Result.ARRAY)
def resize(a: Value, new_shape: Any) -> Value:
    """Another shape: elements are repeated, in order, as often as needed, or left out."""
    facts = a.builder.facts
    shape: Shape = as_shape(new_shape, "numpy.resize", facts)
    flat, count = raveled(a), size_of(shape)
    if flat.shape[0] == 0 or count == 0:
        return filled(a, False, shape)
    place = iota(a, count)
    wrapped: Value = e.remainder(place, flat.shape[0])
    return reshaped(taken(flat, wrapped, 0), shape)


# Elements put around an array.


Widths: TypeAlias = "Sequence[tuple[Size, Size]]"


@of_arrays(
    "numpy.pad", together=("array",), traced=("pad_width", "constant_values"), result=Result.ARRAY
)
def pad(
    array: Value,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = OMITTED,
    reflect_type: str = OMITTED,
) -> Value:
    """Elements put before and after an array on each axis: a constant, or taken from inside."""
    for name, value, modes in (
        ("constant_values", constant_values, ("constant",)),
        ("reflect_type", reflect_type, ("reflect", "symmetric")),
    ):
        if value is not OMITTED and mode not in modes:
            problem = f"takes no `{name}` with the mode {describe(mode)}"
            raise Failure(BadArguments(function="numpy.pad", problem=problem))
    constant_values = 0 if constant_values is OMITTED else constant_values
    reflect_type = "even" if reflect_type is OMITTED else reflect_type
    facts = array.builder.facts
    widths = [
        (as_count(low, "numpy.pad", facts), as_count(high, "numpy.pad", facts))
        for low, high in _pairs(_widths_by_axis(array, pad_width), array.ndim)
    ]
    if mode == "empty" or mode == "constant":
        return _with_constants(array, widths, 0 if mode == "empty" else constant_values)
    if mode not in _INSIDE or reflect_type != "even":
        what = f"`pad` with mode {describe(mode)}" + ("" if reflect_type == "even" else ", odd")
        known = ", ".join(map(repr, ("constant", *_INSIDE)))
        raise Failure(NotSupported(what=what, instead=f"the modes are {known}"))
    for axis, (low, high) in enumerate(widths):
        if low != 0 or high != 0:
            require_elements(facts, array.shape[axis], axis)
            array = _INSIDE[mode](array, axis, low, high)
    return array


def _widths_by_axis(array: Value, widths: Any) -> Any:
    if is_known_array(widths):
        return widths.tolist()
    if not is_dict(widths):
        return widths
    pairs: list[Any] = [(0, 0)] * array.ndim
    for axis, width in widths.items():
        pairs[normalize_axis(axis, array.ndim, "numpy.pad")] = width
    return tuple(pairs)


def _pairs(given: Any, rank: int) -> list[tuple[Any, Any]]:
    """What to put before and after on each axis, broadcast as NumPy does."""
    items = as_items(given)
    if any(is_sequence(item) for item in items):
        pairs = [_pair(item) for item in items]
        if len(pairs) not in (1, rank):
            problem = f"takes a pair for each of {rank} axes, not {len(pairs)}"
            raise Failure(BadArguments(function="numpy.pad", problem=problem))
        return pairs * rank if len(pairs) == 1 else pairs
    return [_pair(given)] * rank


def _pair(given: Any) -> tuple[Any, Any]:
    items = as_items(given)
    if len(items) not in (1, 2):
        problem = f"takes what to put before and after, not {len(items)} items"
        raise Failure(BadArguments(function="numpy.pad", problem=problem))
    return items[0], items[-1]


def _with_constants(x: Value, widths: Widths, constants: Any) -> Value:
    pairs = _pairs(constants, x.ndim)
    first = pairs[0][0] if pairs else 0
    if all(each is first or _same(each, first) for pair in pairs for each in pair):
        lows, highs = tuple(low for low, _ in widths), tuple(high for _, high in widths)
        return _padded(x, lows, highs, first)
    for axis, ((low, high), (before, after)) in enumerate(zip(widths, pairs, strict=True)):
        none: list[Size] = [0] * x.ndim
        x = _padded(x, [*none[:axis], low, *none[axis + 1 :]], none, before)
        x = _padded(x, none, [*none[:axis], high, *none[axis + 1 :]], after)
    return x


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, int | float) and isinstance(other, int | float) and one == other


def _padded(x: Value, low: Sequence[Size], high: Sequence[Size], constant: Any) -> Value:
    if all(width == 0 for width in (*low, *high)):
        return x
    if x.dtype is BOOL and isinstance(constant, int) and constant in (0, 1):
        constant = bool(constant)
    values = promote(x, constant)
    assert values is not None
    return Pad(tuple(low), tuple(high), (0,) * x.ndim)(*values)


def _edge(x: Value, axis: int, low: Size, high: Size) -> Value:
    size = x.shape[axis]

    def repeated(start: Size, width: Size) -> Value:
        shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
        return spread(at(x, axis, start), shape, [a for a in range(x.ndim) if a != axis])

    return _around(x, axis, low, high, repeated(0, low), repeated(size - 1, high))


def _reflect(x: Value, axis: int, low: Size, high: Size) -> Value:
    size = x.shape[axis]
    if not _reach(x, size - 1, low, high):
        period = largest(x.builder.facts, 2 * (size - 1), 1)
        return _by_places(x, axis, low, high, period, lambda j: e.minimum(j, period - j))
    before = reversed_along(part(x, axis, 1, low + 1), axis)
    after = reversed_along(part(x, axis, size - 1 - high, size - 1), axis)
    return _around(x, axis, low, high, before, after)


def _symmetric(x: Value, axis: int, low: Size, high: Size) -> Value:
    size = x.shape[axis]
    if not _reach(x, size, low, high):
        return _by_places(x, axis, low, high, 2 * size, lambda j: e.minimum(j, 2 * size - 1 - j))
    before = reversed_along(part(x, axis, 0, low), axis)
    after = reversed_along(part(x, axis, size - high, size), axis)
    return _around(x, axis, low, high, before, after)


def _wrap(x: Value, axis: int, low: Size, high: Size) -> Value:
    size = x.shape[axis]
    if not _reach(x, size, low, high):
        return _by_places(x, axis, low, high, size, lambda j: j)
    before, after = part(x, axis, size - low, size), part(x, axis, 0, high)
    return _around(x, axis, low, high, before, after)


_INSIDE: dict[str, Callable[[Value, int, Size, Size], Value]] = {
    "edge": _edge,
    "reflect": _reflect,
    "symmetric": _symmetric,
    "wrap": _wrap,
}


def _reach(x: Value, size: Size, *widths: Size) -> bool:
    """Return whether there are as many elements as are wanted on each side."""
    return all(x.builder.facts.proves(Fact("<=", width, size)) for width in widths)


def _around(x: Value, axis: int, low: Size, high: Size, before: Value, after: Value) -> Value:
    pieces = [before] if low != 0 else []
    pieces.append(x)
    return joined([*pieces, after] if high != 0 else pieces, axis)


def _by_places(
    x: Value, axis: int, low: Size, high: Size, period: Size, inside: Callable[[Any], Any]
) -> Value:
    """Elements picked one by one, where the array has fewer than are put around it."""
    place = iota(x, x.shape[axis] + low + high) - low
    return taken(x, inside(e.remainder(place, period)), axis)


# New arrays that differ from another in a part: elements replaced, left out, put in.


# Elements taken, left out and put in along an axis.


@of_arrays("numpy.take", together=("a",), alone=("indices",), result=Result.NEW)
def take(a: Value, indices: Value, axis: int | None = None, *, mode: str = "raise") -> Value:
    """The elements at indices along an axis, by default among all; clamped, or wrapped around."""
    if mode not in ("raise", "wrap", "clip"):
        problem = f"takes `mode` as 'raise', 'wrap' or 'clip', not {describe(mode)}"
        raise Failure(BadArguments(function="numpy.take", problem=problem))
    if axis is None:
        a, along = raveled(a), 0
    else:
        along = normalize_axis(axis, a.ndim, "numpy.take")
    places = _checked(indices)
    size = a.shape[along]
    require_elements(a.builder.facts, size, along)
    if mode == "raise":
        return read(a, selection(a, (*[slice(None)] * along, known_places(places))))
    places = in_wide_dtype(places)
    places = e.remainder(places, size) if mode == "wrap" else _clipped(places, size)
    return taken(a, places, along)


def in_wide_dtype(places: Value) -> Value:
    """Return integers in a dtype that holds any size."""
    if places.dtype.bits < 32:
        return cast(places, I32)
    return cast(places, I64) if places.dtype is U32 else places


def _clipped(places: Value, size: Size) -> Value:
    """Places brought into range in so many words, so that they are known to be."""
    here, dtype = places.builder, places.dtype
    return e.Clamp()(here.literal(0, dtype), places, here.size(size - 1, dtype))


def _checked(indices: Value) -> Value:
    if indices.dtype is BOOL or not indices.dtype.is_integer:
        raise Failure(NotAnIndex(what=f"an array of dtype {indices.dtype}"))
    return cast(indices, I64) if indices.dtype is U64 else indices  # as NumPy, from 2**63 on too


@of_arrays("numpy.take_along_axis", together=("arr",), alone=("indices",), result=Result.NEW)
def take_along_axis(arr: Value, indices: Value, axis: int | None = -1) -> Value:
    """Elements along an axis, at places of their own for each row; clamped."""
    name, places = "numpy.take_along_axis", _checked(indices)
    if axis is None:
        if places.ndim != 1:
            wanted = "a vector of indices without an axis"
            raise Failure(WrongNumberOfAxes(function=name, given=places.type, wanted=wanted))
        arr, along = raveled(arr), 0
    else:
        along = normalize_axis(axis, arr.ndim, name)
    if places.ndim != arr.ndim:
        wanted = f"indices with as many axes as the array, {arr.ndim}"
        raise Failure(WrongNumberOfAxes(function=name, given=places.type, wanted=wanted))
    arr, places = _aligned(arr, places, along)
    require_elements(arr.builder.facts, arr.shape[along], along)
    places = from_front(places, arr.shape[along])
    rank = arr.ndim
    front = [other for other in range(rank) if other != along]
    arr, places = transposed(arr, (*front, along)), transposed(places, (*front, along))
    picked = Gather((rank - 1,), batched=rank - 1)(arr, reshaped(places, (*places.shape, 1)))
    return transposed(picked, (*range(along), rank - 1, *range(along, rank - 1)))


def _aligned(arr: Value, places: Value, along: int) -> tuple[Value, Value]:
    """Both broadcast to one shape, but for the axis along which elements are taken."""
    facts = arr.builder.facts
    sizes: list[Size] = []
    for other, (left, right) in enumerate(zip(arr.shape, places.shape, strict=True)):
        size = right if left == 1 else left
        if other != along and right != 1 and not facts.equal(size, right):
            shapes = (arr.shape, places.shape)
            raise Failure(ShapesDoNotBroadcast.of(facts, shapes, other - arr.ndim, left, right))
        sizes.append(size)

    def shape(own: Value) -> Shape:
        return tuple([own.shape[a] if a == along else size for a, size in enumerate(sizes)])

    return broadcast_to(arr, shape(arr)), broadcast_to(places, shape(places))


@of_arrays("numpy.delete", together=("arr",), traced=("obj",), result=Result.NEW)
def delete(arr: Value, obj: Any, axis: int | None = None) -> Value:
    """Without the elements at static places along an axis, by default among all."""
    if axis is None:
        arr, along = raveled(arr), 0
    else:
        along = normalize_axis(axis, arr.ndim, "numpy.delete")
    facts, size = arr.builder.facts, arr.shape[along]
    if is_slice(obj):
        gone = cut(facts, obj, size)
        if gone.stride == 1:
            return _without(arr, along, [(gone.start, gone.limit)])
        if not isinstance(size, int):
            raise Failure(NotSupported(what="`delete` of a slice with a step, of a symbolic size"))
        every: Any = range(size)
        obj = list(every[obj])
    places = _static_places("numpy.delete", obj, along, arr)
    return _without(arr, along, [(index, index + 1) for index in places])


def _static_places(name: str, obj: Any, axis: int, arr: Value) -> list[Size]:
    """Static indices in order, each once, counted from the front."""
    facts, size = arr.builder.facts, arr.shape[axis]
    if is_known_array(obj):
        obj = obj.ravel().tolist()
    given = as_items(obj)
    if any(as_known_integer(each) is None for each in given):
        raise Failure(
            DataDependentShape(
                what=f"`{name}` at computed places", instead="give the places as static integers"
            )
        )
    found: list[Size] = []
    for each in given:
        index = place(facts, as_size(each, name), size, axis)
        if index not in found:
            found.append(index)
    if all(isinstance(index, int) for index in found):
        return sorted(found)  # type: ignore[type-var]
    if len(found) > 1:
        raise Failure(NotSupported(what=f"`{name}` at several symbolic places"))
    return found


def _without(arr: Value, axis: int, gone: Sequence[tuple[Size, Size]]) -> Value:
    kept: list[Value] = []
    start: Size = 0
    for begin, end in gone:
        kept.append(part(arr, axis, start, begin))
        start = end
    kept.append(part(arr, axis, start, arr.shape[axis]))
    return joined([x for x in kept if x.shape[axis] != 0] or kept[:1], axis)


@of_arrays(
    "numpy.insert",
    together=("arr", "values"),
    traced=("obj",),
    weak_items=("values",),
    keeps=("arr",),
    result=Result.NEW,
)
def insert(arr: Value, obj: Any, values: Value, axis: int | None = None) -> Value:
    """With values put in before a static place along an axis, by default among all elements."""
    if axis is None:
        arr, along = raveled(arr), 0
    else:
        along = normalize_axis(axis, arr.ndim, "numpy.insert")
    facts, size = arr.builder.facts, arr.shape[along]
    several = is_sequence(obj)
    if several and len(obj) == 1:
        (obj,) = obj
    at = as_known_integer(obj)
    if at is None:
        raise Failure(
            NotSupported(
                what="`insert` at several or computed places",
                instead="insert one after the other, at static places",
            )
        )
    if facts.proves(Fact("<=", at, -1)):
        at = at + size
    for claim in (Fact("<=", 0, at), Fact("<=", at, size)):
        if not facts.proves(claim):
            raise Failure(UnprovenSize.of(facts, "the place of `insert`", claim))
    values = reshaped(values, (1,) * (arr.ndim - values.ndim) + values.shape)
    if not several:
        values = moved(values, 0, along)  # as NumPy: the values of one place come first
    count = values.shape[along]
    shape = tuple([count if a == along else s for a, s in enumerate(arr.shape)])
    values = broadcast_to(values, shape)
    pieces = [part(arr, along, 0, at), values, part(arr, along, at, size)]
    return concatenated("numpy.insert", pieces, along)


# Functional update: a new array that differs from another in a part of it.


_COMBINE: dict[str, tuple[Combine, e.Elementwise | None]] = {
    "set": ("set", None),
    "add": ("add", e.add),
    "multiply": ("multiply", e.multiply),
    "minimum": ("minimum", e.minimum),
    "maximum": ("maximum", e.maximum),
}


@function("pscdsl.update")
def update(here: Builder, x: Any, index: Any, value: Any, combine: str) -> Value | Weak:
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
    return primitive(old, new)


def _mask(index: Any) -> Value | None:
    items = as_items(index)
    only = items[0] if len(items) == 1 else None
    return only if isinstance(only, Value) and only.dtype is BOOL else None


def _masked(x: Value, mask: Value, value: Value, combine: str) -> Value:
    """Return where a mask over the leading axes holds; the value is the same at each such place."""
    rest = x.shape[mask.ndim :]
    value = _without_leading(value, len(rest))
    if value.ndim > len(rest):
        raise Failure(
            DataDependentShape(
                what="the part that a mask selects",
                instead="`np.where(mask, values, x)` takes values for all places",
            )
        )
    require_unrepeated(mask, x.shape)
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
    for number, along in enumerate(strided):
        steps = _steps(x, along.cut)
        places.append(Picked(along.axis, reshaped(steps, (*steps.shape, *after[number + 1 :]))))
    return places


def _steps(x: Value, cut: Cut) -> Value:
    """The places of a slice with a stride."""
    steps = iota(x, cut.size) * cut.stride
    return cut.limit - 1 - steps if cut.backwards else steps + cut.start


def _region(chosen: Selection, common: Shape) -> Shape:
    """The shape of the part that an index picks."""
    sizes: dict[str, Size] = {f"array {axis}": size for axis, size in enumerate(common)}
    sizes |= {f"slice {part.axis}": part.cut.size for part in chosen.along()}
    return tuple([sizes.get(each, 1) for each in chosen.layout(len(common))])
