"""Areas under large arrays of samples: as close as NumPy's, and its infinities and NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32, f64
from pscdsl.primitives.neighbours import FEWEST
from pscdsl.xla.arrays import to_numpy

COUNT = FEWEST + 5


@psc.kernel
def area(x: Float["*b n"]) -> Float["*b"]:
    return np.trapezoid(x)


@psc.kernel
def columns(x: Float["n m"]) -> Float["m"]:
    return np.trapezoid(x, dx=0.25, axis=0)


@psc.kernel
def stepped(x: f32["n"], dx: f32) -> f32:
    return psc.numpy.trapezoid(x, dx=dx)


@psc.kernel
def stepped_square(x: f64["n"], dx: f64) -> f64:
    return psc.numpy.trapezoid(x * x, dx=dx)


def exact(x: Any, axis: int = -1) -> Any:
    """The area in double precision."""
    return np.trapezoid(x.astype(np.float64), axis=axis)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("ends", [(0.0, 0.0), (1e4, 1.0), (1e4, -1e4), (-3e4, 2e4)])
def test_it_is_close_to_the_exact_area(dtype: Any, ends: tuple[float, float]) -> None:
    x = np.random.default_rng(1).normal(size=COUNT).astype(dtype)
    x[0], x[-1] = ends
    wide = np.longdouble(x) if dtype is np.float64 else x.astype(np.float64)
    # Of what each sample contributes, in size; half precision is summed in f32.
    size = float(np.trapezoid(np.abs(wide)))
    allowed = 8 * float(np.finfo(np.float32 if dtype is np.float16 else dtype).eps) * size
    found = to_numpy(area(x))
    wanted = np.trapezoid(wide)
    assert abs(float(found) - float(wanted)) <= allowed + float(np.finfo(dtype).eps) * abs(
        float(wanted)
    )


SPECIAL = {
    "an infinite end": {0: np.inf},
    "infinite ends": {0: np.inf, -1: np.inf},
    "opposite ends": {0: np.inf, -1: -np.inf},
    "an infinity": {77: -np.inf},
    "an end and another": {-1: np.inf, 5: -np.inf},
    "NaN": {-1: np.nan},
    "the largest numbers": {0: 3e38, -1: 2e38, 9: -3e38},
    "the largest, which cancel": {0: 3e38, 1: -3e38, 2: 3e38, 3: -3e38, 4: 3e38, 5: -3e38},
}


@pytest.mark.parametrize("places", SPECIAL.values(), ids=SPECIAL)
def test_special_numbers(places: dict[int, float]) -> None:
    x = np.ones(COUNT, np.float32)
    for place, value in places.items():
        x[place] = value
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(to_numpy(area(x)), np.trapezoid(x), rtol=1e-6)
        rows = np.stack([np.ones_like(x), x])
        np.testing.assert_allclose(to_numpy(area(rows)), np.trapezoid(rows), rtol=1e-6)


def test_axes_and_sizes() -> None:
    rng = np.random.default_rng(2)
    for shape in ((1, 3), (2, 3), (COUNT, 3), (3, COUNT), (40, COUNT // 30), (1, COUNT)):
        x = rng.normal(size=shape) + 1
        np.testing.assert_allclose(to_numpy(area(x)), exact(x), rtol=1e-12, atol=1e-10)
        wanted = exact(x, 0) / 4
        np.testing.assert_allclose(to_numpy(columns(x)), wanted, rtol=1e-12, atol=1e-10)


def test_steps_that_are_computed() -> None:
    x = np.random.default_rng(3).normal(size=COUNT).astype(np.float32) + 1
    assert abs(float(to_numpy(stepped(x, np.float32(0.3)))) - 0.3 * exact(x)) < 1e-5 * COUNT
    steps = np.array([0.5, 1, 2], np.float32)
    np.testing.assert_allclose(
        to_numpy(psc.vmap(stepped, in_axes=(None, 0))(x, steps)), steps * exact(x), rtol=1e-5
    )


@pytest.mark.parametrize("count", [1, 2, 3, COUNT])
def test_derivatives(count: int) -> None:
    x = np.random.default_rng(4).normal(size=count)
    by_samples, by_step = map(
        to_numpy, psc.grad(stepped_square, argnums=(0, 1))(x, np.float64(0.3))
    )
    weights = np.full(count, 1.0)
    weights[0] = weights[-1] = 0.5 if count > 1 else 0
    np.testing.assert_allclose(by_samples, 2 * x * weights * 0.3, rtol=1e-12)
    np.testing.assert_allclose(by_step, np.trapezoid(x * x), rtol=1e-12)
