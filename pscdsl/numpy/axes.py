"""Axis arguments: from NumPy's spelling to axes counted from the front."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from pscdsl._src.language.meanings import describe
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_manipulation import AxisOutOfRange, RepeatedAxis
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_sequence

Axes: TypeAlias = "int | Sequence[int] | None"


def normalize_axis(axis: object, rank: int, function: str) -> int:
    """One axis, counted from the front; a Failure if an array of this rank does not have it."""
    if isinstance(axis, bool):
        _refuse(axis, function)
    try:
        number = operator.index(axis)  # type: ignore[arg-type]
    except TypeError:
        _refuse(axis, function)
    if not -rank <= number < rank:
        raise Failure(AxisOutOfRange(function=function, axis=number, rank=rank))
    return number + rank if number < 0 else number


def normalize_axes(axes: object, rank: int, function: str) -> tuple[int, ...]:
    """Axes in the order given, counted from the front; `None` stands for all of them."""
    if axes is None:
        return tuple(range(rank))
    if not is_sequence(axes):
        return (normalize_axis(axes, rank, function),)
    found = tuple([normalize_axis(axis, rank, function) for axis in axes])
    for position, axis in enumerate(found):
        if axis in found[:position]:
            raise Failure(RepeatedAxis(function=function, axis=axis))
    return found


def _refuse(axis: object, function: str) -> NoReturn:
    problem = f"takes an axis that is a static integer, not {describe(axis)}"
    raise Failure(BadArguments(function=function, problem=problem))
