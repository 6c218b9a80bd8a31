"""A hidden Markov model reads English, letter by letter, and finds out about vowels by itself.

The model has two states and emits letters and spaces.  Each step of expectation maximisation
(Baum, Welch) makes the text more probable; nothing tells the model what a vowel is.  Training finds
a local optimum, so it starts from several guesses and the most probable model is kept.  The text
is prose from the descriptions that scikit-learn gives of its datasets.
"""

# scikit-learn comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

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

    def step(model: HMM["s o"], _: i32) -> tuple[HMM["s o"], Float]:
        return improve(model, text), log_likelihood(model, text)

    return psc.scan(step, model, steps)


class Result(NamedTuple):
    """What training achieved."""

    letters: int
    """In the text."""
    ends: list[float]
    """The log-likelihood of the text after training, for each first guess."""
    likelihoods: np.ndarray
    """For the best of them, before each step of training and after the last."""
    reference: float
    """The last of them as NumPy computes it."""
    groups: list[str]
    """The letters that each state emits more often than the other."""
    repeats: list[float]
    """How probable it is that each state is followed by itself."""


def read_text() -> str:
    """Real prose: lower-case words with one space between any two."""
    loaders = (load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine)
    datasets: list[Any] = [load() for load in loaders]
    descriptions = " ".join(dataset.DESCR for dataset in datasets)
    phrases = re.findall(r"[A-Za-z][a-z]+(?:,?\s+[a-z]+){3,}", descriptions)
    return re.sub("[^a-z]+", " ", " ".join(phrases).lower())


def encode(text: str) -> np.ndarray:
    """The place of each letter in the alphabet."""
    return np.array([ALPHABET.index(letter) for letter in text], np.int32)


def first_guess(seed: int) -> HMM:
    """Two states that are nearly the same."""
    rng = np.random.default_rng(seed)

    def probabilities(*shape: int) -> np.ndarray:
        weights = rng.uniform(0.9, 1.1, shape)
        logarithms: np.ndarray = np.log(weights / weights.sum(axis=-1, keepdims=True))
        return logarithms

    return HMM(probabilities(2), probabilities(2, 2), probabilities(2, len(ALPHABET)))


def log_likelihood_in_numpy(model: HMM, text: np.ndarray) -> float:
    """The forward pass with probabilities, scaled to sum to 1 after each letter."""
    start, transition, emission = (
        np.exp(np.asarray(table))
        for table in (model.log_start, model.log_transition, model.log_emission)
    )
    total, message = 0.0, start * emission[:, text[0]]
    for letter in text[1:]:
        total += np.log(message.sum())
        message = (message / message.sum()) @ transition * emission[:, letter]
    return float(total + np.log(message.sum()))


def run(guesses: int = 8, steps: int = 150) -> Result:
    """Train on the text, from each guess."""
    text = encode(read_text())
    numbers = np.arange(steps, dtype=np.int32)
    trained = [fit(first_guess(seed), text, numbers) for seed in range(guesses)]
    ends = [float(log_likelihood(model, text)) for model, _ in trained]
    model, likelihoods = trained[int(np.argmax(ends))]

    emission = np.exp(np.asarray(model.log_emission))
    transition = np.exp(np.asarray(model.log_transition))
    state_of_letter = emission.argmax(axis=0)
    return Result(
        letters=len(text),
        ends=ends,
        likelihoods=np.append(likelihoods, max(ends)),
        reference=log_likelihood_in_numpy(model, text),
        groups=[
            "".join(letter for letter, of in zip(ALPHABET, state_of_letter, strict=True) if of == s)
            for s in (0, 1)
        ],
        repeats=[float(probability) for probability in transition.diagonal()],
    )


def main() -> None:
    """Print what training achieved."""
    result = run()
    before, after = result.likelihoods[[0, -1]]
    print(f"{result.letters} letters, {len(result.likelihoods) - 1} steps of training")
    print("log-likelihood by first guess:", " ".join(f"{end:.0f}" for end in result.ends))
    print(f"the best: {before:.2f} before training, {after:.2f} after", end=" ")
    print(f"(NumPy's forward pass: {result.reference:.2f})")
    bits = -after / result.letters / np.log(2)
    print(f"bits for each letter: {bits:.3f}")
    for state in (0, 1):
        print(
            f"state {state} emits [{result.groups[state]}] and is followed by itself "
            f"with probability {result.repeats[state]:.2f}"
        )


if __name__ == "__main__":
    main()
