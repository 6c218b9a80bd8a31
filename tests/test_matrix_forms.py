"""Products, convolutions and small systems that are computed in ways of our own agree with NumPy's.

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
from pscdsl import Bool, Float, Num, f64
from pscdsl.forms import VARIABLE
from pscdsl.primitives.product_forms import Extents, is_small
from pscdsl.typing.dtypes import F32

EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "bfloat16": 2.0**-7, "float16": 2.0**-10}


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
def convolved(x: Float["n c h w"], k: Float["o c a b"]) -> Float["n o h w"]:
    return psc.conv(x, k, padding="same")


@psc.kernel
def convolved_again(x: Float["n c h w"], k: Float["c c a b"]) -> Float["n c h w"]:
    return psc.fori_loop(0, 2, lambda _, x: convolved(x, k), x)


@psc.kernel
def convolved_or_not(x: Float["n c *s"], k: Float["c c *a"], yes: Bool) -> Float["n c *s"]:
    return psc.cond(yes, lambda: psc.conv(x, k, padding="same"), lambda: x)


@psc.kernel
def depthwise(x: Float["n c h w"], k: Float["2*c 1 a b"]) -> Float["n 2*c h w"]:
    return psc.conv(x, k, padding="same", groups=x.shape[1])


@psc.kernel
def strided(x: Float["n c 2*h 3*w"], k: Float["o c a b"]) -> Float["n o h w"]:
    return psc.conv(x, k, strides=(2, 3), padding="same", dilation=(1, 2))


@psc.kernel
def spread(x: Float["n c h w"], k: Float["c 1 3 2"]) -> Float["n c 2*h+1 2*w"]:
    return psc.conv_transpose(x, k, strides=2, groups=x.shape[1])


@psc.kernel
def within(x: Float["n c h+a w+b"], k: Float["o c a b"]) -> Float["n o h+1 w+1"]:
    return psc.conv(x, k)


@psc.kernel
def whole(x: Float["n c h w"], k: Float["o c h 1"]) -> Float["n o 1 w"]:
    return psc.conv(x, k)


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


def normal(*shape: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def used(form: str, monkeypatch: pytest.MonkeyPatch, kernel: Any, *args: Any) -> list[Any]:
    """The results of a kernel whose program is another one without a form."""
    from pscdsl.xla.emit import lower_module

    _, types = kernel.arguments(args, {})
    fit, sizes = kernel.matched(types)
    program = kernel.optimised(fit.choice)
    numbers = {name: sizes[name] for name in program.dims}
    mine = str(lower_module(program, numbers))
    monkeypatch.setenv(VARIABLE, form)
    assert str(lower_module(program, numbers)) != mine
    monkeypatch.delenv(VARIABLE)
    found = kernel(*args)
    return [np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))]


def close(found: Any, wanted: Any, terms: int, scale: float = 1.0) -> None:
    """Equal to within a few roundings of each of so many terms."""
    error = np.abs(found.astype(np.float64) - wanted)
    assert np.max(error) <= EPSILON[found.dtype.name] * (terms + 2) * scale * np.max(np.abs(wanted))


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


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize("shape", [(40, 1000, 30), (129, 260, 64)])
def test_products_of_narrow_integers_are_exact(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, shape: tuple[int, int, int]
) -> None:
    m, k, n = shape
    limits = np.iinfo(dtype)
    extreme = np.full((m, k), limits.min or limits.max, dtype)
    random = np.random.default_rng(k).integers(limits.min, limits.max, (k, n), dtype, True)
    least = np.full((k, n), limits.min or limits.max, dtype)
    for c in (random, least):
        if dtype is np.uint8:  # its sums may be too large for f32
            found = np.asarray(products(extreme, c))
        else:
            (found,) = used("float_products", monkeypatch, products, extreme, c)
        np.testing.assert_array_equal(found, extreme @ c)


def slow_conv(x: Any, k: Any, strides: Any, dilation: Any, groups: int) -> Any:
    """The convolution with padding "same", in f64."""
    x, k = x.astype(np.float64), k.astype(np.float64)
    places = [-(-size // step) for size, step in zip(x.shape[2:], strides, strict=True)]
    reach = [(size - 1) * step for size, step in zip(k.shape[2:], dilation, strict=True)]
    totals = [
        max((count - 1) * step + far + 1 - size, 0)
        for count, step, far, size in zip(places, strides, reach, x.shape[2:], strict=True)
    ]
    x = np.pad(x, [(0, 0), (0, 0), *((total // 2, total - total // 2) for total in totals)])
    x = np.pad(x, [(0, 0), (0, 0), (0, 9), (0, 9)])
    outputs, taken = k.shape[:2]
    result = np.zeros((len(x), outputs, *places))
    for o in range(outputs):
        first = o // (outputs // groups) * taken
        for i, j in np.ndindex(*k.shape[2:]):
            rows = i * dilation[0] + np.arange(places[0]) * strides[0]
            columns = j * dilation[1] + np.arange(places[1]) * strides[1]
            seen = x[:, first : first + taken][:, :, rows][:, :, :, columns]
            result[:, o] += np.einsum("nchw,c->nhw", seen, k[o, :, i, j])
    return result


@pytest.mark.parametrize("dtype", [np.float32, np.float64, bfloat16])
def test_convolutions_as_shifted_products(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    def check(kernel: Any, x: Any, k: Any, strides: Any, dilation: Any, groups: int) -> None:
        (found,) = used("shifted_products", monkeypatch, kernel, x, k)
        terms = 1 if dtype is bfloat16 else k[0].size
        close(found, slow_conv(x, k, strides, dilation, groups), terms)

    x, k = normal(2, 3, 33, 40, dtype=dtype), normal(16, 3, 3, 2, dtype=dtype)
    check(convolved, x, k, (1, 1), (1, 1), 1)
    x, k = normal(2, 5, 7, 6, dtype=dtype), normal(10, 1, 3, 5, dtype=dtype)
    check(depthwise, x, k, (1, 1), (1, 1), 5)
    x, k = normal(4, 2, 64, 96, dtype=dtype), normal(8, 2, 3, 3, dtype=dtype)
    check(strided, x, k, (2, 3), (1, 2), 1)


def test_spread_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    x, k = normal(2, 3, 5, 6), normal(3, 1, 3, 2)
    (found,) = used("shifted_products", monkeypatch, spread, x, k)
    wanted = np.zeros((2, 3, 11, 12))
    for i, j in np.ndindex(3, 2):  # slides without being turned: its last element comes first
        wanted[:, :, i : i + 9 : 2, j : j + 11 : 2] += x * k[:, 0, 2 - i, 1 - j, None, None]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, bfloat16])
def test_convolutions_as_products_of_matrices(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    terms = 1 if dtype is bfloat16 else 6
    for size in (3, 9):
        x, k = normal(2, 6, size, 8, dtype=dtype), normal(7, 6, 1, 1, dtype=dtype)
        (found,) = used("convolution_as_dot", monkeypatch, convolved, x, k)
        close(found, slow_conv(x, k, (1, 1), (1, 1), 1), terms)
        (found,) = used("convolution_as_dot", monkeypatch, strided, x[:, :, :2, :6], k)
        close(found, slow_conv(x[:, :, :2, :6], k, (2, 3), (1, 2), 1), terms)
        x, k = normal(2, 6, size, 80, dtype=dtype), normal(7, 6, size, 1, dtype=dtype)
        (found,) = used("convolution_as_dot", monkeypatch, whole, x, k)
        exact = np.einsum("nchw,ochz->now", x.astype(np.float64), k.astype(np.float64))
        close(found, exact[:, :, None], terms * (1 if terms == 1 else size))


@pytest.mark.parametrize("dtype", [np.float32, bfloat16])
def test_convolutions_in_loops(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    x, k = normal(2, 16, 9, 17, dtype=dtype), normal(16, 16, 3, 2, dtype=dtype)
    (found,) = used("channels_last", monkeypatch, convolved_again, x, k)
    wanted = slow_conv(x, k, (1, 1), (1, 1), 1)
    wanted = slow_conv(wanted.astype(dtype), k, (1, 1), (1, 1), 1)
    close(found, wanted, 8 if dtype is bfloat16 else 96)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_in_branches(monkeypatch: pytest.MonkeyPatch, axes: int) -> None:
    x = normal(2, 16, *{1: (700,), 2: (21, 17), 3: (8, 7, 6)}[axes], dtype=np.float32)
    k = normal(16, 16, *(3,) * axes, dtype=np.float32)
    (found,) = used("channels_last", monkeypatch, convolved_or_not, x, k, np.True_)
    exact = convolved_or_not(x.astype(np.float64), k.astype(np.float64), np.True_)
    close(found, np.asarray(exact), 16 * 3**axes)


@pytest.mark.parametrize("dtype", [np.float32, bfloat16])
def test_large_kernels_in_parts(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    for channels, outputs in ((20, 33), (40, 15)):  # the last part is smaller
        x = normal(10, channels, 34, 33, dtype=dtype)
        k = normal(outputs, channels, 32, 32, dtype=dtype)
        (found,) = used("kernel_in_parts", monkeypatch, within, x, k)
        wide, kernel = x.astype(np.float64), k.astype(np.float64)
        wanted = np.zeros(found.shape)
        for i, j in np.ndindex(*found.shape[2:]):
            seen = wide[:, :, i : i + 32, j : j + 32]
            wanted[:, :, i, j] = np.tensordot(seen, kernel, ((1, 2, 3), (1, 2, 3)))
        close(found, wanted, 1 if dtype is bfloat16 else 64)  # far fewer than the terms


def test_kernels_without_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for sizes, dtype in (
        ({"n": 8, "c": 8, "a": 32}, "f32"),  # fits the cache
        ({"n": 1, "c": 17, "a": 32}, "f32"),  # little work
        ({"n": 8, "c": 17, "a": 32}, "f64"),
        ({"n": 8, "c": 900, "a": 5}, "f32"),  # sees few places
    ):
        numbers = {**sizes, "o": 33, "h": 2, "w": 2, "b": sizes["a"]}
        given = within.lower(Float=dtype, **numbers).text()
        monkeypatch.setenv(VARIABLE, "kernel_in_parts")
        assert within.lower(Float=dtype, **numbers).text() == given
        monkeypatch.delenv(VARIABLE)


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
    last, all_of_them = used("turned_for_vectors", monkeypatch, network, *given)
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
        monkeypatch.setenv(VARIABLE, "turned_for_vectors")
        assert network.lower(Float=dtype, n=n, d=2, t=length).text() == given
        monkeypatch.delenv(VARIABLE)
