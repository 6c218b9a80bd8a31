"""Training of hidden Markov models by expectation maximisation, on one sequence or many.

The method is that of Baum, Petrie, Soules, Weiss (1970), with the notation of Rabiner (1989): count
the events that the model expects, then take relative frequencies. No step makes the observations
less probable. It finds a local optimum, so start from several models.
"""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import Float, Int
from pscdsl.stdlib.activations import softmax
from pscdsl.stdlib.hmm import HMM, backward, forward, log_emissions


class Counts(psc.Record, dims="s o"):
    """Expected counts of states, transitions and emissions; those of several sequences add up.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> counts = expected_counts(p, np.array([0, 0, 1, 1, 1]))
        >>> counts.start, np.sum(counts.transition), np.sum(counts.emission)
        (pscdsl.Array([0.7367, 0.2633], dtype=float64), np.float64(4.0), np.float64(5.0))
    """

    start: Float["s"]
    """Counts of the first state."""
    transition: Float["s s"]
    """Counts of transitions from a state to the next (last axis)."""
    emission: Float["s o"]
    """Counts of symbols (last axis) observed in a state."""
    log_likelihood: Float
    """The log-likelihood of the observations."""


@psc.kernel
def expected_counts(p: HMM["s o"], observations: Int["t"]) -> Counts["s o"]:
    """The expected counts of one sequence of observations, which must be possible.

    Negative numbers are missing observations. Missing observations at the end, as in the shorter
    ones of several sequences, do not count.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> expected_counts(p, np.array([0, 0, 1, 1, 1])).transition
        pscdsl.Array([[0.9803, 0.6973],
                      [0.0515, 2.2709]], dtype=float64)

    Cost: at most 37*s*s*t + 54*s*t + 39*t flops.
    """
    before, after = forward(p, observations), backward(p, observations)
    states = softmax(before + after)
    seen = observations >= 0
    going_on = np.flip(np.cumsum(np.flip(seen))) > 0
    ahead = log_emissions(p, observations) + after
    joint = before[:-1, :, None] + p.log_transition + ahead[1:, None, :]
    total = psc.special.logsumexp(joint, axis=(1, 2), keepdims=True)  # of each time: f32 drifts
    pairs = np.where(going_on[1:, None, None], np.exp(joint - total), 0)
    emission = psc.update(
        np.zeros_like(p.log_emission.T),
        np.maximum(observations, 0),
        np.where(seen[:, None], states, 0),
        combine="add",
    )
    return Counts(states[0], pairs.sum(axis=0), emission.T, psc.special.logsumexp(before[-1]))


@psc.kernel
def most_likely(counts: Counts["s o"], p: HMM["s o"]) -> HMM["s o"]:
    """The model under which these counts are most probable: relative frequencies.

    A state without any counts keeps its probabilities in `p`.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> better = most_likely(expected_counts(p, np.array([0, 0, 1, 1, 1])), p)
        >>> np.exp(better.log_emission)
        array([[0.7812, 0.2188],
               [0.1914, 0.8086]])

    Cost: 11*o*s + 11*s*s + 15*s + 2 flops.
    """
    return HMM(
        log_start=_log_frequencies(counts.start, p.log_start),
        log_transition=_log_frequencies(counts.transition, p.log_transition),
        log_emission=_log_frequencies(counts.emission, p.log_emission),
    )


@psc.kernel
def improve(p: HMM["s o"], sequences: Int["n t"]) -> tuple[HMM["s o"], Float]:
    """One step of expectation maximisation, and the log-likelihood of all sequences before it.

    The log-likelihood, in nats, does not fall from step to step.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> sequences = np.array([[0, 0, 1, 1, 1], [0, 0, 0, 1, 1]])
        >>> better, before = improve(p, sequences)
        >>> before, improve(better, sequences)[1]
        (pscdsl.Array(-7.1147, dtype=float64), pscdsl.Array(-5.105, dtype=float64))

    Cost: at most 37*n*s*s*t + n*o*s + 96*n*s*t + 26*o*s + 11*s*s flops.
    """
    expected = psc.vmap(expected_counts, in_axes=(None, 0))(p, sequences)
    counts = Counts(
        expected.start.sum(axis=0),
        expected.transition.sum(axis=0),
        expected.emission.sum(axis=0),
        expected.log_likelihood.sum(),
    )
    return most_likely(counts, p), counts.log_likelihood


@psc.kernel
def baum_welch(
    p: HMM["s o"], sequences: Int["n t"], steps: psc.Static[int] = 100
) -> tuple[HMM["s o"], Float["steps"]]:
    """Steps of expectation maximisation from `p`, and the log-likelihood before each.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> trained, log_likelihoods = baum_welch(p, np.array([[0, 0, 1, 1], [0, 0, 0, 1]]), 20)
        >>> np.round(log_likelihoods[[0, 1, -1]], 3)
        array([-5.845, -4.638, -3.339])

    Cost: at most 37*n*s*s*steps*t + n*o*s*steps + 96*n*s*steps*t + 26*o*s*steps + 11*s*s*steps
    flops.
    """

    def step(p: HMM["s o"], _: None) -> tuple[HMM["s o"], Float]:
        return improve(p, sequences)

    return psc.scan(step, p, length=steps)


def _log_frequencies(counts: Float["*batch k"], otherwise: Float["*batch k"]) -> Float["*batch k"]:
    """The logarithms of the shares of a row; those given where the row is 0."""
    total = counts.sum(axis=-1, keepdims=True)
    counted = total > 0
    return np.where(counted, np.log(counts / np.where(counted, total, 1)), otherwise)
