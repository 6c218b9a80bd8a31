"""The logistic function of large arrays: its errors and special values, and `gelu_tanh` by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special  # pyright: ignore[reportMissingTypeStubs]

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.primitives import elementwise as e
from pscdsl.stdlib import activations
from tests.support.numpy_differential import INF, NAN
from tests.support.numpy_harness import run, run_compiled

MANY = 1 << 14
TINY = float(np.finfo(np.float32).smallest_normal)


def logistic(x: Any) -> Any:
    """The function in f64."""
    return scipy.special.expit(x.astype(np.float64))


@pytest.mark.parametrize(("low", "high"), [(-87, -20), (-20, -1), (-1, 1), (1, 87)])
def test_errors(low: float, high: float) -> None:
    x = np.linspace(low, high, 100_001).astype(np.float32)
    wanted = logistic(x)
    off = abs(run_compiled(e.logistic, x) - wanted) / np.spacing(wanted.astype(np.float32))
    assert float(np.max(off)) < 3


def test_special_values() -> None:
    x = np.array([0, -0.0, INF, -INF, NAN, 3e38, -3e38, 88, -88, 89, -89, -88.5, 1e-45, 1e-40])
    x = np.resize(x, MANY).astype(np.float32)
    wanted = logistic(x).astype(np.float32)
    wanted[wanted < TINY] = 0
    np.testing.assert_array_equal(run_compiled(e.logistic, x), wanted)


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_narrow_dtypes_agree_with_numpy(dtype: str) -> None:
    x = np.linspace(-30, 30, MANY + 3).astype(dtype)
    bound = 8 * float(np.finfo(dtype).eps)
    found, wanted = run_compiled(e.logistic, x), run(e.logistic, x)
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=float(np.finfo(dtype).tiny))


@psc.kernel
def gelu_tanh(x: f32["n"]) -> f32["n"]:
    return activations.gelu_tanh(x)


@psc.kernel
def total(x: f32["n"]) -> f32:
    return np.sum(activations.gelu_tanh(x))


slope = psc.grad(total)


@pytest.mark.parametrize("count", [17, MANY])
def test_gelu_by_tanh(count: int) -> None:
    x = np.linspace(-9, 9, count).astype(np.float32)
    wide = x.astype(np.float64)
    wanted = wide * scipy.special.expit(np.sqrt(8 / np.pi) * (wide + 0.044715 * wide**3))
    np.testing.assert_allclose(gelu_tanh(x), wanted, rtol=1e-5)
    far = np.resize(np.array([1e4, -1e4, 1e30, -1e30], np.float32), count)
    np.testing.assert_array_equal(gelu_tanh(far), np.maximum(far, 0))
    np.testing.assert_array_equal(slope(far), far > 0)
