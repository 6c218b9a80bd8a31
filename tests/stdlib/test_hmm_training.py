"""Training of hidden Markov models against counts over every sequence of states; sampling."""

# What `run` returns is a tree of arrays.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pscdsl as psc
from pscdsl.stdlib import hmm, hmm_training
from tests.stdlib.test_hmm import enumerated, model

pytestmark = pytest.mark.quick_code

COUNTED = [[0, 2, 1, 0, 1], [2, -1, 0, 1, -1], [1, 1, -1, -1, -1]]
"""Sequences of five times with symbols that are missing, at the end and elsewhere."""


def counted(p: Any, seen: list[int]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], float]:
    """The expected counts of one sequence, over all its completions, up to what was seen last."""
    length = 1 + max(i for i, symbol in enumerate(seen) if symbol >= 0)
    states, symbols = p.log_emission.shape
    blanks = [i for i in range(length) if seen[i] < 0]
    start, transition = np.zeros(states), np.zeros((states, states))
    emission, total = np.zeros((states, symbols)), 0.0
    for filling in np.ndindex(*[symbols] * len(blanks)):
        full = np.array(seen[:length])
        full[blanks] = filling
        for path, probability in enumerated(p, full).items():
            total += probability
            start[path[0]] += probability
            for i, state in enumerate(path):
                if i:
                    transition[path[i - 1], state] += probability
                if i not in blanks:
                    emission[state, full[i]] += probability
    return start / total, transition / total, emission / total, float(np.log(total))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counts_are_those_of_all_paths(dtype: Any) -> None:
    p = model(3, 3, dtype)
    rtol = 100 * float(np.finfo(dtype).eps)
    together: list[NDArray[Any]] = [np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3))]
    likelihood = 0.0
    for seen in COUNTED:
        expected = counted(p, seen)
        found = hmm_training.expected_counts(p, np.array(seen))
        tables = (found.start, found.transition, found.emission)
        for table, right in zip(tables, expected[:3], strict=True):
            np.testing.assert_allclose(table, right, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(found.log_likelihood, expected[3], rtol=rtol)
        together = [a + b for a, b in zip(together, expected[:3], strict=True)]
        likelihood += expected[3]
    better, before = hmm_training.improve(p, np.array(COUNTED))
    np.testing.assert_allclose(before, likelihood, rtol=rtol)
    for table, counts in zip(
        (better.log_start, better.log_transition, better.log_emission), together, strict=True
    ):
        shares = counts / counts.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(np.exp(table), shares, rtol=rtol, atol=rtol)


def test_training_never_loses_and_stays_finite() -> None:
    p = model(3, 3, np.float64)
    found, likelihoods = hmm_training.baum_welch(p, np.array(COUNTED), 30)
    assert np.all(np.diff(np.asarray(likelihoods)) > -1e-9)
    assert np.asarray(likelihoods)[-1] > np.asarray(likelihoods)[0] + 1
    for table in (found.log_start, found.log_transition, found.log_emission):
        np.testing.assert_allclose(np.exp(np.asarray(table)).sum(axis=-1), 1)


def test_a_state_that_never_occurs_keeps_its_row() -> None:
    with np.errstate(divide="ignore"):
        p: Any = hmm.HMM(
            np.log([1.0, 0.0]), np.log([[1.0, 0.0], [0.3, 0.7]]), np.log([[0.5, 0.5], [0.2, 0.8]])
        )
    better, _ = hmm_training.improve(p, np.array([[0, 1, 1, 1]]))
    np.testing.assert_allclose(np.exp(better.log_transition), np.array([[1, 0], [0.3, 0.7]]))
    np.testing.assert_allclose(np.exp(better.log_emission), np.array([[0.25, 0.75], [0.2, 0.8]]))


def test_samples_and_the_stationary_distribution() -> None:
    p = model(3, 4, np.float32)
    steps = 20_000
    drawn = hmm.sample(p, psc.random.key(3), steps)
    states, symbols = np.asarray(drawn.states), np.asarray(drawn.observations)
    share = np.exp(p.log_transition)
    stationary = np.asarray(hmm.stationary(p))
    np.testing.assert_allclose(stationary @ share, stationary, rtol=1e-5)
    np.testing.assert_allclose(stationary.sum(), 1, rtol=1e-6)
    np.testing.assert_allclose(np.bincount(states) / steps, stationary, atol=0.03)
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (states[:-1], states[1:]), 1)
    np.testing.assert_allclose(pairs / pairs.sum(axis=1, keepdims=True), share, atol=0.03)
    emitted = np.zeros((3, 4))
    np.add.at(emitted, (states, symbols), 1)
    shares = emitted / emitted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, np.exp(p.log_emission), atol=0.03)
