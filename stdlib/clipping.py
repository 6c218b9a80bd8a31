"""Gradient clipping, for trees of any arrays, where None stays None."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

import pscdsl as psc

T = TypeVar("T")


def clip_by_norm(gradient: T, limit: Any) -> T:
    """The gradient, shortened to the length `limit` > 0 if it is longer (Pascanu et al. 2013).

    The length is that of all arrays together.  For kernels; one that is NaN stays.

    Examples:
        >>> clip_by_norm((np.array([3.0]), np.array([4.0])), 1.0)
        (array([0.6]), array([0.8]))
    """
    length = psc.tree.norm(gradient)
    limit = np.asarray(limit, length.dtype)
    factor = np.where(length > limit, limit / np.where(length > limit, length, 1), 1)
    return psc.tree.map(lambda g: g * factor.astype(g.dtype), gradient)


def clip_by_value(gradient: T, limit: Any) -> T:
    """The gradient with every element cut to [-limit, limit]; for kernels.  NaN stays.

    Examples:
        >>> @psc.kernel
        ... def clipped(gradient: f64["n"]) -> f64["n"]:
        ...     return clip_by_value(gradient, 1.0)
        >>> clipped(np.array([0.5, -4.0]))
        pscdsl.Array([ 0.5, -1. ], dtype=float64)
    """

    def cut(g: Any) -> Any:
        end = np.asarray(limit, g.dtype)
        return np.clip(g, -end, end)

    return psc.tree.map(cut, gradient)
