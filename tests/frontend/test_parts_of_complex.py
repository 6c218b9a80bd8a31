"""Stores into the real and the imaginary parts of complex arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import c64, c128, f64

pytestmark = pytest.mark.quick_code


def parts(c: c128["n"]) -> tuple[c128["n"], f64["n"]]:
    assert c.shape[0] >= 2
    z = c.copy()
    real = z.real
    z.real[0] = 5
    z.imag[...] = 2 * real
    z[1] = 7j
    return z, real


def rows(c: c128["n"]) -> c128["n n"]:
    assert c.shape[0] >= 2
    z = np.outer(c, c)
    z[0].imag[::2] = -1.0
    z.T.real[1] += 3.0
    return z


def narrow(c: c128["n"]) -> c64["n"]:
    z = c.astype(np.complex64)
    z.imag[:] = c.real
    return z


@pytest.mark.parametrize("function", [parts, rows, narrow], ids=lambda x: x.__name__)
def test_as_under_numpy(function: Callable[..., Any]) -> None:
    c = np.array([1 + 2j, -3 + 0.5j, 2 - 4j, -0.0 + 1j])
    kernel: Any = psc.kernel(function)
    wanted, found = function(c.copy()), kernel(c)
    alone = type(wanted) is not tuple
    columns: list[Any] = [(wanted,), (found,)] if alone else [wanted, found]
    for one, other in zip(*columns, strict=True):
        assert np.asarray(other).dtype == one.dtype
        np.testing.assert_array_equal(np.asarray(other), one)
