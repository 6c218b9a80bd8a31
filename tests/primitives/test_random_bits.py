"""Threefry by its published vectors, the bits that keys give, and what keys are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Key, f32, i32, i64, u8, u16, u32, u64
from pscdsl._src.ir.program import evaluate
from pscdsl._src.primitives.random import NumPyWords, threefry

pytestmark = pytest.mark.jaxlib

ONES = 0xFFFFFFFF

# Random123, kat_vectors: counter, key, result of threefry2x32 with 20 rounds.
VECTORS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def _words(*values: int) -> tuple[Any, ...]:
    return tuple(np.asarray(each, np.uint32) for each in values)


@pytest.mark.parametrize(("counter", "key", "block"), VECTORS)
def test_published_vectors(
    counter: tuple[int, int], key: tuple[int, int], block: tuple[int, int]
) -> None:
    first, second = threefry(NumPyWords(), _words(*key), _words(*counter))
    assert (int(first), int(second)) == block


def _reference(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32 once more, from its definition, in Python's integers."""
    rotations = (13, 15, 26, 6, 17, 29, 16, 24)
    words = (*key, 0x1BD11BDA ^ key[0] ^ key[1])
    x, y = ((c + k) & ONES for c, k in zip(counter, key, strict=True))
    for turn in range(20):
        x = (x + y) & ONES
        by = rotations[turn % 8]
        y = ((y << by | y >> (32 - by)) & ONES) ^ x
        if turn % 4 == 3:
            group = turn // 4 + 1
            x = (x + words[group % 3]) & ONES
            y = (y + words[(group + 1) % 3] + group) & ONES
    return x, y


@pytest.mark.parametrize(("counter", "key", "block"), VECTORS)
def test_the_reference_has_the_published_vectors(
    counter: tuple[int, int], key: tuple[int, int], block: tuple[int, int]
) -> None:
    assert _reference(key, counter) == block


@psc.kernel
def words(key: Key, x: f32["n"]) -> tuple[u32["n"], u64["n"]]:
    """Bits of both widths from two keys."""
    first, second = psc.random.split(key)
    return psc.random.bits(first, x.shape), psc.random.bits(second, x.shape, psc.u64)


def test_bits_are_blocks_of_the_places() -> None:
    key = psc.random.key(0x1234567890ABCDEF)
    narrow, wide = words(key, np.zeros(5, np.float32))
    subkeys = [_reference((0x12345678, 0x90ABCDEF), (0, i)) for i in range(2)]
    for place in range(5):
        high, low = _reference(subkeys[0], (0, place))
        assert int(np.asarray(narrow)[place]) == high ^ low
        high, low = _reference(subkeys[1], (0, place))
        assert int(np.asarray(wide)[place]) == high << 32 | low


@psc.kernel
def drawn(
    key: Key, x: f32["n m"]
) -> tuple[u8["n m"], u16["n m"], f32["n m"], psc.i32["n m"], psc.bool_["n m"], i64["n m"]]:
    """One of each that is exact."""
    a, b, c, d, e, f = psc.random.split(key, 6)
    return (
        psc.random.bits(a, x.shape, psc.u8),
        psc.random.bits(b, x.shape, psc.u16),
        psc.random.uniform(c, x.shape, minval=-3.0, maxval=5.0),
        psc.random.randint(d, x.shape, -7, 1000),
        psc.random.bernoulli(e, 0.3, x.shape),
        psc.random.randint(f, x.shape, -(2**62), 2**63 - 1, psc.i64),
    )


def test_what_is_compiled_is_what_is_meant() -> None:
    key = psc.random.key(3)
    sizes = {"n": 33, "m": 17}
    compiled = drawn(key, np.zeros((33, 17), np.float32))
    meant = evaluate(drawn.ir(), sizes, [np.asarray(key), np.zeros((33, 17), np.float32)])
    for got, want in zip(compiled, meant, strict=True):
        np.testing.assert_array_equal(np.asarray(got), want)


# What jax 0.10.2 gives for `jax.random.key(42)` with its default generator.
SPLIT = [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]]
FOLDED = [2547012911, 1371500959]
BITS = [2098992034, 2919706841, 2646866425, 2409546199]
UNIFORM = [0.48870956897735596, 0.6797971725463867, 0.6162714958190918]
NORMAL = [-0.02830461598932743, 0.4671318531036377, 0.2957029640674591]


@psc.kernel
def as_jax(
    key: Key,
    seeds: i32["4"],
) -> tuple[Key["3"], Key, u32["4"], f32["3"], f32["3"]]:
    """The same key in several ways, which only a test may want."""
    return (
        psc.random.split(psc.random.key(seeds[0]), 3),
        psc.random.fold_in(psc.random.key(seeds[1]), 7),
        psc.random.bits(psc.random.key(seeds[2]), 4),
        psc.random.uniform(key, 3),
        psc.random.normal(psc.random.key(seeds[3]), 3),
    )


def test_the_numbers_are_those_of_jax() -> None:
    keys, folded, bits, uniform, normal = map(
        np.asarray, as_jax(psc.random.key(42), np.full(4, 42, np.int32))
    )
    assert keys.tolist() == SPLIT
    assert folded.tolist() == FOLDED
    assert bits.tolist() == BITS
    assert uniform.tolist() == UNIFORM
    np.testing.assert_allclose(normal, NORMAL, rtol=1e-6)


def test_outside_of_kernels_keys_are_the_same() -> None:
    key = psc.random.key(42)
    assert np.asarray(key).tolist() == [0, 42]
    assert np.asarray(psc.random.split(key, 3)).tolist() == SPLIT
    assert np.asarray(psc.random.fold_in(key, 7)).tolist() == FOLDED
    assert np.asarray(psc.random.split(key, (2, 3))).shape == (2, 3, 2)
    first, second = psc.random.split(key)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("seed", "words"),
    [(0, [0, 0]), (2**32 + 5, [1, 5]), (-1, [ONES, ONES]), (2**64 - 1, [ONES, ONES])],
)
def test_seeds_have_64_bits(seed: int, words: list[int]) -> None:
    assert np.asarray(psc.random.key(seed)).tolist() == words


@psc.kernel
def seeded(short: psc.i32, long: i64) -> tuple[Key, Key]:
    """Keys from computed seeds."""
    return psc.random.key(short), psc.random.key(long)


@psc.kernel
def seeded_by_a_number() -> Key:
    """A key from a known seed."""
    return psc.random.key(2**63)


def test_seeds_in_kernels_are_seeds_outside() -> None:
    for short, long in ((3, 2**40 + 1), (-7, -(2**50))):
        found = *seeded(np.int32(short), np.int64(long)), seeded_by_a_number()
        for key, seed in zip(found, (short, long, 2**63), strict=True):
            np.testing.assert_array_equal(np.asarray(key), psc.random.key(seed))


@pytest.mark.parametrize("seed", [2**64, 0.5, "a", [1, 2]])
def test_what_is_no_seed(seed: Any) -> None:
    with pytest.raises(TypeError, match="integer"):
        psc.random.key(seed)


@pytest.mark.parametrize("key", [0, np.zeros(2), np.zeros((3, 2), np.uint32)])
def test_what_is_no_key(key: Any) -> None:
    with pytest.raises(TypeError, match="takes a key"):
        psc.random.split(key)


@psc.kernel
def family(key: Key, x: f32["n"]) -> tuple[Key["n"], Key["n"]]:
    """Children by both ways of deriving them."""
    one, other = psc.random.split(key)
    folded = psc.map(lambda i: psc.random.fold_in(other, i), np.arange(x.shape[0]))
    return psc.random.split(one, x.shape[0]), folded


def test_no_two_children_of_a_key_are_equal() -> None:
    for keys in map(np.asarray, family(psc.random.key(0), np.zeros(10_000, np.float32))):
        assert len({tuple(key) for key in keys.tolist()}) == 10_000
