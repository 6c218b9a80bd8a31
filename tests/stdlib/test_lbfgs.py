"""Minimization by L-BFGS: against SciPy's, on functions with known minima, in f32 and f64."""

# SciPy and scikit-learn are not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize
from sklearn.datasets import load_breast_cancer

import pscdsl as psc
from pscdsl import Float, f32, f64
from pscdsl._src.analysis.cost import cost
from pscdsl.stdlib.layers import Dense, dense
from pscdsl.stdlib.lbfgs import Curvature, Minimum, lbfgs, newton_direction, remembered
from pscdsl.stdlib.losses import logistic_loss

pytestmark = pytest.mark.quick_code


def rosenbrock(x: Float["n"]) -> Float:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@psc.kernel
def by_wolfe(start: Float["n"], tolerance: Float) -> Minimum[Float["n"]]:
    assert start.shape[0] >= 2
    return lbfgs(rosenbrock, start, tolerance=tolerance)


@psc.kernel
def by_armijo(start: Float["n"], tolerance: Float) -> Minimum[Float["n"]]:
    assert start.shape[0] >= 2
    return lbfgs(rosenbrock, start, memory=5, search="armijo", tolerance=tolerance)


def begin(n: int, dtype: Any) -> Any:
    return np.where(np.arange(n) % 2, 1, -1.2).astype(dtype)


@pytest.mark.parametrize("kernel", [by_wolfe, by_armijo])
def test_rosenbrock(kernel: Any) -> None:
    n = 10
    start = begin(n, np.float64)
    found = kernel(start, 1e-8)
    np.testing.assert_allclose(found.params, np.ones(n), atol=1e-8)
    assert float(found.slope) <= 1e-8
    assert float(found.value) < 1e-15
    options = {"maxcor": 10, "gtol": 1e-8, "ftol": 0}
    theirs: Any = optimize.minimize(
        optimize.rosen, start, jac=optimize.rosen_der, method="L-BFGS-B", options=options
    )
    assert int(found.steps) <= 1.5 * theirs.nit
    assert int(found.evaluations) <= 1.5 * theirs.nfev


def test_it_stops_where_rounding_is_all_that_is_left() -> None:
    found = by_wolfe(begin(3, np.float32), np.float32(0))
    np.testing.assert_allclose(found.params, np.ones(3), atol=1e-3)
    assert float(found.slope) < 1e-2
    assert int(found.steps) < 100
    assert int(found.evaluations) < 250


@psc.kernel
def regress(
    start: Dense["d 1"], x: f64["n d"], y: f64["n"], strength: f64
) -> Minimum[Dense["d 1"]]:
    def loss(p: Dense["d 1"]) -> f64:
        penalty = strength * (p.weights * p.weights).sum() / 2
        return logistic_loss(dense(p, x)[:, 0], y).mean() + penalty

    return lbfgs(loss, start, tolerance=1e-7)


def test_logistic_regression_of_a_record() -> None:
    data: Any = load_breast_cancer()
    x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    y, (n, d) = data.target.astype(float), x.shape
    strength = 1 / n
    start = Dense(np.zeros((d, 1)), np.zeros(1))
    found = regress(start, x, y, strength)
    assert float(found.slope) <= 1e-7

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = x @ w[:-1] + w[-1]
        error = 1 / (1 + np.exp(-z)) - y
        terms = np.logaddexp(0, z) - y * z
        slope = np.append(x.T @ error / n + strength * w[:-1], error.mean())
        return float(terms.mean() + strength * w[:-1] @ w[:-1] / 2), slope

    options = {"gtol": 1e-9, "ftol": 0}
    theirs: Any = optimize.minimize(
        loss, np.zeros(d + 1), jac=True, method="L-BFGS-B", options=options
    )
    assert float(found.value) == pytest.approx(theirs.fun, abs=1e-10)
    weights = np.append(found.params.weights, found.params.bias)
    np.testing.assert_allclose(weights, theirs.x, atol=1e-4)
    assert int(found.steps) <= 1.5 * theirs.nit


@psc.kernel
def directions(
    a: f64["n n"], moves: f64["k n"], gradient: f64["n"]
) -> tuple[f64["n"], Curvature["3 n"]]:
    def step(known: Curvature["3 n"], move: f64["n"]) -> tuple[Curvature["3 n"], None]:
        return remembered(known, move, a @ move), None

    table = np.zeros((3, a.shape[0]), a.dtype)
    nothing = Curvature(table, table, table[:, 0])
    known, _ = psc.scan(step, nothing, moves)
    return newton_direction(known, gradient), known


def test_directions_are_those_of_the_matrices_of_the_paper() -> None:
    random = np.random.default_rng(0)
    n = 5
    a = random.normal(size=(n, n))
    a = a @ a.T + np.eye(n)
    moves, gradient = random.normal(size=(4, n)), random.normal(size=n)
    found, known = directions(a, moves, gradient)
    np.testing.assert_array_equal(known.steps, moves[1:])

    changes = moves @ a
    h = np.eye(n) * (moves[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for s, y in zip(moves[1:], changes[1:], strict=True):
        v = np.eye(n) - np.outer(y, s) / (s @ y)
        h = v.T @ h @ v + np.outer(s, s) / (s @ y)
    np.testing.assert_allclose(found, h @ gradient, rtol=1e-9)

    found, known = directions(-a, moves, gradient)  # nothing is learnt where there is no minimum
    np.testing.assert_array_equal(found, gradient)
    assert not np.any(known.scales)


def test_a_direction_costs_what_is_said() -> None:
    flops = cost(newton_direction.ir()).at({"m": 10, "n": 10_000}).flops
    assert flops == pytest.approx(8 * 10 * 10_000, rel=0.05)


@psc.kernel
def valley(start: f32) -> tuple[f32, f32]:
    def steep(x: f32) -> f32:
        return np.where(x > 0, x - np.log(np.where(x > 0, x, 1)), np.inf)

    found = lbfgs(steep, start)
    return found.params, found.slope


def test_values_that_are_infinite_bound_the_search() -> None:
    x, slope = valley(np.float32(30))
    assert float(x) == pytest.approx(1, abs=1e-4)
    assert float(slope) < 1e-4
