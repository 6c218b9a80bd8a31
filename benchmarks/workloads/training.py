"""Steps of training: the loss, its gradient and the new parameters, as one program."""

# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pscdsl as psc
from benchmarks.workload import Workload, normal
from benchmarks.workloads.programs import attention, jax_programs, mlp
from pscdsl import f32, i32


class Perceptron(psc.Record):
    """The parameters of the multilayer perceptron."""

    w1: f32["d h"]
    b1: f32["h"]
    w2: f32["h h"]
    b2: f32["h"]
    w3: f32["h k"]


class Block(psc.Record):
    """The parameters of a transformer block."""

    wq: f32["d d"]
    wk: f32["d d"]
    wv: f32["d d"]
    wo: f32["d d"]
    g: f32["d"]
    w1: f32["d f"]
    w2: f32["f d"]


@psc.kernel
def perceptron_step(p: Perceptron, x: f32["n d"], labels: i32["n"]) -> tuple[Perceptron, f32]:
    """A step of gradient descent on the cross entropy."""

    def loss(p: Perceptron) -> f32:
        found = mlp(p.w1, p.b1, p.w2, p.b2, p.w3, x)
        return -np.log(np.take_along_axis(found, labels[:, None], axis=1) + 1e-6).mean()

    value, slope = psc.value_and_grad(loss)(p)
    return psc.tree.map(lambda w, g: w - 0.01 * g, p, slope), value


@psc.kernel
def transformer_step(p: Block, x: f32["n t d"], y: f32["n t d"]) -> tuple[Block, f32]:
    """A step of gradient descent on the squared error of a batch of sequences."""

    def loss(p: Block) -> f32:
        def one(x: f32["t d"]) -> f32["t d"]:
            return attention(p.wq, p.wk, p.wv, p.wo, p.g, p.w1, p.w2, x)

        return ((psc.vmap(one)(x) - y) ** 2).mean()

    value, slope = psc.value_and_grad(loss)(p)
    return psc.tree.map(lambda w, g: w - 0.01 * g, p, slope), value


@psc.kernel
def adam_step(
    ps: tuple[f32["n n"], ...],
    gs: tuple[f32["n n"], ...],
    ms: tuple[f32["n n"], ...],
    vs: tuple[f32["n n"], ...],
    t: f32,
) -> tuple[tuple[f32["n n"], ...], tuple[f32["n n"], ...], tuple[f32["n n"], ...]]:
    """A step of Adam on parameters with their gradients, of which it is the t-th."""
    assert len(ps) == len(gs) == len(ms) == len(vs)
    ms = tuple([0.9 * m + 0.1 * g for m, g in zip(ms, gs, strict=True)])
    vs = tuple([0.999 * v + 0.001 * g * g for v, g in zip(vs, gs, strict=True)])
    one, two = 1 - np.float32(0.9) ** t, 1 - np.float32(0.999) ** t
    steps = [(m / one) / (np.sqrt(v / two) + 1e-8) for m, v in zip(ms, vs, strict=True)]
    return tuple([p - 0.01 * step for p, step in zip(ps, steps, strict=True)]), ms, vs


@psc.kernel
def clipped(gs: tuple[f32["n n"], ...]) -> tuple[f32["n n"], ...]:
    """Gradients, of a norm of 1 at most together."""
    norm = np.sqrt(sum([np.sum(g * g) for g in gs]))
    return tuple([g / np.maximum(norm, 1.0) for g in gs])


def _adam(many: int) -> Callable[[int], tuple[Any, ...]]:
    def made(n: int) -> tuple[Any, ...]:
        ps, gs, ms, vs = (tuple([normal(n, n) * each for _ in range(many)]) for each in range(1, 5))
        return ps, gs, ms, tuple([v * v for v in vs]), np.float32(3)

    return made


def _perceptron(n: int) -> tuple[Any, ...]:
    shapes = ((64, 128), (128,), (128, 128), (128,), (128, 10))
    labels = np.random.default_rng(n).integers(0, 10, n).astype(np.int32)
    return Perceptron(*[normal(*shape, scale=0.1) for shape in shapes]), normal(n, 64), labels


def _transformer(d: int, t: int) -> Callable[[int], tuple[Any, ...]]:
    shapes = ((d, d), (d, d), (d, d), (d, d), (d,), (d, 4 * d), (4 * d, d))

    def made(n: int) -> tuple[Any, ...]:
        p = Block(*[normal(*shape, scale=0.1) for shape in shapes])
        return p, normal(n, t, d), normal(n, t, d)

    return made


def _perceptron_jax(jax: Any) -> Callable[..., Any]:
    jnp, forward = jax.numpy, jax_programs(jax)["mlp"]

    def step(p: Any, x: Any, labels: Any) -> Any:
        def loss(p: Any) -> Any:
            found = forward(*p, x)
            return -jnp.log(jnp.take_along_axis(found, labels[:, None], axis=1) + 1e-6).mean()

        value, slope = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda w, g: w - 0.01 * g, p, slope), value

    return step


def _transformer_jax(jax: Any) -> Callable[..., Any]:
    forward = jax_programs(jax)["attention"]

    def step(p: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            return ((jax.vmap(lambda x: forward(*p, x))(x) - y) ** 2).mean()

        value, slope = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda w, g: w - 0.01 * g, p, slope), value

    return step


def _adam_jax(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def step(ps: Any, gs: Any, ms: Any, vs: Any, t: Any) -> Any:
        ms = [0.9 * m + 0.1 * g for m, g in zip(ms, gs, strict=True)]
        vs = [0.999 * v + 0.001 * g * g for v, g in zip(vs, gs, strict=True)]
        one, two = 1 - 0.9**t, 1 - 0.999**t
        steps = [(m / one) / (jnp.sqrt(v / two) + 1e-8) for m, v in zip(ms, vs, strict=True)]
        return [p - 0.01 * step for p, step in zip(ps, steps, strict=True)], ms, vs

    return step


def _clipped_jax(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def clipped(gs: Any) -> Any:
        norm = jnp.sqrt(sum([jnp.sum(g * g) for g in gs]))
        return [g / jnp.maximum(norm, 1.0) for g in gs]

    return clipped


WORKLOADS = (
    *[
        Workload(f"Adam, {many} of {n}x{n}", adam_step, _adam(many), n, _adam_jax, goal=0.8)
        for many, n in ((4, 16), (10, 64), (30, 32))
    ],
    Workload(
        "clipping, 10 of 16x16",
        clipped,
        lambda n: (tuple([normal(n, n) for _ in range(10)]),),
        16,
        _clipped_jax,
        goal=0.8,
    ),
    Workload("perceptron, a step", perceptron_step, _perceptron, 256, _perceptron_jax),
    Workload(
        "transformer block, a step", transformer_step, _transformer(64, 64), 8, _transformer_jax
    ),
    Workload(
        "transformer block, a step, large",
        transformer_step,
        _transformer(256, 128),
        8,
        _transformer_jax,
    ),
)
