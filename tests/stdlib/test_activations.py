"""Activation functions: against plain formulas in f64, laws, and extreme arguments."""

# SciPy, scikit-learn and ml_dtypes are not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import integrate, special, stats

from pscdsl.stdlib import activations

pytestmark = pytest.mark.quick_code

Reference = Callable[[NDArray[Any]], Any]
EPS: dict[Any, float] = {
    np.float16: 2.0**-10,
    ml_dtypes.bfloat16: 2.0**-7,
    np.float32: 2.0**-23,
    np.float64: 2.0**-52,
}


def run(kernel: Callable[..., Any], *args: Any) -> NDArray[Any]:
    """The result of a kernel as a NumPy array."""
    return np.asarray(kernel(*args))


def _elu(x: NDArray[Any], alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


SELU = (1.6732632423543772, 1.0507009873554805)
FORMULAS: dict[str, Reference] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.minimum(np.maximum(x, 0), 6),
    "leaky_relu": lambda x: np.where(x > 0, x, x / 100),
    "elu": _elu,
    "celu": _elu,
    "selu": lambda x: SELU[1] * _elu(x, SELU[0]),
    "sigmoid": special.expit,
    "log_sigmoid": special.log_expit,
    "softplus": lambda x: -special.log_expit(-x),
    "silu": lambda x: x * special.expit(x),
    "swish": lambda x: x * special.expit(x),
    "mish": lambda x: x * np.tanh(-special.log_expit(-x)),
    "gelu": lambda x: x * stats.norm.cdf(x),
    "gelu_tanh": lambda x: x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip((x + 3) / 6, 0, 1),
    "hard_silu": lambda x: x * np.clip((x + 3) / 6, 0, 1),
}
BOUNDED = {"relu6", "sigmoid", "softsign", "hard_tanh", "hard_sigmoid"}


@pytest.mark.sampled
@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_formulas(name: str, dtype: type[Any]) -> None:
    x = np.linspace(-9, 9, 721).astype(dtype)
    found = run(getattr(activations, name), x)
    assert found.dtype == dtype
    eps = np.finfo(dtype).eps
    expected = FORMULAS[name](x.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=80 * eps, atol=eps)


@pytest.mark.sampled
@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_formulas_in_16_bits(name: str, dtype: type[Any]) -> None:
    x = np.linspace(-4, 4, 65).astype(dtype)
    found = run(getattr(activations, name), x)
    assert found.dtype == dtype
    eps = EPS[dtype]
    expected = FORMULAS[name](x.astype(np.float64))
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=6 * eps, atol=2 * eps)


@pytest.mark.sampled
@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_largest_arguments(name: str, dtype: type[Any]) -> None:
    largest = np.finfo(dtype).max / 2
    low, high = run(getattr(activations, name), np.array([-largest, largest], dtype))
    assert np.isfinite(low)
    assert np.isfinite(high)
    if name not in BOUNDED | {"log_sigmoid"}:
        assert high >= largest * 0.999
    if name not in {"log_sigmoid", "leaky_relu"}:
        assert -2 <= low <= 0


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 1, 4)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    for name, formula in FORMULAS.items():
        found = run(getattr(activations, name), x)
        assert found.shape == shape
        np.testing.assert_allclose(found, formula(x), rtol=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
def test_bodies_mean_the_same_in_numpy(name: str) -> None:
    kernel = getattr(activations, name)
    x = np.linspace(-5, 5, 41)
    np.testing.assert_allclose(np.asarray(kernel.__wrapped__(x)), run(kernel, x), rtol=1e-13)


def test_parameters() -> None:
    x = np.linspace(-3, 3, 13, dtype=np.float32)
    np.testing.assert_array_equal(run(activations.leaky_relu, x, 0.5), np.where(x > 0, x, x / 2))
    np.testing.assert_allclose(run(activations.elu, x, 2.0), _elu(x, 2.0), rtol=1e-6)
    np.testing.assert_allclose(run(activations.celu, x, 2.0), 2 * _elu(x / 2), rtol=1e-6)
    beta = np.float32(3)
    np.testing.assert_allclose(run(activations.swish, x, beta), x * special.expit(3 * x), rtol=1e-5)


def test_sigmoid_keeps_small_values() -> None:
    x = np.linspace(-700, 0, 100)
    np.testing.assert_allclose(run(activations.sigmoid, x), special.expit(x), rtol=1e-14)


def test_selu_keeps_mean_and_variance() -> None:
    def moment(power: int) -> float:
        x = np.linspace(-12, 12, 20001)
        y = run(activations.selu, x) ** power * stats.norm.pdf(x)
        return float(integrate.simpson(y, x=x))

    assert moment(1) == pytest.approx(0, abs=1e-8)
    assert moment(2) == pytest.approx(1, abs=1e-8)


def test_glu() -> None:
    x = np.random.default_rng(0).normal(size=(3, 8))
    expected = x[:, :4] * special.expit(x[:, 4:])
    np.testing.assert_allclose(run(activations.glu, x), expected, rtol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("shape", [(1,), (6,), (3, 5), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax(shape: tuple[int, ...], dtype: type[Any]) -> None:
    x = (20 * np.random.default_rng(0).normal(size=shape)).astype(dtype)
    eps = np.finfo(dtype).eps
    wide = x.astype(np.float64)
    np.testing.assert_allclose(
        run(activations.softmax, x), special.softmax(wide, axis=-1), rtol=200 * eps
    )
    np.testing.assert_allclose(
        run(activations.log_softmax, x),
        special.log_softmax(wide, axis=-1),
        rtol=8 * eps,
        atol=2 * eps,
    )


@settings(max_examples=50, deadline=None)
@given(arrays(np.float64, (2, 4), elements=st.floats(-1e308, 1e308)))
def test_softmax_is_a_distribution(x: NDArray[Any]) -> None:
    p = run(activations.softmax, x)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=-1), 1, rtol=1e-12)
    assert (p.argmax(axis=-1) == x.argmax(axis=-1)).all() or (np.diff(np.sort(x)) < 1e-9).any()


def test_softmax_of_extremes() -> None:
    x = np.array([[1e30, -1e30, 1e30], [-np.inf, 0, 0]], np.float32)
    np.testing.assert_array_equal(run(activations.softmax, x), [[0.5, 0, 0.5], [0, 0.5, 0.5]])
    log = run(activations.log_softmax, np.array([[0, -1000.0], [1e6, 1e6]], np.float32))
    np.testing.assert_allclose(log, [[0, -1000], [-np.log(2), -np.log(2)]], rtol=1e-6)
    many = run(activations.softmax, np.zeros(4096, np.float16))
    np.testing.assert_array_equal(many, np.full(4096, 2.0**-12))
