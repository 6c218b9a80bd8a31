"""Truth values, comparisons, bounds, and elements chosen from several arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pscdsl._src.ir.broadcasting import broadcast_shapes
from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import OMITTED, describe, function
from pscdsl._src.language.results import Result, new_if
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.reductions import Reduce
from pscdsl.numpy.calling import as_array, of_arrays
from pscdsl.numpy.constants import float_info
from pscdsl.numpy.elementwise import REAL, literal, require, to_inexact, together
from pscdsl.numpy.shorthand import at, cast, is_nan, truth, where
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import DataDependentShape
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL, U64
from pscdsl.typing.python_containers import is_sequence

# Truth values, tests of floating-point numbers, closeness and equality of arrays.


@of_arrays("numpy.logical_and", alone=("x1", "x2"))
def logical_and(x1: Value, x2: Value, /) -> Value:
    """Return whether both are other than zero."""
    return truth(x1) & truth(x2)


@of_arrays("numpy.logical_or", alone=("x1", "x2"))
def logical_or(x1: Value, x2: Value, /) -> Value:
    """Return whether one of them is other than zero."""
    return truth(x1) | truth(x2)


@of_arrays("numpy.logical_xor", alone=("x1", "x2"))
def logical_xor(x1: Value, x2: Value, /) -> Value:
    """Return whether exactly one of them is other than zero."""
    return truth(x1) ^ truth(x2)


@of_arrays("numpy.logical_not", alone=("x",))
def logical_not(x: Value, /) -> Value:
    """Return whether each element is zero."""
    return ~truth(x)


@of_arrays("numpy.isnan", alone=("x",))
def isnan(x: Value, /) -> Value:
    """Return whether each element is NaN; of a complex number, one of its parts."""
    return is_nan(x) if x.dtype.is_inexact else _everywhere(x, False)


@of_arrays("numpy.isfinite", alone=("x",))
def isfinite(x: Value, /) -> Value:
    """Return whether each element is neither NaN nor infinite."""
    if x.dtype.is_complex:
        return e.is_finite(e.real(x)) & e.is_finite(e.imag(x))
    if not x.dtype.is_float:
        return _everywhere(x, True)
    return e.is_finite(x)


@of_arrays("numpy.isinf", alone=("x",))
def isinf(x: Value, /) -> Value:
    """Return whether each element is infinite; of a complex number, one of its parts."""
    if x.dtype.is_complex:
        either: Value = isinf(e.real(x)) | isinf(e.imag(x))
        return either
    if not x.dtype.is_float:
        return _everywhere(x, False)
    return e.equal(e.absolute(x), math.inf)


@of_arrays("numpy.isposinf", alone=("x",), result=Result.NEW)
def isposinf(x: Value) -> Value:
    """Return whether each element is positive infinity."""
    require("numpy.isposinf", x, REAL)
    return e.equal(to_inexact(x), math.inf)


@of_arrays("numpy.isneginf", alone=("x",), result=Result.NEW)
def isneginf(x: Value) -> Value:
    """Return whether each element is negative infinity."""
    require("numpy.isneginf", x, REAL)
    return e.equal(to_inexact(x), -math.inf)


@of_arrays("numpy.iscomplex", alone=("x",), result=Result.NEW)
def iscomplex(x: Value) -> Value:
    """Return whether each element has an imaginary part."""
    if not x.dtype.is_complex:
        return _everywhere(x, False)
    return e.not_equal(e.imag(x), 0)


@of_arrays("numpy.isreal", alone=("x",), result=Result.NEW)
def isreal(x: Value) -> Value:
    """Return whether each element has no imaginary part."""
    return logical_not(iscomplex(x))  # type: ignore[no-any-return]


@of_arrays("numpy.isclose", together=("a", "b"), traced=("rtol", "atol"), result=Result.NEW)
def isclose(
    a: Value, b: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Value:
    """Return whether `abs(a - b) <= atol + rtol * abs(b)`; infinities are close to themselves."""
    a, b = to_inexact(a), to_inexact(b)
    bound = e.absolute(b) * rtol + atol
    near = e.less_equal(e.absolute(a - b), bound) & isfinite(b)
    result: Value = near | e.equal(a, b)
    if equal_nan:
        result = result | is_nan(a) & is_nan(b)
    return result


@of_arrays("numpy.allclose", together=("a", "b"), traced=("rtol", "atol"), result=Result.NEW)
def allclose(
    a: Value, b: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Value:
    """Return whether `isclose` holds of all elements."""
    return _all(isclose(a, b, rtol, atol, equal_nan))


@of_arrays("numpy.array_equal", together=("a1", "a2"), result=Result.NEW)
def array_equal(a1: Value, a2: Value, equal_nan: bool = False) -> Value:
    """Return whether shapes and elements are the same; for some sizes but not all is an error."""
    here = a1.builder
    if a1.ndim != a2.ndim or any(
        isinstance(left - right, int) and left - right != 0
        for left, right in zip(a1.shape, a2.shape, strict=False)
    ):
        return here.literal(False, BOOL)
    return _all(_same(a1, a2, equal_nan))


@of_arrays("numpy.array_equiv", together=("a1", "a2"), result=Result.NEW)
def array_equiv(a1: Value, a2: Value) -> Value:
    """Whether elements are the same after broadcasting; shapes that do not fit are an error."""
    return _all(_same(a1, a2, False))


def _same(a1: Value, a2: Value, equal_nan: bool) -> Value:
    broadcast_shapes(a1.builder.facts, a1.shape, a2.shape)
    result: Value = e.equal(a1, a2)
    if equal_nan and a1.dtype.is_inexact:
        result = result | is_nan(a1) & is_nan(a2)
    return result


def _all(x: Value) -> Value:
    return Reduce("all", tuple(range(x.ndim)))(x) if x.ndim else x


def _everywhere(x: Value, answer: bool) -> Value:
    return x.builder.full(answer, x.shape, BOOL)


# Elements chosen from several arrays, and bounds.


def select_elements(predicate: Value, x: Value, y: Value) -> Value:
    """Elements of `x` where the predicate holds, elsewhere of `y`, with broadcasting."""
    return where(*together(predicate, x, y))


@of_arrays(
    "numpy.where",
    together=("x", "y"),
    alone=("condition",),
    weak=("x", "y"),
    result=Result.ARRAY,
    widens=True,
)
def where_(condition: Value, x: Value | None = None, y: Value | None = None, /) -> Value:
    """Elements of `x` where the condition is other than zero, elsewhere of `y`."""
    if x is None and y is None:
        raise Failure(
            DataDependentShape(
                what="`np.where` with one argument",
                instead="give it the elements for both cases, `np.where(condition, x, y)`",
            )
        )
    if x is None or y is None:
        problem = "takes a condition and elements for both cases"
        raise Failure(BadArguments(function="numpy.where", problem=problem))
    return select_elements(truth(condition), x, y)


@function(
    "numpy.select",
    together=("choicelist", "default"),
    alone=("condlist",),
    weak=("default",),
    cast=("choicelist",),
    result=Result.ARRAY,
)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Value:
    """From the first array whose condition holds, else the default."""
    name = "numpy.select"
    conditions = [as_array(each, name, "condlist") for each in items(name, condlist)]
    choices = [as_array(each, name, "choicelist") for each in items(name, choicelist)]
    if len(conditions) != len(choices):
        problem = f"takes as many conditions as choices, not {len(conditions)} and {len(choices)}"
        raise Failure(BadArguments(function=name, problem=problem))
    first = choices[0]
    result = (
        first.builder.literal(default, first.dtype)
        if isinstance(default, int)
        else as_array(default, name, "default")
    )
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        if condition.dtype is not BOOL:
            raise Failure(DtypeNotAccepted(function=name, given=condition.type, accepts="bool"))
        result = select_elements(condition, choice, result)
    return result


MOST_CHOICES: Final = 63
"""NumPy takes no more arrays."""
MOST_CHOSEN_AXES: Final = 32
"""NumPy takes no arrays of more axes."""


@function(
    "numpy.choose", together=("choices",), alone=("a",), weak_items=("choices",), result=Result.NEW
)
def choose(a: Value, choices: Sequence[Value] | Value, *, mode: str = "raise") -> Value:
    """From the array whose number stands in `a`; numbers are clamped, or wrapped around."""
    a = as_array(a, "numpy.choose", "a")
    require("numpy.choose", a, "integer")
    if a.dtype is U64:  # which NumPy does not cast to i64
        accepts = "signed integer or 8- to 32-bit unsigned integer"
        raise Failure(DtypeNotAccepted(function="numpy.choose", given=a.type, accepts=accepts))
    if mode not in ("raise", "wrap", "clip"):
        problem = f"takes `mode` as 'raise', 'wrap' or 'clip', not {describe(mode)}"
        raise Failure(BadArguments(function="numpy.choose", problem=problem))
    pieces = [as_array(each, "numpy.choose", "choices") for each in items("numpy.choose", choices)]
    if len(pieces) > MOST_CHOICES:
        problem = f"takes at most {MOST_CHOICES} arrays to choose from, not {len(pieces)}"
        raise Failure(BadArguments(function="numpy.choose", problem=problem))
    if any(x.ndim > MOST_CHOSEN_AXES for x in (a, *pieces)):
        problem = f"takes arrays of at most {MOST_CHOSEN_AXES} axes"
        raise Failure(BadArguments(function="numpy.choose", problem=problem))
    if mode == "wrap":
        a = e.remainder(a, len(pieces))
    result = pieces[0]
    for number, piece in enumerate(pieces[1:], 1):
        result = select_elements(e.greater_equal(a, number), piece, result)
    return together(result, a)[0] if len(pieces) == 1 and a.ndim else result


def items(name: str, arrays: Any) -> list[Value]:
    """The arrays of a sequence; an array counts by its first axis, of known size."""
    if isinstance(arrays, Value):
        size = arrays.shape[0] if arrays.ndim else None
        if not isinstance(size, int):
            problem = f"takes a sequence of arrays of known length, not {arrays.type}"
            short = name.replace("numpy.", "np.")
            instead = f"put the arrays into a list: `{short}([x, y])`"
            raise Failure(BadArguments(function=name, problem=problem, instead=instead))
        return [at(arrays, 0, index) for index in range(size)]
    if not is_sequence(arrays) or not arrays:
        problem = "takes a sequence of arrays, at least one"
        raise Failure(BadArguments(function=name, problem=problem))
    return list(arrays)


@of_arrays(
    "numpy.clip",
    together=("a", "a_min", "a_max", "min", "max"),
    weak=("a_min", "a_max", "min", "max"),
    result=Result.NEW,
    widens=True,
)
def clip(
    a: Value,
    a_min: Value | None = OMITTED,
    a_max: Value | None = OMITTED,
    *,
    min: Value | None = OMITTED,  # noqa: A002
    max: Value | None = OMITTED,  # noqa: A002
) -> Value:
    """No less than one bound and no more than another: `minimum(maximum(a, a_min), a_max)`."""
    bounds = a_min, a_max, min, max
    given = [bound is not OMITTED for bound in bounds]
    if given[0] != given[1] or (given[0] and any(given[2:])):
        problem = "takes bounds as `a_min` and `a_max`, or as `min` or `max`"
        instead = "None is no bound, as in `np.clip(x, low, None)`"
        raise Failure(BadArguments(function="numpy.clip", problem=problem, instead=instead))
    a_min, a_max, min, max = (None if x is OMITTED else x for x in bounds)  # noqa: A001
    require("numpy.clip", a, REAL)
    low, high = a_min if min is None else min, a_max if max is None else max
    if low is None and high is None:
        require("numpy.clip", a, "real")
    if low is not None:
        a = e.maximum(a, low)
    return a if high is None else e.minimum(a, high)


@of_arrays("numpy.fmax", together=("x1", "x2"), weak=("x1", "x2"), widens=True)
def fmax(x1: Value, x2: Value, /) -> Value:
    """The larger; where one is NaN, the other."""
    return _ignoring_nan("numpy.fmax", e.maximum, x1, x2)


@of_arrays("numpy.fmin", together=("x1", "x2"), weak=("x1", "x2"), widens=True)
def fmin(x1: Value, x2: Value, /) -> Value:
    """The smaller; where one is NaN, the other."""
    return _ignoring_nan("numpy.fmin", e.minimum, x1, x2)


def _ignoring_nan(name: str, extremum: e.Elementwise, x1: Value, x2: Value) -> Value:
    require(name, x1, REAL)
    if not x1.dtype.is_float:
        return extremum(x1, x2)
    x1, x2 = together(x1, x2)
    return where(is_nan(x1), x2, where(is_nan(x2), x1, extremum(x1, x2)))


def _is_copied(given: Mapping[str, Any]) -> bool:
    """Return whether the numbers are copied, as they are by default."""
    return given.get("copy", True) is True


@of_arrays(
    "numpy.nan_to_num",
    together=("x", "nan", "posinf", "neginf"),
    weak_items=("nan", "posinf", "neginf"),
    keeps=("x",),
    result=new_if(_is_copied),
)
def nan_to_num(
    x: Value,
    copy: bool = True,
    nan: Any = 0.0,
    posinf: Value | None = None,
    neginf: Value | None = None,
) -> Value:
    """Numbers in place of NaN and infinities, by default 0 and the largest of the dtype."""
    if copy is not True:
        problem = "makes a new array here; leave out `copy`"
        raise Failure(BadArguments(function="numpy.nan_to_num", problem=problem))
    if not x.dtype.is_inexact:
        return x
    dtype, here = x.dtype, x.builder
    if dtype.is_complex:
        given = [None if bound is None else _real(bound) for bound in (posinf, neginf)]
        missing = _real(nan) if isinstance(nan, Value) else nan
        parts = [nan_to_num(part, True, missing, *given) for part in (e.real(x), e.imag(x))]
        return cast(e.make_complex(*parts), dtype)
    limits = float_info(dtype)
    high = here.literal(limits.max, dtype) if posinf is None else posinf
    low = here.literal(limits.min, dtype) if neginf is None else neginf
    missing = nan if isinstance(nan, Value) else here.literal(nan, dtype)
    infinite = here.literal(float("inf"), dtype)
    result = select_elements(e.equal(x, infinite), high, x)
    result = select_elements(e.equal(x, -infinite), low, result)
    return select_elements(is_nan(x), missing, result)


def _real(number: Value) -> Value:
    """What takes the place of a part of a complex number: known to be real."""
    value = literal(number)
    if value is None or complex(value).imag:
        problem = "takes real numbers that are known while checking for an array of complex ones"
        raise Failure(BadArguments(function="numpy.nan_to_num", problem=problem))
    return e.real(number)
