"""A Kalman filter and smoother, whose noise levels are learnt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Four numbers as state, observed four or two at a time, at four times or six."""
    rng = np.random.default_rng(0)
    s, o, t = (4, 2, 6) if differ else (4, 4, 4)
    p = m.Model(
        np.eye(s) + 0.1 * rng.normal(size=(s, s)),
        np.eye(s),
        rng.normal(size=(o, s)),
        np.eye(o) + 0.3 * np.ones((o, o)),
        rng.normal(size=s),
        np.eye(s),
    )
    observations = rng.normal(size=(t, o))
    observations[1, 0] = np.nan
    seen = rng.normal(size=(t, 2))
    found: list[tuple[str, Sequence[Any]]] = [
        ("smooth", [p, observations]),
        ("log_likelihood", [p, observations]),
    ]
    if differ:  # its model has four numbers as its state and two as an observation
        found.append(("fit", [np.array([0.0, 0.0]), seen, np.float64(0.1)]))
    return found


PROGRAM = Program(
    name="kalman_track",
    pieces=[
        (
            "stdlib/kalman.py",
            (
                "Model",
                "Gaussian",
                "Gaussians",
                "Filtered",
                "predict",
                "update",
                "emission_of",
                "kalman_filter",
                "log_likelihood",
                "smooth",
                "smoother_gain",
                "symmetric",
            ),
        ),
        ("examples/kalman_track.py", ("constant_velocity", "fit")),
    ],
    calls=calls,
    runs=[Run("fit", "8 steps of Newton's method through the filter")],
    mistakes=[
        Mistake(
            "a gain is not transposed",
            "PSC301",
            [
                (
                    "    gain = psc.triangular_solve(root, scaled, lower=True, transpose=True).T",
                    "    gain = psc.triangular_solve(root, scaled, lower=True, transpose=True)",
                )
            ],
            [
                (
                    "    gain = solve_triangular(root, scaled, lower=True, trans=1).T",
                    "    gain = solve_triangular(root, scaled, lower=True, trans=1)",
                )
            ],
        ),
        Mistake(
            "an identity of another size",
            "PSC300",
            [
                (
                    "np.eye(p.transition.shape[0]) - gain @ emission",
                    "np.eye(p.emission.shape[0]) - gain @ emission",
                )
            ],
            [
                (
                    "jnp.eye(p.transition.shape[0]) - gain @ emission",
                    "jnp.eye(p.emission.shape[0]) - gain @ emission",
                )
            ],
        ),
        Mistake(
            "a loop starts in fewer bits",
            "PSC404",
            [
                (
                    "start = Gaussian(p.start_mean, p",
                    "start = Gaussian(p.start_mean.astype(np.float32), p",
                )
            ],
            [
                (
                    "start = Gaussian(p.start_mean, p",
                    "start = Gaussian(p.start_mean.astype(jnp.float32), p",
                )
            ],
        ),
        Mistake(
            "what a loop carries and what it stacks exchanged",
            "PSC101",
            [("_, (states, log_densities) = psc", "(states, log_densities), _ = psc")],
            [("_, (states, log_densities) = jax", "(states, log_densities), _ = jax")],
        ),
        Mistake(
            "an axis is missing, and all sizes broadcast",
            None,
            [("missing[:, None] | missing", "missing | missing")],
            [("missing[:, None] | missing", "missing | missing")],
        ),
    ],
)
