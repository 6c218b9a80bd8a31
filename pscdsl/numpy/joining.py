"""Arrays put together along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import function
from pscdsl.numpy.axes import normalize_axis
from pscdsl.numpy.calling import as_array, of_arrays
from pscdsl.numpy.choosing import items
from pscdsl.numpy.fitting import require_fitting
from pscdsl.numpy.openness import as_dtype
from pscdsl.numpy.reshaping import deepened
from pscdsl.numpy.shorthand import cast, joined, raveled, reshaped
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_sequence


def _pieces(name: str, arrays: Any) -> list[Value]:
    return [as_array(each, name, "arrays") for each in items(name, arrays)]


def concatenated(name: str, pieces: Sequence[Value], axis: int) -> Value:
    """Arrays one after the other along an axis, their shapes being checked."""
    require_fitting(name, pieces, axis)
    return joined(pieces, axis)


@function("numpy.concatenate", "numpy.concat", together=("arrays",))
def concatenate(arrays: Any, /, axis: int | None = 0, *, dtype: Any = None) -> Value:
    """Arrays one after the other along an axis; along one axis all elements if it is None."""
    pieces = _pieces("numpy.concatenate", arrays)
    if axis is None:
        pieces, place = [raveled(each) for each in pieces], 0
    else:
        place = normalize_axis(axis, pieces[0].ndim, "numpy.concatenate")
    result = concatenated("numpy.concatenate", pieces, place)
    wanted = as_dtype(dtype)
    return result if wanted is None else cast(result, wanted)


@function("numpy.stack", together=("arrays",))
def stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> Value:
    """Arrays of one shape along a new axis."""
    pieces = _pieces("numpy.stack", arrays)
    place = normalize_axis(axis, pieces[0].ndim + 1, "numpy.stack")
    require_fitting("numpy.stack", pieces)
    deep = [reshaped(x, (*x.shape[:place], 1, *x.shape[place:])) for x in pieces]
    result = joined(deep, place)
    wanted = as_dtype(dtype)
    return result if wanted is None else cast(result, wanted)


@function("numpy.vstack", "numpy.row_stack", together=("tup",))
def vstack(tup: Any) -> Value:
    """Arrays one below the other; vectors are rows."""
    return concatenated("numpy.vstack", [deepened(x, 2) for x in _pieces("numpy.vstack", tup)], 0)


@function("numpy.hstack", together=("tup",))
def hstack(tup: Any) -> Value:
    """Arrays side by side: along the second axis, vectors along the first."""
    pieces = [deepened(x, 1) for x in _pieces("numpy.hstack", tup)]
    return concatenated("numpy.hstack", pieces, 0 if pieces[0].ndim == 1 else 1)


@function("numpy.dstack", together=("tup",))
def dstack(tup: Any) -> Value:
    """Arrays behind each other: along the third axis."""
    return concatenated("numpy.dstack", [deepened(x, 3) for x in _pieces("numpy.dstack", tup)], 2)


@function("numpy.column_stack", together=("tup",))
def column_stack(tup: Any) -> Value:
    """Vectors as columns beside each other, and matrices."""
    columns = [
        reshaped(deepened(x, 1), (*deepened(x, 1).shape, 1)) if x.ndim < 2 else x
        for x in _pieces("numpy.column_stack", tup)
    ]
    return concatenated("numpy.column_stack", columns, 1)


@function("numpy.block", together=("arrays",))
def block(arrays: Any) -> Value:
    """Nested lists of arrays: the innermost along the last axis, each further one before it."""
    depth = _depth(arrays)
    rank = max(depth, *(x.ndim for x in _leaves(arrays)))

    def build(item: Any, level: int) -> Value:
        if level == depth:
            value: Value = item
            return reshaped(value, (1,) * (rank - value.ndim) + value.shape)
        parts = [build(each, level + 1) for each in item]
        return concatenated("numpy.block", parts, rank - depth + level)

    return build(arrays, 0)


def _depth(item: Any) -> int:
    if not is_sequence(item):
        return 0
    depths = {_depth(each) for each in item}
    if len(depths) != 1:
        problem = "takes lists that are nested equally deep, none of them empty"
        raise Failure(BadArguments(function="numpy.block", problem=problem))
    return 1 + depths.pop()


def _leaves(item: Any) -> list[Value]:
    return [leaf for each in item for leaf in _leaves(each)] if is_sequence(item) else [item]


@of_arrays("numpy.append", together=("arr", "values"))
def append(arr: Value, values: Value, axis: int | None = None) -> Value:
    """Values after those of an array; all of them along one axis if none is named."""
    if axis is None:
        return concatenated("numpy.append", [raveled(arr), raveled(values)], 0)
    place = normalize_axis(axis, arr.ndim, "numpy.append")
    return concatenated("numpy.append", [arr, values], place)
