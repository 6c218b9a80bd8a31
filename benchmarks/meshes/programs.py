"""Steps of training on meshes: a network of convolutions, and a block of a transformer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import pscdsl as psc
from pscdsl import Float, f32, i32
from pscdsl.stdlib.activations import relu
from pscdsl.stdlib.dropout import dropout
from pscdsl.stdlib.layers import Convolution, convolution, global_average
from pscdsl.stdlib.losses import cross_entropy


class Network(psc.Record, dims="c"):
    """Convolutions, with c channels in the first: that of `examples/all_convolution.py`."""

    first: Convolution["c 1 3 3"]
    halving: Convolution["c c 3 3"]
    third: Convolution["2*c c 3 3"]
    halving_again: Convolution["2*c 2*c 3 3"]
    fifth: Convolution["2*c 2*c 1 1"]
    last: Convolution["10 2*c 1 1"]


def error(p: Network["c"], images: Float["n h w"], digits: i32["n"], key: psc.Key) -> Float:
    """The mean of the negative log-likelihoods."""
    x = relu(convolution(p.first, images[:, None]))
    x = relu(convolution(p.halving, x, strides=2))
    x = relu(convolution(p.third, x))
    x = relu(convolution(p.halving_again, x, strides=2))
    x = relu(convolution(p.fifth, dropout(key, x, 0.2)))
    return cross_entropy(global_average(convolution(p.last, x)), digits).mean()


@psc.kernel
def convolutions(
    p: Network["c"], images: Float["n@data h w"], digits: i32["n@data"], key: psc.Key
) -> tuple[Network["c"], Float]:
    """A step, data parallel."""
    value, slope = psc.value_and_grad(error)(p, images, digits, key)
    return psc.tree.map(lambda a, g: a - 0.05 * g, p, slope), value


class Weights(NamedTuple):
    """A block: heads, and the columns between the two layers, are cut along `model`."""

    query: f32["h@model d k"]
    key: f32["h@model d k"]
    value: f32["h@model d k"]
    out: f32["h@model k d"]
    up: f32["d f@model"]
    down: f32["f@model d"]


def block(p: Weights, x: f32["n t d"]) -> f32["n t d"]:
    """Attention and two layers, each added to what it is given."""
    query = np.einsum("ntd,hdk->nhtk", x, p.query)
    key = np.einsum("ntd,hdk->nhtk", x, p.key)
    value = np.einsum("ntd,hdk->nhtk", x, p.value)
    scores = np.einsum("nhtk,nhsk->nhts", query, key) / np.sqrt(np.float32(p.query.shape[2]))
    weights = np.exp(scores - np.max(scores, axis=3, keepdims=True))
    weights = weights / np.sum(weights, axis=3, keepdims=True)
    taken = np.einsum("nhts,nhsk->nhtk", weights, value)
    x = x + np.einsum("nhtk,hkd->ntd", taken, p.out)
    return x + relu(x @ p.up) @ p.down


def distance(p: Weights, x: f32["n t d"], y: f32["n t d"]) -> f32:
    """The mean of squares."""
    return np.mean((block(p, x) - y) ** 2)


@psc.kernel
def transformer(p: Weights, x: f32["n@data t d"], y: f32["n@data t d"]) -> tuple[Weights, f32]:
    """A step, data and model parallel."""
    value, slope = psc.value_and_grad(distance)(p, x, y)
    return psc.tree.map(lambda a, g: a - 0.05 * g, p, slope), value
