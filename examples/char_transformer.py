"""A transformer reads English, character by character, and goes on writing it.

It has two blocks, and learns to say which character comes next from the 64 before.  The text is
what Python's library says of itself.  A tenth of it is never trained on, and measures what was
learnt, beside counts of pairs of characters.
"""

# SciPy comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import ast
import re
import sysconfig
import textwrap
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.progress import track
from scipy.special import ndtr

import pscdsl as psc
from pscdsl import Float, Key, i32
from pscdsl.stdlib.clipping import clip_by_norm
from pscdsl.stdlib.layers import Embedding, embedding, embedding_layer, embedding_scores
from pscdsl.stdlib.losses import cross_entropy
from pscdsl.stdlib.normalization import Affine, layer_norm
from pscdsl.stdlib.optimizers import Moments, adamw
from pscdsl.stdlib.schedules import cosine, warmup
from pscdsl.stdlib.transformer import Block, transform, transformer_block

TOLERANCE = 1e-4
"""How many bits for each character the loss may be from NumPy's."""


class Model(psc.Record, dims="v d h k f"):
    """Of v characters, in d features, with h heads of k numbers and f hidden features."""

    characters: Embedding["v d"]
    blocks: tuple[Block["d h k f"], Block["d h k f"]]
    norm: Affine["d"]


@psc.kernel
def new_model(key: Key, v: psc.Static[int]) -> Model["v 64 4 16 256"]:
    """A random model."""
    assert v >= 1
    keys = psc.random.split(key, 3)
    blocks = transformer_block(keys[0], 64, 4, 16, 256), transformer_block(keys[1], 64, 4, 16, 256)
    norm = Affine(np.ones(64, np.float32), np.zeros(64, np.float32))
    return Model(embedding_layer(keys[2], v, 64), blocks, norm)


@psc.kernel
def no_moments(p: Model["v d h k f"]) -> Moments[Model["v d h k f"]]:
    """The state of the optimizer before the first step."""
    nothing = psc.tree.zeros_like(p)
    return Moments(nothing, nothing, np.int32(0))


@psc.kernel
def logits(p: Model["v d h k f"], text: i32["*batch t"]) -> Float["*batch t v"]:
    """For each place, how probable each character is to come next, knowing those up to there."""
    assert p.blocks[0].attention.query.shape[2] % 2 == 0
    x = embedding(p.characters, text)
    for block in p.blocks:
        x = transform(block, x, causal=True, positions=True)
    return embedding_scores(p.characters, layer_norm(p.norm, x))


@psc.kernel
def loss(p: Model["v d h k f"], text: i32["*batch t"]) -> Float:
    """The mean of the negative log-likelihoods of all characters but the first."""
    assert p.blocks[0].attention.query.shape[2] % 2 == 0
    assert text.shape[-1] >= 2
    return cross_entropy(logits(p, text[..., :-1]), text[..., 1:]).mean()


@psc.kernel(donate=("p", "state"))
def step(
    p: Model["v d h k f"], state: Moments[Model["v d h k f"]], text: i32["n t"], steps: i32
) -> tuple[Model["v d h k f"], Moments[Model["v d h k f"]], Float]:
    """One of so many steps of AdamW; the loss before it, too."""
    assert p.blocks[0].attention.query.shape[2] % 2 == 0
    assert text.shape[1] >= 2
    value, gradient = psc.value_and_grad(loss)(p, text)
    rate = warmup(state.steps, 20) * cosine(state.steps, steps, 3e-3)
    p, state = adamw(p, state, clip_by_norm(gradient, 1.0), rate)
    return p, state, value


@psc.kernel
def write(
    p: Model["v d h k f"], start: i32["t"], key: Key, count: psc.Static[int], temperature: Float
) -> i32["count"]:
    """Characters that go on from `start`, each drawn by the model that has seen the t before."""
    assert count >= 1
    assert p.blocks[0].attention.query.shape[2] % 2 == 0

    def following(seen: i32["t"], key: Key) -> tuple[i32["t"], i32]:
        scores = logits(p, seen)[-1] / temperature
        character = psc.random.categorical(key, scores)
        return np.append(seen[1:], character), character

    return psc.scan(following, start, psc.random.split(key, count))[1]


class Result(NamedTuple):
    """What training achieved."""

    characters: int
    """In the text for training."""
    parameters: int
    losses: np.ndarray
    """Before each step, in bits for each character."""
    bits: float
    """For each character of the unseen text."""
    from_numpy: float
    """How far that is from what NumPy finds for the same model, for a part of the text."""
    pairs: float
    """The same by counts of pairs of characters."""
    written: str
    """How the model goes on from the beginning of the unseen text."""
    seconds: float
    """Of training, with its compilation."""


def read_text(files: str = "[a-z]*.py") -> str:
    """Real prose: paragraphs of letters and simple marks in the docstrings of Python's library."""
    folder = Path(sysconfig.get_path("stdlib"))
    paragraphs = [part for path in sorted(folder.glob(files)) for part in paragraphs_of(path)]
    order = np.random.default_rng(0).permutation(len(paragraphs))
    return "\n".join([paragraphs[int(i)] for i in order])


def paragraphs_of(path: Path) -> Iterator[str]:
    """The paragraphs of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8", errors="ignore"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            for part in (ast.get_docstring(node) or "").split("\n\n"):
                words = " ".join(part.split())
                if re.fullmatch(r"[A-Z][A-Za-z ,.;:'()-]*\.", words):
                    yield words


def bits_in_numpy(p: Model[Any, Any, Any, Any, Any], rows: np.ndarray) -> float:
    """`loss` in bits for each character, in 64 bits."""
    p = psc.tree.map(lambda leaf: np.asarray(leaf, np.float64), p)

    def norm(q: Affine[Any], x: np.ndarray) -> np.ndarray:
        x = x - x.mean(axis=-1, keepdims=True)
        deviations = np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
        return np.asarray(x / deviations * q.scale + q.shift)

    def turned(x: np.ndarray) -> np.ndarray:
        t, k = x.shape[-2:]
        numbers = x[..., 0::2] + 1j * x[..., 1::2]
        angles = np.arange(t)[:, None] * np.logspace(0, -4, k // 2, endpoint=False)
        numbers = numbers * np.exp(1j * angles)
        return np.asarray(np.stack([numbers.real, numbers.imag], axis=-1).reshape(x.shape))

    def attended(q: Any, x: np.ndarray) -> np.ndarray:
        queries, keys, values = (
            np.einsum("ntd,dhk->nhtk", x, each, optimize=True) for each in (q.query, q.key, q.value)
        )
        scores = turned(queries) @ turned(keys).swapaxes(-1, -2) / np.sqrt(queries.shape[-1])
        t = x.shape[1]
        weights = np.exp(np.where(np.tri(t, dtype=bool), scores, -np.inf))
        weights /= weights.sum(axis=-1, keepdims=True)
        found = np.einsum("nhtk,hkd->ntd", weights @ values, q.out, optimize=True)
        return np.asarray(found)

    x = np.asarray(p.characters.table)[rows[:, :-1]]
    for block in p.blocks:
        x = x + attended(block.attention, norm(block.attention_norm, x))
        hidden = norm(block.hidden_norm, x) @ block.hidden.weights + block.hidden.bias
        x = x + hidden * ndtr(hidden) @ block.out.weights + block.out.bias
    scores = norm(p.norm, x) @ np.asarray(p.characters.table).T
    chosen = np.take_along_axis(scores, rows[:, 1:, None], axis=-1)[..., 0]
    return float((np.log2(np.exp(scores).sum(axis=-1)) - chosen / np.log(2)).mean())


def bits_by_pairs(text: np.ndarray, unseen: np.ndarray, v: int) -> float:
    """Bits for each unseen character by how often it followed the one before, counted in a text."""
    counts = np.full((v, v), 0.1)
    np.add.at(counts, (text[:-1], text[1:]), 1)
    probabilities = counts / counts.sum(axis=1, keepdims=True)
    return float(-np.log2(probabilities[unseen[:-1], unseen[1:]]).mean())


def run(
    text: str,
    steps: int = 1000,
    batch: int = 16,
    window: int = 64,
    count: int = 400,
    *,
    progress: bool = False,
) -> Result:
    """Train on nine tenths of the text, measure on the rest, and write."""
    alphabet = sorted(set(text))
    v = len(alphabet)
    numbers = np.searchsorted(np.array(alphabet), list(text)).astype(np.int32)
    cut = len(numbers) * 9 // 10
    seen, unseen = numbers[:cut], numbers[cut:]

    start = time.perf_counter()
    first, second = psc.random.split(psc.random.key(0))
    model = new_model(first, v)
    state = no_moments(model)
    rng = np.random.default_rng(0)
    losses: list[psc.Array] = []
    rounds: Iterable[int] = range(steps)
    for _ in track(rounds, "training") if progress else rounds:
        places = rng.integers(0, len(seen) - window, (batch, 1))
        model, state, value = step(model, state, seen[places + np.arange(window + 1)], steps)
        losses.append(value)
    seconds = time.perf_counter() - start

    rows = unseen[: len(unseen) // (window + 1) * (window + 1)].reshape(-1, window + 1)
    numbers = write(model, unseen[:window], second, count, np.float32(0.6))
    some = rows[:50]
    from_numpy = abs(float(loss(model, some)) / np.log(2) - bits_in_numpy(model, some))
    np.testing.assert_array_less(from_numpy, TOLERANCE)
    return Result(
        characters=len(seen),
        parameters=psc.tree.size(model),
        losses=np.array(losses) / np.log(2),
        bits=float(loss(model, rows)) / np.log(2),
        from_numpy=from_numpy,
        pairs=bits_by_pairs(seen, unseen, v),
        written="".join([alphabet[int(i)] for i in np.asarray(numbers)]),
        seconds=seconds,
    )


def main() -> None:
    """Print what training achieved."""
    result = run(read_text(), progress=True)
    first, last = result.losses[0], result.losses[-50:].mean()
    print(f"{result.parameters} parameters, {result.characters} characters to learn from")
    print(f"{len(result.losses)} steps in {result.seconds:.0f} seconds")
    print(f"bits for each character: {first:.2f} at first, {last:.2f} at last")
    print(f"of unseen text: {result.bits:.2f}, by counts of pairs: {result.pairs:.2f}")
    print(f"apart from NumPy for the same model: {result.from_numpy:.0e}", end=", ")
    print(f"at most {TOLERANCE:.0e} is allowed")
    print("\nwhat it writes:\n")
    print(textwrap.fill(result.written, 100))


if __name__ == "__main__":
    main()
