"""Bessel functions and factorials beside mpmath and SciPy."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import pscdsl as psc
from pscdsl import Static, f32, f64, special
from pscdsl._src.primitives import bessel
from pscdsl.typing.diagnostics import Failure
from tests.support.function_values import mp
from tests.support.numpy_harness import run, run_compiled

pytestmark = pytest.mark.quick_code(but=4)

X = np.array([1e-300, 1e-8, 0.02, 0.7, 1.99, 2.0, 2.01, 5.5, 11.0, 24.9, 25.1, 70.0, 650.0])
ORDERS = {
    "jv": (0, 1, 2, 7, 30, 80, -3),
    "iv": (0, 1, 4, 0.5, 2.25, 7.3, 35.5, 80, -50, -2, -0.4, -2.5),
    "kv": (0, 1, 4, 0.5, 1.5, 1e-9, 2.25, -3.5, 7.3, 60),
}
OF_MPMATH = {"jv": mp.besselj, "iv": mp.besseli, "kv": mp.besselk}


@pytest.mark.sampled
@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values(name: str, dtype: Any) -> None:
    """Within a few units in the last place; of J relative to the waves of it."""
    function, limits, x = OF_MPMATH[name], np.finfo(dtype), X[X > np.finfo(dtype).tiny]
    x = x.astype(dtype)
    for order in ORDERS[name]:
        known: Any = dtype(order)
        wanted = np.array([float(function(float(known), float(each))) for each in x])
        scale = abs(wanted)
        if name == "jv":
            scale += [float(abs(function(float(known) + 1, float(each)))) for each in x]
        with np.errstate(all="ignore"):
            found = getattr(bessel, name).meaning(np.full_like(x, order), x).astype(float)
        normal = (scale > limits.tiny) & (scale < limits.max)
        units = abs(found[normal] - wanted[normal]) / scale[normal] / float(limits.eps)
        most = 24 if dtype is np.float64 and name != "kv" else 24 + 2 * abs(order)
        assert units.max() < most, (order, x[normal][units.argmax()])
        large = wanted > limits.max
        assert (found[large] == np.inf).all()


@pytest.mark.parametrize("name", ORDERS)
def test_what_is_no_number(name: str) -> None:
    x = np.array([0.0, -0.0, np.nan, -1.5, -30.0, 1e5])
    for order in (0, 1, 2, -3) if name == "jv" else (0, 1, 2, -3, 0.5, -0.5):
        with np.errstate(all="ignore"):
            found = run(f"pscdsl.special.{name}", order, x)
            wanted = getattr(scipy.special, name)(order, x)
        np.testing.assert_allclose(found[1:], wanted[1:], rtol=1e-13, atol=1e-13)
        assert found[0] == abs(wanted[0]) or abs(order) > 0


@pytest.mark.parametrize("name", ORDERS)
def test_compiled(name: str) -> None:
    x = X[X < 600]
    for order in ORDERS[name][2:4]:
        found = run_compiled(f"pscdsl.special.{name}", order, x)
        wanted = run(f"pscdsl.special.{name}", order, x)
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15 if name == "jv" else 0)


def kernel_of_scipy(x: f64["n"]) -> tuple[f64["n"], f64["n"], f64["n"]]:
    waves = scipy.special.jv(2, x) + scipy.special.jn(0, x) + scipy.special.j1(-x)
    total = 0 * x
    for k in range(6):
        total = total + x**k / scipy.special.factorial(k)
    others = scipy.special.k0(x) + scipy.special.k1(x) * scipy.special.factorial(4, exact=True)
    return waves, total, others + scipy.special.iv(0.5, x) * scipy.special.kv(3, x)


def test_names_in_kernels() -> None:
    x = np.linspace(0.1, 30, 40)
    kernel: Any = psc.kernel(kernel_of_scipy)
    for found, wanted in zip(kernel(x), kernel_of_scipy(x), strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-14)


def slopes(x: f64["n"], order: Static[int]) -> f64:
    y = special.jv(order, x) * special.iv(order, x) + special.kv(order + 0.5, x)
    total: f64 = y.sum()
    return total


@pytest.mark.parametrize("order", [0, 3])
def test_derivatives(order: int) -> None:
    def value(x: Any) -> Any:
        bessel_i = mp.besseli(order, x)
        return mp.besselj(order, x) * bessel_i + mp.besselk(order + mp.mpf(0.5), x)

    x = np.array([0.3, 1.9, 2.2, 7.5, 14.0])
    kernel: Any = psc.kernel(slopes)
    gradient: Any = psc.grad(kernel)
    wanted = [float(mp.diff(value, float(each))) for each in x]
    np.testing.assert_allclose(np.asarray(gradient(x, order)), wanted, rtol=1e-9)


def test_factorials() -> None:
    for n in (
        np.array([0, 1, 5, 20, 170, 171, -1, -4]),
        np.array([0.5, 3.0, -0.5, 170.6, np.nan, 0.0, -2.0]),
        np.array([1.0, 2.5, 30.0], np.float32),
        np.array([3, 4], np.uint8),
        *(7, 0, -2, 170, 171, 10**6),
    ):
        found, wanted = special.factorial(n), scipy.special.factorial(n)
        assert np.asarray(found).dtype == np.float64
        narrow = np.asarray(n).dtype == np.float32  # of which SciPy computes in f32
        np.testing.assert_allclose(found, wanted, rtol=1e-6 if narrow else 2e-14)
    for n in (np.zeros((1, 0), np.int64), np.zeros(0, np.float32)):  # SciPy returns them
        for exact in (False, n.dtype.kind == "i"):
            found, wanted = special.factorial(n, exact), scipy.special.factorial(n, exact)
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    for n in (0, 5, 30, -3):
        assert special.factorial(n, exact=True) == scipy.special.factorial(n, exact=True)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("jv", (0.5, X)),
        ("jv", (100, X)),
        ("jv", (np.nan, X)),
        ("kv", (np.inf, X)),
        ("kv", (True, X)),
        ("iv", ("1", X)),
        ("iv", (X, X)),
        ("kv", (0, X + 0j)),
        ("factorial", (X, True)),
        ("factorial", (3, False, "complex")),
        ("factorial", (np.array([True]),)),
        ("factorial", (X + 0j,)),
        ("factorial", (10**6, True)),
    ],
)
def test_what_is_refused(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(Failure):
        run(f"scipy.special.{name}", *args)


def slope_of_i(x: f64) -> f64:
    return special.iv(1, x)


def slope_of_k(x: f64) -> f64:
    return special.kv(1, x)


def narrow_slope_of_k(x: f32) -> f32:
    return special.kv(34, x)


def j_of_the_highest_order(x: f64) -> f64:
    return special.jv(99, x)


def i_of_the_highest_order(x: f64) -> f64:
    return special.iv(-98.5, x)


def bends_of_k(x: f64) -> tuple[f64, f64]:
    high = psc.grad(psc.grad(lambda x: special.kv(99, x)))  # pyright: ignore[reportUnknownLambdaType]
    low = psc.grad(psc.grad(lambda x: special.kv(-99, x)))  # pyright: ignore[reportUnknownLambdaType]
    return high(x), low(x)


def test_derivatives_are_finite_up_to_the_largest_number() -> None:
    """Though sums of neighbouring orders, and products with the order, are not."""
    for kernel, wanted, x in (
        (slope_of_i, mp.besseli(0, 713.6) - mp.besseli(1, 713.6) / 713.6, 713.6),
        (slope_of_k, -mp.besselk(0, 8e-155) - mp.besselk(1, 8e-155) / 8e-155, 8e-155),
        (narrow_slope_of_k, -mp.besselk(33, 1.9375) - 34 * mp.besselk(34, 1.9375) / 1.9375, 1.9375),
    ):
        found = np.asarray(psc.grad(psc.kernel(kernel))(x))
        assert found.dtype == (np.float32 if kernel is narrow_slope_of_k else np.float64)
        rtol = 200 * float(np.finfo(found.dtype).eps)
        np.testing.assert_allclose(found, float(wanted), rtol=rtol * (8 if x > 700 else 1))


def test_derivatives_of_j_and_i_of_the_highest_order() -> None:
    j: Any = psc.kernel(j_of_the_highest_order)
    i: Any = psc.kernel(i_of_the_highest_order)
    for kernel, exact, order, sign in ((j, mp.besselj, 99, -1), (i, mp.besseli, -98.5, 1)):
        for x in (60.0, 99.0, 150.0):
            around = [exact(order + k, x) for k in (-3, -2, -1, 0, 1, 2, 3)]
            second = (around[1] + 2 * sign * around[3] + around[5]) / 4
            third = around[0] + 3 * sign * around[2] + 3 * around[4] + sign * around[6]
            bend = psc.grad(psc.grad(kernel))
            np.testing.assert_allclose(np.asarray(bend(x)), float(second), rtol=1e-10)
            np.testing.assert_allclose(np.asarray(psc.grad(bend)(x)), float(third / 8), rtol=1e-10)


def test_high_orders_of_i_are_finite_in_single_precision() -> None:
    """Where those of low orders are not."""
    for order, x in ((99, 122.0), (99, 126.5), (90, 119.0), (80, 115.0)):
        found: Any = run_compiled("pscdsl.special.iv", order, np.array([x], np.float32))
        np.testing.assert_allclose(found, float(mp.besseli(order, x)), rtol=1e-4)


def test_second_derivatives_of_k_of_the_highest_order() -> None:
    kernel: Any = psc.kernel(bends_of_k)
    for x in (5.0, 90.0):
        around = [mp.besselk(order, x) for order in (97, 99, 101)]
        wanted = float((around[0] + 2 * around[1] + around[2]) / 4)
        for found in kernel(x):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-11)
