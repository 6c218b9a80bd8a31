"""Sorting, searching and counting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import describe, function
from pscdsl._src.language.results import Result, new_if
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import Gather, Scatter
from pscdsl._src.primitives.reductions import ArgReduce, Extreme, Reduce
from pscdsl._src.primitives.sorting import SearchSorted, Side, Sort, TopK
from pscdsl.numpy.calling import (
    as_array,
    as_count,
    as_operand,
    as_size,
    in_dtype,
    normalize_axis,
    of_numbers,
    require_static,
)
from pscdsl.numpy.elementwise import REAL, require, to_inexact
from pscdsl.numpy.indexing import known_places
from pscdsl.numpy.reductions import extremum, finished, require_elements, total, without_nan
from pscdsl.numpy.shorthand import (
    at,
    at_least,
    cast,
    counting,
    filled,
    integers_of,
    iota,
    joined,
    listed,
    moved,
    part,
    raveled,
    reshaped,
    reversed_along,
    spread,
    where,
    wide,
)
from pscdsl.numpy.updating import in_wide_dtype
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import DataDependentShape, WrongNumberOfAxes, disagreement, instance
from pscdsl.typing.codes.shapes_of_arguments import LengthsDiffer, TooFewElements, WeightsDoNotFit
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import C64, C128, I32, DType, Kind
from pscdsl.typing.python_containers import NDArray, is_known_array, is_sequence

# Order: sorting, places of extrema, the largest few.
#
# Sorting is stable, but for the signs of zeros where nothing asks for that; NaN comes last, and
# places are i32.


STABLE_KINDS = {"q": False, "h": False, "m": True, "s": True}
"""Whether a sort is stable, by the letter that its kind begins with: NumPy reads no more of it."""


def in_order(a: Value, axis: int, stable: bool = False) -> Value:
    """The array sorted along an axis."""
    return Sort(axis, stable=stable)(a)


def order_of(a: Value, axis: int) -> Value:
    """The places of the elements, in the order of the elements."""
    return Sort(axis).bind(a, counting(a, axis))[1]


def _one_axis(a: Value, axis: int | None, name: str) -> tuple[Value, int]:
    """The array and the axis to go along: of all elements in a row if none is named."""
    if axis is None:
        return raveled(a), 0
    return a, normalize_axis(axis, a.ndim, name)


def _is_stable(name: str, kind: Any, stable: Any) -> bool:
    """Return whether a stable sort is asked for."""
    letter = kind[:1].lower() if isinstance(kind, str) else None
    if kind is not None and letter not in STABLE_KINDS:
        raise Failure(BadArguments(function=name, problem=f"has no kind {describe(kind)}"))
    if kind is not None and stable is not None:
        problem = "takes `kind` or `stable`"
        raise Failure(BadArguments(function=name, problem=problem))
    return bool(stable) if letter is None else STABLE_KINDS[letter]


@of_numbers("numpy.sort", together=("a",))
def sort(
    a: Value, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None
) -> Value:
    """The elements in ascending order; -0.0 before 0.0, or stable if that is asked for."""
    keeps = _is_stable("numpy.sort", kind, stable)
    return in_order(*_one_axis(a, axis, "numpy.sort"), keeps)


@of_numbers("numpy.argsort", alone=("a",))
def argsort(
    here: Builder,
    a: Value,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    stable: bool | None = None,
) -> Value:
    """The i32 places of the elements in ascending order; always stable."""
    _is_stable("numpy.argsort", kind, stable)
    return integers_of(order_of(*_one_axis(a, axis, "numpy.argsort")))


@of_numbers("numpy.sort_complex", together=("a",))
def sort_complex(a: Value) -> Value:
    """The elements in ascending order: of small integers as c64, of other real numbers as c128."""
    small = a.dtype.is_integer and a.dtype.bits <= 16
    dtype = a.dtype if a.dtype.is_complex else C64 if small else C128
    return in_order(cast(a, dtype), normalize_axis(-1, a.ndim, "numpy.sort_complex"))


@function("numpy.lexsort", alone=("keys",), result=Result.NEW)
def lexsort(here: Builder, keys: Value | Sequence[Value], axis: int = -1) -> Value:
    """The i32 places in the order of several keys, the last of which counts most."""
    if not isinstance(keys, Value):
        keys = [as_array(key, "numpy.lexsort", "keys") for key in listed(keys) or ()]
    else:
        rows = keys.shape[0] if keys.shape else None
        if not isinstance(rows, int):
            wanted = "keys along a first axis of a constant size"
            raise Failure(
                WrongNumberOfAxes(function="numpy.lexsort", given=keys.type, wanted=wanted)
            )
        keys = [at(keys, 0, index) for index in range(rows)]
    if not keys:
        raise Failure(BadArguments(function="numpy.lexsort", problem="needs at least one key"))
    for key in keys:
        require("numpy.lexsort", key, "any")
    first = keys[0]
    for key in keys[1:]:
        _require_same_shape(first, key)
    place = normalize_axis(axis, first.ndim, "numpy.lexsort")
    results = Sort(place, keys=len(keys)).bind(*reversed(keys), counting(first, place))
    return integers_of(results[-1])


def _require_same_shape(first: Value, key: Value) -> None:
    facts = first.builder.facts
    if first.ndim != key.ndim:
        wanted = f"keys of one shape such as {first.type}"
        raise Failure(WrongNumberOfAxes(function="numpy.lexsort", given=key.type, wanted=wanted))
    for left, right in zip(first.shape, key.shape, strict=True):
        if not facts.equal(left, right):
            why = disagreement(facts, left, right)
            raise Failure(
                LengthsDiffer(function="numpy.lexsort", left="two", right="keys", why=why)
            )


def require_count(a: Value, axis: int, needed: Size, what: str, name: str) -> None:
    """Refuse unless an axis is known to have so many elements."""
    facts, size = a.builder.facts, a.shape[axis]
    if not at_least(facts, size, needed):
        why = instance(facts, Fact("<=", needed, size))
        raise Failure(
            TooFewElements(
                function=name, given=a.type, size=size, needed=needed, what=what, why=why
            )
        )


def _check_places(a: Value, axis: int, kth: Any, kind: str, name: str) -> None:
    if kind != "introselect":
        raise Failure(BadArguments(function=name, problem=f"has no kind {describe(kind)}"))
    for place in _known_items(kth, name):
        place = as_size(place, name)
        needed = -place if isinstance(place, int) and place < 0 else place + 1
        require_count(a, axis, needed, f"`kth={place}`", name)


def _known_items(kth: Any, name: str) -> Sequence[Any]:
    """The places in a list or an array that is known while checking; anything else is one."""
    size = None
    if isinstance(kth, Weak):
        size = kth.known if isinstance(kth.known, int | Dim) else None
        kth = kth.known if is_known_array(kth.known) else kth
    elif isinstance(kth, Value):
        kth = known_places(kth)
    if is_known_array(kth) and kth.ndim == 1 and kth.dtype.kind in "iu":
        places: Sequence[Any] = kth.tolist()
        return places
    if size is None:
        require_static(kth, name, "kth")
    return listed(kth) or (kth,)


@of_numbers("numpy.partition", together=("a",), traced=("kth",))
def partition(a: Value, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Value:
    """The elements in ascending order: a sort, which is a partition at every place."""
    _require_introselect("numpy.partition", kind)
    x, place = _one_axis(a, axis, "numpy.partition")
    _check_places(x, place, kth, kind, "numpy.partition")
    return in_order(x, place)


@of_numbers("numpy.argpartition", alone=("a",), traced=("kth",))
def argpartition(
    here: Builder, a: Value, kth: Any, axis: int | None = -1, kind: str = "introselect"
) -> Value:
    """The i32 places of the elements in ascending order."""
    _require_introselect("numpy.argpartition", kind)
    x, place = _one_axis(a, axis, "numpy.argpartition")
    _check_places(x, place, kth, kind, "numpy.argpartition")
    return integers_of(order_of(x, place))


def _require_introselect(name: str, kind: Any) -> None:
    if kind != "introselect":
        problem = f"takes 'introselect' as `kind`, not {describe(kind)}"
        raise Failure(BadArguments(function=name, problem=problem))


def _place(a: Value, kind: Extreme, axis: int | None, keepdims: bool, name: str) -> Value:
    require(name, a, REAL)
    x, place = _one_axis(a, axis, name)
    require_elements(x, (place,), name)
    result = integers_of(ArgReduce(kind, place, I32)(x))
    if axis is None and keepdims:
        return reshaped(result, (1,) * a.ndim)
    return finished(result, x.shape, (place,), keepdims)


@of_numbers("numpy.argmax", alone=("a",))
def argmax(here: Builder, a: Value, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """The first i32 place of the largest element; of the first NaN if there is one."""
    return _place(a, "maximum", axis, keepdims, "numpy.argmax")


@of_numbers("numpy.argmin", alone=("a",))
def argmin(here: Builder, a: Value, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """The first i32 place of the smallest element; of the first NaN if there is one."""
    return _place(a, "minimum", axis, keepdims, "numpy.argmin")


@of_numbers("numpy.nanargmax", alone=("a",))
def nanargmax(here: Builder, a: Value, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """The first i32 place of the largest that is not NaN; 0 if there is nothing else."""
    require("numpy.nanargmax", a, REAL)
    return _place(without_nan(a, -np.inf), "maximum", axis, keepdims, "numpy.nanargmax")


@of_numbers("numpy.nanargmin", alone=("a",))
def nanargmin(here: Builder, a: Value, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """The first i32 place of the smallest that is not NaN; 0 if there is nothing else."""
    require("numpy.nanargmin", a, REAL)
    return _place(without_nan(a, np.inf), "minimum", axis, keepdims, "numpy.nanargmin")


@of_numbers("pscdsl.top_k", together=("x",), traced=("k",))
def top_k(x: Value, k: Size, *, axis: int) -> tuple[Value, Value]:
    """The k largest elements along an axis in descending order, and their i32 places."""
    require("pscdsl.top_k", x, REAL)
    place = normalize_axis(axis, x.ndim, "pscdsl.top_k")
    k = as_count(k, "pscdsl.top_k", x.builder.facts)
    require_count(x, place, k, "`k`", "pscdsl.top_k")
    last = x.ndim - 1
    values, places = TopK(k).bind(moved(x, place, last))
    return moved(values, last, place), moved(places, last, place)


# Places in sorted arrays, and membership.


def require_vector(x: Value, name: str, what: str) -> Size:
    """The length of what must have one axis."""
    if x.ndim != 1:
        raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted=f"{what} with 1 axis"))
    return x.shape[0]


def require_same_length(
    x: Value, sizes: tuple[Size, Size], name: str, left: str, right: str
) -> None:
    """Refuse two sizes that are not known to be equal."""
    if not x.builder.facts.equal(*sizes):
        why = disagreement(x.builder.facts, *sizes)
        raise Failure(LengthsDiffer(function=name, left=left, right=right, why=why))


def places(a: Value, v: Value, side: Side) -> Value:
    """The i32 places at which elements go into a sorted array."""
    return SearchSorted(side)(a, v)


def _side(side: Any, name: str) -> Side:
    if side in ("left", "right"):
        return side  # type: ignore[no-any-return]
    raise Failure(BadArguments(function=name, problem=f"has no side {describe(side)}"))


@of_numbers("numpy.searchsorted", together=("a", "v"), traced=("sorter",), weak_items=("a", "v"))
def searchsorted(a: Value, v: Value, side: str = "left", sorter: Any = None) -> Value:
    """The i32 places at which elements go into a sorted array."""
    size = require_vector(a, "numpy.searchsorted", "a sorted array")
    require("numpy.searchsorted", a, REAL)
    if sorter is not None:
        sorter = _sorter(a.builder, sorter)
        require("numpy.searchsorted", sorter, "integer")
        other = require_vector(sorter, "numpy.searchsorted", "a `sorter`")
        require_same_length(a, (size, other), "numpy.searchsorted", "the array", "the `sorter`")
        require_elements(a, (0,), "numpy.searchsorted")
        a = Gather((0,))(a, reshaped(sorter, (other, 1)))
    return integers_of(places(a, v, _side(side, "numpy.searchsorted")))


def _sorter(here: Builder, given: Any) -> Value:
    """The places of a `sorter`; those that are known are on the axis, and none is negative."""
    sorter = as_operand(here, given)
    if not isinstance(sorter, Weak):
        return sorter
    if is_known_array(sorter.known) and sorter.kind is Kind.INT:
        outside = (sorter.known < 0) | (sorter.known >= sorter.known.size)
        if outside.any():
            problem = f"has {sorter.known[outside][0]} in `sorter`, which is no place"
            raise Failure(BadArguments(function="numpy.searchsorted", problem=problem))
    return sorter.default()


@of_numbers("numpy.digitize", together=("x", "bins"), weak_items=("x", "bins"))
def digitize(x: Value, bins: Value, right: bool = False) -> Value:
    """The i32 index of the bin of each element; bins ascend or descend, which is not checked."""
    count = require_vector(bins, "numpy.digitize", "an array of bins")
    require("numpy.digitize", x, REAL)
    side: Side = "left" if right else "right"
    if count == 0:
        return integers_of(x.builder.full(0, x.shape, I32))
    if not at_least(x.builder.facts, count, 1):
        return integers_of(places(bins, x, side))
    descending: Value = e.greater(at(bins, 0, 0), at(bins, 0, count - 1))
    ascending = where(descending, reversed_along(bins, 0), bins)
    found = places(ascending, x, side)
    last = x.builder.program.current.size(count, I32)
    return integers_of(where(descending, last - found, found))


@of_numbers("numpy.isin", together=("element", "test_elements"), result=Result.ARRAY)
def isin(
    element: Value,
    test_elements: Value,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Value:
    """Return whether each element is among others; every pair is compared."""
    if kind not in (None, "sort", "table") or (kind == "table" and element.dtype.is_inexact):
        problem = f"takes 'sort' or None as `kind` of {element.type}, or 'table' of integers, not "
        raise Failure(BadArguments(function="numpy.isin", problem=problem + describe(kind)))
    tests = raveled(test_elements)
    shape = (*element.shape, tests.shape[0])
    same: Value = e.equal(
        spread(element, shape, range(element.ndim)), spread(tests, shape, (element.ndim,))
    )
    found = Reduce("any", (element.ndim,))(same)
    return ~found if invert else found


# Counts: how often a number occurs, how many lie in each bin.


def tallied(places: Value, inside: Value, weights: Value | None, length: Size) -> Value:
    """Return how many, or how much, falls on each place; what is not inside is left out."""
    here = places.builder.program.current
    (count,) = places.shape
    dtype = I32 if weights is None else weights.dtype
    beyond = here.size(length, places.dtype)
    index = reshaped(where(inside, places, beyond), (count, 1))
    updates = here.full(1, (count,), dtype) if weights is None else weights
    counts = Scatter((0,), "add")(here.full(0, (length + 1,), dtype), index, updates)
    return part(counts, 0, 0, length)


@of_numbers("numpy.bincount", alone=("x", "weights"), traced=("length",))
def bincount(
    here: Builder,
    x: Value,
    /,
    weights: Value | None = None,
    minlength: Size = 0,
    *,
    length: Size | None = None,
) -> Value:
    """Return how often each of 0, 1, … below `length` occurs; other numbers are left out."""
    bounded = x.dtype.is_unsigned and isinstance(minlength, int) and minlength > x.dtype.range[1]
    if length is None and bounded:
        length = minlength
    if length is None:
        instead = "say how long it is, `np.bincount(x, length=k)`; other numbers are left out"
        raise Failure(DataDependentShape(what="the result of `numpy.bincount`", instead=instead))
    length = as_count(length, "numpy.bincount", here.facts)
    size = require_vector(x, "numpy.bincount", "an array of integers")
    require("numpy.bincount", x, "integer")
    if weights is not None:
        other = require_vector(weights, "numpy.bincount", "weights")
        require_same_length(x, (size, other), "numpy.bincount", "the array", "the weights")
        weights = to_inexact(weights)
    x = in_wide_dtype(x)
    inside = e.less(x, here.size(length, x.dtype))
    if x.dtype.signed:
        inside = (x >= 0) & inside
    counts = tallied(x, inside, weights, length)
    return counts if weights is not None else integers_of(counts)


def _is_computed(bins: object) -> bool:
    """Return whether edges are new: an array of them is given back."""
    return is_sequence(bins) or isinstance(bins, int | Dim | str)


def _edges_alone(given: Mapping[str, Any]) -> bool:
    """Return whether the edges of a histogram are new."""
    return _is_computed(given.get("bins", 10))


def _counts_and_edges(given: Mapping[str, Any]) -> tuple[Result, ...]:
    """Return what the counts and the edges of a histogram are."""
    return Result.NEW, Result.NEW if _edges_alone(given) else Result.UNKNOWN


def _grid_and_edges(given: Mapping[str, Any]) -> tuple[Result, ...]:
    """Return what the counts and the edges are: edges that both axes share are one array."""
    bins = given.get("bins", 10)
    pair = is_sequence(bins) and len(bins) == 2 and all(map(_is_computed, bins))
    edges = Result.NEW if pair or isinstance(bins, int | Dim) else Result.UNKNOWN
    return Result.NEW, edges, edges


@of_numbers(
    "numpy.histogram_bin_edges",
    together=("a",),
    traced=("bins", "range"),
    result=new_if(_edges_alone),
)
def histogram_bin_edges(
    here: Builder,
    a: Value,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
) -> Value:
    """The edges of bins of one width, from the smallest element to the largest."""
    return _edges(here, a, bins, range)


@of_numbers(
    "numpy.histogram",
    together=("a",),
    alone=("weights",),
    traced=("bins", "range"),
    result=_counts_and_edges,
)
def histogram(
    here: Builder,
    a: Value,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
    density: bool | None = None,
    weights: Value | None = None,
) -> tuple[Value, Value]:
    """Return how many elements lie in each bin, as i32, and the edges of the bins."""
    edges = _edges(here, a, bins, range)
    if weights is not None:
        _require_weights(a, weights)
        weights = raveled(weights)
    found, inside = _bin_of(here, a, edges)
    counts = tallied(found, inside, weights, edges.shape[0] - 1)
    if density:
        widths = _widths(edges)
        dtype = edges.dtype if weights is None else to_inexact(weights).dtype
        amounts = cast(counts, dtype)
        counts = amounts / cast(widths, dtype) / total(amounts, (0,))
    elif weights is None:
        counts = integers_of(counts)
    return counts, edges


@of_numbers(
    "numpy.histogram2d",
    together=("x", "y"),
    alone=("weights",),
    traced=("bins", "range"),
    result=_grid_and_edges,
)
def histogram2d(
    here: Builder,
    x: Value,
    y: Value,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
    density: bool | None = None,
    weights: Value | None = None,
) -> tuple[Value, Value, Value]:
    """Return how many points lie in each cell of a grid, as floats, and the edges along both axes.

    `bins` says how many bins there are, or their edges, or is a pair of these; `range` is a pair of
    the first and the last edge, or of None where the data say.
    """
    name = "numpy.histogram2d"
    size = require_vector(x, name, "the first coordinates")
    other = require_vector(y, name, "the second coordinates")
    require_same_length(x, (size, other), name, "the first", "the second coordinates")
    if weights is not None:
        _require_weights(x, weights)
        require(name, weights, REAL)
    bounds = (None, None) if range is None else listed(range)
    if bounds is None or len(bounds) != 2:
        problem = f"takes a `range` of two pairs of numbers, not {describe(range)}"
        raise Failure(BadArguments(function=name, problem=problem))
    found = [_edges(here, *each) for each in zip((x, y), _pair(here, bins), bounds, strict=True)]
    (across, down), (rows, columns) = found, (each.shape[0] - 1 for each in found)
    row, in_rows = _bin_of(here, x, across)
    column, in_columns = _bin_of(here, y, down)
    cell = row * here.size(columns, I32) + column
    dtype = across.dtype if weights is None else to_inexact(weights).dtype
    inside = in_rows & in_columns
    amounts = None if weights is None else cast(weights, dtype)
    counts = cast(tallied(cell, inside, amounts, rows * columns), dtype)
    table = reshaped(counts, (rows, columns))
    if density:
        whole = total(counts, (0,))
        for axis, edges in enumerate(found):
            table = table / spread(cast(_widths(edges), dtype), table.shape, (axis,))
        table = table / whole
    return table, across, down


def _pair(here: Builder, bins: Any) -> Sequence[Any]:
    """The bins along each axis: one value for both, or a pair of them."""
    if is_sequence(bins) and len(bins) == 2:
        return bins
    size: Any = 3
    if is_sequence(bins) or is_known_array(bins):
        size = len(bins)
    elif isinstance(bins, Value) and bins.ndim == 1:
        size = bins.shape[0]
    if not at_least(here.facts, size, 3):
        problem = f"takes a pair of bins, or at least 3 edges for both axes, not {describe(bins)}"
        raise Failure(BadArguments(function="numpy.histogram2d", problem=problem))
    return [bins, bins]


def _bin_of(here: Builder, a: Value, edges: Value) -> tuple[Value, Value]:
    """In which bin each element lies, and whether it lies in one; the last has both its edges."""
    x, count = raveled(cast(a, edges.dtype)), edges.shape[0] - 1
    last = at(edges, 0, count)
    found: Value = places(edges, x, "right") - 1
    found = where(e.equal(x, last), here.full(here.size(count - 1, I32), x.shape, I32), found)
    return found, e.greater_equal(x, at(edges, 0, 0)) & e.less_equal(x, last)


def _widths(edges: Value) -> Value:
    count = edges.shape[0]
    return part(edges, 0, 1, count) - part(edges, 0, 0, count - 1)


def _require_weights(a: Value, weights: Value) -> None:
    facts = a.builder.facts
    if a.ndim != weights.ndim or not all(map(facts.equal, a.shape, weights.shape)):
        raise Failure(
            WeightsDoNotFit(function="numpy.histogram", shape=a.shape, weights=weights.shape)
        )


def _edges(here: Builder, a: Value, bins: Any, bounds: Any) -> Value:
    require("numpy.histogram", a, REAL)
    dtype = to_inexact(a).dtype
    if isinstance(bins, int | Dim):
        count = as_count(bins, "numpy.histogram", here.facts)
        if not at_least(here.facts, count, 1):
            problem = f"takes at least 1 bin, not {describe(bins)}"
            raise Failure(BadArguments(function="numpy.histogram", problem=problem))
        first, last = _bounds(a, bounds, dtype)
        return _even(first, last, count)
    if isinstance(bins, list | tuple | np.ndarray):
        known: Sequence[Any] = bins  # type: ignore[assignment]
        if not all(isinstance(each, int | float | np.generic) for each in known):
            problem = "takes edges that are numbers, or one array of them"
            raise Failure(BadArguments(function="numpy.histogram", problem=problem))
        _require_increasing(known)
        edges = in_dtype(here, known, dtype)
    elif isinstance(bins, Value | Weak):
        if isinstance(bins, Weak) and is_known_array(bins.known) and bins.ndim == 1:
            _require_increasing(bins.known)
        edges = bins.at(dtype) if isinstance(bins, Weak) else cast(bins, dtype)
    else:
        problem = f"takes a number of bins or their edges, not {describe(bins)}"
        raise Failure(BadArguments(function="numpy.histogram", problem=problem))
    require_vector(edges, "numpy.histogram", "an array of edges")
    require_count(edges, 0, 2, "an array of edges", "numpy.histogram")
    return edges


def _require_increasing(edges: Sequence[Any] | NDArray) -> None:
    """Refuse known edges of bins of which one is below the one before, or NaN."""
    if not all(first <= second for first, second in pairwise(edges)):
        problem = "takes edges that increase"
        raise Failure(BadArguments(function="numpy.histogram", problem=problem))


def _bounds(a: Value, bounds: Any, dtype: DType) -> tuple[Value, Value]:
    """The first and the last edge, half a unit to each side of a single number."""
    x = cast(a, dtype)
    if bounds is None:
        axes = tuple(range(a.ndim))
        require_elements(a, axes, "numpy.histogram", "give a `range`")
        first, last = extremum(x, "minimum", axes), extremum(x, "maximum", axes)
    else:
        pair = listed(bounds)
        if pair is None or len(pair) != 2:
            problem = f"takes a `range` of two numbers, not {describe(bounds)}"
            raise Failure(BadArguments(function="numpy.histogram", problem=problem))
        _require_range(pair)
        first, last = (filled(x, 0, ()) + each for each in pair)
    single = e.equal(first, last)
    return (
        where(single, first - 0.5, first),
        where(single, last + 0.5, last),
    )


def _require_range(pair: Sequence[Any]) -> None:
    """Refuse known bounds of a range that are not finite, or of which the first is larger."""
    known: list[Any] = [bound for bound in pair if isinstance(bound, int | float | np.generic)]
    if not all(math.isfinite(bound) for bound in known):
        problem = "takes a `range` of finite numbers"
    elif len(known) == 2 and known[0] > known[1]:
        problem = "takes a `range` of which the first number is the smaller one"
    else:
        return
    raise Failure(BadArguments(function="numpy.histogram", problem=problem))


def _even(first: Value, last: Value, count: Size) -> Value:
    """Edges at equal distances; the last is exact."""
    dtype = wide(first.dtype)
    start, stop = cast(first, dtype), cast(last, dtype)
    # The division comes last: a step would be rounded first, and a backend may fuse what follows.
    whole = iota(first, count, dtype) * (stop - start)
    inner = whole / count + start
    return cast(joined((inner, reshaped(stop, (1,))), 0), first.dtype)
