"""Emission of functions for which XLA's operation is not close enough to NumPy's function.

XLA ignores the sign of a zero, so on the branch cuts of a complex function it gives the value of
one side; here the function is computed in one quadrant and mirrored. Its integer power reads six
bits of the exponent, and its logarithm near 1 ends its series early in f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from pscdsl._src.ir.primitive import H, Hlo, Types
from pscdsl._src.primitives import exponentials
from pscdsl._src.primitives.formulas import absolute_of, copysign_of, zero_kept
from pscdsl._src.primitives.pointwise import TABLE
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import BF16, BOOL, F32, F64

_LEAST: Final = 2.0**-126
"""The smallest normal number of f32 and bf16."""

Emit: TypeAlias = Callable[[Hlo, Sequence[H], Types, Types], H]


def emit_power(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the power; `scalar_functions.power` defines it for integers."""
    x, y = operands
    common = inputs[0].with_shape(outputs[0].shape)
    dtype = common.dtype
    if not dtype.is_integer:
        return _inexact_power(hlo, x, y, common)
    zero, one = hlo.full(0, common), hlo.full(1, common)
    result, square, left = one, x, y
    steps = dtype.bits - dtype.signed  # the bits of an exponent that is not negative
    for step in range(steps):
        odd = hlo.compare("NE", hlo.binary("and", left, one), zero)
        result = hlo.select(odd, hlo.binary("multiply", result, square), result)
        if step + 1 < steps:
            square = hlo.binary("multiply", square, square)
            left = hlo.binary("shift_right_logical", left, one)
    if not dtype.signed:
        return result
    minus = hlo.full(-1, common)
    odd = hlo.compare("NE", hlo.binary("and", y, one), zero)
    inverse = hlo.select(hlo.compare("EQ", x, minus), hlo.select(odd, minus, one), zero)
    inverse = hlo.select(hlo.compare("EQ", x, one), one, inverse)
    return hlo.select(hlo.compare("LT", y, zero), inverse, result)


def _inexact_power(hlo: Hlo, x: H, y: H, common: ArrayType) -> H:
    found = hlo.binary("power", x, y)
    if not common.dtype.is_complex:
        return found
    zero = hlo.full(0.0, common)
    exponent, _ = parts(hlo, y, common)
    positive = hlo.compare("GT", exponent, hlo.full(0.0, _part(common)))
    vanishes = hlo.binary("and", hlo.compare("EQ", x, zero), positive)
    return hlo.select(vanishes, zero, found)


def emit_sqrt(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the square root."""
    (x,) = operands
    if not inputs[0].dtype.is_complex:
        return hlo.unary("sqrt", x)
    part = _part(inputs[0])
    real, imag = parts(hlo, x, inputs[0])
    real_root, imag_root = parts(hlo, hlo.unary("sqrt", x), inputs[0])
    # An infinite part decides, though the other be NaN.
    infinity, least = hlo.full(math.inf, part), hlo.full(-math.inf, part)
    above = hlo.compare("EQ", absolute_of(hlo, imag, part), infinity)
    beside = hlo.binary("or", above, hlo.compare("EQ", real, infinity))
    over = hlo.binary("or", above, hlo.compare("EQ", real, least))
    real_root = hlo.select(beside, infinity, real_root)
    imag_root = copysign_of(hlo, hlo.select(over, infinity, imag_root), imag, part)
    return join(hlo, real_root, imag_root, inputs[0])


def emit_reciprocal(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit 1 by a complex number; parts that are zero have the signs of the conjugate's."""
    (x,), (given,) = operands, inputs
    found, part = hlo.binary("divide", hlo.full(1.0, given), x), _part(given)
    real, imag = parts(hlo, x, given)
    real_result, imag_result = parts(hlo, found, given)
    real_result = copysign_of(hlo, real_result, real, part)
    imag_result = copysign_of(hlo, imag_result, hlo.unary("negate", imag), part)
    return join(hlo, real_result, imag_result, given)


def emit_exp(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the exponential, of infinities as C99 has it."""
    (x,), (given,) = operands, inputs
    found = hlo.unary("exponential", x)
    if not given.dtype.is_complex:
        return found
    part = _part(given)
    real, imag = parts(hlo, x, given)
    real_result, imag_result = parts(hlo, found, given)
    aimless = _without_angle(hlo, imag, given)
    infinite, zero = hlo.full(math.inf, part), hlo.full(0.0, part)
    large = hlo.binary("and", aimless, hlo.compare("EQ", real, infinite))
    none = hlo.binary("and", aimless, hlo.compare("EQ", real, hlo.unary("negate", infinite)))
    real_result = hlo.select(none, zero, hlo.select(large, infinite, real_result))
    imag_result = hlo.select(none, zero, _kept_zero(hlo, imag_result, imag, imag, given))
    return join(hlo, real_result, imag_result, given)


def emit_expm1(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the exponential less 1."""
    (x,), (given,) = operands, inputs
    found = hlo.unary("exponential_minus_one", x)
    if not given.dtype.is_complex:
        return found
    _, imag = parts(hlo, x, given)
    real_result, imag_result = parts(hlo, found, given)
    found = join(hlo, real_result, _kept_zero(hlo, imag_result, imag, imag, given), given)
    return hlo.select(hlo.compare("EQ", x, hlo.full(0.0, given)), x, found)


def emit_log(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the logarithm; an infinite part decides, though the other be NaN."""
    (x,), (given,) = operands, inputs
    found = hlo.unary("log", x)
    if not given.dtype.is_complex:
        return found
    real_result, imag_result = parts(hlo, found, given)
    return join(hlo, _infinite_beside(hlo, real_result, x, given), imag_result, given)


def _infinite_beside(hlo: Hlo, result: H, x: H, given: ArrayType) -> H:
    """Emit a real part, but infinite where either part of x is."""
    part = _part(given)
    infinite = hlo.full(math.inf, part)
    for each in parts(hlo, x, given):
        large = hlo.compare("EQ", absolute_of(hlo, each, part), infinite)
        result = hlo.select(large, infinite, result)
    return result


def along_axes(emit: Emit) -> Emit:
    """Emit a function that maps either axis of the plane to itself: zeros keep their signs."""

    def emitted(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        found, (given,) = emit(hlo, operands, inputs, outputs), inputs
        if not given.dtype.is_complex:
            return found
        real, imag = parts(hlo, operands[0], given)
        real_result, imag_result = parts(hlo, found, given)
        real_result = _kept_zero(hlo, real_result, real, real, given)
        return join(hlo, real_result, _kept_zero(hlo, imag_result, imag, imag, given), given)

    return emitted


def emit_tanh(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the hyperbolic tangent."""
    return hlo.unary("tanh", operands[0])


def emit_cbrt(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the cube root."""
    (x,), (given,) = operands, inputs
    found = hlo.unary("cbrt", x)
    if given.dtype in (F32, F64):
        found = _one_step_nearer(hlo, found, x, given)
    if given.dtype not in (F32, BF16):
        return found
    # For a subnormal number, which arithmetic takes for zero, the C library gives some number.
    zero = copysign_of(hlo, hlo.full(0.0, given), x, given)
    small = hlo.compare("LT", absolute_of(hlo, x, given), hlo.full(_LEAST, given))
    return hlo.select(small, zero, found)


def _one_step_nearer(hlo: Hlo, root: H, x: H, given: ArrayType) -> H:
    """Improve a cube root by a step of Newton's method, except for zeros, infinities and NaN.

    XLA computes a power by a rounded 1/3: far from 1 it is 15 units in the last place off.
    """
    quotient = hlo.binary("divide", x, hlo.binary("multiply", root, root))
    excess = hlo.binary("subtract", root, quotient)
    step = hlo.binary("divide", excess, hlo.full(3.0, given))
    nearer = hlo.binary("subtract", root, step)
    return hlo.select(hlo.compare("EQ", step, step), nearer, root)


def odd(name: str) -> Emit:
    """Emit a function with `f(-x) == -f(x)` that maps the first quadrant to itself."""

    def emit(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        (x,), (given,) = operands, inputs
        if not given.dtype.is_complex:
            return zero_kept(hlo, hlo.unary(name, x), x, given)
        part = _part(given)
        real, imag = parts(hlo, x, given)
        first = join(hlo, absolute_of(hlo, real, part), absolute_of(hlo, imag, part), given)
        real_result, imag_result = parts(hlo, hlo.unary(name, first), given)
        return join(
            hlo,
            copysign_of(hlo, real_result, real, part),
            copysign_of(hlo, imag_result, imag, part),
            given,
        )

    return emit


def emit_log1p(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the logarithm of 1 and a number."""
    (given,) = inputs
    if given.dtype is F64:
        return exponentials.log1p.emit(hlo, operands, inputs, outputs)
    if given.dtype.is_complex:
        real, imag = parts(hlo, hlo.unary("log_plus_one", operands[0]), given)
        near, size = _size_beyond(hlo, operands[0], 1.0, given)
        real = hlo.select(near, hlo.unary("log", size), real)
        return join(hlo, _infinite_beside(hlo, real, operands[0], given), imag, given)
    return hlo.unary("log_plus_one", operands[0])


def emit_atanh(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the area tangent."""
    if inputs[0].dtype is F64:
        return exponentials.atanh.emit(hlo, operands, inputs, outputs)
    found = odd("chlo.atanh")(hlo, operands, inputs, outputs)
    (given,) = inputs
    if not given.dtype.is_complex:
        return found
    _, imag = parts(hlo, operands[0], given)
    real_result, imag_result = parts(hlo, _at_poles(hlo, operands[0], found, given), given)
    return join(hlo, real_result, _kept_nan(hlo, imag_result, imag), given)


def emit_atan(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the arc tangent, which is `-i * atanh(i * x)`."""
    found = odd("chlo.atan")(hlo, operands, inputs, outputs)
    (given,) = inputs
    if not given.dtype.is_complex:
        return found
    real, imag = parts(hlo, operands[0], given)
    real_result, imag_result = parts(hlo, found, given)
    turned = join(hlo, hlo.unary("negate", imag), real, given)
    wanted = join(hlo, hlo.unary("negate", imag_result), real_result, given)
    real_result, imag_result = parts(hlo, _at_poles(hlo, turned, wanted, given), given)
    return join(hlo, _kept_nan(hlo, imag_result, real), hlo.unary("negate", real_result), given)


def _kept_nan(hlo: Hlo, result: H, given: H) -> H:
    """Return a result, but NaN where the angle is NaN."""
    return hlo.select(hlo.compare("EQ", given, given), result, given)


def _at_poles(hlo: Hlo, x: H, found: H, given: ArrayType) -> H:
    """Correct an area tangent near -1 and 1, by distances whose squares may underflow."""
    part = _part(given)
    real, imag = parts(hlo, found, given)
    for place, sign in ((1.0, 0.5), (-1.0, -0.5)):
        near, size = _size_beyond(hlo, x, place, given)
        _, other = _size_beyond(hlo, x, -place, given)
        ratio = hlo.binary("subtract", hlo.unary("log", size), hlo.unary("log", other))
        real = hlo.select(near, hlo.binary("multiply", ratio, hlo.full(sign, part)), real)
    return join(hlo, real, imag, given)


def _size_beyond(hlo: Hlo, x: H, place: float, given: ArrayType) -> tuple[H, H]:
    """Emit the size of the sum of a complex number and a real one, and whether it is small."""
    part = _part(given)
    real, imag = parts(hlo, x, given)
    moved = join(hlo, hlo.binary("add", real, hlo.full(place, part)), imag, given)
    (size,) = hlo.op("abs", (moved,), (part,))
    return hlo.compare("LT", size, hlo.full(0.25, part)), size


def emit_sinh(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the hyperbolic sine."""
    if inputs[0].dtype.is_complex:
        return join(
            hlo, *_sinh_parts(hlo, *parts(hlo, operands[0], inputs[0]), inputs[0]), inputs[0]
        )
    return exponentials.sinh.emit(hlo, operands, inputs, outputs)


def emit_cosh(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the hyperbolic cosine."""
    if inputs[0].dtype.is_complex:
        return join(
            hlo, *_cosh_parts(hlo, *parts(hlo, operands[0], inputs[0]), inputs[0]), inputs[0]
        )
    return exponentials.cosh.emit(hlo, operands, inputs, outputs)


def emit_tangent(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the tangent."""
    return hlo.unary("tan", operands[0])


def emit_sine(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the sine: of a complex number it is `-i * sinh(i * x)`."""
    (given,) = inputs
    if not given.dtype.is_complex:
        return hlo.unary("sine", operands[0])
    real, imag = parts(hlo, operands[0], given)
    imag_result, real_result = _sinh_parts(hlo, imag, real, given)
    return join(hlo, real_result, imag_result, given)


def emit_cosine(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the cosine: of a complex number it is `cosh(i * x)`."""
    (given,) = inputs
    if not given.dtype.is_complex:
        return hlo.unary("cosine", operands[0])
    real, imag = parts(hlo, operands[0], given)
    real_result, imag_result = _cosh_parts(hlo, hlo.unary("negate", imag), real, given)
    return join(hlo, real_result, imag_result, given)


def _sinh_parts(hlo: Hlo, real: H, imag: H, given: ArrayType) -> tuple[H, H]:
    """Return `sinh(x) cos(y)` and `cosh(x) sin(y)`, each accurate next to the other."""
    sinh, cosh, sine, cosine = _waves(hlo, real, imag, given)
    first = _infinite(hlo, hlo.binary("multiply", sinh, cosine), real, imag, given)
    second = _kept_zero(hlo, hlo.binary("multiply", cosh, sine), imag, imag, given)
    return _zero_beside_infinity(hlo, first, real, imag, given), second


def _cosh_parts(hlo: Hlo, real: H, imag: H, given: ArrayType) -> tuple[H, H]:
    """`cosh(x) cos(y)` and `sinh(x) sin(y)`."""
    sinh, cosh, sine, cosine = _waves(hlo, real, imag, given)
    first = _infinite(hlo, hlo.binary("multiply", cosh, cosine), real, imag, given)
    second = _zero_beside_infinity(hlo, hlo.binary("multiply", sinh, sine), real, imag, given)
    zero = hlo.binary(
        "multiply", copysign_of(hlo, hlo.full(1.0, _part(given)), real, _part(given)), imag
    )
    return first, _kept_zero(hlo, second, imag, zero, given)


def _waves(hlo: Hlo, real: H, imag: H, given: ArrayType) -> tuple[H, H, H, H]:
    """Emit the hyperbolic functions of one number, and the circular ones of another."""
    part = (_part(given),)
    return (
        exponentials.sinh.emit(hlo, (real,), part, part),
        exponentials.cosh.emit(hlo, (real,), part, part),
        *hlo.lower(TABLE["sin"], (imag,), part, part),
        *hlo.lower(TABLE["cos"], (imag,), part, part),
    )


def _kept_zero(hlo: Hlo, product: H, factor: H, zero: H, given: ArrayType) -> H:
    """Return a product, but zero where a factor is zero, even if the other is infinite."""
    return hlo.select(hlo.compare("EQ", factor, hlo.full(0.0, _part(given))), zero, product)


def _infinite(hlo: Hlo, product: H, real: H, imag: H, given: ArrayType) -> H:
    """Emit a real part, but infinite where x is, though y has no direction."""
    part = _part(given)
    infinity = hlo.full(math.inf, part)
    infinite = hlo.compare("EQ", absolute_of(hlo, real, part), infinity)
    return hlo.select(
        hlo.binary("and", infinite, _without_angle(hlo, imag, given)), infinity, product
    )


def _zero_beside_infinity(hlo: Hlo, product: H, real: H, imag: H, given: ArrayType) -> H:
    """Emit a multiple of `sinh(x)`, but zero where x is, though y has no direction."""
    zero = hlo.compare("EQ", real, hlo.full(0.0, _part(given)))
    return hlo.select(hlo.binary("and", zero, _without_angle(hlo, imag, given)), real, product)


def _without_angle(hlo: Hlo, imag: H, given: ArrayType) -> H:
    """Return whether y is infinite or NaN."""
    return hlo.unary("not", hlo.op("is_finite", (imag,), (given.with_dtype(BOOL),))[0])


def emit_erf(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the error function."""
    (x,), (given,) = operands, inputs
    found = hlo.unary("chlo.erf", x)
    if given.dtype not in (F32, BF16):
        return found
    # For a tiny number, the quotient of polynomials that this becomes gives zero.
    tiny = hlo.compare("LT", absolute_of(hlo, x, given), hlo.full(1e-20, given))
    return hlo.select(
        tiny, hlo.binary("multiply", x, hlo.full(2 / math.sqrt(math.pi), given)), found
    )


def emit_acos(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the arc cosine."""
    return _upper(hlo, "chlo.acos", operands[0], inputs[0], lambda imag: hlo.unary("negate", imag))


def emit_acosh(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the area cosine."""
    return _upper(hlo, "chlo.acosh", operands[0], inputs[0], lambda imag: imag)


def _upper(hlo: Hlo, name: str, x: H, given: ArrayType, sign: Callable[[H], H]) -> H:
    """Emit a function with `f(conj(x)) == conj(f(x))`, computed in the upper half-plane."""
    if not given.dtype.is_complex:
        return hlo.unary(name, x)
    part = _part(given)
    real, imag = parts(hlo, x, given)
    result = hlo.unary(name, join(hlo, real, absolute_of(hlo, imag, part), given))
    real_result, imag_result = parts(hlo, result, given)
    return join(hlo, real_result, copysign_of(hlo, imag_result, sign(imag), part), given)


def _part(type: ArrayType) -> ArrayType:  # noqa: A002
    return type.with_dtype(type.dtype.real)


def parts(hlo: Hlo, x: H, type: ArrayType) -> tuple[H, H]:  # noqa: A002
    """Emit the real and the imaginary part."""
    part = _part(type)
    return hlo.op("real", (x,), (part,))[0], hlo.op("imag", (x,), (part,))[0]


def join(hlo: Hlo, real: H, imag: H, type: ArrayType) -> H:  # noqa: A002
    """Emit the complex number with these parts."""
    return hlo.op("complex", (real, imag), (type,))[0]
