"""Powers of two to any exponent: their errors, exact ones, and special values."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32
from pscdsl._src.targets.cpu.functions import FEWEST, factor
from pscdsl._src.targets.forms import VARIABLE
from pscdsl._src.xla.runtime.devices import to_numpy
from tests.support.numpy_differential import INF, NAN

DTYPES = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
COUNT = 2 * FEWEST


@psc.kernel
def exp2(x: Float["n"]) -> Float["n"]:
    return np.exp2(x)


@psc.kernel
def halved(x: Float["n"]) -> tuple[Float["n"], Float["n"]]:
    return 0.5**x, 16.0**x


@psc.kernel
def repeated(x: f32["n"]) -> f32["n"]:
    return psc.fori_loop(0, 5, lambda _, y: np.exp2(-y), x)


def limits(dtype: Any) -> Any:
    find: Any = ml_dtypes.finfo
    return find(dtype)


def wide(x: Any) -> Any:
    return x.astype(np.longdouble)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("most", [0.5, 1e-4, 10.0, 120.0, 1000.0])
def test_errors(dtype: Any, most: float) -> None:
    x = np.random.default_rng(1).uniform(-most, most, COUNT).astype(dtype)
    with np.errstate(all="ignore"):
        wanted = np.exp2(wide(x))
        rounded = wanted.astype(dtype)
        found = to_numpy(exp2(x))
        small = rounded < limits(dtype).smallest_normal
        known = np.isfinite(rounded) & ~small
        error = abs(wide(found) - wanted)[known] / wide(np.spacing(rounded[known]))
        assert np.max(error) < (1 if dtype in (np.float32, np.float64) else 0.51)
        np.testing.assert_array_equal(found[np.isinf(rounded)], INF)
        assert np.all(wide(found[small]) <= limits(dtype).smallest_normal)


@pytest.mark.parametrize("dtype", DTYPES)
def test_integers_are_exact(dtype: Any) -> None:
    powers: Any = np.resize(
        np.arange(int(limits(dtype).minexp), int(limits(dtype).maxexp) + 3), COUNT
    )
    x = powers.astype(dtype)
    exact = wide(x) == powers  # bf16 rounds some of them
    with np.errstate(over="ignore"):
        wanted = np.ldexp(1.0, powers).astype(dtype)
    np.testing.assert_array_equal(to_numpy(exp2(x))[exact], wanted[exact])


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype: Any) -> None:
    tiny = limits(dtype).smallest_subnormal
    x = np.array([0.0, -0.0, INF, -INF, NAN, -NAN, tiny, -tiny, limits(dtype).max], dtype)
    wanted = [1, 1, INF, 0, NAN, NAN, 1, 1, INF]
    np.testing.assert_array_equal(wide(to_numpy(exp2(np.resize(x, COUNT))))[: len(x)], wanted)
    low, high = limits(dtype).minexp, limits(dtype).maxexp
    most = limits(dtype).max
    beyond = np.array([low - 30, low * 3, high, high + 1, high * 3, -most], dtype)
    wanted = [0, 0, INF, INF, INF, 0]
    np.testing.assert_array_equal(to_numpy(exp2(np.resize(beyond, COUNT)))[:6], wanted)


def test_just_below_what_overflows() -> None:
    for dtype, most in ((np.float32, 128), (np.float64, 1024)):
        last = np.full(COUNT, np.nextafter(dtype(most), dtype(0)))
        found = to_numpy(exp2(last))
        assert np.all(np.isfinite(found))
        np.testing.assert_allclose(found, np.exp2(last), rtol=2 * float(np.finfo(dtype).eps))
        first = np.full(COUNT, dtype(2 - most))
        assert np.all(to_numpy(exp2(first)) == np.finfo(dtype).smallest_normal)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_other_bases(dtype: Any) -> None:
    assert [factor(base) for base in (2.0, 4.0, 16.0, 0.5, 0.25)] == [1, 2, 4, -1, -2]
    assert [factor(base) for base in (1.0, 8.0, 3.0, 0.0, -2.0, INF, NAN)] == [None] * 7
    x = np.random.default_rng(2).uniform(-25, 25, COUNT).astype(dtype)
    for found, wanted in zip(halved(x), (np.exp2(-x), np.exp2(4 * x)), strict=True):
        np.testing.assert_allclose(to_numpy(found), wanted, rtol=2 * float(np.finfo(dtype).eps))


def test_in_loops() -> None:
    x = np.random.default_rng(3).normal(size=40).astype(np.float32)
    wanted = x.astype(np.float64)
    for _ in range(5):
        wanted = np.exp2(-wanted)
    np.testing.assert_allclose(to_numpy(repeated(x)), wanted, rtol=1e-6)


def test_it_is_a_form(monkeypatch: pytest.MonkeyPatch) -> None:
    given = repeated.lower(n=64).text()
    monkeypatch.setenv(VARIABLE, "powers")
    assert repeated.lower(n=64).text() != given
