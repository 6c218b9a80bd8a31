"""Reductions of the library against SciPy."""

# SciPy is not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special as reference

from pscdsl.stdlib import reductions


@pytest.mark.sampled
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logmeanexp(shape: tuple[int, ...], dtype: type[Any]) -> None:
    x = (100 * np.random.default_rng(0).normal(size=shape)).astype(dtype)
    rtol = 10 * np.finfo(dtype).eps
    mean: Any = reference.logsumexp(x.astype(np.float64), axis=-1) - np.log(shape[-1])
    found = np.asarray(reductions.logmeanexp(x))
    np.testing.assert_allclose(found, mean, rtol=rtol, atol=rtol)


def test_logmeanexp_of_extremes() -> None:
    inf = np.inf
    x = np.array([[1e300, 1e300], [-1e300, -inf], [-inf, -inf], [inf, 0]])
    found = np.asarray(reductions.logmeanexp(x))
    np.testing.assert_array_equal(found, [1e300, -1e300, -inf, inf])
