"""Parts of fixed size at computed places: read, and replaced.  No place is out of range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pscdsl._src.interpreters.replay import zeros
from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.elementwise import Clamp, Convert, minimum
from pscdsl._src.primitives.indexing import Gather, Scatter, clamped, wide_indices
from pscdsl._src.primitives.linear import Linear
from pscdsl._src.primitives.random import SeedKey
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Transpose,
    at_most,
    each_batched,
    exactly,
    inverted,
    part_of,
    stored,
    without,
)
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, I64, KEY, U64


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
    """The axes along which a part can stand at different places."""
    pairs = zip(whole, part, strict=True)
    return tuple([axis for axis, (n, size) in enumerate(pairs) if not facts.equal(n, size)])


def _indices(
    starts: Sequence[Value], whole: Shape, part: Shape, axes: tuple[int, ...], size: Size
) -> Value:
    """For a batch of windows, the index tuples along some axes of all that is in them.

    `starts` are scalars or batches of them, one for each axis, clamped so that windows fit.  The
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
        highest = here.size(whole[axis] - part[axis], I64)
        start = Clamp()(here.literal(0, I64), start, highest)
        offsets = here.bind(Iota(shape, place, I64), ())[0]
        column = Broadcast(shape, tuple(range(start.ndim)))(start) + offsets
        columns.append(Broadcast((*shape, 1), tuple(range(len(shape))))(column))
    return Concatenate(len(shape))(*columns)


def _not_empty(x: Value, axes: Sequence[int]) -> Value:
    """An array that has an element, whatever it is, along axes that could be empty."""
    here = x.builder
    for axis in axes:
        if not at_most(here.facts, 1, x.shape[axis]):
            more = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
            x = Concatenate(axis)(x, Broadcast(more, ())(_something(x)))
    return x


def _something(x: Value) -> Value:
    """A scalar of the dtype of an array."""
    here = x.builder
    if x.dtype is KEY:
        return SeedKey()(here.literal(0, I32))
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
    x = _sliced_where_known(x, is_batched, starts, many_starts, part, size)
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


def _sliced_where_known(
    x: Value,
    is_batched: bool,
    starts: Sequence[Value],
    many_starts: Sequence[bool],
    part: Shape,
    size: Size,
) -> Value:
    """What is left of an array along the axes on which all parts stand at the same place."""
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
    """A batch of arrays with parts replaced, each at a place of its own."""
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
