"""Polynomials as vectors of coefficients, the highest first."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control import Scan
from pscdsl._src.primitives.shaping import Pad
from pscdsl.numpy.arguments import as_times
from pscdsl.numpy.calling import of_numbers, require_scalar
from pscdsl.numpy.convolution import convolve
from pscdsl.numpy.elementwise import require, to_inexact, with_i64
from pscdsl.numpy.shorthand import (
    at,
    at_least,
    cast,
    filled,
    iota,
    joined,
    largest,
    listed,
    part,
    reversed_along,
)
from pscdsl.numpy.sorting import require_vector
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure

FEW = 32
"""Up to so many coefficients are written out one after the other; more are a loop."""


@of_numbers("numpy.polyval", together=("p", "x"))
def polyval(p: Value, x: Value) -> Value:
    """A polynomial at x, by Horner's rule."""
    require("numpy.polyval", p, "numeric")
    size = require_vector(p, "numpy.polyval", "a vector of coefficients")
    result = filled(x, 0)
    if isinstance(size, int) and size <= FEW:
        for index in range(size):
            step: Value = e.add(e.multiply(result, x), at(p, 0, index))
            result = step if index else filled(x, at(p, 0, 0))
        return result
    with x.builder.program.inside() as inner:
        total, coefficient = inner.parameter(x.type), inner.parameter(at_type(p))
        step = e.add(e.multiply(total, x), coefficient)
        block, captured = inner.finish((total, coefficient), (step,))
    scan = Scan(block, captured=len(captured), carried=1, length=size)
    return scan.bind(*captured, result, p)[0]


def at_type(p: Value) -> Any:
    """The type of one coefficient."""
    return p.type.with_shape(())


@of_numbers("numpy.polyadd", together=("a1", "a2"))
def polyadd(a1: Value, a2: Value) -> Value:
    """The sum of two polynomials."""
    return _combined("numpy.polyadd", a1, a2, e.add)


@of_numbers("numpy.polysub", together=("a1", "a2"))
def polysub(a1: Value, a2: Value) -> Value:
    """The difference of two polynomials."""
    return _combined("numpy.polysub", a1, a2, e.subtract)


def _combined(name: str, a1: Value, a2: Value, combine: Any) -> Value:
    facts = a1.builder.facts
    sizes = [require_vector(p, name, "vectors of coefficients") for p in (a1, a2)]
    longest = largest(facts, *sizes)
    zero = a1.builder.program.current.literal(0, a1.dtype)
    left, right = (
        p if p.shape[0] == longest else Pad((longest - p.shape[0],), (0,), (0,))(p, zero)
        for p in (a1, a2)
    )
    result: Value = combine(left, right)
    return result


@of_numbers("numpy.polymul", together=("a1", "a2"))
def polymul(a1: Value, a2: Value) -> Value:
    """The product of two polynomials; leading zeros stay."""
    result: Value = convolve(a1, a2)
    return result


@of_numbers("numpy.polyder", together=("p",))
def polyder(p: Value, m: int = 1) -> Value:
    """The m-th derivative of a polynomial; that of integers in i64, of u64 in f64."""
    require("numpy.polyder", p, "numeric")
    size = require_vector(p, "numpy.polyder", "a vector of coefficients")
    _check_order("numpy.polyder", m)
    p = with_i64(p) if m else p
    for _ in range(m):
        if not at_least(p.builder.facts, size, 1):
            problem = f"takes coefficients of which there are at least {m}, not {size}"
            raise Failure(BadArguments(function="numpy.polyder", problem=problem))
        size = size - 1
        exponents = reversed_along(e.add(iota(p, size, p.dtype), 1), 0)
        p = e.multiply(part(p, 0, 0, size), exponents)
    return p


@of_numbers("numpy.polyint", together=("p",), traced=("k",))
def polyint(p: Value, m: int = 1, k: Any = None) -> Value:
    """The m-th antiderivative of a polynomial, with constants k."""
    require("numpy.polyint", p, "numeric")
    size = require_vector(p, "numpy.polyint", "a vector of coefficients")
    _check_order("numpy.polyint", m)
    p = to_inexact(p)
    constants = listed(k) or [0 if k is None else k] * m
    if len(constants) != m:
        problem = f"takes {m} constants `k`, not {len(constants)}"
        raise Failure(BadArguments(function="numpy.polyint", problem=problem))
    for constant in constants:
        require_scalar(constant, "numpy.polyint", "k")
        exponents = reversed_along(e.add(iota(p, size, p.dtype), 1), 0)
        last = e.add(filled(p, 0, (1,)), constant)
        p = joined((e.divide(p, exponents), cast(last, p.dtype)), 0)
        size = size + 1
    return p


def _check_order(name: str, m: object) -> None:
    if as_times(m, name) < 0:
        problem = f"takes an order that is a number of times, not {describe(m)}"
        raise Failure(BadArguments(function=name, problem=problem))
