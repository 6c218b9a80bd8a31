"""The posterior of logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Seven rows; seven columns and draws, or three and four."""
    rng = np.random.default_rng(0)
    n, d, s = (7, 3, 4) if differ else (7, 7, 7)
    x, y = rng.normal(size=(n, d)), rng.integers(0, 2, n).astype(np.float64)
    w = m.Weights(rng.normal(size=d), np.float64(0.3))
    return [
        ("log_posterior", [w, x, y]),
        ("laplace", [w, x, y]),
        ("predictions", [rng.normal(size=(s, d)), rng.normal(size=s), x]),
    ]


PROGRAM = Program(
    name="bayesian_regression",
    pieces=[
        (
            "examples/bayesian_regression.py",
            ("INTERCEPT_SCALE", "Weights", "log_posterior", "laplace", "predictions"),
        )
    ],
    calls=calls,
    runs=[Run("laplace", "10 steps of Newton's method")],
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
