"""What formulas compute with: numbers with operators, in NumPy or as operations being emitted.

A formula is a function of an `Arithmetic` and of numbers, which are added, compared and so on by
Python's operators; Python's numbers adapt to what they meet.  Constants must not be added to one
another by way of a number (`(x + a) + b`): XLA adds them first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.ir.primitive import H, Hlo, NDArray, Types
from pscdsl._src.primitives.scalar_functions import copysign_of
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import BOOL, F32, I32, DType

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
        """What belongs to the precision."""
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
        """The state after so many steps that the condition holds nowhere."""

    def where_any(self, predicate: Number, compute: Callable[[], Number], x: Number) -> Number:
        """X, but what is computed where the predicate holds; nothing is, if that is nowhere."""
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
        from pscdsl._src.primitives.formulas.exponentials import log1p  # a formula of these

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
        # The sum has its last bit at 1.  Conversions cost more, as XLA cuts what is too large.
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

    def _compared(self, direction: str, other: Number) -> Emitted:
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
        return self._compared("LT", other)

    def __le__(self, other: Number) -> Emitted:
        return self._compared("LE", other)

    def __gt__(self, other: Number) -> Emitted:
        return self._compared("GT", other)

    def __ge__(self, other: Number) -> Emitted:
        return self._compared("GE", other)

    def __eq__(self, other: object) -> Emitted:  # type: ignore[override]
        return self._compared("EQ", other)

    def __ne__(self, other: object) -> Emitted:  # type: ignore[override]
        return self._compared("NE", other)

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
        """What NumPy computes."""
        given = from_numpy(operands[0].dtype)
        m = OverArrays(_wide(given))
        wide = [np.asarray(x, m.dtype) for x in operands]
        shape = np.broadcast_shapes(*(x.shape for x in wide))
        # Arrays without axes turn into scalars, whose division by zero is another one.
        result: Number = self.body(m, *(np.broadcast_to(x, shape).reshape(-1) for x in wide))
        return np.asarray(result).reshape(shape).astype(operands[0].dtype)

    def emit(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        """What StableHLO computes."""
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
