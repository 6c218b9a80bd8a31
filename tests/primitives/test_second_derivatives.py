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

import pscdsl as psc
from pscdsl import f64
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
from tests.derivatives import programs as subjects
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
    # At infinity these limits come too slowly to be seen.
    "jv": Row(mp.besselj, ((-3.0, 0.0, 1.0, 2.0, 5.0), POINTS[1:-1]), 1),
    "iv": Row(mp.besseli, ((-2.0, -1.5, 0.0, 0.5, 1.0, 2.5, 3.0), POINTS), 1),
    "kv": Row(
        lambda v, x: mp.besselk(v, x) if x > 0 else None,
        ((-3.5, 0.0, 0.5, 1.0, 2.25), POINTS),
        1,
    ),
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


# Functions that are made of kinks.


COMPOSED: dict[str, Exact] = {
    "np.linalg.norm(x) ** 2": lambda x, y: x * x + y * y,
    "np.linalg.norm(x)": lambda x, y: mp.hypot(x, y),
    "np.linalg.norm(x, 3) ** 3": lambda x, y: abs(x) ** 3 + abs(y) ** 3,
    "np.linalg.norm(x[:, None] * np.ones(2)) ** 2": lambda x, y: 2 * (x * x + y * y),
    "psc.tree.norm((x[0], x[1])) ** 2": lambda x, y: x * x + y * y,
    "np.hypot(x[0], x[1]) ** 2": lambda x, y: x * x + y * y,
    "np.abs(x[0] + 1j * x[1]) ** 2": lambda x, y: x * x + y * y,
    "np.sum(np.abs(x) ** 2)": lambda x, y: x * x + y * y,
    "np.sum(np.square(np.abs(x)))": lambda x, y: x * x + y * y,
    "np.sum(np.abs(x**2))": lambda x, y: x * x + y * y,
    "np.sum(np.maximum(x**2, 0))": lambda x, y: x * x + y * y,
    "np.sum(np.maximum(x, -x) ** 2)": lambda x, y: x * x + y * y,
    "np.sum(np.copysign(x, 1.0) ** 2)": lambda x, y: x * x + y * y,
    "np.max(x) ** 2 + np.min(x) ** 2": lambda x, y: x * x + y * y,
    "np.max(np.stack((x, -x))) ** 2": lambda x, y: max(abs(x), abs(y)) ** 2,
    "np.sum(np.clip(x, 0, 3) + np.clip(x, -3, 0))": lambda x, y: x + y,
    "np.sum(np.sort(np.stack((x, -x)), axis=0)[1] ** 2)": lambda x, y: x * x + y * y,
    "x @ x": lambda x, y: x * x + y * y,
    "np.var(x)": lambda x, y: (x - y) ** 2 / 4,
    "np.logaddexp(x[0], -x[1])": lambda x, y: mp.log(mp.exp(x) + mp.exp(-y)),
}
EXACT = {
    "np.linalg.norm(x) ** 2",
    "np.linalg.norm(x[:, None] * np.ones(2)) ** 2",
    "psc.tree.norm((x[0], x[1])) ** 2",
    "np.abs(x[0] + 1j * x[1]) ** 2",
    "np.sum(np.abs(x) ** 2)",
    "np.sum(np.square(np.abs(x)))",
    "np.sum(np.sort(np.stack((x, -x)), axis=0)[1] ** 2)",
    "x @ x",
    "np.var(x)",
    "np.logaddexp(x[0], -x[1])",
}
"""Functions without kinks, squares of what has them, and what takes one of several pieces."""


@pytest.mark.parametrize("text", COMPOSED)
def test_what_is_made_of_kinks_is_exact_or_nan(text: str) -> None:
    ways = (
        "one = psc.hessian(f)(x)",
        "two = psc.jacfwd(psc.jacfwd(f))(x)",
        "three = psc.jacrev(psc.jacrev(f))(x)",
        "return psc.grad(f)(x), one, two, three",
    )
    lines = [f"f = lambda x: {text}", *ways]
    code = '@psc.kernel\ndef kernel(x: f64["2"]):\n' + "\n".join(f"    {line}" for line in lines)
    made = subjects.program(code)
    for point in ((0.0, 0.0), (0.0, 2.0), (0.5, 0.5), (0.5, -2.0)):
        with mp.workdps(DIGITS):
            exact = [
                [float(second(COMPOSED[text], point, i, j)) for j in range(2)] for i in range(2)
            ]
        gradient, *hessians = made.run([np.array(point)])
        assert np.isfinite(gradient).all()
        for found in hessians:
            close = np.isclose(found, exact, rtol=1e-9, atol=1e-12)
            allowed = close if text in EXACT or point == (0.5, -2.0) else close | np.isnan(found)
            assert allowed.all(), (point, found, exact)


# Functions of eigenvalues and singular values, where these are equal or zero.


def eigenvalues(a: Any) -> list[Any]:
    """Those of a symmetric matrix."""
    return list(mp.eigsy(a, eigvals_only=True))


def singular_values(a: Any) -> list[Any]:
    """In any order."""
    return list(mp.svd_r(a, compute_uv=False))


class Spectral(NamedTuple):
    """A sum over the eigenvalues or singular values of a matrix, as mpmath has it."""

    values: Callable[[Any], list[Any]]
    term: Callable[[Any], Any]


SYMMETRIC: dict[str, Spectral] = {
    "np.sum(np.log(np.linalg.eigvalsh(a)))": Spectral(eigenvalues, mp.log),
    "np.sum(np.linalg.eigh(a)[0] ** 3)": Spectral(eigenvalues, lambda w: w**3),
    "np.linalg.norm(np.linalg.eigvalsh(a)) ** 2": Spectral(eigenvalues, lambda w: w**2),
    "np.dot(w := np.linalg.eigvalsh(a), np.exp(w))": Spectral(eigenvalues, lambda w: w * mp.exp(w)),
    "np.mean(np.where((w := np.linalg.eigvalsh(a)) > 9, w, np.sqrt(w)))": Spectral(
        eigenvalues, lambda w: mp.sqrt(w) / 3
    ),
}
OF_ANY: dict[str, Spectral] = {
    "np.sum(np.linalg.svdvals(a) ** 4)": Spectral(singular_values, lambda s: s**4),
    "np.sum(np.cos(np.linalg.svdvals(a)))": Spectral(singular_values, mp.cos),
    "np.sum(np.linalg.svd(a, full_matrices=False)[1] ** 3)": Spectral(
        singular_values, lambda s: s**3
    ),
    "np.linalg.norm(a, 'nuc')": Spectral(singular_values, lambda s: s),
}
TURNED = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
MATRICES = [
    np.eye(3) * 2,
    np.diag([2.0, 2.0, 1.0]),
    TURNED @ np.diag([2.0, 2.0, 1.0]) @ TURNED.T,
    np.diag([2.0, 2.0 + 1e-9, 1.0]),
    np.diag([2.0, 2.0 + 1e-4, 1.0]),
    np.diag([1.0, 2.0, 3.0]),
]
RECTANGULAR = [
    *[np.zeros(shape) for shape in ((2, 2), (3, 2), (2, 3))],
    *[np.eye(*shape) * 2 for shape in ((2, 2), (3, 2), (2, 3))],
    *[np.ones(shape) for shape in ((2, 2), (3, 2), (2, 3))],
    np.array([[2.0, 0.0], [0.0, -2.0]]),
    np.diag([2.0, 2.0, 0.0]),
    np.array([[1.0, 2.0], [3.0, 5.0], [-1.0, 0.5]]),
]


def exact_sum(spectral: Spectral, a: NDArray, direction: NDArray) -> float:
    """The second derivative of a sum along a direction; NaN if it does not exist."""
    base, step = mp.matrix(a.tolist()), mp.matrix(direction.tolist())

    def at(t: Any) -> Any:
        terms: Any = [spectral.term(value) for value in spectral.values(base + t * step)]
        return mp.fsum(terms)

    found: list[Any] = []
    for size in ("1e-14", "1e-15"):
        h = mp.mpf(size)
        found.append((at(h) - 2 * at(mp.mpf(0)) + at(-h)) / h**2)
    settled = abs(found[0] - found[1]) <= mp.mpf("1e-9") * max(1, abs(found[1]))
    return float(found[1]) if settled else float("nan")


def second_ways(text: str) -> subjects.Program:
    """The gradient of a function of a matrix, and its second derivative along a direction."""
    return subjects.program(
        f"""
@psc.kernel
def kernel(a: f64["n m"], d: f64["n m"]):
    assert a.shape[0] > 0 and a.shape[1] > 0
    f = lambda a: {text}
    g = psc.grad(f)
    one = psc.jvp(g, (a,), (d,))[1]
    two = psc.grad(lambda a: np.sum(g(a) * d))(a)
    three = psc.grad(lambda a: psc.jvp(f, (a,), (d,))[1])(a)
    return g(a), one, two, three
""".replace("n m", "n n" if "eig" in text else "n m")
    )


@pytest.mark.parametrize("text", [*SYMMETRIC, *OF_ANY])
def test_sums_over_equal_values(text: str) -> None:
    spectral = (SYMMETRIC | OF_ANY)[text]
    made = second_ways(text)
    for a in MATRICES if text in SYMMETRIC else RECTANGULAR:
        d = np.random.default_rng(1).normal(size=a.shape)
        d = d + d.T if text in SYMMETRIC else d
        with mp.workdps(60):
            exact = exact_sum(spectral, a, d)
        sizes = {"n": a.shape[0], "m": a.shape[1]}
        gradient, *ways = made.run([a, d], sizes)
        assert np.isfinite(gradient).all(), a
        for found in ways:
            along = float(np.sum(found * d))
            assert np.isclose(along, exact, rtol=1e-7, atol=1e-9, equal_nan=True), (a, along, exact)


def test_what_no_function_of_the_matrix_is_has_no_derivative_at_equal_values() -> None:
    """Numbers where one is right, and NaN elsewhere."""
    for text in ("np.linalg.eigvalsh(a)[-1] ** 2", "np.max(np.linalg.eigvalsh(a))"):
        made = second_ways(text)
        for a in MATRICES[:3]:
            d = np.ones((3, 3))
            _, *ways = made.run([a, d], {"n": 3})
            assert all(np.isnan(np.sum(found * d)) for found in ways), text
    root = "np.sum((np.linalg.eigh(a)[1] * np.sqrt(np.linalg.eigh(a)[0])) @ np.linalg.eigh(a)[1].T)"
    for a in MATRICES[:3]:
        gradient, *_ = second_ways(root).run([a, a], {"n": 3})
        assert np.isnan(gradient).all()


def test_eigenvalues_of_defective_matrices_have_no_derivative() -> None:
    made = second_ways("np.sum(np.real(np.linalg.eigvals(a) ** 3))")
    rng = np.random.default_rng(0)
    for size in (2, 3):
        block = np.eye(size) + np.diag(np.ones(size - 1), 1)
        other = rng.normal(size=(size, size))
        for a in (block, block - np.eye(size), block.T, other @ block @ np.linalg.inv(other)):
            gradient, *_ = made.run([a, a], {"n": size})
            assert np.isnan(gradient).all(), a
        regular = np.diag([1.0] * (size - 1) + [2.0])
        for a in (np.eye(size), regular, other @ regular @ np.linalg.inv(other), other):
            gradient, *_ = made.run([a, a], {"n": size})
            np.testing.assert_allclose(gradient, 3 * (a @ a).T, rtol=1e-6, atol=1e-8)


@psc.kernel
def of_kinks(x: f64["2"]) -> tuple[f64["2 2"], f64["2 2"], f64["2 2"], f64["2 2"]]:
    return (
        psc.hessian(lambda x: np.sum(np.abs(x) ** 2) + np.linalg.norm(x) ** 2)(x),
        psc.hessian(lambda x: np.hypot(x[0], x[1]) ** 2)(x),
        psc.hessian(lambda x: np.sum(np.maximum(x**2, 0)))(x),
        psc.jacrev(psc.jacrev(lambda x: np.max(x) ** 2))(x),
    )


@psc.kernel
def of_values(a: f64["n n"], e: f64["n n"]) -> tuple[f64["n n"], f64["n n"]]:
    logarithm = psc.grad(lambda a: np.sum(np.log(np.linalg.eigvalsh(a))))
    nuclear = psc.grad(lambda a: np.linalg.norm(a, "nuc") ** 2)
    return psc.jvp(logarithm, (a,), (e,))[1], psc.jvp(nuclear, (a,), (e,))[1]


def test_compiled_programs_compute_the_same() -> None:
    squares, *others = map(np.asarray, of_kinks(np.zeros(2)))
    np.testing.assert_array_equal(squares, 4 * np.eye(2))
    assert all(np.isnan(each).all() for each in others)
    a, e, skew = 2 * np.eye(2), np.array([[0.0, 1], [1, 0]]), np.array([[0.0, 1], [-1, 0]])
    np.testing.assert_allclose(np.asarray(of_values(a, e)[0]), -e / 4, atol=1e-14)
    np.testing.assert_allclose(np.asarray(of_values(a, skew)[1]), 4 * skew, atol=1e-14)
