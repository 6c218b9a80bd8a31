"""Reading parts of arrays: `x[...]`, and parts of fixed size at computed places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.ir.builder import Builder, Value, Weak, broadcast_shapes, broadcast_to
from pscdsl._src.language.meanings import function
from pscdsl._src.primitives.dynamic_slicing import DynamicSlice
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.shaping import Slice
from pscdsl.numpy.arguments import as_items, as_known_integer
from pscdsl.numpy.openness import as_operand, lifted
from pscdsl.numpy.selections import Along, At, New, Picked, Selection, require_elements, selection
from pscdsl.numpy.shorthand import cast, joined, reshaped, reversed_along, transposed
from pscdsl.numpy.sizes import as_count
from pscdsl.typing.arrays import Shape
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_indexing import NotAnIndex
from pscdsl.typing.codes.shapes_manipulation import UnprovenSize
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, I64


def getitem(value: Value | Weak, index: Any) -> Value | Weak:
    """`value[index]` with NumPy's meaning; computed indices are clamped."""
    return lifted(value.builder, value, lambda x: read(x, selection(x, index)))


def read(x: Value, chosen: Selection) -> Value:
    """The part of an array that an index chooses."""
    if chosen.has_arrays:
        return gathered(cropped(x, chosen), chosen)
    part = _dynamic(cropped(x, chosen, places=True), chosen)
    return reshaped(part, result_shape(chosen))


def result_shape(chosen: Selection) -> Shape:
    """The shape that an index without arrays gives."""
    sizes: list[Size] = []
    for part in chosen.parts:
        if isinstance(part, New):
            sizes.append(1)
        elif isinstance(part, Along):
            sizes.append(part.cut.size)
    return tuple(sizes)


def cropped(x: Value, chosen: Selection, places: bool = False) -> Value:
    """The slices of an index applied, and with `places` the single places as axes of size 1."""
    starts: list[Size] = [0] * x.ndim
    limits = list(x.shape)
    strides = [1] * x.ndim
    backwards: list[int] = []
    later = [1] * x.ndim
    for part in chosen.parts:
        if isinstance(part, Along):
            axis, cut = part.axis, part.cut
            starts[axis], limits[axis] = cut.start, cut.limit
            (later if cut.backwards else strides)[axis] = cut.stride
            if cut.backwards:
                backwards.append(axis)
        elif isinstance(part, At) and places:
            starts[part.axis], limits[part.axis] = part.index, part.index + 1
    x = _sliced(x, starts, limits, strides)
    if backwards:
        x = reversed_along(x, *backwards)
        x = _sliced(x, [0] * x.ndim, x.shape, later)
    return x


def _sliced(
    x: Value, starts: Sequence[Size], limits: Sequence[Size], strides: Sequence[int]
) -> Value:
    whole = all(start == 0 for start in starts) and all(stride == 1 for stride in strides)
    if whole and tuple(limits) == x.shape:
        return x
    return Slice(tuple(starts), tuple(limits), tuple(strides))(x)


def _dynamic(x: Value, chosen: Selection) -> Value:
    """The computed places of an index without arrays, as axes of size 1."""
    starts = starts_of(x, chosen)
    if not any(isinstance(part, Picked) for part in chosen.parts):
        return x
    picked = {part.axis for part in chosen.parts if isinstance(part, Picked)}
    sizes = tuple([1 if axis in picked else size for axis, size in enumerate(x.shape)])
    return DynamicSlice(sizes)(x, *starts)


def starts_of(x: Value, chosen: Selection) -> list[Value]:
    """Where a part of the size of `x` starts: at the computed places, elsewhere at zero."""
    starts = [x.builder.literal(0, I32)] * x.ndim
    for part in chosen.parts:
        if isinstance(part, Picked):
            starts[part.axis] = part.places
    return starts


def index_tuples(x: Value, picking: Sequence[At | Picked]) -> Value:
    """Places along several axes, broadcast together, as tuples along a last axis."""
    here = x.builder
    columns = [
        here.size(part.index, I32) if isinstance(part, At) else part.places for part in picking
    ]
    if len({column.dtype for column in columns}) > 1 or not columns[0].dtype.signed:
        columns = [cast(column, I64) for column in columns]
    shape = broadcast_shapes(here.facts, *(column.shape for column in columns))
    rows = [reshaped(broadcast_to(column, shape), (*shape, 1)) for column in columns]
    return joined(rows, len(shape))


def gathered(x: Value, chosen: Selection) -> Value:
    """The arrays of an index applied, its slices having been applied before."""
    picking = chosen.picking()
    for part in picking:
        require_elements(x.builder.facts, x.shape[part.axis], part.axis)
    tuples = index_tuples(x, picking)
    result = Gather(tuple(part.axis for part in picking))(x, tuples)
    count = tuples.ndim - 1
    return _arranged(result, chosen, count)


def own_order(chosen: Selection, count: int) -> list[str]:
    """The axes as `Gather` gives them: those of the arrays, then the slices."""
    return [f"array {i}" for i in range(count)] + [f"slice {a.axis}" for a in chosen.along()]


def _arranged(x: Value, chosen: Selection, count: int) -> Value:
    """The axes brought into NumPy's order, and new ones put in."""
    own, wanted = own_order(chosen, count), chosen.layout(count)
    x = transposed(x, [own.index(each) for each in wanted if each != "new"])
    if "new" not in wanted:
        return x
    sizes = iter(x.shape)
    return reshaped(x, tuple([1 if each == "new" else next(sizes) for each in wanted]))


@function("pscdsl.dynamic_slice")
def dynamic_slice(here: Builder, x: Any, starts: Any, sizes: Any) -> Value | Weak:
    """A part of fixed size at a computed place; starts are clamped so that it fits."""
    array = as_operand(here, x)
    places = computed_starts(here, "pscdsl.dynamic_slice", array.ndim, starts)
    given = as_items(sizes)
    part = tuple([as_count(size, "pscdsl.dynamic_slice", here.facts) for size in given])
    require_fit(here, "pscdsl.dynamic_slice", part, array.shape)
    return lifted(here, array, lambda x: DynamicSlice(part)(x, *places))


def computed_starts(here: Builder, name: str, rank: int, starts: Any) -> list[Value]:
    """One integer scalar for each axis."""
    given = as_items(starts)
    if len(given) != rank:
        problem = f"takes one start for each axis, {rank}, not {len(given)}"
        raise Failure(BadArguments(function=name, problem=problem))
    places: list[Value] = []
    for each in given:
        known = as_known_integer(each)
        start = as_operand(here, each if known is None else known)
        if isinstance(start, Weak):
            start = start.default()
        if start.ndim or not start.dtype.is_integer:
            raise Failure(NotAnIndex(what=f"a start of type {start.type}"))
        places.append(start)
    return places


def require_fit(here: Builder, name: str, part: Shape, whole: Shape) -> None:
    """Refuse a part that is larger than the array on some axis."""
    if len(part) != len(whole):
        problem = f"takes one size for each axis, {len(whole)}, not {len(part)}"
        raise Failure(BadArguments(function=name, problem=problem))
    for axis, (size, limit) in enumerate(zip(part, whole, strict=True)):
        claim = Fact("<=", size, limit)
        if not here.facts.proves(claim):
            raise Failure(UnprovenSize.of(here.facts, f"axis {axis} of `{name}`", claim))
