"""How loops are compiled: what is summed up after them, and what is turned before them."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64
from pscdsl._src.ir.program import evaluate
from pscdsl._src.kernels.kernel import Kernel

pytestmark = pytest.mark.jaxlib


class Weights(psc.Record):
    """Of a recurrent network."""

    w: f64["h h"]
    u: f64["h d"]
    b: f64["h"]


@psc.kernel
def vectors(p: Weights, xs: f64["t d"], h0: f64["h"]) -> f64:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(p.w @ h + p.u @ x + p.b)
        return h, h

    return np.sum(psc.scan(step, h0, xs)[1])


@psc.kernel
def rows(p: Weights, xs: f64["t n d"], h0: f64["n h"]) -> f64:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(h @ p.w.T + x @ p.u.T + p.b)
        return h, h

    return np.sum(psc.scan(step, h0, xs, reverse=True)[1])


@psc.kernel
def columns(p: Weights, xs: f64["t d n"], h0: f64["h n"]) -> f64:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(p.w @ h + p.u @ x + p.b[:, None])
        return h, h

    return np.sum(psc.scan(step, h0, xs)[1])


@psc.kernel
def recurrent(p: Weights, x: f64["n d"], h: f64["n h"]) -> f64["n h"]:
    return np.tanh(h @ p.w + x @ p.u.T + p.b)


@psc.kernel
def called(p: Weights, xs: f64["t n d"], h0: f64["n h"]) -> f64:
    def step(h: Any, x: Any) -> Any:
        return recurrent(p, x, recurrent(p, x, h)), None

    return np.sum(psc.scan(step, h0, xs)[0])


@psc.kernel
def mixed(p: Weights, xs: f64["t d"], h0: f64["h"]) -> f64:
    """The gradient of a matrix has several parts in a step, and not all are products."""

    def step(h: Any, x: Any) -> Any:
        turned = -(2 * p.w.T) @ h
        h = np.tanh(turned + p.w @ h + p.u @ x + np.mean(p.w) + p.b)
        return h, None

    return np.sum(psc.scan(step, h0, xs)[0])


@psc.kernel
def each(
    p: Weights, xs: f64["k t d"], h0: f64["k h"]
) -> tuple[f64["k h h"], f64["k h d"], f64["k h"]]:
    found = psc.vmap(psc.grad(vectors), in_axes=(None, 0, 0))(p, xs, h0)
    return found.w, found.u, found.b


@psc.kernel
def curvature(p: Weights, xs: f64["t d"], h0: f64["h"]) -> Weights:
    def gradient(p: Any) -> Any:
        return psc.grad(vectors)(p, xs, h0)

    found: Weights = psc.jvp(gradient, (p,), (p,))[1]
    return found


CASES: dict[str, tuple[Kernel[Any, Any], tuple[int, ...], tuple[int, ...]]] = {
    "vectors": (psc.grad(vectors), (50, 5), (20,)),
    "rows": (psc.grad(rows), (50, 3, 5), (3, 20)),
    "columns": (psc.grad(columns), (50, 5, 3), (20, 3)),
    "called": (psc.grad(called), (50, 3, 5), (3, 20)),
    "mixed": (psc.grad(mixed), (50, 5), (20,)),
    "each": (each, (3, 50, 5), (3, 20)),
    "curvature": (curvature, (50, 5), (20,)),
}
"""Derivatives in the weights, and the shapes of the sequence and of the first state."""


def arguments(xs: tuple[int, ...], h0: tuple[int, ...]) -> tuple[Weights, Any, Any]:
    """Weights and data; the sizes of the state and of the input are 20 and 5."""
    random = np.random.default_rng(len(xs))

    def normal(*shape: int) -> Any:
        return random.normal(size=shape) / 4

    return Weights(normal(20, 20), normal(20, 5), normal(20)), normal(*xs), normal(*h0)


def leaves(p: Any) -> list[Any]:
    return [p.w, p.u, p.b] if isinstance(p, Weights) else list(p)


@pytest.mark.parametrize("name", CASES)
def test_sums_of_products_are_made_after_loops_that_run_backwards(name: str) -> None:
    kernel, *shapes = CASES[name]
    p, xs, h0 = arguments(*shapes)
    program = kernel.ir()
    sizes = {"h": 20, "d": 5, "t": 50, "n": 3, "k": 3}
    sizes = {name: sizes[name] for name in program.dims}
    expected = evaluate(program, sizes, [*leaves(p), xs, h0])
    for found, wanted in zip(leaves(kernel(p, xs, h0)), expected, strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-10, atol=1e-12)
