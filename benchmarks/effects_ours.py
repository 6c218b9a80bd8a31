"""Loops with and without effects, measured for `benchmarks.effects`."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import pscdsl as psc
from benchmarks.effects import STEPS, X, best
from pscdsl import f32, i32


@psc.kernel
def plain(x: f32["n n"], steps: i32) -> f32["n n"]:
    return psc.fori_loop(0, steps, lambda i, x: np.tanh(x @ x), x)


@psc.kernel
def printing(x: f32["n n"], steps: i32) -> f32["n n"]:
    def body(i: i32, x: f32["n n"]) -> f32["n n"]:
        psc.debug.print("{i} {x}", i=i, x=np.sum(x))
        return np.tanh(x @ x)

    return psc.fori_loop(0, steps, body, x)


@psc.kernel
def checked(x: f32["n n"], steps: i32) -> f32["n n"]:
    def body(i: i32, x: f32["n n"]) -> f32["n n"]:
        psc.check(np.isfinite(x), "step {i}", i=i)
        return np.tanh(x @ x)

    return psc.fori_loop(0, steps, body, x)


@psc.kernel
def recorded(x: f32["n n"], steps: i32) -> f32["n n"]:
    def body(i: i32, x: f32["n n"]) -> f32["n n"]:
        psc.debug.value("mean", np.mean(x))
        return np.tanh(x @ x)

    return psc.fori_loop(0, steps, body, x)


@psc.kernel
def indexed(x: f32["n n"], steps: i32) -> f32["n n"]:
    return psc.fori_loop(0, steps, lambda i, x: np.tanh(x @ x + x[7 * i % x.shape[0]]), x)


@psc.kernel
def watched(x: f32["n n"], steps: i32) -> f32["n n"]:
    def body(i: i32, x: f32["n n"]) -> f32["n n"]:
        psc.progress(i, steps)
        return np.tanh(x @ x)

    return psc.fori_loop(0, steps, body, x)


def measured() -> dict[str, tuple[float, float]]:
    """Return the time without and with each effect."""
    steps = np.int32(STEPS)

    def timed(kernel: Any, steps: Any = steps) -> float:
        return best(lambda: np.asarray(kernel(X, steps)))

    found: dict[str, tuple[float, float]] = {}
    for name, kernel in (("print", printing), ("check", checked)):
        with psc.debug.off():
            off = timed(kernel)
        found[name] = off, timed(kernel)
    many = np.int32(200 * STEPS)
    with psc.debug.off():
        off = timed(watched, many)
    found["progress, 200,000 steps"] = off, timed(watched, many)
    found["value"] = timed(recorded), best(lambda: recorded.inspect(X, steps))
    off = timed(indexed)
    with psc.debug.checks("index"):
        found["index"] = off, timed(indexed)
    off = timed(plain)
    with psc.debug.checks("nan"):
        found["NaN"] = off, timed(plain)

    def profiled(folder: str) -> None:
        with psc.profile(folder):
            np.asarray(plain(X, steps))

    with TemporaryDirectory() as folder:
        found["profile"] = off, best(lambda: profiled(folder))
    return found
