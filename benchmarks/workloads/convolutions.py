"""Convolutions of images, their gradients, and a network of them."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pscdsl as psc
from benchmarks.workload import Maker, Workload, normal
from pscdsl import f32, i32

WIDTHS = (3, 32, 32, 64)
"""The channels of the network's images, layer by layer."""


@psc.kernel
def same(x: f32["n c h w"], k: f32["o c a b"]) -> f32["n o h w"]:
    """A convolution that keeps the size of images."""
    return psc.conv(x, k, padding="same")


@psc.kernel
def strided(x: f32["n c 2*h 2*w"], k: f32["o c a b"]) -> f32["n o h w"]:
    """A convolution that halves images."""
    return psc.conv(x, k, strides=2, padding="same")


@psc.kernel
def depthwise(x: f32["n c h w"], k: f32["c 1 a b"]) -> f32["n c h w"]:
    """Each channel with a kernel of its own."""
    return psc.conv(x, k, padding="same", groups=x.shape[1])


@psc.kernel
def pointwise(x: f32["n c h w"], k: f32["o c 1 1"]) -> f32["n o h w"]:
    """A convolution whose kernel sees one place."""
    return psc.conv(x, k)


@psc.kernel
def along(x: f32["n c t"], k: f32["o c a"]) -> f32["n o t"]:
    """A convolution along one axis."""
    return psc.conv(x, k, padding="same")


@psc.kernel
def repeated(x: f32["n c h w"], k: f32["c c a b"]) -> f32["n c h w"]:
    """A convolution in every step of a loop."""
    return psc.fori_loop(0, 4, lambda _, x: np.tanh(same(x, k)), x)


@psc.kernel
def squared(x: f32["n c h w"], k: f32["o c a b"]) -> f32:
    """What the gradients of convolutions are taken of."""
    return np.sum(psc.conv(x, k, padding="same") ** 2)


@psc.kernel
def squared_depthwise(x: f32["n c h w"], k: f32["c 1 a b"]) -> f32:
    """The same, channel by channel."""
    return np.sum(psc.conv(x, k, padding="same", groups=x.shape[1]) ** 2)


class Network(psc.Record):
    """Three layers of convolutions, and what the means of the last one are multiplied with."""

    first: f32["32 3 3 3"]
    second: f32["32 32 3 3"]
    third: f32["64 32 3 3"]
    last: f32["64 10"]


@psc.kernel
def network_loss(p: Network, x: f32["n 3 h w"], labels: i32["n"]) -> f32:
    """The cross entropy of a small all-convolution network."""
    for kernel in (p.first, p.second, p.third):
        x = np.maximum(psc.conv(x, kernel, padding="same"), 0)
    z = np.mean(x, axis=(2, 3)) @ p.last
    z = z - np.max(z, axis=1, keepdims=True)
    logs = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    return -np.mean(np.sum(logs * (labels[:, None] == np.arange(10)).astype(np.float32), axis=1))


@psc.kernel
def network_step(p: Network, x: f32["n 3 h w"], labels: i32["n"]) -> Network:
    """A step of gradient descent."""
    g = psc.grad(network_loss)(p, x, labels)
    return Network(
        p.first - 0.1 * g.first,
        p.second - 0.1 * g.second,
        p.third - 0.1 * g.third,
        p.last - 0.1 * g.last,
    )


def jax_programs(jax: Any) -> dict[str, Callable[..., Any]]:
    """The same functions for jax."""
    jnp, lax = jax.numpy, jax.lax

    def conv(x: Any, k: Any, strides: int = 1, groups: int = 1) -> Any:
        steps = (strides,) * (x.ndim - 2)
        return lax.conv_general_dilated(x, k, steps, "SAME", feature_group_count=groups)

    def in_channels(x: Any, k: Any) -> Any:
        return conv(x, k, groups=x.shape[1])

    def loss(p: Any, x: Any, labels: Any) -> Any:
        for kernel in p[:3]:
            x = jnp.maximum(conv(x, kernel), 0)
        z = jnp.mean(x, axis=(2, 3)) @ p[3]
        logs = jax.nn.log_softmax(z)
        return -jnp.mean(jnp.sum(logs * jax.nn.one_hot(labels, 10), axis=1))

    def step(p: Any, x: Any, labels: Any) -> Any:
        return jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p, x, labels))

    def repeated(x: Any, k: Any) -> Any:
        return lax.fori_loop(0, 4, lambda _, x: jnp.tanh(conv(x, k)), x)

    return {
        "same": conv,
        "repeated": repeated,
        "strided": lambda x, k: conv(x, k, 2),
        "depthwise": in_channels,
        "pointwise": conv,
        "along": conv,
        "squared": jax.grad(lambda x, k: jnp.sum(conv(x, k) ** 2), argnums=(0, 1)),
        "squared_depthwise": jax.grad(lambda x, k: jnp.sum(in_channels(x, k) ** 2), argnums=(0, 1)),
        "network_step": step,
    }


def _theirs(name: str) -> Maker:
    return lambda jax: jax_programs(jax)[name]


def _arguments(
    images: int, channels: int, size: int, outputs: int, window: int
) -> Callable[[int], tuple[Any, ...]]:
    def made(scale: int) -> tuple[Any, ...]:
        x = normal(images * scale, channels, size, size)
        return x, normal(outputs, channels, window, window, scale=0.1)

    return made


def _depthwise(images: int, channels: int, size: int, window: int) -> Callable[[int], Any]:
    def made(scale: int) -> tuple[Any, ...]:
        x = normal(images * scale, channels, size, size)
        return x, normal(channels, 1, window, window, scale=0.1)

    return made


def _training(size: int) -> Callable[[int], tuple[Any, ...]]:
    def made(scale: int) -> tuple[Any, ...]:
        pairs = zip(WIDTHS[1:], WIDTHS, strict=False)
        kernels = [normal(outputs, taken, 3, 3, scale=0.1) for outputs, taken in pairs]
        labels = np.random.default_rng(scale).integers(0, 10, scale).astype(np.int32)
        return (
            Network(kernels[0], kernels[1], kernels[2], normal(64, 10)),
            normal(scale, 3, size, size),
            labels,
        )

    return made


WORKLOADS = (
    Workload(
        "depthwise convolution 3x3",
        depthwise,
        _depthwise(8, 64, 32, 3),
        1,
        _theirs("depthwise"),
        goal=0.1,
    ),
    Workload(
        "depthwise convolution 7x7",
        depthwise,
        _depthwise(8, 64, 32, 7),
        1,
        _theirs("depthwise"),
        goal=0.3,
    ),
    Workload(
        "depthwise convolution 3x3, gradient",
        psc.grad(squared_depthwise, argnums=(0, 1)),
        _depthwise(8, 64, 32, 3),
        1,
        _theirs("squared_depthwise"),
        goal=0.3,
    ),
    Workload(
        "convolution 3x3, 3 to 32 channels",
        same,
        _arguments(8, 3, 32, 32, 3),
        1,
        _theirs("same"),
        goal=0.5,
    ),
    Workload(
        "convolution 7x7, 3 to 64 channels, stride 2",
        strided,
        _arguments(1, 3, 128, 64, 7),
        1,
        _theirs("strided"),
        goal=0.5,
    ),
    Workload(
        "convolution 7x7, 1 image", same, _arguments(1, 3, 64, 32, 7), 1, _theirs("same"), goal=0.5
    ),
    Workload(
        "convolution 3x3, 64 channels",
        same,
        _arguments(4, 64, 32, 64, 3),
        1,
        _theirs("same"),
        goal=0.8,
    ),
    Workload(
        "convolution 3x3, 64 channels, gradient",
        psc.grad(squared, argnums=(0, 1)),
        _arguments(4, 64, 32, 64, 3),
        1,
        _theirs("squared"),
        goal=0.8,
    ),
    Workload(
        "convolution 3x3, 32 channels, in a loop",
        repeated,
        _arguments(4, 32, 32, 32, 3),
        1,
        _theirs("repeated"),
        goal=0.2,
    ),
    Workload(
        "convolution 1x1",
        pointwise,
        _arguments(4, 64, 32, 64, 1),
        1,
        _theirs("pointwise"),
        goal=0.5,
    ),
    Workload(
        "convolution along time",
        along,
        lambda n: (normal(8, 16, n), normal(16, 16, 5)),
        1000,
        _theirs("along"),
        goal=1.0,
    ),
    Workload(
        "all-convolution network, a step",
        network_step,
        _training(32),
        16,
        _theirs("network_step"),
        goal=0.75,
        tolerance=1e-3,
    ),
)
