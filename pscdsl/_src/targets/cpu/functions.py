"""Functions of elements that XLA leaves to the C library, as polynomials in vector code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import frexp, inf, log2, nan, pi, prod
from typing import Any, Final, TypeAlias

from pscdsl._src.ir.primitive import H, Hlo, TargetHlo, Types
from pscdsl._src.primitives.exponentials import LOG_2
from pscdsl._src.primitives.fft import Fft, transform
from pscdsl._src.primitives.formulas import Emitted, Number, OverOperations, polynomial
from pscdsl._src.primitives.pointwise import Elementwise, everywhere
from pscdsl._src.targets.forms import Form, FormTranslation
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import F16, F32, F64, I32, I64

# Functions of single precision that are computed in double precision, and rounded once.


_SHIFT = 1.5 * 2.0**52
"""Added to an integer below 2^51 in size, it moves that to the lowest bits."""
FEWEST = 1 << 14
"""The least number of elements that pays. A program that XLA counts as a few operations runs in the
calling thread, and XLA counts a function of the C library as none."""
FEWEST_IN_LOOPS = 32


def pays(hlo: TargetHlo, given: ArrayType) -> bool:
    """Return whether an array is large enough for the form."""
    return prod(hlo.shape(given.shape)) >= (FEWEST_IN_LOOPS if hlo.in_loop else FEWEST)


class Doubles:
    """Arithmetic of 64 bits and of 32 bits on arrays of one shape."""

    def __init__(self, hlo: Hlo, given: ArrayType) -> None:
        self.hlo = hlo
        self.double = OverOperations(hlo, given.with_dtype(F64))
        self.single = OverOperations(hlo, given.with_dtype(F32))
        self.int32 = OverOperations(hlo, given.with_dtype(I32))
        self.int64 = OverOperations(hlo, given.with_dtype(I64))

    def wide(self, x: Number) -> Emitted:
        """Convert a number of 32 bits to 64."""
        return Emitted(self.double, self.hlo.convert(x.handle, self.double.type))

    def narrow(self, x: Number) -> Emitted:
        """Round a number of 64 bits to 32."""
        return Emitted(self.single, self.hlo.convert(x.handle, self.single.type))

    def same_bits(self, x: Number, to: OverOperations) -> Emitted:
        """Reinterpret the bits of a number as another dtype of equal width."""
        return Emitted(to, self.hlo.op("bitcast_convert", (x.handle,), (to.type,))[0])

    def nearest(self, x: Number) -> Emitted:
        """Emit the nearest integer, as a floating-point number."""
        return Emitted(x.at, self.hlo.unary("round_nearest_even", x.handle))

    def shifted(self, x: Number, operation: str, count: int) -> Emitted:
        """Shift the bits of an integer by the named operation."""
        by = self.hlo.full(count, x.at.type)
        return Emitted(x.at, self.hlo.binary(operation, x.handle, by))

    def masked(self, x: Number, mask: int) -> Emitted:
        """These bits of an integer."""
        return Emitted(x.at, self.hlo.binary("and", x.handle, self.hlo.full(mask, x.at.type)))

    def low_bits(self, x: Number) -> Emitted:
        """Return an i64 with the lowest 51 bits of an integral number below 2^51 in size."""
        return self.same_bits(x + _SHIFT, self.int64)


def emitted(x: H, at: OverOperations) -> Emitted:
    """Emit a value of the module with operators."""
    return Emitted(at, x)


def series(x: Number, coefficients: Sequence[float]) -> Number:
    """Evaluate a polynomial by Estrin's scheme, in few steps in a row; lowest power first."""
    terms: list[Number] = list(coefficients)
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        rest = terms[-1:] if len(terms) % 2 else []
        terms = [*(high * x + low for low, high in pairs), *rest]
        x = x * x
    return terms[0]


# Functions that XLA on CPUs computes as NumPy does, without the corrections for other devices.


@FormTranslation
def inverse_of_real(
    primitive: Fft, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit the inverse transform to real numbers along several axes as one operation."""
    if primitive.kind != "irfft" or primitive.axes == 1:
        return None
    lengths = hlo.shape(outputs[0].shape)[-primitive.axes :]
    return (transform(hlo, "irfft", operands[0], outputs[0], lengths),)


@FormTranslation
def erf(
    primitive: Elementwise, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H]:
    """Emit the error function, of tiny numbers too."""
    return (hlo.unary("chlo.erf", operands[0]),)


# Sine, cosine and tangent of single and half precision, of numbers of any size.
#
# XLA on CPUs calls the C library for each element. Here the number of half turns is a product with
# 1/pi in double precision, from which whole turns are left out: see Note [Windows]. The rest of a
# turn has an error below 2^-54, and the result is rounded once.


CIRCULAR_IN_F64 = Form(
    "circular_in_f64",
    "Sine, cosine and tangent of f32, bf16 and f16 by a reduction and a polynomial in f64 instead "
    "of the C library's functions: 0.05 to 0.15 of the time for a million elements.",
)

_ONE_OVER_PI: Final = int("517cc1b727220a94fe13abe8fa9a6ee06db14acc9e21c820ff28b1d5", 16)
_BITS: Final = 224
"""1/pi is the integer times 2^-_BITS."""
_WINDOWS: Final = (0, 26, 52, 78)
_SINE: Final = (
    3.141592653479287,
    -5.167712751850278,
    2.5501628729295436,
    -0.5992468507755347,
    0.0820246106803553,
    -0.006985325866462522,
)
"""The sine of t half turns over t, as a polynomial of t^2: fitted by interpolation at Chebyshev's
points, for t up to 0.53; relative errors are below 6e-11."""
_SINE_OF_RADIANS: Final = (
    0.9999999999413413,
    -0.16666666384724016,
    0.008333311638528807,
    -0.00019835422099025583,
    2.6912728779140537e-06,
)
"""Coefficients of the same series for x up to 1.02 instead of t; relative errors are below
8e-11."""
_NEAR: Final = 1.02
"""Up to this a sine needs fewer terms."""
_SMALL: Final = 2.0**-12
"""Below this sine and tangent are the number itself, also if that is -0 or subnormal."""
_DIRECT: Final = 1.6
"""Up to this a number is no more than half a half turn, or hardly."""
_SIMPLE: Final = 2.0**23
"""The largest number for which two words suffice: the rest of the second is negligible."""
Reduced: TypeAlias = tuple[Emitted, Emitted | None]
Finish: TypeAlias = Callable[[Doubles, Emitted, Emitted | None], Number]

# Note [Windows]
# A number from 2^(23 + a) on is an integer times 2^a: a bit of 1/pi whose product with 2^a is a
# multiple of 2 adds whole turns, and is left out. The rest of 1/pi is divided into three words, of
# 27, 28 and 53 bits: the products of the first two with 24 bits are exact, and so is the sum of the
# second one and the distance of the first from an integer. So for each a of _WINDOWS there are
# three words, which suffice up to 2^(49 + a), and an element chooses its words by its size.


def _split_bits(left: int, ends: Sequence[int]) -> list[float]:
    """Return the bits of a fraction up to each of these positions."""
    found: list[float] = []
    for end in ends:
        word = left >> (_BITS - end)
        left -= word << (_BITS - end)
        found.append(float(word) * 2.0**-end)
    return found


def _words(start: int) -> list[float]:
    left = _ONE_OVER_PI & ((2 << (_BITS - start)) - 1)
    return _split_bits(left, (start + 26, start + 54, start + 107))


_WORDS: Final = tuple([_words(start) for start in _WINDOWS])
_SIMPLE_WORDS: Final = _split_bits(_ONE_OVER_PI, (29, 82))


def _reduce_angle(d: Doubles, x: Emitted, most: float, ahead: float) -> Reduced:
    """Return a number's distance from a whole half turn, plus `ahead`, and the half turns left out.

    The count is None if all numbers are so small that no half turn is left out.
    """
    wide = d.wide(x)
    if most <= _DIRECT:
        angle = wide * (1 / pi)
        return (ahead - d.double.absolute(angle) if ahead else angle), None
    if most <= _SIMPLE:
        first = wide * _SIMPLE_WORDS[0] + ahead if ahead else wide * _SIMPLE_WORDS[0]
        turns = d.nearest(first)
        return (first - turns) + wide * _SIMPLE_WORDS[1], turns
    size = d.single.absolute(x)
    words: list[Any] = list(_WORDS[0])
    for start, other in zip(_WINDOWS[1:], _WORDS[1:], strict=True):
        beyond = size >= 2.0 ** (23 + start)
        words = [d.double.where(beyond, b, a) for a, b in zip(words, other, strict=True)]
    first = wide * words[0] + ahead if ahead else wide * words[0]
    turns = d.nearest(first)
    rest = (first - turns) + wide * words[1]
    more = d.nearest(rest)
    return (rest - more) + wide * words[2], turns + more


def _translation(finish: Finish, ahead: float) -> FormTranslation:
    def translate(
        primitive: Elementwise,
        hlo: TargetHlo,
        operands: Sequence[H],
        inputs: Types,
        outputs: Types,
    ) -> Sequence[H] | None:
        (given,) = inputs
        single = given.dtype.is_float and given.dtype.bits <= 32
        if not single or not pays(hlo, given):
            return None
        d = Doubles(hlo, given)
        x = emitted(hlo.convert(operands[0], given.with_dtype(F32)), d.single)
        most = max(map(abs, hlo.bounds(operands[0])))
        if finish is _wave and not ahead and most <= _NEAR:
            result = d.narrow(_series(d.wide(x), _SINE_OF_RADIANS))
        else:
            result = finish(d, *_reduce_angle(d, x, 65504.0 if given.dtype is F16 else most, ahead))
        # Near zero a sine without a reduction is right, except for subnormal numbers.
        right = finish is _wave and most <= _DIRECT and hlo.flushed(operands[0])
        if not ahead and not right:
            result = d.single.where(d.single.absolute(x) < _SMALL, x, result)
        found = hlo.convert(result.handle, given)
        if finish is _wave:
            hlo.tell_bounds(found, -1.0, 1.0)
        return (found,)

    return CIRCULAR_IN_F64.translation(translate)


def _series(angle: Emitted, coefficients: Sequence[float] = _SINE) -> Number:
    """Return the sine of half turns, up to half of one, or of radians by other coefficients."""
    return angle * polynomial(angle * angle, coefficients)


def _wave(d: Doubles, angle: Emitted, count: Emitted | None) -> Number:
    """Return the sine of an angle after `count` half turns."""
    if count is None:
        return d.narrow(_series(angle))
    sign = d.shifted(d.low_bits(count), "shift_left", 63)
    bits = d.same_bits(_series(angle), d.int64)
    turned = d.hlo.binary("xor", bits.handle, sign.handle)
    return d.narrow(d.same_bits(emitted(turned, d.int64), d.double))


def _slope(d: Doubles, angle: Emitted, count: Emitted | None) -> Number:
    """Return the tangent of an angle, which does not depend on the half turns before it."""
    across = 0.5 - d.double.absolute(angle)
    return d.narrow(_series(angle)) / d.narrow(_series(across))


sine: Final = _translation(_wave, 0.0)
cosine: Final = _translation(_wave, 0.5)
tangent: Final = _translation(_slope, 0.0)


# Powers of single and half precision, by way of logarithms in double precision.
#
# XLA on CPUs calls the C library for each element.  Here `2^(y log2 x)` is computed with relative
# errors of 2^-33 before it is rounded.


POWERS = Form(
    "powers",
    "Powers of f32, bf16 and f16 by logarithms and exponentials in f64 instead of the C library's "
    "function: 0.25 of the time for a million elements.  Constant exponents such as 1.5 and -2.5 "
    "by products and a square root instead of logarithms: 0.05 to 0.2 of the time, in f64 too.  "
    "Powers of two by a polynomial in their own precision: 0.25 of the time in f64.",
)
MOST_FACTORS: Final = 8
"""The most factors, besides a root, of an exponent that is whole or half-integral."""

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
    """Emit a constant power that is whole or has a half."""
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
    """Return x to the power y in a dtype of at most 32 bits, as IEEE 754 defines it."""
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
    """Return the logarithm to the base 2 of the number that has these bits."""
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
    """Return whether twice the exponent is whole, and the exponent at most `MOST_FACTORS`."""
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
    """Return `factor * x ** count` by multiplications; None if there is no factor at all."""
    while count:
        if count % 2:
            factor = x if factor is None else hlo.binary("multiply", factor, x)
        count //= 2
        x = hlo.binary("multiply", x, x) if count else x
    return factor


# Powers of two to any exponent: `np.exp2`, and powers of 0.5 or 4.
#
# XLA on CPUs calls the C library for each element.  Here the exponent is parted into the nearest
# integer, whose bits are added to those of the result, and a rest.  At integers it is exact.


# (2^f - 1) / f for f from -1/2 to 1/2, lowest power first: fitted by interpolation at Chebyshev's
# points to values of 50 digits.
_SINGLE: Final = (
    0.6931471805599453,
    0.24022650922288757,
    0.055504108839096185,
    0.009618056678524637,
    0.001333350238616277,
    0.0001546144469856913,
    1.5297323760701075e-05,
)
_DOUBLE: Final = (
    0.6931471805599453,
    0.24022650695910072,
    0.055504108664821625,
    0.00961812910762848,
    0.001333355814640647,
    0.00015403530393370734,
    1.5252733841556773e-05,
    1.3215486808705563e-06,
    1.0178057087733941e-07,
    7.0548973041554995e-09,
    4.4558179083360645e-10,
    2.5729324177362305e-11,
)


def factor(base: float) -> float | None:
    """Return the factor that turns an exponent of `base` into one of 2; None if it is not exact."""
    mantissa, exponent = frexp(base)
    if mantissa != 0.5 or exponent == 1:  # no power of two, or 1
        return None
    found = exponent - 1
    return float(found) if log2(abs(found)).is_integer() else None


@POWERS.translation
def powers_of_two(
    primitive: Elementwise, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit a constant power of two to any power."""
    (result,) = outputs
    if not result.dtype.is_float or not pays(hlo, result):
        return None
    base = hlo.everywhere(operands[0])
    times = factor(base) if base else None
    if times is None:
        return None
    _, y = everywhere(hlo, operands, inputs, result)
    return (power_of_two(hlo, y, times, result),)


def power_of_two(hlo: Hlo, y: H, times: float, given: ArrayType) -> H:
    """2 to the power of y times a number, of this type; results that would be subnormal are 0."""
    wide = given.with_dtype(F64 if given.dtype is F64 else F32)
    m = OverOperations(hlo, wide)
    x: Number = Emitted(m, hlo.convert(y, wide))
    if times != 1:
        x = x * times
    return hlo.convert(_power(m, x).handle, given)


def _power(m: OverOperations, x: Number) -> Number:
    digits, most = m.choose((23, 128.0), (52, 1024.0))
    x = m.where(x > most, most, x)
    whole = m.nearest(x)
    rest = x - whole
    found = polynomial(rest, m.choose(_SINGLE, _DOUBLE)) * rest + 1
    # The sum has the integer in its lowest bits.
    bits = OverOperations(m.hlo, m.type.with_dtype(m.choose(I32, I64)))
    exponent = _same_bits(whole + 1.5 * 2.0**digits, bits)
    by = Emitted(bits, m.hlo.binary("shift_left", exponent.handle, bits.handle(digits)))
    scaled = _same_bits(_same_bits(found, bits) + by, m)
    known = m.where(x == x, scaled, x)
    return m.where(x < 2 - most, 0.0, known)


def _same_bits(x: Number, to: OverOperations) -> Emitted:
    """Reinterpret the bits of a number as another dtype of equal width."""
    return Emitted(to, to.hlo.op("bitcast_convert", (x.handle,), (to.type,))[0])


# log(1 + x) in single precision: the sum's exponent, and a polynomial of the rest.
#
# The sum is rounded; what is lost by that is added to what is left, which is exactly x near 0.  XLA
# computes two polynomials, and both of its results everywhere.


LOG1P_BY_POLYNOMIAL = Form(
    "log1p_by_polynomial",
    "log(1 + x) of large arrays of f32, bf16 and f16, and in loops, by an exponent and one "
    "polynomial instead of XLA's function: 0.55 of the time for a million elements, and an error "
    "of 1.5 instead of 2.5 units in the last place.",
)
LEAST: Final = 1 << 15
"""The least number of elements, outside of loops: the calling thread runs XLA's code of fewer."""
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
"""The bits of sqrt(1/2): a number with these as its lowest exponent is below sqrt(2)."""
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
