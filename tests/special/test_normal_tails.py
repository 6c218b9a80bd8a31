"""The normal distribution in single precision: its errors and special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special  # pyright: ignore[reportMissingTypeStubs]

from pscdsl._src.primitives import special as s
from pscdsl._src.primitives.elementwise import Elementwise
from pscdsl._src.targets.cpu.functions import FEWEST
from tests.support.numpy_differential import INF, NAN
from tests.support.numpy_harness import run, run_compiled

TINY = float(np.finfo(np.float32).smallest_normal)
FUNCTIONS = ((s.ndtr, scipy.special.ndtr, 1), (s.erfc, scipy.special.erfc, -1))


def ulps(found: Any, wanted: Any) -> float:
    """The greatest error in units in the last place of f32, of what is normal there."""
    known = wanted >= TINY
    return float(
        np.max(abs(found[known] - wanted[known]) / np.spacing(wanted[known].astype(np.float32)))
    )


@pytest.mark.sampled
@pytest.mark.parametrize(("function", "meaning", "side"), FUNCTIONS)
@pytest.mark.parametrize("runs", [run, run_compiled])
def test_errors_of_each_part(function: Elementwise, meaning: Any, side: int, runs: Any) -> None:
    for low, high, bound in ((-14, -3, 8), (-3, -1, 9), (-1.1, 1.1, 8), (-0.2, 0.2, 1), (1, 3, 2)):
        x = (side * np.linspace(low, high, 100_001)).astype(np.float32)
        assert ulps(runs(function, x), meaning(x.astype(np.float64))) < bound


@pytest.mark.parametrize("count", [17, FEWEST])
def test_special_values(count: int) -> None:
    x = np.array([0, -0.0, INF, -INF, NAN, 3e38, -3e38, 1e-45, -1e-45, 1e-40, 100, -100, 20, -20])
    x = np.resize(x, count).astype(np.float32)
    for function, meaning, _ in FUNCTIONS:
        wanted = meaning(x.astype(np.float64)).astype(np.float32)
        wanted[wanted < TINY] = 0
        np.testing.assert_array_equal(run(function, x), wanted)
        np.testing.assert_array_equal(run_compiled(function, x), wanted)
