"""Linear Gaussian state-space models: the Kalman filter, the smoother, and their limits.

    first state        ~ normal(start_mean, start_covariance)
    next state         ~ normal(transition @ state, transition_noise)
    observation        ~ normal(emission @ state, emission_noise)

NaN in place of a number is a missing observation, alone or with its whole time. Covariances are
updated in forms that keep them symmetric and positive (Bucy, Joseph 1968); they need more than 16
bits.
"""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import Float, Key, bool_, i32


class Model(psc.Record, dims="s o"):
    """A model with s numbers as its state and o as an observation; all in the same dtype.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> log_likelihood(p, np.array([[0.1], [0.3], [0.2]]))
        pscdsl.Array(-2.8661, dtype=float64)
    """

    transition: Float["s s"]
    """The matrix that a state is multiplied by in each step."""
    transition_noise: Float["s s"]
    """The covariance of the noise added in each step."""
    emission: Float["o s"]
    """The matrix that maps a state to its observation."""
    emission_noise: Float["o o"]
    """The covariance of the noise of observations: positive definite."""
    start_mean: Float["s"]
    """The mean of the first state."""
    start_covariance: Float["s s"]
    """The covariance of the first state, before anything is observed."""


class Gaussian(psc.Record, dims="s"):
    """A normal distribution of states.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> predict(p, Gaussian(mean=np.array([2.0]), covariance=one)).covariance
        pscdsl.Array([[1.1]], dtype=float64)
    """

    mean: Float["s"]
    """The expected state."""
    covariance: Float["s s"]
    """The covariance of the state."""


class Gaussians(psc.Record, dims="t s"):
    """A normal distribution of states at each time.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> smoothed = smooth(p, np.array([[0.1], [0.3], [0.2]]))
        >>> smoothed.mean.shape, smoothed.covariance.shape
        ((3, 1), (3, 1, 1))
    """

    mean: Float["t s"]
    """The expected state at each time."""
    covariance: Float["t s s"]
    """The covariance of the state at each time."""


class Filtered(psc.Record, dims="t s"):
    """The filtered states: normal distributions given the observations so far.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> kalman_filter(p, np.array([[0.1], [0.3], [0.2]])).log_densities
        pscdsl.Array([-1.125 , -0.9136, -0.8274], dtype=float64)
    """

    mean: Float["t s"]
    """The mean given the observations up to each time."""
    covariance: Float["t s s"]
    """The covariance given the same observations."""
    log_densities: Float["t"]
    """The log-density of each observation given those before; their sum is the log-likelihood."""


class Steady(psc.Record, dims="s o"):
    """The steady state of the filter of a model.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> found = steady(p)
        >>> found.gain, found.covariance
        (pscdsl.Array([[0.3583]], dtype=float64), pscdsl.Array([[0.2791]], dtype=float64))
    """

    covariance: Float["s s"]
    """The covariance of the state, given all observations before."""
    gain: Float["s o"]
    """The gain, by which the difference of an observation from its prediction is multiplied."""
    steps: i32
    """The number of doubling steps; 50 if there is no convergence."""


class Trajectory(psc.Record, dims="t s o"):
    """States and observations drawn from a model.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> drawn = sample(p, psc.random.key(0), 100)
        >>> drawn.states.shape, drawn.observations.shape
        ((100, 1), (100, 1))
    """

    states: Float["t s"]
    """One per row."""
    observations: Float["t o"]
    """One per row."""


@psc.kernel
def predict(p: Model["s o"], state: Gaussian["s"]) -> Gaussian["s"]:
    """The state one step later.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(0.9 * one, 0.1 * one, one, 0.5 * one, np.zeros(1), one)
        >>> predict(p, Gaussian(np.array([2.0]), one)).mean
        pscdsl.Array([1.8], dtype=float64)

    Cost: 4*s*s*s + 5*s*s flops.
    """
    covariance = p.transition @ state.covariance @ p.transition.T + p.transition_noise
    return Gaussian(p.transition @ state.mean, symmetric(covariance))


@psc.kernel
def update(
    p: Model["s o"], state: Gaussian["s"], observation: Float["o"]
) -> tuple[Gaussian["s"], Float]:
    """The state given an observation of it, and the log-density of the observation.

    The covariance is that of the estimate `state + gain * difference` (Joseph's form), which is
    positive for any rounding of the gain.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> state, log_density = update(p, Gaussian(np.zeros(1), one), np.array([1.5]))
        >>> state.mean, log_density
        (pscdsl.Array([1.], dtype=float64), pscdsl.Array(-1.8717, dtype=float64))

    Cost: at most o*o*o + 6*o*o*s + 6*o*s*s + 4*s*s*s + 27*o*o + 6*o*s + 5*s*s flops.
    """
    assert np.finfo(p.start_mean.dtype).bits >= 32
    emission, noise = emission_of(p, observation)
    missing = np.isnan(observation)
    difference = np.where(missing, 0, observation) - emission @ state.mean

    root = np.linalg.cholesky(emission @ state.covariance @ emission.T + noise)
    scaled = psc.triangular_solve(root, emission @ state.covariance, lower=True)
    gain = psc.triangular_solve(root, scaled, lower=True, transpose=True).T
    standard = psc.triangular_solve(root, difference, lower=True)

    rest = np.eye(p.transition.shape[0]) - gain @ emission
    covariance = rest @ state.covariance @ rest.T + gain @ noise @ gain.T
    constant = np.where(missing, 0, np.log(2 * np.pi) / 2 + np.log(np.diagonal(root)))
    log_density = -(standard @ standard) / 2 - constant.sum()
    return Gaussian(state.mean + gain @ difference, symmetric(covariance)), log_density


@psc.kernel
def emission_of(p: Model["s o"], observation: Float["o"]) -> tuple[Float["o s"], Float["o o"]]:
    """The matrix that maps a state to its observation, and the covariance of its noise.

    Missing numbers depend on nothing, and have independent noise of variance 1.

    Examples:
        >>> p = Model(
        ...     np.eye(1), np.eye(1), np.ones((2, 1)), 0.5 * np.eye(2), np.zeros(1), np.eye(1)
        ... )
        >>> emission_of(p, np.array([1.5, np.nan]))
        (pscdsl.Array([[1.],
                      [0.]], dtype=float64), pscdsl.Array([[0.5, 0. ],
                      [0. , 1. ]], dtype=float64))

    Cost: 3*o*o + o*s + o flops.
    """
    missing = np.isnan(observation)
    noise = np.where(missing[:, None] | missing, np.eye(missing.shape[0]), p.emission_noise)
    return np.where(missing[:, None], 0, p.emission), noise


@psc.kernel
def kalman_filter(p: Model["s o"], observations: Float["t o"]) -> Filtered["t s"]:
    """The states given the observations so far (Kalman 1960).

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> kalman_filter(p, np.array([[1.0], [1.2], [np.nan], [0.8]])).mean[:, 0]
        array([0.6667, 0.9143, 0.9143, 0.8613])

    Cost: at most o*o*o*t + 6*o*o*s*t + 6*o*s*s*t + 8*s*s*s*t + 27*o*o*t + 6*o*s*t + 10*s*s*t flops.
    """
    assert np.finfo(p.start_mean.dtype).bits >= 32

    def step(
        ahead: Gaussian["s"], observation: Float["o"]
    ) -> tuple[Gaussian["s"], tuple[Gaussian["s"], Float]]:
        state, log_density = update(p, ahead, observation)
        return predict(p, state), (state, log_density)

    start = Gaussian(p.start_mean, p.start_covariance)
    _, (states, log_densities) = psc.scan(step, start, observations)
    return Filtered(states.mean, states.covariance, log_densities)


@psc.kernel
def log_likelihood(p: Model["s o"], observations: Float["t o"]) -> Float:
    """The log-density of all observations, in nats; differentiate it to fit a model.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> psc.grad(log_likelihood)(p, np.array([[1.0], [1.2], [0.8]])).emission_noise
        pscdsl.Array([[-1.647]], dtype=float64)

    Cost: at most o*o*o*t + 6*o*o*s*t + 6*o*s*s*t + 8*s*s*s*t + 28*o*o*t + 6*o*s*t + 10*s*s*t flops.
    """
    assert np.finfo(p.start_mean.dtype).bits >= 32
    return kalman_filter(p, observations).log_densities.sum()


@psc.kernel
def smooth(p: Model["s o"], observations: Float["t o"]) -> Gaussians["t s"]:
    """The states given all observations (Rauch, Tung, Striebel 1965).

    The covariance of each predicted state is positive definite, as it is if the
    covariance of the transition noise is.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> smooth(p, np.array([[1.0], [1.2], [np.nan], [0.8]])).mean[:, 0]
        array([0.8352, 0.8858, 0.8736, 0.8613])

    Cost: at most o*o*o*t + 6*o*o*s*t + 6*o*s*s*t + 25*s*s*s*t + 10*o*o*t + 8*o*s*t + 25*s*s*t
    flops.
    """
    assert np.finfo(p.start_mean.dtype).bits >= 32
    forward = kalman_filter(p, observations)

    def step(later: Gaussian["s"], filtered: Gaussian["s"]) -> tuple[Gaussian["s"], Gaussian["s"]]:
        gain = smoother_gain(p, filtered.covariance)
        mean = filtered.mean + gain @ (later.mean - p.transition @ filtered.mean)
        rest = np.eye(p.transition.shape[0]) - gain @ p.transition
        spread = rest @ filtered.covariance @ rest.T
        covariance = spread + gain @ (later.covariance + p.transition_noise) @ gain.T
        state = Gaussian(mean, symmetric(covariance))
        return state, state

    last = Gaussian(forward.mean[-1], forward.covariance[-1])
    _, before = psc.scan(
        step, last, Gaussian(forward.mean[:-1], forward.covariance[:-1]), reverse=True
    )
    mean = np.concatenate([before.mean, last.mean[None]])
    covariance = np.concatenate([before.covariance, last.covariance[None]])
    return Gaussians(mean, covariance)


@psc.kernel
def smoother_gain(p: Model["s o"], covariance: Float["s s"]) -> Float["s s"]:
    """The gain of the smoother for a state with this covariance.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> smoother_gain(p, 0.3 * one)
        pscdsl.Array([[0.75]], dtype=float64)

    Cost: 6*s*s*s + 5*s*s + s*s*s//3 flops.
    """
    assert np.finfo(p.start_mean.dtype).bits >= 32
    ahead = p.transition @ covariance @ p.transition.T + p.transition_noise
    root = np.linalg.cholesky(symmetric(ahead))
    scaled = psc.triangular_solve(root, p.transition @ covariance, lower=True)
    return psc.triangular_solve(root, scaled, lower=True, transpose=True).T


@psc.kernel
def steady(p: Model["s o"], tolerance: Float = 1e-6) -> Steady["s o"]:
    """The covariance and the gain of the filter after very many steps.

    The state must be detectable from observations. The discrete algebraic Riccati equation is
    solved by doubling (Anderson 1978): k steps give the filter's covariance after 2**k, until they
    change it by at most `tolerance`, relatively.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> steady(p).gain
        pscdsl.Array([[0.3583]], dtype=float64)

    Cost: at most 2*o*o*o + 6*o*o*s + 4*o*s*s + 834*s*s*s + 304*o*o + 602*s*s flops.
    """
    assert np.finfo(p.start_mean.dtype).bits >= 32
    n = p.transition.shape[0]
    eye = np.eye(n)

    def unfinished(at: tuple[Float["s s"], Float["s s"], Float["s s"], Float, i32]) -> bool_:
        return at[3] > tolerance

    def step(
        at: tuple[Float["s s"], Float["s s"], Float["s s"], Float, i32],
    ) -> tuple[Float["s s"], Float["s s"], Float["s s"], Float, i32]:
        a, g, h, _, steps = at
        # w @ a and w @ g, where w is the inverse of 1 + g @ h
        both = np.linalg.solve(eye + g @ h, np.concatenate([a, g], axis=1))
        wa, wg = both[:, :n], both[:, n:]
        more = symmetric(a.T @ h @ wa)
        following = h + more
        change = np.abs(more).max() / np.abs(following).max()
        return a @ wa, symmetric(g + a @ wg @ a.T), following, change, steps + 1

    precision = p.emission.T @ np.linalg.solve(p.emission_noise, p.emission)
    one = np.ones_like(p.start_mean[0])
    start = (p.transition.T, symmetric(precision), p.transition_noise, one, np.int32(0))
    _, _, covariance, _, steps = psc.while_loop(unfinished, step, start, max_steps=50)
    spread = p.emission @ covariance @ p.emission.T + p.emission_noise
    gain = np.linalg.solve(spread, p.emission @ covariance).T
    return Steady(covariance, gain, steps)


@psc.kernel
def sample(p: Model["s o"], key: Key, steps: psc.Static[int]) -> Trajectory["steps s o"]:
    """States and observations at `steps` times, at least 1; the noises are positive definite.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> sample(p, psc.random.key(0), 4).observations[:, 0]
        array([2.1562, 2.2663, 1.3275, 2.0519])

    Cost: at most o*o*o + 2*o*o*steps + 2*o*s*steps + s*s*s + 4*s*s*steps + 362*o*o + 149*o*steps +
    2*s*s + 149*s*steps flops.
    """
    assert np.finfo(p.start_mean.dtype).bits >= 32
    assert steps >= 1
    first, moves, noises = psc.random.split(key, 3)
    dtype = p.start_mean.dtype
    n, o = p.transition.shape[0], p.emission.shape[0]
    shifts = (
        psc.random.normal(moves, (steps - 1, n), dtype) @ np.linalg.cholesky(p.transition_noise).T
    )
    noise = psc.random.normal(noises, (steps, o), dtype) @ np.linalg.cholesky(p.emission_noise).T

    def step(state: Float["s"], shift: Float["s"]) -> tuple[Float["s"], Float["s"]]:
        following = p.transition @ state + shift
        return following, following

    root = np.linalg.cholesky(p.start_covariance)
    start = p.start_mean + root @ psc.random.normal(first, (n,), dtype)
    _, rest = psc.scan(step, start, shifts)
    states = np.concatenate([start[None], rest])
    return Trajectory(states, states @ p.emission.T + noise)


def symmetric(matrix: Float["*batch s s"]) -> Float["*batch s s"]:
    """The symmetric part of a matrix.

    Examples:
        >>> symmetric(np.array([[1.0, 2.0], [0.0, 3.0]]))
        array([[1., 1.],
               [1., 3.]])
    """
    return (matrix + matrix.mT) / 2
