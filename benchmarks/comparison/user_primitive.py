"""A primitive of one's own: a meaning in NumPy, and a rule for its translation to StableHLO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Six images of six numbers and as many classes; or six of five and four."""
    rng = np.random.default_rng(0)
    d, k = (5, 4) if differ else (6, 6)
    x = rng.normal(size=(6, d)).astype(np.float32)
    centres = rng.normal(size=(k, d)).astype(np.float32)
    wide = (10.0 ** rng.uniform(-9, 9, 20)).astype(np.float32)
    return [
        ("keep_7_bits", [wide]),
        ("keep_1_bit", [x]),
        ("rounded", [wide]),
        ("nearest", [x, centres]),
        ("nearest_with_7_bits", [x, centres]),
        ("nearest_with_1_bit", [x, centres]),
    ]


PROGRAM = Program(
    name="user_primitive",
    pieces=[
        (
            "examples/user_primitive.py",
            (
                "keep_7_bits",
                "_",
                "keep_1_bit",
                "translate_keep_1_bit",
                "psc.register_translation_rule(keep_1_bit, translate_keep_1_bit)",
                "nearest_number",
                "reduce_precision",
                "distances",
                "nearest",
                "nearest_with_7_bits",
                "nearest_with_1_bit",
                "rounded",
            ),
        )
    ],
    wide=False,
    calls=calls,
    runs=[
        Run(
            "rounded",
            "100000 numbers, by both primitives",
            0.0,
            note="jax has `jax.lax.reduce_precision`; there, too, it is a primitive of one's own.",
        ),
        Run("nearest_with_7_bits", "899 images of 64 numbers, 10 classes", 0.0),
    ],
    mistakes=[
        Mistake(
            "a primitive has no rule of translation",
            None,
            [("@keep_7_bits.translation\n", "")],
            [("mlir.register_lowering(nearest_number_p, reduce_precision)\n", "")],
        ),
        Mistake(
            "a batch over a primitive that has no rule for it",
            "PSC901",
            [("nearest(keep_7_bits(x)", "nearest(psc.vmap(keep_7_bits)(x)")],
            [("nearest(keep_7_bits(x)", "nearest(jax.vmap(keep_7_bits)(x)")],
        ),
        Mistake(
            "a rule of translation keeps 5 bits of the exponent",
            None,
            [('parse_attribute("8 : i32")', 'parse_attribute("5 : i32")')],
            [("IntegerAttr.get(i32, 8)", "IntegerAttr.get(i32, 5)")],
        ),
        Mistake(
            "a meaning gives a word's bits as an integer",
            None,
            [("dropped << dropped).view(np.float32)", "dropped << dropped)")],
            [("dropped << dropped).view(np.float32)", "dropped << dropped)")],
        ),
        Mistake(
            "images and centres exchange their axes",
            "PSC303",
            [("x[:, None] - centres)", "x - centres[:, None])")],
            [("x[:, None] - centres)", "x - centres[:, None])")],
        ),
    ],
)
