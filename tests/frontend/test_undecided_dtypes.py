"""Arrays and numbers without a dtype have NumPy's dtype and digits, whatever carries them."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, bool_, f32, f64, i32
from tests.fuzz.numpy_differences import CAMPAIGN

pytestmark = pytest.mark.quick_code

EPS = np.finfo(float).eps


@psc.kernel
def area(n: psc.Static[int]):  # type: ignore[no-untyped-def]
    assert n >= 1
    return np.mean(np.sin(np.linspace(0.0, 1.0, n)))


@psc.kernel
def stored(x: f64["n"]) -> f64["n"]:
    z = np.linspace(0.0, 1.0, len(x))
    for _ in range(200):
        z = np.cos(z)
    x = x.copy()
    x[:] = z
    return x


@psc.kernel
def augmented(x: f64["n"]) -> f64["n"]:
    z = np.linspace(0.0, 1.0, len(x))
    for _ in range(200):
        z = np.cos(z)
    x = x.copy()
    x += z
    return x


@psc.kernel
def elements(x: f64["n"]) -> f64["n"]:
    w = np.zeros(3)
    for k in range(300):
        w[k % 3] += 1 / (k + 1)
    x = x.copy()
    for i in range(len(x)):
        x[i] = w[0] + w[1] * w[2]
    return x


@psc.kernel
def counted(x: f64["n"]):  # type: ignore[no-untyped-def]
    c = np.zeros(4)
    for k in range(20000):
        c[k % 4] += 0.1
    return c


@psc.kernel
def branch(x: f64["n"], flag: bool) -> f64["n"]:
    z = np.linspace(0.0, 1.0, len(x))
    z = np.cos(z) if flag else np.sin(z)
    x = x.copy()
    x[:] = z
    return x


@psc.kernel
def scalar(x: f64["n"]) -> f64["n"]:
    s = np.sqrt(np.arange(1, 4)).sum()
    t = 0.0
    for k in range(200):
        t = t + s / (k + 1)
    return x * t


@psc.kernel
def american(s: float, k: float, r: float, v: float, t: float):  # type: ignore[no-untyped-def]
    """The price of a put on a tree."""
    n = 100
    dt = t / n
    u = math.exp(v * math.sqrt(dt))
    p = (math.exp(r * dt) - 1 / u) / (u - 1 / u)
    values = np.zeros(n + 1)
    for i in range(n + 1):
        values[i] = max(k - s * u ** (n - 2 * i), 0.0)
    for _ in range(n):
        for i in range(n):
            values[i] = math.exp(-r * dt) * (p * values[i] + (1 - p) * values[i + 1])
    return values[0]


@psc.kernel
def places(x: f64["n"], k: i32["n"], m: bool_["n"]):  # type: ignore[no-untyped-def]
    assert len(x) >= 1
    found = np.argmax(x), np.argsort(x), np.sum(m), np.count_nonzero(x), np.cumsum(k), np.sum(k)
    return *found, np.mean(k), k / 2, np.exp(k), np.arange(3), np.std(k), np.searchsorted(x, x)


@psc.kernel
def small(x: f64["n"]):  # type: ignore[no-untyped-def]
    return x * (1 + EPS), np.maximum(x, EPS)


X = np.linspace(0.1, 0.9, 5)
CALLS: list[tuple[Any, tuple[Any, ...]]] = [
    (area, (7,)),
    (stored, (X,)),
    (augmented, (X,)),
    (elements, (X,)),
    (counted, (X,)),
    (branch, (X, True)),
    (branch, (X, False)),
    (scalar, (X,)),
    (american, (36.0, 40.0, 0.06, 0.2, 1.0)),
    (places, (X, np.arange(5, dtype=np.int32), X > 0.3)),
    (small, (X,)),
]


@pytest.mark.parametrize(("kernel", "arguments"), CALLS)
def test_dtypes_and_digits_are_numpys(kernel: Any, arguments: tuple[Any, ...]) -> None:
    found, wanted = kernel(*arguments), kernel.__wrapped__(*arguments)
    several = isinstance(wanted, tuple)
    for one, two in zip(
        found if several else [found], wanted if several else [wanted], strict=True
    ):
        assert np.asarray(one).dtype == np.asarray(two).dtype
        np.testing.assert_allclose(one, two, rtol=1e-13)


@psc.kernel
def of_a_class(x: Float["n"]):  # type: ignore[no-untyped-def]
    z = np.linspace(0.0, 1.0, len(x))
    for _ in range(200):
        z = np.cos(z)
    return z


@psc.kernel
def cast_later(x: f32["n"]) -> f64["n"]:
    z = np.linspace(0.0, 1.0, len(x))
    for _ in range(200):
        z = np.cos(z)
    return x.astype(np.float64) + z


@psc.kernel
def drawn(key: psc.Key, x: Float["n"]):  # type: ignore[no-untyped-def]
    return psc.random.normal(key, (3,))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_class_of_dtypes_is_followed(dtype: Any) -> None:
    assert of_a_class(X.astype(dtype)).dtype == dtype
    assert drawn(psc.random.key(0), X.astype(dtype)).dtype == dtype


def test_nothing_is_rounded_to_32_bits_on_the_way() -> None:
    x = X.astype(np.float32)
    plain: Any = cast_later
    np.testing.assert_allclose(cast_later(x), plain.__wrapped__(x), rtol=1e-15)


def test_a_float_given_for_a_class_is_numpys() -> None:
    @psc.kernel
    def doubled(x: Float) -> Float:
        return x * 2

    assert doubled(0.1).dtype == np.float64
    assert psc.random.normal(psc.random.key(0), (2,)).dtype == np.float64


@pytest.mark.parametrize("start", range(0, 40, 20))
def test_programs_have_numpys_dtypes_and_digits(start: int) -> None:
    figures = CAMPAIGN.here(range(start, start + 20), "--grammar", "dtypes")
    assert not figures.problems, figures.shown
    assert figures.count("equal") >= 12
