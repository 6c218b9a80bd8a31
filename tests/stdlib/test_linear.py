"""Iterative and substitution solvers against NumPy and SciPy."""

# SciPy, scikit-learn and ml_dtypes are not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg

import pscdsl as psc
from pscdsl import Float, i32
from pscdsl.stdlib import linear, solvers

pytestmark = pytest.mark.quick_code

DTYPES = [np.float32, np.float64]
COLUMNS: list[tuple[int, ...]] = [(), (1,), (3,), (2, 3)]


def run(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> NDArray[Any]:
    """The result of a kernel as a NumPy array."""
    return np.asarray(kernel(*args, **kwargs))


def definite(size: int, dtype: Any, seed: int = 0) -> NDArray[Any]:
    m = np.random.default_rng(seed).normal(size=(size, size))
    return (m @ m.T + size * np.eye(size)).astype(dtype)


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 1) -> NDArray[Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_conjugate_gradients(size: int, dtype: Any) -> None:
    a, b = definite(size, dtype), numbers((size,), dtype)
    tolerance = 100 * float(np.finfo(dtype).eps)
    found = linear.solve_cg(a, b, tolerance)
    expected = np.linalg.solve(a.astype(np.float64), b)
    np.testing.assert_allclose(found.x, expected, rtol=0, atol=tolerance)
    assert np.asarray(found.residual) <= tolerance * np.linalg.norm(b)
    assert 1 <= np.asarray(found.steps) <= size + 2
    assert np.asarray(found.x).dtype == dtype


def test_conjugate_gradients_end_in_as_many_steps_as_eigenvalues() -> None:
    q, _ = np.linalg.qr(numbers((20, 20), np.float64))
    a = q @ np.diag(np.repeat([1.0, 5.0, 30.0, 100.0], 5)) @ q.T
    assert np.asarray(linear.solve_cg(a, numbers((20,), np.float64), 1e-10).steps) == 4


def test_conjugate_gradients_stop() -> None:
    a, b = definite(30, np.float64), numbers((30,), np.float64)
    found = linear.solve_cg(a, b, 0.0, 3)
    assert np.asarray(found.steps) == 3
    residual = np.linalg.norm(b - a @ np.asarray(found.x))
    np.testing.assert_allclose(found.residual, residual, rtol=1e-9)
    nothing = linear.solve_cg(a, np.zeros(30))
    np.testing.assert_array_equal(nothing.x, np.zeros(30))
    assert np.asarray(nothing.steps) == 0
    assert np.asarray(nothing.residual) == 0


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_conjugate_gradients_of_extremes(scale: float) -> None:
    a, b = definite(8, np.float32), numbers((8,), np.float32)
    found = linear.solve_cg(a, b * np.float32(scale))
    np.testing.assert_allclose(
        np.asarray(found.x, np.float64) / scale, np.linalg.solve(a, b), rtol=1e-4
    )


@psc.kernel
def poisson(right: Float["n"], start: Float["n"], max_steps: i32) -> linear.Solution["n"]:
    """-u'' = right between zeros, from a guess; the matrix is never formed."""

    def negative_second_difference(u: Float["n"]) -> Float["n"]:
        padded = np.concatenate([np.zeros_like(u[:1]), u, np.zeros_like(u[:1])])
        return 2 * u - padded[:-2] - padded[2:]

    found = solvers.conjugate_gradients(negative_second_difference, right, start, 1e-8, max_steps)
    return linear.Solution(found.x, found.residual, found.steps)


@psc.kernel
def rectangular(a: Float["m n"], b: Float["n"]) -> Float["n"]:
    """A mistake: the operator changes the size."""
    return solvers.conjugate_gradients(lambda v: a @ v, b).x


def test_conjugate_gradients_refuse_an_operator_that_changes_the_size() -> None:
    with pytest.raises(psc.CheckError, match="m is not n"):
        rectangular.check()


def test_conjugate_gradients_of_a_function() -> None:
    n = 25
    matrix = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    right = numbers((n,), np.float64)
    expected = np.linalg.solve(matrix, right)
    found = poisson(right, numbers((n,), np.float64, 5), 100)
    np.testing.assert_allclose(found.x, expected, rtol=1e-6)
    again = poisson(right, expected, 100)
    assert np.asarray(again.steps) == 0
    np.testing.assert_allclose(again.x, expected, rtol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 10])
def test_power_iteration(size: int, dtype: Any) -> None:
    a = definite(size, dtype, seed=2)
    tolerance = 20 * float(np.finfo(dtype).eps)
    found = linear.power_iteration(a, numbers((size,), dtype), tolerance, 3000)
    values, vectors = np.linalg.eigh(a.astype(np.float64))
    np.testing.assert_allclose(found.value, values[-1], rtol=50 * tolerance)
    vector = np.asarray(found.vector)
    assert abs(vector @ vectors[:, -1]) == pytest.approx(1, rel=1e-4)
    assert np.linalg.norm(vector) == pytest.approx(1, rel=1e-6)
    assert np.asarray(found.residual) <= tolerance * values[-1]


def test_power_iteration_finds_negative_eigenvalues() -> None:
    found = linear.power_iteration(np.diag([1.0, -9.0, 3.0]), np.ones(3), 1e-9)
    np.testing.assert_allclose(found.value, -9)
    np.testing.assert_allclose(np.abs(found.vector), [0, 1, 0], atol=1e-8)
    stopped = linear.power_iteration(np.diag([1.0, 0.999]), np.ones(2), 1e-9, 7)
    assert np.asarray(stopped.steps) == 7


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("size", [1, 6])
def test_solve_triangular(size: int, columns: tuple[int, ...], lower: bool, dtype: Any) -> None:
    a, b = definite(size, dtype), numbers((size, *columns), dtype)
    found = run(linear.solve_triangular, a, b, lower)
    flat = b.reshape(size, -1).astype(np.float64)
    expected = linalg.solve_triangular(a.astype(np.float64), flat, lower=lower).reshape(b.shape)
    eps = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, expected, rtol=eps, atol=eps)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("size", [1, 2, 9])
def test_solve_tridiagonal(size: int, columns: tuple[int, ...], dtype: Any) -> None:
    below, above = numbers((size,), dtype, 3), numbers((size,), dtype, 4)
    diagonal = (4 + np.abs(numbers((size,), dtype, 5))).astype(dtype)
    below[0] = above[-1] = np.nan
    b = numbers((size, *columns), dtype)
    matrix = np.diag(diagonal) + np.diag(above[:-1], 1) + np.diag(below[1:], -1)
    found = run(linear.solve_tridiagonal, below, diagonal, above, b)
    expected = np.linalg.solve(matrix.astype(np.float64), b.reshape(size, -1)).reshape(b.shape)
    eps = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, expected, rtol=eps, atol=eps)
