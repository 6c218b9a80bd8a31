"""Minimisation without second derivatives."""

# SciPy is not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize

import pscdsl as psc
from pscdsl import Float, bool_, f64, i32
from pscdsl.stdlib import minimisation

pytestmark = pytest.mark.quick_code


@psc.kernel
def valleys(p: Float["n"], low: Float["n"], high: Float["n"]) -> tuple[Float["n"], i32, bool_]:
    """Of x log x - p x + x^2, each for itself."""

    def f(x: Float["n"]) -> Float["n"]:
        return x * np.log(x) - p * x + x * x

    found = minimisation.golden_section(f, low, high)
    return found.params, found.steps, found.converged


@psc.kernel
def lowest(
    a: Float["n n"], b: Float["n"], tolerance: Float
) -> tuple[Float["n"], Float, i32, bool_]:
    """Of a bowl, in a tree of a vector and a number; the number comes back as the last."""

    def loss(p: tuple[Float["n"], Float]) -> Float:
        return p[0] @ (a @ p[0]) / 2 - b @ p[0] + np.cosh(p[1] - 1)

    start = np.zeros_like(b), np.zeros_like(b[0])
    found = minimisation.gradient_descent(loss, start, tolerance, 500)
    return found.params[0], found.params[1], found.steps, found.converged


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_golden_sections(dtype: Any) -> None:
    p = np.array([0.5, 1.0, 3.0, -2.0])
    low, high = np.full(4, 0.01), np.full(4, 5.0)
    x, steps, converged = map(np.asarray, valleys(*(y.astype(dtype) for y in (p, low, high))))
    assert x.dtype == dtype
    assert converged
    assert steps < 60
    np.testing.assert_allclose(np.log(x) + 1 - p + 2 * x, 0, atol=200 * np.finfo(dtype).eps ** 0.5)
    if dtype == np.float64:
        _, along = psc.jvp(bottom, (p, low, high), (np.ones(4), np.zeros(4), np.zeros(4)))
        np.testing.assert_allclose(along, 1 / (1 / x + 2), rtol=1e-6)


@psc.kernel
def bottom(p: f64["n"], low: f64["n"], high: f64["n"]) -> f64["n"]:
    return valleys(p, low, high)[0]


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-3), (np.float64, 1e-6)])
def test_descent(dtype: Any, tolerance: float) -> None:
    a: Any = np.diag([1.0, 4.0, 9.0]) + 0.3
    b: Any = np.array([1.0, -2.0, 0.5])
    x, last, steps, converged = map(np.asarray, lowest(a.astype(dtype), b.astype(dtype), tolerance))
    assert converged
    assert 5 < steps < 300
    assert x.dtype == dtype
    np.testing.assert_allclose(a @ x, b, atol=2 * tolerance)
    np.testing.assert_allclose(last, 1, atol=2 * tolerance)
    assert not np.asarray(lowest(a, b, 0.0)[-1])


def rosenbrock(x: Any, a: Any = 1.0) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)


@psc.kernel
def simplex(
    start: Float["n"], a: Float, tolerance: Float, adaptive: psc.Static[bool]
) -> minimisation.Minimum[Float["n"]]:
    """The least value of Rosenbrock's function, which is no number where the first is above 3."""

    def loss(x: Float["n"]) -> Float:
        return np.where(x[0] > 3, np.nan, rosenbrock(x, a))

    return minimisation.nelder_mead(loss, start, tolerance, tolerance, 1000, adaptive)


@psc.kernel
def last_number(a: f64) -> f64:
    return simplex(np.zeros(2, np.float64), a, 1e-9, False).params[1]


@pytest.mark.parametrize("adaptive", [False, True])
def test_simplices_go_as_those_of_scipy(adaptive: bool) -> None:
    start = np.linspace(-1.2, 1.3, 4)
    options = {"xatol": 1e-7, "fatol": 1e-7, "adaptive": adaptive, "maxiter": 1000}
    theirs: Any = optimize.minimize(rosenbrock, start, method="Nelder-Mead", options=options)
    found = simplex(start, 1.0, 1e-7, adaptive)
    assert found.converged
    assert abs(int(found.steps) - theirs.nit) < 0.05 * theirs.nit
    np.testing.assert_allclose(found.params, 1, atol=1e-6)
    assert float(found.value) < 1e-12
    few = simplex(start.astype(np.float32), 1.0, 1e-4, adaptive)
    assert few.converged
    np.testing.assert_allclose(few.params, 1, atol=1e-2)


def test_simplices_have_the_derivative_of_the_equation_that_they_solve() -> None:
    """The last number is the square of `a`."""
    np.testing.assert_allclose(last_number(1.5), 2.25, rtol=1e-7)
    np.testing.assert_allclose(psc.grad(last_number)(1.5), 3, rtol=1e-6)
    never = simplex(np.array([0.5, 0.5]), 1.0, -1.0, False)
    assert not never.converged
    assert int(never.steps) == 1000
