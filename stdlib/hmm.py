"""Hidden Markov models with finitely many states and symbols, in logarithms.

A negative number in place of a symbol is an observation that is missing; sequences of several
lengths fill the rows of one array if the shorter ones end with these.  The recursions are those of
Rabiner, "A tutorial on hidden Markov models and selected applications in speech recognition",
Proceedings of the IEEE 77 (1989), with sums of probabilities done by `psc.special.logsumexp`, so
that long sequences do not vanish.
"""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import Float, Int, Key, i32
from pscdsl.stdlib.activations import softmax
from pscdsl.stdlib.precision import widened


class HMM(psc.Record, dims="s o"):
    """Logarithms of probabilities; -inf for impossible events.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> log_likelihood(p, np.array([0, 0, 1]))
        pscdsl.Array(-2.3413, dtype=float64)
    """

    log_start: Float["s"]
    """Log-probabilities of the first state."""
    log_transition: Float["s s"]
    """Log-probabilities of the next state (last axis) given the current one."""
    log_emission: Float["s o"]
    """Log-probabilities of the observed symbol (last axis) given the state."""


class StatePath(psc.Record, dims="t"):
    """A most probable sequence of states.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> path = viterbi(p, np.array([0, 0, 1, 1, 1]))
        >>> path.states, path.log_probability
        (pscdsl.Array([0, 0, 1, 1, 1], dtype=int32), pscdsl.Array(-4.4275, dtype=float64))
    """

    states: i32["t"]
    """State numbers in 0..s-1."""
    log_probability: Float
    """The log-probability of these states together with the observations."""


class Sample(psc.Record, dims="t"):
    """States and observations drawn from a model.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> drawn = sample(p, psc.random.key(0), 8)
        >>> drawn.states
        pscdsl.Array([0, 0, 0, 0, 0, 0, 0, 0], dtype=int32)
    """

    states: i32["t"]
    """State numbers in 0..s-1."""
    observations: i32["t"]
    """Symbol numbers in 0..o-1."""


@psc.kernel
def log_emissions(p: HMM["s o"], observations: Int["t"]) -> Float["t s"]:
    """The log-probability of each observation in each state; symbols are in 0..o-1.

    0 where the observation is missing, that is negative.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> np.exp(log_emissions(p, np.array([0, 0, 1])))
        array([[0.8, 0.2],
               [0.8, 0.2],
               [0.2, 0.8]])

    Cost: s*t + 5*t flops.
    """
    seen = observations >= 0
    return np.where(seen[:, None], p.log_emission.T[np.maximum(observations, 0)], 0)


@psc.kernel
def log_likelihood(p: HMM["s o"], observations: Int["t"]) -> Float:
    """The log-probability of the observations, in nats, summed over all states.

    -inf if they are impossible. By the forward recursion (Baum, Petrie, Soules, Weiss 1970).

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> log_likelihood(p, np.array([0, 0, 1, 1, 1]))
        pscdsl.Array(-3.5574, dtype=float64)

    Cost: at most 8*s*s*t + 19*s*t + 5*t + 17 flops.
    """
    return psc.special.logsumexp(forward(p, observations)[-1])


@psc.kernel
def forward(p: HMM["s o"], observations: Int["t"]) -> Float["t s"]:
    """Log-probabilities of the observations up to each time together with the state then.

    The forward recursion (Baum, Petrie, Soules, Weiss 1970), in logarithms.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> np.exp(forward(p, np.array([0, 0, 1])))
        array([[0.4   , 0.1   ],
               [0.296 , 0.026 ],
               [0.0538, 0.0424]])

    Cost: at most 8*s*s*t + 19*s*t + 5*t flops.
    """
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
    """Log-probabilities of the observations after each time, given the state then.

    The backward recursion (Baum, Petrie, Soules, Weiss 1970), in logarithms; 0 at the last time.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> np.exp(backward(p, np.array([0, 0, 1])))
        array([[0.202, 0.154],
               [0.26 , 0.74 ],
               [1.   , 1.   ]])

    Cost: at most 9*s*s*t + 18*s*t + 5*t flops.
    """
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

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> posterior(p, np.array([0, 0, 1]))
        pscdsl.Array([[0.8399, 0.1601],
                      [0.8   , 0.2   ],
                      [0.5593, 0.4407]], dtype=float64)

    Cost: at most 17*s*s*t + 50*s*t + 10*t flops.
    """
    return softmax(forward(p, observations) + backward(p, observations))


@psc.kernel
def posterior_transitions(p: HMM["s o"], observations: Int["t"]) -> Float["t-1 s s"]:
    """The probability of each pair of states at neighbouring times, given all observations.

    Entry [i, j, k] is that of state j at time i and state k at time i + 1.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> posterior_transitions(p, np.array([0, 1]))
        pscdsl.Array([[[0.4045, 0.1798],
                       [0.0112, 0.4045]]], dtype=float64)

    Cost: at most 28*s*s*t + 39*s*t + 15*t + 17 flops.
    """
    before = forward(p, observations)
    after = log_emissions(p, observations) + backward(p, observations)
    joint = before[:-1, :, None] + p.log_transition + after[1:, None, :]
    return np.exp(joint - psc.special.logsumexp(before[-1]))


@psc.kernel
def viterbi(p: HMM["s o"], observations: Int["t"]) -> StatePath["t"]:
    """The most probable states given the observations (Viterbi 1967); the first of equals.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> viterbi(p, np.array([0, 0, 1, 1, 1])).states
        pscdsl.Array([0, 0, 1, 1, 1], dtype=int32)

    Cost: at most 3*s*s*t + 2*s*t + 2*s + 8*t flops.
    """
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
    """The log-probability of these states together with these observations.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> path_log_probability(p, np.array([0, 0, 1], np.int32), np.array([0, 0, 1]))
        pscdsl.Array(-3.7705, dtype=float64)

    Cost: s*t + 16*t - 2 flops.
    """
    steps = p.log_transition[states[:-1], states[1:]]
    emissions = np.take_along_axis(log_emissions(p, observations), states[:, None], axis=1)
    return p.log_start[states[0]] + steps.sum() + emissions.sum()


@psc.kernel
def stationary(p: HMM["s o"]) -> Float["s"]:
    """The probability of each state after very many steps; transitions leave it as it is.

    Every state can be reached from every other one, else it is not unique, and the result NaN or
    of no use.  From one linear system (Paige, Styan, Wachter 1975).

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.3, 0.7]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> stationary(p)
        pscdsl.Array([0.75, 0.25], dtype=float64)

    Cost: 13*s*s + 2*s*s*s//3 flops.
    """
    n = p.log_start.shape[0]
    # Probabilities w with w @ transition = w and sum 1 are those with w @ matrix = (1, …, 1).
    matrix: Float["s s"] = np.eye(n) - np.exp(widened(p.log_transition)) + 1
    ones: Float["s"] = np.ones_like(matrix[0])
    weights = np.linalg.solve(matrix.T, ones)
    return weights.astype(p.log_start.dtype)


@psc.kernel
def sample(p: HMM["s o"], key: Key, steps: psc.Static[int]) -> Sample["steps"]:
    """States and observations at `steps` times, at least 1, drawn from the model.

    Examples:
        >>> a, b = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.8, 0.2], [0.2, 0.8]])
        >>> p = HMM(np.log([0.5, 0.5]), a, b)
        >>> sample(p, psc.random.key(0), 8).observations
        pscdsl.Array([0, 0, 0, 1, 0, 0, 0, 1], dtype=int32)

    Cost: 144*o*steps + 144*s*steps + 126*steps + 237 flops.
    """
    assert steps >= 1
    first, transitions, emissions = psc.random.split(key, 3)
    start = psc.random.categorical(first, p.log_start)

    def step(state: i32, key: Key) -> tuple[i32, i32]:
        following = psc.random.categorical(key, p.log_transition[state])
        return following, following

    _, rest = psc.scan(step, start, psc.random.split(transitions, steps - 1))
    states = np.concatenate([np.reshape(start, 1), rest])
    return Sample(states, psc.random.categorical(emissions, p.log_emission[states]))
