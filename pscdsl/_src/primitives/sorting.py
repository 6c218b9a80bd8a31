"""Sorting by a total order, in which NaN comes last, and places in sorted arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from pscdsl._src.ir.axis_rules import AxisRule, along
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.indexing import Gather, moved, take_along
from pscdsl._src.primitives.pointwise import WithoutTangents
from pscdsl._src.primitives.reductions import SIGNED, combinable, from_ordered, ordered
from pscdsl._src.primitives.shaping import Iota, at_most, each_batched, same_sizes
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32, I64, KEY, U8, U16, U32, U64, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


# Sorting by a total order: NaN comes last in both directions, and -0 equals 0.
#
# Complex numbers are ordered by their real and then their imaginary parts; those with a NaN come
# last, first those whose real part is a number. A comparison more complex than `<` on integers
# costs XLA several times the sort itself, so keys are sorted as integers: see Note [Words].


UNSIGNED = {8: U8, 16: U16, 32: U32, 64: U64}


def ranks(x: NDArray, *, descending: bool = False) -> list[NDArray]:
    """Return arrays whose lexicographic order by `<` is the order of the elements."""
    dtype = from_numpy(x.dtype)
    if not dtype.is_inexact:
        return [~x if descending else x]
    parts: list[NDArray] = [np.real(x), np.imag(x)] if dtype.is_complex else [x]
    missing = [np.isnan(part) for part in parts]
    wide: list[NDArray] = [
        part.astype(np.float32) if part.dtype.itemsize == 2 else part for part in parts
    ]
    numbers = [np.where(no, 0, part) for no, part in zip(missing, wide, strict=True)]
    return [*missing, *(-number if descending else number for number in numbers)]


@dataclass(frozen=True)
class Sort(Primitive, name="sort"):
    """Sort arrays of one shape together, by the first `keys` of them in lexicographic order.

    Equal elements keep their order; but a single array of floats that is not `stable` has its zeros
    in order too, which is faster: -0 before 0 if ascending.
    """

    axis: int
    keys: int = 1
    stable: bool = False
    descending: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        shape = operands[0].shape if operands else ()
        if not 0 <= self.axis < len(shape) or not 1 <= self.keys <= len(operands):
            self.ill_typed(f"{self.keys} of {len(operands)} operands along axis {self.axis}")
        for operand in operands:
            if operand.rank != len(shape) or not same_sizes(facts, operand.shape, shape):
                self.ill_typed(f"operands are {', '.join(map(str, operands))}")
            if operand.dtype is KEY:
                self.ill_typed("random keys have no order")
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        order: list[NDArray] = []
        for key in operands[: self.keys]:
            order.extend(ranks(key, descending=self.descending))
        first = operands[0]
        if len(operands) == 1 and from_numpy(first.dtype).is_float and not self.stable:
            order.append(np.signbit(first) == self.descending)
        places = np.lexsort(order[::-1], axis=self.axis)
        return tuple([np.take_along_axis(x, places, self.axis) for x in operands])

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        shape = hlo.shape(inputs[0].shape)
        if shape[self.axis] <= 1 or 0 in shape:
            return operands
        if len(operands) == 1 and not inputs[0].dtype.is_complex:

            def alone() -> Sequence[H]:
                return (_sort_alone(hlo, operands[0], inputs[0], self.axis, self.descending),)

            if not self.stable or not inputs[0].dtype.is_float:
                return alone()
            rare = _holds_negative_zero(hlo, operands[0], inputs[0])
            by_places = partial(self._by_places, hlo, operands, inputs, shape)
            return hlo.case(rare, (alone, by_places), outputs)
        return self._by_places(hlo, operands, inputs, shape)

    def _by_places(
        self, hlo: Hlo, operands: Sequence[H], inputs: Types, shape: tuple[int, ...]
    ) -> Sequence[H]:
        words: list[Word] = []
        for key, given in zip(operands[: self.keys], inputs, strict=False):
            words.extend(_words(hlo, key, given, self.descending))
        places = _argsort(hlo, words, shape, self.axis)
        at = linear(hlo, places, shape, self.axis)
        return [
            take(hlo, x, type_.dtype, at, shape) for x, type_ in zip(operands, inputs, strict=True)
        ]

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        """Sort once, together with the places, which pick the tangents.

        In a single array, -0 and 0 are then in their given order.
        """
        first = primals[0]
        (count,) = first.builder.bind(Iota(first.shape, self.axis, I32), ())
        *outputs, places = self.bind(*primals, count)
        moved = [
            None if t is None else take_along(t, places, self.axis, unique=True) for t in tangents
        ]
        return outputs, moved

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        many = each_batched(operands, batched, size)
        return replace(self, axis=self.axis + 1).bind(*many), (True,) * len(many)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        """Nothing: comparisons are no arithmetic."""
        return 0

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        factors = along(inputs[0].rank, (self.axis,))
        return AxisRule((factors,) * len(inputs), (factors,) * len(outputs))


@dataclass(frozen=True)
class TopK(Primitive, name="top_k"):
    """The largest elements along the last axis, in descending order, and where they are.

    NaN counts as larger than any number, 0 as larger than -0; of equal elements the first wins.
    """

    k: Size

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if not x.shape or x.dtype.is_complex or x.dtype is KEY:
            self.ill_typed(f"the operand is {x}")
        if not at_most(facts, 0, self.k) or not at_most(facts, self.k, x.shape[-1]):
            self.ill_typed(f"{self.k} of {x.shape[-1]} elements")
        shape = (*x.shape[:-1], self.k)
        return x.with_shape(shape), ArrayType(I32, shape)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (x,) = operands
        order = ranks(x, descending=True)
        if from_numpy(x.dtype).is_float:
            missing, number = order
            order = [~missing, number, np.signbit(x) & ~missing]
        places = np.lexsort(order[::-1], axis=-1)[..., : here.size(self.k)]
        return np.take_along_axis(x, places, -1), places.astype(np.int32)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,) = operands, inputs
        shape, (values, indices) = hlo.shape(given.shape), outputs
        if 0 in hlo.shape(values.shape):
            return hlo.full(0, values), hlo.full(0, indices)
        words = _words(hlo, x, given, True, total=True)
        places = _argsort(hlo, words, shape, len(shape) - 1)
        wanted = hlo.shape(values.shape)
        places = hlo.slice(places, [0] * len(shape), wanted)
        at = linear(hlo, places, shape, len(shape) - 1)
        return take(hlo, x, given.dtype, at, wanted), places

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (tangent,), (found, places) = tangents, outputs
        assert tangent is not None
        return take_along(tangent, places, found.ndim - 1, unique=True), None

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return self.bind(*operands), (True, True)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        """Nothing: comparisons are no arithmetic."""
        return 0

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        rank = inputs[0].rank
        return AxisRule.leading(rank - 1, (rank,), (rank, rank))


@dataclass(frozen=True)
class SortWords(Primitive):
    """Integers in order along an axis; how `Sort` and `TopK` are emitted, in no program.

    The lowest bits, up to `low`, may be known to be in order already, in unsigned ones: those of
    equal numbers that differ in no other bit.
    """

    axis: int
    descending: bool = False
    low: int = 0

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if not 0 <= self.axis < x.rank or not (x.dtype.is_integer or x.dtype is BOOL):
            self.ill_typed(f"words {x} along axis {self.axis}")
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        found = np.sort(operands[0], self.axis)
        return (np.flip(found, self.axis) if self.descending else found,)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        direction = "GT" if self.descending else "LT"
        return hlo.sort(operands, self.axis, False, lambda pair: hlo.compare(direction, *pair))


# Note [Words]
# The keys become unsigned words of at most 32 bits, the most significant first, whose
# lexicographic order is the order wanted.  From the last word to the first, the elements are
# sorted by word and position packed into 64 bits: positions differ, so each pass is stable, and
# no comparator is needed beyond `<`, which XLA sorts by natively (on a GPU, by radix).


@dataclass(frozen=True, slots=True)
class Word:
    """An array of u32 with only the lowest bits in use."""

    value: H
    bits: int


def _sort_alone(hlo: Hlo, x: H, given: ArrayType, axis: int, descending: bool) -> H:
    if not given.dtype.is_float:
        return hlo.lower(SortWords(axis, descending), (x,), (given,), (given,))[0]
    whole = given.with_dtype(SIGNED[given.dtype.bits])
    number = ordered(hlo, x, given, whole.dtype.range[0 if descending else 1])
    (number,) = hlo.lower(SortWords(axis, descending), (number,), (whole,), (whole,))
    return from_ordered(hlo, number, given)


def _holds_negative_zero(hlo: Hlo, x: H, given: ArrayType) -> H:
    """1 if an array of floats has a -0.0, else 0; as an i32."""
    bits, truth = given.with_dtype(SIGNED[given.dtype.bits]), given.with_dtype(BOOL)
    (number,) = hlo.op("bitcast_convert", (x,), (bits,))
    holds = hlo.compare("EQ", number, hlo.full(bits.dtype.range[0], bits))
    (found,) = hlo.reduce(
        (holds,),
        (hlo.full(False, ArrayType(BOOL)),),
        range(given.rank),
        (truth.with_shape(()),),
        lambda left, right: (hlo.binary("or", left[0], right[0]),),
    )
    return hlo.convert(found, ArrayType(I32))


def _words(
    hlo: Hlo, x: H, given: ArrayType, descending: bool, *, total: bool = False
) -> list[Word]:
    """Return an array as words; with `total`, NaN comes first and 0 before -0 (if descending)."""
    dtype = given.dtype
    if dtype.is_complex:
        part = given.with_dtype(dtype.real)
        flag = given.with_dtype(U32)
        parts = [hlo.op(name, (x,), (part,))[0] for name in ("real", "imag")]
        words = [Word(hlo.convert(hlo.compare("NE", each, each), flag), 1) for each in parts]
        zero = hlo.full(0.0, part)
        for each in parts:
            number = hlo.select(hlo.compare("EQ", each, each), each, zero)
            words.extend(_words(hlo, number, part, descending))
        return words
    if dtype is BOOL:
        number, dtype = hlo.convert(x, given.with_dtype(U8)), U8
    elif dtype.is_float:
        if not total:
            zero = hlo.full(0.0, given)
            x = hlo.select(hlo.compare("EQ", x, zero), zero, x)
        low, high = SIGNED[dtype.bits].range
        number = ordered(hlo, x, given, low if descending and not total else high)
        dtype = SIGNED[dtype.bits]
    else:
        number = x
    bits, whole = dtype.bits, given.with_dtype(UNSIGNED[dtype.bits])
    if dtype.signed:
        (number,) = hlo.op("bitcast_convert", (number,), (whole,))
        number = hlo.binary("xor", number, hlo.full(1 << (bits - 1), whole))
    if descending:
        number = hlo.unary("not", number)
    return _split(hlo, number, whole)


def _split(hlo: Hlo, number: H, whole: ArrayType) -> list[Word]:
    word = whole.with_dtype(U32)
    if whole.dtype.bits <= 32:
        return [Word(hlo.convert(number, word), whole.dtype.bits)]
    upper = hlo.binary("shift_right_logical", number, hlo.full(32, whole))
    return [Word(hlo.convert(upper, word), 32), Word(hlo.convert(number, word), 32)]


def _pack(hlo: Hlo, words: Sequence[Word], word: ArrayType) -> list[Word]:
    """Fewer words, where neighbours fit into one."""
    result = [words[0]]
    for each in words[1:]:
        last = result[-1]
        if last.bits + each.bits > 32:
            result.append(each)
            continue
        shifted = hlo.binary("shift_left", last.value, hlo.full(each.bits, word))
        result[-1] = Word(hlo.binary("or", shifted, each.value), last.bits + each.bits)
    return result


def _argsort(hlo: Hlo, words: Sequence[Word], shape: tuple[int, ...], axis: int) -> H:
    """Emit the places (i32) along an axis, in the order of the words."""
    word, wide, places = (ArrayType(dtype, shape) for dtype in (U32, U64, I32))
    found: H = None
    (position,) = hlo.op("iota", (), (wide,), {"iota_dimension": axis})
    for each in reversed(_pack(hlo, words, word)):
        value = each.value
        if found is not None:
            value = take(hlo, value, U32, linear(hlo, found, shape, axis), shape)
        value = hlo.binary("shift_left", hlo.convert(value, wide), hlo.full(32, wide))
        value = hlo.binary("or", value, position)
        (value,) = hlo.lower(SortWords(axis, low=32), (value,), (wide,), (wide,))
        at = hlo.convert(hlo.convert(value, word), places)
        if found is not None:
            at = take(hlo, found, I32, linear(hlo, at, shape, axis), shape)
        found = at
    return found


def linear(hlo: Hlo, places: H, shape: tuple[int, ...], axis: int) -> H:
    """Places along an axis as places in the array laid out flat, in rows of one."""
    wanted = tuple(hlo.type_of(places).shape)
    given = ArrayType(I32 if prod(shape) <= I32.range[1] else I64, wanted)
    total: H = None
    for index in range(len(shape)):
        stride = prod(shape[index + 1 :])
        if index == axis:
            term = hlo.convert(places, given)
        else:
            (term,) = hlo.op("iota", (), (given,), {"iota_dimension": index})
        if stride != 1:
            term = hlo.binary("multiply", term, hlo.full(stride, given))
        total = term if total is None else hlo.binary("add", total, term)
    return hlo.reshape(total, given.with_shape((prod(wanted), 1)))


def take(hlo: Hlo, x: H, dtype: DType, at: H, wanted: tuple[int, ...]) -> H:
    """Emit the elements at places from `_linear`, in the shape wanted."""
    flat = hlo.reshape(x, ArrayType(dtype, (prod(hlo.type_of(x).shape),)))
    numbers = hlo.parse_attribute(
        "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
    )
    attributes = {"dimension_numbers": numbers, "slice_sizes": hlo.i64_array((1,))}
    result = ArrayType(dtype, (prod(wanted),))
    (found,) = hlo.op("gather", (flat, at), (result,), attributes)
    return hlo.reshape(found, ArrayType(dtype, wanted))


# Places in sorted arrays.


Side: TypeAlias = Literal["left", "right"]

FEW = 64
"""The most elements that are all compared; in longer arrays a search halves the rest."""


@dataclass(frozen=True)
class SearchSorted(WithoutTangents, name="search_sorted"):
    """The i32 places at which elements go into a sorted array; operands a, v.

    A place is the number of elements of a before it: the smaller ones, for the side "right" also
    the equal ones. NaN is the largest. The last axis of a is sorted, those before it are shared
    with v. In an array that is not sorted, the result is some place.

    In a long array, a place is found by adding powers of two, the largest first, as long as it
    stays before the element; every element of v takes its step at the same time.
    """

    side: Side

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a, v = operands
        shared = a.rank - 1
        if (
            a.dtype is not v.dtype
            or not (a.dtype is BOOL or a.dtype.is_integer or a.dtype.is_float)
            or not 0 <= shared <= v.rank
            or not same_sizes(facts, a.shape[:shared], v.shape[:shared])
        ):
            self.ill_typed(f"operands are {a} and {v}")
        return (v.with_dtype(I32),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        a, v = map(combinable, operands)
        shared, count = a.ndim - 1, a.shape[-1]
        lines = a.reshape(*a.shape[:shared], *(1,) * (v.ndim - shared), count)
        if count <= FEW:
            before = self._before(lines, v[..., None])
            return (np.asarray(np.sum(before, axis=-1, dtype=np.int32)),)
        place = np.zeros(v.shape, np.int32)
        for step in _steps(count):
            further = np.minimum(place + step, count)
            other = np.take_along_axis(
                np.broadcast_to(lines, (*v.shape, count)), further[..., None] - 1, -1
            )[..., 0]
            good = (place + step <= count) & self._before(other, v)
            place = np.where(good, place + step, place)
        return (place,)

    def _before(self, a: NDArray, v: NDArray) -> NDArray:
        found: NDArray = (a < v) | ((v != v) & (a == a)) if self.side == "left" else a <= v
        return found if self.side == "left" else found | (v != v)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (a, v), (row, wanted), (output,) = operands, inputs, outputs
        count, shared = hlo.size(row.shape[-1]), row.rank - 1
        place = hlo.full(0, output)
        if not count or 0 in hlo.shape(wanted.shape):
            return (place,)
        if count <= FEW:
            return (self._count(hlo, a, v, (row, wanted, output)),)
        pick, one = Gather((shared,), shared), hlo.full(1, output)
        tuples = output.with_shape((*output.shape, 1))
        for step in _steps(count):
            further = hlo.binary("add", place, hlo.full(step, output))
            index = hlo.reshape(hlo.binary("subtract", further, one), tuples)
            (other,) = pick.lower(hlo, (a, index), (row, tuples), (wanted,))
            inside = hlo.compare("LE", further, hlo.full(count, output))
            good = hlo.binary("and", inside, self._is_before(hlo, other, v, wanted))
            place = hlo.select(good, further, place)
        return (place,)

    def _count(self, hlo: Hlo, a: H, v: H, types: Types) -> H:
        """Emit the places by comparing with all elements: NaN comes after all."""
        row, wanted, output = types
        place = hlo.full(0, output)
        for index in range(hlo.size(row.shape[-1])):
            place = self._further(hlo, self._element(hlo, a, row, index, wanted), v, place, output)
        if not wanted.dtype.is_float:
            return place
        return hlo.select(hlo.compare("NE", v, v), self._last(hlo, a, row, output), place)

    def _further(self, hlo: Hlo, other: H, v: H, place: H, output: ArrayType) -> H:
        """Advance a place by one where an element comes before the one sought."""
        before = hlo.compare("LT" if self.side == "left" else "LE", other, v)
        return hlo.binary("add", place, hlo.convert(before, output))

    def _last(self, hlo: Hlo, a: H, row: ArrayType, output: ArrayType) -> H:
        """Emit the places of NaN: after all elements, for the side "left" after all numbers."""
        if self.side == "right":
            return hlo.full(hlo.size(row.shape[-1]), output)
        numbers = hlo.convert(hlo.compare("EQ", a, a), row.with_dtype(I32))
        shared = ArrayType(I32, row.shape[:-1])
        (found,) = hlo.reduce(
            [numbers],
            [hlo.full(0, ArrayType(I32))],
            (row.rank - 1,),
            [shared],
            lambda x, y: [hlo.binary("add", x[0], y[0])],
        )
        return hlo.broadcast(found, output, tuple(range(row.rank - 1)))

    def _element(self, hlo: Hlo, a: H, row: ArrayType, index: int, wanted: ArrayType) -> H:
        """Emit an element of each line, spread over the elements of v to compare with."""
        front, none = hlo.shape(row.shape[:-1]), [0] * (row.rank - 1)
        one = hlo.slice(a, (*none, index), (*front, index + 1))
        return hlo.broadcast(
            hlo.reshape(one, row.with_shape(front)), wanted, tuple(range(len(front)))
        )

    def _is_before(self, hlo: Hlo, a: H, v: H, given: ArrayType) -> H:
        before = hlo.compare("LT" if self.side == "left" else "LE", a, v)
        if not given.dtype.is_float:
            return before
        last = hlo.compare("NE", v, v)
        if self.side == "left":
            last = hlo.binary("and", last, hlo.compare("EQ", a, a))
        return hlo.binary("or", before, last)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        (a, v), (many, many_v) = operands, batched
        if many_v and not many:
            shared = a.ndim - 1
            return (moved(self(a, moved(v, 0, shared)), shared, 0),), (True,)
        return self.bind(*each_batched(operands, batched, size)), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        """Nothing: comparisons are no arithmetic."""
        return 0

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        a, v = inputs
        shared = a.rank - 1
        first = tuple([axis if axis < shared else None for axis in range(a.rank)])
        second = tuple(range(v.rank))
        return AxisRule((first, second), (second,))


def _steps(count: int) -> list[int]:
    """Powers of two, from the largest that is no more than a number down."""
    return [1 << power for power in reversed(range(count.bit_length()))]
