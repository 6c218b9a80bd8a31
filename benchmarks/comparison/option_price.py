"""The price of an option by simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Six paths of as many steps or of four."""
    market = m.Market(*map(np.float32, (100.0, 80.0, 0.03, 0.2, 1.0)))
    like = np.zeros((4 if differ else 6, 6), np.float32)
    return [
        ("estimate", [np.arange(6, dtype=np.float32)]),
        ("prices", [m.jax.random.key(0), market, like]),
    ]


PROGRAM = Program(
    name="option_price",
    pieces=[("examples/option_price.py", ("Market", "Estimate", "estimate", "paths", "prices"))],
    calls=calls,
    runs=[Run("prices", "2 times 100000 paths of 50 steps")],
    mistakes=[
        Mistake(
            "a random key is used twice",
            "PSC601",
            [("paths(asian, market", "paths(european, market")],
            [("paths(asian, market", "paths(european, market")],
        ),
        Mistake(
            "each step of a loop draws with the same key",
            "PSC601",
            [('def step(log_price: f32["n"], key: Key)', 'def step(log_price: f32["n"], _: Key)')],
            [
                (
                    'log_price: Float32[Array, "n"], key: Key[Array, ""]',
                    'log_price: Float32[Array, "n"], _: Key[Array, ""]',
                )
            ],
        ),
        Mistake(
            "numbers from NumPy's global generator",
            "PSC203",
            [("psc.random.normal(key, (n,))", "np.random.normal(size=n).astype(np.float32)")],
            [
                ("import jax.numpy as jnp\n", "import jax.numpy as jnp\nimport numpy as np\n"),
                (
                    "jax.random.normal(key, (n,), jnp.float32)",
                    "np.random.normal(size=n).astype(np.float32)",
                ),
            ],
        ),
        Mistake(
            "the mean over paths for that over time, of which there may be one",
            "PSC305",
            [("like), axis=0)", "like), axis=1)")],
            [("like), axis=0)", "like), axis=1)")],
        ),
        Mistake(
            "a mean in too few bits",
            "PSC405",
            [("wide = values.astype(psc.f64)", "wide = values")],
            [("wide = values.astype(jnp.float64)", "wide = values")],
        ),
    ],
)
