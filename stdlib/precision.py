"""The choice of the dtype to compute in."""

from __future__ import annotations

from typing import Any

import numpy as np


def widened(x: Any) -> Any:
    """`x` in the dtype for sums and polynomials: f32 for 16 bits, else its own.

    Numbers of 16 bits hold 3 decimal digits or fewer, and f16 ends at 65504: a sum of squares
    leaves that range where its result, a root or a mean, would not.

    Examples:
        >>> widened(np.ones(2, np.float16)).dtype, widened(np.ones(2)).dtype
        (dtype('float32'), dtype('float64'))
    """
    return x.astype(np.float32) if np.finfo(x.dtype).bits < 32 else x
