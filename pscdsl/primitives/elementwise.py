"""Elementwise primitives, one line each in a table, and those that choose or convert elements.

Called with values, an elementwise primitive broadcasts and promotes as NumPy's operators do;
`bind` takes operands as they are.

A line says the derivative in each operand: a function of a tangent `t`, the result and the
operands, or `Linear` where the function itself is linear in the operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pscdsl.numpy_dtypes import to_numpy
from pscdsl.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl.primitives import scalar_functions as f
from pscdsl.primitives import special_functions, transcendental
from pscdsl.primitives.pointwise import ACCEPTS as ACCEPTS
from pscdsl.primitives.pointwise import TABLE as TABLE
from pscdsl.primitives.pointwise import (
    BinaryRule,
    Emit,
    Linear,
    Pointwise,
    Rule,
    UnaryRule,
    gathered,
    joint_shape,
    spread,
)
from pscdsl.primitives.pointwise import Elementwise as Elementwise
from pscdsl.typing.arrays import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, KEY, DType, Kind

if TYPE_CHECKING:
    from pscdsl.builder import Value


def _op(name: str) -> Emit:
    def emit(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        return hlo.op(name, operands, outputs)[0]

    return emit


def _compare(direction: str) -> Emit:
    def emit(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        return hlo.compare(direction, *operands)

    return emit


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
    """A function whose result has the dtype of the parts of a complex number."""
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


KEPT = Linear(lambda t, _: t)
NEGATED = Linear(lambda t, _: -t)


def nothing(*_: Value) -> None:
    """The derivative where a function is constant in an operand, but for jumps."""


# Arithmetic.  Integer division is Python's and NumPy's: it rounds down.
add: Elementwise = binary("add", "numeric", np.add, "add", 1, KEPT, KEPT)
subtract: Elementwise = binary("subtract", "numeric", np.subtract, "subtract", 1, KEPT, NEGATED)
multiply: Elementwise = binary(
    "multiply",
    "numeric",
    np.multiply,
    "multiply",
    1,
    Linear(lambda t, xs: t * xs[1]),
    Linear(lambda t, xs: xs[0] * t),
)
divide: Elementwise = binary(
    "divide",
    "inexact",
    f.divide,
    "divide",
    1,
    Linear(lambda t, xs: t / xs[1]),
    lambda t, z, x, y: t * -(z / y),
)
floor_divide: Elementwise = binary("floor_divide", "real", f.floor_divide, f.emit_floor_divide)
remainder: Elementwise = binary("remainder", "real", f.remainder, f.emit_remainder)
fmod: Elementwise = binary("fmod", "real", f.fmod, f.emit_fmod)
power: Elementwise = binary("power", "numeric", f.power, transcendental.emit_power, flops=10)
atan2: Elementwise = binary("atan2", "floating", np.arctan2, "atan2", flops=20)
maximum: Elementwise = binary("maximum", "bool, integer or float", np.maximum, "maximum")
minimum: Elementwise = binary("minimum", "bool, integer or float", np.minimum, "minimum")
nextafter: Elementwise = binary("nextafter", "floating", np.nextafter, "chlo.next_after")
copysign: Elementwise = binary("copysign", "floating", np.copysign, f.emit_copysign)
negative: Elementwise = unary("negative", "numeric", np.negative, "negate", 1, NEGATED)
absolute: Elementwise = to_real(
    "absolute", "numeric", np.absolute, f.emit_absolute, lambda t, y, x: t * sign(x)
)
sign: Elementwise = unary("sign", "numeric", f.sign, f.emit_sign)

# Exponentials, powers and logarithms.
exp: Elementwise = unary("exp", "inexact", np.exp, "exponential", 8)
expm1: Elementwise = unary("expm1", "inexact", np.expm1, "exponential_minus_one", 8)
log: Elementwise = unary("log", "inexact", np.log, "log", 8)
log1p: Elementwise = unary("log1p", "inexact", np.log1p, "log_plus_one", 8)
logistic: Elementwise = unary("logistic", "inexact", f.logistic, "logistic", 10)
sqrt: Elementwise = unary("sqrt", "inexact", np.sqrt, transcendental.emit_sqrt)
rsqrt: Elementwise = unary("rsqrt", "inexact", f.rsqrt, "rsqrt", 2)
cbrt: Elementwise = unary("cbrt", "floating", np.cbrt, "cbrt", 10)

# Trigonometric and hyperbolic functions.
sin: Elementwise = unary("sin", "inexact", np.sin, "sine", 8)
cos: Elementwise = unary("cos", "inexact", np.cos, "cosine", 8)
tan: Elementwise = unary("tan", "inexact", np.tan, "tan", 10)
asin: Elementwise = unary("asin", "inexact", np.arcsin, transcendental.odd("chlo.asin"), 10)
acos: Elementwise = unary("acos", "inexact", np.arccos, transcendental.emit_acos, 10)
atan: Elementwise = unary("atan", "inexact", np.arctan, transcendental.odd("chlo.atan"), 10)
sinh: Elementwise = unary("sinh", "inexact", np.sinh, "chlo.sinh", 10)
cosh: Elementwise = unary("cosh", "inexact", np.cosh, "chlo.cosh", 10)
tanh: Elementwise = unary("tanh", "inexact", np.tanh, "tanh", 10)
asinh: Elementwise = unary("asinh", "inexact", np.arcsinh, transcendental.odd("chlo.asinh"), 10)
acosh: Elementwise = unary("acosh", "inexact", np.arccosh, transcendental.emit_acosh, 10)
atanh: Elementwise = unary("atanh", "inexact", np.arctanh, transcendental.odd("chlo.atanh"), 10)

# The error function and its inverse.
erf: Elementwise = unary("erf", "floating", special_functions.erf, "chlo.erf", 20)
erf_inv: Elementwise = unary("erf_inv", "floating", special_functions.erf_inv, "chlo.erf_inv", 20)

# Rounding.
floor: Elementwise = unary("floor", "floating", np.floor, "floor")
ceil: Elementwise = unary("ceil", "floating", np.ceil, "ceil")
round_even: Elementwise = unary("round_even", "floating", np.rint, "round_nearest_even")
truncate: Elementwise = unary("truncate", "floating", np.trunc, f.emit_truncate)

# Bits and truth values.
bitwise_and: Elementwise = binary("bitwise_and", "integer or bool", np.bitwise_and, "and")
bitwise_or: Elementwise = binary("bitwise_or", "integer or bool", np.bitwise_or, "or")
bitwise_xor: Elementwise = binary("bitwise_xor", "integer or bool", np.bitwise_xor, "xor")
invert: Elementwise = unary("invert", "integer or bool", np.invert, "not")
left_shift: Elementwise = binary("left_shift", "integer", f.left_shift, "shift_left")
right_shift: Elementwise = binary("right_shift", "integer", f.right_shift, f.emit_right_shift)
count_bits: Elementwise = unary("count_bits", "integer", f.count_bits, "popcnt")
leading_zeros: Elementwise = unary(
    "leading_zeros", "integer", f.leading_zeros, "count_leading_zeros"
)

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
    Linear(lambda t, _: real(t), lambda t, _: make_complex(t, 0.0)),
)
imag: Elementwise = to_real(
    "imag",
    "complex",
    np.imag,
    "imag",
    Linear(lambda t, _: imag(t), lambda t, _: make_complex(0.0, -t)),
)
conjugate: Elementwise = unary(
    "conjugate", "complex", np.conjugate, f.emit_conjugate, 1, Linear(lambda t, _: conjugate(t))
)
make_complex: Elementwise = Elementwise(
    "make_complex",
    2,
    "floating",
    f.make_complex,
    f.emit_make_complex,
    lambda dtype: dtype.complex,
    derivative=(
        Linear(lambda t, _: make_complex(t, 0.0), lambda t, xs: Convert(xs[0].dtype)(real(t))),
        Linear(lambda t, _: make_complex(0.0, t), lambda t, xs: Convert(xs[1].dtype)(-imag(t))),
    ),
)


def _zero(value: Value) -> Value:
    """Zero in the dtype of a value."""
    return value.builder.literal(0, value.dtype)


@dataclass(frozen=True)
class Convert(Pointwise, name="convert"):
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


@dataclass(frozen=True)
class Select(Pointwise, name="select"):
    """Where the predicate holds the first, elsewhere the second."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        predicate, x, y = operands
        if predicate.dtype is not BOOL or x.dtype is not y.dtype:
            self.ill_typed(f"operands are {predicate}, {x}, {y}")
        return (ArrayType(x.dtype, joint_shape(self, facts, operands)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (np.asarray(np.where(*operands)),)

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
        x, y = (zero if each is None else each for each in tangents[1:])
        return (spread(self(predicate, x, y), output.shape),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (predicate, x, y) = cotangents, operands
        assert cotangent is not None
        assert not isinstance(predicate, ArrayType)
        zero = _zero(cotangent)
        chosen, other = self(predicate, cotangent, zero), self(predicate, zero, cotangent)
        return (
            None,
            gathered(chosen, x) if isinstance(x, ArrayType) else None,
            gathered(other, y) if isinstance(y, ArrayType) else None,
        )

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape)


@dataclass(frozen=True)
class Clamp(Pointwise, name="clamp"):
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
