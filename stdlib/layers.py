"""Layers without memory: records of parameters, functions that apply them, and that draw them.

Images and sequences are laid out as in `psc.conv`: examples, channels, then space. Functions that
draw parameters are for kernels, which know sizes while checking: `dense_layer(key, 64, 10)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float, Integer, Key
from pscdsl.stdlib.initializers import glorot_uniform, he_normal, scaled_normal
from pscdsl.stdlib.precision import widened


class Dense(psc.Record, dims="i o"):
    """A linear layer from i to o features, with a bias.

    Examples:
        >>> p = Dense(weights=np.array([[1.0], [2.0]]), bias=np.array([0.5]))
        >>> dense(p, np.array([[10.0, 1.0]]))
        pscdsl.Array([[12.5]], dtype=float64)
    """

    weights: Float["i o"]
    """The matrix that inputs are multiplied by, from the right."""
    bias: Float["o"]
    """The bias, added to the product."""


class Convolution(psc.Record, dims="o i *window"):
    """A convolution from i to o channels, with a bias.

    Examples:
        >>> p = Convolution(weights=np.ones((4, 3, 5, 5)), bias=np.zeros(4))
        >>> convolution(p, np.ones((1, 3, 8, 8))).shape
        (1, 4, 8, 8)
    """

    weights: Float["o i *window"]
    """With groups, i is the channels of one group."""
    bias: Float["o"]
    """One number for each channel of the result."""


class Embedding(psc.Record, dims="v d"):
    """A vector of d features for each of v symbols.

    Examples:
        >>> p = Embedding(table=np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
        >>> embedding(p, np.array([2, 0]))
        pscdsl.Array([[1., 1.],
                      [1., 0.]], dtype=float64)
    """

    table: Float["v d"]
    """The vector of each symbol, one a row."""


def dense_layer(
    key: Key, inputs: int, outputs: int, dtype: Any = np.float32
) -> Dense["inputs outputs"]:
    """A dense layer with weights by `glorot_uniform`, and a bias of 0.

    Examples:
        >>> p = dense_layer(psc.random.key(0), 784, 10)
        >>> p.weights.shape, p.bias.shape
        ((784, 10), (10,))
    """
    bias: Any = np.zeros(outputs, dtype)
    return Dense(glorot_uniform(key, (inputs, outputs), dtype), bias)


def convolution_layer(
    key: Key, inputs: int, outputs: int, window: Sequence[int], dtype: Any = np.float32
) -> Convolution["outputs inputs ..."]:
    """A convolution with weights by `he_normal`, and a bias of 0.

    With groups, `inputs` is the channels of one group.

    Examples:
        >>> p = convolution_layer(psc.random.key(0), 3, 16, (5, 5))
        >>> p.weights.shape, p.bias.shape
        ((16, 3, 5, 5), (16,))
    """
    bias: Any = np.zeros(outputs, dtype)
    return Convolution(he_normal(key, (outputs, inputs, *window), dtype), bias)


def embedding_layer(
    key: Key, symbols: int, features: int, dtype: Any = np.float32
) -> Embedding["symbols features"]:
    """Normal vectors whose squared length is 1 on average.

    Examples:
        >>> p = embedding_layer(psc.random.key(0), 1000, 64)
        >>> p.table.shape
        (1000, 64)
    """
    return Embedding(scaled_normal(key, (symbols, features), 1 / features, dtype))


@psc.kernel
def dense(p: Dense["i o"], x: Float["*batch i"]) -> Float["*batch o"]:
    """Apply a dense layer to the last axis: `x @ p.weights + p.bias`.

    Examples:
        >>> p = dense_layer(psc.random.key(0), 4, 2)
        >>> dense(p, np.ones((8, 4), np.float32)).shape
        (8, 2)

    Cost: 2*batch*i*o + batch*o flops.
    """
    return x @ p.weights + p.bias


def convolution(
    p: Convolution["o i *window"],
    x: Float["n c *space"],
    strides: int | Sequence[int] = 1,
    padding: str | Sequence[tuple[int, int]] = "same",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Float["n o ..."]:
    """Apply a convolution, with the options of `psc.conv`, and add the bias.

    For kernels, where the sizes of the result follow from those of `x`.

    Examples:
        >>> p = Convolution(weights=np.ones((1, 1, 3)), bias=np.zeros(1))
        >>> convolution(p, np.array([[[1.0, 2.0, 3.0, 4.0]]]))
        array([[[3., 6., 9., 7.]]])
        >>> convolution(p, np.array([[[1.0, 2.0, 3.0, 4.0]]]), padding="valid")
        array([[[6., 9.]]])
    """
    y = psc.conv(x, p.weights, strides, padding, dilation, groups)
    return y + p.bias.reshape(-1, *(1 for _ in x.shape[2:]))


@psc.kernel
def embedding(p: Embedding["v d"], symbols: Integer["*s"]) -> Float["*s d"]:
    """The vectors of symbols in 0..v-1; numbers out of range are clamped.

    Examples:
        >>> p = Embedding(table=np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
        >>> embedding(p, np.array([[2, 0], [1, 1]])).shape
        (2, 2, 2)

    Cost: 3*s flops.
    """
    return p.table[symbols]


@psc.kernel
def embedding_scores(p: Embedding["v d"], x: Float["*batch d"]) -> Float["*batch v"]:
    """The inner product of `x` with the vector of each symbol: logits by the weights of an input.

    A layer that shares them in this way needs no separate matrix (Press, Wolf 2017).

    Examples:
        >>> p = Embedding(table=np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
        >>> embedding_scores(p, np.array([[2.0, 3.0]]))
        pscdsl.Array([[2., 3., 5.]], dtype=float64)

    Cost: 2*batch*d*v flops.
    """
    return x @ p.table.T


@psc.kernel
def global_average(x: Float["n c *space"]) -> Float["n c"]:
    """The mean of each channel over space (Lin, Chen, Yan 2014).

    Examples:
        >>> global_average(np.arange(8.0).reshape(1, 2, 2, 2))
        pscdsl.Array([[1.5, 5.5]], dtype=float64)

    Cost: at most c*n*space + c*n flops.
    """
    return widened(x).mean(axis=tuple(range(2, x.ndim))).astype(x.dtype)
