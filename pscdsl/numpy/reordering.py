"""Elements in another order along axes."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Value, Weak
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.dynamic_slicing import DynamicSlice
from pscdsl.numpy.arguments import as_items
from pscdsl.numpy.axes import normalize_axes, normalize_axis
from pscdsl.numpy.calling import of_arrays
from pscdsl.numpy.shorthand import (
    cast,
    joined,
    largest,
    part,
    raveled,
    reshaped,
    reversed_along,
    transposed,
)
from pscdsl.numpy.sizes import as_size
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, I64, U64


@of_arrays("numpy.flip", together=("m",))
def flip(m: Value, axis: Any = None) -> Value:
    """Axes in the opposite direction, by default all of them."""
    return reversed_along(m, *normalize_axes(axis, m.ndim, "numpy.flip"))


@of_arrays("numpy.fliplr", together=("m",))
def fliplr(m: Value) -> Value:
    """The second axis in the opposite direction."""
    _require_rank("numpy.fliplr", m, 2)
    return reversed_along(m, 1)


@of_arrays("numpy.flipud", together=("m",))
def flipud(m: Value) -> Value:
    """The first axis in the opposite direction."""
    _require_rank("numpy.flipud", m, 1)
    return reversed_along(m, 0)


def _require_rank(name: str, m: Value, rank: int) -> None:
    if m.ndim < rank:
        wanted = "an axis or more" if rank == 1 else f"{rank} axes or more"
        raise Failure(WrongNumberOfAxes(function=name, given=m.type, wanted=wanted))


@of_arrays("numpy.rot90", together=("m",))
def rot90(m: Value, k: Any = 1, axes: Any = (0, 1)) -> Value:
    """Turned by 90 degrees `k` times, from the first towards the second of two axes."""
    _require_rank("numpy.rot90", m, 2)
    places = normalize_axes(axes, m.ndim, "numpy.rot90")
    if len(places) != 2 or not isinstance(k, int):
        problem = "takes a static number of turns and two axes"
        raise Failure(BadArguments(function="numpy.rot90", problem=problem))
    one, other = places
    order = list(range(m.ndim))
    order[one], order[other] = order[other], order[one]
    match k % 4:
        case 0:
            return m
        case 1:
            return transposed(reversed_along(m, other), order)
        case 2:
            return reversed_along(m, one, other)
        case _:
            return reversed_along(transposed(m, order), other)


@of_arrays("numpy.roll", together=("a",), traced=("shift",))
def roll(a: Value, shift: Any, axis: Any = None) -> Value:
    """Elements moved along axes, those that leave come in at the other end."""
    if axis is None:
        flat = raveled(a)
        return reshaped(_rolled(flat, _single(shift), 0), a.shape)
    axes = [normalize_axis(each, a.ndim, "numpy.roll") for each in as_items(axis)]
    shifts = as_items(shift)
    if len(shifts) == 1:
        shifts = [*shifts] * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        problem = f"takes as many shifts as axes, not {len(shifts)} and {len(axes)}"
        raise Failure(BadArguments(function="numpy.roll", problem=problem))
    for place, each in zip(axes, shifts, strict=True):
        a = _rolled(a, each, place)
    return a


def _single(shift: Any) -> Any:
    shifts = as_items(shift)
    if len(shifts) != 1:
        raise Failure(
            BadArguments(function="numpy.roll", problem="takes one shift without an axis")
        )
    return shifts[0]


def _rolled(a: Value, shift: Any, axis: int) -> Value:
    size = a.shape[axis]
    if size == 0:
        return a
    if isinstance(shift, Weak):
        shift = shift.default()
    if isinstance(shift, Value):
        return _rolled_by_computed(a, shift, axis)
    facts, amount = a.builder.facts, as_size(shift, "numpy.roll")
    if isinstance(size, int) and isinstance(amount, int):
        amount = amount % size
    for start in (size - amount, -amount):
        if facts.proves(Fact("<=", 0, start)) and facts.proves(Fact("<=", start, size)):
            return _joined_at(a, start, axis)
    return _rolled_by_computed(a, a.builder.size(amount, I32), axis)


def _joined_at(a: Value, start: Size, axis: int) -> Value:
    """What begins at a place first, then what comes before it."""
    size = a.shape[axis]
    if start == 0 or start == size:
        return a
    return joined([part(a, axis, start, size), part(a, axis, 0, start)], axis)


def _rolled_by_computed(a: Value, shift: Value, axis: int) -> Value:
    """A part of the array twice after itself."""
    if shift.ndim or not shift.dtype.is_integer:
        problem = f"takes shifts that are integer scalars, not {shift.type}"
        raise Failure(BadArguments(function="numpy.roll", problem=problem))
    narrow = shift.dtype.bits < 32 or shift.dtype is I32
    wide = cast(shift, I32 if narrow else shift.dtype if shift.dtype is U64 else I64)
    size = largest(a.builder.facts, a.shape[axis], 1)
    beyond = e.remainder(wide, size)  # the least integer has no opposite
    start = cast(e.remainder(e.subtract(size, beyond), size), I32 if narrow else I64)
    zero = a.builder.literal(0, start.dtype)
    starts = [start if place == axis else zero for place in range(a.ndim)]
    return DynamicSlice(a.shape)(joined([a, a], axis), *starts)
