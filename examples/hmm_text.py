"""A hidden Markov model reads English, letter by letter, and finds out about vowels by itself.

The model has two states and emits letters and spaces.  Each step of expectation maximisation
(Baum, Welch) makes the text more probable; nothing tells the model what a vowel is.  The text is
the prose of the descriptions that scikit-learn gives of its datasets.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import pscdsl as psc
from pscdsl import Float, i32
from pscdsl.stdlib.hmm import HMM, log_likelihood, posterior, posterior_transitions

ALPHABET = " abcdefghijklmnopqrstuvwxyz"


@psc.kernel
def improve(model: HMM["s o"], text: i32["t"]) -> HMM["s o"]:
    """One step of expectation maximisation: count what the model expects to have happened."""
    assert text.shape[0] >= 2
    states = posterior(model, text)
    transitions = posterior_transitions(model, text).sum(axis=0)
    emissions = psc.update(np.zeros_like(model.log_emission.T), text, states, combine="add").T
    return HMM(
        log_start=np.log(states[0]),
        log_transition=np.log(transitions / transitions.sum(axis=1, keepdims=True)),
        log_emission=np.log(emissions / emissions.sum(axis=1, keepdims=True)),
    )


@psc.kernel
def fit(model: HMM["s o"], text: i32["t"], steps: i32["k"]) -> tuple[HMM["s o"], Float["k"]]:
    """The model after as many steps, and the log-likelihood before each of them."""
    assert text.shape[0] >= 2

    def step(model, _):
        return improve(model, text), log_likelihood(model, text)

    return psc.scan(step, model, steps)
