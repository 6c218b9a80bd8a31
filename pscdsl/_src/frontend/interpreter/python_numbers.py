"""Numbers of Python's that are known when the program runs: what Python's operators make of them.

Arithmetic is done in f64 and i64.  Where Python raises, because it divides by zero, or a function
is not defined, the result is that of NumPy: NaN or an infinity, and 0 for an integer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pscdsl._src.frontend.values import Number
from pscdsl._src.ir.builder import PythonNumber, Value, Weak, promote
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.numpy.shorthand import cast
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import F64, I64, PYTHON, Kind

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


def whole(value: Any) -> Any:
    """The integer that Python computes with in the place of a truth value."""
    if isinstance(value, PythonNumber) and value.kind is Kind.BOOL:
        return PythonNumber.of(value.at(I64), [value])
    return int(value) if isinstance(value, bool) else value


def as_float(value: PythonNumber) -> PythonNumber:
    """`float(value)` of a real number."""
    return PythonNumber.of(value.at(F64), [value])


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


def of_math(here: Any, name: str, numpys: str, args: Sequence[Any]) -> Any:
    """A function of `math` that NumPy has, too; None if it is another one, or given others."""
    if name not in _SAME and not (name == "log" and len(args) == 1):
        return None
    if not are_numbers(args) or Kind.COMPLEX in map(kind_of, args):
        return None
    numbers = [as_float(each) if isinstance(each, PythonNumber) else each for each in args]
    return _numpy(numpys, here, *numbers)


_SAME: Final = frozenset(
    "sqrt cbrt exp exp2 expm1 log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh "
    "asinh acosh atanh hypot pow copysign fabs degrees radians isnan isinf isfinite".split()
)


def _numpy(name: str, here: Any, *args: Any) -> Any:
    meaning: Any = MEANINGS[f"numpy.{name}"]
    return meaning.apply(here, args, {})
