"""Truncated Newton steps against SciPy."""

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
from pscdsl.stdlib import newton

pytestmark = pytest.mark.quick_code

RANDOM = np.random.default_rng(0)


def valley(x: Any) -> Any:
    """Rosenbrock's function."""
    bend = x[1:] - x[:-1] * x[:-1]
    return 100 * np.sum(bend * bend) + np.sum((1 - x[:-1]) * (1 - x[:-1]))


@psc.kernel
def lowest(x: Float["n"], tolerance: Float) -> tuple[Float["n"], Float, i32, i32, bool_]:
    found = newton.newton_cg(valley, x, tolerance, max_steps=100)
    return found.params, found.slope, found.steps, found.products, found.converged


@psc.kernel
def ridge(a: f64["m n"], b: f64["m"], strength: f64) -> tuple[f64["n"], f64, f64, i32]:
    """Least squares with an offset, a quadratic problem in a tree, in one long enough step."""

    def loss(p: tuple[f64["n"], f64]) -> f64:
        error = a @ p[0] + p[1] - b
        return np.sum(error * error) / 2 + strength * np.sum(p[0] * p[0]) / 2

    start = np.zeros_like(a[0]), np.zeros_like(b[0])
    found = newton.newton_cg(loss, start, 1e-9, line_search=False)
    return found.params[0], found.params[1], found.value, found.steps


@psc.kernel
def held_out(a: f64["m n"], b: f64["m"], c: f64["k n"], d: f64["k"], strength: f64) -> f64:
    """The error of such a fit on other data, whose derivative finds a good strength."""
    w, offset, _, _ = ridge(a, b, strength)
    error = c @ w + offset - d
    return np.mean(error * error)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-8), (np.float32, 2e-3)])
def test_a_curved_valley(dtype: Any, tolerance: float) -> None:
    start = np.array([0.5, -0.2, 0.7, -0.5, 1.2])
    x, slope, steps, products, converged = map(np.asarray, lowest(start.astype(dtype), tolerance))
    theirs: Any = optimize.minimize(
        optimize.rosen,
        start,
        jac=optimize.rosen_der,
        hessp=optimize.rosen_hess_prod,
        method="newton-cg",
    )
    assert converged
    assert slope <= tolerance
    np.testing.assert_allclose(x, 1, atol=tolerance)
    assert steps <= 1.5 * theirs.nit
    assert steps < products < 6 * steps
    assert x.dtype == dtype
    stopped = lowest(start.astype(dtype), 0.0)
    np.testing.assert_allclose(stopped[0], 1, atol=100 * np.finfo(dtype).eps)


def test_a_quadratic_and_the_derivative_of_its_minimum() -> None:
    a, c = RANDOM.normal(size=(40, 6)), RANDOM.normal(size=(30, 6))
    truth = RANDOM.normal(size=6)
    b = a @ truth + 1 + RANDOM.normal(size=40)
    d = c @ truth + 1 + RANDOM.normal(size=30)
    w, offset, value, steps = map(np.asarray, ridge(a, b, 3.0))
    whole = np.hstack([a, np.ones((40, 1))])
    expected = np.linalg.solve(whole.T @ whole + np.diag([3.0] * 6 + [0]), whole.T @ b)
    np.testing.assert_allclose(np.append(w, offset), expected, rtol=1e-9)
    error = whole @ expected - b
    np.testing.assert_allclose(value, error @ error / 2 + 1.5 * expected[:-1] @ expected[:-1])
    assert steps < 12

    step = 1e-3
    difference = held_out(a, b, c, d, 3 + step) - held_out(a, b, c, d, 3 - step)
    slope = psc.grad(held_out, argnums=4)(a, b, c, d, 3.0)
    np.testing.assert_allclose(slope, difference / (2 * step), rtol=1e-6)
