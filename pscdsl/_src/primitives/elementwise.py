"""Elementwise primitives: casts, choices, and functions of numbers, one line each in a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan, pi
from math import sqrt as root
from typing import TYPE_CHECKING, Any

import numpy as np

from pscdsl._src.ir.axis_rules import AxisRule
from pscdsl._src.ir.numpy_dtypes import finfo, to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Literal
from pscdsl._src.primitives import exponentials
from pscdsl._src.primitives import formulas as f
from pscdsl._src.primitives.pointwise import ACCEPTS as ACCEPTS
from pscdsl._src.primitives.pointwise import TABLE as TABLE
from pscdsl._src.primitives.pointwise import (
    BinaryRule,
    Emit,
    LinearIn,
    Pointwise,
    Rule,
    UnaryRule,
    gathered,
    joint_shape,
    spread,
)
from pscdsl._src.primitives.pointwise import Elementwise as Elementwise
from pscdsl._src.primitives.transcendental import (
    along_axes,
    emit_acos,
    emit_acosh,
    emit_atan,
    emit_atanh,
    emit_cbrt,
    emit_cosh,
    emit_cosine,
    emit_erf,
    emit_exp,
    emit_expm1,
    emit_log,
    emit_log1p,
    emit_power,
    emit_reciprocal,
    emit_sine,
    emit_sinh,
    emit_sqrt,
    emit_tangent,
    emit_tanh,
    odd,
)
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, KEY, DType, Kind

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


# Choices of each element: by a predicate, or by bounds.


def _zero(value: Value) -> Value:
    """Zero in the dtype of a value."""
    return value.builder.literal(0, value.dtype)


@dataclass(frozen=True)
class Select(Pointwise, name="select", cheap=True):
    """The first array where the predicate holds, elsewhere the second."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        predicate, x, y = operands
        if predicate.dtype is not BOOL or x.dtype is not y.dtype:
            self.ill_typed(f"operands are {predicate}, {x}, {y}")
        if x.dtype is KEY and predicate.rank and not (x.rank or y.rank):
            self.ill_typed("a mask chooses between two keys")
        return (ArrayType(x.dtype, joint_shape(self, facts, operands)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        predicate, x, y = operands
        if 0 < predicate.ndim < max(x.ndim, y.ndim):
            predicate = predicate[..., None]  # a key has two words
        return (np.asarray(np.where(predicate, x, y)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        shape = outputs[0].shape
        predicate, x, y = (
            h if t.shape or not shape or i == 0 else hlo.broadcast(h, t.with_shape(shape), ())
            for i, (h, t) in enumerate(zip(operands, inputs, strict=True))
        )
        return (hlo.select(predicate, x, y),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (output,), predicate = outputs, primals[0]
        zero = _zero(output)
        x, y = (zero if tangent is None else tangent for tangent in tangents[1:])
        return (spread(self(predicate, x, y), output.shape),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (predicate, x, y) = cotangents, operands
        assert cotangent is not None
        assert not isinstance(predicate, ArrayType)
        zero = _zero(cotangent)
        one = gathered(self(predicate, cotangent, zero), x) if isinstance(x, ArrayType) else None
        other = gathered(self(predicate, zero, cotangent), y) if isinstance(y, ArrayType) else None
        return (None, one, other)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape)

    def linear_in(self, output: ArrayType) -> Sequence[Sequence[int]]:
        return ((1, 2),)


@dataclass(frozen=True)
class Clamp(Pointwise, name="clamp", cheap=True):
    """Bound from below and above: `minimum(maximum(x, low), high)`; operands low, x, high."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        low, x, high = operands
        if not low.dtype is x.dtype is high.dtype or x.dtype.kind not in (Kind.INT, Kind.FLOAT):
            self.ill_typed(f"operands are {low}, {x}, {high}")
        return (ArrayType(x.dtype, joint_shape(self, facts, operands)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        low, x, high = operands
        with np.errstate(all="ignore"):
            return (np.asarray(np.minimum(np.maximum(x, low), high)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        low, x, high = (
            h if t.shape == outputs[0].shape else hlo.broadcast(h, outputs[0], ())
            for h, t in zip(operands, inputs, strict=True)
        )
        return hlo.op("clamp", (low, x, high), outputs)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:

        low, x, high = primals
        above = maximum(x, low)
        (tangent,) = maximum.jvp((above,), (x, low), (tangents[1], tangents[0]))
        return minimum.jvp(outputs, (above, high), (tangent, tangents[2]))

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * 2


def select_rows(predicate: Value, one: Value, other: Value) -> Value:
    """The batch that takes each lane from `one` or `other`, by the lane's predicate."""
    if one.ndim > 1:
        predicate = predicate.builder.spread(predicate, one.shape, (0,))
    return Select()(predicate, one, other)


# Casts: to another dtype by value, or by the same bits.


@dataclass(frozen=True)
class Convert(Pointwise, name="convert", cheap=True):
    """Cast to another dtype: floats to integers by truncation, complex to real by its real part."""

    dtype: DType

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        if KEY in (x.dtype, self.dtype):
            self.ill_typed(f"{x} as {self.dtype}")
        return (x.with_dtype(self.dtype),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (f.convert(operands[0], to_numpy(self.dtype)),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (x,), (given,), (output,) = operands, inputs, outputs
        return (f.emit_convert(hlo, x, given, output),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (tangent,) = tangents
        if tangent is None or not self.dtype.is_inexact:
            return (None,)
        return (self(tangent),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (operand,) = cotangents, operands
        assert cotangent is not None
        return (Convert(operand.dtype)(cotangent),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        (x,) = inputs
        wider = x.dtype.is_inexact and self.dtype.is_inexact and self.dtype.bits >= x.dtype.bits
        linear = ((0,),) if wider and self.dtype.is_complex >= x.dtype.is_complex else ()
        return AxisRule.leading(x.rank, (x.rank,), (x.rank,), linear)


@dataclass(frozen=True)
class Bitcast(Pointwise, name="bitcast"):
    """Read the same bits as another dtype of the same width."""

    dtype: DType

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        pair = (x.dtype, self.dtype)
        if x.dtype.bits != self.dtype.bits or not all(d.is_integer or d.is_float for d in pair):
            self.ill_typed(f"{x.dtype} and {self.dtype} differ in width, or are not numbers")
        return (x.with_dtype(self.dtype),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (
            np.ascontiguousarray(operands[0]).view(to_numpy(self.dtype)).reshape(operands[0].shape),
        )

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.op("bitcast_convert", operands, outputs)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # The bits of a number as another dtype are no smooth function of it.
        return tangents if primals[0].dtype is self.dtype else (None,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0


# Elementwise primitives, one line each in a table.
#
# Called with values, an elementwise primitive broadcasts and promotes as NumPy's operators do;
# `bind` takes operands as they are.
#
# A line says the derivative in each operand: a function of a tangent `t`, the result and the
# operands, or `LinearIn` where the function itself is linear in the operand.


def _op(name: str) -> Emit:
    def emit(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        return hlo.op(name, operands, outputs)[0]

    return emit


def _compare(direction: str) -> Emit:
    def emit(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        return hlo.compare(direction, *operands)

    return emit


def _absorbing(x: NDArray, y: NDArray) -> NDArray:
    product: NDArray = np.where(x == 0, x.dtype.type(0), x * y)
    return product


def _no_term(x: Any) -> Any:
    return np.full_like(x, -0.0)


def _emit_no_term(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """-0, which changes nothing that it is added to: a compiler leaves it out."""
    return hlo.full(-0.0, outputs[0])


def _emit_absorbing(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    x, y = operands
    zero = hlo.full(0, outputs[0])
    return hlo.select(hlo.compare("EQ", x, zero), zero, hlo.binary("multiply", x, y))


def unary(
    name: str,
    accepts: str,
    meaning: Callable[..., Any],
    emit: str | Emit,
    flops: int = 1,
    *derivative: UnaryRule,
) -> Elementwise:
    """A function of one array."""
    return _function(name, 1, accepts, meaning, emit, flops, derivative)


def binary(
    name: str,
    accepts: str,
    meaning: Callable[..., Any],
    emit: str | Emit,
    flops: int = 1,
    *derivative: BinaryRule,
) -> Elementwise:
    """A function of two arrays."""
    return _function(name, 2, accepts, meaning, emit, flops, derivative)


def predicate(
    name: str, arity: int, accepts: str, meaning: Callable[..., Any], emit: str | Emit
) -> Elementwise:
    """A function with a bool result."""
    return _function(name, arity, accepts, meaning, emit, 1, (), lambda dtype: BOOL)


def to_real(
    name: str, accepts: str, meaning: Callable[..., Any], emit: str | Emit, derivative: UnaryRule
) -> Elementwise:
    """Declare a function whose result has the dtype of a complex number's parts."""
    return _function(name, 1, accepts, meaning, emit, 1, (derivative,), lambda dtype: dtype.real)


def _function(
    name: str,
    arity: int,
    accepts: str,
    meaning: Callable[..., Any],
    emit: str | Emit,
    flops: int,
    derivative: tuple[Rule, ...],
    result: Callable[[DType], DType] = lambda dtype: dtype,
) -> Elementwise:
    emit = _op(emit) if isinstance(emit, str) else emit
    return Elementwise(name, arity, accepts, meaning, emit, result, flops, derivative or None)


SAME = LinearIn(lambda t, _: t)
NEGATED = LinearIn(lambda t, _: -t)


def along(t: Value, *_: Value) -> Value:
    """Return the derivative of a function that follows an operand, except for jumps."""
    return t


def nothing(*_: Value) -> None:
    """Return the derivative of a function that is constant in an operand, except for jumps."""


# Note [Kinks]
# Where a function has a kink, its first derivative is a convention: 0 for the absolute value and
# for norms, equal shares for ties. A result of conventions has no second derivative: any number
# would be wrong for functions that are smooth all the same, such as `abs(x)**2` and `maximum(x**2,
# 0)`. So `kink(d)` is added to the slope, which is -0, and whose tangent is NaN where d is 0; a
# value has `bend(d)`, whose tangent is a slope with a kink. A tangent of zero is no exception: in
# `abs(x**2)` the operand has one.
#
# A primitive that takes one of several elements or pieces (`select`, `sort`, functions that are
# constant except for jumps) has the derivatives of that piece, to any order. Where a function is
# smooth these are its derivatives.


def _kink(t: Value, y: Value, x: Value) -> Any:
    """Return NaN at 0 and at NaN, the difference of equal infinities; elsewhere zero."""
    none, zero = (x.builder.literal(number, x.dtype) for number in (nan, 0.0))
    smooth = bitwise_or(less(x, 0), greater(x, 0))
    return t * Select()(smooth, zero, none)


def _if_above(t: Value, z: Value, x: Value, y: Value) -> Any:
    """The tangent where x is above y, half of it where they are equal, elsewhere none."""
    none, half, whole = (x.builder.literal(number, x.dtype) for number in (0.0, 0.5, 1.0))
    share = Select()(greater(x, y), whole, Select()(equal(x, y), half, none))
    return t * (share + kink(x - y))


def _if_below(t: Value, z: Value, x: Value, y: Value) -> Any:
    """The tangent where x is below y, half of it where they are equal, elsewhere none."""
    return _if_above(t, z, y, x)


def _power_by_base(t: Value, z: Value, x: Value, y: Value) -> Any:
    """`y * x**(y - 1)`; 0 where y is 0, also at an x that has no inverse."""
    least = x.builder.literal(float(finfo(x.dtype).smallest_normal), x.dtype.real)
    one = x.builder.literal(1, x.dtype)
    safe = Select()(less(absolute(x), least), one, y - 1)
    slope = y * power(x, Select()(equal(y, 0), safe, y - 1))
    if x.dtype.is_complex or isinstance(y.atom, Literal):
        return t * slope
    return t * slope + _corner(t, x, y, Select()(equal(y, 0), y, y - 1))


def _corner(t: Value, x: Value, y: Value, distance: Value) -> Any:
    """0, without a derivative at the powers 0 and 1 of 0, from which a distance is 0."""
    corner = bitwise_and(equal(x, 0), bitwise_or(equal(y, 0), equal(y, 1)))
    none, zero = (x.builder.literal(number, x.dtype) for number in (nan, 0.0))
    slope = multiply_absorbing(Select()(corner, distance, zero), Select()(corner, none, zero))
    return multiply_absorbing(t, slope)


def _power_by_exponent(t: Value, z: Value, x: Value, y: Value) -> Any:
    """Return `x**y * log(x)`, even where `x**y` overflows; 0 where x is 0 and y is positive."""
    one = x.builder.literal(1, x.dtype)
    slope = z * log(Select()(equal(x, 0), one, x))
    if x.dtype.is_complex:
        return t * slope
    above = greater(x, one)
    large = Select()(above, x, one)
    root = power(large, y * 0.5)
    slope = Select()(above, root * (root * log(large)), slope)
    return t * slope + _corner(t, x, y, Select()(equal(y, 0), x + y, x))


def _by_denominator(t: Value, z: Value, x: Value, y: Value) -> Any:
    """`-x / y**2`, without the square and with the quotient that the numerator's tangent has."""
    return t / y * -z


def _logistic(t: Value, y: Value, x: Value) -> Any:
    """Return `y * (1 - y)`, accurate also where y is nearly 1."""
    return t * (y * logistic(-x))


def _tanh(t: Value, y: Value, x: Value) -> Any:
    """Return `1 - y * y`, accurate also where y is nearly 1."""
    return t * (4 * (logistic(2 * x) * logistic(-2 * x)))


def _turned(x: Value) -> Value:
    """`x * 1j`, with the signs of zeros, which say on which side of a cut a number is."""
    return make_complex(-imag(x), real(x))


def _tan(t: Value, y: Value, x: Value) -> Any:
    """Return `1 + y * y`, accurate also where that is small, far from the real axis."""
    return _tanh(t, y, _turned(x)) if x.dtype.is_complex else t * (1 + y * y)


def _asin(t: Value, y: Value, x: Value) -> Any:
    """`1 / sqrt(1 - x * x)`, on either side of the cuts of the complex function."""
    if not x.dtype.is_complex:
        return t * rsqrt((1 - x) * (1 + x))
    return t * (rsqrt(-(x - 1)) * rsqrt(x - -1))  # differences keep the signs of zeros


def _asinh(t: Value, y: Value, x: Value) -> Any:
    """`1 / sqrt(1 + x * x)`, also where the square overflows."""
    if x.dtype.is_complex:
        return _asin(t, y, _turned(x))
    large = greater(absolute(x), float(2 / finfo(x.dtype).eps))
    one = x.builder.literal(1, x.dtype)
    inside = Select()(large, one, x)
    return t * Select()(large, 1 / absolute(Select()(large, x, one)), rsqrt(1 + inside * inside))


def _slope(x: Value, y: Value) -> Any:
    """`x / (x**2 + y**2)`, by the ratio of the smaller to the larger: no square overflows."""
    wide = greater_equal(absolute(x), absolute(y))
    small, large = Select()(wide, y, x), Select()(wide, x, y)
    ratio = small / large
    one = x.builder.literal(1.0, x.dtype)
    return Select()(wide, one, ratio) / (large + small * ratio)


def by_divisor(t: Value, z: Value, x: Value, y: Value) -> Any:
    """The derivative of the remainder `x - q * y` where the whole number q does not jump."""
    return t * -round_even((x - z) / y)


def _absolute(t: Value, y: Value, x: Value) -> Any:
    """Return the part of the tangent that points away from zero; there is none at zero."""
    if not x.dtype.is_complex:
        return t * _direction(x)
    return real(t * conjugate(sign(x))) * (1 + kink(y))


def _direction(x: Value) -> Value:
    """The slope of the absolute value."""
    return sign(x) + kink(x)


def _sign(t: Value, y: Value, x: Value) -> Any:
    """The tangent of the sign of a complex number; zero for a real number."""
    if not x.dtype.is_complex:
        return None
    size = absolute(x)
    safe = Select()(equal(size, 0), size.builder.literal(1, size.dtype), size)
    return y * make_complex(0.0, imag(t * conjugate(y)) / safe)


# Arithmetic.  Integer division is Python's and NumPy's: it rounds down.
add: Elementwise = binary("add", "numeric", np.add, "add", 1, SAME, SAME)
subtract: Elementwise = binary("subtract", "numeric", np.subtract, "subtract", 1, SAME, NEGATED)
multiply: Elementwise = binary(
    "multiply",
    "numeric",
    np.multiply,
    "multiply",
    1,
    LinearIn(lambda t, xs: t * xs[1]),
    LinearIn(lambda t, xs: xs[0] * t),
)
divide: Elementwise = binary(
    "divide",
    "inexact",
    f.divide,
    "divide",
    1,
    LinearIn(lambda t, xs: t / xs[1]),
    _by_denominator,
)
floor_divide: Elementwise = binary(
    "floor_divide", "real", f.floor_divide, f.emit_floor_divide, 1, nothing, nothing
)
remainder: Elementwise = binary(
    "remainder", "real", f.remainder, f.emit_remainder, 1, along, by_divisor
)
fmod: Elementwise = binary("fmod", "real", f.fmod, f.emit_fmod, 1, along, by_divisor)
power: Elementwise = binary(
    "power", "numeric", f.power, emit_power, 10, _power_by_base, _power_by_exponent
)
atan2: Elementwise = binary(
    "atan2",
    "floating",
    np.arctan2,
    f.emit_atan2,
    20,
    lambda t, z, y, x: t * _slope(x, y),
    lambda t, z, y, x: t * -_slope(y, x),
)
maximum: Elementwise = binary(
    "maximum", "bool, integer or float", np.maximum, "maximum", 1, _if_above, _if_below
)
minimum: Elementwise = binary(
    "minimum", "bool, integer or float", np.minimum, "minimum", 1, _if_below, _if_above
)
nextafter: Elementwise = binary(
    "nextafter", "floating", np.nextafter, "chlo.next_after", 1, along, nothing
)
copysign: Elementwise = binary(
    "copysign",
    "floating",
    np.copysign,
    f.emit_copysign,
    1,
    lambda t, z, x, y: t * (_direction(x) * copysign(1.0, y)),
    nothing,
)
negative: Elementwise = unary("negative", "numeric", np.negative, "negate", 1, NEGATED)
absolute: Elementwise = to_real("absolute", "numeric", np.absolute, f.emit_absolute, _absolute)
sign: Elementwise = unary("sign", "numeric", f.sign, f.emit_sign, 1, _sign)

# For slopes: see Note [Kinks].
kink: Elementwise = unary("kink", "floating", _no_term, _emit_no_term, 0, _kink)
bend: Elementwise = unary(
    "bend", "floating", _no_term, _emit_no_term, 0, lambda t, y, x: t * kink(x)
)
multiply_absorbing: Elementwise = binary(
    "multiply_absorbing",
    "inexact",
    _absorbing,
    _emit_absorbing,
    2,
    LinearIn(lambda t, xs: multiply_absorbing(t, xs[1])),
    LinearIn(lambda t, xs: multiply_absorbing(xs[0], t)),
)

# Exponentials, powers and logarithms.
exp: Elementwise = unary("exp", "inexact", np.exp, emit_exp, 8, lambda t, y, x: t * y)
expm1: Elementwise = unary("expm1", "inexact", np.expm1, emit_expm1, 8, lambda t, y, x: t * exp(x))
log: Elementwise = unary("log", "inexact", np.log, emit_log, 8, lambda t, y, x: t / x)
log1p: Elementwise = unary("log1p", "inexact", np.log1p, emit_log1p, 8, lambda t, y, x: t / (1 + x))
logistic: Elementwise = unary("logistic", "inexact", f.logistic, "logistic", 10, _logistic)
sqrt: Elementwise = unary("sqrt", "inexact", np.sqrt, emit_sqrt, 1, lambda t, y, x: t * (0.5 / y))
rsqrt: Elementwise = unary(
    "rsqrt", "inexact", f.rsqrt, "rsqrt", 2, lambda t, y, x: t * (-0.5 * (y * y) * y)
)
reciprocal: Elementwise = unary(
    "reciprocal", "complex", np.reciprocal, emit_reciprocal, 1, lambda t, y, x: t / x * -y
)
cbrt: Elementwise = unary(
    "cbrt", "floating", np.cbrt, emit_cbrt, 10, lambda t, y, x: t / (3 * (y * y))
)

# Trigonometric and hyperbolic functions.
sin: Elementwise = unary("sin", "inexact", np.sin, emit_sine, 8, lambda t, y, x: t * cos(x))
cos: Elementwise = unary("cos", "inexact", np.cos, emit_cosine, 8, lambda t, y, x: t * -sin(x))
tan: Elementwise = unary("tan", "inexact", np.tan, along_axes(emit_tangent), 10, _tan)
asin: Elementwise = unary("asin", "inexact", np.arcsin, odd("chlo.asin"), 10, _asin)
acos: Elementwise = unary(
    "acos", "inexact", np.arccos, emit_acos, 10, lambda t, y, x: _asin(-t, y, x)
)
atan: Elementwise = unary(
    "atan", "inexact", np.arctan, emit_atan, 10, lambda t, y, x: t / (1 + x * x)
)
sinh: Elementwise = unary("sinh", "inexact", np.sinh, emit_sinh, 10, lambda t, y, x: t * cosh(x))
cosh: Elementwise = unary("cosh", "inexact", np.cosh, emit_cosh, 10, lambda t, y, x: t * sinh(x))
tanh: Elementwise = unary("tanh", "inexact", np.tanh, along_axes(emit_tanh), 10, _tanh)
asinh: Elementwise = unary("asinh", "inexact", np.arcsinh, odd("chlo.asinh"), 10, _asinh)
acosh: Elementwise = unary(
    "acosh",
    "inexact",
    np.arccosh,
    emit_acosh,
    10,
    lambda t, y, x: t * (rsqrt(x - 1) * rsqrt(x - -1)),
)
atanh: Elementwise = unary(
    "atanh", "inexact", np.arctanh, emit_atanh, 10, lambda t, y, x: t / ((1 - x) * (1 + x))
)

# The error function and its inverse, as XLA has them: random numbers depend on its last bits.
erf: Elementwise = unary(
    "erf",
    "floating",
    exponentials.erf_of_array,
    emit_erf,
    20,
    lambda t, y, x: t * (2 / root(pi) * exp(-(x * x))),
)
erf_inv: Elementwise = unary(
    "erf_inv",
    "floating",
    exponentials.erfinv.meaning,
    "chlo.erf_inv",
    20,
    lambda t, y, x: t * (root(pi) / 2 * exp(y * y)),
)

# Rounding.
floor: Elementwise = unary("floor", "floating", np.floor, "floor", 1, nothing)
ceil: Elementwise = unary("ceil", "floating", np.ceil, "ceil", 1, nothing)
round_even: Elementwise = unary("round_even", "floating", np.rint, "round_nearest_even", 1, nothing)
truncate: Elementwise = unary("truncate", "floating", np.trunc, f.emit_truncate, 1, nothing)

# Bits and truth values.
bitwise_and: Elementwise = binary("bitwise_and", "integer or bool", np.bitwise_and, "and")
bitwise_or: Elementwise = binary("bitwise_or", "integer or bool", np.bitwise_or, "or")
bitwise_xor: Elementwise = binary("bitwise_xor", "integer or bool", np.bitwise_xor, "xor")
invert: Elementwise = unary("invert", "integer or bool", np.invert, "not")
left_shift: Elementwise = binary("left_shift", "integer", f.left_shift, "shift_left")
right_shift: Elementwise = binary("right_shift", "integer", f.right_shift, f.emit_right_shift)
count_bits: Elementwise = unary("count_bits", "integer", f.count_bits, "popcnt")

# Comparison; NaN compares as in IEEE 754.
equal: Elementwise = predicate("equal", 2, "any", np.equal, _compare("EQ"))
not_equal: Elementwise = predicate("not_equal", 2, "any", np.not_equal, _compare("NE"))
less: Elementwise = predicate("less", 2, "bool, integer or float", np.less, _compare("LT"))
less_equal: Elementwise = predicate(
    "less_equal", 2, "bool, integer or float", np.less_equal, _compare("LE")
)
greater: Elementwise = predicate("greater", 2, "bool, integer or float", np.greater, _compare("GT"))
greater_equal: Elementwise = predicate(
    "greater_equal", 2, "bool, integer or float", np.greater_equal, _compare("GE")
)
is_finite: Elementwise = predicate("is_finite", 1, "floating", np.isfinite, "is_finite")

# Complex numbers.
real: Elementwise = to_real(
    "real",
    "complex",
    np.real,
    "real",
    LinearIn(lambda t, _: real(t), lambda t, _: make_complex(t, 0.0)),
)
imag: Elementwise = to_real(
    "imag",
    "complex",
    np.imag,
    "imag",
    LinearIn(lambda t, _: imag(t), lambda t, _: make_complex(0.0, -t)),
)
conjugate: Elementwise = unary(
    "conjugate", "complex", np.conjugate, f.emit_conjugate, 1, LinearIn(lambda t, _: conjugate(t))
)
make_complex: Elementwise = Elementwise(
    "make_complex",
    2,
    "floating",
    f.make_complex,
    f.emit_make_complex,
    lambda dtype: dtype.complex,
    derivative=(
        LinearIn(lambda t, _: make_complex(t, 0.0), lambda t, xs: Convert(xs[0].dtype)(real(t))),
        LinearIn(lambda t, _: make_complex(0.0, t), lambda t, xs: Convert(xs[1].dtype)(-imag(t))),
    ),
)
