"""Primitives that read and write at computed places.  No index is out of range: each is clamped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from pscdsl._src.interpreters.replay import zeros
from pscdsl._src.ir.axis_rules import AxisRule, Factors, along
from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.elementwise import Clamp, Convert, Select, equal, minimum
from pscdsl._src.primitives.pointwise import Linear
from pscdsl._src.primitives.random import unused_key
from pscdsl._src.primitives.reductions import accumulator
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Iota,
    Pad,
    Reshape,
    Transpose,
    are_axes,
    at_most,
    each_batched,
    exactly,
    inverted,
    part_of,
    same_sizes,
    stored,
    without,
)
from pscdsl.typing.array_types import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32, I64, KEY, U32, U64, DType

# Single elements and slices, at indices that an array holds.


Combine: TypeAlias = Literal["set", "add", "multiply", "minimum", "maximum"]

_UFUNCS: dict[Combine, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
}


def clamped(indices: NDArray, highest: int) -> NDArray:
    """Indices brought into the range from 0 to `highest`, as i64."""
    if indices.dtype == np.uint64:
        return np.minimum(indices, np.uint64(highest)).astype(np.int64)
    return np.asarray(np.clip(indices.astype(np.int64), 0, highest))


def wide_indices(hlo: Hlo, indices: H, type: ArrayType, highest: int) -> tuple[H, ArrayType]:  # noqa: A002
    """Indices in a signed dtype that holds any size, so that clamping them cannot overflow."""
    if type.dtype is U64:
        indices = hlo.binary("minimum", indices, hlo.full(highest, type))
    wide = type if type.dtype is I32 else type.with_dtype(I64)
    return hlo.convert(indices, wide), wide


def moved(value: Value, source: int, target: int) -> Value:
    """Return an array with one axis moved to another place, the others in their order."""
    order = list(range(value.ndim))
    order.insert(target, order.pop(source))
    return value if source == target else Transpose(tuple(order))(value)


def counter(facts: Assumptions, count: Size) -> DType:
    """Return a dtype that can count to this number."""
    return I32 if at_most(facts, count, I32.range[1]) else I64


def _picked_shape(
    primitive: Primitive,
    facts: Assumptions,
    x: ArrayType,
    indices: ArrayType,
    axes: tuple[int, ...],
    batched: int,
) -> Shape:
    """Check the operands, and return the shape that index tuples pick."""
    shape, places = x.shape, indices.shape
    if (
        not axes
        or not indices.dtype.is_integer
        or not are_axes(axes, x.rank)
        or not 0 <= batched <= min(axes)
        or len(places) <= batched
        or not facts.equal(places[-1], len(axes))
        or not same_sizes(facts, shape[:batched], places[:batched])
        or not all(at_most(facts, 1, shape[axis]) for axis in axes)
    ):
        primitive.ill_typed(f"indices {indices} into axes {axes} of {x}, {batched} shared")
    return places[:-1] + without(shape, (*range(batched), *axes))


def _numpy_index(x: NDArray, indices: NDArray, axes: tuple[int, ...], batched: int) -> Any:
    """Return the NumPy index that picks from `x`, with its shared axes first, then `axes`."""
    places = indices.shape[:-1]
    shared: list[NDArray] = []
    for axis in range(batched):
        counts: NDArray = np.arange(places[axis], dtype=np.int64)
        shared.append(counts.reshape([-1 if axis == i else 1 for i in range(len(places))]))
    picked = [clamped(indices[..., i], x.shape[axis] - 1) for i, axis in enumerate(axes)]
    return (*shared, *picked)


def front_order(rank: int, axes: tuple[int, ...], batched: int) -> tuple[int, ...]:
    """Return the order of axes with the shared ones first, then the indexed ones, then the rest."""
    front = (*range(batched), *axes)
    return (*front, *without(range(rank), front))


def _clamped_indices(hlo: Hlo, indices: H, inputs: Types, axes: tuple[int, ...], clamp: bool) -> H:
    """Index tuples as XLA wants them; it clamps those of a gather itself."""
    x, given = inputs[0], inputs[1]
    highest = [hlo.size(x.shape[axis]) - 1 for axis in axes]
    indices, wide = wide_indices(hlo, indices, given, max(highest))
    if clamp:
        rank = given.rank
        vector = ArrayType(wide.dtype, (len(axes),))
        high = hlo.broadcast(hlo.constant(np.array(highest), vector), wide, (rank - 1,))
        (indices,) = hlo.op("clamp", (hlo.full(0, wide), indices, high), (wide,))
    return indices


def _picked_factors(
    inputs: Types, axes: Sequence[int], batched: int
) -> tuple[tuple[Factors, Factors], tuple[Factors]]:
    """Return the factors of the array and its indices, and those of the parts picked from it."""
    x, indices = inputs[:2]
    picks = tuple(range(indices.rank - 1))
    left = [axis for axis in range(batched, x.rank) if axis not in axes]
    own = {axis: len(picks) + place for place, axis in enumerate(left)}
    array = tuple([axis if axis < batched else own.get(axis) for axis in range(x.rank)])
    return (array, (*picks, None)), ((*picks, *own.values()),)


@dataclass(frozen=True)
class Gather(Linear, name="gather"):
    """Parts of an array picked by index tuples along `axes`; operands x, indices.

    The last axis of the indices holds the tuples; the first `batched` axes are shared with x.
    The result has the axes of the indices but the last, then those of x that are left.  `unique`
    promises that nothing is picked twice.
    """

    axes: tuple[int, ...]
    batched: int = 0
    unique: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, indices = operands
        return (x.with_shape(_picked_shape(self, facts, x, indices, self.axes, self.batched)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, indices = operands
        front = x.transpose(front_order(x.ndim, self.axes, self.batched))
        return (np.asarray(front[_numpy_index(x, indices, self.axes, self.batched)]),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        x, indices = operands
        array, places = inputs
        if 0 in hlo.shape(outputs[0].shape):
            return (hlo.full(0, outputs[0]),)  # a shared axis may be empty, its slice may not
        shared = list(range(self.batched))
        first = places.rank - 1
        left = array.rank - self.batched - len(self.axes) + len(stored(array))
        numbers = hlo.parse_attribute(
            f"#stablehlo.gather<offset_dims = {list(range(first, first + left))}, "
            f"collapsed_slice_dims = {sorted(self.axes)}, "
            f"operand_batching_dims = {shared}, start_indices_batching_dims = {shared}, "
            f"start_index_map = {list(self.axes)}, index_vector_dim = {first}>"
        )
        sizes = [*hlo.shape(array.shape), *stored(array)]
        for axis in (*shared, *self.axes):
            sizes[axis] = 1
        attributes = {"dimension_numbers": numbers, "slice_sizes": hlo.i64_array(sizes)}
        indices = _clamped_indices(hlo, indices, inputs, self.axes, clamp=False)
        return hlo.op("gather", (x, indices), outputs, attributes)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x, indices) = cotangents, operands
        assert cotangent is not None
        assert isinstance(x, ArrayType)
        assert isinstance(indices, Value)
        add = Scatter(self.axes, "add", self.batched, self.unique)
        # Many small cotangents may add up: as in sums, half precision would lose them.
        wide = accumulator("sum", x.dtype)
        if wide is x.dtype or self.unique:
            return add(zeros(indices.builder, x), indices, cotangent), None
        nothing = zeros(indices.builder, x.with_dtype(wide))
        return Convert(x.dtype)(add(nothing, indices, Convert(wide)(cotangent))), None

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        (x, indices), (many, many_indices), shared = operands, batched, self.batched
        axes = tuple([axis + many for axis in self.axes])
        if many and many_indices:
            return Gather(axes, shared + 1, self.unique).bind(x, indices), (True,)
        if many:
            found = Gather(axes, shared, self.unique)(moved(x, 0, shared), indices)
            return (moved(found, indices.ndim - 1, 0),), (True,)
        found = Gather(axes, shared)(x, moved(indices, 0, shared))
        return (moved(found, shared, 0),), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        return AxisRule(*_picked_factors(inputs, self.axes, self.batched), linear=((0,),))


@dataclass(frozen=True)
class Scatter(Linear, name="scatter"):
    """An array with parts combined with updates, where `Gather` would read them.

    Operands are x, indices, updates.  Parts picked more than once combine with every update; of
    several that set it the last counts.  `unique` promises that there are none.
    """

    axes: tuple[int, ...]
    combine: Combine
    batched: int = 0
    unique: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, indices, updates = operands
        shape = _picked_shape(self, facts, x, indices, self.axes, self.batched)
        if (
            updates.dtype is not x.dtype
            or updates.rank != len(shape)
            or not same_sizes(facts, shape, updates.shape)
            or not _combines(self.combine, x.dtype)
        ):
            self.ill_typed(f"{self.combine} {updates} at {indices} of {x}")
        return (x,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, indices, updates = operands
        order = front_order(x.ndim, self.axes, self.batched)
        front = x.transpose(order).copy()
        index = _numpy_index(x, indices, self.axes, self.batched)
        if self.combine == "set":
            front[index] = updates
        else:
            with np.errstate(all="ignore"):
                _UFUNCS[self.combine].at(front, index, updates)
        return (front.transpose(np.argsort(order)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        x, indices, updates = operands
        array, places, parts = inputs
        if 0 in hlo.shape(parts.shape):
            return (x,)
        shared = list(range(self.batched))
        first = places.rank - 1
        left = array.rank - self.batched - len(self.axes) + len(stored(array))
        numbers = hlo.parse_attribute(
            f"#stablehlo.scatter<update_window_dims = {list(range(first, first + left))}, "
            f"inserted_window_dims = {sorted(self.axes)}, "
            f"input_batching_dims = {shared}, scatter_indices_batching_dims = {shared}, "
            f"scatter_dims_to_operand_dims = {list(self.axes)}, index_vector_dim = {first}>"
        )
        attributes = {"scatter_dimension_numbers": numbers, "unique_indices": self.unique}

        def body(pair: Sequence[H]) -> Sequence[H]:
            old, new = pair
            return (new if self.combine == "set" else hlo.binary(self.combine, old, new),)

        indices = _clamped_indices(hlo, indices, inputs, self.axes, clamp=True)
        scalar = hlo.tensor_of(U32 if array.dtype is KEY else array.dtype, ())
        region = hlo.region((scalar, scalar), body)
        return hlo.op("scatter", (x, indices, updates), outputs, attributes, (region,))

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0 if self.combine == "set" else size_of(inputs[2].shape)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        if self.combine == "add" and tangents[2] is None:
            return (tangents[0],)
        if self.combine == "set" or self.combine == "add":
            return super().jvp(outputs, primals, tangents)
        if self.combine == "multiply":
            return (self._product_tangent(primals, tangents),)
        return (self._extrema_tangent(outputs[0], primals, tangents),)

    def _product_tangent(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> Value:
        """Return the tangent of products: the sum of the factors' tangents times the others."""
        (x, indices, updates), (dx, _, du) = primals, tangents
        total = zeros(x.builder, x.type) if dx is None else self(dx, indices, updates)
        if du is None:
            return total
        return self._with("add")(total, indices, du * self._others(x, indices, updates))

    def _others(self, x: Value, indices: Value, updates: Value) -> Value:
        """For each factor among the updates the product of the others, also where some are zero.

        Its derivatives are exact up to the first that two other factors of zero would add to.
        """
        if self._picks_once(x.builder.facts, indices.shape):
            return self._pick(x, indices)
        here, add = x.builder, self._with("add")
        one, zero = here.literal(1, x.dtype), here.literal(0, x.dtype)
        is_zero = equal(updates, 0)
        rest = Select()(is_zero, one, updates)
        product = self._pick(self(x, indices, rest), indices) / rest
        # The number of other zero elements, and their sum, which is zero, but not constant.
        counted = Convert(counter(here.facts, size_of(indices.shape)))(is_zero)
        none = zeros(here, x.type.with_dtype(counted.dtype))
        count = self._pick(add(none, indices, counted), indices) - counted
        small = Select()(is_zero, updates, zero)
        total = self._pick(add(zeros(here, x.type), indices, small), indices) - small
        factor = Select()(equal(count, 1), total, zero)
        return product * Select()(equal(count, 0), one, factor)

    def _extrema_tangent(
        self, extrema: Value, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> Value:
        """Return the tangent of extrema: the mean tangent of all elements that attain them."""
        (x, indices, updates), (dx, _, du) = primals, tangents
        here, add = x.builder, self._with("add")
        kept = equal(x, extrema)
        put = equal(updates, self._pick(extrema, indices))
        counts = Convert(counter(here.facts, size_of(indices.shape) + 1))
        count = Convert(x.dtype)(add(counts(kept), indices, counts(put)))
        zero = here.literal(0, x.dtype)
        total = zeros(here, x.type) if dx is None else Select()(kept, dx, zero)
        if du is not None:
            total = add(total, indices, Select()(put, du, zero))
        return total * (1 / count)

    def _with(self, combine: Combine) -> Scatter:
        return replace(self, combine=combine)

    @property
    def _pick(self) -> Gather:
        """Return the gather that reads where this scatter writes."""
        return Gather(self.axes, self.batched)

    def _picks_once(self, facts: Assumptions, places: Shape) -> bool:
        """Return whether no part can be picked more than once."""
        return self.unique or facts.equal(size_of(places[self.batched : -1]), 1)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x, indices, updates) = cotangents, operands
        assert cotangent is not None
        assert isinstance(indices, Value)
        if self.combine == "multiply" and isinstance(updates, Value):
            return self(cotangent, indices, updates), None, None
        if self.combine not in ("set", "add"):
            return super().transpose(cotangents, operands)
        for_x, for_updates = None, None
        if isinstance(updates, ArrayType):
            for_updates = self._pick(cotangent, indices)
            if self.combine == "set" and not self._picks_once(
                cotangent.builder.facts, indices.shape
            ):
                counts = self._writes_last(cotangent, indices)
                zero = cotangent.builder.literal(0, cotangent.dtype)
                for_updates = Select()(counts, for_updates, zero)
            for_updates = exactly(for_updates, updates.shape)
        if isinstance(x, ArrayType):
            for_x = cotangent
            if self.combine == "set":
                given = updates if isinstance(updates, ArrayType) else updates.type
                for_x = self(cotangent, indices, zeros(cotangent.builder, given))
        return for_x, None, for_updates

    def _writes_last(self, x: Value, indices: Value) -> Value:
        """Return whether an element of the updates is the last one written to its place in x.

        Updates are numbered, and the largest number at each place is read back.
        """
        here, places, shared = x.builder, indices.shape[:-1], self.batched
        count = size_of(places)
        dtype = counter(here.facts, count)
        numbers = Reshape(places)(here.bind(Iota((count,), 0, dtype), ())[0])
        front = tuple(range(shared, shared + len(self.axes)))
        space = (*x.shape[:shared], *(x.shape[axis] for axis in self.axes))
        nobody = zeros(here, ArrayType(dtype, space))
        last = Scatter(front, "maximum", shared)(nobody, indices, numbers)
        found: Value = equal(Gather(front, shared)(last, indices), numbers)
        updates = (*places, *without(x.shape, (*range(shared), *self.axes)))
        return Broadcast(updates, tuple(range(len(places))))(found)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        x, indices, updates = operands
        many = batched[1]
        axes = tuple([axis + 1 for axis in self.axes])
        if many:
            over = replace(self, axes=axes, batched=self.batched + 1)
            return over.bind(*each_batched(operands, batched, size)), (True,)
        # The batch becomes an axis of the parts that are written.
        x, updates = each_batched((x, updates), (batched[0], batched[2]), size)
        over, shared = replace(self, axes=axes), self.batched
        found = over(moved(x, 0, shared), indices, moved(updates, 0, indices.ndim - 1))
        return (moved(found, shared, 0),), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        (x, indices), (updates,) = _picked_factors(inputs, self.axes, self.batched)
        shared = self.batched
        whole = tuple([f if n < shared else None for n, f in enumerate(indices)])
        picks = len(indices) - 1
        new = tuple([None if shared <= n < picks else f for n, f in enumerate(updates)])
        linear = ((0, 2),) if self.combine == "add" else ()
        return AxisRule((x, whole, new), (x,), linear=linear)


def _combines(combine: Combine, dtype: DType) -> bool:
    if combine == "set":
        return True
    if combine in ("minimum", "maximum"):
        return dtype is BOOL or dtype.is_integer or dtype.is_float
    return dtype.is_number


# Elements picked along an axis, each at its own index: the form for derivative rules.


def take_along(x: Value, places: Value, axis: int, *, unique: bool = False) -> Value:
    """Take elements of x along an axis, in the shape of `places`, which has x's other axes too.

    A place is an integer below the size of x along the axis; `unique` promises that none occurs
    twice along it.
    """
    last = x.ndim - 1
    if not at_most(x.builder.facts, 1, x.shape[axis]):
        # There may be nothing to pick from, and then no place; an index needs something there.
        none = (0,) * x.ndim
        more = tuple([int(a == axis) for a in range(x.ndim)])
        x = Pad(none, more, none)(x, x.builder.literal(0, x.dtype))
    front = without(range(x.ndim), (axis,))
    if axis != last:
        x, places = (Transpose((*front, axis))(each) for each in (x, places))
    found = Gather((last,), last, unique)(x, Reshape((*places.shape, 1))(places))
    return found if axis == last else Transpose(inverted((*front, axis)))(found)


# Parts of fixed size at computed places: read, and replaced.  No place is out of range.


def _check_starts(
    primitive: Primitive, facts: Assumptions, x: ArrayType, part: Shape, starts: Types
) -> None:
    if (
        not x.rank == len(part) == len(starts)
        or not all(type_.dtype.is_integer and not type_.shape for type_ in starts)
        or not all(at_most(facts, 0, size) for size in part)
        or not all(map(partial(at_most, facts), part, x.shape))
    ):
        primitive.ill_typed(f"a part [{' '.join(map(str, part))}] of {x} at {starts}")


def _window(shape: tuple[int, ...], part: tuple[int, ...], starts: Sequence[NDArray]) -> Any:
    begins = [
        int(clamped(start, whole - size))
        for whole, size, start in zip(shape, part, starts, strict=False)
    ]
    return tuple(slice(begin, begin + size) for begin, size in zip(begins, part, strict=False))


def _starts(
    hlo: Hlo, starts: Sequence[H], types: Types, whole: Shape, part: Shape, words: int
) -> list[H]:
    """Starts of one dtype; XLA clamps them."""
    dtype = I32 if all(type_.dtype is I32 for type_ in types) else I64
    result: list[H] = []
    for start, type_, size, length in zip(starts, types, whole, part, strict=True):
        wide, _ = wide_indices(hlo, start, type_, hlo.size(size) - hlo.size(length))
        result.append(hlo.convert(wide, ArrayType(dtype)))
    return result + [hlo.full(0, ArrayType(dtype)) for _ in range(words)]


def _moving(facts: Assumptions, whole: Shape, part: Shape) -> tuple[int, ...]:
    """Return the axes along which a part can stand at different places."""
    pairs = zip(whole, part, strict=True)
    return tuple([axis for axis, (n, size) in enumerate(pairs) if not facts.equal(n, size)])


def _indices(
    starts: Sequence[Value], whole: Shape, part: Shape, axes: tuple[int, ...], size: Size
) -> Value:
    """For a batch of windows, the index tuples along some axes of all that is in them.

    `starts` are scalars or batches of them, one for each axis, clamped so that windows fit. The
    result is i64[size, part along the axes, the number of axes].
    """
    here = starts[0].builder
    shape = (size, *(part[axis] for axis in axes))
    columns: list[Value] = []
    for place, axis in enumerate(axes, 1):
        start = starts[axis]
        if start.dtype is U64:
            start = minimum(start, here.literal(I64.range[1], U64))
        start = Convert(I64)(start)
        if part[axis] != 1:  # a single index is clamped where it is used
            highest = here.size(whole[axis] - part[axis], I64)
            start = Clamp()(here.literal(0, I64), start, highest)
        offsets = here.bind(Iota(shape, place, I64), ())[0]
        column = Broadcast(shape, tuple(range(start.ndim)))(start) + offsets
        columns.append(Broadcast((*shape, 1), tuple(range(len(shape))))(column))
    return Concatenate(len(shape))(*columns)


def _not_empty(x: Value, axes: Sequence[int]) -> Value:
    """Return an array with at least one element, of any value, along axes that could be empty."""
    here = x.builder
    for axis in axes:
        if not at_most(here.facts, 1, x.shape[axis]):
            more = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
            x = Concatenate(axis)(x, Broadcast(more, ())(_something(x)))
    return x


def _something(x: Value) -> Value:
    """Return a scalar of the dtype of an array."""
    here = x.builder
    if x.dtype is KEY:
        return unused_key(here)
    return here.literal(0 if x.dtype.is_number else False, x.dtype)


def _slices_at(
    x: Value,
    is_batched: bool,
    starts: Sequence[Value],
    many_starts: Sequence[bool],
    part: Shape,
    size: Size,
) -> tuple[Value, bool]:
    """Parts of an array, or of a batch of arrays, at a batch of places; is the result a batch."""
    x = _slice_where_known(x, is_batched, starts, many_starts, part, size)
    whole = x.shape[is_batched:]
    axes = _moving(x.builder.facts, whole, part)
    if not axes:
        return x, is_batched
    indices = _indices(starts, whole, part, axes, size)
    along = tuple([axis + is_batched for axis in axes])
    found = Gather(along, int(is_batched))(_not_empty(x, along), indices)
    order = (*axes, *without(range(len(part)), axes))
    found = Transpose((0, *(axis + 1 for axis in inverted(order))))(found)
    return exactly(found, (size, *part)), True


def _slice_where_known(
    x: Value,
    is_batched: bool,
    starts: Sequence[Value],
    many_starts: Sequence[bool],
    part: Shape,
    size: Size,
) -> Value:
    """Slice an array along the axes on which all parts have the same place."""
    whole, zero = x.shape[is_batched:], x.builder.literal(0, I32)
    triples = zip(whole, part, many_starts, strict=True)
    left = tuple([n if many else wanted for n, wanted, many in triples])
    if left == whole:
        return x
    places = [zero if many else start for start, many in zip(starts, many_starts, strict=True)]
    if is_batched:
        return DynamicSlice((size, *left))(x, zero, *places)
    return DynamicSlice(left)(x, *places)


def _updated_at(x: Value, update: Value, starts: Sequence[Value], size: Size) -> Value:
    """Return a batch of arrays with parts replaced, each at its own place."""
    whole, part = x.shape[1:], update.shape[1:]
    axes = _moving(x.builder.facts, whole, part)
    if not axes:
        return exactly(update, x.shape)
    indices = _indices(starts, whole, part, axes, size)
    order = (*axes, *without(range(len(part)), axes))
    updates = Transpose((0, *(axis + 1 for axis in order)))(update)
    along = tuple([axis + 1 for axis in axes])
    found = Scatter(along, "set", 1, unique=True)(_not_empty(x, along), indices, updates)
    for axis, whole_size in enumerate(x.shape):
        if found.shape[axis] != whole_size:
            found = part_of(found.shape, axis, 0, whole_size)(found)
    return found


@dataclass(frozen=True)
class DynamicSlice(Linear, name="dynamic_slice"):
    """A part of fixed size at a computed place; operands x, then a scalar start for each axis."""

    sizes: Shape

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, *starts = operands
        _check_starts(self, facts, x, self.sizes, tuple(starts))
        return (x.with_shape(self.sizes),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, *starts = operands
        return (np.asarray(x[_window(x.shape, here.shape(self.sizes), starts)]),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        x, *starts = operands
        if not starts:
            return (x,)
        words = stored(inputs[0])
        places = _starts(hlo, starts, inputs[1:], inputs[0].shape, self.sizes, len(words))
        sizes = hlo.i64_array((*hlo.shape(self.sizes), *words))
        return hlo.op("dynamic_slice", (x, *places), outputs, {"slice_sizes": sizes})

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x, *starts) = cotangents, operands
        assert cotangent is not None
        assert isinstance(x, ArrayType)
        places = [start for start in starts if isinstance(start, Value)]
        whole = zeros(cotangent.builder, x)
        return DynamicUpdate()(whole, cotangent, *places), *(None for _ in starts)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        (x, *starts), (many, *many_starts) = operands, batched
        if not any(many_starts):
            over = DynamicSlice((size, *self.sizes))
            return over.bind(x, x.builder.literal(0, I32), *starts), (True,)
        found, is_batched = _slices_at(x, many, starts, many_starts, self.sizes, size)
        return (found,), (is_batched,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        x, *starts = inputs
        sizes = zip(x.shape, self.sizes, strict=True)
        factors = along(x.rank, [axis for axis, (a, b) in enumerate(sizes) if a != b])
        return AxisRule((factors, *[() for _ in starts]), (factors,), linear=((0,),))

    def resized(self, inputs: Types, outputs: Types) -> Self:
        return replace(self, sizes=outputs[0].shape)


@dataclass(frozen=True)
class DynamicUpdate(Linear, name="dynamic_update"):
    """An array with a part replaced at a computed place; operands x, update, starts."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, update, *starts = operands
        if update.dtype is not x.dtype:
            self.ill_typed(f"{update} does not fit into {x}")
        _check_starts(self, facts, x, update.shape, tuple(starts))
        return (x,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, update, *starts = operands
        result = np.array(x)
        result[_window(x.shape, update.shape[: len(starts)], starts)] = update
        return (result,)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        x, update, *starts = operands
        if not starts:
            return (update,)
        words = len(stored(inputs[0]))
        places = _starts(hlo, starts, inputs[2:], inputs[0].shape, inputs[1].shape, words)
        return hlo.op("dynamic_update_slice", (x, update, *places), outputs)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x, update, *starts) = cotangents, operands
        assert cotangent is not None
        here = cotangent.builder
        places = [start for start in starts if isinstance(start, Value)]
        part = update if isinstance(update, ArrayType) else update.type
        for_x, for_update = None, None
        if isinstance(x, ArrayType):
            for_x = self(cotangent, zeros(here, part), *places)
        if isinstance(update, ArrayType):
            for_update = DynamicSlice(part.shape)(cotangent, *places)
        return for_x, for_update, *(None for _ in starts)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        (x, update, *starts), many_starts = operands, batched[2:]
        x, update = each_batched((x, update), batched[:2], size)
        if not any(many_starts):
            return self.bind(x, update, x.builder.literal(0, I32), *starts), (True,)
        return (_updated_at(x, update, starts, size),), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        x, update, *starts = inputs
        sizes = zip(x.shape, update.shape, strict=True)
        factors = along(x.rank, [axis for axis, (a, b) in enumerate(sizes) if a != b])
        operands = (factors, factors, *[() for _ in starts])
        return AxisRule(operands, (factors,), linear=((0, 1),))
