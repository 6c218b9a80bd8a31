"""Layers of neural networks in single precision, as they are written in plain NumPy."""

import numpy as np

from pscdsl import f32
from tests.plain_numpy.program import Program, sizes


def relu(x: f32["*shape"]) -> f32["*shape"]:
    return np.maximum(x, 0)


def softmax(x: f32["*shape n"]) -> f32["*shape n"]:
    shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return shifted / np.sum(shifted, axis=-1, keepdims=True)


def mlp(
    x: f32["n a"],
    w1: f32["a b"],
    b1: f32["b"],
    w2: f32["b c"],
    b2: f32["c"],
    w3: f32["c d"],
    b3: f32["d"],
) -> f32["n d"]:
    x = relu(x @ w1 + b1)
    x = relu(x @ w2 + b2)
    return softmax(x @ w3 + b3)


def conv2d(x: f32["n h w c"], weights: f32["k k c d"]) -> f32["n h-k+1 w-k+1 d"]:
    k = weights.shape[0]
    n, h, w, _ = x.shape
    out = np.empty((n, h - k + 1, w - k + 1, weights.shape[3]), dtype=np.float32)
    for i in range(h - k + 1):
        for j in range(w - k + 1):
            out[:, i, j, :] = np.tensordot(x[:, i : i + k, j : j + k, :], weights, axes=3)
    return out


def conv2d_bias(
    x: f32["n h w c"], weights: f32["k k c d"], bias: f32["d"]
) -> f32["n h-k+1 w-k+1 d"]:
    assert x.shape[1] >= weights.shape[0]
    assert x.shape[2] >= weights.shape[0]
    return conv2d(x, weights) + bias


def maxpool2d(x: f32["n h w c"]) -> f32["n h//2 w//2 c"]:
    n, h, w, c = x.shape
    out = np.empty((n, h // 2, w // 2, c), dtype=x.dtype)
    for i in range(h // 2):
        for j in range(w // 2):
            out[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return out


def lenet(
    x: f32["n 28 28 1"],
    conv1: f32["5 5 1 6"],
    bias1: f32["6"],
    conv2: f32["5 5 6 16"],
    bias2: f32["16"],
    fc1: f32["256 120"],
    b1: f32["120"],
    fc2: f32["120 84"],
    b2: f32["84"],
    fc3: f32["84 10"],
    b3: f32["10"],
) -> f32["n 10"]:
    x = maxpool2d(relu(conv2d(x, conv1) + bias1))
    x = maxpool2d(relu(conv2d(x, conv2) + bias2))
    x = np.reshape(x, (x.shape[0], 256))
    x = relu(x @ fc1 + b1)
    x = relu(x @ fc2 + b2)
    return x @ fc3 + b3


def batchnorm2d(x: f32["n h w c"], eps: f32 = 1e-3) -> f32["n h w c"]:
    mean = np.mean(x, axis=0, keepdims=True)
    std = np.std(x, axis=0, keepdims=True)
    return (x - mean) / np.sqrt(std + eps)


def resnet(
    x: f32["n h w c"], conv1: f32["1 1 c d"], conv2: f32["3 3 d d"], conv3: f32["1 1 d c"]
) -> f32["n h w c"]:
    n, h, w, _ = x.shape
    padded = np.zeros((n, h + 2, w + 2, conv1.shape[3]), dtype=np.float32)
    padded[:, 1:-1, 1:-1, :] = conv2d(x, conv1)
    y = relu(batchnorm2d(padded))
    y = relu(batchnorm2d(conv2d(y, conv2)))
    y = batchnorm2d(conv2d(y, conv3))
    return relu(y + x)


PROGRAMS = (
    Program(
        softmax,
        lambda draw, s: (draw.singles(s.n, s.h, s.s, s.t),),
        sizes("n h s t", (0, 2, 3, 4), (1, 1, 1, 1), (2, 1, 3, 2), (3, 2, 5, 7)),
        tolerance=1e-6,
    ),
    Program(
        mlp,
        lambda draw, s: (
            *(draw.singles(s.n, s.a), draw.singles(s.a, s.b), draw.singles(s.b)),
            *(draw.singles(s.b, s.c), draw.singles(s.c), draw.singles(s.c, s.d), draw.singles(s.d)),
        ),
        sizes("n a b c d", (0, 1, 2, 3, 4), (1, 1, 1, 1, 1), (2, 3, 4, 5, 3), (7, 19, 13, 5, 3)),
        tolerance=1e-5,
    ),
    Program(
        conv2d_bias,
        lambda draw, s: (
            draw.singles(s.n, s.h, s.w, s.c),
            *(draw.singles(s.k, s.k, s.c, s.d), draw.singles(s.d)),
        ),
        sizes(
            "n h w c k d",
            *((0, 3, 3, 1, 2, 1), (1, 1, 1, 1, 1, 1), (2, 2, 3, 1, 2, 3)),
            *((1, 5, 4, 2, 3, 1), (2, 19, 8, 3, 5, 4)),
        ),
        tolerance=1e-5,
    ),
    Program(
        lenet,
        lambda draw, s: (
            *(draw.singles(s.n, 28, 28, 1), draw.singles(5, 5, 1, 6), draw.singles(6)),
            *(draw.singles(5, 5, 6, 16), draw.singles(16), draw.singles(256, 120)),
            *(draw.singles(120), draw.singles(120, 84), draw.singles(84)),
            *(draw.singles(84, 10), draw.singles(10)),
        ),
        sizes("n", 0, 1, 3),
        tolerance=1e-5,
    ),
    Program(
        resnet,
        lambda draw, s: (
            *(draw.singles(s.n, s.h, s.w, s.c), draw.singles(1, 1, s.c, s.d)),
            *(draw.singles(3, 3, s.d, s.d), draw.singles(1, 1, s.d, s.c)),
        ),
        sizes("n h w c d", (1, 1, 1, 1, 1), (2, 2, 3, 2, 1), (3, 5, 4, 2, 3), (4, 8, 9, 3, 2)),
        tolerance=1e-3,
    ),
)
