"""Elements repeated, and put around an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from pscdsl._src.ir.builder import Value, Weak, promote
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Constant
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.shaping import Pad
from pscdsl.numpy.arguments import as_count, as_items, as_shape, normalize_axis
from pscdsl.numpy.calling import of_arrays
from pscdsl.numpy.indexing import require_elements
from pscdsl.numpy.shorthand import (
    at,
    filled,
    iota,
    joined,
    largest,
    part,
    raveled,
    reshaped,
    reversed_along,
    spread,
    transposed,
)
from pscdsl.typing.array_types import Shape, size_of
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.codes.shapes import DataDependentShape
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32
from pscdsl.typing.python_containers import is_dict, is_known_array, is_sequence

# Elements repeated.


@of_arrays("numpy.tile", together=("A",), traced=("reps",))
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


@of_arrays("numpy.repeat", together=("a",), traced=("repeats",))
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


@of_arrays("numpy.resize", together=("a",), traced=("new_shape",))
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


@of_arrays("numpy.pad", together=("array",), traced=("pad_width", "constant_values"))
def pad(
    array: Value,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    reflect_type: str = "even",
) -> Value:
    """Elements put before and after an array on each axis: a constant, or taken from inside."""
    facts = array.builder.facts
    widths = [
        (as_count(low, "numpy.pad", facts), as_count(high, "numpy.pad", facts))
        for low, high in _pairs(_widths_by_axis(array, pad_width), array.ndim)
    ]
    if mode == "empty" or mode == "constant":
        return _with_constants(array, widths, 0 if mode == "empty" else constant_values)
    if mode not in _INSIDE or reflect_type != "even":
        what = f"`pad` with mode {describe(mode)}" + ("" if reflect_type == "even" else ", odd")
        modes = ", ".join(map(repr, ("constant", *_INSIDE)))
        raise Failure(NotSupported(what=what, instead=f"the modes are {modes}"))
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
    """Whether there are as many elements as are wanted on each side."""
    return all(x.builder.facts.proves(Fact("<=", width, size)) for width in widths)


def _around(x: Value, axis: int, low: Size, high: Size, before: Value, after: Value) -> Value:
    pieces = [before] if low != 0 else []
    pieces.append(x)
    return joined([*pieces, after] if high != 0 else pieces, axis)


def _by_places(
    x: Value, axis: int, low: Size, high: Size, period: Size, inside: Callable[[Any], Any]
) -> Value:
    """Elements picked one by one, where the array has fewer than are put around it."""
    place = e.subtract(iota(x, x.shape[axis] + low + high), low)
    return taken(x, inside(e.remainder(place, period)), axis)
