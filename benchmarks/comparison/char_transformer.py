"""A transformer over characters, and its training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.comparison.program import Mistake, Program, Run


def calls(m: Any, differ: bool) -> Sequence[tuple[str, Sequence[Any]]]:
    """Four texts of four characters out of four, and four of all features; or all different."""
    rng = np.random.default_rng(0)
    n, t, v, d, h, k, f = (3, 5, 7, 8, 2, 6, 10) if differ else (4, 4, 4, 4, 4, 4, 4)

    def drawn(*shape: int, by: Any = rng.normal) -> np.ndarray:
        found: np.ndarray = by(size=shape) / shape[0] ** 0.5
        return found.astype(np.float32)

    def model(by: Any = rng.normal) -> Any:
        def norm() -> Any:
            return m.Affine(1 + drawn(d, by=by), drawn(d, by=by))

        def heads() -> Any:
            into = [drawn(d, h, k, by=by) for _ in range(3)]
            return m.Heads(*into, drawn(h, k, d, by=by))

        def dense(i: int, o: int) -> Any:
            return m.Dense(drawn(i, o, by=by), drawn(o, by=by))

        def block() -> Any:
            return m.Block(norm(), heads(), norm(), dense(d, f), dense(f, d))

        return m.Model(m.Embedding(drawn(v, d, by=by)), (block(), block()), norm())

    def text(*shape: int) -> np.ndarray:
        return rng.integers(0, v, shape).astype(np.int32)

    halves = m.Affine(drawn(d).astype(np.float16), drawn(d).astype(np.float16))
    state = m.Moments(model(), model(rng.exponential), np.int32(5))
    return [
        ("new_model", [m.jax.random.key(0), v]),
        ("layer_norm", [halves, drawn(n, d).astype(np.float16)]),
        ("step", [model(), state, text(n, t + 1), np.int32(100)]),
        ("write", [model(), text(t), m.jax.random.key(1), 6, np.float32(0.6)]),
    ]


PROGRAM = Program(
    name="char_transformer",
    pieces=[
        ("stdlib/precision.py", ("widened",)),
        (
            "stdlib/layers.py",
            (
                "Dense",
                "Embedding",
                "dense_layer",
                "embedding_layer",
                "dense",
                "embedding",
                "embedding_scores",
            ),
        ),
        ("stdlib/normalization.py", ("Affine", "layer_norm", "_standardized")),
        ("stdlib/positions.py", ("LONGEST", "rotary", "_frequencies")),
        ("stdlib/attention.py", ("Heads", "attention_layer", "multi_head")),
        ("stdlib/transformer.py", ("Block", "transformer_block", "transform")),
        ("stdlib/losses.py", ("cross_entropy",)),
        ("stdlib/schedules.py", ("warmup", "cosine", "_number")),
        ("stdlib/clipping.py", ("T", "clip_by_norm")),
        (
            "stdlib/optimizers.py",
            ("Moments", "adamw", "_as", "_mixed", "_complement", "_moved"),
        ),
        (
            "examples/char_transformer.py",
            ("Model", "new_model", "no_moments", "logits", "loss", "step", "write"),
        ),
    ],
    wide=False,
    calls=calls,
    runs=[
        Run("step", "a step of training, 16 texts of 65 characters", 1e-3, carried=2),
        Run("write", "400 characters"),
    ],
    example=lambda example: example.run(example.read_text(), steps=1),
    mistakes=[
        Mistake(
            "two layers are drawn with the same key",
            "PSC601",
            [("transformer_block(keys[1]", "transformer_block(keys[0]")],
            [("transformer_block(keys[1]", "transformer_block(keys[0]")],
        ),
        Mistake(
            "the mask is forgotten, and characters see the one they are to say",
            None,
            [
                (
                    "transform(block, x, causal=True, positions=True)",
                    "transform(block, x, positions=True)",
                )
            ],
            [
                (
                    "transform(block, x, causal=True, positions=True)",
                    "transform(block, x, positions=True)",
                )
            ],
        ),
        Mistake(
            "heads and places of queries are exchanged",
            "PSC302",
            [
                (
                    'queries = np.einsum("...td,dhk->...htk"',
                    'queries = np.einsum("...td,dhk->...thk"',
                )
            ],
            [
                (
                    'queries = jnp.einsum("...td,dhk->...thk"',
                    'queries = jnp.einsum("...td,dhk->...htk"',
                )
            ],
        ),
        Mistake(
            "a window grows in a loop",
            "PSC303",
            [("np.append(seen[1:], character)", "np.append(seen, character)")],
            [("jnp.append(seen[1:], character)", "jnp.append(seen, character)")],
        ),
        Mistake(
            "16 bits are widened, and stay so",
            "PSC405",
            [
                (
                    "widened(p.scale) + widened(p.shift)).astype(x.dtype)",
                    "widened(p.scale) + widened(p.shift))",
                )
            ],
            [
                (
                    "widened(p.scale) + widened(p.shift)).astype(x.dtype)",
                    "widened(p.scale) + widened(p.shift))",
                )
            ],
        ),
    ],
)
