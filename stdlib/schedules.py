"""Learning rate schedules; a constant rate is a number.

Each takes the number of steps that are done, and gives the rate of the next.  They combine by
multiplication: `warmup(step, 100) * cosine(step, 5000, 1e-3)`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float, Integer
from pscdsl.stdlib.precision import widened


@psc.kernel
def warmup(step: Integer, steps: Integer, rate: Float = 1.0) -> Float:
    """A line from `rate / steps` up to `rate`, which it reaches with the last of `steps` steps.

    Steps count from 0, as in all of these (Goyal et al. 2017).

    Examples:
        >>> [float(warmup(step, 4, 1.0)) for step in range(5)]
        [0.25, 0.5, 0.75, 1.0, 1.0]

    Cost: 5 flops.
    """
    done = (_number(step, rate) + 1) / np.maximum(_number(steps, rate), 1)
    return (widened(rate) * np.minimum(done, 1)).astype(rate.dtype)


@psc.kernel
def cosine(step: Integer, steps: Integer, rate: Float, last: Float = 0.0) -> Float:
    """Half a wave of a cosine from `rate` down to `last`, and `last` after `steps` steps.

    Loshchilov, Hutter 2017, without restarts.

    Examples:
        >>> [round(float(cosine(step, 4, 0.1)), 3) for step in range(6)]
        [0.1, 0.085, 0.05, 0.015, 0.0, 0.0]

    Cost: 17 flops.
    """
    done = np.minimum(_number(step, rate) / np.maximum(_number(steps, rate), 1), 1)
    share = (1 + np.cos(math.pi * done)) / 2
    return (widened(last) + share * (widened(rate) - widened(last))).astype(rate.dtype)


@psc.kernel
def exponential(step: Integer, steps: Integer, rate: Float, factor: Float) -> Float:
    """`rate * factor ** (step / steps)`: multiplied by `factor` > 0 in every `steps` steps.

    Examples:
        >>> [round(float(exponential(step, 2, 0.1, 0.5)), 4) for step in range(5)]
        [0.1, 0.0707, 0.05, 0.0354, 0.025]

    Cost: 13 flops.
    """
    done = _number(step, rate) / np.maximum(_number(steps, rate), 1)
    return (widened(rate) * widened(factor) ** done).astype(rate.dtype)


@psc.kernel
def piecewise(step: Integer, ends: Integer["k"], rates: Float["k+1"]) -> Float:
    """`rates[i]` from step `ends[i - 1]` on; `ends` rises, and the first rate starts at step 0.

    Examples:
        >>> ends, rates = np.array([2, 4]), np.array([0.1, 0.01, 0.001])
        >>> [float(piecewise(step, ends, rates)) for step in range(6)]
        [0.1, 0.1, 0.01, 0.01, 0.001, 0.001]

    Cost: 2*k + 3 flops.
    """
    return rates[(step >= ends).sum()]


def _number(count: Any, rate: Any) -> Any:
    """A count in the dtype that rates are computed in."""
    return count.astype(widened(rate).dtype)
