"""Elementwise functions: tables of those that are one primitive each, and those made of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from math import inf, nan
from typing import Any, TypeAlias

import numpy as np

from pscdsl._src.ir.broadcasting import broadcast_shapes, broadcast_to
from pscdsl._src.ir.builder import Value, Weak
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Literal, Scalar
from pscdsl._src.language.meanings import Meaning, describe, function
from pscdsl._src.language.results import Result, has_axes, new_if
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import special
from pscdsl._src.primitives.custom_derivatives import Values, with_own_tangents
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.while_loop import While
from pscdsl.numpy.calling import of_arrays, of_numbers
from pscdsl.numpy.shorthand import cast, filled, floats_of, where
from pscdsl.typing.codes.element_types import DtypeNotAccepted, NegativePowerOfInteger
from pscdsl.typing.codes.language import BadArguments, NotStatic
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import BOOL, F16, F64, I8, I16, I32, I64, KEY, U8, U16, U32, U64, Kind
from pscdsl.typing.python_containers import is_sequence

# Elementwise functions that are one primitive each, as tables of names.
#
# A function like `exp` computes integers and bools in the floating-point dtype that `inexact`
# names.


def to_inexact(x: Value) -> Value:
    """The same numbers, integers and bools in floating point; keys stay, to be refused by name."""
    return floats_of(x)


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
    result: Result | None = None,
) -> Meaning:
    qualified = _qualified(names)

    def body(x: Value, /) -> Any:
        _require_numbers(qualified[0], x, accepts)
        x = prepare(x)
        require(qualified[0], x, accepts)
        return primitive(x)

    body.__doc__ = summary
    return of_arrays(*qualified, together=("x",), result=result)(body)


def _binary(
    names: str,
    summary: str,
    primitive: Callable[[Value, Value], Any],
    accepts: str,
    prepare: Callable[[Value], Value] = lambda x: x,
    *,
    widens: bool = True,
) -> Meaning:
    qualified = _qualified(names)

    def body(x1: Value, x2: Value, /) -> Any:
        _require_numbers(qualified[0], x1, accepts)
        x1, x2 = prepare(x1), prepare(x2)
        require(qualified[0], x1, accepts)
        return primitive(x1, x2)

    body.__doc__ = summary
    return of_arrays(*qualified, together=("x1", "x2"), weak=("x1", "x2"), widens=widens)(body)


def _unchanged_integers(primitive: e.Elementwise) -> Callable[[Value], Any]:
    return lambda x: primitive(x) if x.dtype.is_float else x


def _for_bools(
    for_bools: e.Elementwise, for_numbers: e.Elementwise
) -> Callable[[Value, Value], Any]:
    return lambda x1, x2: (for_bools if x1.dtype is BOOL else for_numbers)(x1, x2)


def _sign_bit(x: Value) -> Any:
    one = x.builder.literal(1, x.dtype)
    return (e.copysign(one, x) if x.dtype.is_float else x) < 0


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


def _spacing(x: Value) -> Any:
    """The distance to the next number away from zero, with the sign of the number.

    Of `f16` it is NumPy's other meaning: the distance to the next number towards infinity.
    """
    size = e.absolute(x)
    if x.dtype == F16:
        above = e.nextafter(x, filled(x, inf))
        infinite = e.equal(size, filled(size, inf))
        step = where(infinite, x, above) - x  # NaN where it is infinite
        return where(e.equal(x, 0), above, step)
    above = e.nextafter(size, filled(size, inf))
    # A difference would be zero where subnormal numbers are.
    return e.copysign(where(e.equal(x, 0), above, above - size), x)


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
_unary(
    "i0",
    "The modified Bessel function of order 0.",
    special.i0,
    "floating",
    to_inexact,
    result=Result.ARRAY,
)
_unary("cbrt", "The real cube root.", e.cbrt, "floating", to_inexact)
_binary("arctan2 atan2", "The angle of the point (x2, x1).", e.atan2, "floating", to_inexact)
_binary("copysign", "`x1` with the sign of `x2`.", e.copysign, "floating", to_inexact)
_binary(
    "nextafter",
    "The number after `x1` towards `x2`.",
    e.nextafter,
    "floating",
    to_inexact,
    widens=False,
)
_unary("spacing", "The distance to the next number.", _spacing, "floating", to_inexact)

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
_unary("square", "`x * x`.", lambda x: _square(x), "numeric")
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


def _is_rounded(given: Mapping[str, Any]) -> bool:
    """Return whether the result is new: older versions of NumPy give integers back."""
    a = given.get("a")
    dtype = getattr(a, "dtype", None)
    return is_sequence(a) or not has_axes(a) or bool(getattr(dtype, "is_inexact", False))


@of_arrays("numpy.round", "numpy.around", together=("a",), result=new_if(_is_rounded))
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
        return e.round_even(a)
    scale = 10.0 ** min(abs(decimals), 300)
    up, down = (e.multiply, e.divide) if decimals > 0 else (e.divide, e.multiply)
    return down(e.round_even(up(a, scale)), scale)


def _rounded_integer(a: Value, unit: int) -> Value:
    if unit > a.dtype.range[1]:
        return filled(a, 0)
    quotient, rest = e.floor_divide(a, unit), e.remainder(a, unit)
    above, tie = e.greater(rest, unit // 2), e.equal(rest, unit // 2)
    up = above | tie & e.equal(quotient & 1, 1)
    return where(up, quotient + 1, quotient) * unit


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
    return e.make_complex(to_inexact(x), to_inexact(y))


@of_numbers("numpy.angle", together=("z",))
def angle(z: Value, deg: bool = False) -> Value:
    """The angle of each number in the complex plane; pi for a negative real number."""
    z = to_inexact(z)
    if z.dtype.is_complex:
        result: Value = e.atan2(e.imag(z), e.real(z))
    else:
        result = e.atan2(filled(z, 0.0), z)
    return result * (180 / math.pi) if deg else result


@function("numpy.iscomplexobj")
def iscomplexobj(x: object) -> bool:
    """Return whether the dtype is complex; known while checking."""
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
    """Return whether the dtype is not complex; known while checking."""
    return not iscomplexobj(x)


# Elementwise arithmetic made of several primitives: powers, logarithms of sums, divisors.


# The logarithm of a sum of two exponentials, with derivatives that share what it computes.
#
# With `m = exp(-abs(x1 - x2))` the value is `max(x1, x2) + log1p(m)`, and the larger term has the
# share `1 / (1 + m)` of the sum, the smaller one the share `m / (1 + m)`. The derivatives are the
# shares p and q, theirs are p*q and -p*q, all of them right to a few units in the last place
# however far apart the terms are.


Number: TypeAlias = int | float


def log_of_sum(x1: Value, x2: Value) -> Value:
    """`log(exp(x1) + exp(x2))` of floating-point arrays of one shape, or of rank 0."""
    for term, other in ((x1, x2), (x2, x1)):
        if literal(other) == -math.inf:
            return term
    terms = _Terms(_finite(literal(x1)), _finite(literal(x2)))
    return terms.logarithm(*terms.operands(x1, x2))


class _Terms:
    """Two terms, of which those that are numbers are known, and no operands of what is computed."""

    def __init__(self, *numbers: Number | None) -> None:
        if all(number is not None for number in numbers):
            numbers = (None,) * len(numbers)
        self.numbers = numbers
        self.logarithm = partial(with_own_tangents, "logaddexp", self._value, self._rule)

    def operands(self, *terms: Value) -> list[Value]:
        """The terms that are not known constants."""
        return [x for x, number in zip(terms, self.numbers, strict=True) if number is None]

    def _both(self, given: Values) -> list[Value]:
        left = iter(given)
        here, dtype = given[0].builder.program.current, given[0].dtype
        return [
            next(left) if number is None else here.literal(number, dtype) for number in self.numbers
        ]

    def _value(self, *given: Value) -> Value:
        x1, x2 = self._both(given)
        # Not `maximum`, which XLA takes apart from the rest where the results are added up.
        larger = where(e.greater_equal(x1, x2), x1, x2)
        return larger + e.log1p(self._smaller(x1, x2))

    def _smaller(self, x1: Value, x2: Value) -> Value:
        """The smaller term as a part of the larger one; 0 beside an infinity, and of two."""
        gap = -e.absolute(x2 if literal(x1) == 0 else x1 if literal(x2) == 0 else x1 - x2)
        alike = self._alike(x1, x2)
        if alike is not None:
            gap = where(alike, x1.builder.program.current.literal(-math.inf, gap.dtype), gap)
        return e.exp(gap)

    def _alike(self, x1: Value, x2: Value) -> Value | None:
        """Return whether both terms are the same infinity; None where one is a number."""
        if any(number is not None for number in self.numbers):
            return None
        return e.equal(x1, x2) & e.equal(e.absolute(x1), math.inf)

    def _share(self, place: int, *given: Value) -> Value:
        """The part that one term is of the sum; of two that are infinite each is a half."""

        def value(*given: Value) -> Value:
            x1, x2 = self._both(given)
            smaller = self._smaller(x1, x2)
            one = x1.builder.program.current.literal(1, smaller.dtype)
            terms = (one, smaller) if place == 0 else (smaller, one)
            term = where(e.greater_equal(x1, x2), *terms)
            half = x1.builder.program.current.literal(0.5, smaller.dtype)
            share: Value = term * (one / (smaller + 1))
            alike = self._alike(x1, x2)
            return share if alike is None else where(alike, half, share)

        def rule(given: Values, tangents: Values) -> tuple[Value, Value]:
            share = self._share(place, *given)
            slope = share * self._share(1 - place, *given)
            slopes = (slope, -slope) if place == 0 else (-slope, slope)
            return share, self._tangent(tangents, slopes)

        return with_own_tangents("logaddexp", value, rule, *given)

    def _rule(self, given: Values, tangents: Values) -> tuple[Value, Value]:
        shares = self._share(0, *given), self._share(1, *given)
        return self.logarithm(*given), self._tangent(tangents, shares)

    def _tangent(self, tangents: Values, slopes: Values) -> Value:
        """The sum of the tangents of what is not known, each times its slope."""
        parts: list[Value] = [t * x for t, x in zip(tangents, self.operands(*slopes), strict=True)]
        return parts[0] + parts[1] if len(parts) == 2 else parts[0]


def _finite(number: Scalar | None) -> Number | None:
    """A real number that is finite."""
    real = isinstance(number, int | float) and math.isfinite(number)
    return number if real else None  # type: ignore[return-value]


SINC_TERMS = 9
"""Of the series of `sin(x) / x` up to 1: what is left is below 2**-56."""
LARGEST_MULTIPLIED = 8
"""Up to this exponent a power of an inexact array is a product: exact, fast, and differentiable."""


@of_arrays("numpy.power", "numpy.pow", together=("x1", "x2"), weak=("x1", "x2"), widens=True)
def power(x1: Value, x2: Value, /) -> Value:
    """`x1 ** x2`; an integer is not raised to a negative power that is known while checking."""
    require("numpy.power", x1, "numeric")
    exponent = literal(x2)
    known = None if exponent is None else _known_power(x1, exponent)
    if known is not None:
        return known
    return e.power(x1, x2)


@of_arrays("numpy.float_power", together=("x1", "x2"), weak=("x1", "x2"))
def float_power(x1: Value, x2: Value, /) -> Value:
    """`x1 ** x2` in floating point."""
    result: Value = power(to_inexact(x1), to_inexact(x2))
    return result


def _known_power(x: Value, exponent: Scalar) -> Value | None:
    if isinstance(exponent, complex):
        if exponent.imag:
            return None
        exponent = exponent.real
    if math.isnan(exponent):
        return None
    if x.dtype.is_integer:
        if exponent < 0:
            raise Failure(NegativePowerOfInteger(base=x.type, exponent=int(exponent)))
        return _product(x, int(exponent))
    if abs(exponent) == 0.5:
        return (e.sqrt if exponent > 0 else e.rsqrt)(x)
    if abs(exponent) > LARGEST_MULTIPLIED or exponent != int(exponent):
        return None
    if exponent >= 0:
        return _product(x, int(exponent))
    inverse: Value
    if exponent == -1:
        inverse = 1 / x
    elif x.dtype.is_complex:  # divided twice: a power may leave the range that its inverse is in
        first = -int(exponent) // 2
        inverse = 1 / _product(x, -int(exponent) - first)
        inverse = inverse / _product(x, first)
    else:
        inverse = e.power(x, int(exponent))
    return inverse


def _product(x: Value, count: int) -> Value:
    """A value multiplied with itself, in few steps."""
    if count == 0:
        return filled(x, 1)
    result: Value | None = None
    while True:
        if count % 2:
            result = x if result is None else result * x
        count //= 2
        if not count:
            assert result is not None
            return result
        x = _square(x)


def _square(x: Value) -> Value:
    """`x * x`; of an absolute value or a root the square that it is of, which has no kink."""
    primitive, operands = _definition(x)
    if primitive is e.absolute:
        (x,) = operands
        if x.dtype.is_complex:
            parts = e.real(x), e.imag(x)
            return e.add(*[part * part for part in parts])
    elif primitive is e.add:
        # See `linear_algebra.root`.
        primitive, (squared, *_) = _definition(operands[1])
        if primitive is e.bend and _is_root(operands[0]):
            return squared
    return x * x


def _is_root(x: Value) -> bool:
    """Return whether a value is chosen from 0 and a square root."""
    primitive, operands = _definition(x)
    return isinstance(primitive, e.Select) and _definition(operands[2])[0] is e.sqrt


NEAR = 16
"""How many equations back a definition is looked for."""


def _definition(x: Value) -> tuple[Primitive | None, list[Value]]:
    """What a value is computed by, and of what; None if that is not near."""
    for equation in islice(reversed(x.builder.equations), NEAR):
        if x.atom in equation.outputs:
            return equation.primitive, [Value(x.builder, atom) for atom in equation.inputs]
    return None, [x, x]


@of_arrays("numpy.divmod", together=("x1", "x2"), weak=("x1", "x2"), widens=True)
def divmod_(x1: Value, x2: Value, /) -> tuple[Value, Value]:
    """`(x1 // x2, x1 % x2)`."""
    require("numpy.divmod", x1, "real")
    return e.floor_divide(x1, x2), e.remainder(x1, x2)


@of_arrays("numpy.modf", together=("x",))
def modf(x: Value, /) -> tuple[Value, Value]:
    """The fractional and the integer part, both with the sign of `x`."""
    x = to_inexact(x)
    require("numpy.modf", x, "floating")
    zero, size = filled(x, 0.0), -x
    # By rounding down on either side, zeros have the sign of `x` and a derivative.
    below = -(size - e.floor(size))
    fraction = where(x < 0, below, x - e.floor(x))
    infinite = e.equal(e.absolute(x), math.inf)
    fraction = where(infinite, e.copysign(zero, x), fraction)
    return where(e.equal(x, 0), x, fraction), e.copysign(e.truncate(x), x)


@of_arrays("numpy.reciprocal", together=("x",))
def reciprocal(x: Value, /) -> Value:
    """`1 / x`, of floating-point and complex arrays."""
    require("numpy.reciprocal", x, "inexact")
    return e.reciprocal(x) if x.dtype.is_complex else 1 / x


@of_arrays("numpy.exp2", together=("x",))
def exp2(x: Value, /) -> Value:
    """2 to the power of each element."""
    x = to_inexact(x)
    if x.dtype.is_complex:  # as in NumPy; the product by a complex number makes NaN of an infinity
        turned = [part(x) * math.log(2) for part in (e.real, e.imag)]
        return e.exp(e.make_complex(*turned))
    return e.power(2, x)


@of_arrays("numpy.log2", together=("x",))
def log2(x: Value, /) -> Value:
    """The logarithm to base 2."""
    return _logarithm(x, 2)


@of_arrays("numpy.log10", together=("x",))
def log10(x: Value, /) -> Value:
    """The logarithm to base 10."""
    return _logarithm(x, 10)


def _logarithm(x: Value, base: int) -> Value:
    result: Value = e.log(to_inexact(x))
    scale = math.log(base)
    if not result.dtype.is_complex:
        return result / scale
    # Part by part, and multiplied as in NumPy: a complex quotient makes NaN of an infinite part.
    factor = {2: 1.4426950408889634, 10: 0.4342944819032518}[base]
    parts = [part(result) * factor for part in (e.real, e.imag)]
    return e.make_complex(*parts)


@of_arrays("numpy.logaddexp", together=("x1", "x2"), weak=("x1", "x2"), widens=True)
def logaddexp(x1: Value, x2: Value, /) -> Value:
    """`log(exp(x1) + exp(x2))` without overflow."""
    x1, x2 = together(to_inexact(x1), to_inexact(x2))
    require("numpy.logaddexp", x1, "floating")
    return log_of_sum(x1, x2)


@of_arrays("numpy.logaddexp2", together=("x1", "x2"), weak=("x1", "x2"), widens=True)
def logaddexp2(x1: Value, x2: Value, /) -> Value:
    """`log2(2**x1 + 2**x2)` without overflow."""
    scale = math.log(2)
    terms = [to_inexact(x) for x in (x1, x2)]
    terms = [x if literal(x) == -math.inf else x * scale for x in terms]
    result: Value = logaddexp(*terms) / scale
    return result


@of_arrays("numpy.hypot", together=("x1", "x2"), weak=("x1", "x2"), widens=True)
def hypot(x1: Value, x2: Value, /) -> Value:
    """`sqrt(x1**2 + x2**2)` without overflow."""
    x1, x2 = to_inexact(x1), to_inexact(x2)
    require("numpy.hypot", x1, "floating")
    x1, x2 = together(x1, x2)
    # Chosen, with their signs: `maximum` at ties and `absolute` at 0 have no second derivative.
    first = e.greater_equal(e.absolute(x1), e.absolute(x2))
    large, small = where(first, x1, x2), where(first, x2, x1)
    size = e.absolute(large)
    one, infinity = (large.builder.literal(number, large.dtype) for number in (1.0, math.inf))
    plain = e.equal(size, 0) | e.equal(size, infinity)
    ratio = small / where(plain, one, large)
    length = size * e.sqrt((ratio * ratio) + 1)
    length = length + e.bend(where(e.equal(size, 0), large + small, one))
    either = e.equal(size, infinity) | e.equal(e.absolute(small), infinity)
    return where(either, infinity, length)


@of_arrays("numpy.heaviside", together=("x1", "x2"), weak=("x1", "x2"), widens=True)
def heaviside(x1: Value, x2: Value, /) -> Value:
    """0 below zero, 1 above, `x2` at zero."""
    x1, x2 = together(to_inexact(x1), to_inexact(x2))
    require("numpy.heaviside", x1, "floating")
    zero, one = (x1.builder.literal(number, x1.dtype) for number in (0, 1))
    step = where(x1 > 0, one, where(x1 < 0, zero, x1))
    return where(e.equal(x1, 0), x2, step)


@of_arrays("numpy.sinc", together=("x",), result=Result.NEW)
def sinc(x: Value) -> Value:
    """`sin(pi*x) / (pi*x)`, 1 at zero; by its series there, to have derivatives."""
    angle = to_inexact(x) * math.pi
    near = e.absolute(angle) < 1.0
    small = where(near, angle, angle.builder.literal(0, angle.dtype))
    squared = small * small
    series: Value = filled(angle, 1.0)
    for k in range(SINC_TERMS, 0, -1):
        series = 1 - squared * (1 / (2 * k * (2 * k + 1))) * series
    safe = where(near, angle.builder.literal(1, angle.dtype), angle)
    return where(near, series, e.sin(safe) / safe)


@of_arrays("numpy.deg2rad", "numpy.radians", together=("x",))
def deg2rad(x: Value, /) -> Value:
    """Degrees as radians."""
    return _scaled("numpy.deg2rad", x, math.pi / 180)


@of_arrays("numpy.rad2deg", "numpy.degrees", together=("x",))
def rad2deg(x: Value, /) -> Value:
    """Radians as degrees."""
    return _scaled("numpy.rad2deg", x, 180 / math.pi)


def _scaled(name: str, x: Value, factor: float) -> Value:
    x = to_inexact(x)
    require(name, x, "floating")
    return x * factor


@of_arrays("numpy.ldexp", together=("x1",), alone=("x2",))
def ldexp(x1: Value, x2: Value, /) -> Value:
    """`x1 * 2**x2`; the factor is split so that it stays within the range of the dtype."""
    require("numpy.ldexp", x2, "integer")
    if x2.dtype is U64:  # which NumPy does not cast to i64
        accepts = "signed integer or 8- to 32-bit unsigned integer"
        raise Failure(DtypeNotAccepted(function="numpy.ldexp", given=x2.type, accepts=accepts))
    x1 = to_inexact(x1)
    require("numpy.ldexp", x1, "floating")
    for step in _shares(x2, 4):
        x1 = x1 * e.power(2, cast(step, x1.dtype))
    return x1


def _shares(x: Value, count: int) -> Sequence[Value]:
    """An integer as a sum of nearly equal ones."""
    shares: list[Value] = []
    for left in range(count, 0, -1):
        share: Value = e.floor_divide(x, left)
        shares.append(share)
        x = x - share
    return shares


@of_arrays("numpy.bitwise_count", alone=("x",))
def bitwise_count(x: Value, /) -> Value:
    """Return how many bits of `abs(x)` are 1, as u8."""
    require("numpy.bitwise_count", x, "integer")
    return cast(e.count_bits(e.absolute(x)), U8)


@of_arrays("numpy.gcd", together=("x1", "x2"), weak=("x1", "x2"), widens=True)
def gcd(x1: Value, x2: Value, /) -> Value:
    """The greatest common divisor, by a loop."""
    require("numpy.gcd", x1, "integer")
    return cast(_euclid(*together(_magnitude(x1), _magnitude(x2))), x1.dtype)


@of_arrays("numpy.lcm", together=("x1", "x2"), weak=("x1", "x2"), widens=True)
def lcm(x1: Value, x2: Value, /) -> Value:
    """The least common multiple."""
    require("numpy.lcm", x1, "integer")
    first, second = together(_magnitude(x1), _magnitude(x2))
    share: Value = e.floor_divide(first, _euclid(first, second))
    return cast(share * second, x1.dtype)


def _magnitude(x: Value) -> Value:
    """The absolute values, unsigned: that of the least integer has no other place."""
    unsigned = {I8: U8, I16: U16, I32: U32, I64: U64}.get(x.dtype)
    return x if unsigned is None else cast(e.absolute(x), unsigned)


def _euclid(a: Value, b: Value) -> Value:
    """The greatest common divisors of unsigned integers."""
    shape = a.shape or b.shape
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    program = a.builder.program
    with program.inside() as cond:
        x, y = cond.parameter(a.type), cond.parameter(b.type)
        going = e.not_equal(y, 0)
        if y.ndim:
            going = Reduce("any", tuple(range(y.ndim)))(going)
        cond_block, _ = cond.finish((x, y), (going,))
    with program.inside() as body:
        x, y = body.parameter(a.type), body.parameter(b.type)
        done = e.equal(y, 0)
        rest = e.remainder(x, y)
        body_block, _ = body.finish((x, y), (where(done, x, y), where(done, y, rest)))
    result, _ = While(cond_block, body_block, 0, 0).bind(a, b)
    return result
