"""Normalisation: the laws that define it, NumPy formulas, and extreme arguments."""

# SciPy, scikit-learn and ml_dtypes are not fully typed.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from pscdsl import ArgumentError
from pscdsl.stdlib import normalization as norm

pytestmark = pytest.mark.quick_code

EPS: dict[Any, float] = {
    np.float16: 2.0**-10,
    ml_dtypes.bfloat16: 2.0**-7,
    np.float32: 2.0**-23,
    np.float64: 2.0**-52,
}


RANDOM = np.random.default_rng(3)
DTYPES = [np.float32, np.float64]
SPACES: list[tuple[int, ...]] = [(), (5,), (3, 4), (2, 3, 2)]


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    """Each test draws the same numbers, whichever ran before it."""
    RANDOM.bit_generator.state = np.random.default_rng(3).bit_generator.state


def run(kernel: Callable[..., Any], *args: Any) -> NDArray[Any]:
    """The result of a kernel as a NumPy array."""
    return np.asarray(kernel(*args))


def affine(size: int, dtype: Any, *, neutral: bool = True) -> Any:
    """Parameters that change nothing, or random ones."""
    if neutral:
        return norm.Affine(np.ones(size, dtype), np.zeros(size, dtype))
    return norm.Affine(
        RANDOM.normal(size=size).astype(dtype), RANDOM.normal(size=size).astype(dtype)
    )


def numbers(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    return (5 + 3 * RANDOM.normal(size=shape)).astype(dtype)


def by_channel(values: NDArray[Any], ndim: int) -> NDArray[Any]:
    return values.reshape(-1, *(1,) * (ndim - 2))


def standard(x: NDArray[Any], axis: Any, tolerance: float) -> None:
    wide = x.astype(np.float64)
    np.testing.assert_allclose(wide.mean(axis=axis), 0, atol=tolerance)
    np.testing.assert_allclose(wide.var(axis=axis), 1, atol=tolerance)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [*DTYPES, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(50,), (4, 50), (2, 3, 50)])
def test_layer_norm(shape: tuple[int, ...], dtype: Any) -> None:
    x = numbers(shape, dtype)
    found = run(norm.layer_norm, affine(50, dtype), x)
    assert found.dtype == dtype
    standard(found, -1, 1e-5 + 4 * EPS[dtype])
    p = affine(50, dtype, neutral=False)
    scaled = found.astype(np.float64) * p.scale + p.shift
    eps = 8 * EPS[dtype]
    close = run(norm.layer_norm, p, x).astype(np.float64)
    np.testing.assert_allclose(close, scaled, atol=eps, rtol=eps)


def test_layer_norm_leaves_shifts_and_scales_out() -> None:
    x = numbers((3, 8), np.float64)
    p = affine(8, np.float64, neutral=False)
    first = run(norm.layer_norm, p, x, 0.0)
    np.testing.assert_allclose(run(norm.layer_norm, p, 7 * x - 100, 0.0), first, rtol=1e-9)


def test_constant_features() -> None:
    x = np.full((2, 8), 3.0, np.float32)
    np.testing.assert_array_equal(run(norm.layer_norm, affine(8, np.float32), x), np.zeros((2, 8)))


def test_large_numbers_of_16_bits() -> None:
    x = np.array([[-30000, 30000, -30000, 30000]], np.float16)
    found = run(norm.layer_norm, affine(4, np.float16), x)
    np.testing.assert_array_equal(found, [[-1, 1, -1, 1]])
    found = run(norm.rms_norm, np.ones(4, np.float16), x)
    np.testing.assert_array_equal(found, [[-1, 1, -1, 1]])


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (50,), (4, 50), (2, 3, 50)])
def test_rms_norm(shape: tuple[int, ...], dtype: Any) -> None:
    x, scale = numbers(shape, dtype), numbers((shape[-1],), dtype)
    expected = x / np.sqrt((x * x).mean(axis=-1, keepdims=True)) * scale
    np.testing.assert_allclose(run(norm.rms_norm, scale, x), expected, rtol=2e-5)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("space", SPACES)
def test_batch_norm(space: tuple[int, ...], dtype: Any) -> None:
    x = numbers((40, 3, *space), dtype)
    axes = (0, *range(2, x.ndim))
    running = norm.Statistics(np.zeros(3, dtype), np.ones(3, dtype))
    found, moved = norm.batch_norm(affine(3, dtype), running, x, 0.75)
    standard(np.asarray(found), axes, 1e-5)
    rtol = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(moved.mean, x.mean(axis=axes) / 4, rtol=rtol)
    np.testing.assert_allclose(moved.variance, 0.75 + x.var(axis=axes) / 4, rtol=rtol)


@pytest.mark.parametrize("space", SPACES)
def test_batch_norm_inference_follows_training(space: tuple[int, ...]) -> None:
    x = numbers((40, 3, *space), np.float64)
    p = affine(3, np.float64, neutral=False)
    running = norm.Statistics(np.zeros(3), np.ones(3))
    trained, moved = norm.batch_norm(p, running, x, 0.0)
    np.testing.assert_allclose(run(norm.batch_norm_inference, p, moved, x), trained, rtol=1e-9)
    one = run(norm.batch_norm_inference, p, moved, x[:1])
    np.testing.assert_allclose(one, np.asarray(trained)[:1], rtol=1e-9)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups: int, space: tuple[int, ...], dtype: Any) -> None:
    x = numbers((4, 12, *space), dtype)
    p = affine(12, dtype, neutral=False)
    found = run(norm.group_norm, p, x, groups)
    z = x.reshape(4, groups, -1).astype(np.float64)
    z = (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + 1e-5)
    scale, shift = (by_channel(each, x.ndim) for each in (p.scale, p.shift))
    expected = z.reshape(x.shape) * scale + shift
    eps = 40 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, expected, rtol=eps, atol=eps)


def test_group_norm_needs_groups_of_one_size() -> None:
    with pytest.raises(ArgumentError):
        norm.group_norm(affine(12, np.float32), numbers((4, 12), np.float32), 5)
    with pytest.raises(ArgumentError):
        norm.group_norm(affine(12, np.float32), numbers((4, 12), np.float32), 0)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("space", [(50,), (5, 6), (2, 3, 4)])
def test_instance_norm(space: tuple[int, ...], dtype: Any) -> None:
    x = numbers((2, 3, *space), dtype)
    found = run(norm.instance_norm, affine(3, dtype), x)
    standard(found, tuple(range(2, x.ndim)), 1e-4)
    p = affine(3, dtype, neutral=False)
    scale, shift = (by_channel(each, x.ndim) for each in (p.scale, p.shift))
    eps = 10 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        run(norm.instance_norm, p, x), found * scale + shift, rtol=eps, atol=eps
    )
    channels = run(norm.group_norm, p, x, 3)
    np.testing.assert_allclose(run(norm.instance_norm, p, x), channels, rtol=20 * eps, atol=eps)
