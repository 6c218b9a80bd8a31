"""Kernels whose types are spelt as jaxtyping spells them: no type checker has anything to say.

`test_type_surface.py` runs them all on this file, mypy with the plug-in, the others as they come.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Complex64, Float, Float32, Int32

import pscdsl as psc


class Layer(psc.Record):
    """The weights of a dense layer."""

    weights: Float32[psc.Array, "i o"]
    bias: Float32[psc.Array, "o"]


class Moments(NamedTuple):
    """The moments of columns."""

    mean: Float32[psc.Array, "d"]
    variance: Float32[psc.Array, "d"]


def sigmoid(x: Float[psc.Array, "*s"]) -> Float[psc.Array, "*s"]:
    """Between 0 and 1."""
    return 1 / (1 + np.exp(-x))


@psc.kernel
def dense(p: Layer, x: Float32[psc.Array, "n i"]) -> Float32[psc.Array, "n o"]:
    """A layer with a bounded, centred activation."""
    hidden = x @ p.weights + p.bias
    centred = hidden - hidden.mean(axis=-1, keepdims=True)
    gate = sigmoid(centred / np.sqrt(np.square(centred).mean() + 1e-5))
    return np.where(gate > 0.5, gate, 0.1 * centred) + abs(hidden)


@psc.kernel
def moments(
    x: Float32[psc.Array, "n d"], weight: Float32[psc.Array, "n"], kept: Bool[psc.Array, "n"]
) -> Moments:
    """Weighted moments of the columns."""
    assert x.shape[0] >= 1
    positive = np.where(kept & (weight >= 0) | ~kept, np.maximum(weight, 1e-3), 1.0)
    share = (positive / positive.sum())[:, None]
    mean = (share * x).sum(axis=0)
    variance = (share * (x - mean) ** 2).sum(axis=0)
    return Moments(mean, variance.clip(0.0, x.max()))


@psc.kernel
def recurrence(
    weights: Float32[psc.Array, "h h"],
    xs: Float32[psc.Array, "t h"],
    start: Float32[psc.Array, "h"],
) -> tuple[Float32[psc.Array, "h"], Float32[psc.Array, "t h"]]:
    """A network over a sequence."""

    def step(
        state: Float32[psc.Array, "h"], x: Float32[psc.Array, "h"]
    ) -> tuple[Float32[psc.Array, "h"], Float32[psc.Array, "h"]]:
        after = np.tanh(weights @ state + x)
        return after, after

    return psc.scan(step, start, xs)


@psc.kernel
def descent(
    matrix: Float32[psc.Array, "n n"], target: Float32[psc.Array, "n"], rate: Float32[psc.Array, ""]
) -> Float32[psc.Array, "n"]:
    """Momentum descent on a quadratic."""

    def step(
        i: Int32[psc.Array, ""],
        state: tuple[Float32[psc.Array, "n"], Float32[psc.Array, "n"]],
    ) -> tuple[Float32[psc.Array, "n"], Float32[psc.Array, "n"]]:
        point, velocity = state
        slope = matrix.T @ (matrix @ point - target)
        velocity = 0.9 * velocity - rate * slope / (1 + i.astype(np.float32))
        return point + velocity, velocity

    return psc.fori_loop(0, 10, step, (target, np.zeros_like(target)))[0]


@psc.kernel
def pieces(
    x: Float32[psc.Array, "n m"], indices: Int32[psc.Array, "k"], z: Complex64[psc.Array, "m"]
) -> tuple[Float32[psc.Array, "m n"], Int32[psc.Array, "k"], Complex64[psc.Array, "m"]]:
    """Shapes, dtypes and parts."""
    n, m = x.shape
    y = x.transpose(1, 0).reshape(m, n) + np.zeros((m, n))
    total = (-y).cumsum(axis=0) - y.ravel().dot(y.flatten()) + (y < 0).astype(np.float32)
    assert total.ndim == len(total.shape)
    assert total.size == n * m
    return (
        total,
        indices // 2 % 3 + indices.argsort().astype(np.int32),
        np.fft.fft(z) * 1j + z.conj(),
    )


def use() -> None:
    """The kernels called from ordinary Python."""
    x = np.ones((3, 2), np.float32)
    hidden = dense(Layer(weights=np.eye(2, dtype=np.float32), bias=x[0]), x)
    mean, variance = moments(hidden, x[:, 0], x[:, 0] > 0)
    last, outputs = recurrence(np.eye(2, dtype=np.float32), hidden, mean)
    point = descent(np.eye(2, dtype=np.float32), last, np.float32(0.1))
    total, order, spectrum = pieces(outputs, np.arange(3, dtype=np.int32), np.ones(2, np.complex64))
    print(
        float(point[0]), int(order[0]), total.tolist(), np.asarray(spectrum), f"{variance[0]:.3f}"
    )
    print(len(total), [row.sum() for row in total], total > 0, 1 + total)
