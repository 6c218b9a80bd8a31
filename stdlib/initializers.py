"""Initial values of parameters, drawn from keys.

These are functions for kernels, which know shapes while checking. A matrix is laid out as [inputs
outputs], a window of a convolution as [outputs inputs *space]; one with groups has the inputs of
one group. A layer's *fans* are the number of inputs of one output, and the number of outputs that
use one input. The variances of Glorot and Bengio keep signals and gradients of the same size
through layers that are nearly linear, those of He through rectified ones, those of LeCun through
`selu` and `tanh`.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

import pscdsl as psc
from pscdsl import Float, Key
from pscdsl.stdlib.precision import widened

Shape = tuple[int, ...]

TRUNCATED_DEVIATION: Final = 0.8796256610342398
"""The standard deviation of standard normal numbers that are truncated to [-2, 2]."""


def glorot_uniform(key: Key, shape: Shape, dtype: Any = np.float32) -> Float["..."]:
    """Uniform numbers of variance 2 / (inputs + outputs) (Glorot, Bengio 2010).

    Examples:
        >>> glorot_uniform(psc.random.key(0), (2, 3))
        array([[ 0.9808,  1.0485, -0.3674],
               [-0.0686,  0.1531, -0.7328]], dtype=float32)
    """
    inputs, outputs = fans(shape)
    return scaled_uniform(key, shape, 2 / (inputs + outputs), dtype)


def glorot_normal(key: Key, shape: Shape, dtype: Any = np.float32) -> Float["..."]:
    """Normal numbers of variance 2 / (inputs + outputs) (Glorot, Bengio 2010).

    Examples:
        >>> np.round(np.std(glorot_normal(psc.random.key(0), (300, 200))), 4)
        np.float32(0.0633)
    """
    inputs, outputs = fans(shape)
    return scaled_normal(key, shape, 2 / (inputs + outputs), dtype)


def he_uniform(key: Key, shape: Shape, dtype: Any = np.float32) -> Float["..."]:
    """Uniform numbers of variance 2 / inputs (He, Zhang, Ren, Sun 2015).

    Examples:
        >>> np.round(np.max(he_uniform(psc.random.key(0), (300, 200))), 4)
        np.float32(0.1414)
    """
    return scaled_uniform(key, shape, 2 / fans(shape)[0], dtype)


def he_normal(key: Key, shape: Shape, dtype: Any = np.float32) -> Float["..."]:
    """Normal numbers of variance 2 / inputs (He, Zhang, Ren, Sun 2015).

    Examples:
        >>> np.round(np.std(he_normal(psc.random.key(0), (300, 200))), 4)
        np.float32(0.0818)
    """
    return scaled_normal(key, shape, 2 / fans(shape)[0], dtype)


def lecun_uniform(key: Key, shape: Shape, dtype: Any = np.float32) -> Float["..."]:
    """Uniform numbers of variance 1 / inputs (LeCun, Bottou, Orr, Müller 1998).

    Examples:
        >>> np.round(np.max(lecun_uniform(psc.random.key(0), (300, 200))), 4)
        np.float32(0.1)
    """
    return scaled_uniform(key, shape, 1 / fans(shape)[0], dtype)


def lecun_normal(key: Key, shape: Shape, dtype: Any = np.float32) -> Float["..."]:
    """Normal numbers of variance 1 / inputs (LeCun, Bottou, Orr, Müller 1998).

    Examples:
        >>> np.round(np.std(lecun_normal(psc.random.key(0), (300, 200))), 4)
        np.float32(0.0578)
    """
    return scaled_normal(key, shape, 1 / fans(shape)[0], dtype)


def truncated_normal(
    key: Key, shape: Shape, deviation: Any = 1.0, dtype: Any = np.float32
) -> Float["..."]:
    """Normal numbers within two standard deviations of 0, scaled to have standard deviation 1.

    Examples:
        >>> x = truncated_normal(psc.random.key(0), (1000,), 0.1)
        >>> np.round(np.std(x), 3), np.round(np.max(x), 3)
        (np.float32(0.103), np.float32(0.227))
    """
    unit = psc.random.truncated_normal(key, -2, 2, shape, dtype)
    return unit * (deviation / TRUNCATED_DEVIATION)


def orthogonal(key: Key, shape: Shape, gain: float = 1.0, dtype: Any = np.float32) -> Float["..."]:
    """`gain` times a random matrix with orthogonal columns, or rows if there are fewer of them.

    All such matrices are equally likely: it is the orthogonal factor of a matrix of normal numbers.
    The window of a convolution is a matrix with one row for each output (Saxe, McClelland, Ganguli
    2014).

    Examples:
        >>> q = orthogonal(psc.random.key(0), (4, 2))
        >>> np.abs(np.round(q.T @ q, 3))
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    assert len(shape) >= 2, "a matrix, or the window of a convolution"
    drawn = widened(psc.random.normal(key, shape, dtype))
    u, _, v = np.linalg.svd(drawn.reshape(shape[0], -1), full_matrices=False)
    matrix: Any = gain * (u @ v)
    return matrix.reshape(shape).astype(dtype)


def scaled_uniform(key: Key, shape: Shape, variance: Any, dtype: Any = np.float32) -> Float["..."]:
    """Uniform numbers of mean 0 and this variance.

    Examples:
        >>> np.round(np.var(scaled_uniform(psc.random.key(0), (1000,), 4.0)), 2)
        np.float32(3.89)
    """
    unit = psc.random.uniform(key, shape, dtype, -1, 1)
    return (unit * np.sqrt(3 * variance)).astype(dtype)  # outside of kernels, NumPy widens it


def scaled_normal(key: Key, shape: Shape, variance: Any, dtype: Any = np.float32) -> Float["..."]:
    """Normal numbers of mean 0 and this variance.

    Examples:
        >>> np.round(np.var(scaled_normal(psc.random.key(0), (1000,), 4.0)), 2)
        np.float32(3.87)
    """
    return (psc.random.normal(key, shape, dtype) * np.sqrt(variance)).astype(dtype)


def fans(shape: Shape) -> tuple[int, int]:
    """The number of inputs of one output, and of outputs that use one input.

    Examples:
        >>> fans((784, 10))
        (784, 10)
        >>> fans((5, 5, 3, 16))
        (240, 240)
    """
    assert len(shape) >= 2, "a matrix, or the window of a convolution"
    if len(shape) == 2:
        return shape[0], shape[1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window
