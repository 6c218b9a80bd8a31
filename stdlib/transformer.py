"""Transformers: attention to the sequence and a layer for each row, added to their input.

Blocks normalise the input of their parts, not the result (Xiong et al. 2020), so that deep stacks
train without a warm-up of the rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float, Key, bool_
from pscdsl.stdlib.activations import gelu
from pscdsl.stdlib.attention import Heads, attention_layer, multi_head
from pscdsl.stdlib.layers import Dense, dense, dense_layer
from pscdsl.stdlib.normalization import Affine, layer_norm
from pscdsl.stdlib.positions import rotary


class Block(psc.Record, dims="d h k f"):
    """One of the layers, on d features, with h heads of k numbers and f hidden features.

    Examples:
        >>> p = transformer_block(psc.random.key(0), features=8, heads=2, size=4, hidden=16)
        >>> p.hidden.weights.shape, p.attention.query.shape
        ((8, 16), (8, 2, 4))
    """

    attention_norm: Affine["d"]
    """The norm before attention."""
    attention: Heads["d d h k"]
    """The self-attention."""
    hidden_norm: Affine["d"]
    """The norm before the layer for each row."""
    hidden: Dense["d f"]
    """The first map of that layer."""
    out: Dense["f d"]
    """The second map, after `gelu`."""


def transformer_block(
    key: Key, features: int, heads: int, size: int, hidden: int, dtype: Any = np.float32
) -> Block["features heads size hidden"]:
    """Parameters by Glorot and Bengio, and norms that change nothing; for kernels.

    Examples:
        >>> p = transformer_block(psc.random.key(0), features=8, heads=2, size=4, hidden=16)
        >>> psc.tree.size(p)
        568
    """
    keys = psc.random.split(key, 3)
    scale: Any = np.ones(features, dtype)
    neutral = Affine(scale, np.zeros_like(scale))
    return Block(
        neutral,
        attention_layer(keys[0], features, features, heads, size, dtype),
        neutral,
        dense_layer(keys[1], features, hidden, dtype),
        dense_layer(keys[2], hidden, features, dtype),
    )


@psc.kernel
def transform(
    p: Block["d h k f"],
    x: Float["*batch t d"],
    present: bool_["*batch t"] | None = None,
    causal: psc.Static[bool] = False,
    positions: psc.Static[bool] = False,
) -> Float["*batch t d"]:
    """Apply a transformer block: `x`, plus self-attention, plus a layer with `gelu` for each row.

    Vaswani et al. 2017, with norms before both. No row attends to rows where `present` is false;
    `causal` rows attend to no later ones; with `positions` heads know the distance of rows, by
    `rotary`, which needs an even k.

    Examples:
        >>> p = transformer_block(psc.random.key(0), features=8, heads=2, size=4, hidden=16)
        >>> transform(p, np.ones((10, 8), np.float32), causal=True).shape
        (10, 8)

    Cost: at most 8*batch*d*h*k*t + 4*batch*h*k*t*t + 4*batch*d*f*t + 40*batch*h*k*t +
    16*batch*h*t*t + 29*batch*d*t + 62*batch*f*t flops.
    """
    assert not positions or p.attention.query.shape[2] % 2 == 0
    mask = None if present is None else present[..., None, None, :]
    read = layer_norm(p.attention_norm, x)
    turn = rotary if positions else None
    x = x + multi_head(p.attention, read, read, mask, causal, turn)
    hidden = gelu(dense(p.hidden, layer_norm(p.hidden_norm, x)))
    return x + dense(p.out, hidden)
