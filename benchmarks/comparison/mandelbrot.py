"""A picture of the Mandelbrot set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Eight columns, and as many rows or five."""
    w, h = (8, 5) if differ else (8, 8)
    real, imaginary = np.linspace(-2.3, 1.15, w), np.linspace(1.15, -1.15, h)
    shape = h, w
    inside = np.arange(h * w).reshape(shape) % 3 == 0
    x = np.where(inside, 0.1, 20.0)
    found = m.Orbits(x, x, np.ones(shape, np.int32), inside, np.int32(3))
    return [("orbits", [real, imaginary, np.int32(20)]), ("picture", [found])]


PROGRAM = Program(
    name="mandelbrot",
    pieces=[("examples/mandelbrot.py", ("Orbits", "orbits", "picture"))],
    calls=calls,
    runs=[
        Run("orbits", "960 x 640 points, 200 steps", 0.0),
        Run("picture", "their colours", 0.0),
    ],
    mistakes=[
        Mistake(
            "a column is added as a row",
            "PSC300",
            [("+ imaginary[:, None]", "+ imaginary")],
            [("+ imaginary[:, None]", "+ imaginary")],
        ),
        Mistake(
            "height and width exchanged where a loop starts",
            "PSC302",
            [("zero = np.zeros((h, w)", "zero = np.zeros((w, h)")],
            [("zero = jnp.zeros((h, w)", "zero = jnp.zeros((w, h)")],
        ),
        Mistake(
            "a carry's counts become floats",
            "PSC405",
            [("at.count + inside.astype(np.int32)", "at.count + inside.astype(np.float64)")],
            [("at.counts + inside.astype(jnp.int32)", "at.counts + inside.astype(jnp.float64)")],
        ),
        Mistake(
            "`and` between arrays",
            "PSC121",
            [("np.any(at.inside) & (at.steps < limit)", "at.inside and at.steps < limit")],
            [
                (
                    "jnp.any(at.inside) & (at.steps < limit)",
                    "at.inside and at.steps < limit",
                )
            ],
        ),
        Mistake(
            "a field is missing",
            "PSC120",
            [("np.int32), inside, at.steps + 1)", "np.int32), inside)")],
            [("jnp.int32), inside, at.steps + 1)", "jnp.int32), inside)")],
        ),
    ],
)
