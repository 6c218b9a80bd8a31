"""Kalman filters and smoothers against conditioning of one large normal distribution in NumPy."""

# SciPy and NumPy's linear algebra are not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg, stats

import pscdsl as psc
from pscdsl.stdlib import kalman, kalman_parallel

pytestmark = pytest.mark.quick_code

STATES, NUMBERS, TIMES = 3, 2, 7

Filter = Callable[[Any, Any], Any]
FILTERS: list[Filter] = [kalman.kalman_filter, kalman_parallel.parallel_filter]
SMOOTHERS: list[Filter] = [kalman.smooth, kalman_parallel.parallel_smooth]


def model(dtype: Any = np.float64) -> Any:
    random = np.random.default_rng(0)

    def positive(n: int) -> NDArray[Any]:
        root = random.normal(size=(n, n))
        return np.asarray(root @ root.T + np.eye(n) / 2, dtype)

    transition = random.normal(size=(STATES, STATES))
    transition /= 1.1 * np.abs(np.linalg.eigvals(transition)).max()
    return kalman.Model(
        transition.astype(dtype),
        positive(STATES),
        random.normal(size=(NUMBERS, STATES)).astype(dtype),
        positive(NUMBERS),
        random.normal(size=STATES).astype(dtype),
        positive(STATES),
    )


def observed(dtype: Any = np.float64, missing: bool = True) -> NDArray[Any]:
    y = np.random.default_rng(1).normal(size=(TIMES, NUMBERS)) * 3
    if missing:
        y[2, 1] = y[4] = np.nan
    return y.astype(dtype)


def joint(p: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Mean and covariance of all states, how observations depend on them, and their noise."""
    f, q, h, r, m, v = (
        np.asarray(x, np.float64)
        for x in (
            p.transition,
            p.transition_noise,
            p.emission,
            p.emission_noise,
            p.start_mean,
            p.start_covariance,
        )
    )
    # All states are `lift` times the first state and the noises, which are independent.
    lift = np.zeros((TIMES, STATES, TIMES, STATES))
    for i in range(TIMES):
        for j in range(i + 1):
            lift[i, :, j] = np.linalg.matrix_power(f, i - j)
    flat = lift.reshape(TIMES * STATES, TIMES * STATES)
    mean = flat[:, :STATES] @ m
    noises: Any = linalg.block_diag(v, *[q] * (TIMES - 1))
    covariance = flat @ noises @ flat.T
    return mean, covariance, np.kron(np.eye(TIMES), h), np.kron(np.eye(TIMES), r)


def conditioned(p: Any, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], float]:
    """Mean and covariance of each state given the observations, and their log-density."""
    mean, covariance, emission, noise = joint(p)
    seen = ~np.isnan(y.ravel())
    emission, noise = emission[seen], noise[np.ix_(seen, seen)]
    spread = emission @ covariance @ emission.T + noise
    gain = np.linalg.solve(spread, emission @ covariance).T
    value = y.ravel()[seen].astype(np.float64)
    mean_after = mean + gain @ (value - emission @ mean)
    after = (covariance - gain @ emission @ covariance).reshape(TIMES, STATES, TIMES, STATES)
    normal: Any = stats.multivariate_normal
    density = normal.logpdf(value, emission @ mean, spread)
    blocks = np.array([after[i, :, i] for i in range(TIMES)])
    return mean_after.reshape(TIMES, STATES), blocks, float(density)


@pytest.mark.parametrize(
    ("kernel", "dtype"), [(FILTERS[0], np.float32), *[(f, np.float64) for f in FILTERS]]
)
def test_filters(kernel: Filter, dtype: Any) -> None:
    p, y = model(dtype), observed(dtype)
    found = kernel(p, y)
    tolerance = 200 * float(np.finfo(dtype).eps)
    densities = [0.0]
    for i in range(TIMES):
        past = np.where(np.arange(TIMES)[:, None] <= i, y, np.nan)
        mean, covariance, density = conditioned(p, past)
        np.testing.assert_allclose(found.mean[i], mean[i], rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(
            found.covariance[i], covariance[i], rtol=tolerance, atol=tolerance
        )
        densities.append(density)
    np.testing.assert_allclose(
        found.log_densities, np.diff(densities), rtol=tolerance, atol=10 * tolerance
    )
    assert np.asarray(found.mean).dtype == dtype


@pytest.mark.parametrize(
    ("kernel", "dtype"), [(SMOOTHERS[1], np.float32), *[(f, np.float64) for f in SMOOTHERS]]
)
def test_smoothers(kernel: Filter, dtype: Any) -> None:
    p, y = model(dtype), observed(dtype)
    mean, covariance, _ = conditioned(p, y)
    found = kernel(p, y)
    tolerance = 200 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(found.mean, mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.covariance, covariance, rtol=tolerance, atol=tolerance)


def test_one_time_is_enough() -> None:
    p, y = model(), observed()[:1]
    expected, _ = kalman.update(p, kalman.Gaussian(p.start_mean, p.start_covariance), y[0])
    for kernel in SMOOTHERS:
        found = kernel(p, y)
        np.testing.assert_allclose(found.mean[0], expected.mean, rtol=1e-12)
        np.testing.assert_allclose(found.covariance[0], expected.covariance, rtol=1e-12)


def test_covariances_stay_positive_where_digits_are_lost() -> None:
    """Exact observations of an uncertain state, in single precision."""
    p = kalman.Model(
        *(np.asarray(x, np.float32) for x in ([[1, 1], [0, 1]], np.eye(2) * 1e-6, [[1, 0]])),
        *(np.asarray(x, np.float32) for x in ([[1e-6]], [0, 0], np.eye(2) * 1e6)),
    )
    y = np.linspace(0, 1, 40, dtype=np.float32)[:, None]
    for found in (kalman.kalman_filter(p, y), kalman.smooth(p, y)):
        covariance = np.asarray(found.covariance, np.float64)
        np.testing.assert_array_equal(covariance, covariance.transpose(0, 2, 1))
        assert np.linalg.eigvalsh(covariance[2:]).min() > 0


def test_the_likelihood_has_a_gradient() -> None:
    p, y = model(), observed()
    slope = np.asarray(psc.grad(kalman.log_likelihood)(p, y).start_mean)
    move = np.array([1.0, -2.0, 0.5]) * 1e-5
    there, back = (
        conditioned(dataclasses.replace(p, start_mean=p.start_mean + step), y)[2]
        for step in (move, -move)
    )
    np.testing.assert_allclose(slope @ move, (there - back) / 2, rtol=1e-6)


def test_many_series_at_once() -> None:
    p = model()
    both = np.stack([observed(missing=False), observed()])
    found = psc.vmap(kalman.smooth, in_axes=(None, 0))(p, both)
    np.testing.assert_allclose(found.mean[1], kalman.smooth(p, both[1]).mean, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_steady_state(dtype: Any) -> None:
    p, wide = model(dtype), model()
    expected = linalg.solve_discrete_are(
        wide.transition.T, wide.emission.T, wide.transition_noise, wide.emission_noise
    )
    found = kalman.steady(p)
    np.testing.assert_allclose(found.covariance, expected, rtol=200 * np.finfo(dtype).eps)
    assert 1 < int(np.asarray(found.steps)) < 10
    spread = wide.emission @ expected @ wide.emission.T + wide.emission_noise
    gain = expected @ wide.emission.T @ np.linalg.inv(spread)
    np.testing.assert_allclose(found.gain, gain, rtol=500 * np.finfo(dtype).eps, atol=1e-6)


def test_samples_have_the_moments_of_the_model() -> None:
    p = model()
    drawn = kalman.sample(p, psc.random.key(0), 4000)
    states, observations = np.asarray(drawn.states), np.asarray(drawn.observations)
    moves = states[1:] - states[:-1] @ p.transition.T
    noise = observations - states @ p.emission.T
    np.testing.assert_allclose(np.cov(moves.T), p.transition_noise, atol=0.3)
    np.testing.assert_allclose(np.cov(noise.T), p.emission_noise, atol=0.3)
