"""A flow in a plane, by products in Fourier space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Six times six places and six times, or nine times nine places and four times."""
    rng = np.random.default_rng(0)
    n, t = (9, 4) if differ else (6, 6)
    w = rng.normal(size=(n, n))
    w -= w.mean()
    return [
        ("flow", [w, np.linspace(0, 0.1, t), np.float64(0.01), 2]),
        ("invariants", [w]),
        ("picture", [w]),
    ]


CLOCK = (
    "    start = time.perf_counter()\n"
    "    found = rk4(lambda _, w: carried(w, viscosity), w, times, substeps)\n"
    "    print(time.perf_counter() - start)\n"
    "    return found"
)

PROGRAM = Program(
    name="fluid",
    pieces=[
        (
            "stdlib/ode.py",
            ("RK4", "fixed_steps", "rk4", "_stages", "_moved", "_with_first"),
        ),
        (
            "examples/fluid.py",
            ("velocity", "carried", "flow", "invariants", "picture", "_derivatives", "_real"),
        ),
    ],
    calls=calls,
    runs=[Run("flow", "500 steps of 128 x 128 places")],
    mistakes=[
        Mistake(
            "an inverse transform lacks the size, which may be odd",
            "PSC303",
            [("np.fft.irfft2(spectrum, (n, n))", "np.fft.irfft2(spectrum)")],
            [("jnp.fft.irfft2(spectrum, (n, n))", "jnp.fft.irfft2(spectrum)")],
        ),
        Mistake(
            "frequencies in another order than a transform's",
            None,
            [("(np.arange(n) + n // 2) % n - n // 2", "np.arange(n) - n // 2")],
            [("jnp.fft.fftfreq(n, 1 / n)", "jnp.fft.fftshift(jnp.fft.fftfreq(n, 1 / n))")],
        ),
        Mistake(
            "an element of an argument is written in place",
            "PSC205",
            [
                (
                    "    spectrum = np.fft.rfft2(w)\n",
                    "    w[0, 0] = 0\n    spectrum = np.fft.rfft2(w)\n",
                )
            ],
            [
                (
                    "    spectrum = jnp.fft.rfft2(w)\n",
                    "    w[0, 0] = 0\n    spectrum = jnp.fft.rfft2(w)\n",
                )
            ],
        ),
        Mistake(
            "the time that a step takes is printed",
            "PSC202",
            [
                (
                    "from __future__ import annotations\n",
                    "from __future__ import annotations\n\nimport time\n",
                ),
                ("    return rk4(lambda _, w: carried(w, viscosity), w, times, substeps)", CLOCK),
            ],
            [
                ("from functools import partial\n", "from functools import partial\nimport time\n"),
                ("    return rk4(lambda _, w: carried(w, viscosity), w, times, substeps)", CLOCK),
            ],
            effect=True,
        ),
        Mistake(
            "the imaginary part is lost",
            "PSC414",
            [("stream = np.fft.rfft2(w) /", "stream = np.fft.rfft2(w).astype(np.float64) /")],
            [("stream = jnp.fft.rfft2(w) /", "stream = jnp.fft.rfft2(w).astype(jnp.float64) /")],
        ),
    ],
)
