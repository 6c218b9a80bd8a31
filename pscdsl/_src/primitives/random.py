"""Random keys: made from a seed, split, folded with numbers, and turned into random bits.

A key is two words. Everything derived from it is Threefry of a counter under that key, so the keys
of one split differ from each other, and so do the keys of one key folded with different numbers.
Each primitive also takes arrays of keys, and treats each key alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np

from pscdsl._src.ir.axis_rules import AxisRule
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import CountedPart, Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.ir.program import Atom, Literal
from pscdsl._src.primitives.elementwise import add, multiply
from pscdsl._src.primitives.shaping import Iota, each_batched
from pscdsl.typing.array_types import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I64, KEY, U8, U16, U32, U64, DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


# Threefry-2x32 with 20 rounds: a block cipher whose counters are places and whose key is a key.
#
# From J. Salmon, M. Moraes, R. Dror, D. Shaw: "Parallel random numbers: as easy as 1, 2, 3" (SC
# 2011), the generator of the Random123 library. It is written once, for anything that adds, rotates
# and exors: NumPy arrays for the meaning, values of a module for the translation.


T = TypeVar("T")
U = TypeVar("U", bound=np.unsignedinteger[Any])

ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
"""By how much each round rotates; the two rows take turns, four rounds each."""
PARITY: Final = 0x1BD11BDA
"""The constant from which, with the first two words, the third word of the key is mixed."""
GROUPS: Final = 5


class Words(Protocol[T]):
    """Arithmetic on words of 32 bits."""

    def add(self, x: T, y: T) -> T:
        """Their sum, modulo 2**32."""
        ...

    def xor(self, x: T, y: T) -> T:
        """Their bitwise exclusive or."""
        ...

    def rotate(self, x: T, by: int) -> T:
        """Rotate the bits to the left."""
        ...

    def number(self, value: int, like: T) -> T:
        """Return a number as a word."""
        ...


def threefry(words: Words[T], key: tuple[T, T], counter: tuple[T, T]) -> tuple[T, T]:
    """Return the enciphered block of a counter; different counters give different blocks."""
    first, second = key
    third = words.xor(words.xor(first, second), words.number(PARITY, first))
    schedule = (first, second, third)
    x, y = words.add(counter[0], first), words.add(counter[1], second)
    for group in range(GROUPS):
        for by in ROTATIONS[group % 2]:
            x = words.add(x, y)
            y = words.xor(words.rotate(y, by), x)
        x = words.add(x, schedule[(group + 1) % 3])
        late = words.add(schedule[(group + 2) % 3], words.number(group + 1, first))
        y = words.add(y, late)
    return x, y


Array = np.ndarray[Any, np.dtype[np.uint32]]


class NumPyWords:
    """Words in NumPy arrays."""

    def add(self, x: Array, y: Array) -> Array:
        """Their sum, modulo 2**32."""
        with np.errstate(over="ignore"):
            return np.asarray(x + y)

    def xor(self, x: Array, y: Array) -> Array:
        """Their bitwise exclusive or."""
        return np.asarray(x ^ y)

    def rotate(self, x: Array, by: int) -> Array:
        """Rotate the bits to the left."""
        return np.asarray((x << np.uint32(by)) | (x >> np.uint32(32 - by)))

    def number(self, value: int, like: Array) -> Array:
        """Return a number as a word."""
        return np.asarray(value, np.uint32)


class HloWords:
    """Words in a module, all of one shape."""

    def __init__(self, hlo: Hlo, shape: Sequence[int]) -> None:
        self.hlo = hlo
        self.type = ArrayType(U32, tuple(shape))

    def add(self, x: H, y: H) -> H:
        """Their sum, modulo 2**32."""
        return self.hlo.binary("add", x, y)

    def xor(self, x: H, y: H) -> H:
        """Their bitwise exclusive or."""
        return self.hlo.binary("xor", x, y)

    def rotate(self, x: H, by: int) -> H:
        """Rotate the bits to the left."""
        left = self.hlo.binary("shift_left", x, self.number(by, x))
        right = self.hlo.binary("shift_right_logical", x, self.number(32 - by, x))
        return self.hlo.binary("or", left, right)

    def number(self, value: int, like: H) -> H:
        """Emit a number as a word."""
        return self.hlo.full(value, self.type)


# The primitives of keys, which are Threefry of a counter.


COST = 120
"""Operations of one block of Threefry."""
Pair: TypeAlias = tuple[H, H]


def counters(count: int) -> tuple[NDArray, NDArray]:
    """Return the numbers from 0 on, as words: the higher ones, the lower ones."""
    places = np.arange(count, dtype=np.uint64)
    return words_of(places)


def words_of(numbers: NDArray) -> tuple[NDArray, NDArray]:
    """Return integers as words; negative ones in two's complement of 64 bits."""
    wide = numbers if numbers.dtype == np.uint64 else numbers.astype(np.int64).view(np.uint64)
    return (wide >> np.uint64(32)).astype(np.uint32), wide.astype(np.uint32)


def blocks(keys: NDArray, count: int) -> tuple[NDArray, NDArray]:
    """For each key, its blocks at the counters from 0 on."""
    first, second = keys[..., 0, None], keys[..., 1, None]
    return threefry(NumPyWords(), (first, second), counters(count))


@dataclass(frozen=True)
class SeedKey(Primitive, name="random_seed"):
    """A key from an integer of up to 64 bits; different integers give different keys."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (seed,) = operands
        if not seed.dtype.is_integer:
            self.ill_typed(f"the seed is {seed}")
        return (seed.with_dtype(KEY),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (np.stack(words_of(np.asarray(operands[0])), axis=-1),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        shape = hlo.shape(inputs[0].shape)
        return (_key(hlo, _words(hlo, operands[0], inputs[0]), shape, outputs[0]),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        rank = outputs[0].rank
        return AxisRule.leading(rank, (rank,), (rank,))

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return self.bind(*operands), (True,)


_UNUSED_SEED: Final = -0x2545F4914F6CDD1D


def unused_key(here: Builder) -> Value:
    """Return a key that is never read, for places that need some value."""
    return SeedKey()(here.literal(_UNUSED_SEED, I64))


def is_unused(seed: Atom) -> bool:
    """Return whether a key of this seed is `unused_key`."""
    return isinstance(seed, Literal) and seed.value == _UNUSED_SEED


@dataclass(frozen=True)
class SplitKey(Primitive, name="random_split"):
    """Keys of this shape from each key, all different: blocks at the counters from 0 on."""

    shape: Shape

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (key,) = operands
        if key.dtype is not KEY:
            self.ill_typed(f"the key is {key}")
        return (key.with_shape((*key.shape, *self.shape)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        shape = here.shape(self.shape)
        pair = blocks(operands[0], prod(shape))
        return (np.stack(pair, axis=-1).reshape((*operands[0].shape[:-1], *shape, 2)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        batch, count = _sizes(hlo, inputs[0], self.shape)
        pair = _blocks(hlo, operands[0], batch, count)
        return (_key(hlo, pair, (batch, count), outputs[0]),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * COST

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        return _counting(inputs[0], outputs[0])

    def counted_part(self, operands: Sequence[Value], part: CountedPart) -> Value:
        return FoldIn()(*_at_places(operands[0], part))

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return self.bind(*operands), (True,)


class AtCounters(Primitive):
    """Base of the results of keys at counters.  Operands keys, integers, of one shape."""

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * COST

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return self.bind(*each_batched(operands, batched, size)), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        rank = outputs[0].rank
        return AxisRule.leading(rank, (rank, rank), (rank,))


@dataclass(frozen=True)
class FoldIn(AtCounters, name="random_fold_in"):
    """A key from a key and an integer: the block at that counter.

    Under one key, different integers give different keys.
    """

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        key, data = operands
        same = key.rank == data.rank and all(map(facts.equal, key.shape, data.shape))
        if key.dtype is not KEY or not data.dtype.is_integer or not same:
            self.ill_typed(f"operands are {key}, {data}")
        return (key,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        key, data = operands
        pair = threefry(NumPyWords(), (key[..., 0], key[..., 1]), words_of(np.asarray(data)))
        return (np.stack(pair, axis=-1),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        pair = _at_counters(hlo, operands, inputs)
        return (_key(hlo, pair, hlo.shape(inputs[1].shape), outputs[0]),)


@dataclass(frozen=True)
class RandomBits(Primitive, name="random_bits"):
    """Unsigned integers of this shape from each key, each with equal probability.

    The number at a place depends on the key and the place alone: its block is that of the place,
    in the order of the elements; u64 takes both words of it, the others their exclusive or.
    """

    shape: Shape
    dtype: DType

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (key,) = operands
        if key.dtype is not KEY or self.dtype not in (U8, U16, U32, U64):
            self.ill_typed(f"{self.dtype} bits from {key}")
        return (ArrayType(self.dtype, (*key.shape, *self.shape)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (key,), shape = operands, here.shape(self.shape)
        found = _bits(blocks(key, prod(shape)), self.dtype)
        return (found.reshape((*key.shape[:-1], *shape)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        batch, count = _sizes(hlo, inputs[0], self.shape)
        pair = _blocks(hlo, operands[0], batch, count)
        flat = _emitted_bits(hlo, pair, ArrayType(self.dtype, (batch, count)))
        return (hlo.reshape(flat, outputs[0]),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * COST

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return self.bind(*operands), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        return _counting(inputs[0], outputs[0])

    def counted_part(self, operands: Sequence[Value], part: CountedPart) -> Value:
        return BitsAt(self.dtype)(*_at_places(operands[0], part))


@dataclass(frozen=True)
class BitsAt(AtCounters, name="random_bits_at"):
    """The integers that `RandomBits` has at places: a part of them on a device of a mesh."""

    dtype: DType

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return RandomBits((), self.dtype).type_rule(facts, *FoldIn().type_rule(facts, *operands))

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (key,) = FoldIn().evaluate(here, *operands)
        return (_bits((key[..., 0], key[..., 1]), self.dtype),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        pair = _at_counters(hlo, operands, inputs)
        return (_emitted_bits(hlo, pair, outputs[0].with_shape(hlo.shape(outputs[0].shape))),)


def _bits(pair: tuple[NDArray, NDArray], dtype: DType) -> NDArray:
    """Return unsigned integers of blocks."""
    high, low = pair
    if dtype is U64:
        return np.asarray((high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64))
    return np.asarray((high ^ low).astype(to_numpy(dtype)))


def _emitted_bits(hlo: Hlo, pair: Pair, to: ArrayType) -> H:
    """Emit unsigned integers of blocks."""
    high, low = pair
    if to.dtype is U64:
        wide = hlo.binary("shift_left", hlo.convert(high, to), hlo.full(32, to))
        return hlo.binary("or", wide, hlo.convert(low, to))
    return hlo.convert(hlo.binary("xor", high, low), to)


def _counting(key: ArrayType, result: ArrayType) -> AxisRule:
    """Return the axis rule of counters under each key."""
    every = tuple(range(result.rank))
    return AxisRule((every[: key.rank],), (every,), counted=every[key.rank :])


def _at_places(key: Value, part: CountedPart) -> tuple[Value, Value]:
    """Return the key and the counter of each element in a part of what keys make."""
    here, shape = part.here, part.type.shape
    counters: Value | None = None
    for axis in range(key.ndim, len(shape)):
        count = here.bind(Iota(shape, axis, I64), ())[0]
        if axis in part.starts:
            count = add(count, part.starts[axis])
        count = multiply(count, here.size(size_of(part.whole.shape[axis + 1 :]), I64))
        counters = count if counters is None else add(counters, count)
    assert counters is not None, "a part is cut along an axis of counters"
    return here.spread(key, shape, tuple(range(key.ndim))), counters


def _sizes(hlo: Hlo, key: ArrayType, shape: Shape) -> tuple[int, int]:
    """Return the number of keys, and the number of results for each."""
    return prod(hlo.shape(key.shape)), prod(hlo.shape(shape))


def _blocks(hlo: Hlo, keys: H, batch: int, count: int) -> Pair:
    """For each key, its blocks at the counters from 0 on, as two arrays [batch count]."""
    shape = (batch, count)
    first, second = (
        hlo.broadcast(half, ArrayType(U32, shape), (0,)) for half in _halves(hlo, keys, (batch,))
    )
    type = ArrayType(U32, shape)  # noqa: A001
    if count > 1 << 32:
        wide = ArrayType(U64, shape)
        (places,) = hlo.op("iota", (), (wide,), {"iota_dimension": 1})
        counter = _words(hlo, places, wide)
    else:
        (low,) = hlo.op("iota", (), (type,), {"iota_dimension": 1})
        counter = (hlo.full(0, type), low)
    return threefry(HloWords(hlo, shape), (first, second), counter)


def _at_counters(hlo: Hlo, operands: Sequence[H], inputs: Types) -> Pair:
    """Return the blocks of keys at counters."""
    (key, counter), shape = operands, hlo.shape(inputs[1].shape)
    words = _words(hlo, counter, inputs[1])
    return threefry(HloWords(hlo, shape), _halves(hlo, key, shape), words)


def _halves(hlo: Hlo, keys: H, shape: Sequence[int]) -> Pair:
    """Return the first words of some keys and the second ones, in this shape."""
    batch = prod(shape)
    flat = hlo.reshape(keys, ArrayType(U32, (batch, 2)))
    found: list[H] = []
    for word in range(2):
        column = hlo.slice(flat, (0, word), (batch, word + 1))
        found.append(hlo.reshape(column, ArrayType(U32, tuple(shape))))
    return found[0], found[1]


def _key(hlo: Hlo, pair: Pair, shape: Sequence[int], to: ArrayType) -> H:
    """Keys from their first words and their second ones, which have this shape."""
    column = ArrayType(U32, (*shape, 1))
    parts = [hlo.reshape(half, column) for half in pair]
    both = ArrayType(U32, (*shape, 2))
    (joined,) = hlo.op("concatenate", parts, (both,), {"dimension": len(shape)})
    return hlo.reshape(joined, to)


def _words(hlo: Hlo, numbers: H, type: ArrayType) -> Pair:  # noqa: A002
    """Emit integers as words; negative ones in two's complement of 64 bits."""
    shape = type.shape
    word, wide = ArrayType(U32, shape), ArrayType(U64, shape)
    if type.dtype.bits <= 32 and type.dtype.is_unsigned:
        return hlo.full(0, word), hlo.convert(numbers, word)
    if type.dtype.signed:  # through i64, which keeps the sign
        numbers = hlo.convert(hlo.convert(numbers, ArrayType(I64, shape)), wide)
    high = hlo.binary("shift_right_logical", numbers, hlo.full(32, wide))
    return hlo.convert(high, word), hlo.convert(numbers, word)
