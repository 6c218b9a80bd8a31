"""The extremes of large arrays, with NaN and infinities at any place, along any axes."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, get_args

import ml_dtypes
import numpy as np
import pytest

from pscdsl._src.primitives.reductions import Extreme, Reduce
from tests.support.numpy_harness import build

MANY_IN_ROWS, MANY_ROWS = 1 << 18, 1 << 16
SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((MANY_IN_ROWS + 7,), (0,)),
    ((4, MANY_IN_ROWS // 4), (1,)),
    ((70, 30, 128), (1, 2)),
    ((MANY_IN_ROWS // 16, 16), (0, 1)),
    ((MANY_ROWS // 16, 20), (0,)),
    ((40, 50, 40), (0, 1)),
    ((40, 50, 40), (0, 2)),
    ((5000, 20), (1,)),
    ((20, 5000), (0,)),
    ((60, 40), (0,)),
    ((60, 40), (1,)),
)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, -np.nan)


def check(axes: tuple[int, ...], *arrays: Any) -> None:
    """Compare both extremes of arrays of one type with NumPy's, with the same NaN."""
    kinds: tuple[Extreme, ...] = get_args(Extreme)
    for kind in kinds:
        find = np.max if kind == "maximum" else np.min
        built = build(Reduce(kind, axes), arrays[:1], {})
        for x in arrays:
            wanted = find(x.astype(np.float64), axis=axes)
            np.testing.assert_array_equal(built.compiled(x).astype(np.float64), wanted, kind)


CASES = (
    *[(np.float32, *each) for each in SHAPES],
    *[(np.float64, *each) for each in SHAPES[:5:2]],
    *[(np.float16, *each) for each in SHAPES[-4:-1]],
    *[(ml_dtypes.bfloat16, *each) for each in SHAPES[-4:-1]],
)


@pytest.mark.parametrize(("dtype", "shape", "axes"), CASES)
def test_special_numbers(dtype: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(shape))
    plain = rng.normal(size=shape).astype(dtype)
    arrays = [plain]
    for count in (1, 5):
        x = plain.copy()
        for value in SPECIAL if count == 5 else rng.choice(SPECIAL, count):
            x[tuple(rng.integers(shape))] = value
        arrays.append(x)
    infinite = plain.copy()
    infinite.flat[::3], infinite.flat[1::5] = np.inf, -np.inf
    check(axes, *arrays, infinite)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_that_overflow_are_no_nan(dtype: Any) -> None:
    x = np.full(MANY_IN_ROWS, np.finfo(dtype).max)
    x[::2] *= -1
    x[MANY_IN_ROWS // 2 :] = np.finfo(dtype).max
    check((0,), x)
    check((0,), x.reshape(-1, 64))
