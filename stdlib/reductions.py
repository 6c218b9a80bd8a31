"""Reductions that NumPy lacks, over the last axis."""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import Float


@psc.kernel
def logmeanexp(x: Float["*batch n"]) -> Float["*batch"]:
    """`log(mean(exp(x)))` over the last axis, without overflow.

    Cost: 7*batch*n + 18*batch + 8 flops.
    """
    return psc.special.logsumexp(x, axis=-1) - np.log(x.shape[-1])
