"""Places in sorted arrays, and membership."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.searching import SearchSorted, Side
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.elementwise import REAL, require
from pscdsl.numpy.shorthand import (
    at,
    at_least,
    raveled,
    reshaped,
    reversed_along,
    spread,
    where,
)
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import disagreement
from pscdsl.typing.codes.shapes_library import LengthsDiffer
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32


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


@of_numbers("numpy.searchsorted", together=("a", "v"), alone=("sorter",), weak_items=("a", "v"))
def searchsorted(a: Value, v: Value, side: str = "left", sorter: Value | None = None) -> Value:
    """The i32 places at which elements go into a sorted array."""
    size = require_vector(a, "numpy.searchsorted", "a sorted array")
    require("numpy.searchsorted", a, REAL)
    if sorter is not None:
        require("numpy.searchsorted", sorter, "integer")
        other = require_vector(sorter, "numpy.searchsorted", "a `sorter`")
        require_same_length(a, (size, other), "numpy.searchsorted", "the array", "the `sorter`")
        a = Gather((0,))(a, reshaped(sorter, (other, 1)))
    return places(a, v, _side(side, "numpy.searchsorted"))


@of_numbers("numpy.digitize", together=("x", "bins"), weak_items=("x", "bins"))
def digitize(x: Value, bins: Value, right: bool = False) -> Value:
    """The i32 index of the bin of each element; bins ascend or descend, which is not checked."""
    count = require_vector(bins, "numpy.digitize", "an array of bins")
    require("numpy.digitize", x, REAL)
    side: Side = "left" if right else "right"
    if count == 0:
        return x.builder.full(0, x.shape, I32)
    if not at_least(x.builder.facts, count, 1):
        return places(bins, x, side)
    descending: Value = e.greater(at(bins, 0, 0), at(bins, 0, count - 1))
    ascending = where(descending, reversed_along(bins, 0), bins)
    found = places(ascending, x, side)
    return where(descending, e.subtract(x.builder.program.current.size(count, I32), found), found)


@of_numbers("numpy.isin", together=("element", "test_elements"))
def isin(
    element: Value,
    test_elements: Value,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Value:
    """Whether each element is among others; every pair is compared."""
    tests = raveled(test_elements)
    shape = (*element.shape, tests.shape[0])
    same: Value = e.equal(
        spread(element, shape, range(element.ndim)), spread(tests, shape, (element.ndim,))
    )
    found = Reduce("any", (element.ndim,))(same)
    return e.invert(found) if invert else found
