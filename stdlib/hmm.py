"""Hidden Markov models with finitely many states and symbols, in logarithms.

The recursions are those of Rabiner, "A tutorial on hidden Markov models and selected
applications in speech recognition", Proceedings of the IEEE 77 (1989), with sums of probabilities
done by `psc.special.logsumexp`, so that long sequences do not vanish.
"""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import Float, Int, i32
from pscdsl.stdlib.activations import softmax


class HMM(psc.Record, dims="s o"):
    """Logarithms of probabilities; -inf for what cannot happen."""

    log_start: Float["s"]
    """Of the first state."""
    log_transition: Float["s s"]
    """Of the next state (last axis) given the current one."""
    log_emission: Float["s o"]
    """Of the observed symbol (last axis) given the state."""


class StatePath(psc.Record, dims="t"):
    """A most probable sequence of states."""

    states: i32["t"]
    log_probability: Float
    """Of these states together with the observations."""


@psc.kernel
def log_emissions(p: HMM["s o"], observations: Int["t"]) -> Float["t s"]:
    """The log-probability of each observation in each state; symbols are in 0..o-1."""
    return p.log_emission.T[observations]


@psc.kernel
def log_likelihood(p: HMM["s o"], observations: Int["t"]) -> Float:
    """The log-probability of the observations, whatever the states were."""
    return psc.special.logsumexp(forward(p, observations)[-1])


@psc.kernel
def forward(p: HMM["s o"], observations: Int["t"]) -> Float["t s"]:
    """Log-probabilities of the observations up to each time together with the state then."""
    emissions = log_emissions(p, observations)

    def step(message: Float["s"], emission: Float["s"]) -> tuple[Float["s"], Float["s"]]:
        joint = message[:, None] + p.log_transition
        message = psc.special.logsumexp(joint, axis=0) + emission
        return message, message

    first = p.log_start + emissions[0]
    _, rest = psc.scan(step, first, emissions[1:])
    messages = np.concatenate([first[None], rest])
    return messages


@psc.kernel
def backward(p: HMM["s o"], observations: Int["t"]) -> Float["t s"]:
    """Log-probabilities of the observations after each time, given the state then."""
    emissions = log_emissions(p, observations)

    def step(message: Float["s"], emission: Float["s"]) -> tuple[Float["s"], Float["s"]]:
        message = psc.special.logsumexp(p.log_transition + emission + message, axis=1)
        return message, message

    last = np.zeros_like(p.log_start)
    _, rest = psc.scan(step, last, emissions[1:], reverse=True)
    messages = np.concatenate([rest, last[None]])
    return messages


@psc.kernel
def posterior(p: HMM["s o"], observations: Int["t"]) -> Float["t s"]:
    """The probability of each state at each time, given all observations; rows sum to 1.

    The observations must be possible.
    """
    return softmax(forward(p, observations) + backward(p, observations))


@psc.kernel
def posterior_transitions(p: HMM["s o"], observations: Int["t"]) -> Float["t-1 s s"]:
    """The probability of each pair of states at neighbouring times, given all observations.

    Entry [i, j, k] is that of state j at time i and state k at time i + 1.
    """
    before = forward(p, observations)
    after = log_emissions(p, observations) + backward(p, observations)
    joint = before[:-1, :, None] + p.log_transition + after[1:, None, :]
    return np.exp(joint - psc.special.logsumexp(before[-1]))


@psc.kernel
def viterbi(p: HMM["s o"], observations: Int["t"]) -> StatePath["t"]:
    """The most probable states given the observations (Viterbi 1967); the first of equals."""
    emissions = log_emissions(p, observations)

    def step(score: Float["s"], emission: Float["s"]) -> tuple[Float["s"], Int["s"]]:
        candidates = score[:, None] + p.log_transition
        return candidates.max(axis=0) + emission, candidates.argmax(axis=0)

    def follow(state: Int, origins: Int["s"]) -> tuple[Int, Int]:
        previous = origins[state]
        return previous, previous

    score, origins = psc.scan(step, p.log_start + emissions[0], emissions[1:])
    last = score.argmax()
    _, states = psc.scan(follow, last, origins, reverse=True)
    path = np.concatenate([states, np.reshape(last, 1)])
    return StatePath(path.astype(np.int32), score.max())


@psc.kernel
def path_log_probability(p: HMM["s o"], states: i32["t"], observations: Int["t"]) -> Float:
    """The log-probability of these states together with these observations."""
    steps = p.log_transition[states[:-1], states[1:]]
    emissions = p.log_emission[states, observations]
    return p.log_start[states[0]] + steps.sum() + emissions.sum()
