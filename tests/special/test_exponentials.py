"""`logsumexp`, `softmax` and `log_softmax` against SciPy's, and their derivatives at infinities."""

# SciPy is not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import pscdsl as psc
from pscdsl import f32, f64
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.codes.shapes import AxisOutOfRange
from pscdsl.typing.codes.shapes_of_arguments import EmptyReduction
from tests.support.numpy_differential import agree, normal, refused
from tests.support.numpy_harness import build, run

INF = np.inf
NAME = "pscdsl.special.logsumexp"


def check(name: str, *args: Any, rtol: float = 1e-12, **kwargs: Any) -> None:
    """The same as SciPy, interpreted for numbers and for names, and compiled."""
    with np.errstate(all="ignore"):
        wanted = getattr(scipy.special, name)(*args, **kwargs)
    for symbolic in (False, True):
        built = build(f"pscdsl.special.{name}", args, kwargs, symbolic=symbolic)
        agree(built.evaluated(), wanted, rtol)
    agree(built.compiled(), wanted, rtol)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_axes(axis: Any) -> None:
    x = normal(3, 4, 5) * 100
    for keepdims in (False, True):
        check("logsumexp", x, axis=axis, keepdims=keepdims)
    check("softmax", x, axis=axis)
    check("log_softmax", x, axis=axis)


def test_weights() -> None:
    x, b = normal(3, 4), normal(3, 4, seed=1)
    check("logsumexp", x, axis=1, b=abs(b))
    check("logsumexp", x, axis=0, b=b, return_sign=True)
    check("logsumexp", x, axis=1, b=abs(b[:1]))
    check("logsumexp", x, 1, np.where(b > 0, b, 0))
    found, sign = run(NAME, x, return_sign=True)
    agree(found, scipy.special.logsumexp(x))
    assert sign == 1
    assert np.isnan(run(NAME, x, b=-abs(b)))


def test_infinities() -> None:
    rows = np.array([[1e300, 1e300, 0], [-1e300, -INF, -INF], [-INF, -INF, -INF], [INF, 0, -INF]])
    check("logsumexp", rows, axis=1)
    check("logsumexp", rows, axis=1, b=np.array([1.0, 0.0, 2.0]))
    check("logsumexp", np.array([0.0, np.nan, INF]))
    check("softmax", rows[:2], axis=1)
    check("log_softmax", rows[:2], axis=1)
    half = np.full(4096, 11.0, np.float16)
    agree(run(NAME, half), 11 + np.log(4096), 1e-3)


def test_small_sums_beside_one_are_not_lost() -> None:
    x = np.array([0.0, -50.0])
    agree(run(NAME, x), 1.9287498479639178e-22, 1e-30)
    agree(run("pscdsl.special.log_softmax", x), [-1.9287498479639178e-22, -50.0], 1e-30)


def test_what_is_refused() -> None:
    refused(DtypeNotAccepted, NAME, np.ones(2, np.complex64))
    refused(EmptyReduction, NAME, np.ones((0, 2)), 0)
    refused(EmptyReduction, "pscdsl.special.softmax", np.ones((0, 2)))
    refused(AxisOutOfRange, NAME, np.ones(2), 1)


def rows(x: f32["m n"]) -> f32["m"]:
    return psc.special.logsumexp(x, axis=1)


@psc.kernel
def total(x: f64["m n"], b: f64["m n"]) -> f64:
    rows = psc.special.logsumexp(x, axis=1)
    weighted = psc.special.logsumexp(x, axis=1, b=b)
    return (
        np.where(np.isfinite(rows), rows, 0).sum()
        + np.where(np.isfinite(weighted), weighted, 0).sum()
    )


def test_derivatives_are_shares_and_zero_in_rows_of_nothing() -> None:
    x = np.array([[1.0, 2.0, -INF], [-INF, -INF, -INF], [3.0, 3.0, 3.0]])
    b = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0], [1.0, 2.0, 1.0]])
    dx, db = psc.grad(total, (0, 1))(x, b)
    small = float(np.exp(-1) / (1 + np.exp(-1)))
    shares = np.array([[small, 1 - small, 0], [0, 0, 0], [1 / 3, 1 / 3, 1 / 3]])
    weighted = np.array([[1, 0, 0], [0, 0, 0], [0.25, 0.5, 0.25]])
    np.testing.assert_allclose(np.asarray(dx), shares + weighted, atol=1e-15)
    assert np.isfinite(np.asarray(db)).all()


@psc.kernel
def shifted(x: f32["n"]) -> f32:
    return psc.special.softmax(x) @ x + psc.special.log_softmax(x)[0]


def test_derivatives_of_softmax() -> None:
    x = np.array([0.3, -1.0, 2.0], np.float32)
    share = scipy.special.softmax(x.astype(np.float64))
    wanted = share * (1 + x - share @ x) + np.array([1, 0, 0]) - share
    np.testing.assert_allclose(np.asarray(psc.grad(shifted)(x)), wanted, rtol=1e-5)


@pytest.mark.parametrize("near", [False, True])
def test_many_rows_of_each_kind(near: bool) -> None:
    x = normal(64, 1024).astype(np.float32)
    x[3] *= 100
    x[5, 7] = 40 if near else 0.5  # a sum that is 1 but for rounding, among others
    x[8:11, 4] = INF, np.nan, -INF
    x[12:14] = -INF
    x[13, 0] = np.nan
    found = run_compiled_special("logsumexp", x)
    with np.errstate(all="ignore"):
        wanted = scipy.special.logsumexp(x.astype(np.float64), axis=1)
    agree(found, wanted, 2e-7)
    x[20] = np.where(np.arange(1024) == 7, 0, normal(1024) - 40)
    terms = np.exp(np.delete(x[20].astype(np.float64), 7))
    found = run_compiled_special("logsumexp", x)[20]
    np.testing.assert_allclose(found, terms.sum(), 1e-5)


@psc.kernel
def in_a_loop(x: f64["m n"], shifts: f64["t"]) -> f64["t m"]:
    def step(count: Any, shift: Any) -> Any:
        return count + 1, psc.special.logsumexp(x + shift, axis=1)

    return psc.scan(step, 0, shifts)[1]


@pytest.mark.parametrize("size", [8, 64, 96])
def test_small_sums_in_loops(size: int) -> None:
    x = normal(size, size) - 50
    x[range(size), range(size)] = 0
    x[3] = -INF
    shifts = np.linspace(-3, 3, 7)
    found = np.asarray(in_a_loop(x, shifts))
    for shift, row in zip(shifts, found, strict=True):
        with np.errstate(all="ignore"):
            wanted: Any = np.asarray(scipy.special.logsumexp(x + shift, axis=1), float)
        agree(row, wanted, 1e-14 if shift else 1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("code", ["f4", "f8"])
@pytest.mark.parametrize("ones", [1, 2])
def test_small_sums_beside_a_shift_near_zero(code: str, ones: int) -> None:
    for size, axis in ((5, 0), (5, 1), (200, 0), (200, 1)):
        x = (normal(size, size) - 30).astype(code)
        x[:ones] = x[:, :ones] = 0
        found = np.asarray(build(NAME, (x,), {"axis": axis}).compiled(), float)
        others = np.sort(x.astype(np.longdouble), axis)
        others = others[: size - 1] if axis == 0 else others[:, : size - 1]
        wanted = np.log1p(np.exp(others).sum(axis)).astype(float)
        agree(found, wanted, 1e-6 if code == "f4" else 1e-13)


def run_compiled_special(name: str, x: Any) -> Any:
    """A function along the last axis, compiled."""
    return build(f"pscdsl.special.{name}", (x,), {"axis": 1}).compiled()
