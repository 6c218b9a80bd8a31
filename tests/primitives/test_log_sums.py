"""`np.logaddexp` and its derivatives: at infinities and ties, far from zero, and of constants."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f64
from pscdsl._src.ir.program import Function, walk
from pscdsl._src.transforms.simplify import simplify
from pscdsl.stdlib.losses import logistic_loss

INF, NAN = np.inf, np.nan
X = np.array([1, INF, -INF, -INF, INF, 3, -INF, INF, NAN, 2, 0, -5])
Y = np.array([1, INF, -INF, INF, -INF, -INF, 2, 5, 0, NAN, -0.0, 7])
FIRST = np.array([0.5, 0.5, 0.5, 0, 1, 1, 0, 1, NAN, NAN, 0.5, 1 / (1 + np.exp(12.0))])
"""The share of the first of them; two that are infinite share equally."""


@psc.kernel
def backward(x: f64["n"], y: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    dx, dy = psc.grad(lambda x, y: np.logaddexp(x, y).sum(), (0, 1))(x, y)
    return dx, dy


@psc.kernel
def forward(x: f64["n"], y: f64["n"], u: f64["n"], v: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    value, tangent = psc.jvp(np.logaddexp, (x, y), (u, v))
    return value, tangent


@psc.kernel
def one_by_one(x: f64["n"], y: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    dx, dy = psc.vmap(psc.grad(lambda x, y: np.logaddexp(x, y), (0, 1)))(x, y)
    return dx, dy


def test_infinities_and_ties() -> None:
    zero, one = np.zeros_like(X), np.ones_like(X)
    for first, second in (backward(X, Y), one_by_one(X, Y)):
        np.testing.assert_allclose(np.asarray(first), FIRST, 1e-15)
        np.testing.assert_allclose(np.asarray(second), 1 - FIRST, 1e-15)
    with np.errstate(invalid="ignore"):
        wanted = np.logaddexp(X, Y)
    for u, v, slope in ((one, zero, FIRST), (zero, one, 1 - FIRST), (one, one, FIRST * 0 + 1)):
        value, tangent = forward(X, Y, u, v)
        np.testing.assert_allclose(np.asarray(value), wanted, 1e-15)
        np.testing.assert_allclose(np.asarray(tangent), slope, 1e-15)


@psc.kernel
def beside_number(x: Float["n"]) -> tuple[Float["n"], Float["n"], Float["n"], Float["n"]]:
    """The value and three derivatives of each element, the second forward over reverse."""

    def third(x: Float) -> Float:
        return psc.grad(psc.grad(slope))(x)

    def second(x: Float) -> Float:
        return psc.jvp(slope, (x,), (np.ones_like(x),))[1]

    def slope(x: Float) -> Float:
        return psc.grad(lambda x: np.logaddexp(x, 1.25))(x)

    values = np.logaddexp(1.25, x)
    return values, psc.vmap(slope)(x), psc.vmap(second)(x), psc.vmap(third)(x)


@psc.kernel
def beside_array(
    x: Float["n"], y: Float["n"]
) -> tuple[Float["n"], Float["n"], Float["n"], Float["n"]]:
    """The same beside an array that has no tangent."""

    def summed(x: Float["n"]) -> Float:
        return np.logaddexp(y, x).sum()

    def second(x: Float["n"]) -> Float["n"]:
        return psc.jvp(psc.grad(summed), (x,), (np.ones_like(x),))[1]

    third = psc.jvp(second, (x,), (np.ones_like(x),))[1]
    return np.logaddexp(y, x), psc.grad(summed)(x), second(x), third


DTYPES: list[tuple[Any, float, float]] = [
    (np.float64, 700.0, 4),
    (np.float32, 80.0, 40),  # the exponential is this far off where it is small
    (ml_dtypes.bfloat16, 30.0, 8),
    (np.float16, 8.0, 8),
]
"""With the largest arguments, and how many units in the last place derivatives may be off."""


@pytest.mark.parametrize(("dtype", "most", "ulps"), DTYPES)
def test_derivatives_are_accurate_in_both_tails(dtype: Any, most: float, ulps: float) -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.uniform(-most, most, 200), random.uniform(-3, 6, 200)])
    if np.dtype(dtype).itemsize == 2:
        x = np.round(4 * x) / 4  # so that differences are exact
    given = x.astype(dtype)
    exact = given.astype(np.longdouble)
    gap = exact - np.longdouble(1.25)
    small = np.exp(-abs(gap))
    large = 1 / (1 + small)
    share, rest = (np.where(up, large, small * large) for up in (gap > 0, gap <= 0))
    bend = share * rest
    wanted = (
        np.maximum(exact, np.longdouble(1.25)) + np.log1p(small),
        share,
        bend,
        bend * large * (1 - small) * -np.sign(gap),
    )
    finfo: Any = ml_dtypes.finfo
    eps = float(finfo(dtype).eps)
    for results in (beside_number(given), beside_array(given, np.full_like(given, 1.25))):
        for order, (found, right) in enumerate(zip(results, wanted, strict=True)):
            clear = (abs(gap) > 0.1) | (order < 3)  # beyond, the third one vanishes
            value = np.asarray(found).astype(np.longdouble)[clear]
            bound = (ulps if order < 3 else 8 * ulps) * eps
            np.testing.assert_allclose(value, right[clear], bound, 0, err_msg=str(order))


def test_derivatives_beside_a_number_at_infinities() -> None:
    x = np.array([-INF, -800, 800, INF, NAN, 1.25])
    _, slope, second, third = map(np.asarray, beside_number(x))
    np.testing.assert_allclose(slope, [0, 0, 1, 1, NAN, 0.5], 1e-15)
    np.testing.assert_allclose(second, [0, 0, 0, 0, NAN, 0.25], 1e-15)
    np.testing.assert_allclose(third, [0, 0, 0, 0, NAN, 0], 1e-15)


@psc.kernel
def masked(x: f64["n"], y: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    return (
        psc.grad(lambda x: np.logaddexp(x, -np.inf).sum())(x),
        psc.grad(lambda x: np.logaddexp(y, x).sum())(x),
    )


def test_constants_of_minus_infinity() -> None:
    x = np.array([0.5, -INF, 3])
    beside_number, beside_array = masked(x, np.full(3, -INF))
    np.testing.assert_array_equal(np.asarray(beside_number), [1, 1, 1])
    np.testing.assert_array_equal(np.asarray(beside_array), [1, 0.5, 1])


@psc.kernel
def table(x: f64["m"], y: f64["n"]) -> tuple[f64["m"], f64["n"], f64["m m"], f64["m n"]]:
    def total(x: f64["m"], y: f64["n"]) -> f64:
        return np.logaddexp(x[:, None], y).sum()

    dx, dy = psc.grad(total, (0, 1))(x, y)
    both = psc.jacfwd(psc.grad(total), (0, 1))(x, y)
    return dx, dy, both[0], both[1]


def test_broadcast_operands() -> None:
    random = np.random.default_rng(1)
    x, y = random.normal(size=3) * 3, random.normal(size=4) * 3
    dx, dy, xx, xy = map(np.asarray, table(x, y))
    p = 1 / (1 + np.exp(y - x[:, None]))
    np.testing.assert_allclose(dx, p.sum(axis=1), 1e-13)
    np.testing.assert_allclose(dy, (1 - p).sum(axis=0), 1e-13)
    np.testing.assert_allclose(xx, np.diag((p * (1 - p)).sum(axis=1)), 1e-13)
    np.testing.assert_allclose(xy, -p * (1 - p), 1e-13)


@psc.kernel
def along_one(x: f64["n"], y: f64["n"]) -> f64["n"]:
    return psc.jvp(lambda x: np.logaddexp(x, y), (x,), (x,))[1]


@psc.kernel
def along_both(x: f64["n"], y: f64["n"]) -> f64["n"]:
    return psc.jvp(np.logaddexp, (x, y), (x, y))[1]


def multiplications(function: Function) -> int:
    return sum(
        str(equation.primitive.label).startswith("multiply")
        for equation in walk(simplify(function).body)
    )


def test_what_has_no_tangent_takes_no_operations() -> None:
    one, both = (multiplications(each.lower(n=5).program) for each in (along_one, along_both))
    assert one < both


@psc.kernel
def bend(x: f64["n"], y: f64["n"]) -> f64["n"]:
    return psc.jvp(psc.grad(lambda x: logistic_loss(x, y).sum()), (x,), (np.ones_like(x),))[1]


def test_the_second_derivative_of_logistic_loss_at_ties() -> None:
    found = bend(np.array([0.0, -0.0, 1.0]), np.array([0.0, 1.0, 0.5]))
    share = 1 / (1 + np.exp(1))
    np.testing.assert_allclose(np.asarray(found), [0.25, 0.25, share * (1 - share)], 1e-14)
