"""Counts: how often a number occurs, how many lie in each bin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import Scatter
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.elementwise import REAL, require, to_inexact
from pscdsl.numpy.openness import in_dtype
from pscdsl.numpy.reductions import extremum, require_elements, total
from pscdsl.numpy.searching import places, require_same_length, require_vector
from pscdsl.numpy.shorthand import (
    at,
    at_least,
    cast,
    filled,
    iota,
    joined,
    listed,
    part,
    raveled,
    reshaped,
    where,
    wide,
)
from pscdsl.numpy.sizes import as_count
from pscdsl.numpy.sorting import require_count
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_library import WeightsDoNotFit
from pscdsl.typing.codes.shapes_manipulation import DataDependentShape
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import I32, I64, U32, DType


def tallied(places: Value, inside: Value, weights: Value | None, length: Size) -> Value:
    """How many, or how much, falls on each place; what is not inside is left out."""
    here = places.builder.program.current
    (count,) = places.shape
    dtype = I32 if weights is None else weights.dtype
    beyond = here.size(length, places.dtype)
    index = reshaped(where(inside, places, beyond), (count, 1))
    updates = here.full(1, (count,), dtype) if weights is None else weights
    counts = Scatter((0,), "add")(here.full(0, (length + 1,), dtype), index, updates)
    return part(counts, 0, 0, length)


def _signed(x: Value) -> Value:
    """Integers in a dtype that can hold any length."""
    if x.dtype.bits < 32:
        return cast(x, I32)
    return cast(x, I64) if x.dtype is U32 else x


@of_numbers("numpy.bincount", alone=("x", "weights"), traced=("length",))
def bincount(
    here: Builder,
    x: Value,
    weights: Value | None = None,
    minlength: Size = 0,
    *,
    length: Size | None = None,
) -> Value:
    """How often each of 0, 1, … below `length` occurs; other numbers are left out."""
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
    x = _signed(x)
    inside = e.less(x, here.size(length, x.dtype))
    if x.dtype.signed:
        inside = e.bitwise_and(e.greater_equal(x, 0), inside)
    return tallied(x, inside, weights, length)


@of_numbers("numpy.histogram_bin_edges", together=("a",), traced=("bins", "range"))
def histogram_bin_edges(
    here: Builder,
    a: Value,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
) -> Value:
    """The edges of bins of one width, from the smallest element to the largest."""
    return _edges(here, a, bins, range)


@of_numbers("numpy.histogram", together=("a",), alone=("weights",), traced=("bins", "range"))
def histogram(
    here: Builder,
    a: Value,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
    density: bool | None = None,
    weights: Value | None = None,
) -> tuple[Value, Value]:
    """How many elements lie in each bin, as i32, and the edges of the bins."""
    edges = _edges(here, a, bins, range)
    if weights is not None:
        _require_weights(a, weights)
        weights = raveled(weights)
    x, count = raveled(cast(a, edges.dtype)), edges.shape[0] - 1
    last = at(edges, 0, count)
    found = e.subtract(places(edges, x, "right"), 1)
    found = where(e.equal(x, last), here.full(here.size(count - 1, I32), x.shape, I32), found)
    inside = e.bitwise_and(e.greater_equal(x, at(edges, 0, 0)), e.less_equal(x, last))
    counts = tallied(found, inside, weights, count)
    if density:
        widths = e.subtract(part(edges, 0, 1, count + 1), part(edges, 0, 0, count))
        dtype = edges.dtype if weights is None else to_inexact(weights).dtype
        amounts = cast(counts, dtype)
        counts = e.divide(e.divide(amounts, cast(widths, dtype)), total(amounts, (0,)))
    return counts, edges


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
        edges = in_dtype(here, known, dtype)
    elif isinstance(bins, Value | Weak):
        edges = bins.at(dtype) if isinstance(bins, Weak) else cast(bins, dtype)
    else:
        problem = f"takes a number of bins or their edges, not {describe(bins)}"
        raise Failure(BadArguments(function="numpy.histogram", problem=problem))
    require_vector(edges, "numpy.histogram", "an array of edges")
    require_count(edges, 0, 2, "an array of edges", "numpy.histogram")
    return edges


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
        first, last = (e.add(filled(x, 0, ()), each) for each in pair)
    single = e.equal(first, last)
    return (
        where(single, e.subtract(first, 0.5), first),
        where(single, e.add(last, 0.5), last),
    )


def _even(first: Value, last: Value, count: Size) -> Value:
    """Edges at equal distances; the last is exact."""
    dtype = wide(first.dtype)
    start, stop = cast(first, dtype), cast(last, dtype)
    # The division comes last: a step would be rounded first, and a backend may fuse what follows.
    whole = e.multiply(iota(first, count, dtype), e.subtract(stop, start))
    inner = e.add(e.divide(whole, count), start)
    return cast(joined((inner, reshaped(stop, (1,))), 0), first.dtype)
