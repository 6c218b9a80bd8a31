"""Functions that are written once: NumPy computes a formula, StableHLO is emitted from it.

Special functions are accurate to a few units in the last place in f32 and f64; half precisions
are computed in f32.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.ir.primitive import H, Hlo, NDArray, Types
from pscdsl.typing import dtypes
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import BOOL, F32, I32, DType, Kind

# The computations of elementwise primitives where NumPy's function and XLA's operation differ.
#
# For each such function its meaning over NumPy arrays and its emission are next to each other: both
# are defined everywhere, also where C leaves the result open (division by zero, shifts by too much,
# integers that do not fit a float).


def _common(inputs: Types, outputs: Types) -> ArrayType:
    """The type that all operands have by the time they are emitted."""
    return inputs[0].with_shape(outputs[0].shape)


def _widen(x: NDArray) -> NDArray:
    """Convert numbers to a dtype that NumPy's loops support well."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and _is_float(x) else x


def _is_float(x: NDArray) -> bool:
    return from_numpy(x.dtype).is_float


def _is_integer(x: NDArray) -> bool:
    return x.dtype.kind in "iu"


def _bits(dtype: DType) -> DType:
    """The unsigned dtype of the same width."""
    return {8: dtypes.U8, 16: dtypes.U16, 32: dtypes.U32, 64: dtypes.U64}[dtype.bits]


# Division.  Integers: it rounds down, `x // 0 == 0` and `x % 0 == 0`, the smallest integer divided
# by -1 is itself.  Floats: Python's, on the exact remainder.


def divide(x: NDArray, y: NDArray) -> Any:
    """The quotient of inexact numbers."""
    return np.divide(x, y)


def floor_divide(x: NDArray, y: NDArray) -> Any:
    """The quotient rounded down."""
    if _is_integer(x):
        return np.floor_divide(x, y)
    return np.floor_divide(_widen(x), _widen(y)).astype(x.dtype)


def remainder(x: NDArray, y: NDArray) -> Any:
    """Return the remainder of `floor_divide`, which has the sign of the divisor."""
    if _is_integer(x):
        return np.remainder(x, y)
    return np.remainder(_widen(x), _widen(y)).astype(x.dtype)


def fmod(x: NDArray, y: NDArray) -> Any:
    """Return the remainder of division towards zero, which has the sign of the dividend."""
    if _is_integer(x):
        return np.fmod(x, y)
    return np.fmod(_widen(x), _widen(y)).astype(x.dtype)


def emit_floor_divide(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit `floor_divide`."""
    x, y = operands
    common = _common(inputs, outputs)
    if common.dtype.is_float:
        return _in_f32(hlo, operands, common, _emit_float_floor_divide)
    zero = hlo.full(0, common)
    is_zero, divisor = _divisor(hlo, y, common)
    quotient = hlo.binary("divide", x, divisor)
    if common.dtype.signed:
        rest = hlo.binary("remainder", x, divisor)
        down = hlo.binary("subtract", quotient, hlo.full(1, common))
        quotient = hlo.select(_is_opposed(hlo, rest, y, zero), down, quotient)
    return hlo.select(is_zero, zero, quotient)


def emit_remainder(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit `remainder`."""
    x, y = operands
    common = _common(inputs, outputs)
    if common.dtype.is_float:
        return _in_f32(hlo, operands, common, _emit_float_remainder)
    zero = hlo.full(0, common)
    is_zero, divisor = _divisor(hlo, y, common)
    rest = hlo.binary("remainder", x, divisor)
    if common.dtype.signed:
        rest = hlo.select(_is_opposed(hlo, rest, y, zero), hlo.binary("add", rest, y), rest)
    return hlo.select(is_zero, zero, rest)


def emit_fmod(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit `fmod`."""
    x, y = operands
    common = _common(inputs, outputs)
    if common.dtype.is_float:
        return hlo.binary("remainder", x, y)
    zero = hlo.full(0, common)
    is_zero, divisor = _divisor(hlo, y, common)
    rest = hlo.binary("remainder", x, divisor)
    return hlo.select(is_zero, zero, rest)


def _divisor(hlo: Hlo, y: H, common: ArrayType) -> tuple[H, H]:
    """Return whether a divisor is zero, and a divisor to use instead.

    If XLA's compiler finds out that a divisor is zero, it may divide by it, which ends the process.
    """
    is_zero = hlo.compare("EQ", y, hlo.full(0, common))
    return is_zero, hlo.select(is_zero, hlo.full(1, common), y)


def _is_opposed(hlo: Hlo, rest: H, divisor: H, zero: H) -> H:
    """Return whether there is a remainder with the sign opposite to the divisor's."""
    differ = hlo.binary("xor", hlo.compare("LT", rest, zero), hlo.compare("LT", divisor, zero))
    return hlo.binary("and", hlo.compare("NE", rest, zero), differ)


def _in_f32(hlo: Hlo, operands: Sequence[H], common: ArrayType, emit: Any) -> H:
    if common.dtype.bits > 16:
        return emit(hlo, *operands, common)
    wide = common.with_dtype(dtypes.F32)
    result = emit(hlo, *(hlo.convert(x, wide) for x in operands), wide)
    return hlo.convert(result, common)


def _emit_float_remainder(hlo: Hlo, x: H, y: H, common: ArrayType) -> H:
    zero = hlo.full(0.0, common)
    rest = hlo.binary("remainder", x, y)
    shifted = hlo.select(_is_opposed(hlo, rest, y, zero), hlo.binary("add", rest, y), rest)
    signed_zero = hlo.select(hlo.compare("LT", y, zero), hlo.full(-0.0, common), zero)
    return hlo.select(hlo.compare("EQ", rest, zero), signed_zero, shifted)


def _emit_float_floor_divide(hlo: Hlo, x: H, y: H, common: ArrayType) -> H:
    zero, one = hlo.full(0.0, common), hlo.full(1.0, common)
    rest = hlo.binary("remainder", x, y)
    exact = hlo.binary("divide", hlo.binary("subtract", x, rest), y)
    exact = hlo.select(_is_opposed(hlo, rest, y, zero), hlo.binary("subtract", exact, one), exact)
    # Except for rounding, `exact` is an integer: take the nearest one.
    down = hlo.unary("floor", exact)
    off = hlo.compare("GT", hlo.binary("subtract", exact, down), hlo.full(0.5, common))
    nearest = hlo.select(off, hlo.binary("add", down, one), down)
    ratio = hlo.binary("divide", x, y)
    signed_zero = copysign_of(hlo, zero, ratio, common)
    nearest = hlo.select(hlo.compare("EQ", exact, zero), signed_zero, nearest)
    return hlo.select(hlo.compare("EQ", y, zero), ratio, nearest)


# Powers.


def power(x: NDArray, y: NDArray) -> Any:
    """The power; for a negative integer exponent the true quotient, rounded towards zero.

    So 1 and -1 have inverses, other integers give 0, and so does 0.
    """
    if not _is_integer(x):
        return np.power(x, y)
    result = np.power(x, np.maximum(y, 0))
    if x.dtype.kind == "i":
        unit = np.where(x == 1, 1, np.where(x == -1, np.where(y & 1, -1, 1), 0))
        result = np.where(y < 0, unit, result)
    return result.astype(x.dtype)


def logistic(x: NDArray) -> Any:
    """`1 / (1 + exp(-x))`, without overflow."""
    wide = _widen(x)
    one = wide.dtype.type(1)
    negative = np.real(wide) < 0
    small = np.exp(np.where(negative, wide, -wide))
    return (np.where(negative, small, one) / (one + small)).astype(x.dtype)


def rsqrt(x: NDArray) -> Any:
    """`1 / sqrt(x)`."""
    wide = _widen(x)
    return (wide.dtype.type(1) / np.sqrt(wide)).astype(x.dtype)


# Signs and rounding.


def sign(x: NDArray) -> Any:
    """1, 0 or -1; of a complex number its direction; a zero or NaN is preserved."""
    return np.where(x == 0, x, np.sign(x)).astype(x.dtype)


def emit_sign(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit `sign`."""
    (x,) = operands
    if inputs[0].dtype.is_unsigned:
        return hlo.binary("minimum", x, hlo.full(1, inputs[0]))
    found = hlo.unary("sign", x)
    # XLA folds the sign of a constant -0.0 to 0.0.
    return zero_kept(hlo, found, x, inputs[0]) if inputs[0].dtype.is_float else found


def zero_kept(hlo: Hlo, result: H, x: H, common: ArrayType) -> H:
    """Emit a result, but the operand itself where that is a zero of either sign."""
    return hlo.select(hlo.compare("EQ", x, hlo.full(0.0, common)), x, result)


def emit_atan2(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the angle of a point.

    XLA folds the angle of the constants 0.0 and 0.0 to NaN. The angle of two zeros equals that of
    the first one and 1 with the second one's sign.
    """
    (y, x), (common,) = operands, outputs
    zero = hlo.full(0.0, common)
    at_origin = hlo.binary("and", hlo.compare("EQ", y, zero), hlo.compare("EQ", x, zero))
    one = copysign_of(hlo, hlo.full(1.0, common), x, common)
    return hlo.binary("atan2", y, hlo.select(at_origin, one, x))


def emit_absolute(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the absolute value; the smallest integer has none and stays."""
    if inputs[0].dtype.is_unsigned:
        return operands[0]
    (size,) = hlo.op("abs", operands, outputs)
    if not inputs[0].dtype.is_complex:
        return size
    # An infinite part gives infinity even if the other part is NaN.
    infinity = hlo.full(np.inf, outputs[0])
    for name in ("real", "imag"):
        (part,) = hlo.op(name, operands, outputs)
        infinite = hlo.compare("EQ", hlo.op("abs", (part,), outputs)[0], infinity)
        size = hlo.select(infinite, infinity, size)
    return size


def emit_copysign(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the first operand with the sign of the second, also where that is a zero or NaN."""
    x, y = operands
    return copysign_of(hlo, x, y, outputs[0])


def copysign_of(hlo: Hlo, x: H, y: H, common: ArrayType) -> H:
    """Emit the size of one number with the sign of another, both of this type."""
    bits = common.with_dtype(_bits(common.dtype))
    top = 1 << (common.dtype.bits - 1)
    (magnitude,) = hlo.op("bitcast_convert", (x,), (bits,))
    (sign_of,) = hlo.op("bitcast_convert", (y,), (bits,))
    magnitude = hlo.binary("and", magnitude, hlo.full(top - 1, bits))
    sign_of = hlo.binary("and", sign_of, hlo.full(top, bits))
    return hlo.op("bitcast_convert", (hlo.binary("or", magnitude, sign_of),), (common,))[0]


def absolute_of(hlo: Hlo, x: H, type: ArrayType) -> H:  # noqa: A002
    """Emit the absolute value of a real number of this type."""
    return hlo.op("abs", (x,), (type,))[0]


def emit_truncate(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit rounding towards zero."""
    (x,) = operands
    negative = hlo.compare("LT", x, hlo.full(0.0, inputs[0]))
    return hlo.select(negative, hlo.unary("ceil", x), hlo.unary("floor", x))


# Bits.  A shift by a negative number or by the width and more shifts everything out.


def left_shift(x: NDArray, y: NDArray) -> Any:
    """The bits moved up."""
    return np.left_shift(x, y)


def right_shift(x: NDArray, y: NDArray) -> Any:
    """The bits moved down; those that come in are the sign of a signed integer."""
    return np.right_shift(x, y)


def emit_right_shift(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit `right_shift`."""
    signed = inputs[0].dtype.signed
    return hlo.binary("shift_right_arithmetic" if signed else "shift_right_logical", *operands)


def count_bits(x: NDArray) -> Any:
    """Count the bits that are 1, in two's complement."""
    return np.bitwise_count(_unsigned(x)).astype(x.dtype)


def _unsigned(x: NDArray) -> NDArray:
    return x.astype(to_numpy(_bits(from_numpy(x.dtype))))


# Complex numbers and conversions.


def emit_conjugate(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit the complex conjugate."""
    part = inputs[0].with_dtype(inputs[0].dtype.real)
    (real,) = hlo.op("real", operands, (part,))
    (imag,) = hlo.op("imag", operands, (part,))
    return hlo.op("complex", (real, hlo.unary("negate", imag)), outputs)[0]


def make_complex(real: NDArray, imag: NDArray) -> Any:
    """The complex number with these parts."""
    dtype = to_numpy(from_numpy(real.dtype).complex)
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
    result.real = real
    result.imag = imag
    return result


def emit_make_complex(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
    """Emit `make_complex`."""
    part = outputs[0].with_dtype(outputs[0].dtype.real)
    if inputs[0].dtype is not part.dtype:
        operands = [hlo.convert(x, part) for x in operands]
    return hlo.op("complex", operands, outputs)[0]


def convert(x: NDArray, dtype: np.dtype[Any]) -> NDArray:
    """Cast: to bool by `!= 0`, complex to real by the real part, floats to integers towards zero.

    Floats beyond the range of an integer give its nearest end, NaN gives 0.
    """
    given, wanted = from_numpy(x.dtype), from_numpy(dtype)
    with np.errstate(all="ignore"):
        if wanted is BOOL:
            return np.asarray(x != 0)
        if given.is_complex and not wanted.is_complex:
            x, given = np.asarray(np.real(x)), given.real
        if given.is_float and wanted.is_integer:
            return _saturate(x.astype(np.float64), wanted)
        if _rounds_twice(given, wanted):
            x = x.astype(np.float32)
        return x.astype(dtype)


def _rounds_twice(given: DType, wanted: DType) -> bool:
    """Return whether a cast rounds by way of f32, as in XLA on CPUs."""
    return given is dtypes.F64 and wanted.is_float and wanted.bits == 16


def _saturate(x: NDArray, wanted: DType) -> NDArray:
    low, high = wanted.range
    integer = to_numpy(wanted).type
    truncated = np.trunc(np.where(np.isnan(x), 0.0, x))
    fits = (truncated >= low) & (truncated < float(high + 1))
    inside = np.where(fits, truncated, 0.0).astype(integer)
    end = np.where(truncated > 0, np.asarray(high, integer), np.asarray(low, integer))
    return np.asarray(np.where(fits, inside, end))


def emit_convert(hlo: Hlo, x: H, given: ArrayType, output: ArrayType) -> H:
    """Emit `convert`."""
    if given.dtype is output.dtype:
        return x
    if output.dtype is BOOL:
        zero = hlo.full(0 if given.dtype.kind is Kind.INT else 0.0, given)
        return hlo.compare("NE", x, zero)
    if given.dtype.is_complex and not output.dtype.is_complex:
        given = given.with_dtype(given.dtype.real)
        (x,) = hlo.op("real", (x,), (given,))
        if given.dtype is output.dtype:
            return x
    if _rounds_twice(given.dtype, output.dtype):
        x = hlo.convert(x, output.with_dtype(dtypes.F32))
    return hlo.convert(x, output)


# The operands of formulas: numbers with operators, in NumPy or as operations being emitted.
#
# A formula is a function of an `Arithmetic` and of numbers, which are combined by Python's
# operators; Python's numbers adapt to the other operand. Two constants must not be added to a
# number in turn (`(x + a) + b`): XLA adds the constants first.


Number: TypeAlias = Any
"""An array, or an array being emitted; with operators."""
State: TypeAlias = tuple[Number, ...]

_EXPONENT_OF_1 = 1.5 * 2.0**23 + 127
"""The lowest bits of this f32, and of its sum with an integer, are an exponent of f32."""


class Arithmetic(ABC):
    """The functions that formulas are made of, in one floating-point dtype."""

    def __init__(self, dtype: DType) -> None:
        self.bits = dtype.bits
        """32 or 64: a formula may end its series earlier for fewer."""

    @property
    def epsilon(self) -> float:
        """The unit in the last place of 1."""
        return 2.0**-23 if self.bits == 32 else 2.0**-52

    def choose(self, single: Any, double: Any) -> Any:
        """Return the alternative for the precision."""
        return single if self.bits == 32 else double

    @abstractmethod
    def function(self, name: str, x: Number) -> Number:
        """One of the functions of `FUNCTIONS`."""

    @abstractmethod
    def power(self, x: Number, y: Number) -> Number:
        """The power."""

    @abstractmethod
    def where(self, predicate: Number, x: Number, y: Number) -> Number:
        """X where the predicate holds, else y."""

    @abstractmethod
    def copysign(self, x: Number, y: Number) -> Number:
        """X with the sign of y."""

    @abstractmethod
    def two_to(self, n: Number) -> Number:
        """2 to the power of an integral number, in f32, if that is normal; of NaN some number."""

    @abstractmethod
    def masked(self, x: Number, mask: int) -> Number:
        """The f32 that has these of the bits of x."""

    @abstractmethod
    def nearest(self, x: Number) -> Number:
        """The nearest integer, the even one of two."""

    @abstractmethod
    def repeat(
        self, condition: Callable[[State], Number], step: Callable[[State], State], state: State
    ) -> State:
        """Repeat the step until the condition holds nowhere."""

    def where_any(self, predicate: Number, compute: Callable[[], Number], x: Number) -> Number:
        """Replace x where the predicate holds; `compute` runs only if it holds somewhere."""
        left = self.where(predicate, 1.0, 0.0)

        def replace(state: State) -> State:
            return self.where(predicate, compute(), state[0]), self.where(predicate, 0.0, 0.0)

        return self.repeat(lambda state: state[1] > 0, replace, (x, left))[0]

    def exp(self, x: Number) -> Number:
        """The exponential."""
        return self.function("exp", x)

    def expm1(self, x: Number) -> Number:
        """The exponential less 1."""
        return self.function("expm1", x)

    def log(self, x: Number) -> Number:
        """The natural logarithm."""
        return self.function("log", x)

    def log1p(self, x: Number) -> Number:
        """The logarithm of 1 and x."""
        from pscdsl._src.primitives.exponentials import log1p  # a formula of these

        return log1p(self, x)

    def sqrt(self, x: Number) -> Number:
        """The square root."""
        return self.function("sqrt", x)

    def sin(self, x: Number) -> Number:
        """The sine."""
        return self.function("sin", x)

    def cos(self, x: Number) -> Number:
        """The cosine."""
        return self.function("cos", x)

    def floor(self, x: Number) -> Number:
        """The largest integer below or at x."""
        return self.function("floor", x)

    def absolute(self, x: Number) -> Number:
        """The absolute value."""
        return self.function("absolute", x)

    def clip(self, x: Number, low: float, high: float) -> Number:
        """X cut to an interval; NaN stays."""
        return self.where(x < low, low, self.where(x > high, high, x))


FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "exp": (np.exp, "exponential"),
    "expm1": (np.expm1, "exponential_minus_one"),
    "log": (np.log, "log"),
    "sqrt": (np.sqrt, "sqrt"),
    "sin": (np.sin, "sine"),
    "cos": (np.cos, "cosine"),
    "floor": (np.floor, "floor"),
    "absolute": (np.absolute, "abs"),
}
"""Functions of one number, in NumPy and in StableHLO."""


class OverArrays(Arithmetic):
    """NumPy's arrays."""

    def __init__(self, dtype: DType) -> None:
        super().__init__(dtype)
        self.dtype = np.dtype(f"f{self.bits // 8}")

    def function(self, name: str, x: Number) -> Number:
        return FUNCTIONS[name][0](x)

    def power(self, x: Number, y: Number) -> Number:
        return np.power(self._number(x), self._number(y))

    def where(self, predicate: Number, x: Number, y: Number) -> Number:
        return np.asarray(np.where(predicate, self._number(x), self._number(y)))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    def copysign(self, x: Number, y: Number) -> Number:
        return np.copysign(self._number(x), y)

    def two_to(self, n: Number) -> Number:
        known = np.where(n == n, n, 0)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return np.ldexp(self.dtype.type(1), known.astype(np.int32))

    def masked(self, x: Number, mask: int) -> Number:
        return (np.asarray(x, np.float32).view(np.int32) & np.int32(mask)).view(np.float32)

    def nearest(self, x: Number) -> Number:
        return np.rint(x)

    def repeat(
        self, condition: Callable[[State], Number], step: Callable[[State], State], state: State
    ) -> State:
        while np.any(condition(state)):
            state = step(state)
        return state

    def _number(self, x: Number) -> Number:
        return self.dtype.type(x) if isinstance(x, int | float) else x


class OverOperations(Arithmetic):
    """Operations on arrays of one type."""

    def __init__(self, hlo: Hlo, type: ArrayType) -> None:  # noqa: A002
        super().__init__(type.dtype)
        self.hlo = hlo
        self.type = type

    def function(self, name: str, x: Number) -> Number:
        return Emitted(self, self.hlo.unary(FUNCTIONS[name][1], x.handle))

    def power(self, x: Number, y: Number) -> Number:
        return Emitted(self, self.hlo.binary("power", self.handle(x), self.handle(y)))

    def where(self, predicate: Number, x: Number, y: Number) -> Number:
        chosen = self.hlo.select(predicate.handle, self.handle(x), self.handle(y))
        return Emitted(self, chosen)

    def copysign(self, x: Number, y: Number) -> Number:
        return Emitted(self, copysign_of(self.hlo, self.handle(x), y.handle, self.type))

    def two_to(self, n: Number) -> Number:
        hlo, bits = self.hlo, self.type.with_dtype(I32)
        # The sum has its last bit at 1. Conversions cost more, as XLA clamps numbers that are too
        # large.
        (lowest,) = hlo.op("bitcast_convert", ((n + _EXPONENT_OF_1).handle,), (bits,))
        moved = hlo.binary("shift_left", lowest, hlo.full(23, bits))
        return Emitted(self, hlo.op("bitcast_convert", (moved,), (self.type,))[0])

    def masked(self, x: Number, mask: int) -> Number:
        hlo, bits = self.hlo, self.type.with_dtype(I32)
        (given,) = hlo.op("bitcast_convert", (x.handle,), (bits,))
        left = hlo.binary("and", given, hlo.full(mask, bits))
        return Emitted(self, hlo.op("bitcast_convert", (left,), (self.type,))[0])

    def nearest(self, x: Number) -> Number:
        return Emitted(self, self.hlo.unary("round_nearest_even", x.handle))

    def repeat(
        self, condition: Callable[[State], Number], step: Callable[[State], State], state: State
    ) -> State:
        def wrapped(handles: Sequence[H]) -> State:
            return tuple([Emitted(self, handle) for handle in handles])

        def body(handles: Sequence[H]) -> Sequence[H]:
            return [self.handle(each) for each in step(wrapped(handles))]

        def goes_on(handles: Sequence[H]) -> H:
            return self._any(condition(wrapped(handles)).handle)

        results = self.hlo.while_loop([self.handle(each) for each in state], goes_on, body)
        return wrapped(results)

    def handle(self, x: Number) -> H:
        """A number as a value of the module."""
        return x.handle if isinstance(x, Emitted) else self.hlo.full(x, self.type)

    def _any(self, predicate: H) -> H:
        scalar = ArrayType(BOOL)
        (found,) = self.hlo.reduce(
            [predicate],
            [self.hlo.full(False, scalar)],
            range(self.type.rank),
            [scalar],
            lambda a, b: [self.hlo.binary("or", a[0], b[0])],
        )
        return found


class Emitted:
    """A number, or a truth value, that the module computes."""

    __slots__ = ("at", "handle")

    def __init__(self, at: OverOperations, handle: H) -> None:
        self.at = at
        self.handle = handle

    def _with(self, name: str, x: Number, y: Number) -> Emitted:
        return Emitted(self.at, self.at.hlo.binary(name, self.at.handle(x), self.at.handle(y)))

    def _compare(self, direction: str, other: Number) -> Emitted:
        return Emitted(self.at, self.at.hlo.compare(direction, self.handle, self.at.handle(other)))

    def __add__(self, other: Number) -> Emitted:
        return self._with("add", self, other)

    def __radd__(self, other: Number) -> Emitted:
        return self._with("add", other, self)

    def __sub__(self, other: Number) -> Emitted:
        return self._with("subtract", self, other)

    def __rsub__(self, other: Number) -> Emitted:
        return self._with("subtract", other, self)

    def __mul__(self, other: Number) -> Emitted:
        return self._with("multiply", self, other)

    def __rmul__(self, other: Number) -> Emitted:
        return self._with("multiply", other, self)

    def __truediv__(self, other: Number) -> Emitted:
        return self._with("divide", self, other)

    def __rtruediv__(self, other: Number) -> Emitted:
        return self._with("divide", other, self)

    def __neg__(self) -> Emitted:
        return Emitted(self.at, self.at.hlo.unary("negate", self.handle))

    def __lt__(self, other: Number) -> Emitted:
        return self._compare("LT", other)

    def __le__(self, other: Number) -> Emitted:
        return self._compare("LE", other)

    def __gt__(self, other: Number) -> Emitted:
        return self._compare("GT", other)

    def __ge__(self, other: Number) -> Emitted:
        return self._compare("GE", other)

    def __eq__(self, other: object) -> Emitted:  # type: ignore[override]
        return self._compare("EQ", other)

    def __ne__(self, other: object) -> Emitted:  # type: ignore[override]
        return self._compare("NE", other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Emitted) -> Emitted:
        return Emitted(self.at, self.at.hlo.binary("and", self.handle, other.handle))

    def __or__(self, other: Emitted) -> Emitted:
        return Emitted(self.at, self.at.hlo.binary("or", self.handle, other.handle))

    def __invert__(self) -> Emitted:
        return Emitted(self.at, self.at.hlo.unary("not", self.handle))


@dataclass(frozen=True)
class Formula:
    """A function of elements, by its formula."""

    body: Callable[..., Number]

    def __call__(self, m: Arithmetic, *operands: Number) -> Number:
        """The formula inside of another one."""
        return self.body(m, *operands)

    def meaning(self, *operands: NDArray) -> NDArray:
        """Compute the formula over NumPy arrays."""
        given = from_numpy(operands[0].dtype)
        m = OverArrays(_wide(given))
        wide = [np.asarray(x, m.dtype) for x in operands]
        shape = np.broadcast_shapes(*(x.shape for x in wide))
        # NumPy turns arrays without axes into scalars, which treat division by zero differently.
        result: Number = self.body(m, *(np.broadcast_to(x, shape).reshape(-1) for x in wide))
        return np.asarray(result).reshape(shape).astype(operands[0].dtype)

    def emit(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        """Emit the formula as StableHLO."""
        output = outputs[0].with_dtype(inputs[0].dtype)
        wide = output.with_dtype(_wide(output.dtype))
        m = OverOperations(hlo, wide)
        result = self.body(m, *(Emitted(m, hlo.convert(x, wide)) for x in operands))
        return hlo.convert(result.handle, output)


def _wide(dtype: DType) -> DType:
    return F32 if dtype.bits == 16 else dtype


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """Horner's rule; the coefficient of the lowest power comes first."""
    total: Number = coefficients[-1]
    for each in reversed(coefficients[:-1]):
        total = total * x + each
    return total


def ratio(x: Number, above: Sequence[float], below: Sequence[float]) -> Number:
    """The quotient of two polynomials."""
    return polynomial(x, above) / polynomial(x, below)
