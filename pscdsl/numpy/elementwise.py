"""Elementwise functions that are one primitive each, as tables of names.

A function like `exp` computes integers and bools in the floating-point dtype that `inexact` names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import inf, nan
from typing import Any

import numpy as np

from pscdsl._src.ir.broadcasting import broadcast_shapes, broadcast_to
from pscdsl._src.ir.builder import Value, Weak
from pscdsl._src.ir.program import Literal, Scalar
from pscdsl._src.language.meanings import Meaning, describe, function
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import special
from pscdsl.numpy.calling import of_arrays, of_numbers
from pscdsl.numpy.shorthand import cast, filled, where
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.codes.language import BadArguments, NotStatic
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import BOOL, F64, I64, KEY, U64, Kind, inexact


def to_inexact(x: Value) -> Value:
    """The same numbers, integers and bools in floating point."""
    return cast(x, inexact(x.dtype))


def with_i64(x: Value) -> Value:
    """The same numbers as NumPy computes them beside i64; floating point stays what it is."""
    if not x.dtype.is_integer:
        return x
    return cast(x, F64 if x.dtype is U64 else I64)


def literal(x: Value) -> Scalar | None:
    """The number that a value is, where that is known while checking."""
    return x.atom.value if isinstance(x.atom, Literal) else None


def require(name: str, x: Value, accepts: str) -> None:
    """Refuse a dtype that a function is not defined on, under the function's own name."""
    if not e.ACCEPTS[accepts](x.dtype):
        raise Failure(DtypeNotAccepted(function=name, given=x.type, accepts=accepts))


def _require_numbers(name: str, x: Value, accepts: str) -> None:
    """Refuse random keys, which cannot be prepared."""
    if x.dtype is KEY:
        raise Failure(DtypeNotAccepted(function=name, given=x.type, accepts=accepts))


def together(*values: Value) -> tuple[Value, ...]:
    """Values of one shape by broadcasting; those of rank 0 stay, they fit everywhere."""
    first = values[0].shape
    if all(x.shape == first for x in values):
        return values
    shape = broadcast_shapes(values[0].builder.facts, *(x.shape for x in values))
    return tuple([broadcast_to(x, shape) if x.shape else x for x in values])


def _qualified(names: str) -> Sequence[str]:
    return [f"numpy.{name}" for name in names.split()]


def _unary(
    names: str,
    summary: str,
    primitive: Callable[[Value], Any],
    accepts: str,
    prepare: Callable[[Value], Value] = lambda x: x,
) -> Meaning:
    qualified = _qualified(names)

    def body(x: Value, /) -> Any:
        _require_numbers(qualified[0], x, accepts)
        x = prepare(x)
        require(qualified[0], x, accepts)
        return primitive(x)

    body.__doc__ = summary
    return of_arrays(*qualified, together=("x",))(body)


def _binary(
    names: str,
    summary: str,
    primitive: Callable[[Value, Value], Any],
    accepts: str,
    prepare: Callable[[Value], Value] = lambda x: x,
) -> Meaning:
    qualified = _qualified(names)

    def body(x1: Value, x2: Value, /) -> Any:
        _require_numbers(qualified[0], x1, accepts)
        x1, x2 = prepare(x1), prepare(x2)
        require(qualified[0], x1, accepts)
        return primitive(x1, x2)

    body.__doc__ = summary
    return of_arrays(*qualified, together=("x1", "x2"), weak=("x1", "x2"))(body)


def _unchanged_integers(primitive: e.Elementwise) -> Callable[[Value], Any]:
    return lambda x: primitive(x) if x.dtype.is_float else x


def _for_bools(
    for_bools: e.Elementwise, for_numbers: e.Elementwise
) -> Callable[[Value, Value], Any]:
    return lambda x1, x2: (for_bools if x1.dtype is BOOL else for_numbers)(x1, x2)


def _sign_bit(x: Value) -> Any:
    one = x.builder.literal(1, x.dtype)
    return e.less(e.copysign(one, x) if x.dtype.is_float else x, 0)


def _signs(x: Value) -> Any:
    """The signs, of zeros a positive 0; of a complex number with one infinite part that of it."""
    found = e.sign(x)
    if x.dtype.is_integer:
        return found
    zero = x.builder.literal(0, x.dtype)
    if x.dtype.is_float:
        return where(e.equal(x, 0), zero, found)
    parts = e.real(x), e.imag(x)
    infinite = [e.equal(e.absolute(part), inf) for part in parts]
    one = [where(at, e.sign(x), filled(x, 0, ())) for at, x in zip(infinite, parts, strict=True)]
    found = where(e.bitwise_or(*infinite), e.make_complex(*one), found)
    found = where(e.bitwise_and(*infinite), x.builder.literal(complex(nan, nan), x.dtype), found)
    return where(e.equal(x, 0), zero, found)


def _nearest(x: Value) -> Any:
    if not x.dtype.is_complex:
        return e.round_even(x)
    return e.make_complex(e.round_even(e.real(x)), e.round_even(e.imag(x)))


REAL = "bool, integer or float"

# Exponentials, powers, trigonometric and hyperbolic functions: in floating point.
for _names, _summary, _primitive in (
    ("exp", "e to the power of each element.", e.exp),
    ("expm1", "`exp(x) - 1`, accurate near 0.", e.expm1),
    ("log", "The natural logarithm.", e.log),
    ("log1p", "`log(1 + x)`, accurate near 0.", e.log1p),
    ("sqrt", "The square root.", e.sqrt),
    ("sin", "The sine.", e.sin),
    ("cos", "The cosine.", e.cos),
    ("tan", "The tangent.", e.tan),
    ("arcsin asin", "The inverse of the sine.", e.asin),
    ("arccos acos", "The inverse of the cosine.", e.acos),
    ("arctan atan", "The inverse of the tangent.", e.atan),
    ("sinh", "The hyperbolic sine.", e.sinh),
    ("cosh", "The hyperbolic cosine.", e.cosh),
    ("tanh", "The hyperbolic tangent.", e.tanh),
    ("arcsinh asinh", "The inverse of the hyperbolic sine.", e.asinh),
    ("arccosh acosh", "The inverse of the hyperbolic cosine.", e.acosh),
    ("arctanh atanh", "The inverse of the hyperbolic tangent.", e.atanh),
):
    _unary(_names, _summary, _primitive, "inexact", to_inexact)
_unary("i0", "The modified Bessel function of order 0.", special.i0, "floating", to_inexact)
_unary("cbrt", "The real cube root.", e.cbrt, "floating", to_inexact)
_binary("arctan2 atan2", "The angle of the point (x2, x1).", e.atan2, "floating", to_inexact)
_binary("copysign", "`x1` with the sign of `x2`.", e.copysign, "floating", to_inexact)
_binary("nextafter", "The number after `x1` towards `x2`.", e.nextafter, "floating", to_inexact)

# Arithmetic.  Sums and products of bools are NumPy's: or, and.
add = _binary("add", "The sum; of bools, or.", _for_bools(e.bitwise_or, e.add), "any")
subtract = _binary("subtract", "The difference.", e.subtract, "numeric")
multiply = _binary(
    "multiply", "The product; of bools, and.", _for_bools(e.bitwise_and, e.multiply), "any"
)
divide = _binary(
    "divide true_divide", "The quotient, in floating point.", e.divide, "inexact", to_inexact
)
floor_divide = _binary(
    "floor_divide", "The quotient rounded down; 0 for an integer over 0.", e.floor_divide, "real"
)
remainder = _binary(
    "remainder mod", "What `floor_divide` leaves; the sign is that of `x2`.", e.remainder, "real"
)
_binary("fmod", "What division towards zero leaves; the sign is that of `x1`.", e.fmod, "real")
negative = _unary("negative", "`-x`.", e.negative, "numeric")
positive = _unary("positive", "`x`.", lambda x: x, "numeric")
absolute = _unary(
    "absolute abs", "The absolute value, for complex numbers a real one.", e.absolute, "numeric"
)
_unary("fabs", "The absolute value, in floating point.", e.absolute, "floating", to_inexact)
_unary("sign", "-1, 0 or 1; for complex numbers `x / abs(x)`.", _signs, "numeric")
_unary("square", "`x * x`.", lambda x: e.multiply(x, x), "numeric")
_unary("signbit", "Whether the sign bit is set: true for -0.0.", _sign_bit, "real")

# Rounding to integers: integers and bools are left alone.
_unary("floor", "The largest integer below or at `x`.", _unchanged_integers(e.floor), REAL)
_unary("ceil", "The smallest integer above or at `x`.", _unchanged_integers(e.ceil), REAL)
_unary("trunc fix", "The integer part.", _unchanged_integers(e.truncate), REAL)
_unary(
    "rint",
    "The nearest integer, half to even; in floating point.",
    _nearest,
    "inexact",
    to_inexact,
)

# Bits.
bitwise_and = _binary("bitwise_and", "The bits set in both.", e.bitwise_and, "integer or bool")
bitwise_or = _binary("bitwise_or", "The bits set in either.", e.bitwise_or, "integer or bool")
bitwise_xor = _binary(
    "bitwise_xor", "The bits set in one of them.", e.bitwise_xor, "integer or bool"
)
invert = _unary(
    "invert bitwise_not bitwise_invert", "The bits that are not set.", e.invert, "integer or bool"
)
left_shift = _binary(
    "left_shift bitwise_left_shift", "The bits of `x1` moved up by `x2`.", e.left_shift, "integer"
)
right_shift = _binary(
    "right_shift bitwise_right_shift",
    "The bits of `x1` moved down by `x2`.",
    e.right_shift,
    "integer",
)

# Comparison.
equal = _binary("equal", "`x1 == x2`.", e.equal, "any")
not_equal = _binary("not_equal", "`x1 != x2`.", e.not_equal, "any")
less = _binary("less", "`x1 < x2`.", e.less, REAL)
less_equal = _binary("less_equal", "`x1 <= x2`.", e.less_equal, REAL)
greater = _binary("greater", "`x1 > x2`.", e.greater, REAL)
greater_equal = _binary("greater_equal", "`x1 >= x2`.", e.greater_equal, REAL)
_binary("maximum", "The larger; NaN if one of them is.", e.maximum, REAL)
_binary("minimum", "The smaller; NaN if one of them is.", e.minimum, REAL)


# Rounding to a number of decimals.


@of_arrays("numpy.round", "numpy.around", together=("a",))
def round_(a: Value, decimals: Any = 0) -> Value:
    """To a number of decimals, half to even; negative decimals round to tens, hundreds, …."""
    if not isinstance(decimals, int):
        problem = f"takes a static number of decimals, not {describe(decimals)}"
        raise Failure(BadArguments(function="numpy.round", problem=problem))
    if a.dtype.is_complex:
        parts = round_(e.real(a), decimals), round_(e.imag(a), decimals)
        return cast(e.make_complex(*parts), a.dtype)
    if a.dtype.is_float:
        return _rounded_float(a, decimals)
    require("numpy.round", a, "real")
    return a if decimals >= 0 else _rounded_integer(a, 10**-decimals)


def _rounded_float(a: Value, decimals: int) -> Value:
    if decimals == 0:
        result: Value = e.round_even(a)
        return result
    scale = 10.0 ** min(abs(decimals), 300)
    up, down = (e.multiply, e.divide) if decimals > 0 else (e.divide, e.multiply)
    rounded: Value = down(e.round_even(up(a, scale)), scale)
    return rounded


def _rounded_integer(a: Value, unit: int) -> Value:
    if unit > a.dtype.range[1]:
        return filled(a, 0)
    quotient, rest = e.floor_divide(a, unit), e.remainder(a, unit)
    above, tie = e.greater(rest, unit // 2), e.equal(rest, unit // 2)
    up = e.bitwise_or(above, e.bitwise_and(tie, e.equal(e.bitwise_and(quotient, 1), 1)))
    nearest: Value = e.multiply(where(up, quotient + 1, quotient), unit)
    return nearest


# Parts of complex numbers, defined on real arrays too.


@of_arrays("numpy.real", together=("val",))
def real(val: Value) -> Value:
    """The real part; a real array is its own."""
    return e.real(val) if val.dtype.is_complex else val


@of_arrays("numpy.imag", together=("val",))
def imag(val: Value) -> Value:
    """The imaginary part; of a real array, zeros."""
    return e.imag(val) if val.dtype.is_complex else filled(val, False)


@of_arrays("numpy.conjugate", "numpy.conj", together=("x",))
def conjugate(x: Value, /) -> Value:
    """The complex conjugate; a real array is its own."""
    require("numpy.conjugate", x, "numeric")
    return e.conjugate(x) if x.dtype.is_complex else x


@of_numbers("pscdsl.complex", together=("x", "y"))
def make_complex(x: Value, y: Value) -> Value:
    """The complex numbers with these real and imaginary parts."""
    for each in (x, y):
        require("pscdsl.complex", each, REAL)
    return e.make_complex(to_inexact(x), to_inexact(y))  # type: ignore[no-any-return]


@of_numbers("numpy.angle", together=("z",))
def angle(z: Value, deg: bool = False) -> Value:
    """The angle of each number in the complex plane; pi for a negative real number."""
    z = to_inexact(z)
    if z.dtype.is_complex:
        result: Value = e.atan2(e.imag(z), e.real(z))
    else:
        result = e.atan2(filled(z, 0.0), z)
    return e.multiply(result, 180 / math.pi) if deg else result


@function("numpy.iscomplexobj")
def iscomplexobj(x: object) -> bool:
    """Whether the dtype is complex; known while checking."""
    if isinstance(x, Value):
        return x.dtype.is_complex
    if isinstance(x, Weak):
        return x.kind is Kind.COMPLEX
    if not issubclass(x.__class__, (int, float, complex, np.ndarray, np.generic, Dim)):
        raise Failure(NotStatic(what="the dtype of what `np.iscomplexobj` is given"))
    known: Any = x
    return not isinstance(x, Dim) and np.iscomplexobj(known)


@function("numpy.isrealobj")
def isrealobj(x: object) -> bool:
    """Whether the dtype is not complex; known while checking."""
    return not iscomplexobj(x)
