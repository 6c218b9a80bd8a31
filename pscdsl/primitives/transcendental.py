"""How functions are emitted whose operation in XLA is not close enough to NumPy's function.

XLA takes no notice of the sign of a zero, so on the branch cuts of a complex function it gives the
value of one side; here the function is computed in one quadrant and mirrored.  Its integer power
reads six bits of the exponent, and its logarithm near 1 ends its series early in f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from pscdsl.primitive import H, Hlo, Types
from pscdsl.primitives.formulas import (
    hyperbolic,
    logarithms,
    powers,
    powers_of_two,
    single_logarithm,
)
from pscdsl.primitives.formulas.doubles import pays
from pscdsl.primitives.scalar_functions import absolute_of, copysign_of
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dtypes import BF16, F32, F64

_LEAST: Final = 2.0**-126
"""The smallest normal number of f32 and bf16."""

Emit: TypeAlias = Callable[[Hlo, Sequence[H], Types, Types], H]


def emit_power(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the power; `scalar_functions.power` says what it is for integers."""
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
    if common.dtype.is_float:
        exponent = hlo.everywhere(y) if hlo.uses(powers.POWERS_BY_PRODUCTS) else None
        if exponent is not None:
            found = powers.by_products(hlo, x, float(exponent), common)
            if found is not None:
                return found
        if powers_of_two.fits(hlo, common) and (base := hlo.everywhere(x)):
            times = powers_of_two.factor(base)
            if times is not None:
                return powers_of_two.power_of_two(hlo, y, times, common)
        single = common.dtype.bits <= 32
        if single and hlo.uses(powers.POWERS_IN_F64) and pays(hlo, common):
            return powers.power(hlo, x, y, common)
    return hlo.binary("power", x, y)


def emit_sqrt(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the square root."""
    (x,) = operands
    if not inputs[0].dtype.is_complex:
        return hlo.unary("sqrt", x)
    _, imag = parts(hlo, x, inputs[0])
    real_root, imag_root = parts(hlo, hlo.unary("sqrt", x), inputs[0])
    return join(hlo, real_root, copysign_of(hlo, imag_root, imag, _part(inputs[0])), inputs[0])


def emit_cbrt(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the cube root."""
    (x,), (given,) = operands, inputs
    found = hlo.unary("cbrt", x)
    if given.dtype in (F32, F64):
        found = _one_step_nearer(hlo, found, x, given)
    if given.dtype not in (F32, BF16):
        return found
    # Of a subnormal number, which arithmetic takes for zero, the C library gives some number.
    zero = copysign_of(hlo, hlo.full(0.0, given), x, given)
    small = hlo.compare("LT", absolute_of(hlo, x, given), hlo.full(_LEAST, given))
    return hlo.select(small, zero, found)


def _one_step_nearer(hlo: Hlo, root: H, x: H, given: ArrayType) -> H:
    """A cube root after a step of Newton's method, but for zeros, infinities and NaN.

    XLA's is a power by 1/3, which is rounded: far from 1 it is 15 units in the last place off.
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
            return hlo.unary(name, x)
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
    if inputs[0].dtype is F64:
        return logarithms.log1p.emit(hlo, operands, inputs, outputs)
    return single_logarithm.emit(hlo, operands, inputs, outputs)


def emit_atanh(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the area tangent."""
    if inputs[0].dtype is F64:
        return logarithms.atanh.emit(hlo, operands, inputs, outputs)
    return odd("chlo.atanh")(hlo, operands, inputs, outputs)


def emit_sinh(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the hyperbolic sine."""
    if inputs[0].dtype.is_complex:
        return hlo.unary("chlo.sinh", operands[0])
    return hyperbolic.sinh.emit(hlo, operands, inputs, outputs)


def emit_cosh(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the hyperbolic cosine."""
    if inputs[0].dtype.is_complex:
        return hlo.unary("chlo.cosh", operands[0])
    return hyperbolic.cosh.emit(hlo, operands, inputs, outputs)


def emit_erf(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the error function."""
    (x,), (given,) = operands, inputs
    found = hlo.unary("chlo.erf", x)
    if not hlo.portable or given.dtype not in (F32, BF16):
        return found
    # Of a tiny number, the quotient of polynomials that this becomes gives zero.
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
    """A function with `f(conj(x)) == conj(f(x))`, computed in the upper half-plane."""
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
    """The real and the imaginary part."""
    part = _part(type)
    return hlo.op("real", (x,), (part,))[0], hlo.op("imag", (x,), (part,))[0]


def join(hlo: Hlo, real: H, imag: H, type: ArrayType) -> H:  # noqa: A002
    """The complex number with these parts."""
    return hlo.op("complex", (real, imag), (type,))[0]
