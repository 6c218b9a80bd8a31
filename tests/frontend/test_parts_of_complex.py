"""Stores into the real and the imaginary parts of complex arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import c64, c128, f64
from pscdsl._src.checker.check import check_source

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


def updated(c: c128["n"]) -> tuple[c128["n"], f64["n"]]:
    z = c.copy()
    real = z.real
    z.real += 1
    z.imag *= z.real
    z[1:].imag -= real[1:]
    return z, real


def replaced(c: c128["n"]) -> tuple[c128["n"], f64["n"]]:
    z = c.copy()
    z.real = 3
    z.imag = z.real * 2
    x = c.real.copy()
    x.real += 1
    return z, x


def in_loops(c: c128["n"]) -> c128["n"]:
    z = c.copy()
    for i in range(30):
        z.real += i
        if z[0].real > 100:
            z.imag = z.real
        else:
            z.imag /= 2
    return z


@pytest.mark.parametrize(
    "function", [parts, rows, narrow, updated, replaced, in_loops], ids=lambda x: x.__name__
)
def test_as_under_numpy(function: Callable[..., Any]) -> None:
    c = np.array([1 + 2j, -3 + 0.5j, 2 - 4j, -0.0 + 1j])
    kernel: Any = psc.kernel(function)
    wanted, found = function(c.copy()), kernel(c)
    alone = type(wanted) is not tuple
    columns: list[Any] = [(wanted,), (found,)] if alone else [wanted, found]
    for one, other in zip(*columns, strict=True):
        assert np.asarray(other).dtype == one.dtype
        np.testing.assert_array_equal(np.asarray(other), one)


def of_a_parameter(c: c128["n"]) -> c128["n"]:
    c.real += 1
    return c


def of_a_number(c: c128["n"]) -> c128:
    assert c.shape[0] >= 1
    z = c[0]
    z.real += 1
    return z


def of_reals(c: c128["n"]) -> f64["n"]:
    x = c.real.copy()
    x.imag += 1
    return x


def too_wide(c: c128["n"]) -> c128["n"]:
    z = c.copy()
    z.real += c
    return z


@pytest.mark.parametrize(
    ("function", "code", "words"),
    [
        (of_a_parameter, "PSC205", "parameter `c`"),
        (of_a_number, "PSC205", "z.real"),
        (of_reals, "PSC205", "x.imag"),
        (too_wide, "PSC413", ".real"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_is_refused(function: Callable[..., Any], code: str, words: str) -> None:
    kernel: Any = psc.kernel(function)
    with pytest.raises(psc.CheckError) as caught:
        kernel(np.ones(2, np.complex128))
    assert code in str(caught.value)
    assert words in str(caught.value)


OTHER_ATTRIBUTE = """
import pscdsl as psc
from pscdsl import c128

@psc.kernel
def f(c: c128["n"]) -> c128["n"]:
    z = c.copy()
    z.shape = (1, 2)
    return z[0]
"""


def test_other_attributes_are_refused() -> None:
    (found,) = check_source(OTHER_ATTRIBUTE, "shaped.py").diagnostics
    assert found.code == "PSC205"
    assert "z.reshape" in str(found.help())
