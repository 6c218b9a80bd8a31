"""What the layers compute, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.plain_numpy.program import NDArray


def wide(x: NDArray) -> NDArray:
    return x.astype(np.float64)


def single(x: NDArray) -> NDArray:
    return x.astype(np.float32)


def chances(x: NDArray) -> NDArray:
    sums = np.logaddexp.reduce(x, axis=-1) if x.size else x.sum(axis=-1)
    return np.asarray(np.exp(x - sums[..., np.newaxis]))


def softmax(x: NDArray) -> Any:
    return single(chances(wide(x)))


def positive(x: NDArray) -> NDArray:
    return np.where(x > 0, x, 0.0)


def mlp(
    x: NDArray,
    w1: NDArray,
    b1: NDArray,
    w2: NDArray,
    b2: NDArray,
    w3: NDArray,
    b3: NDArray,
) -> Any:
    x = positive(np.einsum("na,ab->nb", wide(x), wide(w1)) + b1)
    x = positive(np.einsum("na,ab->nb", x, wide(w2)) + b2)
    return single(chances(np.einsum("na,ab->nb", x, wide(w3)) + b3))


def convolved(x: NDArray, weights: NDArray) -> NDArray:
    windows = sliding_window_view(x, weights.shape[:2], axis=(1, 2))
    return np.asarray(np.einsum("nhwcij,ijcd->nhwd", windows, wide(weights)))


def conv2d_bias(x: NDArray, weights: NDArray, bias: NDArray) -> Any:
    return single(convolved(wide(x), weights) + bias)


def pooled(x: NDArray) -> NDArray:
    n, h, w, c = x.shape
    return np.asarray(x.reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4)))


def lenet(x: NDArray, *weights: NDArray) -> Any:
    conv1, bias1, conv2, bias2, fc1, b1, fc2, b2, fc3, b3 = map(wide, weights)
    x = pooled(positive(convolved(wide(x), conv1) + bias1))
    x = pooled(positive(convolved(x, conv2) + bias2))
    x = positive(np.einsum("nhwc,hwcd->nd", x, fc1.reshape(4, 4, 16, 120)) + b1)
    x = positive(np.einsum("na,ab->nb", x, fc2) + b2)
    return single(np.einsum("na,ab->nb", x, fc3) + b3)


def normalised(x: NDArray) -> NDArray:
    deviations = x - x.sum(axis=0) / len(x)
    spread = np.sqrt(np.einsum("nhwc,nhwc->hwc", deviations, deviations) / len(x))
    return np.asarray(deviations / np.sqrt(spread + 1e-3))


def resnet(x: NDArray, conv1: NDArray, conv2: NDArray, conv3: NDArray) -> Any:
    around = ((0, 0), (1, 1), (1, 1), (0, 0))
    y = np.pad(np.einsum("nhwc,cd->nhwd", wide(x), wide(conv1[0, 0])), around)
    y = positive(normalised(y))
    y = positive(normalised(convolved(y, conv2)))
    y = normalised(np.einsum("nhwd,dc->nhwc", y, wide(conv3[0, 0])))
    return single(positive(y + x))
