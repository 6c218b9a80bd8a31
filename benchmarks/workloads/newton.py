"""Minimisation by truncated Newton steps: the three problems of the 2018 JAX paper, rebuilt.

Frostig, Johnson, Leary, "Compiling machine learning programs via high-level tracing" (SysML 2018)
gives the problems but not all sizes; these were chosen so that a Python version takes seconds.  The
method is algorithm 7.1 of Nocedal and Wright, "Numerical optimization" (2006), with steps halved
until the loss falls enough.
"""

# pyright: basic
# Functions for jax and Autograd have arrays of no type that pyright knows.

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import pscdsl as psc
from benchmarks.workload import Workload
from pscdsl import f64, i32

OUTER = 50


def minimised(loss: Any, start: Any, most: int, tolerance: float) -> Any:
    """Where a loss is least, from a vector to start at; at most `most` steps for each direction."""
    gradient = psc.grad(loss)

    def direction(product: Any, g: Any) -> Any:
        size = np.sqrt(g @ g)
        enough = np.minimum(0.5, np.sqrt(size)) * size

        def going(state: tuple[Any, Any, Any, Any, Any]) -> Any:
            _, r, _, bent, i = state
            return (np.sqrt(r @ r) > enough) & (i < most) & np.logical_not(bent)

        def step(state: tuple[Any, Any, Any, Any, Any]) -> Any:
            z, r, d, _, i = state
            moved = product(d)
            curvature = d @ moved
            bent = curvature <= 0
            old = r @ r
            alpha = np.where(bent, np.where(i == 0, 1.0, 0.0), old / np.where(bent, 1.0, curvature))
            z, r = z + alpha * d, r + alpha * moved
            return z, r, (r @ r) / old * d - r, bent, i + 1

        return psc.while_loop(going, step, (np.zeros_like(g), g, -g, False, 0))[0]

    def going(state: tuple[Any, Any, Any]) -> Any:
        _, g, i = state
        return (np.sqrt(g @ g) > tolerance) & (i < OUTER)

    def step(state: tuple[Any, Any, Any]) -> Any:
        x, g, i = state
        _, product = psc.linearize(gradient, x)
        p = direction(product, g)
        here, slope = loss(x), g @ p

        def too_far(t: Any) -> Any:
            return (loss(x + t * p) > here + 1e-4 * t * slope) & (t > 1e-10)

        x = x + psc.while_loop(too_far, lambda t: t / 2, np.ones_like(here)) * p
        return x, gradient(x), i + 1

    return psc.while_loop(going, step, (start, gradient(start), 0))[0]


def _minimised_jax(jax: Any, loss: Any, start: Any, most: int, tolerance: float) -> Any:
    jnp, while_loop = jax.numpy, jax.lax.while_loop
    gradient = jax.grad(loss)

    def direction(product: Any, g: Any) -> Any:
        size = jnp.sqrt(g @ g)
        enough = jnp.minimum(0.5, jnp.sqrt(size)) * size

        def going(state: Any) -> Any:
            _, r, _, bent, i = state
            return (jnp.sqrt(r @ r) > enough) & (i < most) & ~bent

        def step(state: Any) -> Any:
            z, r, d, _, i = state
            moved = product(d)
            curvature = d @ moved
            bent = curvature <= 0
            old = r @ r
            alpha = jnp.where(
                bent, jnp.where(i == 0, 1.0, 0.0), old / jnp.where(bent, 1.0, curvature)
            )
            z, r = z + alpha * d, r + alpha * moved
            return z, r, (r @ r) / old * d - r, bent, i + 1

        return while_loop(going, step, (jnp.zeros_like(g), g, -g, False, 0))[0]

    def going(state: Any) -> Any:
        _, g, i = state
        return (jnp.sqrt(g @ g) > tolerance) & (i < OUTER)

    def step(state: Any) -> Any:
        x, g, i = state
        _, product = jax.linearize(gradient, x)
        p = direction(product, g)
        here, slope = loss(x), g @ p

        def too_far(t: Any) -> Any:
            return (loss(x + t * p) > here + 1e-4 * t * slope) & (t > 1e-10)

        x = x + while_loop(too_far, lambda t: t / 2, jnp.ones_like(here)) * p
        return x, gradient(x), i + 1

    return while_loop(going, step, (start, gradient(start), 0))[0]


def _minimised_autograd(loss: Any, start: Any, most: int, tolerance: float) -> Any:
    """As its users wrote it: each product with the Hessian differentiates anew."""
    autograd: Any = importlib.import_module("autograd")
    gradient = autograd.grad(loss)
    product = autograd.grad(lambda x, v: np.dot(gradient(x), v))
    x, g = start, gradient(start)
    for _ in range(OUTER):
        if np.sqrt(g @ g) <= tolerance:
            break
        size = np.sqrt(g @ g)
        enough = min(0.5, np.sqrt(size)) * size
        z, r, d = np.zeros_like(g), g, -g
        for i in range(most):
            if np.sqrt(r @ r) <= enough:
                break
            moved = product(x, d)
            curvature, old = d @ moved, r @ r
            if curvature <= 0:
                z = d if i == 0 else z
                break
            alpha = old / curvature
            z, r = z + alpha * d, r + alpha * moved
            d = (r @ r) / old * d - r
        here, slope, t = loss(x), g @ z, 1.0
        while loss(x + t * z) > here + 1e-4 * t * slope and t > 1e-10:
            t /= 2
        x = x + t * z
        g = gradient(x)
    return x


# A convex quadratic with many right-hand sides.


@psc.kernel
def quadratic(a: f64["n n"], bs: f64["k n"]) -> f64["k n"]:
    """Where `x @ a @ x / 2 - b @ x` is least, for each b."""
    return psc.map(
        lambda b: minimised(lambda x: x @ (a @ x) / 2 - b @ x, np.zeros_like(b), 1000, 1e-5), bs
    )


def _quadratic(jax: Any) -> Callable[..., Any]:
    def solve(a: Any, bs: Any) -> Any:
        def one(b: Any) -> Any:
            start = jax.numpy.zeros_like(b)
            return _minimised_jax(jax, lambda x: x @ (a @ x) / 2 - b @ x, start, 1000, 1e-5)

        return jax.lax.map(one, bs)

    return solve


def _quadratic_autograd() -> Callable[..., Any]:
    anp: Any = importlib.import_module("autograd.numpy")

    def one(a: Any, b: Any) -> Any:
        def loss(x: Any) -> Any:
            return anp.dot(x, anp.dot(a, x)) / 2 - anp.dot(b, x)

        return _minimised_autograd(loss, np.zeros_like(b), 1000, 1e-5)

    return lambda a, bs: np.stack([one(a, b) for b in bs])


def _quadratic_arguments(n: int) -> tuple[Any, ...]:
    random = np.random.default_rng(0)
    q, _ = np.linalg.qr(random.normal(size=(n, n)))
    return (q * np.logspace(0, -5, n)) @ q.T, random.normal(size=(20, n))


# A hidden Markov model of 6 states and 12 symbols.

STATES, SYMBOLS = 6, 12


@psc.kernel
def hmm_fit(start: f64["114"], observations: i32["t"]) -> f64["114"]:
    """The logits of the most likely model."""
    s, o = STATES, SYMBOLS

    def loss(x: Any) -> Any:
        first = psc.special.log_softmax(x[:s])
        moves = psc.special.log_softmax(x[s : s + s * s].reshape(s, s), axis=1)
        emits = psc.special.log_softmax(x[s + s * s :].reshape(s, o), axis=1)
        seen = emits.T[observations]

        def step(message: Any, emission: Any) -> Any:
            message = psc.special.logsumexp(message[:, None] + moves, axis=0) + emission
            return message, None

        message, _ = psc.scan(step, first + seen[0], seen[1:])
        return 2.5e-4 * (x @ x) - psc.special.logsumexp(message)

    return minimised(loss, start, 50, 1e-7)


def _hmm_fit(jax: Any) -> Callable[..., Any]:
    s, o = STATES, SYMBOLS
    log_softmax, logsumexp = jax.nn.log_softmax, jax.nn.logsumexp

    def fit(start: Any, observations: Any) -> Any:
        def loss(x: Any) -> Any:
            first = log_softmax(x[:s])
            moves = log_softmax(x[s : s + s * s].reshape(s, s), axis=1)
            emits = log_softmax(x[s + s * s :].reshape(s, o), axis=1)
            seen = emits.T[observations]

            def step(message: Any, emission: Any) -> Any:
                return logsumexp(message[:, None] + moves, axis=0) + emission, None

            message, _ = jax.lax.scan(step, first + seen[0], seen[1:])
            return 2.5e-4 * (x @ x) - logsumexp(message)

        return _minimised_jax(jax, loss, start, 50, 1e-7)

    return fit


def _hmm_fit_autograd() -> Callable[..., Any]:
    anp: Any = importlib.import_module("autograd.numpy")
    logsumexp: Any = importlib.import_module("autograd.scipy.special").logsumexp
    s, o = STATES, SYMBOLS

    def log_softmax(x: Any) -> Any:
        return x - logsumexp(x, axis=-1, keepdims=True)

    def fit(start: Any, observations: Any) -> Any:
        def loss(x: Any) -> Any:
            first = log_softmax(x[:s])
            moves = log_softmax(anp.reshape(x[s : s + s * s], (s, s)))
            emits = log_softmax(anp.reshape(x[s + s * s :], (s, o)))
            message = first + emits[:, observations[0]]
            for each in observations[1:]:
                message = logsumexp(message[:, None] + moves, axis=0) + emits[:, each]
            return 2.5e-4 * anp.dot(x, x) - logsumexp(message)

        return _minimised_autograd(loss, start, 50, 1e-7)

    return fit


def _hmm_fit_arguments(steps: int) -> tuple[Any, ...]:
    random = np.random.default_rng(1)
    count = STATES + STATES * STATES + STATES * SYMBOLS
    observations = random.integers(0, SYMBOLS, steps).astype(np.int32)
    return random.normal(size=count) * 0.1, observations


# Logistic regression on badly scaled columns.


@psc.kernel
def logistic(xs: f64["n d"], ys: f64["n"]) -> f64["d"]:
    """The weights of a logistic regression; labels are -1 and 1."""

    def loss(w: Any) -> Any:
        return np.mean(np.logaddexp(0.0, -ys * (xs @ w))) + 0.5e-7 * (w @ w)

    return minimised(loss, np.zeros(xs.shape[1], dtype=np.float64), 200, 1e-7)


def _logistic(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def fit(xs: Any, ys: Any) -> Any:
        def loss(w: Any) -> Any:
            return jnp.mean(jnp.logaddexp(0.0, -ys * (xs @ w))) + 0.5e-7 * (w @ w)

        return _minimised_jax(jax, loss, jnp.zeros(xs.shape[1]), 200, 1e-7)

    return fit


def _logistic_autograd() -> Callable[..., Any]:
    anp: Any = importlib.import_module("autograd.numpy")

    def fit(xs: Any, ys: Any) -> Any:
        def loss(w: Any) -> Any:
            margins = -ys * anp.dot(xs, w)
            return anp.mean(anp.logaddexp(0.0, margins)) + 0.5e-7 * anp.dot(w, w)

        return _minimised_autograd(loss, np.zeros(xs.shape[1]), 200, 1e-7)

    return fit


def _logistic_arguments(rows: int) -> tuple[Any, ...]:
    random = np.random.default_rng(2)
    xs = random.normal(size=(rows, 300)) * np.logspace(0, -2, 300)
    truth = random.normal(size=300) * 3
    chances = 1 / (1 + np.exp(-xs @ truth))
    return xs, np.where(random.uniform(size=rows) < chances, 1.0, -1.0)


WORKLOADS = (
    Workload(
        "newton, quadratic",
        quadratic,
        _quadratic_arguments,
        100,
        _quadratic,
        others={"numpy and autograd": _quadratic_autograd},
        goal=0.5,
        double=True,
        tolerance=1e-3,
    ),
    Workload(
        "newton, hmm",
        hmm_fit,
        _hmm_fit_arguments,
        50,
        _hmm_fit,
        others={"numpy and autograd": _hmm_fit_autograd},
        goal=0.5,
        double=True,
        tolerance=1e-3,
    ),
    Workload(
        "newton, logistic",
        logistic,
        _logistic_arguments,
        20_000,
        _logistic,
        others={"numpy and autograd": _logistic_autograd},
        goal=0.5,
        double=True,
        tolerance=1e-3,
    ),
)
