"""The edges of what draws: ends of ranges, impossible events, parameters that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Integer, Key, bool_, f16, f32, f64, i8, i32, u8, u64
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl.typing import dtypes
from pscdsl.typing.dtypes import DType

random = psc.random
INTEGERS = [each for each in dtypes.ALL if each.is_integer]


@psc.kernel
def between(key: Key, low: f32["n"], high: f32["n"]) -> f32["n"]:
    """Uniform numbers of ranges."""
    return random.uniform(key, low.shape, minval=low, maxval=high)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, 1.0000001),
        (1e6, 1000000.1),
        (-1.0, -0.9999999),
        (0.0, 1e-45),
        (3.0, 3.0),
        (-1e38, 1e38),
        (-3e38, 3e38),
    ],
)
def test_uniform_never_reaches_the_end(low: float, high: float) -> None:
    ends = np.full((2, 4096), [[low], [high]], np.float32)
    found = np.asarray(between(random.key(0), *ends))
    assert (found >= ends[0]).all()
    assert ((found < ends[1]) | (ends[0] == ends[1])).all()


@psc.kernel
def half_and_wide(key: Key) -> tuple[f16["20000"], f64["20000"]]:
    """Uniform numbers of ranges that are wider than the largest number."""
    one, other = random.split(key)
    return (
        random.uniform(one, 20000, psc.f16, -60000, 60000),
        random.uniform(other, 20000, psc.f64, -1.5e308, 1.5e308),
    )


def test_uniform_where_the_width_overflows() -> None:
    ends = np.full((2, 20000), [[-3e38], [3e38]], np.float32)
    draws = between(random.key(4), *ends), *half_and_wide(random.key(4))
    for found, end in zip(draws, (3e38, 6e4, 1.5e308), strict=True):
        shares = np.asarray(found).astype(float) / end
        counts = np.histogram(shares, 4, (-1, 1))[0]
        assert counts.sum() == 20000
        assert (np.abs(counts - 5000) < 300).all()


@psc.kernel
def integers(key: Key, low: Integer["n"], high: Integer["n"]) -> Integer["n"]:
    """Integers of ranges."""
    return random.randint(key, low.shape, low, high)


def _draw(dtype: DType, low: int, high: int, count: int = 4096) -> Any:
    kind = to_numpy(dtype)
    ends = [np.full(count, each, kind) for each in (low, high)]
    return np.asarray(integers(random.key(1), *ends))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_of_nearly_all_there_are(dtype: DType) -> None:
    low, high = dtype.range
    found = _draw(dtype, low, high)
    assert found.dtype == to_numpy(dtype)
    assert (found < high).all()
    # Every eighth of the range has its share.
    shares = np.bincount([(int(x) - low) * 8 // (high - low + 1) for x in found.tolist()])
    assert shares.size == 8
    assert (np.abs(shares - 512) < 130).all()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_of_small_ranges(dtype: DType) -> None:
    low, high = dtype.range
    for start, stop in ((low, low + 3), (high - 3, high), (5, 6)):
        found = _draw(dtype, start, stop)
        assert sorted(set(found.tolist())) == list(range(start, stop))
    assert set(_draw(dtype, 7, 7).tolist()) == {7}
    assert set(_draw(dtype, 7, 2).tolist()) == {7}


def test_a_length_that_divides_no_power_of_two_is_not_biased() -> None:
    # Taking remainders of 8 bits would make the first 56 numbers twice as likely.
    found = _draw(dtypes.U8, 0, 200, 200_000)
    counts = np.bincount(found, minlength=200)
    assert np.abs(counts[:56].mean() - counts[56:].mean()) < 10
    # And of 64 bits: nine tenths of what there is, the first tenth must not be fuller.
    wide = _draw(dtypes.U64, 0, 2**64 // 10 * 9, 100_000).astype(float) / 2**64
    assert abs(np.count_nonzero(wide < 0.1) - 100_000 / 9) < 600


@psc.kernel
def full(key: Key) -> tuple[i8["4096"], u64["4096"], i32["4096"]]:
    """Ranges that hold all numbers of their dtype."""
    a, b, c = random.split(key, 3)
    return (
        random.randint(a, 4096, -128, 128, psc.i8),
        random.randint(b, 4096, 0, 2**64, psc.u64),
        random.randint(c, 4096, -(2**31), 2**31, psc.i32),
    )


@psc.kernel
def narrow_poissons(key: Key, lam: f64["n"]) -> tuple[i8["n"], u8["n"], i32["n"]]:
    """Poisson numbers in dtypes that hold few of them."""
    a, b, c = random.split(key, 3)
    return (
        random.poisson(a, lam, dtype=psc.i8),
        random.poisson(b, lam, dtype=psc.u8),
        random.poisson(c, lam * 1e7, dtype=psc.i32),
    )


def test_poisson_numbers_up_to_the_largest() -> None:
    rates = np.repeat([100.0, 200.0, 1e6, np.inf], 4096)
    found = [np.asarray(x, float) for x in narrow_poissons(random.key(6), rates)]
    i8s, u8s, i32s = (x.reshape(4, -1) for x in found)
    assert abs(i8s[0].mean() - 100) < 1
    assert abs(u8s[1].mean() - 200) < 1
    assert abs(i32s[0].mean() / 1e9 - 1) < 1e-5
    assert abs(i32s[1].mean() / 2e9 - 1) < 1e-5
    assert (i8s[1:] >= 126).all()
    assert (i8s[2:] == 127).all()
    assert (u8s[2:] == 255).all()
    assert (i32s[2:] == 2**31 - 1).all()


def test_integers_of_all_there_are() -> None:
    small, wide, middle = map(np.asarray, full(random.key(2)))
    assert set(small.tolist()) == set(range(-128, 128))
    assert wide.max() > 2**63 > wide.min()
    assert middle.min() < -(2**30) < 2**30 < middle.max()


@psc.kernel
def coins(key: Key, p: f32["n"]) -> bool_["n"]:
    """Coins of any kind."""
    return random.bernoulli(key, p)


def test_what_never_and_what_always_happens() -> None:
    p = np.repeat(np.array([0, 1, -1, 2], np.float32), 1000)
    found = np.asarray(coins(random.key(3), p)).reshape(4, 1000)
    assert found.all(axis=1).tolist() == [False, True, False, True]
    assert found.any(axis=1).tolist() == [False, True, False, True]


@psc.kernel
def picked(key: Key, logits: f32["m k"]) -> tuple[i32["m"], i32["m"]]:
    """Categories, by logits and by probabilities of the first row."""
    one, other = random.split(key)
    first = np.exp(logits[0])
    return random.categorical(one, logits), random.choice(
        other, logits.shape[1], (logits.shape[0],), p=first
    )


def test_what_is_impossible_is_not_chosen() -> None:
    row = np.array([-np.inf, 0, -np.inf, 1, -np.inf], np.float32)
    for found in map(np.asarray, picked(random.key(4), np.tile(row, (5000, 1)))):
        assert set(found.tolist()) == {1, 3}


@psc.kernel
def gammas(key: Key, a: f32["n"]) -> tuple[f32["n"], i32["n"]]:
    """Gamma and Poisson numbers of whatever parameters."""
    one, other = random.split(key)
    return random.gamma(one, a), random.poisson(other, a)


def test_parameters_that_are_none_come_to_an_end() -> None:
    a = np.array([0, -1, np.nan, np.inf, -np.inf, 1e-30], np.float32)
    gamma, poisson = map(np.asarray, gammas(random.key(5), a))
    assert gamma[0] == 0
    assert np.isnan(gamma[[1, 2, 4]]).all()
    assert gamma[3] == np.inf
    assert poisson[[0, 1, 2, 4, 5]].tolist() == [0] * 5


@psc.kernel
def orders(
    key: Key, x: f32["n m"]
) -> tuple[f32["n m"], f32["n m"], f32["n m"], i32["n"], f32["n-1 m"], i32["n-1"]]:
    """Everything that orders or picks without putting back."""
    keys = random.split(key, 6)
    n = x.shape[0]
    assert n >= 2
    p = np.arange(n).astype(np.float32) + 1
    return (
        random.permutation(keys[0], x),
        random.permutation(keys[1], x, axis=1),
        random.permutation(keys[2], x, axis=-1, independent=True),
        random.permutation(keys[3], n),
        random.choice(keys[4], x, n - 1, replace=False),
        random.choice(keys[5], n, n - 1, replace=False, p=p),
    )


def test_orders_lose_nothing() -> None:
    x = np.arange(20 * 7, dtype=np.float32).reshape(20, 7)
    rows, columns, each, places, most, weighted = map(np.asarray, orders(random.key(6), x))
    assert not np.array_equal(rows, x)
    np.testing.assert_array_equal(np.sort(rows, axis=0), x)
    np.testing.assert_array_equal(np.sort(columns, axis=1), x)
    assert (np.diff(columns, axis=0) == 7).all()
    np.testing.assert_array_equal(np.sort(each, axis=1), x)
    assert not (np.diff(each, axis=0) == 7).all()
    assert sorted(places.tolist()) == list(range(20))
    assert len({tuple(row) for row in most.tolist()}) == 19
    assert len(set(weighted.tolist())) == 19


@psc.kernel
def first_above(keys: Key["n"], bounds: f32["n"]) -> f32["n"]:
    """The first number above each bound, of keys that a loop carries."""

    def one(key: Key, bound: f32) -> f32:
        def step(state: tuple[Key, f32]) -> tuple[Key, f32]:
            following, used = random.split(state[0])
            return following, random.normal(used, (), f32)

        return psc.while_loop(lambda state: state[1] < bound, step, (key, np.float32(-9)))[1]

    return psc.vmap(one)(keys, bounds)


def test_loops_over_a_batch_carry_keys_in_the_interpreter() -> None:
    keys, bounds = random.split(random.key(0), 3), np.array([0, 1, 0.5], np.float32)
    found = first_above.interpret(keys, bounds)
    assert np.allclose(found, first_above(keys, bounds))
    assert (np.asarray(found) >= bounds).all()
