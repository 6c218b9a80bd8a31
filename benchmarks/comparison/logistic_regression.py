"""Logistic regression, trained by gradient descent and by Newton's method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Ten rows with as many features or with three, in batches of as many or of four."""
    rng = np.random.default_rng(0)
    n, d, t, b = (10, 3, 5, 4) if differ else (10, 10, 10, 10)
    x, w = rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=d).astype(np.float32)
    y = rng.integers(0, 2, n).astype(np.float32)
    batches = rng.integers(0, n, (t, b)).astype(np.int32)
    rate = strength = np.float32(0.1)
    scaling = m.Scaling(x.mean(axis=0), x.std(axis=0))
    return [
        ("fit_scaling", [x]),
        ("features", [scaling, x]),
        ("loss", [w, x, y, strength]),
        ("descend", [w, x, y, batches, rate, strength]),
        ("newton", [w, x, y, strength]),
        ("predict", [w, x]),
    ]


PROGRAM = Program(
    name="logistic_regression",
    pieces=[
        (
            "examples/logistic_regression.py",
            (
                "Scaling",
                "fit_scaling",
                "features",
                "penalties",
                "loss",
                "gradient",
                "descend",
                "Search",
                "newton",
                "predict",
            ),
        )
    ],
    wide=False,
    calls=calls,
    runs=[
        Run("descend", "1200 steps of gradient descent, with the loss after each", 1e-4),
        Run(
            "newton",
            "Newton's method",
            1e-4,
            compared=lambda found: (found.w, found.steps),
            note="weights and the count of steps are compared; the slope there is all rounding.",
        ),
    ],
    mistakes=[
        Mistake(
            "a matrix is not transposed",
            "PSC301",
            [("return x.T @ (sigmoid(", "return x @ (sigmoid(")],
            [("return x.T @ (jax.nn.sigmoid(", "return x @ (jax.nn.sigmoid(")],
        ),
        Mistake(
            "the mean of rows for that of columns",
            "PSC303",
            [("Scaling(x.mean(axis=0)", "Scaling(x.mean(axis=1)")],
            [("Scaling(x.mean(axis=0)", "Scaling(x.mean(axis=1)")],
        ),
        Mistake(
            "a carry counts in floats",
            "PSC404",
            [("strength), np.int32(0))", "strength), np.float32(0))")],
            [("strength), jnp.int32(0))", "strength), jnp.float32(0))")],
        ),
        Mistake(
            "losses are printed in a loop",
            "PSC201",
            [
                (
                    "        return w, loss(w, x, y, strength)",
                    "        value = loss(w, x, y, strength)\n        print(value)\n"
                    "        return w, value",
                )
            ],
            [
                (
                    "        return w, loss(w, x, y, strength)",
                    "        value = loss(w, x, y, strength)\n        print(value)\n"
                    "        return w, value",
                )
            ],
            effect=True,
        ),
        Mistake(
            "Python's `if` decides by an array",
            "PSC121",
            [
                (
                    "    n = w.shape[0]\n",
                    "    n = w.shape[0]\n    if w == 0:\n        return np.zeros_like(w)\n",
                )
            ],
            [
                (
                    "    n = w.shape[0]\n",
                    "    n = w.shape[0]\n    if w == 0:\n        return jnp.zeros_like(w)\n",
                )
            ],
        ),
    ],
)
