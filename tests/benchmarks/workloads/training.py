"""Steps of training: the loss, its gradient and the new parameters, as one program."""

# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import f32, i32
from tests.benchmarks.workload import Workload, normal
from tests.benchmarks.workloads.programs import attention, jax_programs, mlp


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


WORKLOADS = (
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
