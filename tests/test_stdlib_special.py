"""The error function and reductions against SciPy."""

# SciPy, scikit-learn and ml_dtypes are not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special as reference

from pscdsl.stdlib import reductions, special

EPS: dict[Any, float] = {
    np.float16: 2.0**-10,
    ml_dtypes.bfloat16: 2.0**-7,
    np.float32: 2.0**-23,
    np.float64: 2.0**-52,
}
GRID = np.concatenate([np.linspace(-6, 6, 2001), [0.46875, -0.46875, 4.0, -4.0, -0.0]])


def run(kernel: Callable[..., Any], *args: Any) -> NDArray[Any]:
    """The result of a kernel as a NumPy array."""
    return np.asarray(kernel(*args))


@pytest.mark.parametrize("name", ["erf", "erfc"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_error_functions(name: str, dtype: type[Any]) -> None:
    x = GRID.astype(dtype)
    found = run(getattr(special, name), x)
    expected = getattr(reference, name)(x.astype(np.float64))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=40 * np.finfo(dtype).eps)


def test_error_functions_far_out() -> None:
    x = np.array([300.0, 1e300, np.inf, -300.0, -1e300, -np.inf, np.nan])
    expected = [1, 1, 1, -1, -1, -1, np.nan]
    np.testing.assert_array_equal(run(special.erf, x), expected)
    np.testing.assert_array_equal(run(special.erfc, x), [0, 0, 0, 2, 2, 2, np.nan])
    np.testing.assert_array_equal(run(special.normal_cdf, x), [1, 1, 1, 0, 0, 0, np.nan])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_error_function_in_16_bits(dtype: type[Any]) -> None:
    x = GRID.astype(dtype)
    expected = reference.erf(x.astype(np.float64)).astype(dtype)
    found = run(special.erf, x)
    assert found.dtype == dtype
    step = EPS[dtype]
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), atol=step)


def test_normal_cdf_keeps_small_probabilities() -> None:
    x = np.linspace(-35, 8, 500)
    np.testing.assert_allclose(run(special.normal_cdf, x), reference.ndtr(x), rtol=1e-12)


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logsumexp(shape: tuple[int, ...], dtype: type[Any]) -> None:
    x = (100 * np.random.default_rng(0).normal(size=shape)).astype(dtype)
    rtol = 10 * np.finfo(dtype).eps
    expected: Any = reference.logsumexp(x.astype(np.float64), axis=-1)
    np.testing.assert_allclose(run(reductions.logsumexp, x), expected, rtol=rtol)
    mean = expected - np.log(shape[-1])
    np.testing.assert_allclose(run(reductions.logmeanexp, x), mean, rtol=rtol, atol=rtol)


def test_logsumexp_of_extremes() -> None:
    inf = np.inf
    x = np.array([[1e300, 1e300, 0], [-1e300, -inf, -inf], [-inf, -inf, -inf], [inf, 0, -inf]])
    np.testing.assert_array_equal(run(reductions.logsumexp, x), [1e300, -1e300, -inf, inf])
    half = np.full(4096, 11.0, np.float16)
    np.testing.assert_allclose(run(reductions.logsumexp, half), 11 + np.log(4096), rtol=1e-3)
