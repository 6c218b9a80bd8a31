"""Truth values, tests of floating-point numbers, closeness and equality of arrays."""

from __future__ import annotations

import math

from pscdsl._src.ir.builder import Value, broadcast_shapes
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.reductions import Reduce
from pscdsl.numpy.calling import of_arrays
from pscdsl.numpy.elementwise import REAL, require, to_inexact
from pscdsl.numpy.shorthand import is_nan, truth
from pscdsl.typing.dtypes import BOOL


@of_arrays("numpy.logical_and", alone=("x1", "x2"))
def logical_and(x1: Value, x2: Value, /) -> Value:
    """Whether both are other than zero."""
    result: Value = e.bitwise_and(truth(x1), truth(x2))
    return result


@of_arrays("numpy.logical_or", alone=("x1", "x2"))
def logical_or(x1: Value, x2: Value, /) -> Value:
    """Whether one of them is other than zero."""
    result: Value = e.bitwise_or(truth(x1), truth(x2))
    return result


@of_arrays("numpy.logical_xor", alone=("x1", "x2"))
def logical_xor(x1: Value, x2: Value, /) -> Value:
    """Whether exactly one of them is other than zero."""
    result: Value = e.bitwise_xor(truth(x1), truth(x2))
    return result


@of_arrays("numpy.logical_not", alone=("x",))
def logical_not(x: Value, /) -> Value:
    """Whether each element is zero."""
    result: Value = e.invert(truth(x))
    return result


@of_arrays("numpy.isnan", alone=("x",))
def isnan(x: Value, /) -> Value:
    """Whether each element is NaN; of a complex number, one of its parts."""
    return is_nan(x) if x.dtype.is_inexact else _everywhere(x, False)


@of_arrays("numpy.isfinite", alone=("x",))
def isfinite(x: Value, /) -> Value:
    """Whether each element is neither NaN nor infinite."""
    if x.dtype.is_complex:
        both: Value = e.bitwise_and(e.is_finite(e.real(x)), e.is_finite(e.imag(x)))
        return both
    if not x.dtype.is_float:
        return _everywhere(x, True)
    result: Value = e.is_finite(x)
    return result


@of_arrays("numpy.isinf", alone=("x",))
def isinf(x: Value, /) -> Value:
    """Whether each element is infinite; of a complex number, one of its parts."""
    if x.dtype.is_complex:
        either: Value = e.bitwise_or(isinf(e.real(x)), isinf(e.imag(x)))
        return either
    if not x.dtype.is_float:
        return _everywhere(x, False)
    result: Value = e.equal(e.absolute(x), math.inf)
    return result


@of_arrays("numpy.isposinf", alone=("x",))
def isposinf(x: Value) -> Value:
    """Whether each element is positive infinity."""
    require("numpy.isposinf", x, REAL)
    result: Value = e.equal(to_inexact(x), math.inf)
    return result


@of_arrays("numpy.isneginf", alone=("x",))
def isneginf(x: Value) -> Value:
    """Whether each element is negative infinity."""
    require("numpy.isneginf", x, REAL)
    result: Value = e.equal(to_inexact(x), -math.inf)
    return result


@of_arrays("numpy.iscomplex", alone=("x",))
def iscomplex(x: Value) -> Value:
    """Whether each element has an imaginary part."""
    if not x.dtype.is_complex:
        return _everywhere(x, False)
    result: Value = e.not_equal(e.imag(x), 0)
    return result


@of_arrays("numpy.isreal", alone=("x",))
def isreal(x: Value) -> Value:
    """Whether each element has no imaginary part."""
    return logical_not(iscomplex(x))  # type: ignore[no-any-return]


@of_arrays("numpy.isclose", together=("a", "b"), traced=("rtol", "atol"))
def isclose(
    a: Value, b: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Value:
    """Whether `abs(a - b) <= atol + rtol * abs(b)`; infinities are close to themselves."""
    a, b = to_inexact(a), to_inexact(b)
    bound = e.add(e.multiply(e.absolute(b), rtol), atol)
    near = e.bitwise_and(e.less_equal(e.absolute(e.subtract(a, b)), bound), isfinite(b))
    result: Value = e.bitwise_or(near, e.equal(a, b))
    if equal_nan:
        result = e.bitwise_or(result, e.bitwise_and(is_nan(a), is_nan(b)))
    return result


@of_arrays("numpy.allclose", together=("a", "b"), traced=("rtol", "atol"))
def allclose(
    a: Value, b: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Value:
    """Whether `isclose` holds of all elements."""
    return _all(isclose(a, b, rtol, atol, equal_nan))


@of_arrays("numpy.array_equal", together=("a1", "a2"))
def array_equal(a1: Value, a2: Value, equal_nan: bool = False) -> Value:
    """Whether shapes and elements are the same; for some sizes but not all is an error."""
    here = a1.builder
    if a1.ndim != a2.ndim or any(
        isinstance(left - right, int) and left - right != 0
        for left, right in zip(a1.shape, a2.shape, strict=False)
    ):
        return here.literal(False, BOOL)
    return _all(_same(a1, a2, equal_nan))


@of_arrays("numpy.array_equiv", together=("a1", "a2"))
def array_equiv(a1: Value, a2: Value) -> Value:
    """Whether elements are the same after broadcasting; shapes that do not fit are an error."""
    return _all(_same(a1, a2, False))


def _same(a1: Value, a2: Value, equal_nan: bool) -> Value:
    broadcast_shapes(a1.builder.facts, a1.shape, a2.shape)
    result: Value = e.equal(a1, a2)
    if equal_nan and a1.dtype.is_inexact:
        result = e.bitwise_or(result, e.bitwise_and(is_nan(a1), is_nan(a2)))
    return result


def _all(x: Value) -> Value:
    return Reduce("all", tuple(range(x.ndim)))(x) if x.ndim else x


def _everywhere(x: Value, answer: bool) -> Value:
    return x.builder.full(answer, x.shape, BOOL)
