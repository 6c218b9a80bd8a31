"""A network of convolutions, and a step of its training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Ten images of ten rows, columns and channels, or six of eight, seven and three."""
    rng = np.random.default_rng(0)
    n, h, w, c = (6, 8, 7, 3) if differ else (10, 10, 10, 10)
    images = rng.uniform(size=(n, h, w)).astype(np.float32)
    digits = rng.integers(0, 10, n).astype(np.int32)
    key = m.jax.random.key(0)

    def network() -> Any:
        def layer(o: int, i: int, size: int) -> Any:
            weights = 0.3 * rng.normal(size=(o, i, size, size)).astype(np.float32)
            return m.Convolution(weights, 0.1 * rng.normal(size=o).astype(np.float32))

        sizes = (c, 1, 3), (c, c, 3), (2 * c, c, 3), (2 * c, 2 * c, 3), (2 * c, 2 * c, 1)
        return m.Network(*(layer(*each) for each in sizes), layer(10, 2 * c, 1))

    p, velocity, i, steps = network(), network(), np.int32(3), np.int32(10)
    return [
        ("new_network", [key, c]),
        ("logits", [p, images]),
        ("count_right", [p, images, digits]),
        ("step", [p, velocity, images, digits, i, steps, key]),
    ]


PROGRAM = Program(
    name="all_convolution",
    pieces=[
        ("stdlib/precision.py", ("widened",)),
        (
            "stdlib/layers.py",
            ("Convolution", "convolution_layer", "convolution", "global_average"),
        ),
        ("stdlib/dropout.py", ("dropout",)),
        ("stdlib/losses.py", ("cross_entropy",)),
        ("stdlib/schedules.py", ("cosine", "_number")),
        ("stdlib/optimizers.py", ("T", "momentum", "_as", "_moved")),
        (
            "examples/all_convolution.py",
            (
                "Network",
                "new_network",
                "moved",
                "logits",
                "loss",
                "step",
                "count_right",
            ),
        ),
    ],
    wide=False,
    calls=calls,
    runs=[
        Run(
            "step",
            "a step of training, 32 images",
            0.05,
            compared=lambda found: (found[0].first.weights, found[0].third.weights, found[2]),
            note="`randint` draws other numbers than jax's, so that images are moved otherwise; "
            "some weights after the step, and the loss, are compared roughly.",
            carried=2,
        )
    ],
    example=lambda example: example.run(epochs=1),
    mistakes=[
        Mistake(
            "the largest of each column for that of each row",
            "PSC300",
            [("images).argmax(axis=1)", "images).argmax(axis=0)")],
            [("images).argmax(axis=1)", "images).argmax(axis=0)")],
        ),
        Mistake(
            "parameters and their velocity exchanged",
            None,
            [("p, velocity = momentum(", "velocity, p = momentum(")],
            [("p, velocity = momentum(", "velocity, p = momentum(")],
        ),
        Mistake(
            "all images are moved with the same key",
            "PSC601",
            [
                (
                    "psc.vmap(moved)(psc.random.split(first, images.shape[0]), images)",
                    "psc.vmap(moved, in_axes=(None, 0))(first, images)",
                )
            ],
            [
                (
                    "jax.vmap(moved)(jax.random.split(first, images.shape[0]), images)",
                    "jax.vmap(moved, in_axes=(None, 0))(first, images)",
                )
            ],
        ),
        Mistake(
            "probabilities for logits",
            None,
            [("(logits(p, shifted, second)", "(psc.special.softmax(logits(p, shifted, second))")],
            [("(logits(p, shifted, second)", "(jax.nn.softmax(logits(p, shifted, second))")],
        ),
        Mistake(
            "weights shrink in place",
            "PSC205",
            [("    rate = cosine(", "    p.last.weights *= 0.999\n    rate = cosine(")],
            [("    rate = cosine(", "    p.last.weights *= 0.999\n    rate = cosine(")],
        ),
    ],
)
