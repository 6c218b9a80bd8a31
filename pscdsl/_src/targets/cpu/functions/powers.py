"""Powers of single and half precision, by way of logarithms in double precision.

XLA on CPUs calls the C library for each element.  Here `2^(y log2 x)` is computed with relative
errors of 2^-33 before it is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Final

from pscdsl._src.ir.hlo import TargetHlo
from pscdsl._src.ir.primitive import H, Hlo, Types
from pscdsl._src.primitives.formulas.arithmetic import Emitted, Number
from pscdsl._src.primitives.pointwise import Elementwise, everywhere
from pscdsl._src.targets.cpu.functions.doubles import Doubles, emitted, pays, series
from pscdsl._src.targets.forms import Form
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import F32

POWERS = Form(
    "powers",
    "Powers of f32, bf16 and f16 by logarithms and exponentials in f64 instead of the C library's "
    "function: 0.2 to 0.35 of the time for a million elements.  Constant exponents such as 1.5 and "
    "-2.5 by products and a square root instead of logarithms: 0.1 of the time, in f64 too.",
)
MOST_FACTORS: Final = 8
"""Up to so many, and a root, exponents that are whole or have a half are products."""

# Fitted by interpolation at Chebyshev's points: log2(1 + f) / f for 1 + f from sqrt(1/2) to
# sqrt(2), and 2^f for f from -1/2 to 1/2.
_LOGARITHM: Final = (
    1.4426950408708785,
    -0.7213475209631289,
    0.48089836017677523,
    -0.3606736553229032,
    0.28853739433674924,
    -0.24045433650842007,
    0.20617283328859878,
    -0.18027103759186008,
    0.15878356324351897,
    -0.1434902604143236,
    0.14495044497117845,
    -0.1414484288572394,
    0.0755386292651341,
)
_EXPONENTIAL: Final = (
    0.9999999999595622,
    0.6931471805568341,
    0.24022651213495422,
    0.055504109063177154,
    0.009618025613598036,
    0.0013333478480888061,
    0.00015469729140704658,
    1.5303699001378845e-05,
)
_NORMAL: Final = 0x00800000
_INFINITE: Final = 0x7F800000
_ROOT_HALF: Final = 0x3F3504F3
"""The bits of the smallest normal f32, of infinity, and of sqrt(1/2)."""


@POWERS.translation
def constant_powers(
    primitive: Elementwise, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """A constant power that is whole or has a half."""
    (result,) = outputs
    exponent = hlo.everywhere(operands[1]) if result.dtype.is_float else None
    if exponent is None or not is_product(float(exponent)):
        return None
    x, _ = everywhere(hlo, operands, inputs, result)
    return (by_products(hlo, x, float(exponent), result),)


@POWERS.translation
def powers(
    primitive: Elementwise, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Any power of any number of up to 32 bits."""
    (result,) = outputs
    if not result.dtype.is_float or result.dtype.bits > 32 or not pays(hlo, result):
        return None
    x, y = everywhere(hlo, operands, inputs, result)
    return (power(hlo, x, y, result),)


def power(hlo: Hlo, x: H, y: H, given: ArrayType) -> H:
    """X to the power y, of this type, whose dtype has at most 32 bits; as in IEEE 754."""
    d = Doubles(hlo, given)
    m = d.single
    base, exponent = (emitted(hlo.convert(each, m.type), m) for each in (x, y))
    size = d.masked(d.same_bits(base, d.int32), 0x7FFFFFFF)
    result = _exponential(d, d.wide(exponent) * _logarithm(d, size))
    whole = d.nearest(exponent) == exponent
    half = exponent * 0.5
    odd = whole & (d.nearest(half) != half)
    negative = d.same_bits(base, d.int32) < 0
    result = m.where(negative & odd, -result, result)
    number = (size != 0) & (size != _INFINITE)
    result = m.where(negative & number & ~whole, nan, result)
    one = (exponent == 0) | (base == 1) | ((base == -1) & (m.absolute(exponent) == inf))
    return hlo.convert(m.where(one, 1.0, result).handle, given)


def _logarithm(d: Doubles, size: Emitted) -> Number:
    """The logarithm to the base 2 of the number that has these bits."""
    small = size < _NORMAL  # the bits are then the number of smallest steps
    steps = Emitted(d.single, d.hlo.convert(size.handle, d.single.type))
    bits = d.int32.where(small, d.same_bits(steps, d.int32), size)
    whole = d.shifted(bits - _ROOT_HALF, "shift_right_arithmetic", 23)
    mantissa = d.same_bits(bits - d.shifted(whole, "shift_left", 23), d.single)
    whole = d.int32.where(small, whole - 149, whole)
    exponent = Emitted(d.single, d.hlo.convert(whole.handle, d.single.type))
    exponent = d.single.where(size >= _INFINITE, d.same_bits(size, d.single), exponent)
    exponent = d.single.where(size == 0, -inf, exponent)
    beyond = d.wide(mantissa) - 1.0
    return d.wide(exponent) + beyond * series(beyond, _LOGARITHM)


def _exponential(d: Doubles, x: Number) -> Emitted:
    """2 to a power."""
    m = d.double
    x = m.clip(x, -200.0, 200.0)
    whole = d.nearest(x)
    fraction = d.same_bits(series(x - whole, _EXPONENTIAL), d.int64)
    scaled = fraction + d.shifted(d.low_bits(whole), "shift_left", 52)
    return d.narrow(d.same_bits(scaled, m))


def is_product(exponent: float) -> bool:
    """Whether it is whole or has a half, and is no larger than `MOST_FACTORS`."""
    return abs(exponent) < MOST_FACTORS + 1 and 2 * exponent == int(2 * exponent)


def by_products(hlo: Hlo, x: H, exponent: float, given: ArrayType) -> H:
    """X to a constant power for which `is_product` holds."""
    wide = given.with_dtype(F32) if given.dtype.bits < 32 else given
    x = hlo.convert(x, wide)
    whole, half = int(abs(exponent)), exponent != int(exponent)
    if exponent == 0:
        return hlo.full(1.0, given)
    root = hlo.unary("sqrt", x) if half else None
    if exponent > 0:
        result = _product(hlo, x, whole, root)
    else:  # divided twice: the power of a tiny number may overflow where its inverse does not
        first = whole if half else (whole + 1) // 2
        result = hlo.full(1.0, wide)
        for factor in (_product(hlo, x, first, None), _product(hlo, x, whole - first, root)):
            result = result if factor is None else hlo.binary("divide", result, factor)
    assert result is not None
    if half:  # the power of -infinity is not NaN, and that of -0 is not -0
        powers = (inf, 0.0) if exponent > 0 else (0.0, inf)
        for special, power in zip((-inf, 0.0), powers, strict=True):
            there = hlo.compare("EQ", x, hlo.full(special, wide))
            result = hlo.select(there, hlo.full(power, wide), result)
    return hlo.convert(result, given)


def _product(hlo: Hlo, x: H, count: int, factor: H | None) -> H | None:
    """A number multiplied with itself and with a factor; None of no factors at all."""
    while count:
        if count % 2:
            factor = x if factor is None else hlo.binary("multiply", factor, x)
        count //= 2
        x = hlo.binary("multiply", x, x) if count else x
    return factor
