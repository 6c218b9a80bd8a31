"""A hidden Markov model, trained by expectation maximisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Sequences of seven symbols: seven sequences, symbols and states, or two, five and three."""
    rng = np.random.default_rng(0)
    n, s, o, t = (2, 3, 5, 7) if differ else (7, 7, 7, 7)

    def probabilities(*shape: int) -> np.ndarray:
        weights = rng.uniform(0.1, 1, shape)
        logarithms: np.ndarray = np.log(weights / weights.sum(axis=-1, keepdims=True))
        return logarithms.astype(np.float32)

    p = m.HMM(probabilities(s), probabilities(s, s), probabilities(s, o))
    sequences = rng.integers(0, o, (n, t)).astype(np.int32)
    return [("baum_welch", [p, sequences, 3]), ("fit", [p, sequences[0], 3])]


PROGRAM = Program(
    name="hmm_text",
    pieces=[
        ("stdlib/hmm.py", ("HMM", "log_emissions", "log_likelihood", "forward", "backward")),
        (
            "stdlib/hmm_training.py",
            (
                "Counts",
                "expected_counts",
                "most_likely",
                "improve",
                "baum_welch",
                "_log_frequencies",
            ),
        ),
        ("examples/hmm_text.py", ("fit", "fit_all")),
    ],
    wide=False,
    calls=calls,
    runs=[Run("fit_all", "150 steps from each of 8 models, on 3656 letters")],
    mistakes=[
        Mistake(
            "a square matrix is read in the wrong direction",
            None,
            [("message[:, None] + p.log_transition", "message[:, None] + p.log_transition.T")],
            [("message[:, None] + p.log_transition", "message[:, None] + p.log_transition.T")],
        ),
        Mistake(
            "a table is looked up by the wrong axis",
            "PSC303",
            [("p.log_emission.T[np", "p.log_emission[np")],
            [("p.log_emission.T[jnp", "p.log_emission[jnp")],
        ),
        Mistake(
            "a batch over what is no batch",
            "PSC302",
            [("in_axes=(None, 0)", "in_axes=(0, 0)")],
            [("in_axes=(None, 0)", "in_axes=(0, 0)")],
        ),
        Mistake(
            "a list collects values of a loop",
            "PSC205",
            [
                ("    def step(p: HMM", "    seen = []\n\n    def step(p: HMM"),
                (
                    "        return improve(p, sequences)",
                    "        p, value = improve(p, sequences)\n        seen.append(value)\n"
                    "        return p, value",
                ),
            ],
            [
                ("    def step(p: HMM", "    seen = []\n\n    def step(p: HMM"),
                (
                    "        return improve(p, sequences)",
                    "        p, value = improve(p, sequences)\n        seen.append(value)\n"
                    "        return p, value",
                ),
            ],
            effect=True,
        ),
        Mistake(
            "a sum drops its axis",
            "PSC300",
            [("counts.sum(axis=-1, keepdims=True)", "counts.sum(axis=-1)")],
            [("counts.sum(axis=-1, keepdims=True)", "counts.sum(axis=-1)")],
        ),
    ],
)
