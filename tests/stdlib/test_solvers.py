"""Linear systems and eigenvalues of operators, against NumPy."""

# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pscdsl as psc
from pscdsl import Float, f32, f64, i32
from pscdsl.stdlib import solvers

pytestmark = pytest.mark.quick_code

DTYPES = [np.float32, np.float64]
RANDOM = np.random.default_rng(0)
SQUARE = RANDOM.normal(size=(30, 30))
DEFINITE = SQUARE @ SQUARE.T + np.diag(10.0 ** np.linspace(0, 4, 30))
REGULAR = SQUARE + 8 * np.eye(30)
RIGHT = RANDOM.normal(size=30)


@psc.kernel
def by_gradients(
    a: Float["n n"], b: Float["n"], tolerance: Float
) -> tuple[Float["n"], i32, Float["n"], i32, Float]:
    """Without and with the diagonal as a preconditioner."""
    plain = solvers.conjugate_gradients(lambda x: a @ x, b, None, tolerance, 500)
    helped = solvers.conjugate_gradients(
        lambda x: a @ x, b, b, tolerance, 500, lambda r: r / np.diag(a)
    )
    return plain.x, plain.steps, helped.x, helped.steps, helped.residual


@psc.kernel
def by_gmres(
    a: Float["n n"], b: Float["n"], tolerance: Float, max_steps: i32
) -> tuple[Float["n"], Float, i32]:
    found = solvers.gmres(lambda x: a @ x, b, tolerance, max_steps, restart=12)
    return found.x, found.residual, found.steps


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1, 1e-20])
def test_conjugate_gradients(dtype: Any, scale: float) -> None:
    a, b = DEFINITE.astype(dtype), (RIGHT * scale).astype(dtype)
    tolerance = 100 * np.finfo(dtype).eps
    x, steps, helped, fewer, residual = map(np.asarray, by_gradients(a, b, tolerance))
    expected = np.linalg.solve(DEFINITE, RIGHT)
    for found in (x, helped):
        assert found.dtype == dtype
        np.testing.assert_allclose(found / scale, expected, rtol=0, atol=1e3 * tolerance)
    assert residual <= tolerance * np.linalg.norm(b)
    assert fewer < 0.7 * steps


@pytest.mark.parametrize("dtype", DTYPES)
def test_gmres(dtype: Any) -> None:
    a, b = REGULAR.astype(dtype), RIGHT.astype(dtype)
    tolerance = 100 * np.finfo(dtype).eps
    x, residual, steps = map(np.asarray, by_gmres(a, b, tolerance, 1000))
    assert x.dtype == dtype
    np.testing.assert_allclose(x, np.linalg.solve(REGULAR, RIGHT), rtol=0, atol=20 * tolerance)
    assert residual <= tolerance * np.linalg.norm(b)
    assert 12 < steps < 200
    x, residual, steps = map(np.asarray, by_gmres(a, b, tolerance, 10))
    assert steps == 12, "a restart is the first occasion to stop"
    np.testing.assert_allclose(residual, np.linalg.norm(b - a @ x), rtol=1e-3)
    nothing, _, steps = by_gmres(a, np.zeros_like(b), tolerance, 10)
    assert not np.any(nothing)
    assert int(steps) == 0


def test_gmres_is_least_in_each_space() -> None:
    """The residual after m products is the least that polynomials of degree m can reach."""

    @psc.kernel
    def after(a: f64["n n"], b: f64["n"]) -> tuple[f64, ...]:
        sizes = (1, 4, 30)
        found = [solvers.gmres(lambda x: a @ x, b, 1e-12, 1, restart=most) for most in sizes]
        return tuple([each.residual for each in found])

    space = RIGHT[:, None]
    found = np.array(after(REGULAR, RIGHT))
    for most in range(1, 5):
        space = np.hstack([space / np.linalg.norm(space[:, -1]), (REGULAR @ space[:, -1])[:, None]])
        if most in (1, 4):
            images = np.linalg.qr(space[:, 1:])[0]
            least = np.linalg.norm(RIGHT - images @ (images.T @ RIGHT))
            np.testing.assert_allclose(found[most // 4], least, rtol=1e-6)
    assert found[-1] < 1e-12 * np.linalg.norm(RIGHT) * 30


@psc.kernel
def of_tree(a: f64["n n"], b: f64["n"], s: f64) -> tuple[f64, f64]:
    """Systems of a vector and a number, symmetric and not."""

    def symmetric(x: tuple[Any, Any]) -> tuple[Any, Any]:
        return a @ (a.T @ x[0]) + x[1] * b, b @ x[0] + s * x[1]

    def other(x: tuple[Any, Any]) -> tuple[Any, Any]:
        return a @ x[0] + x[1] * b, np.sum(x[0]) + s * x[1]

    right = (np.cos(b), s)
    x, y = solvers.conjugate_gradients(symmetric, right, None, 1e-13).x
    helped = solvers.gmres(other, right, 1e-13, 100, 5, lambda x: (x[0] / np.diag(a), x[1] / s))
    return np.sum(x * x) * y, np.sum(helped.x[0] ** 3) * helped.x[1]


@psc.kernel
def of_tree_directly(a: f64["n n"], b: f64["n"], s: f64) -> tuple[f64, f64]:
    right = np.append(np.cos(b), s)
    column, ones = b[:, None], np.ones((1, b.shape[0]), np.float64)
    corner = np.reshape(s, (1, 1))
    symmetric = np.concatenate(
        [np.concatenate([a @ a.T, column], 1), np.concatenate([column.T, corner], 1)]
    )
    other = np.concatenate([np.concatenate([a, column], 1), np.concatenate([ones, corner], 1)])
    x, y = np.linalg.solve(symmetric, right), np.linalg.solve(other, right)
    return np.sum(x[:-1] ** 2) * x[-1], np.sum(y[:-1] ** 3) * y[-1]


def test_derivatives_are_those_of_the_systems() -> None:
    args = REGULAR[:6, :6], RIGHT[:6], 40.0

    def slopes(kernel: Callable[..., Any]) -> list[NDArray[Any]]:
        back = psc.vjp(kernel, *args)[1]((1.0, 0.5))
        along = psc.jvp(kernel, args, (np.ones((6, 6)), np.zeros(6), 1.0))
        return [*map(np.asarray, back), np.asarray(along)]

    for mine, direct in zip(slopes(of_tree), slopes(of_tree_directly), strict=True):
        np.testing.assert_allclose(mine, direct, rtol=1e-8, atol=1e-12)


@psc.kernel
def extreme(a: f32["n n"], start: f32["n"]) -> solvers.Eigenpairs["n 20"]:
    return solvers.eigenpairs(lambda x: a @ x, start, 20)


@psc.kernel
def reduced(a: f64["n n"], start: f64["n"]) -> solvers.Krylov["n 9"]:
    return solvers.lanczos(lambda x: a @ x, start, 9)


def test_lanczos() -> None:
    a = SQUARE + SQUARE.T
    found = extreme(a.astype(np.float32), RIGHT.astype(np.float32))
    truth = np.linalg.eigvalsh(a)
    np.testing.assert_allclose(found.values[[0, -1]], truth[[0, -1]], rtol=1e-5)
    vectors, values = np.asarray(found.vectors), np.asarray(found.values)
    residuals = np.linalg.norm(vectors @ a - values[:, None] * vectors, axis=1)
    np.testing.assert_allclose(found.residuals, residuals, atol=1e-4)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(20), atol=1e-5)

    krylov = reduced(a, RIGHT)
    basis = np.asarray(krylov.basis)
    beside = np.asarray(krylov.beside)
    tridiagonal = np.diag(krylov.diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    np.testing.assert_allclose(basis @ a @ basis.T, tridiagonal, atol=1e-10)
    np.testing.assert_allclose(a @ basis[-1] @ np.asarray(krylov.rest), beside[-1], rtol=1e-10)
    short = reduced(np.diag(np.repeat([1.0, 2.0, 3.0], 10)), RIGHT)
    assert not np.any(np.asarray(short.basis)[3:])
    np.testing.assert_allclose(np.asarray(short.beside)[2:], 0)
