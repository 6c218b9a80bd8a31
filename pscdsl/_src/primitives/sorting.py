"""Sorting by a total order: NaN comes last, whatever the direction, and -0 equals 0.

Complex numbers are ordered by their real and then their imaginary parts; those with a NaN come
last, first those whose real part is a number.

A comparison that is more than `<` on integers costs XLA several times the sort itself, so keys
are sorted as integers: see Note [Words].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt, prod
from typing import TYPE_CHECKING

import numpy as np

from pscdsl._src.ir.forms import form
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.float_order import SIGNED, from_ordered, ordered
from pscdsl._src.primitives.reductions import combiner, identity
from pscdsl._src.primitives.shaping import at_most, each_batched, same_sizes
from pscdsl._src.primitives.taking import take_along
from pscdsl._src.targets.cpu.rows.sorting_loops import sorted_words
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32, I64, KEY, U8, U16, U32, U64, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

TOP_OF_BLOCKS = form(
    "top_of_blocks",
    "The largest few of many elements are looked for in the blocks with the largest elements, "
    "instead of sorting all: 0.1 of the time for ten of each of 1024 rows, 0.002 for ten of a "
    "million.",
)
LEAST_BLOCKED = 1 << 9
"""So many elements of a row are taken in blocks."""
FEW = 32
"""No more than one of so many is wanted then."""
LANES = 32
"""See `_largest_of_rows`."""

UNSIGNED = {8: U8, 16: U16, 32: U32, 64: U64}


def ranks(x: NDArray, *, descending: bool = False) -> list[NDArray]:
    """Arrays whose lexicographic order, by `<`, is the order of the elements."""
    dtype = from_numpy(x.dtype)
    if not dtype.is_inexact:
        return [~x if descending else x]
    parts: list[NDArray] = [np.real(x), np.imag(x)] if dtype.is_complex else [x]
    missing = [np.isnan(part) for part in parts]
    wide: list[NDArray] = [
        part.astype(np.float32) if part.dtype.itemsize == 2 else part for part in parts
    ]
    numbers = [np.where(no, 0, part) for no, part in zip(missing, wide, strict=True)]
    return [*missing, *(-each if descending else each for each in numbers)]


@dataclass(frozen=True)
class Sort(Primitive, name="sort"):
    """Sort arrays of one shape together, by the first `keys` of them in lexicographic order.

    One array of real numbers, alone, has its zeros in order too: -0 before 0 if ascending.
    """

    axis: int
    keys: int = 1
    stable: bool = True
    descending: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        shape = operands[0].shape if operands else ()
        if not 0 <= self.axis < len(shape) or not 1 <= self.keys <= len(operands):
            self.ill_typed(f"{self.keys} of {len(operands)} operands along axis {self.axis}")
        for each in operands:
            if each.rank != len(shape) or not same_sizes(facts, each.shape, shape):
                self.ill_typed(f"operands are {', '.join(map(str, operands))}")
            if each.dtype is KEY:
                self.ill_typed("random keys have no order")
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        order: list[NDArray] = []
        for key in operands[: self.keys]:
            order.extend(ranks(key, descending=self.descending))
        first = operands[0]
        if len(operands) == 1 and from_numpy(first.dtype).is_float:
            order.append(np.signbit(first) == self.descending)
        places = np.lexsort(order[::-1], axis=self.axis)
        return tuple([np.take_along_axis(x, places, self.axis) for x in operands])

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        shape = hlo.shape(inputs[0].shape)
        if shape[self.axis] <= 1 or 0 in shape:
            return operands
        if len(operands) == 1 and not inputs[0].dtype.is_complex:
            return (_sort_alone(hlo, operands[0], inputs[0], self.axis, self.descending),)
        words: list[Word] = []
        for key, given in zip(operands[: self.keys], inputs, strict=False):
            words.extend(_words(hlo, key, given, self.descending))
        places = _argsort(hlo, words, shape, self.axis)
        at = _linear(hlo, places, shape, self.axis)
        return [
            _take(hlo, x, each.dtype, at, shape) for x, each in zip(operands, inputs, strict=True)
        ]

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        """Sorts once, and the places along: tangents are taken from these.

        Of one array alone, -0 and 0 are then in their given order.
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
        if hlo.uses(TOP_OF_BLOCKS) and (block := self._block(hlo, given)):
            return self._of_blocks(hlo, x, given, block)
        return self._by_sorting(hlo, x, given, outputs)

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

    def _block(self, hlo: Hlo, given: ArrayType) -> int | None:
        """How many elements a block should have; None if there are too few for blocks."""
        length, count = hlo.size(given.shape[-1]), hlo.size(self.k)
        if length < LEAST_BLOCKED or given.dtype is BOOL or not 0 < count <= length // FEW:
            return None
        return 1 << (isqrt(length // count).bit_length() - 1)

    def _of_blocks(self, hlo: Hlo, x: H, given: ArrayType, block: int) -> Sequence[H]:
        """The largest of the blocks that have the largest elements."""
        (*rows, length), count = hlo.shape(given.shape), hlo.size(self.k)
        blocks = -(-length // block)
        chosen = ArrayType(I32, (*rows, count, block))
        flat, few = (*rows, count * block), ArrayType(I32, (*rows, count))
        best = _largest_of_rows(hlo, x, given.with_shape((*rows, length)), block)
        among = given.with_shape((*rows, blocks))
        _, number = self._lowered(hlo, best, among, count)
        number = sorted_words(hlo, number, few, len(rows))  # of equal elements the first wins
        first = hlo.binary("multiply", number, hlo.full(block, few))
        (offset,) = hlo.op("iota", (), (chosen,), {"iota_dimension": len(rows) + 1})
        spread = hlo.broadcast(first, chosen, tuple(range(len(rows) + 1)))
        places = hlo.reshape(hlo.binary("add", spread, offset), ArrayType(I32, flat))
        last = hlo.full(length - 1, ArrayType(I32, flat))
        at = _linear(hlo, hlo.binary("minimum", places, last), (*rows, length), len(rows))
        found = _take(hlo, x, given.dtype, at, flat)
        inside = hlo.compare("LE", places, last)
        part = given.with_shape(flat)
        found = hlo.select(inside, found, hlo.full(identity("maximum", given.dtype), part))
        values, at = self._lowered(hlo, found, part, count)
        at = _linear(hlo, at, flat, len(rows))
        return values, _take(hlo, places, I32, at, (*rows, count))

    def _lowered(self, hlo: Hlo, x: H, given: ArrayType, count: int) -> Sequence[H]:
        """The largest of fewer."""
        shape = (*given.shape[:-1], count)
        outputs = given.with_shape(shape), ArrayType(I32, shape)
        return TopK(count).lower(hlo, (x,), (given,), outputs)

    def _by_sorting(self, hlo: Hlo, x: H, given: ArrayType, outputs: Types) -> Sequence[H]:
        shape, (values, indices) = hlo.shape(given.shape), outputs
        if 0 in hlo.shape(values.shape):
            return hlo.full(0, values), hlo.full(0, indices)
        words = _words(hlo, x, given, True, total=True)
        places = _argsort(hlo, words, shape, len(shape) - 1)
        wanted = hlo.shape(values.shape)
        places = hlo.slice(places, [0] * len(shape), wanted)
        at = _linear(hlo, places, shape, len(shape) - 1)
        return _take(hlo, x, given.dtype, at, wanted), places

    def cost(self, inputs: Types, outputs: Types) -> Size:
        """Nothing: comparisons are no arithmetic."""
        return 0


def _largest_of_rows(hlo: Hlo, x: H, given: ArrayType, block: int) -> H:
    """The largest of each of the blocks of the last axis, NaN first of all and 0 before -0."""
    (*rows, length), dtype = hlo.shape(given.shape), given.dtype
    blocks = -(-length // block)
    number, whole = x, given
    if dtype.is_float:
        whole = given.with_dtype(SIGNED[dtype.bits])
        most = whole.dtype.range[1]
        number = ordered(hlo, x, given, most)
    init = hlo.full(whole.dtype.range[0], ArrayType(whole.dtype))
    if missing := blocks * block - length:
        none = [0] * len(rows)
        number = hlo.pad(number, init, (*none, 0), (*none, missing))
    lanes = min(LANES, block)  # which XLA combines side by side, where it is slow with neighbours
    number = hlo.reshape(number, whole.with_shape((*rows, blocks, block // lanes, lanes)))
    best, larger = whole.with_shape((*rows, blocks)), combiner(hlo, "maximum")
    for left in (whole.with_shape((*rows, blocks, lanes)), best):
        (number,) = hlo.reduce((number,), (init,), (len(rows) + 1,), (left,), larger)
    if not dtype.is_float:
        return number
    return from_ordered(hlo, number, best.with_dtype(dtype))


# Note [Words]
# The keys become unsigned words of at most 32 bits, the most significant first, whose
# lexicographic order is the order wanted.  From the last word to the first, the elements are
# sorted by word and position packed into 64 bits: positions differ, so each pass is stable, and
# no comparator is needed beyond `<`, which XLA sorts by natively (on a GPU, by radix).


@dataclass(frozen=True, slots=True)
class Word:
    """An array of u32 of which only the lowest bits are used."""

    value: H
    bits: int


def _sort_alone(hlo: Hlo, x: H, given: ArrayType, axis: int, descending: bool) -> H:
    if not given.dtype.is_float:
        return sorted_words(hlo, x, given, axis, descending=descending)
    whole = given.with_dtype(SIGNED[given.dtype.bits])
    number = ordered(hlo, x, given, whole.dtype.range[0 if descending else 1])
    number = sorted_words(hlo, number, whole, axis, descending=descending)
    return from_ordered(hlo, number, given)


def _words(
    hlo: Hlo, x: H, given: ArrayType, descending: bool, *, total: bool = False
) -> list[Word]:
    """An array as words; `total` puts NaN first of all and 0 before -0 (for descending order)."""
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


def _packed(hlo: Hlo, words: Sequence[Word], word: ArrayType) -> list[Word]:
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
    """The places (i32) along an axis, in the order of the words."""
    word, wide, places = (ArrayType(dtype, shape) for dtype in (U32, U64, I32))
    found: H = None
    (position,) = hlo.op("iota", (), (wide,), {"iota_dimension": axis})
    for each in reversed(_packed(hlo, words, word)):
        value = each.value
        if found is not None:
            value = _take(hlo, value, U32, _linear(hlo, found, shape, axis), shape)
        value = hlo.binary("shift_left", hlo.convert(value, wide), hlo.full(32, wide))
        value = hlo.binary("or", value, position)
        value = sorted_words(hlo, value, wide, axis, low=32)
        at = hlo.convert(hlo.convert(value, word), places)
        if found is not None:
            at = _take(hlo, found, I32, _linear(hlo, at, shape, axis), shape)
        found = at
    return found


def _linear(hlo: Hlo, places: H, shape: tuple[int, ...], axis: int) -> H:
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


def _take(hlo: Hlo, x: H, dtype: DType, at: H, wanted: tuple[int, ...]) -> H:
    """The elements at places from `_linear`, in the shape wanted."""
    flat = hlo.reshape(x, ArrayType(dtype, (prod(hlo.type_of(x).shape),)))
    numbers = hlo.parse_attribute(
        "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
    )
    attributes = {"dimension_numbers": numbers, "slice_sizes": hlo.i64_array((1,))}
    result = ArrayType(dtype, (prod(wanted),))
    (found,) = hlo.op("gather", (flat, at), (result,), attributes)
    return hlo.reshape(found, ArrayType(dtype, wanted))
