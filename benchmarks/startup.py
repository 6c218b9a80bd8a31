"""From the start of a process to the first result: a training step, cold and warm.

Cold: nothing has been compiled before.  Warm: an earlier process has, and kept it.  Ours and jax's
processes alternate, each with a folder of its own; `python -m benchmarks.startup ours` or
`jax` is one such process.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import compare, seconds
from benchmarks.report import Row, summary

ROOT = Path(__file__).parents[1]
ROUNDS = 9
WARM_GOAL = 0.4
SIZES = {"d": 32, "f": 64, "t": 16}


def arguments(layer: Any) -> list[Any]:
    """Two layers' weights, and a sequence with its targets."""
    rng = np.random.default_rng(0)
    d, f, t = SIZES["d"], SIZES["f"], SIZES["t"]
    shapes = ((d, d), (d, d), (d, d), (d, d), (d,), (d, f), (f, d))
    layers = [layer(*[_normal(rng, shape) for shape in shapes]) for _ in range(2)]
    return [tuple(layers), _normal(rng, (t, d)), _normal(rng, (t, d))]


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return (rng.standard_normal(shape) * 0.1).astype(np.float32)


SOURCE = """\
from typing import NamedTuple


class Layer(NamedTuple):
    wq: f32["d d"]
    wk: f32["d d"]
    wv: f32["d d"]
    wo: f32["d d"]
    g: f32["d"]
    w1: f32["d f"]
    w2: f32["f d"]


def norm(v, g):
    m = np.mean(v, axis=-1, keepdims=True)
    s = np.mean((v - m) ** 2, axis=-1, keepdims=True)
    return (v - m) / np.sqrt(s + 1e-5) * g


def block(layer, x):
    wq, wk, wv, wo, g, w1, w2 = layer
    t, d = x.shape
    y = norm(x, g)
    q, k, v = y @ wq, y @ wk, y @ wv
    scores = q @ k.T / np.sqrt(d)
    mask = np.arange(t)[:, None] >= np.arange(t)[None, :]
    scores = np.where(mask, scores, -1e9)
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    x = x + (e / np.sum(e, axis=-1, keepdims=True) @ v) @ wo
    z = norm(x, g) @ w1
    return x + (z * 0.5 * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z * z * z)))) @ w2


def loss(p: tuple[Layer, Layer], x: f32["t d"], y: f32["t d"]) -> f32:
    for each in p:
        x = block(each, x)
    return np.mean((x - y) ** 2)


def step(p: tuple[Layer, Layer], x: f32["t d"], y: f32["t d"]) -> tuple[f32, tuple[Layer, Layer]]:
    value, slopes = value_and_grad(loss)(p, x, y)
    moved = [Layer(*[a - 0.1 * b for a, b in zip(w, g)]) for w, g in zip(p, slopes)]
    return value, tuple(moved)
"""
OURS = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32, value_and_grad

"""
JAX = """\
import jax
import jax.numpy as np
from jax import value_and_grad

class f32:
    def __class_getitem__(cls, item):
        return cls

"""


def write(folder: Path) -> None:
    """The program for both."""
    (folder / "ours.py").write_text(OURS + SOURCE.replace("def step", "@psc.kernel\ndef step"))
    (folder / "theirs.py").write_text(JAX + SOURCE.replace("def step", "@jax.jit\ndef step"))


def process(which: str) -> None:
    """One process: the step, called once, and its loss on the standard output."""
    if which == "theirs":
        jax: Any = importlib.import_module("jax")
        jax.config.update("jax_compilation_cache_dir", os.environ["STARTUP_CACHE"])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    program: Any = importlib.import_module(which)
    print(float(np.asarray(program.step(*arguments(program.Layer))[0])))


def measured(folder: Path) -> list[Row]:
    """The rows; the programs lie in this folder, and what is kept."""
    write(folder)
    results: dict[str, str] = {}
    turn = 0

    def start(which: str, *, cold: bool) -> None:
        nonlocal turn
        turn += cold
        cache = str(folder / f"{which}{turn if cold else ''}")
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment = {
            **kept,
            "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))),
            "PSCDSL_CACHE": cache,
            "STARTUP_CACHE": cache,
        }
        command = [sys.executable, "-m", "benchmarks.startup", which]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        results[which] = done.stdout

    def ours(*, cold: bool) -> Callable[[], None]:
        return lambda: start("ours", cold=cold)

    def theirs(*, cold: bool) -> Callable[[], None]:
        return lambda: start("theirs", cold=cold)

    if importlib.util.find_spec("jax") is None:
        for name, cold in (("cold", True), ("warm", False)):
            times = [seconds(ours(cold=cold)) for _ in range(ROUNDS + 1)]
            print(f"{name}: {statistics.median(times[1:]):.3f} s; jax is not there")
        return []
    rows: list[Row] = []
    for name, cold in (("cold", True), ("warm", False)):
        found = compare(ours(cold=cold), theirs(cold=cold), rounds=ROUNDS)
        row = Row.of("startup", name, "process start to first result", found)
        rows.append(row if cold else replace(row, goal=WARM_GOAL))
    np.testing.assert_allclose(float(results["ours"]), float(results["theirs"]), rtol=1e-4)
    return rows


def startup() -> list[Row]:
    """A step cold and warm, beside jax if it is there."""
    with tempfile.TemporaryDirectory() as folder:
        return measured(Path(folder))


def main(arguments: Sequence[str]) -> None:
    """One process, or the table."""
    if arguments:
        process(arguments[0])
    else:
        print(summary(startup()))


if __name__ == "__main__":
    main(sys.argv[1:])
