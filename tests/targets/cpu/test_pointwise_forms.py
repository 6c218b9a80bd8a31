"""Circular functions and powers computed in double precision: their errors, and special values."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.kernels.kernel import load_kernel
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.targets.cpu.functions import FEWEST
from pscdsl._src.targets.forms import VARIABLE
from tests.support.numpy_differential import INF, NAN
from tests.support.numpy_harness import run, run_compiled

SPECIAL = np.array(
    [
        0,
        -0.0,
        1,
        -1,
        INF,
        -INF,
        NAN,
        0.5,
        -0.5,
        2,
        -2,
        3,
        -3,
        1.5,
        3e38,
        -3e38,
        16777215,
        -16777217,
    ],
    np.float32,
)
TINY = np.finfo(np.float32).smallest_normal
CIRCULAR = ((e.sin, np.sin, 0.51), (e.cos, np.cos, 0.51), (e.tan, np.tan, 2.0))


def ulps(found: Any, wanted: Any) -> float:
    """The greatest error in units in the last place of f32, of what is normal there."""
    rounded = wanted.astype(np.float32)
    known = np.isfinite(rounded) & (abs(rounded) >= TINY)
    return float(np.max(abs(found[known] - wanted[known]) / np.spacing(abs(rounded[known]))))


def spread(low: float, high: float, count: int = 20_000) -> Any:
    """Numbers of both signs whose exponents are between bounds."""
    random = np.random.default_rng(0)
    size = np.exp2(random.uniform(low, high, count))
    return (size * random.choice([-1, 1], count)).astype(np.float32)


def uniform(most: float, count: int = 20_000) -> Any:
    """Numbers of both signs up to a bound."""
    return np.random.default_rng(1).uniform(-most, most, count).astype(np.float32)


@pytest.mark.parametrize(("function", "meaning", "bound"), CIRCULAR)
def test_circular_functions_of_numbers_of_any_size(
    function: e.Elementwise, meaning: Callable[..., Any], bound: float
) -> None:
    for low, high in ((-40, 0), (0, 10), (10, 24), (24, 50), (50, 90), (90, 127.99)):
        x = spread(low, high)
        assert ulps(run_compiled(function, x), meaning(x.astype(np.longdouble))) < bound


def test_circular_functions_near_multiples_of_a_quarter_turn() -> None:
    # The closest that there are in f32: W. Kahan, "Minimizing q*m - n" (1983), and neighbours of
    # multiples up to 2^20.
    turns = np.arange(1, 1 << 20, 7) * (np.pi / 2)
    x = np.append(turns, np.ldexp(16367173.0, np.arange(-20, 100))).astype(np.float32)
    for function, meaning, bound in CIRCULAR:
        assert ulps(run_compiled(function, x), meaning(x.astype(np.longdouble))) < bound


@pytest.mark.parametrize("code", ["f4", "f2"])
def test_special_values_of_circular_functions(code: str) -> None:
    with np.errstate(over="ignore"):
        x = np.append(SPECIAL, np.array([1e-45, -1e-45, 1e-40], np.float32)).astype(code)
    x = np.resize(x, FEWEST)
    for function, _, _ in CIRCULAR:
        found, wanted = run_compiled(function, x), run(function, x)
        np.testing.assert_allclose(found, wanted, rtol=1e-6 if code == "f4" else 1e-3)
        np.testing.assert_array_equal(
            np.signbit(found[~np.isnan(wanted)]), np.signbit(wanted[~np.isnan(wanted)])
        )


def test_powers_round_once() -> None:
    for low, high, most in ((-1, 1, 100), (-126, 127, 1), (-1e-3, 1e-3, 80_000), (-149, -126, 0.8)):
        x: Any = abs(spread(low, high))
        y = uniform(most)
        with np.errstate(all="ignore"):
            wanted = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
            found = run_compiled(e.power, x, y)
            assert ulps(found, wanted) < 0.52
        assert np.all(found[wanted > 3.5e38] == INF)
        assert np.all(found[wanted < 1e-46] == 0)


def test_special_values_of_powers() -> None:
    x, y = (np.resize(each, FEWEST) for each in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        wanted = np.power(x, y)
        wanted[abs(wanted) < TINY] *= 0  # XLA has no subnormal results
    found = run_compiled(e.power, x, y)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


RAISED = """\
import pscdsl as psc
from pscdsl import Float

@psc.kernel
def raised(x: Float["n"], to: Float = {}) -> Float["n"]:
    return x**to
"""


@pytest.mark.sampled
@pytest.mark.parametrize("code", ["f2", "f4", "f8"])
@pytest.mark.parametrize("exponent", [*range(-9, 10), 0.5, 1.5, -1.5, 2.5, 7.5, -8.5, 9.5])
def test_powers_that_are_products(code: str, exponent: float, tmp_path: Path) -> None:
    path = tmp_path / "raised.py"
    path.write_text(RAISED.format(float(exponent)), encoding="utf-8")
    raised: Any = load_kernel(path, "raised")

    dtype = np.dtype(code)
    numbers = np.random.default_rng(0).uniform(0.5, 2, 1000)
    with np.errstate(over="ignore"):
        x = np.append(SPECIAL, numbers).astype(dtype)
    with np.errstate(all="ignore"):
        # A scalar 0.5 is a root for NumPy: that of -infinity is NaN, its power 1/2 is not.
        wanted = np.power(x.astype(np.float64), np.full(len(x), exponent)).astype(dtype)
        wanted[abs(wanted) < (np.finfo(dtype).tiny if code == "f8" else TINY)] *= 0
    found = np.asarray(raised(x))
    np.testing.assert_allclose(found, wanted, rtol=4 * float(np.finfo(dtype).eps))
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


@psc.kernel
def mixture(x: f32["n"], y: f32["n"]) -> f32["n"]:
    return np.sin(x) + y**1.7


def test_forms_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    given = mixture.lower(n=FEWEST).text()
    monkeypatch.setenv(VARIABLE, "circular_in_f64,powers")
    assert "f64" in given
    assert "f64" not in mixture.lower(n=FEWEST).text()


def test_logarithms_beside_1() -> None:
    for low, high, bound in ((-40, -2, 0.7), (-2, 0, 1.5), (0, 127.9, 1.0)):
        x: Any = spread(low, high, 2 * FEWEST)
        x = abs(x) if high > 0 else x
        found, wanted = run_compiled(e.log1p, x), np.log1p(x.astype(np.longdouble))
        assert ulps(found, wanted) < bound
    near = np.nextafter(np.full(2 * FEWEST, -1, np.float32), np.float32(0))
    wanted = np.log1p(near.astype(np.longdouble))
    assert ulps(run_compiled(e.log1p, near), wanted) < 1
    most = np.resize(np.array([np.finfo(np.float32).max, 2.0**24, 2.0**25 - 1]), 2 * FEWEST)
    wanted = np.log1p(most.astype(np.float32).astype(np.longdouble))
    assert ulps(run_compiled(e.log1p, most.astype(np.float32)), wanted) < 1


@pytest.mark.parametrize("code", ["f4", "f2"])
def test_special_values_of_logarithms_beside_1(code: str) -> None:
    with np.errstate(all="ignore"):
        x = np.resize(SPECIAL.astype(code), 2 * FEWEST)
        wanted = np.log1p(x.astype(np.float64)).astype(code)
    found = run_compiled(e.log1p, x)
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if code == "f4" else 1e-3)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


def test_logarithms_beside_1_in_f64() -> None:
    random = np.random.default_rng(2)
    for low, high in ((-60, -20), (-20, -2), (-2, 0), (0, 50)):
        size: Any = np.exp2(random.uniform(low, high, 20_000))
        x = size if high > 0 else size * random.choice([-1, 1], size.shape)
        found, wanted = run_compiled(e.log1p, x), np.log1p(x.astype(np.longdouble))
        assert np.max(abs(found - wanted) / np.spacing(abs(wanted.astype(np.float64)))) < 1.6
    special = np.array([0, -0.0, -1, INF, -INF, NAN, -2, 5e-324, 1e308])
    with np.errstate(all="ignore"):
        found, wanted = run_compiled(e.log1p, special), np.log1p(special)
    np.testing.assert_array_equal(found[[0, 1, 2, 3, 4, 5, 6]], wanted[[0, 1, 2, 3, 4, 5, 6]])
    np.testing.assert_allclose(found, wanted, rtol=1e-15)
    assert np.signbit(found[1])
