"""Arrays taken apart along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import function
from pscdsl.numpy.axes import normalize_axis
from pscdsl.numpy.conversion import asarray
from pscdsl.numpy.openness import lifted
from pscdsl.numpy.shorthand import at, part, simplified
from pscdsl.numpy.sizes import as_size, as_times
from pscdsl.numpy.slices import Cut, cut_between
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_manipulation import NotDivisible, WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size, minimum
from pscdsl.typing.python_containers import is_sequence

MOST_PARTS = 10_000
"""No array is taken apart into more: each is an equation."""


@function("numpy.split")
def split(here: Builder, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Parts along an axis: a number of equal ones, or those between indices."""
    return _split(here, "numpy.split", ary, indices_or_sections, axis)


@function("numpy.array_split")
def array_split(here: Builder, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """As `split`; the first parts are longer by one where they cannot be equal."""
    return _split(here, "numpy.array_split", ary, indices_or_sections, axis)


@function("numpy.vsplit")
def vsplit(here: Builder, ary: Any, indices_or_sections: Any) -> Any:
    """Parts along the first axis of two or more."""
    _require_rank(here, "numpy.vsplit", ary, 2)
    return _split(here, "numpy.vsplit", ary, indices_or_sections, 0)


@function("numpy.hsplit")
def hsplit(here: Builder, ary: Any, indices_or_sections: Any) -> Any:
    """Parts along the second axis, of a vector along the first."""
    array = _require_rank(here, "numpy.hsplit", ary, 1)
    return _split(here, "numpy.hsplit", array, indices_or_sections, 0 if array.ndim == 1 else 1)


@function("numpy.dsplit")
def dsplit(here: Builder, ary: Any, indices_or_sections: Any) -> Any:
    """Parts along the third axis."""
    _require_rank(here, "numpy.dsplit", ary, 3)
    return _split(here, "numpy.dsplit", ary, indices_or_sections, 2)


@function("numpy.unstack")
def unstack(here: Builder, x: Any, /, *, axis: int = 0) -> tuple[Value | Weak, ...]:
    """The parts along an axis, which goes away; its size must be a number."""
    array = asarray(here, x)
    place = normalize_axis(axis, array.ndim, "numpy.unstack")
    count = array.shape[place]
    if not isinstance(count, int):
        problem = f"takes an axis whose size is a number, not {count}"
        raise Failure(BadArguments(function="numpy.unstack", problem=problem))
    return tuple([_lifted_at(here, array, place, index) for index in range(count)])


def _lifted_at(here: Builder, array: Value | Weak, axis: int, index: int) -> Value | Weak:
    return lifted(here, array, lambda x: at(x, axis, index))


def _require_rank(here: Builder, name: str, ary: Any, rank: int) -> Value | Weak:
    array: Value | Weak = asarray(here, ary)
    if array.ndim < rank:
        wanted = f"an array with {rank} axes or more"
        raise Failure(WrongNumberOfAxes(function=name, given=array.type, wanted=wanted))
    return array


def _split(here: Builder, name: str, ary: Any, given: Any, axis: int) -> list[Value | Weak]:
    array = asarray(here, ary)
    place = normalize_axis(axis, array.ndim, name)
    size = array.shape[place]
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if is_sequence(given):
        cuts = _between(here.facts, [as_size(index, name) for index in given], size)
    else:
        cuts = _equal(here.facts, name, as_times(given, name, MOST_PARTS), size)
    return [
        lifted(here, array, lambda x, c=each: part(x, place, c.start, c.limit))  # type: ignore[misc]
        for each in cuts
    ]


def _between(facts: Assumptions, indices: Sequence[Size], size: Size) -> list[Cut]:
    bounds: list[Size] = [0, *indices, size]
    return [cut_between(facts, a, b, size) for a, b in pairwise(bounds)]


def _equal(facts: Assumptions, name: str, sections: int, size: Size) -> list[Cut]:
    if sections < 1:
        raise Failure(BadArguments(function=name, problem=f"makes no {sections} parts"))
    if name == "numpy.array_split":
        whole, longer = size // sections, size % sections
        bounds = [whole * i + minimum(longer, i) for i in range(sections + 1)]
        bounds[0], bounds[-1] = 0, size
    else:
        if not facts.equal(size % sections, 0):
            raise Failure(NotDivisible.of(facts, name, size, sections))
        length = simplified(facts, size // sections)
        bounds = [length * i for i in range(sections)] + [size]
    return [Cut(a, b) for a, b in pairwise(bounds)]
