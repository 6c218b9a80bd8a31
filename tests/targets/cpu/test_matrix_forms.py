"""Products and small systems that are computed in ways of our own agree with NumPy's.

Each is compiled with its form and, to see that the form is used, without it.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import pscdsl as psc
from pscdsl import Float, Num, f64
from pscdsl._src.targets.cpu.products import Extents, is_small
from pscdsl._src.targets.forms import VARIABLE
from pscdsl.typing.dtypes import F32
from tests.support.used_forms import EPSILON, close, normal, used

pytestmark = pytest.mark.jaxlib


@psc.kernel
def products(a: Num["*b m k"], c: Num["*b k n"]) -> Num["*b m n"]:
    return a @ c


@psc.kernel
def turned(a: Float["b k m"], c: Float["b n k"]) -> Float["b m n"]:
    return np.einsum("bkm,bnk->bmn", a, c)


@psc.kernel
def steps(a: Float["n n"], x: Float["n k"]) -> Float["n k"]:
    return psc.fori_loop(0, 3, lambda _, x: a @ x, x)


@psc.kernel
def summed_rows(x: Float["n d"], h: Float["n"]) -> tuple[Float["d"], Float["d"]]:
    again = psc.fori_loop(0, 2, lambda _, y: (h * (x @ y)) @ x, x[0])
    return x.T @ h, again


@psc.kernel
def definite(a: Float["b n n"], y: Float["b n k"]) -> tuple[Float["b n n"], Float["b n k"]]:
    factor = np.linalg.cholesky(a)
    half = psc.triangular_solve(factor, y, lower=True)
    return factor, psc.triangular_solve(factor, half, lower=True, transpose=True)


@psc.kernel
def upper(a: Float["b n n"], y: Float["b n k"]) -> tuple[Float["b n k"], Float["b n k"]]:
    one = psc.triangular_solve(a, y, unit_diagonal=True)
    return one, psc.triangular_solve(a, y, transpose=True)


@psc.kernel
def general(a: Float["b n n"], y: Float["b n k"]) -> tuple[Float["b n k"], Float["b"]]:
    return np.linalg.solve(a, y), np.linalg.det(a)


@psc.kernel
def general_steps(a: f64["n n"], y: f64["n"]) -> f64["n"]:
    return psc.fori_loop(0, 3, lambda _, y: np.linalg.solve(a, y), y)


@psc.kernel
def batched_steps(a: Float["b n n"], y: Float["b n k"]) -> Float["b n k"]:
    def solved(_: Any, y: Any) -> Any:
        return np.linalg.solve(a, np.linalg.solve(np.swapaxes(a, 1, 2), y))

    return psc.fori_loop(0, 1, solved, y)


@psc.kernel
def definite_steps(a: f64["n n"], y: f64["n"]) -> f64["n"]:
    def solved(_: Any, y: Any) -> Any:
        factor = np.linalg.cholesky(a)
        half = psc.triangular_solve(factor, y, lower=True)
        return psc.triangular_solve(factor.T, half)

    return psc.fori_loop(0, 3, solved, y)


@pytest.mark.parametrize(
    ("dtype", "rows", "columns"),
    [
        (np.float32, 10_000, 100),
        (np.float64, 2**15, 16),
        (np.float32, 7 * 2**10, 300),
        (np.float64, 700, 1000),
    ],
)
def test_rows_in_parts(monkeypatch: Any, dtype: Any, rows: int, columns: int) -> None:
    x, h = normal(rows, columns, dtype=dtype), normal(rows, dtype=dtype)
    found, again = used("rows_in_parts", monkeypatch, summed_rows, x, h)
    exact, weights = x.astype(np.float64), h.astype(np.float64)
    terms = EPSILON[found.dtype.name] * 8 * np.sqrt(rows)
    np.testing.assert_allclose(found, exact.T @ weights, atol=terms * 8)
    wanted = exact[0]
    for _ in range(2):
        wanted = (weights * (exact @ wanted)) @ exact
    np.testing.assert_allclose(again, wanted, atol=terms * np.max(np.abs(wanted)))


def test_rows_that_have_no_parts(monkeypatch: Any) -> None:
    for rows in (10_007, 100):
        given = summed_rows.lower(Float="f32", n=rows, d=100).text()
        monkeypatch.setenv(VARIABLE, "rows_in_parts")
        assert summed_rows.lower(Float="f32", n=rows, d=100).text() == given
        monkeypatch.delenv(VARIABLE)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [np.float32, np.float64, bfloat16, np.float16])
@pytest.mark.parametrize("shape", [(30, 4, 4, 4), (11, 5, 6, 7), (12, 1, 5, 1), (600, 3, 4, 8)])
def test_many_small_products(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, shape: tuple[int, int, int, int]
) -> None:
    b, m, k, n = shape
    a, c = normal(b, m, k, dtype=dtype), normal(b, k, n, dtype=dtype)
    (found,) = used("small_products", monkeypatch, products, a, c)
    exact = a.astype(np.float64) @ c.astype(np.float64)
    close(found, exact, 1 if found.dtype.itemsize == 2 else k)
    left, right = a.swapaxes(1, 2).copy(), c.swapaxes(1, 2).copy()
    (found,) = used("small_products", monkeypatch, turned, left, right)
    close(found, exact, 1 if found.dtype.itemsize == 2 else k)


def test_small_products_of_integers_and_complex_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    for dtype in (np.int8, np.uint8, np.int32, np.uint64):
        limits = np.iinfo(dtype)
        a, c = (
            random.integers(limits.min, limits.max, s, dtype, True)
            for s in ((20, 4, 4), (20, 4, 5))
        )
        (found,) = used("small_products", monkeypatch, products, a, c)
        np.testing.assert_array_equal(found, a @ c)
    a, c = (normal(20, 4, 4) + 1j * normal(20, 4, 4) for _ in range(2))
    (found,) = used("small_products", monkeypatch, products, a, c)
    np.testing.assert_allclose(found, a @ c, rtol=1e-13)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [np.float32, np.float64, bfloat16])
@pytest.mark.parametrize(("n", "k"), [(4, 5), (8, 8), (16, 16), (12, 8)])
def test_products_in_loops(monkeypatch: pytest.MonkeyPatch, dtype: Any, n: int, k: int) -> None:
    a, x = normal(n, n, dtype=dtype), normal(n, k, dtype=dtype)
    if n * n * k < 256 and dtype is bfloat16:
        pytest.skip("XLA's own way is taken")
    (found,) = used("small_products", monkeypatch, steps, a, x)
    exact = np.linalg.matrix_power(a.astype(np.float64), 3) @ x.astype(np.float64)
    close(found, exact, n, scale=8)


@pytest.mark.parametrize(
    ("terms", "columns", "turned", "small"),
    [
        (10, 64, False, False),
        (10, 32, False, True),
        (10, 32, True, False),
        (10, 16, True, True),
        (16, 64, True, True),
        (6, 64, True, True),
    ],
)
def test_products_in_loops_that_are_written_out(
    terms: int, columns: int, turned: bool, small: bool
) -> None:
    here = Extents(1, 16, terms, columns, turned)
    assert is_small(here, in_loop=True, dtype=F32) == small


def test_what_is_not_finite_spreads_as_in_products(monkeypatch: pytest.MonkeyPatch) -> None:
    a, c = normal(30, 4, 4), normal(30, 4, 4)
    a[3, 1, 2], a[4, 0, 0], c[4, 0, 1] = np.nan, np.inf, 0
    (found,) = used("small_products", monkeypatch, products, a, c)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, a @ c, rtol=1e-12, atol=1e-14)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8])
def test_small_systems(monkeypatch: pytest.MonkeyPatch, dtype: Any, n: int) -> None:
    count = 600
    g, y = normal(count, n, n, dtype=dtype), normal(count, n, 2, dtype=dtype)
    a = g @ g.swapaxes(1, 2) + np.eye(n, dtype=dtype)
    exact, right = a.astype(np.float64), y.astype(np.float64)
    factor, found = used("small_matrices", monkeypatch, definite, a, y)
    close(factor, np.linalg.cholesky(exact), 4 * n)
    close(found, np.linalg.solve(exact, right), 20 * n)
    found, det = used("small_matrices", monkeypatch, general, g, y)
    residual = g.astype(np.float64) @ found - right
    size = np.abs(g).astype(np.float64) @ np.abs(found) + np.abs(right)
    assert np.max(np.abs(residual) / size) <= 8 * n * EPSILON[found.dtype.name]
    close(det, np.linalg.det(g.astype(np.float64)), 8 * n)
    t = (g + 3 * np.eye(n)).astype(dtype)
    one, two = used("small_matrices", monkeypatch, upper, t, y)
    triangle = np.triu(t.astype(np.float64))
    unit = triangle - np.eye(n) * triangle + np.eye(n)
    close(one, np.linalg.solve(unit, right), 20 * n)
    close(two, np.linalg.solve(triangle.swapaxes(1, 2), right), 20 * n)


@pytest.mark.parametrize("n", [3, 5, 8])
def test_small_matrices_that_have_no_factor(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    a, y = np.tile(np.eye(n), (600, 1, 1)), normal(600, n, 1)
    a[1, 1, 1], a[2, 2, 2], a[3, 0, 0], a[4, 2, 1] = -1, 0, np.nan, np.nan
    factor, _ = used("small_matrices", monkeypatch, definite, a, y)
    lower = np.tril_indices(n)
    assert np.isnan(factor[1:5][:, *lower]).all()
    assert (factor[:, 0, 1:] == 0).all()
    np.testing.assert_array_equal(factor[0], np.eye(n))
    np.testing.assert_array_equal(factor[5:], a[5:])


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_small_singular_and_permuted_matrices(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    a, y = np.tile(np.eye(n), (600, 1, 1)), normal(600, n, 1)
    a[1] = 0
    a[2, :3] = a[2, [2, 0, 1]]
    a[3, :3, :3] = np.array([[0, 2, 0], [1, 0, 0], [0, 0, 0]])
    a[4, :3, :3] = np.array([[1e-30, 1, 0], [1, 1, 0], [0, 0, 1]])
    a[5, 2, 0], y[6, 0] = np.nan, -0.0
    found, det = used("small_matrices", monkeypatch, general, a, y)
    assert np.isnan(found[[1, 3]]).all()
    np.testing.assert_array_equal(det[:4], [1, 0, 1, 0])
    for place in (0, 2, 4):
        np.testing.assert_allclose(found[place], np.linalg.solve(a[place], y[place]), rtol=1e-14)
    assert np.isnan(det[5])
    np.testing.assert_array_equal(found[6:], y[6:])
    assert np.signbit(found[6, 0]) or n == 3


@pytest.mark.parametrize("n", [1, 3, 4, 5, 6, 7, 8])
def test_systems_in_loops(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    g, y = normal(n, n), normal(n)
    a = g @ g.T + np.eye(n)
    wanted = np.linalg.solve(a @ a @ a, y)
    (found,) = used("small_matrices", monkeypatch, definite_steps, a, y)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    (found,) = used("small_matrices", monkeypatch, general_steps, a, y)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "count", "columns"), [(5, 3, 8), (7, 40, 1), (8, 33, 2)])
def test_batches_of_systems_in_loops(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, n: int, count: int, columns: int
) -> None:
    a = (normal(count, n, n) + 9 * np.eye(n)).astype(dtype)
    y = normal(count, n, columns, dtype=dtype)
    (found,) = used("small_matrices", monkeypatch, batched_steps, a, y)
    exact = a.astype(np.float64)
    wanted = np.linalg.solve(exact.swapaxes(1, 2) @ exact, y.astype(np.float64))
    close(found, wanted, 60 * n)


@psc.kernel
def network(
    a: Float["n n"], c: Float["d n"], xs: Float["t d"], h: Float["n"]
) -> tuple[Float["n"], Float["t n"]]:
    """A matrix from the left of a vector, and another one, both ways round, from the right."""

    def step(h: Any, x: Any) -> Any:
        h = np.tanh(a @ h + np.dot(x, c) + np.einsum("n,mn->m", h, a))
        return h, h

    return psc.scan(step, h, xs)


@pytest.mark.parametrize(("n", "d", "length"), [(16, 3, 100), (17, 1, 130), (33, 16, 200)])
def test_matrices_that_are_turned_for_vectors(
    monkeypatch: pytest.MonkeyPatch, n: int, d: int, length: int
) -> None:
    shapes = (n, n), (d, n), (length, d), (n,)
    given = [normal(*shape, dtype=np.float32) / 8 for shape in shapes]
    last, all_of_them = used("prepared_factors", monkeypatch, network, *given)
    a, c, xs, h = (each.astype(np.float64) for each in given)
    for x, found in zip(xs, all_of_them, strict=True):
        h = np.tanh(2 * a @ h + x @ c)
        close(found, h, 4 * (n + d))
    np.testing.assert_array_equal(last, all_of_them[-1])


def test_matrices_that_are_not_turned_for_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps, doubles, few rows, and large matrices."""
    cases = (("f32", 32, 50), ("f64", 32, 1000), ("f32", 15, 1000), ("f32", 300, 1000))
    for dtype, n, length in cases:
        given = network.lower(Float=dtype, n=n, d=2, t=length).text()
        monkeypatch.setenv(VARIABLE, "prepared_factors")
        assert network.lower(Float=dtype, n=n, d=2, t=length).text() == given
        monkeypatch.delenv(VARIABLE)
