"""Each distribution against its distribution function, with seeds that never change.

The tests are one-sided checks of code, not of chance: a seed that gives a p-value below the
threshold would be a sign of a mistake, with 1e-4 a false one in ten thousand seeds.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, Key, f32, f64, i32

pytestmark = pytest.mark.quick_code

stats: Any = importlib.import_module("scipy.stats")
COUNT = 20_000
THRESHOLD = 1e-4
ZEROS: Any = np.zeros(COUNT, np.float32)
random = psc.random


def _fits(sample: Any, distribution: Any) -> None:
    values = np.asarray(sample).astype(np.float64)
    found: Any = stats.kstest(values, distribution.cdf)
    assert found.pvalue > THRESHOLD, (distribution.dist.name, found)


def _counts(sample: Any, distribution: Any, low: int, high: int) -> None:
    """A chi-square test of integers, all those outside of a range taken together."""
    values = np.asarray(sample)
    places = np.arange(low, high)
    seen = np.array([np.count_nonzero(values == place) for place in places])
    wanted = distribution.pmf(places) * values.size
    often = wanted > 5
    rest = values.size - seen[often].sum(), values.size - wanted[often].sum()
    seen, wanted = np.append(seen[often], rest[0]), np.append(wanted[often], rest[1])
    kept = wanted > 1e-9
    assert not seen[~kept].any()
    wanted = wanted[kept] * (seen[kept].sum() / wanted[kept].sum())
    found: Any = stats.chisquare(seen[kept], wanted)
    assert found.pvalue > THRESHOLD, found


@psc.kernel
def plain(
    key: Key, x: f32["n"]
) -> tuple[f32["n"], f32["n"], f32["n"], f32["n"], f32["n"], f32["n"], f32["n"]]:
    """All that have no parameters."""
    keys = random.split(key, 7)
    return (
        random.uniform(keys[0], x.shape),
        random.uniform(keys[1], x.shape, minval=-2.0, maxval=7.0),
        random.normal(keys[2], x.shape),
        random.exponential(keys[3], x.shape),
        random.laplace(keys[4], x.shape),
        random.gumbel(keys[5], x.shape),
        random.logistic(keys[6], x.shape),
    )


PLAIN = (
    stats.uniform(),
    stats.uniform(-2, 9),
    stats.norm(),
    stats.expon(),
    stats.laplace(),
    stats.gumbel_r(),
    stats.logistic(),
)


@pytest.mark.parametrize("seed", range(3))
def test_distributions_without_parameters(seed: int) -> None:
    for sample, distribution in zip(plain(random.key(seed), ZEROS), PLAIN, strict=True):
        _fits(sample, distribution)


@psc.kernel
def in_dtype(key: Key, x: Float["n"]) -> tuple[Float["n"], Float["n"], Float["n"], Float["n"]]:
    """In every floating-point dtype."""
    a, b, c, d = random.split(key, 4)
    return (
        random.uniform(a, x.shape, x.dtype),
        random.normal(b, x.shape, x.dtype),
        random.exponential(c, x.shape, x.dtype),
        random.gamma(d, np.full_like(x, 2)),
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_every_floating_dtype(dtype: str) -> None:
    import ml_dtypes

    kind: Any = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    zeros: Any = np.zeros(COUNT, kind)
    uniform, normal, exponential, gamma = map(np.asarray, in_dtype(random.key(1), zeros))
    values = uniform.astype(np.float64)
    assert 0 <= values.min() <= values.max() < 1
    assert abs(values.mean() - 0.5) < 0.01
    for sample, mean, variance in ((normal, 0, 1), (exponential, 1, 1), (gamma, 2, 2)):
        wide = sample.astype(np.float64)
        assert sample.dtype == kind
        assert abs(wide.mean() - mean) < 0.05
        assert abs(wide.var() - variance) < 0.1
    if dtype == "float64":
        assert np.unique(uniform).size == COUNT


@psc.kernel
def gammas(key: Key, a: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    """Gamma numbers and their logarithms."""
    first, second = random.split(key)
    return random.gamma(first, a), random.loggamma(second, a)


@pytest.mark.parametrize("a", [0.01, 0.5, 1.0, 1.5, 30.0, 1e5])
def test_gamma(a: float) -> None:
    plain_, logs = map(np.asarray, gammas(random.key(2), np.full(COUNT, a)))
    _fits(plain_, stats.gamma(a))
    _fits(logs, stats.loggamma(a))


@psc.kernel
def betas(key: Key, a: f32, b: f32) -> f32["20000"]:
    """Beta numbers."""
    return random.beta(key, a, b, (20_000,))


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (2.0, 3.0), (100.0, 1.0)])
def test_beta(a: float, b: float) -> None:
    _fits(betas(random.key(3), a, b), stats.beta(a, b))


@psc.kernel
def vectors(key: Key, alpha: f32["k"]) -> f32["20000 k"]:
    """Dirichlet vectors."""
    return random.dirichlet(key, alpha, (20_000,))


def test_dirichlet() -> None:
    alpha = np.array([0.3, 1.0, 4.0], np.float32)
    found = np.asarray(vectors(random.key(4), alpha))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    for index, a in enumerate(alpha.tolist()):
        _fits(found[:, index], stats.beta(a, float(alpha.sum()) - a))


@psc.kernel
def poissons(key: Key, lam: f32["n"]) -> i32["n"]:
    """Poisson numbers."""
    return random.poisson(key, lam)


@pytest.mark.parametrize("lam", [0.1, 3.0, 9.99, 10.0, 40.0, 1000.0])
def test_poisson(lam: float) -> None:
    found = poissons(random.key(5), np.full(COUNT, lam, np.float32))
    reach = int(5 * lam**0.5) + 5
    _counts(
        found, stats.poisson(float(np.float32(lam))), max(0, int(lam) - reach), int(lam) + reach
    )


@psc.kernel
def truncated(key: Key, low: f32, high: f32) -> f32["20000"]:
    """Normal numbers between bounds."""
    return random.truncated_normal(key, low, high, (20_000,))


@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 1.0), (2.0, np.inf), (-np.inf, np.inf), (-7.0, -5.0)]
)
def test_truncated_normal(low: float, high: float) -> None:
    found = np.asarray(truncated(random.key(6), low, high))
    assert low <= found.min() <= found.max() <= high
    _fits(found, stats.truncnorm(low, high))


@psc.kernel
def coins(key: Key, p: f32) -> tuple[psc.bool_["20000"], i32["20000"]]:
    """Two kinds of coins."""
    first, second = random.split(key)
    return random.bernoulli(first, p, (20_000,)), random.rademacher(second, (20_000,))


def test_coins() -> None:
    tossed, signs = map(np.asarray, coins(random.key(7), 0.3))
    _counts(tossed.astype(int), stats.bernoulli(0.3), 0, 2)
    assert set(signs.tolist()) == {-1, 1}
    _counts((signs + 1) // 2, stats.bernoulli(0.5), 0, 2)


@psc.kernel
def choices(key: Key, p: f32["k"]) -> tuple[i32["20000"], i32["20000"], i32["20000"]]:
    """Places with probabilities, in three ways."""
    a, b, c = random.split(key, 3)
    return (
        random.choice(a, p.shape[0], (20_000,), p=p),
        random.categorical(b, np.log(p), shape=(20_000,)),
        random.choice(c, p.shape[0], (20_000,)),
    )


def test_choices() -> None:
    p = np.array([0.1, 0.0, 0.6, 0.3], np.float32)
    chosen, categorical, even = choices(random.key(8), p)
    weighted = stats.rv_discrete(values=(np.arange(4), p.astype(float) / p.sum(dtype=float)))
    for sample in (chosen, categorical):
        _counts(sample, weighted, 0, 4)
        assert 1 not in np.asarray(sample)
    _counts(even, stats.randint(0, 4), 0, 4)


@psc.kernel
def shuffles(key: Key, x: f32["t"]) -> i32["t 3"]:
    """Many orders of three."""
    keys = random.split(key, x.shape[0])
    return psc.map(lambda k: random.permutation(k, 3), keys)


def test_every_order_is_as_likely() -> None:
    found = np.asarray(shuffles(random.key(9), np.zeros(6000, np.float32)))
    _, seen = np.unique(found @ np.array([9, 3, 1]), return_counts=True)
    assert seen.size == 6
    tested: Any = stats.chisquare(seen)
    assert tested.pvalue > THRESHOLD


@psc.kernel
def independent(key: Key, x: f32["n"]) -> tuple[f32["n"], f32["n"], f32["n"]]:
    """Numbers from sibling keys, and from a folded one."""
    one, other, third = random.split(key, 3)
    folded = random.fold_in(third, 1)
    return (
        random.normal(one, x.shape),
        random.normal(other, x.shape),
        random.normal(folded, x.shape),
    )


def test_numbers_of_different_keys_are_uncorrelated() -> None:
    samples = np.stack([np.asarray(each) for each in independent(random.key(10), ZEROS)])
    correlation = np.corrcoef(samples) - np.eye(3)
    assert np.abs(correlation).max() < 5 / COUNT**0.5
    lagged = np.corrcoef(samples[0, 1:], samples[0, :-1])[0, 1]
    assert abs(lagged) < 5 / COUNT**0.5
