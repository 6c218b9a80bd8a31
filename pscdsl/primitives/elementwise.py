"""Elementwise primitives: one line each in a table, the family classes hold the rules.

Operands have one shape; those of rank 0 apply everywhere.  Called with values, an elementwise
primitive broadcasts and promotes as NumPy's operators do; `bind` takes operands as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np

from pscdsl.numpy_dtypes import to_numpy
from pscdsl.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl.primitives import scalar_functions as f
from pscdsl.primitives import special_functions, transcendental
from pscdsl.typing.arrays import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.dtypes import DtypeNotAccepted
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, KEY, DType, Kind

Emit: TypeAlias = Callable[[Hlo, Sequence[H], Types, Types], H]

ACCEPTS: dict[str, Callable[[DType], bool]] = {
    "numeric": lambda d: d.is_number,
    "real": lambda d: d.is_integer or d.is_float,
    "inexact": lambda d: d.is_inexact,
    "floating": lambda d: d.is_float,
    "integer": lambda d: d.is_integer,
    "complex": lambda d: d.is_complex,
    "integer or bool": lambda d: d.is_integer or d is BOOL,
    "bool, integer or float": lambda d: d is BOOL or d.is_integer or d.is_float,
    "any": lambda d: d.kind is not Kind.KEY,
}
"""What a table entry says of its operands' dtype, and what that means."""


def joint_shape(primitive: Primitive, facts: Assumptions, operands: Sequence[ArrayType]) -> Shape:
    """The one shape of operands, those of rank 0 set aside."""
    shape: Shape = ()
    for each in operands:
        if each.shape and each.shape != shape:
            if not shape:
                shape = each.shape
            elif len(shape) != each.rank or not all(map(facts.equal, shape, each.shape)):
                primitive.ill_typed(f"operands are {', '.join(map(str, operands))}")
    return shape


@dataclass(frozen=True, eq=False)
class Elementwise(Primitive):
    """The same function of every element; compared by identity, each is made once."""

    name: str = field()  # type: ignore[misc]
    arity: int
    accepts: str
    meaning: Callable[..., Any]
    emit: Emit
    result: Callable[[DType], DType] = field(default=lambda dtype: dtype)
    """The result's dtype from the operands'."""
    flops: int = 1

    count: ClassVar[int] = 0

    def __post_init__(self) -> None:
        TABLE[self.name] = self

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str | tuple[Any, ...]:
        return TABLE.__getitem__, (self.name,)

    def __call__(self, *operands: Any) -> Any:
        """The function with NumPy's broadcasting and strict promotion."""
        for each in operands:
            builder = getattr(each, "builder", None)
            if builder is not None:
                return builder.elementwise(self, operands)
        raise TypeError(f"{self.name}: no operand belongs to a program")

    def weak_kind(self, kind: Kind) -> Kind:
        """The kind in which weak operands of a kind are computed."""
        if self.accepts in ("inexact", "floating"):
            return max(kind, Kind.FLOAT)
        return max(kind, Kind.INT) if self.accepts in ("numeric", "real", "integer") else kind

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        first = operands[0]
        dtype = first.dtype
        if len(operands) != self.arity or any(o.dtype is not dtype for o in operands):
            self.ill_typed(f"operands are {', '.join(map(str, operands))}")
        if not ACCEPTS[self.accepts](dtype):
            raise Failure(DtypeNotAccepted(function=self.name, given=first, accepts=self.accepts))
        shape = first.shape if len(operands) == 1 else joint_shape(self, facts, operands)
        result = self.result(dtype)
        return (first if result is dtype and shape is first.shape else ArrayType(result, shape),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        with np.errstate(all="ignore"):
            result = np.asarray(self.meaning(*operands))
        if operands[0].dtype.kind in "biu" and result.dtype != operands[0].dtype:
            return (result,)  # a predicate, or one whose NumPy function has a fixed result
        return (result,)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (output,) = outputs
        if output.shape:
            operands = [
                x if t.shape else hlo.broadcast(x, t.with_shape(output.shape), ())
                for x, t in zip(operands, inputs, strict=True)
            ]
        return (self.emit(hlo, operands, inputs, outputs),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * self.flops


TABLE: dict[str, Elementwise] = {}
"""Every elementwise primitive by name."""


def _op(name: str) -> Emit:
    def emit(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        return hlo.op(name, operands, outputs)[0]

    return emit


def _compare(direction: str) -> Emit:
    def emit(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        return hlo.compare(direction, *operands)

    return emit


def unary(
    name: str, accepts: str, meaning: Callable[..., Any], emit: str | Emit, flops: int = 1
) -> Elementwise:
    """A function of one array."""
    return Elementwise(
        name, 1, accepts, meaning, _op(emit) if isinstance(emit, str) else emit, flops=flops
    )


def binary(
    name: str, accepts: str, meaning: Callable[..., Any], emit: str | Emit, flops: int = 1
) -> Elementwise:
    """A function of two arrays."""
    return Elementwise(
        name, 2, accepts, meaning, _op(emit) if isinstance(emit, str) else emit, flops=flops
    )


def predicate(
    name: str, arity: int, accepts: str, meaning: Callable[..., Any], emit: str | Emit
) -> Elementwise:
    """A function with a bool result."""
    emit = _op(emit) if isinstance(emit, str) else emit
    return Elementwise(name, arity, accepts, meaning, emit, result=lambda dtype: BOOL)


def to_real(name: str, accepts: str, meaning: Callable[..., Any], emit: str | Emit) -> Elementwise:
    """A function whose result has the dtype of the parts of a complex number."""
    emit = _op(emit) if isinstance(emit, str) else emit
    return Elementwise(name, 1, accepts, meaning, emit, result=lambda dtype: dtype.real)


# Arithmetic.  Integer division is Python's and NumPy's: it rounds down.
add: Elementwise = binary("add", "numeric", np.add, "add")
subtract: Elementwise = binary("subtract", "numeric", np.subtract, "subtract")
multiply: Elementwise = binary("multiply", "numeric", np.multiply, "multiply")
divide: Elementwise = binary("divide", "inexact", f.divide, "divide")
floor_divide: Elementwise = binary("floor_divide", "real", f.floor_divide, f.emit_floor_divide)
remainder: Elementwise = binary("remainder", "real", f.remainder, f.emit_remainder)
fmod: Elementwise = binary("fmod", "real", f.fmod, f.emit_fmod)
power: Elementwise = binary("power", "numeric", f.power, transcendental.emit_power, flops=10)
atan2: Elementwise = binary("atan2", "floating", np.arctan2, "atan2", flops=20)
maximum: Elementwise = binary("maximum", "bool, integer or float", np.maximum, "maximum")
minimum: Elementwise = binary("minimum", "bool, integer or float", np.minimum, "minimum")
nextafter: Elementwise = binary("nextafter", "floating", np.nextafter, "chlo.next_after")
copysign: Elementwise = binary("copysign", "floating", np.copysign, f.emit_copysign)
negative: Elementwise = unary("negative", "numeric", np.negative, "negate")
absolute: Elementwise = to_real("absolute", "numeric", np.absolute, f.emit_absolute)
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
real: Elementwise = to_real("real", "complex", np.real, "real")
imag: Elementwise = to_real("imag", "complex", np.imag, "imag")
conjugate: Elementwise = unary("conjugate", "complex", np.conjugate, f.emit_conjugate)
make_complex: Elementwise = Elementwise(
    "make_complex", 2, "floating", f.make_complex, f.emit_make_complex, result=lambda d: d.complex
)


@dataclass(frozen=True)
class Convert(Primitive, name="convert"):
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

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0


@dataclass(frozen=True)
class Bitcast(Primitive, name="bitcast"):
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

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0


@dataclass(frozen=True)
class Select(Primitive, name="select"):
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

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape)


@dataclass(frozen=True)
class Clamp(Primitive, name="clamp"):
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

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(outputs[0].shape) * 2
