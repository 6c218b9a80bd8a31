"""Positions of rows in a sequence, for layers that do not depend on the order of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float, Integer
from pscdsl.stdlib.precision import widened

LONGEST = 10_000
"""Over 2 pi, almost the longest wavelength of positions."""


def sinusoidal_positions(t: int, d: int, dtype: Any = np.float32) -> Float["t d"]:
    """Sines and cosines of t places, d/2 of each, side by side; for kernels (Vaswani et al. 2017).

    Wavelengths grow geometrically; d is even.

    Examples:
        >>> sinusoidal_positions(3, 4)
        array([[ 0.    ,  1.    ,  0.    ,  1.    ],
               [ 0.8415,  0.5403,  0.01  ,  0.9999],
               [ 0.9093, -0.4161,  0.02  ,  0.9998]], dtype=float32)
    """
    assert d % 2 == 0
    angles = np.arange(t, dtype=np.float32)[:, None] * _frequencies(d)
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return pairs.reshape(t, d).astype(dtype)


@psc.kernel
def rotary(x: Float["*batch t d"], start: Integer = 0) -> Float["*batch t d"]:
    """Rotary position embedding: pairs of features rotated by angles that grow with the row.

    The inner product of two rows then depends on how far apart they are, not on where (Su et al.
    2021).  The first row has the place `start`; d is even.

    Examples:
        >>> rotary(np.array([[1.0, 0.0], [1.0, 0.0]]))
        pscdsl.Array([[1.    , 0.    ],
                      [0.5403, 0.8415]], dtype=float64)

    Cost: 3*batch*d*t + 17*t*(d//2) + 6*d + t flops.
    """
    t, d = x.shape[-2:]
    assert d % 2 == 0
    places = (start + np.arange(t)).astype(np.float32)
    angles = (places[:, None] * _frequencies(d)).astype(widened(x).dtype)
    pairs = widened(x).reshape(*x.shape[:-1], d // 2, 2)
    even, odd = pairs[..., 0], pairs[..., 1]
    cos, sin = np.cos(angles), np.sin(angles)
    turned = np.stack([cos * even - sin * odd, sin * even + cos * odd], axis=-1)
    return turned.reshape(x.shape).astype(x.dtype)


def _frequencies(d: int) -> Any:
    """The angle by which each pair of features turns from one place to the next."""
    return np.float32(LONGEST) ** (-2 * np.arange(d // 2, dtype=np.float32) / d)
