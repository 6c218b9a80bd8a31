"""A fully connected layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Six examples; six inputs and outputs, or four and three."""
    rng = np.random.default_rng(0)
    i, o = (4, 3) if differ else (6, 6)
    w, b = rng.normal(size=(i, o)).astype(np.float32), rng.normal(size=o).astype(np.float32)
    return [("layer", [m.Layer(w, b), rng.normal(size=(6, i)).astype(np.float32)])]


PROGRAM = Program(
    name="selu_layer",
    pieces=[("examples/selu_layer.py", ("Layer", "selu", "layer"))],
    wide=False,
    calls=calls,
    runs=[Run("layer", "256 examples, 64 inputs, 128 outputs")],
    mistakes=[
        Mistake(
            "factors in the wrong order",
            "PSC301",
            [("x @ p.w", "p.w @ x")],
            [("x @ p.w", "p.w @ x")],
        ),
        Mistake(
            "a row is added as a column",
            "PSC300",
            [("+ p.b", "+ p.b[:, None]")],
            [("+ p.b", "+ p.b[:, None]")],
        ),
        Mistake(
            "`min` over an axis for `minimum`",
            None,
            [("np.minimum(x, 0)", "np.min(x, 0)")],
            [("jnp.minimum(x, 0)", "jnp.min(x, 0)")],
        ),
        Mistake(
            "a factor of more bits",
            "PSC401",
            [("return scale * np", "return np.float64(scale) * np")],
            [("return scale * jnp", "return jnp.float64(scale) * jnp")],
        ),
        Mistake(
            "a mean is printed",
            "PSC201",
            [("    return selu(x", "    print(x.mean())\n    return selu(x")],
            [("    return selu(x", "    print(x.mean())\n    return selu(x")],
            effect=True,
        ),
    ],
)
