"""A network that reads digits: its training, its answers, and what is exported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Ten of everything, or sizes that differ."""
    rng = np.random.default_rng(0)
    n, d, h, k, t, b = (7, 5, 6, 4, 3, 2) if differ else (10,) * 6

    def drawn(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    p = m.Network(m.Dense(drawn(d, h), drawn(h)), m.Dense(drawn(h, k), drawn(k)))
    pixels, digits = drawn(n, d), rng.integers(0, k, n).astype(np.int32)
    batches = rng.integers(0, n, (t, b)).astype(np.int32)
    return [
        ("classify", [p, pixels]),
        ("loss", [p, pixels, digits]),
        ("train", [m.jax.random.key(0), pixels, digits, batches, np.float32(0.1)]),
    ]


PROGRAM = Program(
    name="deployment",
    pieces=[
        ("stdlib/precision.py", ("widened",)),
        ("stdlib/layers.py", ("Dense", "dense_layer", "dense")),
        ("stdlib/losses.py", ("cross_entropy",)),
        (
            "stdlib/optimizers.py",
            (
                "T",
                "Moments",
                "adam_start",
                "adam",
                "adamw",
                "_nothing",
                "_wide",
                "_as",
                "_mixed",
                "_complement",
                "_moved",
            ),
        ),
        (
            "examples/deployment.py",
            (
                "SERVER",
                "ONE",
                "Network",
                "Reading",
                "classify",
                "loss",
                "train",
                "deploy",
            ),
        ),
    ],
    wide=False,
    calls=calls,
    runs=[
        Run(
            "classify",
            "539 images of 64 pixels, by 64 features",
            note="this is the kernel itself. What `deploy` exports is for two sizes of a batch in "
            "ours, and for all in jax; it counts as lines only.",
        ),
        Run("train", "39 steps of Adam, 32 images each", 1e-4),
    ],
    example=lambda example: example.run(epochs=1, seconds=0.01),
    mistakes=[
        Mistake(
            "labels of all images for those of a batch",
            "PSC302",
            [("(loss)(p, pixels[rows], digits[rows])", "(loss)(p, pixels[rows], digits)")],
            [("(loss)(p, pixels[rows], digits[rows])", "(loss)(p, pixels[rows], digits)")],
        ),
        Mistake(
            "both layers are drawn with the same key",
            "PSC601",
            [("dense_layer(second, 64, 10)", "dense_layer(first, 64, 10)")],
            [("dense_layer(second, 64, 10)", "dense_layer(first, 64, 10)")],
        ),
        Mistake(
            "`relu` after the last layer, too",
            None,
            [
                (
                    "cross_entropy(dense(p.output, relu(dense(p.hidden, pixels))), digits)",
                    "cross_entropy(relu(dense(p.output, relu(dense(p.hidden, pixels)))), digits)",
                )
            ],
            [
                (
                    "return cross_entropy(scores, digits)",
                    "return cross_entropy(jax.nn.relu(scores), digits)",
                )
            ],
        ),
        Mistake(
            "the derivative is by pixels, not by parameters",
            "PSC509",
            [("psc.value_and_grad(loss)", "psc.value_and_grad(loss, argnums=1)")],
            [("jax.value_and_grad(loss)", "jax.value_and_grad(loss, argnums=1)")],
        ),
        Mistake(
            "the probability of the likeliest image for that of each",
            "PSC303",
            [("likely.max(axis=1))", "likely.max())")],
            [("likely.max(axis=1))", "likely.max())")],
        ),
    ],
)
