"""Attention: means of values, weighted by how well their keys fit a query.

Of t queries and s keys, a mask is true where a query may look at a key; it broadcasts against
[*batch t s].  `causal` lets each query look at keys up to its own place, counted from the end, so
that the last query sees every key.  A query that may look at nothing gets 0, and its weights have
no gradient.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float, Key, bool_
from pscdsl.stdlib.activations import softmax
from pscdsl.stdlib.initializers import scaled_uniform
from pscdsl.stdlib.precision import widened


class Heads(psc.Record, dims="d m h k"):
    """Attention by h heads with keys of k numbers: queries on d features, keys and values on m.

    Examples:
        >>> p = attention_layer(psc.random.key(0), features=8, memory_features=8, heads=2, size=4)
        >>> p.query.shape, p.out.shape
        ((8, 2, 4), (2, 4, 8))
    """

    query: Float["d h k"]
    """The map from rows to queries, for each head."""
    key: Float["m h k"]
    """The map from memory rows to keys."""
    value: Float["m h k"]
    """The map from memory rows to values."""
    out: Float["h k d"]
    """The map from the results of all heads to rows."""


def attention_layer(
    key: Key,
    features: int,
    memory_features: int,
    heads: int,
    size: int,
    dtype: Any = np.float32,
) -> Heads["features memory_features heads size"]:
    """Parameters by Glorot and Bengio, each matrix taken as one from or to all heads.

    Examples:
        >>> p = attention_layer(psc.random.key(0), features=8, memory_features=6, heads=2, size=4)
        >>> p.query.shape, p.key.shape, p.value.shape, p.out.shape
        ((8, 2, 4), (6, 2, 4), (6, 2, 4), (2, 4, 8))
    """
    keys = psc.random.split(key, 4)

    def drawn(key: Key, features: int, shape: tuple[int, ...]) -> Any:
        return scaled_uniform(key, shape, 2 / (features + heads * size), dtype)

    return Heads(
        drawn(keys[0], features, (features, heads, size)),
        drawn(keys[1], memory_features, (memory_features, heads, size)),
        drawn(keys[2], memory_features, (memory_features, heads, size)),
        drawn(keys[3], features, (heads, size, features)),
    )


@psc.kernel
def dot_product_attention(
    queries: Float["*batch t k"],
    keys: Float["*batch s k"],
    values: Float["*batch s v"],
    mask: bool_["*batch t s"] | None = None,
    causal: psc.Static[bool] = False,
) -> Float["*batch t v"]:
    """`softmax(queries @ keys.mT / sqrt(k)) @ values` (Vaswani et al. 2017).

    Examples:
        >>> queries, keys = np.array([[10.0, 0.0]]), np.array([[10.0, 0.0], [0.0, 10.0]])
        >>> dot_product_attention(queries, keys, np.array([[1.0, 2.0], [3.0, 4.0]]))
        pscdsl.Array([[1., 2.]], dtype=float64)

    Cost: at most 2*batch*k*s*t + 2*batch*s*t*v + 18*batch*s*t + 5*batch*t flops.
    """
    return attend(queries, keys, values, mask, causal)


@psc.kernel
def self_attention(
    p: Heads["d d h k"],
    x: Float["*batch t d"],
    present: bool_["*batch t"] | None = None,
    causal: psc.Static[bool] = False,
) -> Float["*batch t d"]:
    """Attention of a sequence to itself, by several heads (Vaswani et al. 2017).

    No row attends to rows where `present` is false: so sequences of several lengths are one batch.

    Examples:
        >>> p = attention_layer(psc.random.key(0), 8, 8, heads=2, size=4)
        >>> self_attention(p, np.ones((3, 10, 8), np.float32), causal=True).shape
        (3, 10, 8)

    Cost: at most 8*batch*d*h*k*t + 4*batch*h*k*t*t + 18*batch*h*t*t + 5*batch*t*t flops.
    """
    return multi_head(p, x, x, None if present is None else present[..., None, None, :], causal)


@psc.kernel
def cross_attention(
    p: Heads["d m h k"],
    x: Float["*batch t d"],
    memory: Float["*batch s m"],
    present: bool_["*batch s"] | None = None,
) -> Float["*batch t d"]:
    """Attention of a sequence to another one, by several heads; `present` is of the other.

    Examples:
        >>> p = attention_layer(psc.random.key(0), 8, 6, heads=2, size=4)
        >>> cross_attention(p, np.ones((10, 8), np.float32), np.ones((7, 6), np.float32)).shape
        (10, 8)

    Cost: at most 4*batch*d*h*k*t + 4*batch*h*k*m*s + 4*batch*h*k*s*t + 19*batch*h*s*t flops.
    """
    return multi_head(p, x, memory, None if present is None else present[..., None, None, :])


def multi_head(
    p: Heads["d m h k"],
    x: Float["*batch t d"],
    memory: Float["*batch s m"],
    mask: Any = None,
    causal: bool = False,
    turn: Any = None,
) -> Float["*batch t d"]:
    """Attention of `x` to `memory`, for kernels that need more than the two above.

    The mask broadcasts against [*batch h t s]; `turn` maps queries and keys [*batch h t k], such as
    by `positions.rotary`.

    Examples:
        >>> @psc.kernel
        ... def local(p: Heads["d d h k"], x: Float["t d"]) -> Float["t d"]:
        ...     t, _ = x.shape
        ...     near = np.abs(np.arange(t)[:, None] - np.arange(t)) <= 2
        ...     return multi_head(p, x, x, mask=near)
        >>> p = attention_layer(psc.random.key(0), 8, 8, heads=2, size=4)
        >>> local(p, np.ones((10, 8), np.float32)).shape
        (10, 8)
    """
    queries = np.einsum("...td,dhk->...htk", x, p.query)
    keys = np.einsum("...sm,mhk->...hsk", memory, p.key)
    values = np.einsum("...sm,mhk->...hsk", memory, p.value)
    if turn is not None:
        queries, keys = turn(queries), turn(keys)
    attended = attend(queries, keys, values, mask, causal)
    return np.einsum("...htk,hkd->...td", attended, p.out)


def attend(
    queries: Float["*batch t k"],
    keys: Float["*batch s k"],
    values: Float["*batch s v"],
    mask: Any = None,
    causal: bool = False,
) -> Float["*batch t v"]:
    """`dot_product_attention`, with any mask that broadcasts; for kernels.

    Examples:
        >>> attend(np.ones((1, 2)), np.ones((2, 2)), np.array([[1.0], [3.0]]))
        array([[2.]])
        >>> attend(
        ...     np.ones((1, 2)), np.ones((2, 2)), np.array([[1.0], [3.0]]), np.array([True, False])
        ... )
        array([[1.]])
    """
    scores = widened(queries @ keys.mT) / math.sqrt(queries.shape[-1])
    weights = masked_softmax(scores, mask, causal)
    return weights.astype(values.dtype) @ values


def masked_softmax(
    scores: Float["*batch t s"], mask: Any = None, causal: bool = False
) -> Float["*batch t s"]:
    """`softmax` over the keys that a mask admits; 0 for the others, and where it admits none.

    Examples:
        >>> masked_softmax(np.array([[1.0, 2.0, 3.0]]), np.array([True, True, False]))
        array([[0.2689, 0.7311, 0.    ]])
        >>> masked_softmax(np.zeros((3, 3)), causal=True)
        array([[1.    , 0.    , 0.    ],
               [0.5   , 0.5   , 0.    ],
               [0.3333, 0.3333, 0.3333]])
    """
    if causal:
        t, s = scores.shape[-2:]
        past = np.arange(s) - s <= np.arange(t)[:, None] - t
        mask = past if mask is None else mask & past
    if mask is None:
        return softmax(scores)
    admitted = np.where(mask, scores, -np.inf)
    largest = psc.stop_gradient(admitted.max(axis=-1, keepdims=True))
    terms = np.exp(admitted - np.where(largest > -np.inf, largest, 0))
    total = terms.sum(axis=-1, keepdims=True)
    return terms / np.where(total > 0, total, 1)
