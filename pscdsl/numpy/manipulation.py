"""The same elements in other shapes and orders; arrays put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pscdsl._src.ir.broadcasting import broadcast_shapes as joint
from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import describe, function
from pscdsl._src.language.results import Result
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import DynamicSlice
from pscdsl.numpy.calling import (
    as_array,
    as_count,
    as_items,
    as_operand,
    as_shape,
    as_size,
    as_times,
    cast_in_kind,
    is_array,
    lifted,
    normalize_axes,
    normalize_axis,
    of_arrays,
    reduced_axes,
    require_fitting,
)
from pscdsl.numpy.creation import asarray, numbers_of
from pscdsl.numpy.indexing import Cut, cut_between
from pscdsl.numpy.logic import items
from pscdsl.numpy.shorthand import (
    at,
    cast,
    joined,
    largest,
    part,
    raveled,
    reshaped,
    reversed_along,
    simplified,
    transposed,
)
from pscdsl.typing.array_types import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import (
    ImpossibleReshape,
    NotDivisible,
    NotOfSizeOne,
    ShapesDoNotBroadcast,
    UnprovenSize,
    WrongNumberOfAxes,
    disagreement,
    instance,
)
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size, as_terms, minimum
from pscdsl.typing.dtypes import I32, I64, U64
from pscdsl.typing.python_containers import is_sequence, is_slice, is_tuple

# The same elements counted by other axes.


@of_arrays("numpy.reshape", together=("a",), traced=("shape",), result=Result.SAME_ELEMENTS)
def reshape(a: Value, /, shape: Any, order: Any = "C", *, copy: bool | None = None) -> Value:
    """Another shape with as many elements; one size may be -1 and follows from the others.

    The order `"C"` counts elements by the last axis first, `"F"` by the first one, in both arrays.
    """
    if copy is False and a.ndim > 1:
        problem = f"of {a.type} copies it if its layout in memory does not fit: leave out `copy`"
        raise Failure(BadArguments(function="numpy.reshape", problem=problem))
    wanted = reshaped_shape(a.builder.facts, a.type, shape)
    if not counts_backwards("numpy.reshape", a, order):
        return reshaped(a, wanted)
    return _with_axes_reversed(reshaped(_with_axes_reversed(a), wanted[::-1]))


def counts_backwards(name: str, a: Value, order: Any) -> bool:
    """Return whether elements are counted by the first axis first; a Failure if memory decides."""
    known = order if isinstance(order, str) else ""
    if known in ("C", "c") or (known in ("A", "a", "K", "k") and a.ndim < 2):
        return False
    if known in ("F", "f"):
        return True
    problem = f"takes the order `C` or `F` of {a.type}, not {describe(order)}"
    instead = "how an array lies in memory is not known: say which axis is counted first"
    raise Failure(BadArguments(function=name, problem=problem, instead=instead))


def _with_axes_reversed(a: Value) -> Value:
    return transposed(a, tuple(reversed(range(a.ndim))))


def reshaped_shape(facts: Assumptions, given: ArrayType, wanted: Any) -> Shape:
    """The shape that `reshape` gives, with -1 replaced; a Failure if there is none."""
    items = list(as_items(wanted))
    sizes: list[Size] = []
    open_axes = [axis for axis, item in enumerate(items) if as_size(item, "numpy.reshape") == -1]
    for axis, item in enumerate(items):
        sizes.append(-1 if axis in open_axes else as_count(item, "numpy.reshape", facts))
    total = size_of(given.shape)
    if not open_axes:
        if not facts.equal(total, size_of(tuple(sizes))):
            product = size_of(tuple(sizes))
            missing = _missing(facts, total, product)
            raise _impossible(given, sizes, disagreement(facts, total, product), missing)
        return tuple(sizes)
    if len(open_axes) > 1:
        raise Failure(
            BadArguments(function="numpy.reshape", problem="takes -1 for one size at most")
        )
    known = size_of(tuple(size for axis, size in enumerate(sizes) if axis not in open_axes))
    positive = Fact("<=", 1, known)
    if not facts.proves(positive):
        if known == 0:
            raise _impossible(given, sizes, "any size would do for -1")
        raise Failure(UnprovenSize.of(facts, "the sizes beside -1 in `reshape`", positive))
    found = simplified(facts, total // known)
    if not facts.equal(found * known, total):
        divides = Fact("==", total % known, 0)
        why = f"{total} is not a multiple of {known}{instance(facts, divides)}"
        raise _impossible(given, sizes, why, None if isinstance(divides.left, int) else divides)
    sizes[open_axes[0]] = found
    return tuple(sizes)


def _impossible(
    given: ArrayType, wanted: list[Size], why: str, missing: Fact | None = None
) -> Failure:
    return Failure(ImpossibleReshape(given=given, wanted=tuple(wanted), why=why, missing=missing))


def _missing(facts: Assumptions, total: Size, product: Size) -> Fact | None:
    """A division in the wanted sizes that would have to leave no remainder."""
    for monomial, _ in as_terms(product):
        for atom in monomial:
            if atom.kind == "//":
                exact = Fact("==", atom.args[0] % atom.args[1], 0)
                if facts.assume(exact).equal(total, product):
                    return exact
    return None


@of_arrays("numpy.ravel", together=("a",), result=Result.SAME_ELEMENTS)
def ravel(a: Value, order: Any = "C") -> Value:
    """All elements along one axis, counted by the last axis first; by the first one with `"F"`."""
    return raveled(_with_axes_reversed(a) if counts_backwards("numpy.ravel", a, order) else a)


@of_arrays("numpy.expand_dims", together=("a",), result=Result.SAME_ELEMENTS)
def expand_dims(a: Value, axis: Any) -> Value:
    """New axes of size 1, at places counted in the result."""
    count = len(as_items(axis))
    places = normalize_axes(axis, a.ndim + count, "numpy.expand_dims")
    sizes = iter(a.shape)
    return reshaped(a, tuple([1 if p in places else next(sizes) for p in range(a.ndim + count)]))


@of_arrays("numpy.squeeze", together=("a",), result=Result.SAME_ELEMENTS)
def squeeze(a: Value, axis: Any = None) -> Value:
    """Without axes of size 1; without an argument, those that have size 1 for all sizes."""
    facts = a.builder.facts
    if axis is None:
        axes = tuple(place for place, size in enumerate(a.shape) if facts.equal(size, 1))
    else:
        axes = reduced_axes(axis, a.ndim, "numpy.squeeze")
    for place in axes:
        if not facts.equal(a.shape[place], 1):
            raise Failure(NotOfSizeOne(function="numpy.squeeze", given=a.type, axis=place))
    return reshaped(a, tuple([size for place, size in enumerate(a.shape) if place not in axes]))


def deepened(a: Value, rank: int) -> Value:
    """With axes of size 1 as NumPy's `atleast_1d`, `atleast_2d` and `atleast_3d` add them."""
    if a.ndim >= rank:
        return a
    if rank == 3 and a.ndim:
        return reshaped(a, (1, *a.shape, 1) if a.ndim == 1 else (*a.shape, 1))
    return reshaped(a, ((1,) * (rank - a.ndim) + a.shape))


def _at_least(here: Builder, rank: int, arrays: tuple[Any, ...]) -> Any:
    deep = tuple([lifted(here, x, lambda v: deepened(v, rank)) for x in arrays])
    return deep[0] if len(deep) == 1 else deep


@function("numpy.atleast_1d", result=Result.SAME_ELEMENTS)
def atleast_1d(here: Builder, *arys: Any) -> Any:
    """Scalars with one axis; several arguments give a tuple."""
    return _at_least(here, 1, arys)


@function("numpy.atleast_2d", result=Result.SAME_ELEMENTS)
def atleast_2d(here: Builder, *arys: Any) -> Any:
    """With axes of size 1 in front, up to two; several arguments give a tuple."""
    return _at_least(here, 2, arys)


@function("numpy.atleast_3d", result=Result.SAME_ELEMENTS)
def atleast_3d(here: Builder, *arys: Any) -> Any:
    """With axes of size 1 around, up to three; several arguments give a tuple."""
    return _at_least(here, 3, arys)


@function("numpy.shape")
def shape_(here: Builder, a: Any) -> Shape:
    """The sizes of the axes; static."""
    return _array(here, a).shape


@function("numpy.ndim")
def ndim(here: Builder, a: Any) -> int:
    """Return how many axes there are; static."""
    return _array(here, a).ndim


@function("numpy.size")
def size_(here: Builder, a: Any, axis: Any = None) -> Size:
    """Return how many elements there are, over all axes or some; a size."""
    array = _array(here, a)
    axes = normalize_axes(axis, array.ndim, "numpy.size")
    return size_of(tuple([array.shape[place] for place in axes]))


def _array(here: Builder, a: Any) -> Value | Weak:
    array: Value | Weak = asarray(here, a) if is_sequence(a) else as_operand(here, a)
    return array


# Axes in another order, and broadcasting to a shape.


@of_arrays("numpy.transpose", together=("a",), result=Result.ARRANGED)
def transpose(a: Value, axes: Any = None) -> Value:
    """Axes in another order, by default the last first."""
    if axes is None:
        return transposed(a, tuple(reversed(range(a.ndim))))
    order = normalize_axes(axes, a.ndim, "numpy.transpose")
    if len(order) != a.ndim:
        axes_text = "1 axis" if len(order) == 1 else f"{len(order)} axes"
        wanted = f"an array with {axes_text}, as many as are listed"
        raise Failure(WrongNumberOfAxes(function="numpy.transpose", given=a.type, wanted=wanted))
    return transposed(a, order)


@of_arrays("numpy.permute_dims", together=("a",), result=Result.ARRANGED)
def permute_dims(a: Value, axes: Any = None) -> Value:
    """Like `transpose`."""
    return transpose(a, axes)  # type: ignore[no-any-return]


@of_arrays("numpy.matrix_transpose", together=("x",), result=Result.ARRANGED)
def matrix_transpose(x: Value, /) -> Value:
    """The last two axes exchanged."""
    if x.ndim < 2:
        wanted = "two axes or more"
        raise Failure(
            WrongNumberOfAxes(function="numpy.matrix_transpose", given=x.type, wanted=wanted)
        )
    return transposed(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@of_arrays("numpy.swapaxes", together=("a",), result=Result.ARRANGED)
def swapaxes(a: Value, axis1: int, axis2: int) -> Value:
    """Two axes exchanged."""
    order = list(range(a.ndim))
    one, other = (normalize_axis(axis, a.ndim, "numpy.swapaxes") for axis in (axis1, axis2))
    order[one], order[other] = order[other], order[one]
    return transposed(a, order)


@of_arrays("numpy.moveaxis", together=("a",), result=Result.ARRANGED)
def moveaxis(a: Value, source: Any, destination: Any) -> Value:
    """Some axes at other places, the rest in order."""
    sources = normalize_axes(source, a.ndim, "numpy.moveaxis")
    targets = normalize_axes(destination, a.ndim, "numpy.moveaxis")
    if len(sources) != len(targets):
        problem = f"takes as many places as axes, not {len(sources)} and {len(targets)}"
        raise Failure(BadArguments(function="numpy.moveaxis", problem=problem))
    order = [axis for axis in range(a.ndim) if axis not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return transposed(a, order)


@function("numpy.rollaxis", result=Result.ARRANGED)
def rollaxis(here: Builder, a: Any, axis: int, start: int = 0) -> Value | Weak:
    """One axis moved to before another."""
    array = _array_given(here, "numpy.rollaxis", a)
    return lifted(here, array, lambda x: _axis_moved(x, axis, start))


def _axis_moved(a: Value, axis: int, start: int) -> Value:
    origin = normalize_axis(axis, a.ndim, "numpy.rollaxis")
    target = a.ndim if start == a.ndim else normalize_axis(start, a.ndim, "numpy.rollaxis")
    order = [place for place in range(a.ndim) if place != origin]
    order.insert(target - 1 if origin < target else target, origin)
    return transposed(a, order)


@function("numpy.broadcast_to")
def broadcast_to_(here: Builder, array: Any, shape: Any) -> Value | Weak:
    """Repeated along new leading axes and along axes of size 1."""
    wanted = as_shape(shape, "numpy.broadcast_to", here.facts)
    operand = as_operand(here, array)
    if operand.ndim > len(wanted):
        shapes = (operand.shape, wanted)
        raise Failure(
            ShapesDoNotBroadcast(shapes=shapes, axis=0, why="there are more axes already")
        )
    return lifted(here, operand, lambda x: broadcast_to(x, wanted))


@function("numpy.broadcast_arrays")
def broadcast_arrays(here: Builder, *args: Any) -> tuple[Value | Weak, ...]:
    """Arrays repeated to one shape, each in its own dtype."""
    arrays = [as_operand(here, x) for x in args]
    shape = joint(here.facts, *(x.shape for x in arrays)) if arrays else ()
    return tuple([lifted(here, x, lambda v: broadcast_to(v, shape)) for x in arrays])


@function("numpy.broadcast_shapes")
def broadcast_shapes(here: Builder, *args: Any) -> Shape:
    """The shape to which arrays of these shapes broadcast; static."""
    shapes = [as_shape(shape, "numpy.broadcast_shapes", here.facts) for shape in args]
    return joint(here.facts, *shapes) if shapes else ()


# Elements in another order along axes.


@of_arrays("numpy.flip", together=("m",), result=Result.ARRANGED)
def flip(m: Value, axis: Any = None) -> Value:
    """Axes in the opposite direction, by default all of them."""
    return reversed_along(m, *normalize_axes(axis, m.ndim, "numpy.flip"))


@of_arrays("numpy.fliplr", together=("m",), result=Result.ARRANGED)
def fliplr(m: Value) -> Value:
    """The second axis in the opposite direction."""
    _require_rank("numpy.fliplr", m, 2)
    return reversed_along(m, 1)


@of_arrays("numpy.flipud", together=("m",), result=Result.ARRANGED)
def flipud(m: Value) -> Value:
    """The first axis in the opposite direction."""
    _require_rank("numpy.flipud", m, 1)
    return reversed_along(m, 0)


def _require_rank(name: str, m: Value, rank: int) -> None:
    if m.ndim < rank:
        wanted = "an axis or more" if rank == 1 else f"{rank} axes or more"
        raise Failure(WrongNumberOfAxes(function=name, given=m.type, wanted=wanted))


@of_arrays("numpy.rot90", together=("m",), result=Result.ARRANGED)
def rot90(m: Value, k: Any = 1, axes: Any = (0, 1)) -> Value:
    """Turned by 90 degrees `k` times, from the first towards the second of two axes."""
    _require_rank("numpy.rot90", m, 2)
    places = normalize_axes((axes,) if axes is None else axes, m.ndim, "numpy.rot90")
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


@of_arrays("numpy.roll", together=("a",), traced=("shift",), result=Result.ARRAY)
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
    start = cast(e.remainder(size - beyond, size), I32 if narrow else I64)
    zero = a.builder.literal(0, start.dtype)
    starts = [start if place == axis else zero for place in range(a.ndim)]
    return DynamicSlice(a.shape)(joined([a, a], axis), *starts)


# Arrays taken apart along an axis.


MOST_PARTS = 10_000
"""No array is taken apart into more: each is an equation."""


@function("numpy.split")
def split(here: Builder, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Parts along an axis: a number of equal ones, or those between indices."""
    return _split(here, "numpy.split", ary, indices_or_sections, axis)


@function("numpy.array_split")
def array_split(here: Builder, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Like `split`; the first parts are longer by one where they cannot be equal."""
    return _split(here, "numpy.array_split", ary, indices_or_sections, axis)


@function("numpy.vsplit")
def vsplit(here: Builder, ary: Any, indices_or_sections: Any) -> Any:
    """Parts along the first axis of two or more."""
    _ranked(here, "numpy.vsplit", ary, 2)
    return _split(here, "numpy.vsplit", ary, indices_or_sections, 0)


@function("numpy.hsplit")
def hsplit(here: Builder, ary: Any, indices_or_sections: Any) -> Any:
    """Parts along the second axis, of a vector along the first."""
    array = _ranked(here, "numpy.hsplit", ary, 1)
    return _split(here, "numpy.hsplit", array, indices_or_sections, 0 if array.ndim == 1 else 1)


@function("numpy.dsplit")
def dsplit(here: Builder, ary: Any, indices_or_sections: Any) -> Any:
    """Parts along the third axis."""
    _ranked(here, "numpy.dsplit", ary, 3)
    return _split(here, "numpy.dsplit", ary, indices_or_sections, 2)


@function("numpy.unstack")
def unstack(here: Builder, x: Any, /, *, axis: int = 0) -> tuple[Value | Weak, ...]:
    """The parts along an axis, which goes away; its size must be a number."""
    array = _array_given(here, "numpy.unstack", x)
    place = normalize_axis(axis, array.ndim, "numpy.unstack")
    count = array.shape[place]
    if not isinstance(count, int):
        problem = f"takes an axis whose size is a number, not {count}"
        raise Failure(BadArguments(function="numpy.unstack", problem=problem))
    return tuple([_lifted_at(here, array, place, index) for index in range(count)])


def _lifted_at(here: Builder, array: Value | Weak, axis: int, index: int) -> Value | Weak:
    return lifted(here, array, lambda x: at(x, axis, index))


def _ranked(here: Builder, name: str, ary: Any, rank: int) -> Value | Weak:
    array = _array_given(here, name, ary)
    if array.ndim < rank:
        wanted = f"an array with {rank} axes or more"
        raise Failure(WrongNumberOfAxes(function=name, given=array.type, wanted=wanted))
    return array


def _array_given(here: Builder, name: str, x: Any) -> Value | Weak:
    """Return an array; a Failure for a list, of which NumPy's function makes none."""
    if is_sequence(x):
        problem, instead = "takes an array, no list", "`np.array(…)` makes one of a list"
        raise Failure(BadArguments(function=name, problem=problem, instead=instead))
    array: Value | Weak = asarray(here, x)
    return array


def _split(here: Builder, name: str, ary: Any, given: Any, axis: int) -> list[Value | Weak]:
    array = asarray(here, ary) if name == "numpy.array_split" else _array_given(here, name, ary)
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


# Arrays put together along an axis.


def _pieces(name: str, arrays: Any) -> list[Value]:
    return [as_array(each, name, "arrays") for each in items(name, arrays)]


def concatenated(name: str, pieces: Sequence[Value], axis: int) -> Value:
    """Arrays one after the other along an axis, their shapes being checked."""
    require_fitting(name, pieces, axis)
    return joined(pieces, axis)


@function(
    "numpy.concatenate",
    "numpy.concat",
    together=("arrays",),
    result=Result.NEW,
    widens=True,
    several=True,
)
def concatenate(arrays: Any, /, axis: int | None = 0, *, dtype: Any = None) -> Value:
    """Arrays one after the other along an axis; along one axis all elements if it is None."""
    pieces = _pieces("numpy.concatenate", arrays)
    if axis is None:
        pieces, place = [raveled(each) for each in pieces], 0
    else:
        place = normalize_axis(axis, pieces[0].ndim, "numpy.concatenate")
    result = concatenated("numpy.concatenate", pieces, place)
    return result if dtype is None else cast_in_kind("numpy.concatenate", result, dtype)


@function("numpy.stack", together=("arrays",), result=Result.NEW, widens=True, several=True)
def stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> Value:
    """Arrays of one shape along a new axis."""
    pieces = _pieces("numpy.stack", arrays)
    place = normalize_axis(axis, pieces[0].ndim + 1, "numpy.stack")
    require_fitting("numpy.stack", pieces)
    deep = [reshaped(x, (*x.shape[:place], 1, *x.shape[place:])) for x in pieces]
    result = joined(deep, place)
    return result if dtype is None else cast_in_kind("numpy.stack", result, dtype)


@function(
    "numpy.vstack",
    "numpy.row_stack",
    together=("tup",),
    result=Result.NEW,
    widens=True,
    several=True,
)
def vstack(tup: Any) -> Value:
    """Arrays one below the other; vectors are rows."""
    return concatenated("numpy.vstack", [deepened(x, 2) for x in _pieces("numpy.vstack", tup)], 0)


@function("numpy.hstack", together=("tup",), result=Result.NEW, widens=True, several=True)
def hstack(tup: Any) -> Value:
    """Arrays side by side: along the second axis, vectors along the first."""
    pieces = [deepened(x, 1) for x in _pieces("numpy.hstack", tup)]
    return concatenated("numpy.hstack", pieces, 0 if pieces[0].ndim == 1 else 1)


@function("numpy.dstack", together=("tup",), result=Result.NEW, widens=True, several=True)
def dstack(tup: Any) -> Value:
    """Arrays behind each other: along the third axis."""
    return concatenated("numpy.dstack", [deepened(x, 3) for x in _pieces("numpy.dstack", tup)], 2)


@function("numpy.column_stack", together=("tup",), result=Result.NEW, widens=True, several=True)
def column_stack(tup: Any) -> Value:
    """Vectors as columns beside each other, and matrices."""
    columns = [
        reshaped(deepened(x, 1), (*deepened(x, 1).shape, 1)) if x.ndim < 2 else x
        for x in _pieces("numpy.column_stack", tup)
    ]
    return concatenated("numpy.column_stack", columns, 1)


def along_axis(here: Builder, index: Any, name: str) -> Value | Weak:
    """Return `np.r_[index]` or `np.c_[index]`: arrays, numbers and the numbers of slices."""
    parts = index if is_tuple(index) else (index,)
    if not parts:
        raise Failure(BadArguments(function=name, problem="takes at least one array"))
    pieces = [_piece(here, name, part) for part in parts]
    axis = -1 if name == "numpy.c_" else 0
    result: Value | Weak = concatenate.of_mixed(here, (pieces,), {"axis": axis})
    return result


def _piece(here: Builder, name: str, part: Any) -> Any:
    """An array with an axis at least; of `np.c_` with two, and vectors are columns."""
    columns = name == "numpy.c_"
    if is_slice(part):
        part = numbers_of(here, part, name)
    if is_sequence(part):
        flat = not any(is_sequence(each) or getattr(each, "ndim", 0) for each in part)
        return [[each] for each in part] if columns and flat else part
    if not is_array(part):
        problem = f"takes arrays, numbers and slices here, not {describe(part)}"
        raise Failure(BadArguments(function=name, problem=problem))

    def deep(x: Value) -> Value:
        if x.ndim >= 1 + columns:
            return x
        return reshaped(x, (*(x.shape or (1,)), *(1,) * columns))

    return lifted(here, part, deep)


@function("numpy.block", together=("arrays",), result=Result.ARRAY)
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
    if isinstance(item, tuple):
        problem = "takes lists, and no tuples, of arrays"
        raise Failure(BadArguments(function="numpy.block", problem=problem))
    depths = {_depth(each) for each in item}
    if len(depths) != 1:
        problem = "takes lists that are nested equally deep, none of them empty"
        raise Failure(BadArguments(function="numpy.block", problem=problem))
    return 1 + depths.pop()


def _leaves(item: Any) -> list[Value]:
    return [leaf for each in item for leaf in _leaves(each)] if is_sequence(item) else [item]


@of_arrays("numpy.append", together=("arr", "values"), result=Result.NEW, widens=True)
def append(arr: Value, values: Value, axis: int | None = None) -> Value:
    """Values after those of an array; all of them along one axis if none is named."""
    if axis is None:
        return concatenated("numpy.append", [raveled(arr), raveled(values)], 0)
    place = normalize_axis(axis, arr.ndim, "numpy.append")
    return concatenated("numpy.append", [arr, values], place)
