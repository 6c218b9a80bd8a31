"""Order: sorting, places of extrema, the largest few.

Sorting is always stable, NaN comes last, and places are i32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.language.meanings import describe, function
from pscdsl._src.primitives.extreme_places import ArgReduce
from pscdsl._src.primitives.reductions import Extreme
from pscdsl._src.primitives.sorting import Sort, TopK
from pscdsl.numpy.axes import normalize_axis
from pscdsl.numpy.calling import as_array, of_numbers
from pscdsl.numpy.elementwise import REAL, require
from pscdsl.numpy.reductions import finished, require_elements, without_nan
from pscdsl.numpy.shorthand import at, at_least, cast, counting, listed, moved, raveled, reshaped
from pscdsl.numpy.sizes import as_count, as_size
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import disagreement, instance
from pscdsl.typing.codes.shapes_library import LengthsDiffer, TooFewElements
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, inexact

KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def in_order(a: Value, axis: int) -> Value:
    """The array sorted along an axis."""
    return Sort(axis)(a)


def order_of(a: Value, axis: int) -> Value:
    """The places of the elements, in the order of the elements."""
    return Sort(axis).bind(a, counting(a, axis))[1]


def _one_axis(a: Value, axis: int | None, name: str) -> tuple[Value, int]:
    """The array and the axis to go along: of all elements in a row if none is named."""
    if axis is None:
        return raveled(a), 0
    return a, normalize_axis(axis, a.ndim, name)


def _check_kind(name: str, kind: object, stable: object) -> None:
    if kind not in KINDS:
        raise Failure(BadArguments(function=name, problem=f"has no kind {describe(kind)}"))
    if kind is not None and stable is not None:
        problem = "takes `kind` or `stable`"
        raise Failure(BadArguments(function=name, problem=problem))


@of_numbers("numpy.sort", together=("a",))
def sort(
    a: Value, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None
) -> Value:
    """The elements in ascending order; always stable."""
    _check_kind("numpy.sort", kind, stable)
    return in_order(*_one_axis(a, axis, "numpy.sort"))


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
    _check_kind("numpy.argsort", kind, stable)
    return order_of(*_one_axis(a, axis, "numpy.argsort"))


@of_numbers("numpy.sort_complex", together=("a",))
def sort_complex(a: Value) -> Value:
    """The elements in ascending order, as complex numbers."""
    return in_order(
        cast(a, inexact(a.dtype).complex), normalize_axis(-1, a.ndim, "numpy.sort_complex")
    )


@function("numpy.lexsort", alone=("keys",))
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
    return results[-1]


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


def _check_places(a: Value, axis: int, kth: Any, name: str) -> None:
    for place in listed(kth) or (kth,):
        place = as_size(place, name)
        needed = -place if isinstance(place, int) and place < 0 else place + 1
        require_count(a, axis, needed, f"`kth={place}`", name)


@of_numbers("numpy.partition", together=("a",))
def partition(a: Value, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Value:
    """The elements in ascending order: a sort, which is a partition at every place."""
    x, place = _one_axis(a, axis, "numpy.partition")
    _check_places(x, place, kth, "numpy.partition")
    return in_order(x, place)


@of_numbers("numpy.argpartition", alone=("a",))
def argpartition(
    here: Builder, a: Value, kth: Any, axis: int | None = -1, kind: str = "introselect"
) -> Value:
    """The i32 places of the elements in ascending order."""
    x, place = _one_axis(a, axis, "numpy.argpartition")
    _check_places(x, place, kth, "numpy.argpartition")
    return order_of(x, place)


def _place(a: Value, kind: Extreme, axis: int | None, keepdims: bool, name: str) -> Value:
    require(name, a, REAL)
    x, place = _one_axis(a, axis, name)
    require_elements(x, (place,), name)
    result = ArgReduce(kind, place, I32)(x)
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
def top_k(x: Value, k: Size, axis: int = -1) -> tuple[Value, Value]:
    """The k largest elements along an axis in descending order, and their i32 places."""
    require("pscdsl.top_k", x, REAL)
    place = normalize_axis(axis, x.ndim, "pscdsl.top_k")
    k = as_count(k, "pscdsl.top_k", x.builder.facts)
    require_count(x, place, k, "`k`", "pscdsl.top_k")
    last = x.ndim - 1
    values, places = TopK(k).bind(moved(x, place, last))
    return moved(values, last, place), moved(places, last, place)
