"""Forward programs of several kinds: networks, a hidden Markov model, fractals, random numbers."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pscdsl as psc
from benchmarks.workload import Workload, normal
from pscdsl import Key, f32, i32
from pscdsl._src.kernels.kernel import Kernel


@psc.kernel
def mlp(
    w1: f32["d h"], b1: f32["h"], w2: f32["h h"], b2: f32["h"], w3: f32["h k"], x: f32["n d"]
) -> f32["n k"]:
    """A multilayer perceptron with a softmax."""
    a = np.maximum(x @ w1 + b1, 0)
    a = np.maximum(a @ w2 + b2, 0)
    z = a @ w3
    z = z - np.max(z, axis=1, keepdims=True)
    e = np.exp(z)
    return e / np.sum(e, axis=1, keepdims=True)


@psc.kernel
def rnn(w: f32["h h"], u: f32["h d"], b: f32["h"], xs: f32["t d"], h0: f32["h"]) -> f32["t h"]:
    """A recurrent network over a sequence."""

    def step(h: Any, x: Any) -> Any:
        h = np.tanh(w @ h + u @ x + b)
        return h, h

    _, hs = psc.scan(step, h0, xs)
    return hs


@psc.kernel
def attention(
    wq: f32["d d"],
    wk: f32["d d"],
    wv: f32["d d"],
    wo: f32["d d"],
    g: f32["d"],
    w1: f32["d f"],
    w2: f32["f d"],
    x: f32["t d"],
) -> f32["t d"]:
    """A transformer block with one head and a causal mask."""
    t, d = x.shape

    def norm(v: Any) -> Any:
        m = np.mean(v, axis=-1, keepdims=True)
        s = np.mean((v - m) ** 2, axis=-1, keepdims=True)
        return (v - m) / np.sqrt(s + 1e-5) * g

    y = norm(x)
    q, k, v = y @ wq, y @ wk, y @ wv
    scores = q @ k.T / np.sqrt(d)
    mask = np.arange(t)[:, None] >= np.arange(t)[None, :]
    scores = np.where(mask, scores, -1e9)
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    p = e / np.sum(e, axis=-1, keepdims=True)
    x = x + (p @ v) @ wo
    z = norm(x) @ w1
    return x + (z * 0.5 * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z * z * z)))) @ w2


@psc.kernel
def hmm(start: f32["s"], trans: f32["s s"], emit: f32["s k"], obs: i32["t"]) -> f32:
    """Log-likelihood of an observed sequence."""

    def lse(a: Any) -> Any:
        m = np.max(a, axis=0)
        return m + np.log(np.sum(np.exp(a - m), axis=0))

    def step(alpha: Any, o: Any) -> Any:
        alpha = lse(alpha[:, None] + trans) + emit[:, o]
        return alpha, None

    alpha, _ = psc.scan(step, start + emit[:, obs[0]], obs[1:])
    return lse(alpha)


@psc.kernel
def mandelbrot(re: f32["n"], im: f32["m"]) -> i32["m n"]:
    """Steps until escape, at most 50."""
    cr = np.broadcast_to(re[None, :], (im.shape[0], re.shape[0]))
    ci = np.broadcast_to(im[:, None], (im.shape[0], re.shape[0]))

    def body(i: Any, state: tuple[Any, Any, Any]) -> Any:
        zr, zi, count = state
        alive = zr * zr + zi * zi < 4.0
        nr = zr * zr - zi * zi + cr
        ni = 2.0 * zr * zi + ci
        # In the order in which jax's program has them.
        return np.where(alive, nr, zr), np.where(alive, ni, zi), count + alive.astype(np.int32)

    zero = np.zeros_like(cr)
    count = np.zeros(cr.shape, dtype=np.int32)
    return psc.fori_loop(0, 50, body, (zero, zero, count))[2]


@psc.kernel
def chain(x: f32["n"]) -> f32["n"]:
    """A hundred elementwise operations."""
    for _ in range(25):
        x = np.sin(x) * 1.5 + x
        x = np.tanh(x)
    return x


@psc.kernel
def uniform(key: Key, like: f32["n"]) -> f32["n"]:
    """Uniform random numbers."""
    return psc.random.uniform(key, like.shape)


@psc.kernel
def gaussian(key: Key, like: f32["n"]) -> f32["n"]:
    """Normal random numbers."""
    return psc.random.normal(key, like.shape)


def jax_programs(jax: Any) -> dict[str, Callable[..., Any]]:
    """The same functions for jax."""
    jnp, lax, random = jax.numpy, jax.lax, jax.random

    def mlp_jax(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, x: Any) -> Any:
        a = jnp.maximum(x @ w1 + b1, 0)
        a = jnp.maximum(a @ w2 + b2, 0)
        z = a @ w3
        z = z - jnp.max(z, axis=1, keepdims=True)
        e = jnp.exp(z)
        return e / jnp.sum(e, axis=1, keepdims=True)

    def rnn_jax(w: Any, u: Any, b: Any, xs: Any, h0: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = jnp.tanh(w @ h + u @ x + b)
            return h, h

        return lax.scan(step, h0, xs)[1]

    def attention_jax(wq: Any, wk: Any, wv: Any, wo: Any, g: Any, w1: Any, w2: Any, x: Any) -> Any:
        t, d = x.shape

        def norm(v: Any) -> Any:
            m = jnp.mean(v, axis=-1, keepdims=True)
            s = jnp.mean((v - m) ** 2, axis=-1, keepdims=True)
            return (v - m) / jnp.sqrt(s + 1e-5) * g

        y = norm(x)
        q, k, v = y @ wq, y @ wk, y @ wv
        scores = q @ k.T / np.sqrt(d).astype(np.float32)
        mask = jnp.arange(t)[:, None] >= jnp.arange(t)[None, :]
        scores = jnp.where(mask, scores, -1e9)
        e = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
        p = e / jnp.sum(e, axis=-1, keepdims=True)
        x = x + (p @ v) @ wo
        z = norm(x) @ w1
        return x + (z * 0.5 * (1 + jnp.tanh(0.7978845608 * (z + 0.044715 * z * z * z)))) @ w2

    def hmm_jax(start: Any, trans: Any, emit: Any, obs: Any) -> Any:
        def lse(a: Any) -> Any:
            m = jnp.max(a, axis=0)
            return m + jnp.log(jnp.sum(jnp.exp(a - m), axis=0))

        def step(alpha: Any, o: Any) -> Any:
            return lse(alpha[:, None] + trans) + emit[:, o], None

        alpha, _ = lax.scan(step, start + emit[:, obs[0]], obs[1:])
        return lse(alpha)

    def mandelbrot_jax(re: Any, im: Any) -> Any:
        cr = jnp.broadcast_to(re[None, :], (im.shape[0], re.shape[0]))
        ci = jnp.broadcast_to(im[:, None], (im.shape[0], re.shape[0]))

        def body(i: Any, state: Any) -> Any:
            zr, zi, count = state
            alive = zr * zr + zi * zi < 4.0
            nr = zr * zr - zi * zi + cr
            ni = 2.0 * zr * zi + ci
            zr, zi = jnp.where(alive, nr, zr), jnp.where(alive, ni, zi)
            return zr, zi, count + alive.astype(jnp.int32)

        zero = jnp.zeros_like(cr)
        count = jnp.zeros(cr.shape, dtype=jnp.int32)
        return lax.fori_loop(0, 50, body, (zero, zero, count))[2]

    def chain_jax(x: Any) -> Any:
        for _ in range(25):
            x = jnp.sin(x) * 1.5 + x
            x = jnp.tanh(x)
        return x

    def uniform_jax(key: Any, like: Any) -> Any:
        return random.uniform(random.wrap_key_data(key), like.shape)

    def gaussian_jax(key: Any, like: Any) -> Any:
        return random.normal(random.wrap_key_data(key), like.shape)

    return {
        "mlp": mlp_jax,
        "rnn": rnn_jax,
        "attention": attention_jax,
        "hmm": hmm_jax,
        "mandelbrot": mandelbrot_jax,
        "chain": chain_jax,
        "uniform": uniform_jax,
        "gaussian": gaussian_jax,
    }


_ARGUMENTS: dict[str, tuple[Kernel[Any, Any], int, Callable[[int], tuple[Any, ...]]]] = {
    "mlp": (
        mlp,
        256,
        lambda n: (
            normal(64, 128),
            normal(128),
            normal(128, 128),
            normal(128),
            normal(128, 10),
            normal(n, 64),
        ),
    ),
    "rnn": (
        rnn,
        1000,
        lambda n: (normal(32, 32) * 0.3, normal(32, 8), normal(32), normal(n, 8), normal(32)),
    ),
    "attention": (
        attention,
        128,
        lambda n: (
            *(normal(64, 64) for _ in range(4)),
            normal(64),
            normal(64, 256),
            normal(256, 64),
            normal(n, 64),
        ),
    ),
    "hmm": (
        hmm,
        500,
        lambda n: (
            normal(6),
            normal(6, 6),
            normal(6, 12),
            np.random.default_rng(n).integers(0, 12, n).astype(np.int32),
        ),
    ),
    "mandelbrot": (
        mandelbrot,
        200,
        lambda n: (
            np.linspace(-2, 0.5, n, dtype=np.float32),
            np.linspace(-1, 1, n, dtype=np.float32),
        ),
    ),
    "chain": (chain, 100_000, lambda n: (normal(n),)),
    "uniform": (uniform, 1_000_000, lambda n: (psc.random.key(n), np.zeros(n, np.float32))),
    "gaussian": (gaussian, 1_000_000, lambda n: (psc.random.key(n), np.zeros(n, np.float32))),
}


def _theirs(name: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda jax: jax_programs(jax)[name]


WORKLOADS = tuple(
    Workload(name, kernel, arguments, scale, _theirs(name), tolerance=2e-3)
    for name, (kernel, scale, arguments) in _ARGUMENTS.items()
)
