"""The posterior of logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Seven rows; seven columns and draws, or three and four."""
    rng = np.random.default_rng(0)
    n, d, s = (7, 3, 4) if differ else (7, 7, 7)
    x, y = rng.normal(size=(n, d)), rng.integers(0, 2, n).astype(np.float64)
    w = m.Weights(rng.normal(size=d), np.float64(0.3))
    return [
        ("chain", [m.jax.random.key(0), w, x, y, 8, 3]),
        ("log_posterior", [w, x, y]),
        ("laplace", [w, x, y]),
        ("predictions", [rng.normal(size=(s, d)), rng.normal(size=s), x]),
    ]


def moments(draws: Any) -> tuple[np.ndarray, np.ndarray]:
    """The means and the deviations of what all chains drew."""
    slopes = np.asarray(draws.slopes)
    return slopes.mean(axis=(0, 1)), slopes.std(axis=(0, 1))


PROGRAM = Program(
    name="bayesian_regression",
    pieces=[
        (
            "stdlib/mcmc.py",
            (
                "T",
                "Samples",
                "Tuned",
                "Point",
                "_Step",
                "_Averaging",
                "_Spread",
                "_WarmUp",
                "hamiltonian",
                "warm_up",
                "leapfrog",
                "energy",
                "_hamiltonian_step",
                "_at",
                "_chosen",
                "_ratio",
                "_taken",
                "_averaging_from",
                "_averaged",
                "_spread_with",
                "_spread_of",
            ),
        ),
        (
            "examples/bayesian_regression.py",
            (
                "INTERCEPT_SCALE",
                "Weights",
                "Draws",
                "log_posterior",
                "chain",
                "many_chains",
                "laplace",
                "predictions",
            ),
        ),
    ],
    calls=calls,
    runs=[
        Run(
            "many_chains",
            "4 chains of 1500 steps, 31 weights",
            0.1,
            compared=moments,
            note="`randint` draws other numbers than jax's: means and deviations of the draws are "
            "compared, of which some 1000 are independent.",
        ),
        Run("laplace", "10 steps of Newton's method"),
    ],
    mistakes=[
        Mistake(
            "a matrix is not transposed",
            "PSC301",
            [("x @ slopes.T", "x @ slopes")],
            [("x @ slopes.T", "x @ slopes")],
        ),
        Mistake(
            "a sign is wrong, so that roots are NaN",
            None,
            [("= -psc.hessian(density)(top)", "= psc.hessian(density)(top)")],
            [("= -jax.hessian(density)(top)", "= jax.hessian(density)(top)")],
        ),
        Mistake(
            "a sum is forgotten",
            "PSC303",
            [("intercept, y).sum()", "intercept, y)")],
            [
                (
                    "- (jnp.logaddexp(0, score) - y * score).sum()",
                    "- (jnp.logaddexp(0, score) - y * score)",
                )
            ],
        ),
        Mistake(
            "a constant of the module is written",
            "PSC204",
            [
                (
                    "    prior = normal_log_density(w.slopes).sum()",
                    "    global INTERCEPT_SCALE\n    INTERCEPT_SCALE = 2 * INTERCEPT_SCALE\n"
                    "    prior = normal_log_density(w.slopes).sum()",
                )
            ],
            [
                (
                    "    prior = norm.logpdf(w.slopes).sum()",
                    "    global INTERCEPT_SCALE\n    INTERCEPT_SCALE = 2 * INTERCEPT_SCALE\n"
                    "    prior = norm.logpdf(w.slopes).sum()",
                )
            ],
        ),
        Mistake(
            "a field is misspelt",
            "PSC103",
            [("normal_log_density(w.slopes)", "normal_log_density(w.slope)")],
            [("norm.logpdf(w.slopes)", "norm.logpdf(w.slope)")],
        ),
    ],
)
