"""A network that is learnt through an adaptive solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Two hidden features, windows and times, as many as numbers of a state; or all different."""
    rng = np.random.default_rng(0)
    h, k, t = (3, 4, 5) if differ else (2, 2, 2)
    p = m.Network(rng.normal(size=(h, 2)), rng.normal(size=h), rng.normal(size=h))
    windows, times = rng.normal(size=(k, t, 2)), 0.3 * np.arange(t)
    return [
        ("swing", [p, windows[0, 0], times]),
        ("fit", [p, windows, times, np.int32(3)]),
    ]


PROGRAM = Program(
    name="neural_ode",
    pieces=[
        ("stdlib/choosing.py", ("chosen",)),
        (
            "stdlib/ode.py",
            (
                "DORMAND_PRINCE",
                "_ERROR",
                "_DENSE",
                "Trajectory",
                "_At",
                "dormand_prince",
                "_attempt",
                "_between",
                "_stages",
                "_moved",
                "_norm",
                "_first_length",
                "_with_first",
            ),
        ),
        (
            "examples/neural_ode.py",
            ("Network", "Track", "Fit", "acceleration", "swing", "loss", "slope", "fit"),
        ),
    ],
    calls=calls,
    runs=[
        Run("swing", "a solution by the network that was learnt, 120 times"),
        Run(
            "slope",
            "the gradient of the loss through the solver, 10 windows",
            note="each of the 150 steps of `fit` takes such gradients; as a whole it cannot be "
            "compared, for jax has BFGS and not L-BFGS.",
        ),
    ],
    mistakes=[
        Mistake(
            "the first window for the first of all windows",
            "PSC300",
            [("windows[:, 0]", "windows[0]")],
            [("windows[:, 0]", "windows[0]")],
        ),
        Mistake(
            "a coefficient has a wrong digit",
            None,
            [("49 / 176", "47 / 176")],
            [("49 / 176", "47 / 176")],
        ),
        Mistake(
            "a loop without a bound is differentiated",
            "PSC512",
            [
                (
                    "            at,\n            max_steps=max_steps,\n        )",
                    "            at,\n        )",
                )
            ],
            [
                (
                    "    (at, states), _ = jax.lax.scan(step, (first, nothing), length=max_steps)",
                    "    at, states = jax.lax.while_loop(\n"
                    "        lambda run: unfinished(run[0]), attempt, (first, nothing)\n    )",
                )
            ],
        ),
        Mistake(
            "a variable outside counts calls of a function",
            "PSC204",
            [
                (
                    "    def field(time: f64, state",
                    "    calls = 0\n\n    def field(time: f64, state",
                ),
                (
                    "        return np.stack([state[1]",
                    "        nonlocal calls\n        calls += 1\n        return np.stack([state[1]",
                ),
            ],
            [
                (
                    '    def field(time: Float64[Array, ""], state',
                    '    calls = 0\n\n    def field(time: Float64[Array, ""], state',
                ),
                (
                    "        return jnp.stack([state[1]",
                    "        nonlocal calls\n        calls += 1\n"
                    "        return jnp.stack([state[1]",
                ),
            ],
            effect=True,
        ),
        Mistake(
            "a solver starts in fewer bits",
            "PSC404",
            [
                (
                    "dormand_prince(field, start, times",
                    "dormand_prince(field, start.astype(np.float32), times",
                )
            ],
            [
                (
                    "dormand_prince(field, start, times",
                    "dormand_prince(field, start.astype(jnp.float32), times",
                )
            ],
        ),
    ],
)
