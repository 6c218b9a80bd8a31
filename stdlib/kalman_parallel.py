"""Kalman filter and smoother whose times are combined in any grouping: logarithmic depth.

They give the results of `kalman_filter` and `smooth` of `pscdsl.stdlib.kalman` by several times as
many operations, and are for devices that do many things in parallel (Särkkä, García-Fernández,
"Temporal parallelization of Bayesian smoothers", IEEE Transactions on Automatic Control 66, 2021).
"""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import Float, bool_
from pscdsl.stdlib.kalman import (
    Filtered,
    Gaussian,
    Gaussians,
    Model,
    emission_of,
    predict,
    smoother_gain,
    symmetric,
    update,
)


class _Step(psc.Record, dims="s"):
    """A stretch of times: the state at its end given the one before it, and its likelihood.

    The state is normal with mean `a @ before + b` and covariance `c`; as a function of the state
    before, the observations have density `exp(eta @ before - before @ j @ before / 2)`, up to a
    factor.
    """

    a: Float["s s"]
    b: Float["s"]
    c: Float["s s"]
    eta: Float["s"]
    j: Float["s s"]


class _Back(psc.Record, dims="s"):
    """A stretch of times: the state at its start is normal(e @ after + g, l)."""

    e: Float["s s"]
    g: Float["s"]
    l: Float["s s"]  # noqa: E741 - the letter of the paper


@psc.kernel
def parallel_filter(p: Model["s o"], observations: Float["t o"]) -> Filtered["t s"]:
    """The states given the observations so far, and the log-density of each.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> parallel_filter(p, np.array([[1.0], [1.2], [0.8]])).mean[:, 0]
        array([0.6667, 0.9143, 0.8687])

    Cost: at most o*o*o*t + 10*o*o*s*t + 12*o*s*s*t + 32*s*s*s*t + o*o*o + 37*o*o*t + 16*o*s*t +
    34*s*s*t flops.
    """
    assert np.finfo(p.start_mean.dtype).bits >= 32
    times = np.arange(observations.shape[0])
    steps = psc.vmap(_step, in_axes=(None, 0, 0))(p, times == 0, observations)
    every = psc.associative_scan(_joined, steps)

    def rated(mean: Float["s"], covariance: Float["s s"], observation: Float["o"]) -> Float:
        return update(p, predict(p, Gaussian(mean, covariance)), observation)[1]

    start = Gaussian(p.start_mean, p.start_covariance)
    first = update(p, start, observations[0])[1]
    rest = psc.vmap(rated)(every.b[:-1], every.c[:-1], observations[1:])
    log_densities = np.concatenate([first[None], rest])
    return Filtered(every.b, every.c, log_densities)


@psc.kernel
def parallel_smooth(p: Model["s o"], observations: Float["t o"]) -> Gaussians["t s"]:
    """The states given all observations; the covariances must satisfy the conditions of `smooth`.

    Examples:
        >>> one = np.eye(1)
        >>> p = Model(one, 0.1 * one, one, 0.5 * one, start_mean=np.zeros(1), start_covariance=one)
        >>> parallel_smooth(p, np.array([[1.0], [1.2], [0.8]])).mean[:, 0]
        array([0.8326, 0.8824, 0.8687])

    Cost: at most o*o*o*t + 8*o*o*s*t + 10*o*s*s*t + 50*s*s*s*t + 9*o*o*t + 14*o*s*t + 45*s*s*t
    flops.
    """
    assert np.finfo(p.start_mean.dtype).bits >= 32
    forward = parallel_filter(p, observations)

    def back(mean: Float["s"], covariance: Float["s s"]) -> _Back["s"]:
        gain = smoother_gain(p, covariance)
        rest = np.eye(p.transition.shape[0]) - gain @ p.transition
        spread = rest @ covariance @ rest.T + gain @ p.transition_noise @ gain.T
        return _Back(gain, rest @ mean, symmetric(spread))

    steps = psc.vmap(back)(forward.mean[:-1], forward.covariance[:-1])
    # After the last time nothing is known.
    e = np.concatenate([steps.e, np.zeros_like(p.transition)[None]])
    g = np.concatenate([steps.g, forward.mean[-1:]])
    l = np.concatenate([steps.l, forward.covariance[-1:]])  # noqa: E741
    every = psc.associative_scan(_joined_back, _Back(e, g, l), reverse=True)
    return Gaussians(every.g, every.l)


def _step(p: Model["s o"], is_first: bool_, observation: Float["o"]) -> _Step["s"]:
    """One time with its observation; the first state does not depend on earlier ones."""
    transition = np.where(is_first, 0, p.transition)
    covariance = np.where(is_first, p.start_covariance, p.transition_noise)
    mean = np.where(is_first, p.start_mean, 0)

    emission, noise = emission_of(p, observation)
    difference = np.where(np.isnan(observation), 0, observation) - emission @ mean
    spread = emission @ covariance @ emission.T + noise
    gain = np.linalg.solve(spread, emission @ covariance).T
    rest = np.eye(mean.shape[0]) - gain @ emission
    slope = emission @ transition
    weighed = np.linalg.solve(spread, slope).T
    return _Step(
        rest @ transition,
        mean + gain @ difference,
        symmetric(rest @ covariance @ rest.T + gain @ noise @ gain.T),
        weighed @ difference,
        symmetric(weighed @ slope),
    )


def _joined(x: _Step["s"], y: _Step["s"]) -> _Step["s"]:
    """One stretch after another."""
    n = x.b.shape[0]
    both = np.linalg.solve(
        np.eye(n) + x.c @ y.j,
        np.concatenate([x.a, x.c, (x.b + x.c @ y.eta)[:, None]], axis=1),
    )
    a, c, b = both[:, :n], both[:, n : 2 * n], both[:, 2 * n]
    back = np.linalg.solve(
        np.eye(n) + y.j @ x.c,
        np.concatenate([y.j @ x.a, (y.eta - y.j @ x.b)[:, None]], axis=1),
    )
    return _Step(
        y.a @ a,
        y.a @ b + y.b,
        symmetric(y.a @ c @ y.a.T) + y.c,
        x.a.T @ back[:, n] + x.eta,
        symmetric(x.a.T @ back[:, :n]) + x.j,
    )


def _joined_back(y: _Back["s"], x: _Back["s"]) -> _Back["s"]:
    """One stretch, x, before another: the later one comes first."""
    return _Back(x.e @ y.e, x.e @ y.g + x.g, symmetric(x.e @ y.l @ x.e.T) + x.l)
