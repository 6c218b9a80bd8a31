"""The exponential in single precision, as formulas take it apart."""

from __future__ import annotations

import math
from typing import Final

from pscdsl._src.primitives.formulas.arithmetic import Arithmetic, Number

EXP: Final = (
    1.0,
    1.0000004318781799,
    0.500000053913926,
    0.16665389519043505,
    0.041665072178331174,
    0.00842766417235387,
    0.0014006691754246655,
)
"""exp(d) for d from -0.52 to 0.52, lowest power first: fitted at Chebyshev's points."""
LOG_2: Final = (0.693359375, -0.00021219444005469057)
"""The logarithm of 2; multiples of the first part up to 2^8 are exact, as it has few bits."""


def reduced(m: Arithmetic, x: Number) -> tuple[Number, Number]:
    """An integer, and what a number has beyond as many times log(2)."""
    power = m.nearest(x * (1 / math.log(2)))
    return power, (x - power * LOG_2[0]) - power * LOG_2[1]
