"""Python numbers that are known only at run time, and Python's operators on them.

Arithmetic is done in f64 and i64. Where Python raises, because of a division by zero or an
undefined function, the result is that of NumPy: NaN or an infinity, and 0 for an integer. Such
numbers are arguments of a kernel, and results of `float`, `int`, `round` and `math` for scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeGuard

from pscdsl._src.frontend.interpreter.places import apply_numpy
from pscdsl._src.frontend.purity import refused
from pscdsl._src.frontend.size_numbers import Number
from pscdsl._src.frontend.values import AnyValue, Array, NumericValue
from pscdsl._src.ir.builder import Builder, PythonNumber, Value, Weak, promote
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.primitives import elementwise
from pscdsl._src.primitives.custom_derivatives import StopGradient
from pscdsl.numpy.calling import python_number
from pscdsl.numpy.shorthand import cast, filled, where
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import F64, I64, PYTHON, DType, Kind

_KNOWN: Final = (bool, int, float, complex, Dim, Number)
_INTEGERS: Final = (int, Dim)
AnyNumber: TypeAlias = PythonNumber | Number | bool | int | float | complex | Dim
"""A Python number, known or not."""


def is_number(value: AnyValue) -> TypeGuard[PythonNumber]:
    """Return whether a value is a Python number that is known only at run time."""
    return isinstance(value, PythonNumber) and not value.is_array


def are_numbers(values: Sequence[AnyValue]) -> TypeGuard[Sequence[AnyNumber]]:
    """Return whether all values are Python numbers, some of them known only at run time."""
    some = [is_number(each) for each in values]
    return any(some) and all(
        is_one or isinstance(each, _KNOWN) for each, is_one in zip(values, some, strict=True)
    )


def kind_of(value: AnyNumber) -> Kind:
    """Return the kind of a Python number."""
    if isinstance(value, PythonNumber | Number):
        return value.kind
    if isinstance(value, bool):
        return Kind.BOOL
    if isinstance(value, _INTEGERS):
        return Kind.INT
    return Kind.FLOAT if isinstance(value, float) else Kind.COMPLEX


def computed(value: Value, kind: Kind, *, given: bool = False) -> Weak:
    """Return a number computed in 64 bits, as Python's are; other operands decide its dtype.

    A number that the kernel is `given` may have any value, and is not combined with narrow
    integers. A counter of 32 bits counts up to a size: it fits the dtype of the computation, or the
    call is refused.
    """
    if given or value.dtype is PYTHON[kind]:
        return PythonNumber(value, adapts=not given)
    return Weak(value.builder, kind, (), lambda dtype: cast(value, dtype), scalar=True)


def is_of(value: PythonNumber, name: str, classes: Mapping[str, type]) -> bool | None:
    """Return whether a number is an instance of a class of this name; None if that is unknown."""
    if name in classes:
        return issubclass(_CLASSES[value.kind], classes[name])
    return False if name in ("numpy.ndarray", "pscdsl.Array") else None


_CLASSES: Final = {Kind.BOOL: bool, Kind.INT: int, Kind.FLOAT: float, Kind.COMPLEX: complex}


def real_number(value: AnyValue) -> PythonNumber | None:
    """Convert a computed scalar to a Python number; None if it is no scalar, or complex."""
    number = python_number(value)
    return None if number is None or number.kind is Kind.COMPLEX else number


ROUNDINGS: Final[dict[str, Callable[[Value], Value]]] = {
    "floor": elementwise.floor,
    "ceil": elementwise.ceil,
    "trunc": lambda x: x,  # as the conversion to integers does
    "rint": elementwise.round_even,
}
"""The roundings of floats, by the names of NumPy's functions."""


def integer_of(rounding: str, value: PythonNumber) -> PythonNumber:
    """Round a real number to a 64-bit integer."""
    if value.kind < Kind.FLOAT:
        return whole(value)
    return PythonNumber(cast(ROUNDINGS[rounding](value.value), I64))


def whole(value: PythonNumber) -> PythonNumber:
    """Return a truth value as the integer that Python computes with; other numbers as given."""
    return PythonNumber.of(value.at(I64), [value]) if value.kind is Kind.BOOL else value


def as_float(value: PythonNumber) -> PythonNumber:
    """Return `float(value)` of a real number."""
    return PythonNumber.of(value.at(F64), [value])


def complex_of(here: Builder, *parts: AnyValue) -> PythonNumber:
    """Return `complex(real, imag)` of numbers, some of them computed scalars."""
    numbers: list[Value] = []
    for part in parts:
        number: Weak | None = real_number(part)
        if number is None:
            if not isinstance(part, int | float | Dim):
                raise refused("`complex`", *parts)
            number = here.weak(part)
        numbers.append(number.at(F64))
    return PythonNumber(elementwise.make_complex(*numbers))


def truth(here: Builder, value: PythonNumber) -> Array:
    """Return `bool(value)`."""
    number = PythonNumber.of(value.value, [value])
    return number if value.kind is Kind.BOOL else apply_numpy(here, "not_equal", number, 0)


def operands(
    name: str, left: NumericValue, right: NumericValue
) -> tuple[NumericValue, NumericValue] | str:
    """Return the operands of an operator, or the reason why Python's result has no dtype here."""
    numbers = left, right
    if not are_numbers(numbers):
        return left, right
    kinds = [kind_of(number) for number in numbers]
    if max(kinds) <= Kind.INT:
        if name == "Pow" and not (isinstance(right, int) and right >= 0):
            return "the power may be negative, which makes a float of integers"
        if name == "LShift":
            return "the result may have more than 64 bits"
    if name in ("BitAnd", "BitOr", "BitXor") and max(kinds) is Kind.BOOL:
        return left, right
    left, right = (
        whole(x) if isinstance(x, PythonNumber) else int(x) if isinstance(x, bool) else x
        for x in numbers
    )
    return left, right


def result(value: Array, *given: NumericValue) -> Array:
    """Return the result of an operator: a NumPy scalar if any operand was one."""
    if isinstance(value, PythonNumber):
        if any(isinstance(each, PythonNumber) and each.is_array for each in given):
            return value.as_array()
    return value


def extremum(here: Builder, name: str, items: Sequence[AnyValue]) -> NumericValue | None:
    """Return `min` or `max` of integers, or of floats: the first of equal ones.

    None for other values. For an integer and a float, Python may return either.
    """
    if not are_numbers(items):
        return None
    kinds = {kind_of(each) for each in items}
    if len(kinds) != 1 or not kinds <= {Kind.INT, Kind.FLOAT}:
        return None
    return furthest(here, name, items)


def furthest(here: Builder, name: str, items: Sequence[NumericValue]) -> NumericValue:
    """Return `min` or `max` as in Python: a later item only if it is strictly further."""
    promote(*items, weak_ok=True)  # a Failure for other dtypes: the result's is unknown
    found, *rest = items
    for item in rest:
        precedes = apply_numpy(here, "less" if name == "min" else "greater", item, found)
        found = apply_numpy(here, "where", precedes, item, found)
    return found


def of_math(here: Builder, name: str, function: str, args: Sequence[AnyValue]) -> Array | None:
    """Apply a function of `math` that NumPy or SciPy also has; None for other functions.

    The result is also None if all arguments are known, or if one is no real number.
    """
    found = [_scalar(arg) for arg in args]
    if not are_numbers(found) or Kind.COMPLEX in map(kind_of, found):
        return None
    if name in _ROUNDING and len(found) == 1 and isinstance(found[0], PythonNumber):
        return integer_of(name, found[0])
    numbers = [as_float(x) if isinstance(x, PythonNumber) else x for x in found]
    if name == "log" and len(numbers) == 2:
        first, second = (apply_numpy(here, "log", number) for number in numbers)
        return apply_numpy(here, "divide", first, second)
    if len(numbers) != _SAME.get(name):
        return None
    result = apply_numpy(here, function, *numbers)
    return logarithm(here, name, numbers[0], result) if name in _BASES else result


def _scalar(value: AnyValue) -> AnyValue:
    """Return a computed scalar as a Python number; any other value as given."""
    number = None if isinstance(value, Number) else real_number(value)
    return value if number is None else number


def logarithm(here: Builder, name: str, x: AnyNumber, result: Array) -> Weak:
    """Return a logarithm to base 2 or 10 that is exact for powers, as in Python."""
    given = x if isinstance(x, Weak) else here.weak(x)
    assert isinstance(result, Weak)

    def at(dtype: DType) -> Value:
        number, power = given.at(dtype), result.at(dtype)
        nearest = elementwise.round_even(power)
        exact = elementwise.equal(elementwise.power(_BASES[name], nearest), number)
        rest = where(exact, elementwise.subtract(nearest, power), filled(power, 0.0))
        return elementwise.add(power, StopGradient()(rest))

    if isinstance(result, PythonNumber):
        return PythonNumber.of(at(F64), [result])
    return Weak(result.builder, result.kind, (), at)


_BASES: Final = {"log2": 2.0, "log10": 10.0}
_ROUNDING: Final = ("floor", "ceil", "trunc")
_SAME: Final = {
    **dict.fromkeys(
        "sqrt cbrt exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh "
        "asinh acosh atanh fabs degrees radians isnan isinf isfinite erf erfc gamma "
        "lgamma".split(),
        1,
    ),
    **dict.fromkeys("atan2 hypot pow copysign fmod".split(), 2),
}
"""Functions with the same meaning for floats, with the number of their arguments."""


def numpy_function(name: str) -> Meaning:
    """Return a function of NumPy, or one of a qualified name."""
    function = MEANINGS[name if "." in name else f"numpy.{name}"]
    assert isinstance(function, Meaning)
    return function
