"""Truncated Newton steps: a quadratic, a classifier, a hidden Markov model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Six numbers, right sides, examples, states, symbols, letters; or as many as they are."""
    rng = np.random.default_rng(0)
    k, d, s, o, t = (4, 3, 2, 5, 12) if differ else (6, 6, 6, 6, 6)
    n = 6
    half = rng.normal(size=(n, n))
    x, signs = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
    strength = np.float64(0.3)
    p = m.Chain(*(0.3 * rng.normal(size=shape) for shape in ((s,), (s, s), (s, o))))
    text = rng.integers(0, o, t).astype(np.int32)
    return [
        ("quadratic", [half @ half.T + np.eye(n), rng.normal(size=(k, n))]),
        ("logistic", [x, signs, strength]),
        ("chain", [p, text, strength]),
        ("chain_slope", [p, text, strength]),
    ]


PROGRAM = Program(
    name="newton_cg",
    pieces=[
        (
            "stdlib/newton.py",
            ("Minimum", "_At", "_Direction", "newton_cg", "_direction", "_length"),
        ),
        ("stdlib/hmm.py", ("HMM", "log_emissions", "log_likelihood", "forward")),
        (
            "examples/newton_cg.py",
            (
                "Fit",
                "Chain",
                "quadratic",
                "logistic_loss",
                "logistic",
                "chain_loss",
                "chain",
                "chain_slope",
            ),
        ),
    ],
    calls=calls,
    runs=[
        Run(
            "quadratic",
            "20 quadratics of 100 unknowns",
            tolerance=1e-4,
            compared=lambda found: found[0],
            note="the places are compared: rounding decides which step is the last one.",
        ),
        Run(
            "logistic",
            "31 weights, 569 examples",
            compared=lambda fit: (fit.x, fit.value, fit.steps),
            note="what was found is compared, and the count of steps; the slope there is rounding.",
        ),
        Run(
            "chain",
            "3 states, 1500 letters",
            compared=lambda found: (*found[:2], found[3]),
            note="the same is compared.",
        ),
    ],
    mistakes=[
        Mistake(
            "columns for rows are mapped over",
            "PSC301",
            [("psc.map(one, bs)", "psc.map(one, bs.T)")],
            [("jax.lax.map(one, bs)", "jax.lax.map(one, bs.T)")],
        ),
        Mistake(
            "a column times a row, and the mean of all pairs",
            None,
            [("margins = signs * (", "margins = signs[:, None] * (")],
            [("margins = signs * (", "margins = signs[:, None] * (")],
        ),
        Mistake(
            "a loss of a record is given the vector of all its numbers",
            "PSC501",
            [("return loss(restored(x))", "return loss(x)")],
            [("return loss(restored(x))", "return loss(x)")],
        ),
        Mistake(
            "a search starts in fewer bits",
            "PSC404",
            [("np.zeros(x.shape[1], np.float64)", "np.zeros(x.shape[1], np.float32)")],
            [("jnp.zeros(x.shape[1])", "jnp.zeros(x.shape[1], jnp.float32)")],
        ),
        Mistake(
            "a sign is wrong, and directions are not conjugate",
            None,
            [("/ square * at.along - residual", "/ square * at.along + residual")],
            [("/ square * at.along - residual", "/ square * at.along + residual")],
        ),
    ],
)
