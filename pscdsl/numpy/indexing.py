"""Reading parts of arrays: `x[...]`, and parts of fixed size at computed places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

from pscdsl._src.ir.broadcasting import broadcast_shapes, broadcast_to
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.program import Literal
from pscdsl._src.language.meanings import describe, function
from pscdsl._src.primitives.indexing import DynamicSlice, Gather
from pscdsl._src.primitives.shaping import Constant, SizeValue, Slice
from pscdsl.numpy.calling import (
    OfCounter,
    as_count,
    as_items,
    as_known_integer,
    as_operand,
    as_size,
    lifted,
)
from pscdsl.numpy.shorthand import (
    cast,
    joined,
    largest,
    least,
    reshaped,
    reversed_along,
    transposed,
    where,
)
from pscdsl.typing.array_types import Shape
from pscdsl.typing.assumptions import Assumptions, Fact, Verdict
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import (
    DataDependentShape,
    IndexOutOfRange,
    NotAnIndex,
    TooManyIndices,
    UnprovenSize,
    disagreement,
)
from pscdsl.typing.counters import InLoop, counters_in
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size, substitute
from pscdsl.typing.dtypes import BOOL, I32, I64, U64, Kind
from pscdsl.typing.python_containers import (
    NDArray,
    is_known_array,
    is_sequence,
    is_slice,
    sequence_leaves,
)

# Slices of an axis: NumPy's rules for bounds, for sizes that may be symbolic.


@dataclass(frozen=True)
class Cut:
    """A part of an axis: from `start` up to `limit`, maybe reversed, then every `stride`-th."""

    start: Size
    limit: Size
    stride: int = 1
    backwards: bool = False

    @property
    def width(self) -> Size:
        """Return how many elements there are before the stride."""
        return self.limit - self.start

    @property
    def size(self) -> Size:
        """Return how many elements there are."""
        if self.stride == 1:
            return self.width
        return (self.width + (self.stride - 1)) // self.stride

    def is_whole(self, size: Size) -> bool:
        """Return whether it leaves an axis of a size as it is."""
        whole = self.start == 0 and self.limit == size
        return whole and self.stride == 1 and not self.backwards


def cut(facts: Assumptions, given: slice, size: Size) -> Cut:
    """A slice of an axis of a size; bounds beyond the ends are moved there, as in NumPy."""
    step = 1 if given.step is None else _bound(given.step)
    if not isinstance(step, int) or step == 0:
        problem = f"takes a step that is a number other than zero, not {describe(step)}"
        raise Failure(BadArguments(function="slice", problem=problem))
    if step > 0:
        start = 0 if given.start is None else _clipped(facts, given.start, size)
        stop = size if given.stop is None else _clipped(facts, given.stop, size)
        return Cut(start, largest(facts, start, stop), step)
    limit = size if given.start is None else _clipped(facts, given.start, size, 1)
    start = 0 if given.stop is None else _clipped(facts, given.stop, size, 1)
    return Cut(start, largest(facts, start, limit), -step, backwards=True)


def cut_between(facts: Assumptions, start: Size, stop: Size, size: Size) -> Cut:
    """The elements from `start` up to `stop`, by NumPy's rules."""
    return cut(facts, slice(start, stop), size)


def _bound(x: object) -> Size:
    if isinstance(x, OfCounter):
        return x.size
    if isinstance(x, Value | Weak) and not (isinstance(x, Weak) and x.made_of_sizes):
        raise Failure(
            DataDependentShape(
                what="a slice with a computed bound",
                instead="to use the elements before `i` alone, mask the others: "
                "`np.where(np.arange(x.shape[0]) < i, x, 0)`; "
                "`psc.dynamic_slice(x, [i], [k])` takes `k` of them",
            )
        )
    return as_size(x, "slice")


def _clipped(facts: Assumptions, given: object, size: Size, after: int = 0) -> Size:
    """A bound counted from the front, plus `after`, within 0 and the size."""
    bound = _bound(given)
    if facts.proves(Fact("<=", 0, bound)):
        return least(facts, bound + after, size)
    if not facts.proves(Fact("<=", bound, -1)):
        claim = Fact("<=", bound, -1) if _falls(bound) else Fact("<=", 0, bound)
        raise Failure(UnprovenSize.of(facts, "a bound of a slice", claim))
    return largest(facts, bound + size + after, 0)


def _falls(bound: Size) -> bool:
    """Whether a bound is negative for all sizes that are large: it counts from the end then."""
    if isinstance(bound, int):
        return bound < 0
    return all(coefficient < 0 for monomial, coefficient in bound.terms if monomial)


def place(facts: Assumptions, index: Size, size: Size, axis: int) -> Size:
    """A static index counted from the front; a Failure if it is not proven to be in range."""
    if facts.proves(Fact("<=", 0, index)):
        if facts.proves(Fact("<", index, size)):
            return index
    elif facts.proves(Fact("<=", index, -1)) and facts.proves(Fact("<=", 0, index + size)):
        return index + size
    elif facts.proves(Fact("<", index, size)) and facts.proves(Fact("<=", 0, index + size)):
        return index % size  # it counts from the front for some sizes, from the end for others
    raise Failure(IndexOutOfRange.of(facts, index, size, axis))


# What stands between the brackets of `x[...]`, read against the axes of `x`.


@dataclass(frozen=True)
class New:
    """`None`: a new axis of size 1."""


@dataclass(frozen=True)
class Dots:
    """`...` that stands for no axis: it still sets apart what is picked on its two sides."""


@dataclass(frozen=True)
class At:
    """One place on an axis, known while checking and proven to be on it."""

    axis: int
    index: Size


@dataclass(frozen=True)
class Along:
    """A slice of an axis."""

    axis: int
    cut: Cut


@dataclass(frozen=True)
class Picked:
    """Places on an axis computed by the program, counted from the front; clamped when it runs."""

    axis: int
    places: Value


Part: TypeAlias = New | Dots | At | Along | Picked


@dataclass(frozen=True)
class Selection:
    """An index of an array, one part for each axis and each new one, in the order written."""

    parts: tuple[Part, ...]

    @property
    def has_arrays(self) -> bool:
        """Return whether an array of one axis or more picks."""
        return any(isinstance(part, Picked) and part.places.ndim for part in self.parts)

    def along(self) -> tuple[Along, ...]:
        """The slices."""
        return tuple(part for part in self.parts if isinstance(part, Along))

    def picking(self) -> tuple[At | Picked, ...]:
        """The single places and arrays of places."""
        return tuple(part for part in self.parts if isinstance(part, At | Picked))

    def layout(self, count: int) -> list[str]:
        """The axes of the result in order, when the arrays together have `count` of them.

        `slice 2` is that of axis 2, `array 0` the first that the arrays give, `new` a new one.
        What picks together gives its axes in its place; if it stands apart, first, as in NumPy.
        """
        kinds = [isinstance(part, At | Picked) for part in self.parts]
        first = kinds.index(True) if any(kinds) else 0
        apart = not all(kinds[first : first + sum(kinds)])
        arrays = [f"array {axis}" for axis in range(count)]
        found = arrays if apart else []
        for position, part in enumerate(self.parts):
            if isinstance(part, New):
                found = [*found, "new"]
            elif isinstance(part, Along):
                found = [*found, f"slice {part.axis}"]
            elif position == first and not apart:
                found = [*found, *arrays]
        return found


def selection(x: Value, index: Any) -> Selection:
    """An index of this array, with missing axes filled in."""
    items: list[Any] = list(index) if isinstance(index, tuple) else [index]  # pyright: ignore[reportUnknownArgumentType]
    if any(isinstance(item, bool | np.bool_) for item in items):
        raise Failure(NotAnIndex(what="`True` or `False`"))
    used = sum(1 for item in items if item is not None and item is not Ellipsis)
    if used > x.ndim:
        raise Failure(TooManyIndices(given=x.type, count=used))
    dots = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise Failure(NotAnIndex(what="more than one `...`"))
    whole: list[Any] = [slice(None)] * (x.ndim - used)
    if dots and not whole:
        whole.append(Ellipsis)
    at = dots[0] if dots else len(items)
    items[at : at + 1] = whole
    return Selection(tuple(_parts(x, items)))


def _parts(x: Value, items: Sequence[Any]) -> Iterator[Part]:
    facts = x.builder.facts
    axis, sliced = 0, any(map(_names_counters, items))
    for item in items:
        if item is None or item is Ellipsis:
            yield New() if item is None else Dots()
            continue
        size = x.shape[axis]
        index = as_known_integer(item)
        counted = _at_counter(x, item, axis, sliced) if isinstance(item, OfCounter) else None
        if is_slice(item):
            yield Along(axis, cut(facts, item, size))
        elif index is not None:
            yield At(axis, place(facts, index, size, axis))
        elif counted is not None:
            yield counted
        else:
            yield Picked(axis, _places(x, item, axis))
        axis += 1


def _at_counter(x: Value, item: OfCounter, axis: int, sliced: bool) -> At | Picked | None:
    """The place that a loop's counter says, if it is proven to be on the axis.

    Beside slices that end at counters it is one place of them; alone it is a number.
    """
    facts, size = x.builder.facts, x.shape[axis]
    if not (facts.proves(Fact("<=", 0, item.size)) and facts.proves(Fact("<", item.size, size))):
        _require_last_step(x, item.size, axis)
        return None
    if sliced or counters_in(size) or not facts.proves(Fact("<=", 1, size)):
        return At(axis, item.size)
    return Picked(axis, item.default())


def _require_last_step(x: Value, index: Size, axis: int) -> None:
    """A Failure if the last step of a loop, whenever it has steps, leaves an axis."""
    program, facts, size = x.builder.program, x.builder.facts, x.shape[axis]
    if not isinstance(facts, InLoop):
        return
    own = {n: program.every_step[n] for n in facts.counters if n in program.every_step}
    certain = {depth for _, depth in own.values()}
    for name in counters_in(index):
        counter, depth = own.get(name, (None, 0))
        if counter is None or not certain.issuperset(range(depth, program.current.depth + 1)):
            return
        last = substitute(index, {name: counter.high - 1})
        if counter.step != 1 or any(map(counters_in, (last, size, counter.low, counter.high))):
            return
        runs = facts.around.assume(Fact("<", counter.low, counter.high))
        if runs.consistent() is not Verdict.YES or not runs.proves(Fact("<=", size, last)):
            return
        moves = index - counter.size == last - counter.high + 1
        start = "" if counter.low == 0 else f"{counter.low}, "
        raise Failure(
            IndexOutOfRange(
                index=str(index),
                size=size,
                axis=axis,
                why=f"the last step has {name} = {counter.high - 1}",
                steps=f"range({start}{counter.high - 1 - last + size})" if moves else "",
            )
        )


def _names_counters(item: object) -> bool:
    """Return whether an index is a slice with a bound that is made of counters."""
    return is_slice(item) and any(isinstance(each, OfCounter) for each in (item.start, item.stop))


def _places(x: Value, item: Any, axis: int) -> Value:
    facts, size = x.builder.facts, x.shape[axis]
    if is_sequence(item):
        item = _from_list(x, item, axis)
    elif is_known_array(item):
        item = _from_constant(x, item, axis)
    elif isinstance(item, Weak) and is_known_array(item.known) and item.kind <= Kind.INT:
        item = _from_constant(x, item.known, axis)
    if isinstance(item, Weak):
        if item.kind > Kind.INT:
            raise Failure(NotAnIndex(what=f"an array of dtype {item.dtype}"))
        item = item.default()
    if not isinstance(item, Value):
        raise Failure(NotAnIndex(what=describe(item)))
    if item.dtype is BOOL:
        pairs = zip(x.shape[axis:], item.shape, strict=False)
        apart = (disagreement(facts, *pair) for pair in pairs if not facts.equal(*pair))
        refuse_mask(next(apart, ""))
    if not item.dtype.is_integer:
        raise Failure(NotAnIndex(what=f"an array of dtype {item.dtype}"))
    require_elements(facts, size, axis)
    return from_front(item, size)


def known_places(places: Value) -> Any:
    """Computed places, but an integer or an array of NumPy's if they are known while checking."""
    atom = places.atom
    if isinstance(atom, Literal):
        return atom.value
    for equation in reversed(places.builder.equations):
        if atom in equation.outputs:
            made = equation.primitive
            if isinstance(made, Constant):
                return made.array()
            return made.size if isinstance(made, SizeValue) else places
    return places


def require_unrepeated(mask: Value | Weak, shape: Shape) -> None:
    """Refuse a mask that has one place along an axis of another size: NumPy repeats none."""
    facts = mask.builder.facts
    for own, size in zip(mask.shape, shape, strict=False):
        if own == 1 and not facts.equal(own, size):
            raise Failure(NotAnIndex(what=f"a mask of 1 element for {size} of an axis"))


def refuse_mask(why: str = "") -> NoReturn:
    """Refuse an index whose result would have as many elements as a mask has True."""
    raise Failure(
        DataDependentShape(
            what="an array indexed by a mask",
            why=why,
            instead="`np.where(mask, x, 0)` keeps the shape, for a sum; "
            "for a maximum, `np.where(mask, x, -np.inf)`",
        )
    )


def require_elements(facts: Assumptions, size: Size, axis: int) -> None:
    """Refuse to pick from an axis that may be empty."""
    claim = Fact("<=", 1, size)
    if not facts.proves(claim):
        what = f"an element is picked from axis {axis} of size {size}"
        raise Failure(UnprovenSize.of(facts, what, claim))


def from_front(places: Value, size: Size) -> Value:
    """Computed places with negative ones, which count from the end, made positive.

    As in NumPy, places in u64 count as i64: `i - 1` is the last one where i is 0.
    """
    if not places.dtype.signed and places.dtype is not U64:
        return places
    wide = cast(places, I32 if places.dtype.bits <= 32 else I64)
    return where(wide < 0, wide + size, wide)


def _from_list(x: Value, item: Sequence[Any], axis: int) -> Value:
    """Nested lists of places; those known while checking must be on the axis."""
    facts, size, here = x.builder.facts, x.shape[axis], x.builder
    leaves = list(sequence_leaves(item))
    truths = [isinstance(leaf, bool | np.bool_) for leaf in leaves]
    if truths and all(truths):
        return _from_constant(x, np.array(leaves).reshape(_lengths(item)), axis)
    if any(truths):
        raise Failure(NotAnIndex(what="a list of numbers and of `True` and `False`"))
    found: list[Any] = []
    for leaf in leaves:
        index = as_known_integer(leaf)
        if index is not None:
            leaf = place(facts, index, size, axis)
        elif not isinstance(leaf, Value | Weak):
            raise Failure(NotAnIndex(what=describe(leaf)))
        found.append(leaf)
    shape = _lengths(item)
    if all(isinstance(leaf, int) for leaf in found):
        return here.bind(Constant.of(np.array(found, np.int32).reshape(shape), I32), ())[0]
    pieces: list[Value] = []
    for leaf in found:
        value = here.size(leaf, I32) if isinstance(leaf, int | Dim) else _places(x, leaf, axis)
        if value.ndim:
            raise Failure(NotAnIndex(what="a list of arrays"))
        pieces.append(reshaped(cast(value, I32 if value.dtype.bits <= 32 else I64), (1,)))
    widest = I64 if any(piece.dtype is I64 for piece in pieces) else I32
    return reshaped(joined([cast(piece, widest) for piece in pieces], 0), shape)


def _from_constant(x: Value, item: NDArray, axis: int) -> Value:
    """An array known while checking; its places must be on the axis."""
    facts, size = x.builder.facts, x.shape[axis]
    if item.dtype == np.bool_:
        if item.ndim != 1:
            raise Failure(NotAnIndex(what=f"a mask of {item.ndim} axes"))
        claim = Fact("==", size, len(item))
        if facts.proves(claim.negated()):
            raise Failure(NotAnIndex(what=f"a mask of {len(item)} elements for {size} of an axis"))
        if not facts.proves(claim):
            raise Failure(UnprovenSize.of(facts, "a mask", claim))
        item = np.flatnonzero(item)
    if item.dtype.kind not in "iu":
        raise Failure(NotAnIndex(what=f"an array of dtype {item.dtype}"))
    if item.size:
        for end in (int(item.min()), int(item.max())):
            place(facts, end, size, axis)
    if isinstance(size, int):
        item = np.where(item < 0, item + size, item)
    return x.builder.bind(Constant.of(item, I32), ())[0]


def _lengths(item: Any) -> tuple[int, ...]:
    if not is_sequence(item):
        return ()
    shapes = {_lengths(each) for each in item}
    if len(shapes) > 1:
        problem = "takes lists of equal lengths as indices"
        raise Failure(BadArguments(function="x[...]", problem=problem))
    return (len(item), *(shapes.pop() if shapes else ()))


# Reading parts of arrays: `x[...]`, and parts of fixed size at computed places.


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
    """Return where a part of the size of `x` starts: at the computed places, elsewhere at zero."""
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
