"""Reductions that NumPy lacks, over the last axis."""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import Float
from pscdsl.stdlib.precision import widened


@psc.kernel
def logsumexp(x: Float["*batch n"]) -> Float["*batch"]:
    """`log(sum(exp(x)))` over the last axis, without overflow.

    A row of -inf gives -inf, a row with +inf gives +inf.
    """
    z = widened(x)
    largest = z.max(axis=-1, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0)
    total = np.exp(z - shift).sum(axis=-1)
    return (np.log(total) + shift[..., 0]).astype(x.dtype)


@psc.kernel
def logmeanexp(x: Float["*batch n"]) -> Float["*batch"]:
    """`log(mean(exp(x)))` over the last axis, without overflow."""
    return logsumexp(x) - np.log(x.shape[-1])
