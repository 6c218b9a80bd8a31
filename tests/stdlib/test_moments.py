"""Moments, weighted and in parts, and sums over batches, against NumPy."""

# What trees hold is not fully typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import pscdsl as psc
from pscdsl import Float, bf16, f32, f64
from pscdsl.stdlib import accumulation, moments


class Mean(psc.Record):
    """Numbers of one row."""

    one: Float
    two: Float["2"]


def numbers(*shape: int, dtype: Any = np.float64, seed: int = 0) -> NDArray[Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@psc.kernel
def weighted(
    x: Float["n d"], w: Float["n"]
) -> tuple[Float["d"], Float["d"], Float["d d"], Float["d d"]]:
    return (
        moments.weighted_mean(x, w),
        moments.weighted_variance(x, w),
        moments.weighted_covariance(x, w),
        moments.weighted_correlation(x, w),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_with_weights_count_as_often(dtype: Any) -> None:
    x = numbers(9, 3, dtype=dtype) @ np.array([[1, 0.5, 0], [0, 1, -2], [0, 0, 1]], dtype) + 50
    often = np.array([1, 0, 3, 2, 1, 1, 4, 0, 2])
    mean, variance, covariance, correlation = weighted(x, often.astype(dtype))
    rows = np.repeat(x.astype(np.float64), often, axis=0)
    rtol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=rtol)
    np.testing.assert_allclose(variance, rows.var(axis=0), rtol=rtol)
    np.testing.assert_allclose(covariance, np.cov(rows.T, ddof=0), rtol=rtol)
    np.testing.assert_allclose(correlation, np.corrcoef(rows.T), rtol=rtol)


@psc.kernel
def in_parts(
    one: Float["n"], two: Float["n 2"], blocks: Float["k b d"]
) -> tuple[Mean, Mean, Float["d"], Float["d d"]]:
    each: Any = psc.map_reduce(moments.moments_of, moments.merged, Mean(one, two))
    all_blocks: Any = psc.map_reduce(moments.comoments_of, moments.comerged, blocks)
    covariance = all_blocks.product / all_blocks.weight
    return each.mean, moments.variance_of(each, 1), all_blocks.mean, covariance


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_have_the_moments_of_the_whole(dtype: Any) -> None:
    """Also where the squares of the numbers have no digits left."""
    far = dtype(1e3 if dtype == np.float32 else 1e8)
    one, two = numbers(1001, dtype=dtype) + far, numbers(1001, 2, dtype=dtype, seed=1)
    blocks = numbers(11, 20, 3, dtype=dtype, seed=2) + far
    mean, variance, block_mean, covariance = in_parts(one, two, blocks)
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(mean.one, one.mean(dtype=np.float64), rtol=4 * eps)
    for found, row in ((variance.one, one), (variance.two, two)):
        expected = np.asarray(row, np.float64).var(axis=0, ddof=1)
        np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == np.float32 else 1e-7)
    flat = blocks.reshape(-1, 3).astype(np.float64)
    np.testing.assert_allclose(block_mean, flat.mean(axis=0), rtol=4 * eps)
    np.testing.assert_allclose(covariance, np.cov(flat.T, ddof=0), rtol=2e-3, atol=1e-3)


@psc.kernel
def with_nothing(x: f64["n"], w: f64["n"]) -> tuple[f64, f64, f64]:
    """Rows of weight 0, among others at both ends."""
    found: Any = psc.map_reduce(
        lambda row: moments.moments_of(row[0], row[1]), moments.merged, (x, w)
    )
    return found.weight, found.mean, moments.variance_of(found)


def test_rows_of_no_weight_do_not_count() -> None:
    x, w = numbers(8), np.array([0, 0, 1, 2, 0, 0.5, 1, 0])
    weight, mean, variance = with_nothing(x, w)
    expected = np.average(x, weights=w)
    np.testing.assert_allclose([weight, mean], [w.sum(), expected])
    np.testing.assert_allclose(variance, np.average((x - expected) ** 2, weights=w))


class Weights(psc.Record):
    """Of a linear model."""

    w: Float["d"]
    b: Float


@psc.kernel
def at_once(p: Weights, x: f32["n d"], y: f32["n"]) -> f32:
    return ((x @ p.w + p.b - y) ** 2).mean()


@psc.kernel
def in_batches(p: Weights, x: f32["k n d"], y: f32["k n"]) -> tuple[f32, Weights]:
    def loss(p: Weights, batch: tuple[f32["n d"], f32["n"]]) -> f32:
        return at_once(p, *batch)

    return accumulation.value_and_grad(loss, p, (x, y))


def test_batches_have_the_gradient_of_the_whole() -> None:
    p = Weights(numbers(4, dtype=np.float32), np.float32(0.3))
    x, y = numbers(6, 5, 4, dtype=np.float32, seed=1), numbers(6, 5, dtype=np.float32, seed=2)
    value, slope = in_batches(p, x, y)
    right, expected = psc.value_and_grad(at_once)(p, x.reshape(30, 4), y.ravel())
    np.testing.assert_allclose(value, right, rtol=1e-6)
    np.testing.assert_allclose(slope.w, expected.w, rtol=1e-5)
    np.testing.assert_allclose(slope.b, expected.b, rtol=1e-5)


@psc.kernel
def sums(x: bf16["n"]) -> tuple[f32, f32, f32]:
    found: Any = psc.map_reduce(moments.moments_of, moments.merged, x)
    return accumulation.total(lambda x: x, x), accumulation.mean(lambda x: x * x, x), found.weight


def test_short_numbers_are_summed_in_long_ones() -> None:
    found = sums(np.ones(1000, ml_dtypes.bfloat16))
    np.testing.assert_array_equal(found, [1000, 1, 1000])
