"""Hidden Markov models against enumeration of every sequence of states."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pscdsl.stdlib import hmm

pytestmark = pytest.mark.quick_code

DTYPES = [np.float32, np.float64]
SIZES = [(1, 1, 1), (2, 3, 1), (3, 2, 2), (2, 2, 6), (4, 3, 5)]
"""States, symbols, time steps."""


def run(kernel: Callable[..., Any], *args: Any) -> NDArray[Any]:
    """The result of a kernel as a NumPy array."""
    return np.asarray(kernel(*args))


def model(states: int, symbols: int, dtype: Any, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)

    def logs(*shape: int) -> NDArray[Any]:
        weights = random.gamma(1.0, size=shape)
        return np.asarray(np.log(weights / weights.sum(axis=-1, keepdims=True)), dtype)

    return hmm.HMM(logs(states), logs(states, states), logs(states, symbols))


def observed(symbols: int, steps: int, seed: int = 1) -> NDArray[Any]:
    return np.asarray(np.random.default_rng(seed).integers(0, symbols, steps))


def enumerated(p: Any, seen: NDArray[Any]) -> dict[tuple[int, ...], float]:
    """The probability of each sequence of states together with what was seen."""
    start, transition, emission = (
        np.exp(np.asarray(x, np.float64)) for x in (p.log_start, p.log_transition, p.log_emission)
    )
    found: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(len(start)), repeat=len(seen)):
        probability = start[path[0]] * emission[path[0], seen[0]]
        for i in range(1, len(seen)):
            probability *= transition[path[i - 1], path[i]] * emission[path[i], seen[i]]
        found[path] = float(probability)
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES)
def test_against_enumeration(sizes: tuple[int, int, int], dtype: Any) -> None:
    states, symbols, steps = sizes
    p, seen = model(states, symbols, dtype), observed(symbols, steps)
    paths = enumerated(p, seen)
    total = sum(paths.values())
    rtol = 100 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(run(hmm.log_likelihood, p, seen), np.log(total), rtol=rtol)

    marginals = np.zeros((steps, states))
    pairs = np.zeros((steps - 1, states, states))
    for path, probability in paths.items():
        for i, state in enumerate(path):
            marginals[i, state] += probability / total
            if i:
                pairs[i - 1, path[i - 1], state] += probability / total
    np.testing.assert_allclose(run(hmm.posterior, p, seen), marginals, rtol=rtol, atol=rtol)
    if steps > 1:
        found = run(hmm.posterior_transitions, p, seen)
        np.testing.assert_allclose(found, pairs, rtol=rtol, atol=rtol)

    best = max(paths, key=lambda path: paths[path])
    found_path = hmm.viterbi(p, seen)
    np.testing.assert_array_equal(found_path.states, best)
    np.testing.assert_allclose(found_path.log_probability, np.log(paths[best]), rtol=rtol)
    np.testing.assert_allclose(
        run(hmm.path_log_probability, p, found_path.states, seen), np.log(paths[best]), rtol=rtol
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_messages_agree_at_every_time(dtype: Any) -> None:
    p, seen = model(3, 4, dtype), observed(4, 50)
    joint = run(hmm.forward, p, seen) + run(hmm.backward, p, seen)
    at_each_time = np.logaddexp.reduce(joint.astype(np.float64), axis=-1)
    likelihood = run(hmm.log_likelihood, p, seen)
    np.testing.assert_allclose(at_each_time, likelihood, rtol=50 * float(np.finfo(dtype).eps))
    np.testing.assert_allclose(run(hmm.posterior, p, seen).sum(axis=-1), 1, rtol=1e-5)


def test_pairs_have_the_marginals() -> None:
    p, seen = model(3, 4, np.float64), observed(4, 20)
    pairs, marginals = run(hmm.posterior_transitions, p, seen), run(hmm.posterior, p, seen)
    np.testing.assert_allclose(pairs.sum(axis=2), marginals[:-1], rtol=1e-9)
    np.testing.assert_allclose(pairs.sum(axis=1), marginals[1:], rtol=1e-9)


def test_likelihoods_are_a_distribution() -> None:
    p = model(2, 3, np.float64)
    sequences = itertools.product(range(3), repeat=4)
    total = sum(float(np.exp(run(hmm.log_likelihood, p, np.array(each)))) for each in sequences)
    assert total == pytest.approx(1)


def test_long_sequences_do_not_vanish() -> None:
    p, seen = model(3, 4, np.float32), observed(4, 5000)
    wide = model(3, 4, np.float64)
    found = run(hmm.log_likelihood, p, seen)
    assert np.exp(found) == 0
    np.testing.assert_allclose(found, run(hmm.log_likelihood, wide, seen), rtol=1e-4)


def test_impossible_events() -> None:
    with np.errstate(divide="ignore"):
        log_start, identity = np.log([1.0, 0.0]), np.log(np.eye(2))
    p = hmm.HMM(log_start, identity, identity)  # stays in state 0 and shows it
    possible, impossible = np.array([0, 0, 0]), np.array([0, 1, 0])
    assert run(hmm.log_likelihood, p, possible) == 0
    assert run(hmm.log_likelihood, p, impossible) == -np.inf
    np.testing.assert_array_equal(hmm.viterbi(p, possible).states, [0, 0, 0])
    assert np.asarray(hmm.viterbi(p, impossible).log_probability) == -np.inf
    np.testing.assert_array_equal(run(hmm.posterior, p, possible), [[1, 0]] * 3)
