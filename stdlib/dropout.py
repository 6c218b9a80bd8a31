"""Dropout: parts of layers that are left out at random while training."""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import Float, Key


@psc.kernel
def dropout(key: Key, x: Float["*s"], rate: Float = 0.5) -> Float["*s"]:
    """Set each element to 0 with probability `rate`, and divide the others by `1 - rate`.

    Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov 2014.

    Examples:
        >>> dropout(psc.random.key(0), np.ones(6), 0.5)
        pscdsl.Array([2., 2., 0., 0., 0., 2.], dtype=float64)

    Cost: 126*s + 1 flops.
    """
    return np.where(psc.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


@psc.kernel
def channel_dropout(key: Key, x: Float["n c *space"], rate: Float = 0.5) -> Float["n c *space"]:
    """`dropout` of whole channels, whose elements depend on each other (Tompson et al. 2015).

    Examples:
        >>> channel_dropout(psc.random.key(1), np.ones((1, 4, 2)), 0.5)
        pscdsl.Array([[[2., 2.],
                       [2., 2.],
                       [0., 0.],
                       [0., 0.]]], dtype=float64)

    Cost: 2*c*n*space + 124*c*n + 1 flops.
    """
    n, c = x.shape[:2]
    mask = psc.random.bernoulli(key, 1 - rate, (n, c))
    return np.where(mask.reshape(n, c, *(1 for _ in x.shape[2:])), x / (1 - rate), 0)
