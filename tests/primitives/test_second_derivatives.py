"""Second derivatives of elementwise primitives at their special points, beside mpmath.

Each primitive is differentiated twice, in each order of the modes, at all special points together.
The exact second derivative is a limit of differences in many digits.  Where it exists, it is what
is computed; where it does not, NaN or an infinity is, or the convention of the declaration: steps
are flat (`nothing`, `along`).
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import inf, isinf, isnan
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest

from pscdsl._src.analysis.verify import verify
from pscdsl._src.interpreters.cut import split_block
from pscdsl._src.interpreters.replay import Mask, closed, jvp_block, replay, transpose
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block, Function, evaluate
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.pointwise import Elementwise, LinearIn
from pscdsl._src.primitives.special import SPECIAL
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import F64
from tests.support.law_rows import NDArray

pytestmark = pytest.mark.quick_code

mp: Any = importlib.import_module("mpmath").mp
Exact: TypeAlias = Callable[..., Any]
FACTS = Assumptions()
DIGITS = 90
STEPS = ("1e-20", "1e-25")
POINTS = (-inf, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, inf)
POSITIVE = (0.5, 1.0, 2.0, 3.0)


FLAT = (e.nothing, e.along, e.by_divisor)
"""Rules of functions with jumps: their slopes are constant elsewhere."""


SLOPES = {"kink", "bend", "multiply_absorbing"}
"""What only derivatives are made of."""


class Row(NamedTuple):
    """A primitive as mpmath has it; None outside of its domain."""

    exact: Exact
    points: tuple[tuple[float, ...], ...] = (POINTS,)
    """Of each operand; those of the last one serve the rest."""
    held: int = 0
    """How many operands have no derivative."""


def xlogy(x: Any, y: Any) -> Any:
    return mp.mpf(0) if x == 0 else x * mp.log(y)


def betaln(a: Any, b: Any) -> Any:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b) if a > 0 and b > 0 else None


def rel_entr(x: Any, y: Any) -> Any:
    if x < 0 or y < 0:
        return None
    return mp.mpf(0) if x == 0 else x * mp.log(x / y)


def angle(y: Any, x: Any) -> Any:
    """The angle, but for a constant: without the branch cut."""
    if y == x == 0:
        return None
    return mp.atan2(-y, -x) if x < -5 * abs(y) else mp.atan2(y, x)


def power(x: Any, y: Any) -> Any:
    if x == 0:
        return mp.mpf(1) if y == 0 else mp.mpf(0) if y > 0 else None
    return mp.power(x, y)


def log_ndtr(x: Any) -> Any:
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def scaled(order: int) -> Exact:
    return lambda x: mp.besseli(order, x) * mp.exp(-abs(x))


ROOT_OF_2 = 2**0.5
ROWS: dict[str, Row] = {
    "add": Row(lambda x, y: x + y),
    "subtract": Row(lambda x, y: x - y),
    "multiply": Row(lambda x, y: x * y),
    "divide": Row(lambda x, y: x / y),
    "floor_divide": Row(lambda x, y: mp.floor(x / y)),
    "remainder": Row(lambda x, y: x - y * mp.floor(x / y)),
    "fmod": Row(lambda x, y: x - y * (mp.floor(x / y) if x / y > 0 else mp.ceil(x / y))),
    "power": Row(power, (POINTS[1:], POINTS)),
    "atan2": Row(angle),
    "maximum": Row(max),
    "minimum": Row(min),
    "nextafter": Row(lambda x, y: x),
    "copysign": Row(lambda x, y: abs(x) * (mp.sign(y) or 1)),
    "negative": Row(lambda x: -x),
    "absolute": Row(abs),
    "sign": Row(mp.sign),
    "exp": Row(mp.exp),
    "expm1": Row(lambda x: mp.exp(x) - 1),
    "log": Row(mp.log),
    "log1p": Row(lambda x: mp.log(1 + x)),
    "logistic": Row(lambda x: 1 / (1 + mp.exp(-x))),
    "sqrt": Row(mp.sqrt),
    "rsqrt": Row(lambda x: 1 / mp.sqrt(x)),
    "cbrt": Row(lambda x: mp.sign(x) * mp.cbrt(abs(x))),
    "sin": Row(mp.sin),
    "cos": Row(mp.cos),
    "tan": Row(mp.tan),
    "asin": Row(mp.asin),
    "acos": Row(mp.acos),
    "atan": Row(mp.atan),
    "sinh": Row(mp.sinh),
    "cosh": Row(mp.cosh),
    "tanh": Row(mp.tanh),
    "asinh": Row(mp.asinh),
    "acosh": Row(mp.acosh),
    "atanh": Row(mp.atanh),
    "erf": Row(mp.erf),
    "erf_inv": Row(lambda x: mp.erfinv(x) if abs(x) < 1 else None),
    "floor": Row(mp.floor),
    "ceil": Row(mp.ceil),
    "round_even": Row(mp.nint),
    "truncate": Row(lambda x: mp.sign(x) * mp.floor(abs(x))),
    "erfc": Row(mp.erfc),
    "erfcx": Row(lambda x: mp.exp(x * x) * mp.erfc(x)),
    "erfinv": Row(lambda x: mp.erfinv(x) if abs(x) < 1 else None),
    "erfcinv": Row(lambda x: mp.erfinv(1 - x) if 0 < x < 2 else None),
    "ndtr": Row(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2),
    "log_ndtr": Row(log_ndtr),
    "ndtri": Row(lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1) if 0 < x < 1 else None),
    "gammaln": Row(lambda x: mp.log(abs(mp.gamma(x)))),
    "digamma": Row(mp.digamma),
    "gamma": Row(mp.gamma),
    "zeta": Row(mp.zeta, (POSITIVE[2:], POSITIVE), 1),
    "betaln": Row(betaln, (POSITIVE,)),
    "gammainc": Row(
        lambda a, x: mp.gammainc(a, 0, x, True) if x >= 0 else None, (POSITIVE, POINTS), 1
    ),
    "gammaincc": Row(
        lambda a, x: mp.gammainc(a, x, mp.inf, True) if x >= 0 else None, (POSITIVE, POINTS), 1
    ),
    "betainc": Row(
        lambda a, b, x: mp.betainc(a, b, 0, x, True) if 0 <= x <= 1 else None,
        (POSITIVE, POSITIVE, (0.0, 0.5, 1.0)),
        2,
    ),
    "betaincc": Row(
        lambda a, b, x: mp.betainc(a, b, x, 1, True) if 0 <= x <= 1 else None,
        (POSITIVE, POSITIVE, (0.0, 0.5, 1.0)),
        2,
    ),
    "i0": Row(lambda x: mp.besseli(0, x)),
    "i0e": Row(scaled(0)),
    "i1": Row(lambda x: mp.besseli(1, x)),
    "i1e": Row(scaled(1)),
    "logit": Row(lambda x: mp.log(x / (1 - x)) if 0 < x < 1 else None),
    "log_expit": Row(lambda x: -mp.log(1 + mp.exp(-x))),
    "xlogy": Row(xlogy),
    "xlog1py": Row(lambda x, y: xlogy(x, 1 + y)),
    "entr": Row(lambda x: None if x < 0 else -xlogy(x, x)),
    "rel_entr": Row(rel_entr),
    "kl_div": Row(lambda x, y: None if (r := rel_entr(x, y)) is None else r - x + y),
}


def test_every_real_function_has_a_row() -> None:
    real = {
        each.name
        for each in (*e.TABLE.values(), *SPECIAL)
        if e.ACCEPTS[each.accepts](F64) and each.result(F64).is_float
    }
    assert real - SLOPES == ROWS.keys()


# What is exact.


def second_along(exact: Exact, point: Sequence[float], direction: Sequence[int]) -> Any:
    """The second derivative along a direction; NaN if there is none, None outside of the domain."""

    def at(t: Any) -> Any:
        try:
            result = exact(*[mp.mpf(x) + t * v for x, v in zip(point, direction, strict=True)])
        except (ZeroDivisionError, ValueError, OverflowError):
            return None
        real = isinstance(result, mp.mpf) or (result is not None and not result.imag)
        return mp.re(result) if real and mp.isfinite(result) else None

    def limits(step: Any) -> Iterator[Any]:
        """The second differences to the left, around the point, and to the right."""
        values = [at(k * step) for k in range(-3, 4)]
        for first in (0, 2, 3):
            few = values[first : first + (3 if first == 2 else 4)]
            if any(value is None for value in few):
                yield None
            elif first == 2:
                yield (few[0] - 2 * few[1] + few[2]) / step**2
            else:
                a, b, c, d = few if first else reversed(few)
                yield (2 * a - 5 * b + 4 * c - d) / step**2

    found = [limit for step in STEPS for limit in limits(mp.mpf(step)) if limit is not None]
    if at(mp.mpf(0)) is None or not found:
        step = mp.mpf(STEPS[0])
        return mp.nan if at(step) is not None or at(-step) is not None else None
    scale = max(1, abs(found[-1]))
    settled = all(abs(limit - found[-1]) <= mp.mpf("1e-9") * scale for limit in found)
    return found[-1] if settled else mp.nan


def at_infinity(exact: Exact, point: Sequence[float], i: int, j: int) -> Any:
    """The limit of the second derivative where operands grow; NaN if there is none."""
    found: list[Any] = []
    for size in (1e4, 1e8, 1e12):
        near = [x if not isinf(x) else size * np.sign(x) for x in point]
        found.append(second(exact, near, i, j))
    a, b, c = found
    if None in found:
        return None
    return c if abs(c - b) <= 1e-7 and abs(b - a) <= 1e-3 else mp.nan


def second(exact: Exact, point: Sequence[float], i: int, j: int) -> Any:
    """An element of the matrix of second derivatives, as of `second_along`."""
    unit = np.eye(len(point), dtype=int)
    if i == j:
        return second_along(exact, point, unit[i].tolist())
    both, across = (
        second_along(exact, point, (unit[i] + sign * unit[j]).tolist()) for sign in (1, -1)
    )
    if both is None or across is None:
        return None
    return (both - across) / 4


# What is computed.


def program(primitive: Elementwise) -> Block:
    """A program of one equation over all points."""

    def build(here: Builder, params: list[Value]) -> list[Value]:
        return list(primitive.bind(*params))

    return closed(FACTS, [ArrayType(F64, (name("n"),))] * primitive.arity, build)


def run(block: Block, operands: Sequence[NDArray]) -> list[NDArray]:
    """The results of a program over all points."""
    function = Function("second", ("n",), FACTS, block)
    verify(function)
    with np.errstate(all="ignore"):
        return list(evaluate(function, {"n": len(operands[0])}, operands))


def only(count: int, place: int) -> Mask:
    """The mask of one operand."""
    return tuple(index == place for index in range(count))


def tangent_of(block: Block, place: int) -> Block:
    """The tangent of the one result, as a function of the operands and a tangent of one."""
    made, _ = jvp_block(FACTS, block, only(len(block.params), place), (True,))
    return Block(made.params, made.equations, made.results[1:])


def cotangent_of(block: Block, place: int) -> Block:
    """The cotangent of one operand, as a function of the operands and the result's."""
    tangent = tangent_of(block, place)
    count = len(block.params)
    halves = split_block(FACTS, tangent, only(count + 1, count), (True,))

    def build(here: Builder, params: list[Value]) -> Sequence[Value]:
        *own, cotangent = params
        saved = halves.gather(own, replay(here, halves.early, own))
        linear = halves.late.params[-1].type
        found = transpose(here, halves.late, [*saved, linear], [cotangent])[-1]
        return [found if found is not None else cotangent * 0]

    return closed(FACTS, [*block.in_types, block.out_types[0]], build)


FIRST = {"forward": tangent_of, "reverse": cotangent_of}


def computed(primitive: Elementwise, points: NDArray, i: int, j: int) -> dict[str, NDArray]:
    """An element of the matrix of second derivatives at each point, by each order of the modes."""
    block, found = program(primitive), {}
    operands, one = list(points.T), np.ones(len(points))
    for inner, outer in product(FIRST, FIRST):
        first = FIRST[inner](block, i)
        (found[f"{outer} over {inner}"],) = run(FIRST[outer](first, j), [*operands, one, one])
    return found


def places(row: Row, arity: int) -> NDArray:
    """The special points."""
    choices = [row.points[min(index, len(row.points) - 1)] for index in range(arity)]
    return np.array(list(product(*choices)))


def is_flat(primitive: Elementwise, i: int, j: int) -> bool:
    """Whether the declaration says that a slope is constant, but for jumps."""
    assert primitive.derivative is not None
    rules = primitive.derivative[i], primitive.derivative[j]
    linear = i == j and isinstance(rules[0], LinearIn)
    return linear or primitive is e.sign or any(rule in FLAT for rule in rules)


def problems(primitive: Elementwise, row: Row) -> Iterator[str]:
    """Where second derivatives are finite and wrong, or missing."""
    points = places(row, primitive.arity)
    (known,) = run(program(primitive), list(points.T))
    for i, j in product(range(row.held, primitive.arity), repeat=2):
        if i > j:
            continue
        exacts: list[float | None] = []
        with mp.workdps(DIGITS):
            for point in points.tolist():
                infinite = any(map(isinf, point))
                found = (at_infinity if infinite else second)(row.exact, point, i, j)
                exacts.append(None if found is None else float(found))
        for modes, values in computed(primitive, points, i, j).items():
            rows = zip(points.tolist(), known.tolist(), exacts, values.tolist(), strict=True)
            for point, value, want, got in rows:
                if want is None or isnan(value) or (got == 0 and is_flat(primitive, i, j)):
                    continue
                if isinf(value) and any(map(isinf, point)):
                    continue
                if isnan(want):
                    right = not np.isfinite(got)
                else:
                    right = bool(np.isclose(got, want, rtol=1e-9, atol=1e-12))
                    right |= any(map(isinf, point)) and isnan(got)
                if not right:
                    yield f"{primitive}{tuple(point)} by {i}, {j}, {modes}: {got}, exact {want}"


@pytest.mark.parametrize("primitive", sorted(ROWS))
def test_second_derivatives_at_special_points(primitive: str) -> None:
    found = list(problems(e.TABLE[primitive], ROWS[primitive]))
    assert not found, "\n".join(found)
