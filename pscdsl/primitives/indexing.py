"""Primitives that read and write at computed places.  No index is out of range: each is clamped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from pscdsl.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl.primitives.shaping import are_axes, at_most, same_sizes, stored, without
from pscdsl.typing.arrays import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32, I64, KEY, U32, U64, DType

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


def _wide(hlo: Hlo, indices: H, type: ArrayType, highest: int) -> tuple[H, ArrayType]:  # noqa: A002
    """Indices in a signed dtype that holds any size, so that clamping them cannot overflow."""
    if type.dtype is U64:
        indices = hlo.binary("minimum", indices, hlo.full(highest, type))
    wide = type if type.dtype is I32 else type.with_dtype(I64)
    return hlo.convert(indices, wide), wide


def _picked(
    primitive: Primitive,
    facts: Assumptions,
    x: ArrayType,
    indices: ArrayType,
    axes: tuple[int, ...],
    batched: int,
) -> Shape:
    """The shape of what index tuples pick, after checks."""
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
    """What picks from `x` with its shared axes first, then `axes`."""
    places = indices.shape[:-1]
    shared: list[NDArray] = []
    for axis in range(batched):
        counts: NDArray = np.arange(places[axis], dtype=np.int64)
        shared.append(counts.reshape([-1 if axis == i else 1 for i in range(len(places))]))
    picked = [clamped(indices[..., i], x.shape[axis] - 1) for i, axis in enumerate(axes)]
    return (*shared, *picked)


def _order(rank: int, axes: tuple[int, ...], batched: int) -> tuple[int, ...]:
    front = (*range(batched), *axes)
    return (*front, *without(range(rank), front))


def _clamped_indices(hlo: Hlo, indices: H, inputs: Types, axes: tuple[int, ...], clamp: bool) -> H:
    """Index tuples as XLA wants them; it clamps those of a gather itself."""
    x, given = inputs[0], inputs[1]
    highest = [hlo.size(x.shape[axis]) - 1 for axis in axes]
    indices, wide = _wide(hlo, indices, given, max(highest))
    if clamp:
        rank = given.rank
        vector = ArrayType(wide.dtype, (len(axes),))
        high = hlo.broadcast(hlo.constant(np.array(highest), vector), wide, (rank - 1,))
        (indices,) = hlo.op("clamp", (hlo.full(0, wide), indices, high), (wide,))
    return indices


@dataclass(frozen=True)
class Gather(Primitive, name="gather"):
    """Parts of an array picked by index tuples along `axes`; operands x, indices.

    The last axis of the indices holds the tuples; the first `batched` axes are shared with x.
    The result has the axes of the indices but the last, then those of x that are left.
    """

    axes: tuple[int, ...]
    batched: int = 0

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, indices = operands
        return (x.with_shape(_picked(self, facts, x, indices, self.axes, self.batched)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, indices = operands
        front = x.transpose(_order(x.ndim, self.axes, self.batched))
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


@dataclass(frozen=True)
class Scatter(Primitive, name="scatter"):
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
        shape = _picked(self, facts, x, indices, self.axes, self.batched)
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
        order = _order(x.ndim, self.axes, self.batched)
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


def _combines(combine: Combine, dtype: DType) -> bool:
    if combine == "set":
        return True
    if combine in ("minimum", "maximum"):
        return dtype is BOOL or dtype.is_integer or dtype.is_float
    return dtype.is_number


def _check_starts(
    primitive: Primitive, facts: Assumptions, x: ArrayType, part: Shape, starts: Types
) -> None:
    if (
        not x.rank == len(part) == len(starts)
        or not all(each.dtype.is_integer and not each.shape for each in starts)
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
    dtype = I32 if all(each.dtype is I32 for each in types) else I64
    result: list[H] = []
    for start, each, size, length in zip(starts, types, whole, part, strict=True):
        wide, _ = _wide(hlo, start, each, hlo.size(size) - hlo.size(length))
        result.append(hlo.convert(wide, ArrayType(dtype)))
    return result + [hlo.full(0, ArrayType(dtype)) for _ in range(words)]


@dataclass(frozen=True)
class DynamicSlice(Primitive, name="dynamic_slice"):
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


@dataclass(frozen=True)
class DynamicUpdate(Primitive, name="dynamic_update"):
    """An array with a part replaced at a computed place; operands x, update, starts."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        x, update, *starts = operands
        if update.dtype is not x.dtype:
            self.ill_typed(f"{update} does not fit into {x}")
        _check_starts(self, facts, x, update.shape, tuple(starts))
        return (x,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        x, update, *starts = operands
        result = x.copy()
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
