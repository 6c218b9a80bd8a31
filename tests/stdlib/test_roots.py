"""Roots and fixed points against SciPy, and their derivatives."""

# SciPy is not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize

import pscdsl as psc
from pscdsl import Bool, Float, f64, i32
from pscdsl.stdlib import roots

pytestmark = pytest.mark.quick_code

P = np.array([0.5, 1.0, 2.0, 7.0, 1e-3, 0.0, -3.0])


def cubic(x: Any, p: Any) -> Any:
    return x * x * x + 2 * x - np.exp(x / 4) * p


@psc.kernel
def bracketed(
    p: Float["n"], low: Float["n"], high: Float["n"]
) -> tuple[roots.Root[Float["n"], Float["n"]], ...]:
    """By halving, and by the methods of Chandrupatla and Brent."""

    def f(x: Float["n"]) -> Float["n"]:
        return cubic(x, p)

    return roots.bisect(f, low, high), roots.chandrupatla(f, low, high), roots.brent(f, low, high)


@psc.kernel
def by_newton(p: Float["n"], guess: Float["n"]) -> tuple[Float["n"], Bool["n"], i32]:
    found = roots.newton(lambda x: cubic(x, p), guess)
    return found.x, found.converged, found.steps


@psc.kernel
def system(p: f64["2"], guess: f64["2"]) -> tuple[f64["2"], f64["2"], f64["2"], i32]:
    """Where a circle meets a curve, by Newton's method; and a fixed point."""

    def f(x: tuple[f64, f64]) -> tuple[f64, f64]:
        return x[0] * x[0] + x[1] * x[1] - p[0], x[1] - np.exp(x[0]) * p[1]

    found = roots.newton_system(f, (guess[0], guess[1]), 1e-12)
    still = roots.fixed_point(lambda x: np.cos(p * x[::-1]) / 2, guess, 1e-13)
    return np.stack(found.x), np.stack(found.value), still.x, found.steps


@psc.kernel
def of_all(p: f64["2"]) -> f64:
    """A number that depends on every kind of root."""
    ends = np.zeros_like(p), np.full_like(p, 4)
    one = roots.bisect(lambda x: cubic(x, p), *ends).x
    two = roots.chandrupatla(lambda x: cubic(x, p), *ends).x
    three = roots.newton(lambda x: cubic(x, p), one * 0).x
    four, _, five, _ = system(p, np.ones_like(p))
    six = roots.brent(lambda x: cubic(x, p), *ends).x
    return np.sum(one * two * three) + np.sum(four * five * six)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_brackets(dtype: Any) -> None:
    low, high = np.full(7, -1.0), np.full(7, 4.0)
    truth = np.array([optimize.brentq(cubic, -4, 4, args=(p,), xtol=1e-15) for p in P])
    given = (each.astype(dtype) for each in (P, low, high))
    found = bracketed(*given)
    inside = truth > -1
    truth = np.where(inside, truth, np.nan)
    eps = np.finfo(dtype).eps
    for each in found:
        np.testing.assert_array_equal(each.converged, inside)
        np.testing.assert_allclose(each.x, truth, rtol=8 * eps, atol=2 * eps)
        assert np.asarray(each.value).dtype == dtype
    halved, quick, by_brent = (int(each.steps) for each in found)
    assert max(quick, by_brent) < 14 < halved < 120


def hard(x: Any) -> Any:
    """Flat at its root, steep there, or both on different sides."""
    values = (x[0] - 1) ** 3, np.exp(20 * x[1]) - 1, np.tanh(40 * (x[2] - 0.3)), x[3] ** 9
    return np.stack(values)


def test_brent_takes_the_steps_of_brentq() -> None:
    @psc.kernel
    def kernel(low: f64["4"], high: f64["4"]) -> roots.Root[f64["4"], f64["4"]]:
        return roots.brent(hard, low, high, atol=1e-12)

    found = kernel(np.full(4, -1.0), np.full(4, 4.0))
    assert np.asarray(found.converged).all()
    np.testing.assert_allclose(found.x, [1, 0, 0.3, 0], atol=1e-12)

    def one(x: float, i: int) -> Any:
        return hard(np.full(4, x))[i]

    brentq: Any = optimize.brentq
    theirs = [brentq(one, -1, 4, (i,), 1e-12, 1e-15, 300, True)[1] for i in range(4)]
    most = max(each.iterations for each in theirs)
    assert abs(int(found.steps) - most) <= 2


def test_newton() -> None:
    x, converged, steps = map(np.asarray, by_newton(P, np.zeros(7)))
    truth = np.array([optimize.brentq(cubic, -4, 4, args=(p,), xtol=1e-15) for p in P])
    assert converged.all()
    assert steps < 16
    np.testing.assert_allclose(x, truth, rtol=1e-14, atol=1e-15)

    @psc.kernel
    def without_root(x: f64) -> tuple[f64, Bool]:
        found = roots.newton(lambda x: x * x + 1, x)
        return found.x, found.converged

    assert not np.asarray(without_root(0.3)[1])
    assert not np.asarray(without_root(0.0)[1]), "flat is not converged"


def test_systems() -> None:
    p = np.array([2.0, 0.7])
    x, value, still, steps = map(np.asarray, system(p, np.ones(2)))

    def both(x: Any) -> list[Any]:
        return [x @ x - p[0], x[1] - np.exp(x[0]) * p[1]]

    theirs: Any = optimize.root(both, [1, 1], tol=1e-13)
    np.testing.assert_allclose(x, theirs.x, rtol=1e-12)
    np.testing.assert_allclose(value, 0, atol=1e-14)
    np.testing.assert_allclose(still, np.cos(p * still[::-1]) / 2, rtol=1e-12)
    assert steps < 10


def test_derivatives() -> None:
    p, step = np.array([2.0, 0.7]), 1e-5
    differences = [(of_all(p + step * e) - of_all(p - step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(psc.grad(of_all)(p), differences, rtol=1e-8)
