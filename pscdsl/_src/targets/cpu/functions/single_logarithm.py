"""log(1 + x) in single precision: the sum's exponent, and a polynomial of what is left.

The sum is rounded; what is lost by that is added to what is left, which is exactly x near 0.  XLA
computes two polynomials, and both of its results everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Final

from pscdsl._src.ir.hlo import TargetHlo
from pscdsl._src.ir.primitive import H, Types
from pscdsl._src.primitives.formulas.arithmetic import Emitted, Number
from pscdsl._src.primitives.formulas.exponentials import LOG_2
from pscdsl._src.primitives.pointwise import Elementwise
from pscdsl._src.targets.cpu.functions.doubles import Doubles, pays, series
from pscdsl._src.targets.forms import Form
from pscdsl.typing.dtypes import F32

LOG1P_BY_POLYNOMIAL = Form(
    "log1p_by_polynomial",
    "log(1 + x) of large arrays of f32, bf16 and f16, and in loops, by an exponent and one "
    "polynomial instead of XLA's function: 0.55 of the time for a million elements, and an error "
    "of 1.5 instead of 2.5 units in the last place.",
)
LEAST: Final = 1 << 15
"""From so many elements on, outside of loops: with fewer, XLA's is run by the calling thread."""
_REST: Final = (
    0.3333333134651184,
    -0.2500081956386566,
    0.20001226663589478,
    -0.16623356938362122,
    0.14201758801937103,
    -0.13160182535648346,
    0.12761574983596802,
    -0.07634492963552475,
)
"""(log(1 + d) - d + d^2/2) / d^3 from sqrt(1/2) - 1 to sqrt(2) - 1: fitted, the largest error of
the logarithm being least."""
_ROOT_OF_HALF: Final = 0x3F3504F3
"""The bits of sqrt(1/2): what has these as its lowest exponent is below sqrt(2)."""
_BIAS: Final = 127
_MOST: Final = 64
"""Beyond this power of two nothing is lost that would count."""


@LOG1P_BY_POLYNOMIAL.translation
def log1p(
    primitive: Elementwise, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """log(1 + x) by an exponent and a polynomial."""
    (given,) = inputs
    dtype = given.dtype
    single = dtype.is_float and dtype.bits <= 32
    large = pays(hlo, given) and (hlo.in_loop or prod(hlo.shape(given.shape)) >= LEAST)
    if not single or not large:
        return None
    m = Doubles(hlo, given)
    x = Emitted(m.single, hlo.convert(operands[0], given.with_dtype(F32)))
    return (hlo.convert(_log1p(m, x).handle, outputs[0]),)


def _log1p(m: Doubles, x: Number) -> Number:
    moved = x + 1
    lost = x + (1 - moved)
    bits = m.same_bits(moved, m.int32)
    power = m.shifted(bits - _ROOT_OF_HALF, "shift_right_arithmetic", 23)
    mantissa = m.same_bits(bits - m.shifted(power, "shift_left", 23), m.single)
    least = Emitted(m.int32, m.hlo.binary("minimum", power.handle, m.int32.handle(_MOST)))
    inverse = m.same_bits(m.shifted(_BIAS - least, "shift_left", 23), m.single)
    part = lost * inverse + (mantissa - 1)
    whole = Emitted(m.single, m.hlo.convert(power.handle, m.single.type))
    square = part * part
    rest = square * (part * series(part, _REST) - 0.5)
    found = whole * LOG_2[0] + (part + (whole * LOG_2[1] + rest))
    where = m.single.where
    found = where(x < math.inf, where(x == 0, x, found), x)
    return where(x > -1, found, where(x == -1, -math.inf, math.nan))
