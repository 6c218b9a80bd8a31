"""Numbers of Python's that are known when the program runs: what Python's operators make of them.

Arithmetic is done in f64 and i64.  Where Python raises, because it divides by zero, or a function
is not defined, the result is that of NumPy: NaN or an infinity, and 0 for an integer.  Such are
numbers that a kernel is given, and those that `float`, `int`, `round` and `math` make of scalars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pscdsl._src.frontend.purity import refused
from pscdsl._src.frontend.size_numbers import Number
from pscdsl._src.ir.builder import PythonNumber, Value, Weak, promote
from pscdsl._src.language.meanings import MEANINGS
from pscdsl._src.primitives import elementwise
from pscdsl._src.primitives.custom_derivatives import StopGradient
from pscdsl.numpy.calling import python_number
from pscdsl.numpy.shorthand import cast, filled, where
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import F64, I64, PYTHON, DType, Kind

_KNOWN: Final = (bool, int, float, complex, Dim, Number)
_INTEGERS: Final = (int, Dim)


def is_number(value: object) -> bool:
    """Whether this is a number of Python's that is known when the program runs."""
    return isinstance(value, PythonNumber) and not value.is_array


def are_numbers(values: Sequence[object]) -> bool:
    """Whether all are numbers of Python's, some of them known when the program runs."""
    some = [is_number(each) for each in values]
    return any(some) and all(
        is_one or isinstance(each, _KNOWN) for each, is_one in zip(values, some, strict=True)
    )


def kind_of(value: Any) -> Kind:
    """The kind of a number of Python's."""
    if isinstance(value, PythonNumber | Number):
        return value.kind
    if isinstance(value, bool):
        return Kind.BOOL
    if isinstance(value, _INTEGERS):
        return Kind.INT
    return Kind.FLOAT if isinstance(value, float) else Kind.COMPLEX


def computed(value: Value, kind: Kind, *, given: bool = False) -> Weak:
    """A number that is computed as Python's own are, in 64 bits; what it meets decides its dtype.

    One that the kernel is `given` may be any, and meets no narrow integers.  A counter of 32 bits
    is one of sizes: it fits what it is computed in, or the call is refused.
    """
    if given or value.dtype is PYTHON[kind]:
        return PythonNumber(value, adapts=not given)
    return Weak(value.builder, kind, (), lambda dtype: cast(value, dtype), scalar=True)


def is_of(value: PythonNumber, name: str, classes: Mapping[str, type]) -> bool | None:
    """Whether a number is an instance of a class of this name; None if that is not known."""
    if name in classes:
        return issubclass(_CLASSES[value.kind], classes[name])
    return False if name in ("numpy.ndarray", "pscdsl.Array") else None


_CLASSES: Final = {Kind.BOOL: bool, Kind.INT: int, Kind.FLOAT: float, Kind.COMPLEX: complex}


def real_number(value: Any) -> PythonNumber | None:
    """The number that Python makes of a computed scalar; None if it is none, or complex."""
    number = python_number(value)
    return None if number is None or number.kind is Kind.COMPLEX else number


def integer_of(here: Any, rounding: str, value: PythonNumber) -> Any:
    """The integer that a function of NumPy's rounds a real number to, of 64 bits at most."""
    if value.kind < Kind.FLOAT:
        return whole(value)
    rounded = value.value if rounding == "trunc" else _numpy(rounding, here, value).value
    return PythonNumber(cast(rounded, I64))


def whole(value: Any) -> Any:
    """The integer that Python computes with in the place of a truth value."""
    if isinstance(value, PythonNumber) and value.kind is Kind.BOOL:
        return PythonNumber.of(value.at(I64), [value])
    return int(value) if isinstance(value, bool) else value


def as_float(value: PythonNumber) -> PythonNumber:
    """`float(value)` of a real number."""
    return PythonNumber.of(value.at(F64), [value])


def complex_of(here: Any, *parts: Any) -> PythonNumber:
    """`complex(real, imag)` of numbers, some of them computed scalars."""
    numbers: list[Value] = []
    for part in parts:
        number = real_number(part)
        if number is None:
            if not isinstance(part, int | float | Dim):
                raise refused("`complex`", *parts)
            number = here.weak(part)
        numbers.append(number.at(F64))
    return PythonNumber(elementwise.make_complex(*numbers))


def truth(here: Any, value: PythonNumber) -> Any:
    """`bool(value)`."""
    number = PythonNumber.of(value.value, [value])
    return number if value.kind is Kind.BOOL else _numpy("not_equal", here, number, 0)


def operands(name: str, left: Any, right: Any) -> tuple[Any, Any] | str:
    """What an operator is applied to, or why Python may give what has no dtype here."""
    if not are_numbers((left, right)):
        return left, right
    kinds = kind_of(left), kind_of(right)
    if not (name in ("BitAnd", "BitOr", "BitXor") and kinds == (Kind.BOOL, Kind.BOOL)):
        left, right = whole(left), whole(right)
    if max(kinds) <= Kind.INT:
        if name == "Pow" and not (isinstance(right, int) and right >= 0):
            return "the power may be negative, which makes a float of integers"
        if name == "LShift":
            return "the result may have more than 64 bits"
    return left, right


def result(value: Any, *given: Any) -> Any:
    """The result of an operator: a scalar of NumPy's if it was given one."""
    if isinstance(value, PythonNumber):
        if any(isinstance(each, PythonNumber) and each.is_array for each in given):
            return value.as_array()
    return value


def extremum(here: Any, name: str, items: Sequence[Any]) -> Any:
    """`min` or `max` of integers, or of floats: the first of those that are equal.

    None if these are other things.  Of an integer and a float, Python gives either.
    """
    if not are_numbers(items):
        return None
    kinds = {kind_of(each) for each in items}
    if len(kinds) != 1 or not kinds <= {Kind.INT, Kind.FLOAT}:
        return None
    return furthest(here, name, items)


def furthest(here: Any, name: str, items: Sequence[Any]) -> Any:
    """`min` or `max` as Python finds it: a later item only if it lies further."""
    found, *rest = items
    promote(*items, weak_ok=True)  # a Failure for other dtypes: it is not known which one is taken
    for each in rest:
        precedes = _numpy("less" if name == "min" else "greater", here, each, found)
        found = _numpy("where", here, precedes, each, found)
    return found


def of_math(here: Any, name: str, function: str, args: Sequence[Any]) -> Any:
    """A function of `math` that NumPy or SciPy has, too; None if it is another one.

    It is None, too, if all arguments are known, or if one is no real number.
    """
    found = [_scalar(each) for each in args]
    if not are_numbers(found) or Kind.COMPLEX in map(kind_of, found):
        return None
    if name in _ROUNDING and len(found) == 1:
        return integer_of(here, name, found[0])
    numbers = [as_float(each) if isinstance(each, PythonNumber) else each for each in found]
    if name == "log" and len(numbers) == 2:
        first, second = (_numpy("log", here, each) for each in numbers)
        return _numpy("divide", here, first, second)
    if len(numbers) != _SAME.get(name):
        return None
    result = _numpy(function, here, *numbers)
    return logarithm(name, numbers[0], result) if name in _BASES else result


def _scalar(value: Any) -> Any:
    """A computed scalar as Python's number; a number made of sizes, and all else, as it is."""
    number = None if isinstance(value, Number) else real_number(value)
    return value if number is None else number


def logarithm(name: str, x: Weak, result: Weak) -> Weak:
    """A logarithm to base 2 or 10, which is exact for powers as Python's is."""

    def at(dtype: DType) -> Value:
        number, power = x.at(dtype), result.at(dtype)
        nearest = elementwise.round_even(power)
        exact = elementwise.equal(elementwise.power(_BASES[name], nearest), number)
        rest = where(exact, elementwise.subtract(nearest, power), filled(power, 0.0))
        found: Value = elementwise.add(power, StopGradient()(rest))
        return found

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
"""Functions that mean the same of floats, with the number of their arguments."""


def _numpy(name: str, here: Any, *args: Any) -> Any:
    meaning: Any = MEANINGS[name if "." in name else f"numpy.{name}"]
    return meaning.apply(here, args, {})
