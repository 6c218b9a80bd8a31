"""Loops with small bodies: filters, recurrent networks, integrators and iterative solvers."""

# pyright: basic
# Functions for jax and Autograd have arrays of no type that pyright knows.

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pscdsl as psc
from benchmarks.workload import Workload, normal
from benchmarks.workloads.programs import jax_programs, rnn
from pscdsl import f32, f64

STEPS = 1000


@psc.kernel
def kalman(
    f: f64["n n"], h: f64["m n"], q: f64["n n"], r: f64["m m"], x0: f64["n"], ys: f64["t m"]
) -> f64["t n"]:
    """The means of a Kalman filter."""

    def step(state: tuple[Any, Any], y: Any) -> Any:
        x, p = state
        x, p = f @ x, f @ p @ f.T + q
        s = h @ p @ h.T + r
        gain = np.linalg.solve(s, h @ p).T
        x = x + gain @ (y - h @ x)
        p = p - gain @ h @ p
        return (x, p), x

    return psc.scan(step, (x0, np.eye(x0.shape[0], dtype=np.float64)), ys)[1]


def _kalman(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def kalman(f: Any, h: Any, q: Any, r: Any, x0: Any, ys: Any) -> Any:
        def step(state: Any, y: Any) -> Any:
            x, p = state
            x, p = f @ x, f @ p @ f.T + q
            s = h @ p @ h.T + r
            gain = jnp.linalg.solve(s, h @ p).T
            x = x + gain @ (y - h @ x)
            p = p - gain @ h @ p
            return (x, p), x

        return jax.lax.scan(step, (x0, jnp.eye(len(x0))), ys)[1]

    return kalman


def _kalman_arguments(states: int, seen: int, steps: int) -> tuple[Any, ...]:
    f = np.eye(states) + normal(states, states, scale=0.02, dtype=np.float64)
    return (
        f * 0.98,
        normal(seen, states, dtype=np.float64),
        np.eye(states) * 0.1,
        np.eye(seen) * 0.5,
        np.zeros(states),
        normal(steps, seen, scale=1.0, dtype=np.float64),
    )


@psc.kernel
def lstm(
    w: f32["4*h h"], u: f32["4*h d"], b: f32["4*h"], xs: f32["t d"], h0: f32["h"]
) -> f32["t h"]:
    """Hidden states of a network with long short-term memory."""
    n = h0.shape[0]

    def step(state: tuple[Any, Any], x: Any) -> Any:
        h, c = state
        z = w @ h + u @ x + b
        i, f, o = [1 / (1 + np.exp(-z[k * n : (k + 1) * n])) for k in range(3)]
        c = f * c + i * np.tanh(z[3 * n :])
        h = o * np.tanh(c)
        return (h, c), h

    return psc.scan(step, (h0, np.zeros_like(h0)), xs)[1]


def _lstm(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def lstm(w: Any, u: Any, b: Any, xs: Any, h0: Any) -> Any:
        n = len(h0)

        def step(state: Any, x: Any) -> Any:
            h, c = state
            z = w @ h + u @ x + b
            i, f, o = [1 / (1 + jnp.exp(-z[k * n : (k + 1) * n])) for k in range(3)]
            c = f * c + i * jnp.tanh(z[3 * n :])
            h = o * jnp.tanh(c)
            return (h, c), h

        return jax.lax.scan(step, (h0, jnp.zeros_like(h0)), xs)[1]

    return lstm


@psc.kernel
def gru(
    w: f32["3*h h"], u: f32["3*h d"], b: f32["3*h"], xs: f32["t d"], h0: f32["h"]
) -> f32["t h"]:
    """Hidden states of a network of gated recurrent units."""
    n = h0.shape[0]

    def step(h: Any, x: Any) -> Any:
        a, z = w @ h, u @ x + b
        reset = 1 / (1 + np.exp(-(a[:n] + z[:n])))
        update = 1 / (1 + np.exp(-(a[n : 2 * n] + z[n : 2 * n])))
        new = np.tanh(z[2 * n :] + reset * a[2 * n :])
        h = update * h + (1 - update) * new
        return h, h

    return psc.scan(step, h0, xs)[1]


def _gru(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def gru(w: Any, u: Any, b: Any, xs: Any, h0: Any) -> Any:
        n = len(h0)

        def step(h: Any, x: Any) -> Any:
            a, z = w @ h, u @ x + b
            reset = 1 / (1 + jnp.exp(-(a[:n] + z[:n])))
            update = 1 / (1 + jnp.exp(-(a[n : 2 * n] + z[n : 2 * n])))
            new = jnp.tanh(z[2 * n :] + reset * a[2 * n :])
            h = update * h + (1 - update) * new
            return h, h

        return jax.lax.scan(step, h0, xs)[1]

    return gru


@psc.kernel
def gru_last(
    w: f32["3*h h"], u: f32["3*h d"], b: f32["3*h"], xs: f32["t d"], h0: f32["h"]
) -> f32["h"]:
    """The last hidden state alone: the others need not be kept."""
    return gru(w, u, b, xs, h0)[-1]


def _gru_last(jax: Any) -> Callable[..., Any]:
    states = _gru(jax)
    return lambda *arguments: states(*arguments)[-1]


def _cell_arguments(gates: int, state: int, steps: int) -> tuple[Any, ...]:
    rows = gates * state
    return (
        normal(rows, state, scale=0.1),
        normal(rows, 8),
        normal(rows),
        normal(steps, 8),
        normal(state),
    )


@psc.kernel
def lorenz(start: f64["3 *s"], dt: f64, steps: psc.Static[int]) -> f64["3 *s"]:
    """The Lorenz system after `steps` steps of the classical Runge-Kutta method."""

    def slope(s: Any) -> Any:
        x, y, z = s[0], s[1], s[2]
        return np.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - (8.0 / 3.0) * z])

    def step(_: Any, s: Any) -> Any:
        k1 = slope(s)
        k2 = slope(s + dt / 2 * k1)
        k3 = slope(s + dt / 2 * k2)
        k4 = slope(s + dt * k3)
        return s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return psc.fori_loop(0, steps, step, start)


@psc.kernel
def lorenz_1000(start: f64["3 *s"]) -> f64["3 *s"]:
    """A thousand steps."""
    return lorenz(start, 0.005, 1000)


def _lorenz(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def slope(s: Any) -> Any:
        x, y, z = s[0], s[1], s[2]
        return jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - (8.0 / 3.0) * z])

    def lorenz(start: Any) -> Any:
        dt = 0.005

        def step(_: Any, s: Any) -> Any:
            k1 = slope(s)
            k2 = slope(s + dt / 2 * k1)
            k3 = slope(s + dt / 2 * k2)
            k4 = slope(s + dt * k3)
            return s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return jax.lax.fori_loop(0, STEPS, step, start)

    return lorenz


def _near_one(*shape: int) -> Callable[[int], tuple[Any, ...]]:
    return lambda _: (1 + normal(3, *shape, scale=1e-3, dtype=np.float64),)


@psc.kernel
def conjugate_gradients(a: f64["n n"], b: f64["n"]) -> f64["n"]:
    """`solve(a, b)` for a positive definite matrix, to a residual of 1e-10 or 1000 steps."""

    def going(state: tuple[Any, Any, Any, Any, Any]) -> Any:
        _, _, _, rs, i = state
        return (rs > 1e-20) & (i < 1000)

    def body(state: tuple[Any, Any, Any, Any, Any]) -> Any:
        x, r, p, rs, i = state
        ap = a @ p
        alpha = rs / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new = r @ r
        return x, r, r + new / rs * p, new, i + 1

    start = np.zeros_like(b), b, b, b @ b, 0
    return psc.while_loop(going, body, start)[0]


def _conjugate_gradients(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def solve(a: Any, b: Any) -> Any:
        def going(state: Any) -> Any:
            _, _, _, rs, i = state
            return (rs > 1e-20) & (i < 1000)

        def body(state: Any) -> Any:
            x, r, p, rs, i = state
            ap = a @ p
            alpha = rs / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            new = r @ r
            return x, r, r + new / rs * p, new, i + 1

        return jax.lax.while_loop(going, body, (jnp.zeros_like(b), b, b, b @ b, 0))[0]

    return solve


@psc.kernel
def power_iteration(a: f32["n n"], x: f32["n"]) -> tuple[f32["n"], f32]:
    """The direction that a matrix stretches most, and how much: 1000 steps."""

    def step(state: tuple[Any, Any], _: Any) -> Any:
        y = a @ state[0]
        size = np.max(np.abs(y))
        return (y / size, size), None

    (x, size), _ = psc.scan(step, (x, np.float32(0)), None, length=STEPS)
    return x, size


def _power_iteration(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def run(a: Any, x: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            y = a @ state[0]
            size = jnp.max(jnp.abs(y))
            return (y / size, size), None

        return jax.lax.scan(step, (x, jnp.float32(0)), None, length=STEPS)[0]

    return run


def _positive(n: int) -> tuple[Any, ...]:
    return np.abs(normal(n, n, scale=1.0)), np.ones(n, np.float32)


def _definite(n: int) -> tuple[Any, ...]:
    a = normal(n, n, scale=1.0, dtype=np.float64)
    return a @ a.T / n + 0.01 * np.eye(n), normal(n, scale=1.0, dtype=np.float64)


def _cells() -> list[Workload]:
    made: list[Workload] = []
    for name, gates, kernel, theirs in (
        ("rnn", 1, rnn, lambda jax: jax_programs(jax)["rnn"]),
        ("gru", 3, gru, _gru),
        ("lstm", 4, lstm, _lstm),
    ):
        for state in (8, 32, 128):
            goal = 0.6 if (name, state) == ("rnn", 32) else 1.05
            arguments = partial(_cell_arguments, gates, state)
            made.append(Workload(f"{name}-{state}", kernel, arguments, STEPS, theirs, goal=goal))
    return made


WORKLOADS = (
    Workload(
        "kalman, 4 states",
        kalman,
        partial(_kalman_arguments, 4, 2),
        STEPS,
        _kalman,
        goal=0.1,
        double=True,
        tolerance=1e-9,
    ),
    *_cells(),
    Workload(
        "gru-32, last state",
        gru_last,
        partial(_cell_arguments, 3, 32),
        STEPS,
        _gru_last,
        goal=0.9,
    ),
    *(
        Workload(
            name,
            lorenz_1000,
            _near_one(*shape),
            STEPS,
            _lorenz,
            goal=1.05,
            double=True,
            tolerance=1e-2,  # the system multiplies any difference
        )
        for name, shape in (("lorenz", ()), ("lorenz, 1000 at once", (1000,)))
    ),
    *(
        Workload(
            f"cg-{n}",
            conjugate_gradients,
            _definite,
            n,
            _conjugate_gradients,
            goal=0.35 if n == 64 else 1.05,
            double=True,
            tolerance=1e-6,
        )
        for n in (16, 32, 64, 128, 256)
    ),
    Workload("power iteration, 64", power_iteration, _positive, 64, _power_iteration, goal=0.8),
)
