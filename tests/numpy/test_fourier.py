"""`np.fft` against NumPy's, for numbers and for symbolic sizes."""

# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pscdsl as psc
from pscdsl import c64, f32
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import AxisOutOfRange, RepeatedAxis, UnprovenSize, WrongNumberOfAxes
from pscdsl.typing.dims import name as size_name
from tests.support.numpy_differential import agree, at_least, check, normal, refused
from tests.support.numpy_harness import S, build, run

pytestmark = pytest.mark.quick_code(but=4)

NORMS = (None, "backward", "ortho", "forward")
COMPLEX = ("fft", "ifft", "irfft", "hfft")
REAL = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


@pytest.mark.sampled
@pytest.mark.parametrize("function", REAL)
@pytest.mark.parametrize("length", [2, 5, 8])
def test_one_axis(function: str, length: int) -> None:
    for code in ("f8", "c16") if function in COMPLEX else ("f8",):
        x = normal(3, length, 4, dtype=code)
        for norm in NORMS:
            check(f"numpy.fft.{function}", x, axis=1, norm=norm, facts=at_least(length))
        check(f"numpy.fft.{function}", x, compiled=True, facts=at_least(4))
        for n in (1, 4, 7, 12):
            check(f"numpy.fft.{function}", x, n, axis=1, norm="ortho")
            check(f"numpy.fft.{function}", x, S(n), 1, compiled=n == 7)


@pytest.mark.sampled
@pytest.mark.parametrize("function", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("suffix", ["2", "n"])
def test_several_axes(function: str, suffix: str) -> None:
    name, many = f"numpy.fft.{function}{suffix}", at_least(3, 4, 5)
    for code in ("f8", "c16") if function in COMPLEX else ("f8",):
        x = normal(3, 4, 5, dtype=code)
        for norm in NORMS:
            check(name, x, norm=norm, facts=many)
        check(name, x, axes=(2, 0), compiled=True, facts=many)
        check(name, x, axes=(0, -1, 1), facts=many)
        check(name, x, (6, 7), (1, 0))
        check(name, x, (2, -1), (0, 2))
        check(name, x, s=(S(7), S(9)), axes=(0, 1), norm="forward", compiled=True)


@pytest.mark.parametrize("function", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_many_axes(function: str) -> None:
    x = normal(2, 3, 2, 4, 2, 3, dtype="c16" if "r" not in function[:2] else "f8")
    check(f"numpy.fft.{function}", x, compiled=True, facts=at_least(2, 3, 4))
    check(f"numpy.fft.{function}", x, axes=(0, 5, 2, 3), facts=at_least(2, 3, 4))
    check(f"numpy.fft.{function}", x, (3,), (1,))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(REAL),
    st.integers(1, 9),
    st.none() | st.integers(1, 11),
    st.sampled_from(NORMS),
    st.integers(0, 2),
)
def test_lengths(function: str, length: int, n: int | None, norm: Any, axis: int) -> None:
    if n is None and function in ("irfft", "hfft") and length == 1:
        return
    shape = [2, 3, 2]
    shape[axis] = length
    code = "c16" if function in COMPLEX else "f8"
    options: dict[str, Any] = {"n": None if n is None else S(n), "axis": axis, "norm": norm}
    check(f"numpy.fft.{function}", normal(*shape, dtype=code), facts=at_least(length), **options)


def test_precision_is_that_of_the_operand() -> None:
    for code, wanted in (
        ("f4", "c8"),
        ("f8", "c16"),
        ("c8", "c8"),
        ("f2", "c8"),
        ("i4", "c16"),
        ("i8", "c16"),
        ("u1", "c16"),
        ("?", "c16"),
    ):
        x = normal(3, 5).astype(code)
        found = run("numpy.fft.fft", x)
        assert found.dtype == wanted
        agree(found, np.fft.fft(x), 1e-5)
        if code[0] != "c":
            assert run("numpy.fft.rfft", x).dtype == wanted
        half = run("numpy.fft.irfft", x)
        assert half.dtype == {"c8": "f4", "c16": "f8"}[wanted]
        agree(half, np.fft.irfft(x.astype(wanted)), 1e-5)


def test_operands_without_a_dtype() -> None:
    agree(run("numpy.fft.fft", [1.0, 2.0, 4.0]), np.fft.fft([1.0, 2.0, 4.0]), 1e-6)
    agree(run("numpy.fft.irfft", [1, 2j, 4.0]), np.fft.irfft([1, 2j, 4.0]), 1e-6)

    @psc.kernel
    def window(x: psc.c128["n"], y: psc.f64["2*n"]) -> tuple[psc.c128["n"], psc.f64["2*n"]]:
        n = x.shape[0]
        return x * np.fft.fft(np.arange(n)), y + np.fft.irfft(np.ones(n + 1))

    x, y = normal(5, dtype="c16"), normal(10)
    first, second = window(x, y)
    np.testing.assert_allclose(np.asarray(first), x * np.fft.fft(np.arange(5)), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(second), y + np.fft.irfft(np.ones(6)), rtol=1e-12)


def test_frequencies() -> None:
    for n in (1, 2, 5, 8):
        for d in (1.0, 0.25, 3):
            for name in ("fftfreq", "rfftfreq"):
                wanted = getattr(np.fft, name)(n, d)
                for size in (n, S(n)):
                    agree(run(f"numpy.fft.{name}", size, d), wanted, 1e-6)
        for name in ("fftfreq", "rfftfreq"):
            check(f"numpy.fft.{name}", S(n), np.float64(0.3), compiled=True)
    refused(UnprovenSize, "numpy.fft.fftfreq", 0)
    refused(UnprovenSize, "numpy.fft.rfftfreq", -3)
    refused(WrongNumberOfAxes, "numpy.fft.fftfreq", 4, normal(3))
    refused(DtypeNotAccepted, "numpy.fft.fftfreq", 4, 1j)
    refused(BadArguments, "numpy.fft.fftfreq", 4, None)


def test_shifts() -> None:
    for code in ("f8", "i4", "?", "c16"):
        x = normal(4, 5, 3, dtype=code) if code != "?" else normal(4, 5, 3) > 0
        for name in ("fftshift", "ifftshift"):
            check(f"numpy.fft.{name}", x, compiled=True)
            check(f"numpy.fft.{name}", x, 1)
            check(f"numpy.fft.{name}", x, axes=(2, -3))
    empty = Fact("<=", 0, size_name("n4"))
    check("numpy.fft.fftshift", normal(4), facts=(empty,))
    check("numpy.fft.fftshift", normal(0, 3))


def test_what_is_refused() -> None:
    x, z = normal(3, 4), normal(4, dtype="c16")
    refused(BadArguments, "numpy.fft.fft", x, norm="unitary")
    refused(BadArguments, "numpy.fft.fft", x, out=x)
    refused(BadArguments, "numpy.fft.fft", x, 2.5)
    refused(BadArguments, "numpy.fft.fft", "x")
    refused(BadArguments, "numpy.fft.fftn", x, (2, 3), (0,))
    refused(BadArguments, "numpy.fft.fftn", x, axes=())
    refused(AxisOutOfRange, "numpy.fft.fft", x, axis=2)
    refused(AxisOutOfRange, "numpy.fft.fft", 1.5)
    refused(RepeatedAxis, "numpy.fft.fftn", x, axes=(0, 0))
    refused(DtypeNotAccepted, "numpy.fft.rfft", z)
    refused(DtypeNotAccepted, "numpy.fft.ihfft", z)
    refused(UnprovenSize, "numpy.fft.fft", x, 0)
    refused(UnprovenSize, "numpy.fft.fft", x, -1)
    refused(UnprovenSize, "numpy.fft.fft", x[:0], axis=0)
    refused(UnprovenSize, "numpy.fft.irfft", z[:1])
    finding = refused(UnprovenSize, "numpy.fft.irfft", z, symbolic=True)
    assert "assert n4 >= 2" in (finding.help() or "")


@psc.kernel
def low_pass(x: f32["m n"], keep: psc.Static[float] = 0.2) -> f32["m n"]:
    """Frequencies above a bound taken away, by way of a helper imported from NumPy."""
    from numpy.fft import rfft

    n = x.shape[1]
    kept = np.fft.rfftfreq(n) <= keep
    return np.fft.irfft(np.where(kept, rfft(x), 0), n)


def test_a_kernel_is_what_numpy_says() -> None:
    x = normal(3, 9, dtype="f4")
    kept = np.fft.rfftfreq(9) <= 0.2
    wanted = np.fft.irfft(np.where(kept, np.fft.rfft(x), 0), 9)
    np.testing.assert_allclose(np.asarray(low_pass(x)), wanted, atol=1e-6)


@psc.kernel
def spectrum(x: f32["n"]) -> c64["n"]:
    return psc.numpy.fft.fftshift(psc.numpy.fft.fft(x))


def test_the_explicit_namespace() -> None:
    x = normal(6, dtype="f4")
    np.testing.assert_allclose(
        np.asarray(spectrum(x)), np.fft.fftshift(np.fft.fft(x)), atol=1e-5, rtol=1e-5
    )
    assert psc.numpy.fft.fft is np.fft.fft


def test_a_transform_of_any_length_is_few_equations() -> None:
    built = build("numpy.fft.rfftn", (normal(3, 4, 5),), {}, symbolic=True)
    assert len(built.function.body.equations) == 1
