"""Primitives that leave a value alone where they would do nothing, and joins of several."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.program import Scalar
from pscdsl._src.primitives.elementwise import Convert, Select, not_equal
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Iota,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)
from pscdsl.typing.array_types import Shape, size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Dim, Size, maximum, minimum
from pscdsl.typing.dtypes import BOOL, F32, F64, I32, KEY, DType, Kind


def listed(x: object) -> Sequence[Any] | None:
    """The items of a list or tuple; None if it is neither."""
    return typing.cast("Sequence[Any]", x) if isinstance(x, list | tuple) else None


def cast(x: Value, dtype: DType) -> Value:
    """A value in a dtype."""
    return x if x.dtype is dtype else Convert(dtype)(x)


def floats_of(x: Value) -> Value:
    """The same numbers in floating point: integers and bools in what is chosen for them here."""
    if x.dtype.is_inexact or x.dtype is KEY:
        return x
    program = x.builder.program
    site = program.site("floats")
    own = F64 if x.dtype.bits == 64 else program.defaults[Kind.FLOAT]
    dtype = program.choose(site, Kind.FLOAT) if site in (program.decided or ()) else own
    return program.mark_also(cast(x, dtype), site)


def integers_of(x: Value, dtype: DType | None = None) -> Value:
    """Places, counts and sums of integers, in the dtype that is chosen for them here."""
    program = x.builder.program
    site = program.site("integers")
    return program.mark_also(cast(x, dtype or program.choose(site, Kind.INT)), site)


def reshaped(x: Value, shape: Shape) -> Value:
    """The same elements counted by other axes."""
    return x if x.shape == shape else Reshape(shape)(x)


def raveled(x: Value) -> Value:
    """The elements along one axis."""
    return reshaped(x, (size_of(x.shape),))


def transposed(x: Value, permutation: Sequence[int]) -> Value:
    """The axes in another order."""
    same = all(axis == place for place, axis in enumerate(permutation))
    return x if same else Transpose(tuple(permutation))(x)


def moved(x: Value, source: int, target: int) -> Value:
    """One axis at another place, the rest in order."""
    order = [axis for axis in range(x.ndim) if axis != source]
    order.insert(target, source)
    return transposed(x, order)


def spread(x: Value, shape: Shape, dims: Sequence[int]) -> Value:
    """Axis i of the value as axis `dims[i]` of a shape, repeated along the others."""
    return x if x.shape == shape else Broadcast(shape, tuple(dims))(x)


def joined(parts: Sequence[Value], axis: int) -> Value:
    """Arrays one after the other along an axis."""
    return parts[0] if len(parts) == 1 else Concatenate(axis).bind(*parts)[0]


def part(x: Value, axis: int, start: Size, limit: Size, stride: int = 1) -> Value:
    """A range along one axis; the sizes must be known to fit."""
    size = x.shape[axis]
    if start == 0 and limit == size and stride == 1:
        return x
    starts: list[Size] = [0] * x.ndim
    limits = list(x.shape)
    strides = [1] * x.ndim
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    return Slice(tuple(starts), tuple(limits), tuple(strides))(x)


def at(x: Value, axis: int, index: Size) -> Value:
    """One place along an axis, which goes away; the index must be known to fit."""
    one = part(x, axis, index, index + 1)
    return Reshape((*x.shape[:axis], *x.shape[axis + 1 :]))(one)


def reversed_along(x: Value, *axes: int) -> Value:
    """Axes counted from their end."""
    kept = tuple(axis for axis in axes if x.shape[axis] != 1)
    return Reverse(kept)(x) if kept else x


def counting(x: Value, axis: int, dtype: DType = I32) -> Value:
    """0, 1, 2, … along one axis of the shape of a value."""
    return x.builder.bind(Iota(x.shape, axis, dtype), ())[0]


def iota(x: Value, size: Size, dtype: DType = I32) -> Value:
    """0, 1, 2, … up to a size, in the program of a value."""
    return x.builder.bind(Iota((size,), 0, dtype), ())[0]


def filled(x: Value, value: Scalar | Value, shape: Shape | None = None) -> Value:
    """An array with the same number everywhere, in the dtype of a value."""
    return x.builder.full(value, x.shape if shape is None else shape, x.dtype)


def where(predicate: Value, x: Value, y: Value) -> Value:
    """Elements of one value or the other; shapes are equal or rank 0."""
    if x.dtype is KEY:
        x, y = (each if each.ndim else spread(each, predicate.shape, ()) for each in (x, y))
    return Select()(predicate, x, y)


def truth(x: Value) -> Value:
    """Return whether each element is other than zero."""
    if x.dtype is BOOL:
        return x
    return not_equal(x, 0)


def is_nan(x: Value) -> Value:
    """Return whether each element of an inexact array is NaN."""
    return not_equal(x, x)


def wide(dtype: DType) -> DType:
    """In what sums of a dtype are taken: f32 for the half precisions."""
    return F32 if dtype.is_float and dtype.bits == 16 else dtype


def least(facts: Assumptions, a: Size, b: Size) -> Size:
    """The smaller of two sizes, without `min` where it is known which."""
    return simplified(facts, minimum(a, b))


def largest(facts: Assumptions, a: Size, b: Size) -> Size:
    """The larger of two sizes, without `max` where it is known which."""
    return simplified(facts, maximum(a, b))


def simplified(facts: Assumptions, size: Size) -> Size:
    """A size made simpler by what is known."""
    return facts.simplify(size) if isinstance(size, Dim) else size


def at_least(facts: Assumptions, size: Size, bound: Size) -> bool:
    """Return whether a size is known to reach a bound."""
    if isinstance(size, int) and isinstance(bound, int):
        return size >= bound
    return size == bound or facts.proves(Fact("<=", bound, size))
