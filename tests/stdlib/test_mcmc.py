"""Markov chains: laws of the leapfrog, moments and shares of known distributions, diagnostics.

Seeds are fixed, and bounds on averages are several times their standard errors.
"""

# What chains return is not fully typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pscdsl as psc
from pscdsl import Float, Key, f32, f64, i32
from pscdsl.stdlib import mcmc, mcmc_diagnostics
from pscdsl.stdlib.mcmc import Point

pytestmark = pytest.mark.quick_code


def quartic(q: Float["d"]) -> Float:
    """A density with lighter tails than a normal one."""
    return -(q**4).sum() / 4 - (q[1:] * q[:-1]).sum() / 3


@psc.kernel
def trajectory(q: f64["d"], p: f64["d"], size: f64, moves: i32) -> tuple[Point["d"], f64, f64]:
    """Where the motion leads, and the energies before and after."""
    mass = np.linspace(0.5, 2, q.shape[0])
    value, slope = psc.value_and_grad(quartic)(q)
    start = Point(q, p, slope, value)
    end = mcmc.leapfrog(psc.value_and_grad(quartic), start, size, mass, moves)
    return end, mcmc.energy(start, mass), mcmc.energy(end, mass)


def test_leapfrogs_lead_back_and_keep_energy_to_second_order() -> None:
    random = np.random.default_rng(0)
    q, p = random.normal(size=4), random.normal(size=4)
    end, before, after = trajectory(q, p, 0.1, 25)
    again, _, _ = trajectory(end.position, -np.asarray(end.momentum), 0.1, 25)
    np.testing.assert_allclose(again.position, q, atol=1e-12)
    np.testing.assert_allclose(-np.asarray(again.momentum), p, atol=1e-12)

    errors = []
    for size, moves in ((0.02, 50), (0.01, 100)):
        _, before, after = trajectory(q, p, size, moves)
        errors.append(float(after) - float(before))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


class Place(psc.Record, dims="n"):
    """A tree to draw: correlated numbers, and one of another scale."""

    at: Float["n"]
    far: Float


MEAN = np.array([1.0, -2.0])
COVARIANCE = psc.constant(np.array([[1.0, 0.6], [0.6, 0.8]]))
PRECISION = psc.constant(np.linalg.inv(COVARIANCE))


@psc.kernel
def normal_chain(start: Place["2"], key: Key) -> tuple[Float["400 2"], Float["400"], Float]:
    """Hamiltonian Monte Carlo of a normal distribution, warmed up."""

    def log_density(p: Place["2"]) -> Float:
        z = p.at - np.array(MEAN, p.at.dtype)
        return -(z @ (np.array(PRECISION, p.at.dtype) @ z)) / 2 - ((p.far - 50) / 20) ** 2 / 2

    first, second = psc.random.split(key)
    tuned = mcmc.warm_up(log_density, start, first, 300)
    found = mcmc.hamiltonian(
        log_density, tuned.position, second, 400, tuned.step_size, tuned.variance
    )
    return found.positions.at, found.positions.far, found.acceptance.mean()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hamiltonian_chains_have_the_moments(dtype: Any) -> None:
    chains = 8
    start = Place(np.zeros((chains, 2), dtype), np.linspace(0, 100, chains, dtype=dtype))
    keys = psc.random.split(psc.random.key(1), chains)
    at, far, acceptance = psc.vmap(normal_chain)(start, keys)
    both = np.concatenate([np.asarray(at), np.asarray(far)[:, :, None]], axis=2)
    assert both.dtype == dtype
    sizes = np.asarray(mcmc_diagnostics.effective_sample_size(both))
    assert sizes.min() > 800
    assert np.asarray(mcmc_diagnostics.split_r_hat(both)).max() < 1.02
    means = both.reshape(-1, 3).astype(np.float64).mean(axis=0)
    deviations = np.sqrt([*np.diag(COVARIANCE), 400])
    assert np.all(np.abs(means - [*MEAN, 50]) < 4 * deviations / np.sqrt(sizes))
    np.testing.assert_allclose(np.cov(both[:, :, :2].reshape(-1, 2).T), COVARIANCE, atol=0.12)
    assert np.std(both[:, :, 2]) == pytest.approx(20, rel=0.1)
    assert 0.65 < np.asarray(acceptance).mean() < 0.98


@psc.kernel
def walk(start: f32, key: Key) -> mcmc.Samples[f32["20000"]]:
    """A random walk over two hills of which one is twice as likely, from where there is a wall."""

    def log_density(x: f32) -> f32:
        hills = np.logaddexp(np.log(2) - (x - 2) ** 2 * 2, -((x + 1) ** 2) * 2)
        return np.where(x < -3, -np.inf, hills)

    return mcmc.metropolis(log_density, start, key, 20000, 2.5)


def test_a_random_walk_visits_places_by_their_density() -> None:
    """Detailed balance: shares of places, and as many moves from each to each as back."""
    keys = psc.random.split(psc.random.key(2), 4)
    samples = psc.vmap(walk)(np.zeros(4, np.float32), keys)
    x = np.asarray(samples.positions)
    assert x.min() >= -3
    assert np.isfinite(samples.log_densities).all()
    edges = np.linspace(-3, 4.5, 16)
    middles = np.linspace(-3, 4.5, 3001)
    weights = 2 * np.exp(-((middles - 2) ** 2) * 2) + np.exp(-((middles + 1) ** 2) * 2)
    expected, _ = np.histogram(middles, edges, weights=weights / weights.sum())
    found, _ = np.histogram(x, edges)
    np.testing.assert_allclose(found / x.size, expected, atol=0.012)

    places = np.digitize(x, [-1, 0.5, 2])
    moves = np.zeros((4, 4))
    np.add.at(moves, (places[:, :-1], places[:, 1:]), 1)
    asymmetry = np.abs(moves - moves.T) / np.sqrt(moves + moves.T + 1)
    assert asymmetry.max() < 4
    assert np.asarray(mcmc_diagnostics.split_r_hat(x)) < 1.01


def size_in_numpy(draws: NDArray[Any]) -> float:
    """The effective sample size by sums, term by term."""
    half = draws.shape[1] // 2
    chains = np.concatenate([draws[:, :half], draws[:, -half:]])
    m, n = chains.shape
    within = chains.var(axis=1, ddof=1).mean()
    total = within * (n - 1) / n + chains.mean(axis=1).var(ddof=1)
    centred = chains - chains.mean(axis=1, keepdims=True)
    rho = [
        1 - (within - np.mean([c[: n - k] @ c[k:] / n for c in centred])) / total for k in range(n)
    ]
    time, least = -1.0, np.inf
    for k in range(n // 2):
        least = min(least, rho[2 * k] + rho[2 * k + 1])
        if least < 0:
            break
        time += 2 * least
    return float(min(m * n / time, m * n * np.log10(m * n)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_diagnostics_of_autoregressive_chains(dtype: Any) -> None:
    """Their effective sizes are known: n * (1 - phi) / (1 + phi)."""
    random = np.random.default_rng(0)
    chains, n = 4, 2001
    phi = np.array([0.0, 0.5, 0.9, -0.3])
    x = np.zeros((chains, n, 4))
    x[:, 0] = random.normal(size=(chains, 4)) / np.sqrt(1 - phi**2)
    for i in range(1, n):
        x[:, i] = phi * x[:, i - 1] + random.normal(size=(chains, 4))
    x = x.astype(dtype)
    sizes = np.asarray(mcmc_diagnostics.effective_sample_size(x))
    np.testing.assert_allclose(sizes, chains * n * (1 - phi) / (1 + phi), rtol=0.25)
    expected = [size_in_numpy(x[:, :, i].astype(np.float64)) for i in range(4)]
    np.testing.assert_allclose(sizes, expected, rtol=1e-3 if dtype == np.float32 else 1e-9)
    errors = np.asarray(mcmc_diagnostics.standard_error(x))
    np.testing.assert_allclose(errors, x.std(axis=(0, 1)) / np.sqrt(sizes), rtol=0.05)

    hats = np.asarray(mcmc_diagnostics.split_r_hat(x))
    assert np.all((hats > 0.999) & (hats < 1.03))
    apart = x + np.arange(chains, dtype=dtype)[:, None, None]
    drifting = x + np.linspace(0, 3, n, dtype=dtype)[None, :, None]
    for wrong in (apart, drifting):
        assert np.asarray(mcmc_diagnostics.split_r_hat(wrong))[:2].min() > 1.2
