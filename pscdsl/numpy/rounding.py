"""Rounding to a number of decimals."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl.numpy.calling import of_arrays
from pscdsl.numpy.elementwise import require
from pscdsl.numpy.shorthand import cast, filled, where
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure


@of_arrays("numpy.round", "numpy.around", together=("a",))
def round_(a: Value, decimals: Any = 0) -> Value:
    """To a number of decimals, half to even; negative decimals round to tens, hundreds, …."""
    if not isinstance(decimals, int):
        problem = f"takes a static number of decimals, not {describe(decimals)}"
        raise Failure(BadArguments(function="numpy.round", problem=problem))
    if a.dtype.is_complex:
        parts = round_(e.real(a), decimals), round_(e.imag(a), decimals)
        return cast(e.make_complex(*parts), a.dtype)
    if a.dtype.is_float:
        return _rounded_float(a, decimals)
    require("numpy.round", a, "real")
    return a if decimals >= 0 else _rounded_integer(a, 10**-decimals)


def _rounded_float(a: Value, decimals: int) -> Value:
    if decimals == 0:
        result: Value = e.round_even(a)
        return result
    scale = 10.0 ** min(abs(decimals), 300)
    up, down = (e.multiply, e.divide) if decimals > 0 else (e.divide, e.multiply)
    rounded: Value = down(e.round_even(up(a, scale)), scale)
    return rounded


def _rounded_integer(a: Value, unit: int) -> Value:
    if unit > a.dtype.range[1]:
        return filled(a, 0)
    quotient, rest = e.floor_divide(a, unit), e.remainder(a, unit)
    above, tie = e.greater(rest, unit // 2), e.equal(rest, unit // 2)
    up = e.bitwise_or(above, e.bitwise_and(tie, e.equal(e.bitwise_and(quotient, 1), 1)))
    nearest: Value = e.multiply(where(up, quotient + 1, quotient), unit)
    return nearest
