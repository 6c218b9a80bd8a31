"""Optimizers, clipping and schedules: the papers' formulas in NumPy, and convex problems."""

# ml_dtypes is not fully typed.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import pscdsl as psc
from pscdsl import bf16, f32, f64, i32
from pscdsl.stdlib import clipping, optimizers, schedules

pytestmark = pytest.mark.quick_code

RANDOM = np.random.default_rng(0)
T = 12


class Params(psc.Record):
    """Two precisions, and an integer that nothing moves."""

    w: f64["a b"]
    b: f32["b"]
    count: i32


class Gradients(psc.Record):
    """One for each step; integers have none."""

    w: f64["t a b"]
    b: f32["t b"]
    count: None = None


@psc.kernel
def follow(
    start: Params, gradients: Gradients, rate: f32
) -> tuple[Params, Params, Params, Params, Params, Params, Params]:
    """All optimizers over the same gradients."""

    def step(ways: Any, slopes: Any) -> tuple[Any, None]:
        g: Any = start.replace(w=slopes.w, b=slopes.b, count=None)  # as `psc.grad` has it
        (plain, heavy, ahead, adam, adamw, lion, leo), (v, w, m, n, k, j) = ways
        plain = optimizers.sgd(plain, g, rate)
        heavy, v = optimizers.momentum(heavy, v, g, rate)
        ahead, w = optimizers.momentum(ahead, w, g, rate, decay=0.8, nesterov=True)
        adam, m = optimizers.adam(adam, m, g, rate)
        shares = {"decay": 0.8, "square_decay": 0.9}
        adamw, n = optimizers.adamw(adamw, n, g, rate, weight_decay=0.1, epsilon=1e-3, **shares)
        lion, k = optimizers.lion(lion, k, g, rate)
        leo, j = optimizers.lion(leo, j, g, rate, weight_decay=0.1, decay=0.8, mean_decay=0.9)
        return ((plain, heavy, ahead, adam, adamw, lion, leo), (v, w, m, n, k, j)), None

    velocity, moments, mean = (
        optimizers.momentum_start(start),
        optimizers.adam_start(start),
        optimizers.lion_start(start),
    )
    states = velocity, velocity, moments, moments, mean, mean
    ended, _ = psc.scan(step, ((start,) * 7, states), gradients)
    params: tuple[Params, Params, Params, Params, Params, Params, Params] = ended[0]
    return params


def momentum(decay: float, nesterov: bool) -> Callable[..., Any]:
    def step(p: Any, state: Any, g: Any, rate: float, t: int) -> Any:
        v = decay * state + g
        return p - rate * (decay * v + g if nesterov else v), v

    return step


def adam(shrink: float, b1: float, b2: float, epsilon: float) -> Callable[..., Any]:
    def step(p: Any, state: Any, g: Any, rate: float, t: int) -> Any:
        m, v = state if isinstance(state, tuple) else (0, 0)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        move = m / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + epsilon)
        return p - rate * (move + shrink * p), (m, v)

    return step


def lion(shrink: float, b1: float, b2: float) -> Callable[..., Any]:
    def step(p: Any, m: Any, g: Any, rate: float, t: int) -> Any:
        move = np.sign(b1 * m + (1 - b1) * g)
        return p - rate * (move + shrink * p), b2 * m + (1 - b2) * g

    return step


FORMULAS = [
    momentum(0, False),
    momentum(0.9, False),
    momentum(0.8, True),
    adam(0, 0.9, 0.999, 1e-8),
    adam(0.1, 0.8, 0.9, 1e-3),
    lion(0, 0.9, 0.99),
    lion(0.1, 0.8, 0.9),
]


def test_steps_are_those_of_the_papers() -> None:
    w, b = RANDOM.normal(size=(3, 2)), RANDOM.normal(size=2).astype(np.float32)
    slopes = RANDOM.normal(size=(T, 3, 2)), RANDOM.normal(size=(T, 2)).astype(np.float32)
    rate = 0.125
    found = follow(Params(w, b, np.int32(7)), Gradients(*slopes), np.float32(rate))
    for way, formula in zip(found, FORMULAS, strict=True):
        for mine, start, gradients in ((way.w, w, slopes[0]), (way.b, b, slopes[1])):
            p, state = start.astype(np.float64), np.zeros_like(start)
            for t, g in enumerate(gradients, 1):
                p, state = formula(p, state, g, rate, t)
            eps = 50 * float(np.finfo(start.dtype).eps)
            np.testing.assert_allclose(mine, p, rtol=eps, atol=eps)
        assert int(way.count) == 7


@psc.kernel
def descend(a: f64["n n"], b: f64["n"]) -> tuple[f64["n"], f64["n"], f64["n"], f64["n"]]:
    """All optimizers on a quadratic function, with a rate that falls."""

    def loss(x: f64["n"]) -> f64:
        return x @ a @ x / 2 - b @ x

    def step(ways: Any, i: i32) -> tuple[Any, None]:
        (plain, heavy, adam, lion), (v, m, k) = ways
        rate = schedules.cosine(i, 3000, 0.1)
        slope = psc.grad(loss)
        plain = optimizers.sgd(plain, slope(plain), rate)
        heavy, v = optimizers.momentum(heavy, v, slope(heavy), rate, nesterov=True)
        adam, m = optimizers.adam(adam, m, slope(adam), rate)
        lion, k = optimizers.lion(lion, k, slope(lion), rate / 10)
        return ((plain, heavy, adam, lion), (v, m, k)), None

    start = np.zeros_like(b)
    states = (
        optimizers.momentum_start(start),
        optimizers.adam_start(start),
        optimizers.lion_start(start),
    )
    ended, _ = psc.scan(step, ((start,) * 4, states), np.arange(3000))
    found: tuple[f64["n"], f64["n"], f64["n"], f64["n"]] = ended[0]
    return found


def test_convex_functions_are_minimized() -> None:
    a = RANDOM.normal(size=(4, 4))
    a = a @ a.T / 4 + 0.5 * np.eye(4)
    b = RANDOM.normal(size=4)
    for found in descend(a, b):
        np.testing.assert_allclose(found, np.linalg.solve(a, b), atol=1e-3)


@psc.kernel
def many_steps(p: bf16["n"], g: bf16["n"]) -> tuple[bf16["n"], f32["n"]]:
    def step(way: Any, _: i32) -> tuple[Any, None]:
        p, state = way
        return optimizers.adam(p, state, g, 1e-2), None

    (p, state), _ = psc.scan(step, (p, optimizers.adam_start(p)), np.arange(500))
    return p, state.square


def test_states_of_16_bits_take_in_small_shares() -> None:
    g = np.array([1, -2], ml_dtypes.bfloat16)
    p, square = many_steps(np.zeros(2, ml_dtypes.bfloat16), g)
    np.testing.assert_allclose(square, (1 - 0.999**500) * np.array([1, 4]), rtol=1e-3)
    assert p.dtype == ml_dtypes.bfloat16


@psc.kernel
def clipped(
    g: tuple[f32["n"], None, f64["m"]], limit: f32
) -> tuple[tuple[f32["n"], None, f64["m"]], tuple[f32["n"], None, f64["m"]]]:
    return clipping.clip_by_norm(g, limit), clipping.clip_by_value(g, limit)


def test_clipping() -> None:
    g = np.array([3, 0], np.float32), None, np.array([4, 12.0])  # of length 13
    short, cut = clipped(g, np.float32(6.5))
    np.testing.assert_allclose(short[0], [1.5, 0], rtol=1e-6)
    np.testing.assert_allclose(short[2], [2, 6], rtol=1e-6)
    np.testing.assert_array_equal(cut[2], [4, 6.5])
    short, cut = clipped(g, np.float32(13))
    np.testing.assert_array_equal(short[2], g[2])
    nothing = np.zeros(2, np.float32), None, np.zeros(2)
    np.testing.assert_array_equal(clipped(nothing, np.float32(1))[0][0], [0, 0])
    np.testing.assert_array_equal(clipped(nothing, np.float32(1))[0][2], [0, 0])


@psc.kernel
def rates(steps: i32["t"], first: f32) -> tuple[f32["t"], f32["t"], f32["t"], f32["t"]]:
    ends, values = np.array([3, 7]), np.array([0.5, 0.25, 0.125], np.float32)

    def at(step: i32) -> tuple[f32, f32, f32, f32]:
        return (
            schedules.warmup(step, 4, first),
            schedules.cosine(step, 10, first, np.float32(0.1)),
            schedules.exponential(step, 5, first, np.float32(0.5)),
            schedules.piecewise(step, ends, values),
        )

    found: tuple[f32["t"], f32["t"], f32["t"], f32["t"]] = psc.vmap(at)(steps)
    return found


def test_schedules() -> None:
    steps = np.arange(13, dtype=np.int32)
    rate = np.float32(0.3)

    def close(found: Any, expected: NDArray[Any]) -> None:
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    warmup, cosine, exponential, piecewise = rates(steps, rate)
    close(warmup, rate * np.minimum((steps + 1) / 4, 1))
    done = np.minimum(steps / 10, 1)
    close(cosine, 0.1 + (rate - 0.1) * (1 + np.cos(np.pi * done)) / 2)
    close(exponential, rate * 0.5 ** (steps / 5))
    close(piecewise, np.select([steps < 3, steps < 7], [0.5, 0.25], 0.125))
    assert float(schedules.warmup(np.int32(0), np.int32(0), rate)) == pytest.approx(0.3)


class Weights(psc.Record):
    """Parameters of one dtype."""

    w: f32["a b"]
    b: f32["b"]


@psc.kernel
def adam_step(
    p: Weights, state: optimizers.Moments[Weights], slope: Weights
) -> tuple[Weights, optimizers.Moments[Weights]]:
    """A step whose state goes in and out of a kernel."""
    return optimizers.adam(p, state, slope, 0.1)


def test_states_go_in_and_out_of_kernels() -> None:
    p = Weights(w=np.ones((2, 3), np.float32), b=np.ones(3, np.float32))
    zeros = psc.tree.zeros_like(p)
    state = optimizers.Moments(mean=zeros, square=zeros, steps=0)
    for steps in range(1, 4):
        p, state = adam_step(p, state, p)
        assert int(state.steps) == steps
    np.testing.assert_allclose(p.b, 0.7, rtol=1e-2)
