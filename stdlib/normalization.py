"""Normalisation: of features per example, of channels per batch, of groups of channels.

Images and sequences are laid out as `psc.conv` has them: examples, channels, then space.
Statistics of 16-bit numbers are taken in f32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float
from pscdsl.stdlib.precision import widened


class Affine(psc.Record, dims="d"):
    """Scale and shift of normalised features.

    Examples:
        >>> p = Affine(scale=np.ones(3), shift=np.zeros(3))
        >>> layer_norm(p, np.array([1.0, 2.0, 3.0]))
        pscdsl.Array([-1.2247,  0.    ,  1.2247], dtype=float64)
    """

    scale: Float["d"]
    """The factor of each feature."""
    shift: Float["d"]
    """The number added to each feature."""


class Statistics(psc.Record, dims="c"):
    """Mean and variance of each channel.

    Examples:
        >>> running = Statistics(mean=np.array([5.0]), variance=np.array([4.0]))
        >>> p = Affine(scale=np.ones(1), shift=np.zeros(1))
        >>> batch_norm_inference(p, running, np.array([[9.0]]))
        pscdsl.Array([[2.]], dtype=float64)
    """

    mean: Float["c"]
    """The mean of each channel."""
    variance: Float["c"]
    """The biased variance of each channel."""


@psc.kernel
def layer_norm(p: Affine["d"], x: Float["*batch d"], epsilon: Float = 1e-5) -> Float["*batch d"]:
    """Features of mean 0 and variance 1 along the last axis, scaled and shifted.

    `epsilon` is added to the variance (Ba, Kiros, Hinton 2016).

    Examples:
        >>> p = Affine(scale=np.full(3, 10.0), shift=np.ones(3))
        >>> layer_norm(p, np.array([[1.0, 2.0, 3.0], [4.0, 4.0, 4.0]]))
        pscdsl.Array([[-11.2474,   1.    ,  13.2474],
                      [  1.    ,   1.    ,   1.    ]], dtype=float64)

    Cost: 7*batch*d + 4*batch flops.
    """
    z = widened(x)
    return (_standardized(z, -1, epsilon) * widened(p.scale) + widened(p.shift)).astype(x.dtype)


@psc.kernel
def rms_norm(scale: Float["d"], x: Float["*batch d"], epsilon: Float = 1e-6) -> Float["*batch d"]:
    """Features of mean square 1 along the last axis, scaled (Zhang, Sennrich 2019).

    Examples:
        >>> rms_norm(np.ones(2), np.array([3.0, 4.0]))
        pscdsl.Array([0.8485, 1.1314], dtype=float64)

    Cost: 4*batch*d + 3*batch flops.
    """
    z = widened(x)
    square = (z * z).mean(axis=-1, keepdims=True)
    return (z / np.sqrt(square + widened(epsilon)) * widened(scale)).astype(x.dtype)


@psc.kernel
def batch_norm(
    p: Affine["c"],
    running: Statistics["c"],
    x: Float["n c *space"],
    momentum: Float = 0.9,
    epsilon: Float = 1e-5,
) -> tuple[Float["n c *space"], Statistics["c"]]:
    """Channels of mean 0 and variance 1 over the batch and space, scaled and shifted; training.

    Also the running statistics, moved towards those of this batch: `momentum` is the share that
    they keep.  The variance is the biased one, in both (Ioffe, Szegedy 2015).

    Examples:
        >>> p = Affine(scale=np.ones(1), shift=np.zeros(1))
        >>> running = Statistics(mean=np.zeros(1), variance=np.ones(1))
        >>> y, running = batch_norm(p, running, np.array([[1.0], [3.0]]))
        >>> y
        pscdsl.Array([[-1.],
                      [ 1.]], dtype=float64)
        >>> running.mean
        pscdsl.Array([0.2], dtype=float64)

    Cost: 7*c*n*space + 12*c + 1 flops.
    """
    z = widened(x)
    axes = (0, *range(2, x.ndim))
    mean, variance = z.mean(axis=axes), z.var(axis=axes)
    batch = Statistics(mean.astype(x.dtype), variance.astype(x.dtype))
    moved = Statistics(
        momentum * running.mean + (1 - momentum) * batch.mean,
        momentum * running.variance + (1 - momentum) * batch.variance,
    )
    return _by_channel(p, mean, variance, z, epsilon).astype(x.dtype), moved


@psc.kernel
def batch_norm_inference(
    p: Affine["c"], running: Statistics["c"], x: Float["n c *space"], epsilon: Float = 1e-5
) -> Float["n c *space"]:
    """`batch_norm` by statistics from training: each example for itself (Ioffe, Szegedy 2015).

    Examples:
        >>> p = Affine(scale=np.ones(1), shift=np.zeros(1))
        >>> running = Statistics(mean=np.array([1.0]), variance=np.array([4.0]))
        >>> batch_norm_inference(p, running, np.array([[1.0], [5.0]]))
        pscdsl.Array([[0.],
                      [2.]], dtype=float64)

    Cost: 3*c*n*space + 3*c flops.
    """
    z = widened(x)
    return _by_channel(p, running.mean, running.variance, z, epsilon).astype(x.dtype)


@psc.kernel
def group_norm(
    p: Affine["c"], x: Float["n c *space"], groups: psc.Static[int], epsilon: Float = 1e-5
) -> Float["n c *space"]:
    """Mean 0 and variance 1 over each of `groups` runs of channels, for each example.

    `groups` divides the number of channels (Wu, He 2018).

    Examples:
        >>> p = Affine(scale=np.ones(4), shift=np.zeros(4))
        >>> group_norm(p, np.array([[1.0, 3.0, 10.0, 30.0]]), 2)
        pscdsl.Array([[-1.,  1., -1.,  1.]], dtype=float64)

    Cost: 7*c*n*space + 4*groups*n flops.
    """
    assert groups >= 1
    channels = x.shape[1]
    assert channels % groups == 0
    z = widened(x).reshape(x.shape[0], groups, -1)
    normal = _standardized(z, -1, epsilon).reshape(x.shape)
    return (normal * _for_channels(p.scale, x) + _for_channels(p.shift, x)).astype(x.dtype)


@psc.kernel
def instance_norm(
    p: Affine["c"], x: Float["n c *space"], epsilon: Float = 1e-5
) -> Float["n c *space"]:
    """Mean 0 and variance 1 over space, for each channel of each example (Ulyanov et al. 2016).

    Examples:
        >>> p = Affine(scale=np.ones(1), shift=np.zeros(1))
        >>> instance_norm(p, np.array([[[1.0, 2.0, 3.0]]]))
        pscdsl.Array([[[-1.2247,  0.    ,  1.2247]]], dtype=float64)

    Cost: at most 7*c*n*space + 4*c*n flops.
    """
    z = widened(x)
    normal = _standardized(z, tuple(range(2, x.ndim)), epsilon)
    return (normal * _for_channels(p.scale, x) + _for_channels(p.shift, x)).astype(x.dtype)


def _standardized(x: Any, axis: Any, epsilon: Any) -> Any:
    centred = x - x.mean(axis=axis, keepdims=True)
    variance = (centred * centred).mean(axis=axis, keepdims=True)
    return centred / np.sqrt(variance + widened(epsilon))


def _by_channel(p: Any, mean: Any, variance: Any, x: Any, epsilon: Any) -> Any:
    factor = widened(p.scale) / np.sqrt(widened(variance) + widened(epsilon))
    return (x - _for_channels(mean, x)) * _for_channels(factor, x) + _for_channels(p.shift, x)


def _for_channels(values: Any, x: Any) -> Any:
    """One value per channel, with an axis of size 1 for each of space."""
    return widened(values).reshape(-1, *(1 for _ in x.shape[2:]))
