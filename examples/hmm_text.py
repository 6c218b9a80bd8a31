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
from pscdsl.stdlib.hmm import HMM, log_likelihood
from pscdsl.stdlib.hmm_training import baum_welch

TOLERANCE = 1e-9
"""How far the log-likelihood may be from NumPy's, relative."""
ALPHABET = " abcdefghijklmnopqrstuvwxyz"


@psc.kernel
def fit(
    model: HMM["s o"], text: i32["t"], steps: psc.Static[int]
) -> tuple[HMM["s o"], Float["steps+1"]]:
    """Train on one text."""
    model, likelihoods = baum_welch(model, text[None], steps)
    return model, np.append(likelihoods, log_likelihood(model, text))


fit_all = psc.vmap(fit, in_axes=(0, None, None))
"""The same for several models, along the first axis."""


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


def first_guesses(count: int) -> HMM:
    """So many models, along the first axis, of two states that are nearly the same."""
    rng = np.random.default_rng(0)

    def probabilities(*shape: int) -> np.ndarray:
        weights = rng.uniform(0.9, 1.1, shape)
        logarithms: np.ndarray = np.log(weights / weights.sum(axis=-1, keepdims=True))
        return logarithms

    return HMM(
        probabilities(count, 2),
        probabilities(count, 2, 2),
        probabilities(count, 2, len(ALPHABET)),
    )


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
    models, found = fit_all(first_guesses(guesses), text, steps)
    likelihoods = np.asarray(found)
    best = int(likelihoods[:, -1].argmax())
    tables = (models.log_start, models.log_transition, models.log_emission)
    model = HMM(*(np.asarray(table)[best] for table in tables))

    reference = log_likelihood_in_numpy(model, text)
    np.testing.assert_allclose(likelihoods[best, -1], reference, rtol=TOLERANCE)

    emission = np.exp(np.asarray(model.log_emission))
    transition = np.exp(np.asarray(model.log_transition))
    state_of_letter = emission.argmax(axis=0)
    return Result(
        letters=len(text),
        ends=[float(end) for end in likelihoods[:, -1]],
        likelihoods=likelihoods[best],
        reference=reference,
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
    print(f"(NumPy's forward pass: {result.reference:.2f}, {TOLERANCE:.0e} off is allowed)")
    bits = -after / result.letters / np.log(2)
    print(f"bits for each letter: {bits:.3f}")
    for state in (0, 1):
        print(
            f"state {state} emits [{result.groups[state]}] and is followed by itself "
            f"with probability {result.repeats[state]:.2f}"
        )


if __name__ == "__main__":
    main()
