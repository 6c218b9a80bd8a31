"""Elements repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Value, Weak
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Constant
from pscdsl._src.primitives.indexing import Gather
from pscdsl.numpy.axes import normalize_axis
from pscdsl.numpy.calling import of_arrays
from pscdsl.numpy.selections import require_elements
from pscdsl.numpy.shorthand import filled, iota, raveled, reshaped, spread, transposed
from pscdsl.numpy.sizes import as_count, as_shape
from pscdsl.typing.arrays import Shape, size_of
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_manipulation import DataDependentShape
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32
from pscdsl.typing.python_containers import is_sequence


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
