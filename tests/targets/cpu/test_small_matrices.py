"""What small matrices give that are taken side by side, compared with the primitives' meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pscdsl._src.interpreters.replay import closed
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Function
from pscdsl._src.primitives.factorisations import (
    Cholesky,
    Lu,
    LuSolve,
    TriangularSolve,
    factored,
    substituted,
)
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.compilation import compile_module
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions

COUNT = 523
"""So many matrices that the last ones do not fill a vector."""


def run(primitive: Primitive, *operands: Any) -> list[Any]:
    """The results of a primitive, compiled; its program has loops, and calls nothing."""

    def build(_: Builder, params: list[Value]) -> Sequence[Value]:
        return primitive.bind(*params)

    types = [ArrayType(from_numpy(x.dtype), x.shape) for x in operands]
    body = closed(Assumptions(), types, build)
    module = lower_module(Function("f", (), Assumptions(), body), {})
    text = str(module)
    assert "stablehlo.while" in text
    assert "custom_call" not in text
    return [np.asarray(each) for each in compile_module(module).run(operands)]


def matrices(n: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(n).normal(size=(COUNT, n, n)).astype(dtype)


@pytest.mark.parametrize("n", [4, 5, 6, 7, 8])
def test_pivots_are_the_first_of_the_largest(n: int) -> None:
    a = np.random.default_rng(n).integers(-2, 3, (COUNT, n, n)).astype(np.float64)
    a[0], a[1, 2, 0], a[2, 1, 0], a[3, 1, 0], a[3, 3, 0] = 0, np.nan, np.inf, np.nan, np.nan
    _, pivots, order = run(Lu(), a)
    _, places, _ = factored(a)  # later columns have been rounded
    np.testing.assert_array_equal(pivots[:, 0], places[:, 0])
    np.testing.assert_array_equal(pivots[0], np.arange(n))
    rows = np.tile(np.arange(n), (COUNT, 1))
    for k in range(n):
        for row, pivot in zip(rows, pivots[:, k], strict=True):
            row[[k, pivot]] = row[[pivot, k]]
    np.testing.assert_array_equal(order, rows)


@pytest.mark.sampled
@pytest.mark.parametrize("n", [4, 5, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_of_ill_scaled_matrices(n: int, dtype: Any) -> None:
    scales = np.random.default_rng(0).choice([1e-12, 1e-4, 1, 1e12], (COUNT, n, 1))
    a = (matrices(n) * scales).astype(dtype)
    lu, _, order = run(Lu(), a)
    lower, upper = np.tril(lu, -1) + np.eye(n), np.triu(lu)
    assert np.max(np.abs(lower)) <= 1
    rest = lower @ upper.astype(np.float64) - np.take_along_axis(a, order[:, :, None], 1)
    size = np.abs(lower) @ np.abs(upper.astype(np.float64))
    assert (np.abs(rest) <= 2 * n * np.finfo(dtype).eps * size).all()


@pytest.mark.parametrize("n", [5, 8])
def test_only_the_lower_triangle_has_a_factor(n: int) -> None:
    a = np.tile(4 * np.eye(n), (COUNT, 1, 1))
    a[:, 2, 1] = 1
    a[1] += np.triu(np.full((n, n), np.nan), 1)
    a[2, 3, 3] = np.inf
    (found,) = run(Cholesky(), a)
    wanted = 2 * np.eye(n)
    wanted[2, 1], wanted[2, 2] = 0.5, np.sqrt(3.75)
    np.testing.assert_allclose(found[0], wanted, rtol=1e-15)
    np.testing.assert_array_equal(found[1], found[0])
    wanted[3, 3] = np.inf
    np.testing.assert_allclose(found[2], wanted, rtol=1e-15)


@pytest.mark.sampled
@pytest.mark.parametrize("columns", [1, 3, 8])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_systems(columns: int, lower: bool, transposed: bool, unit: bool) -> None:
    a = matrices(7) + 4 * np.eye(7)
    b = np.random.default_rng(1).normal(size=(COUNT, 7, columns))
    read = (np.tril if lower else np.triu)(np.ones((7, 7), bool), -1 if unit and lower else unit)
    a[1, ~read], a[2, ~read] = np.nan, np.inf
    solve = TriangularSolve(lower_triangle=lower, transposed=transposed, unit_diagonal=unit)
    (found,) = run(solve, a, b)
    given = np.where(read, a, 0)
    turned = given.swapaxes(1, 2) if transposed else given
    wanted = substituted(turned, b, lower != transposed, unit)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.sampled
@pytest.mark.parametrize("n", [4, 5, 8])
@pytest.mark.parametrize("transposed", [True, False])
def test_factored_systems(n: int, transposed: bool) -> None:
    a = matrices(n)
    a[1], a[2, :, 1] = 0, 0
    b = np.random.default_rng(1).normal(size=(COUNT, n, 3))
    lu, _, order = factored(a)
    (found,) = run(LuSolve(transposed), a, lu, order, b)
    assert np.isnan(found[1:3]).all()
    turned = a.swapaxes(1, 2) if transposed else a
    rest = np.delete(turned @ found - b, [1, 2], axis=0)
    size = np.delete(np.abs(turned) @ np.abs(found), [1, 2], axis=0)
    assert np.max(np.abs(rest) / size) < 1e-14


def test_batches_of_several_axes() -> None:
    a = matrices(6)[:522].reshape(2, 261, 6, 6)
    lu, _, order = run(Lu(), a)
    wanted, _, rows = factored(a)
    np.testing.assert_allclose(lu, wanted, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(order, rows)
