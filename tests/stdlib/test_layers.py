"""Layers: against NumPy and SciPy, with the parameters that are drawn for them."""

# SciPy and ml_dtypes are not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy import signal

import pscdsl as psc
from pscdsl import Float, Key
from pscdsl.stdlib import layers

pytestmark = pytest.mark.quick_code

RANDOM = np.random.default_rng(0)


class Parts(psc.Record, dims="i o"):
    """One layer of each kind."""

    dense: layers.Dense["i o"]
    line: layers.Convolution["o i 3"]
    picture: layers.Convolution["o i 3 4"]
    embedding: layers.Embedding["o i"]


@psc.kernel
def draw(key: Key, like: Float["i o"]) -> Parts["i o"]:
    keys = psc.random.split(key, 4)
    i, o = like.shape
    return Parts(
        layers.dense_layer(keys[0], i, o, like.dtype),
        layers.convolution_layer(keys[1], i, o, (3,), like.dtype),
        layers.convolution_layer(keys[2], i, o, (3, 4), like.dtype),
        layers.embedding_layer(keys[3], o, i, like.dtype),
    )


@psc.kernel
def on_a_line(p: layers.Convolution["o i 3"], x: Float["n i t"]) -> Float["n o t"]:
    return layers.convolution(p, x)


@psc.kernel
def in_a_picture(
    p: layers.Convolution["o i 3 4"], x: Float["n i h w"]
) -> Float["n o (h-3)//2+1 (w-4)//2+1"]:
    assert x.shape[2] >= 3
    assert x.shape[3] >= 4
    return layers.convolution(p, x, strides=2, padding="valid")


@psc.kernel
def each_for_itself(p: layers.Convolution["c 1 3"], x: Float["n c t"]) -> Float["n c t"]:
    return layers.convolution(p, x, padding=[(2, 0)], groups=x.shape[1])


def test_layers_of_drawn_parameters() -> None:
    i, o = 5, 7
    p = draw(psc.random.key(0), np.zeros((i, o)))
    bias = RANDOM.normal(size=o)
    assert not np.any(p.dense.bias)
    assert not np.any(p.line.bias)

    x = RANDOM.normal(size=(2, 3, i))
    found: Any = layers.dense(p.dense.replace(bias=bias), x)
    np.testing.assert_allclose(found, x @ np.asarray(p.dense.weights) + bias, rtol=1e-12)

    line = RANDOM.normal(size=(2, i, 6))
    found = np.asarray(on_a_line(p.line.replace(bias=bias), line))
    w = np.asarray(p.line.weights)
    expected = [
        [sum(np.correlate(row[c], w[k, c], "same") for c in range(i)) + bias[k] for k in range(o)]
        for row in line
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)

    picture = RANDOM.normal(size=(1, i, 8, 9))
    w = np.asarray(p.picture.weights)
    full = [signal.correlate(picture[0], w[k], "valid")[0] + bias[k] for k in range(o)]
    found = np.asarray(in_a_picture(p.picture.replace(bias=bias), picture))
    np.testing.assert_allclose(found[0], np.array(full)[:, ::2, ::2], rtol=1e-10, atol=1e-12)

    symbols = np.array([[0, 6], [3, 3], [99, 1]])
    found = np.asarray(layers.embedding(p.embedding, symbols))
    table = np.asarray(p.embedding.table)
    np.testing.assert_array_equal(found, table[np.minimum(symbols, o - 1)])
    scores = np.asarray(layers.embedding_scores(p.embedding, x))
    np.testing.assert_allclose(scores, x @ table.T, rtol=1e-10, atol=1e-12)


def test_a_window_for_each_channel_that_looks_back() -> None:
    w, x = RANDOM.normal(size=(4, 1, 3)), RANDOM.normal(size=(2, 4, 6))
    found = each_for_itself(layers.Convolution(w, np.zeros(4)), x)
    expected = [[np.convolve(row[c], w[c, 0, ::-1])[:6] for c in range(4)] for row in x]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("space", [(), (3,), (2, 5)])
def test_the_mean_over_space(space: tuple[int, ...]) -> None:
    x = RANDOM.normal(size=(2, 3, *space)).astype(np.float32)
    expected = x.reshape(2, 3, -1).mean(axis=-1)
    np.testing.assert_allclose(layers.global_average(x), expected, rtol=1e-6)


def test_large_numbers_of_16_bits() -> None:
    x = np.full((1, 1, 64), 60000, np.float16)
    np.testing.assert_array_equal(layers.global_average(x), [[60000]])


def test_drawn_parameters_have_the_dtype_that_was_asked_for() -> None:
    p = draw(psc.random.key(0), np.zeros((2, 3), ml_dtypes.bfloat16))
    assert p.dense.weights.dtype == p.picture.weights.dtype == ml_dtypes.bfloat16
    assert p.dense.bias.dtype == p.picture.bias.dtype == ml_dtypes.bfloat16
