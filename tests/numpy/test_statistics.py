"""Quantiles, weighted averages, covariances and counts against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pscdsl as psc
from pscdsl import f64
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl.numpy.statistics import METHODS
from pscdsl.typing.codes.element_types import DtypeNotAccepted, DtypesDiffer
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import DataDependentShape, UnprovenSize, WrongNumberOfAxes
from pscdsl.typing.codes.shapes_of_arguments import (
    EmptyReduction,
    LengthsDiffer,
    TooFewElements,
    WeightsDoNotFit,
)
from tests.support.numpy_differential import (
    INF,
    NAN,
    agree,
    arrays,
    at_least,
    check,
    normal,
    refused,
    theirs,
    with_axis,
)
from tests.support.numpy_harness import S, Static, build, run, run_compiled, run_symbolic

pytestmark = pytest.mark.quick_code(but=4)

FEW = settings(max_examples=30, deadline=None)
FRACTIONS: list[Any] = [0.0, 0.1, 0.5, 0.7, 1.0, [0.0, 0.3, 1.0], [[0.1, 0.2], [0.3, 0.9]]]


def holes() -> Any:
    """Rows with a NaN, with nothing else, and with none."""
    x = normal(4, 7)
    x[0, 1] = x[0, 5] = NAN
    x[2] = NAN
    return x


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method(method: str) -> None:
    x, whole = normal(5, 7), holes()
    every = np.linspace(0, 1, 29).tolist()
    for count in (1, 2, 4, 5, 8):
        check("numpy.quantile", normal(count), every, method=method)
    for q in FRACTIONS:
        check("numpy.quantile", x, q, axis=1, method=method)
        check("numpy.nanquantile", whole, q, axis=1, method=method)
    check("numpy.quantile", x, every, axis=(1, 0), method=method, keepdims=True)
    check("numpy.quantile", whole, 0.3, axis=0, method=method)
    check("numpy.nanquantile", whole, 0.3, axis=0, method=method, compiled=True)


@FEW
@given(
    st.sampled_from(("median", "nanmedian")),
    with_axis(arrays(special=False), several=True),
    st.booleans(),
)
def test_median(name: str, case: tuple[Any, Any], keepdims: bool) -> None:
    x, axis = case
    if axis != ():
        check(f"numpy.{name}", x, axis=axis, keepdims=keepdims)


def test_median_with_nan_and_infinities() -> None:
    for row in ([1.0, NAN, 2.0], [INF, 1.0, 2.0], [INF, INF, -INF], [-INF, 1.0, INF]):
        check("numpy.median", np.array(row), compiled=True)
        check("numpy.nanmedian", np.array(row))
    agree(run("numpy.median", np.array([1.0, INF, 2.0, INF])), INF)
    agree(run("numpy.quantile", np.array([1.0, INF]), [0.0, 1.0]), np.array([1.0, INF]))
    huge = np.array([1e308, 1.5e308])
    check("numpy.median", huge[:1])
    agree(run("numpy.median", huge), 1.25e308)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64])
@pytest.mark.parametrize("name", ["numpy.quantile", "numpy.nanquantile"])
def test_the_ends_of_integers_are_integers(name: str, dtype: type) -> None:
    whole: Any = np.array([[1, 0, 1], [2**62 + 1, 3, 0]], np.int64)
    x: Any = whole.astype(dtype)
    check(name, x, 1)
    check(name, x, [0, 1], axis=1)
    check(name, x, 0, axis=0, keepdims=True)


def test_quantiles_of_other_dtypes() -> None:
    x = np.array([3, 1, 2, 9], np.int32)
    assert run("numpy.quantile", x, 0.5).dtype == np.float64
    lower = run("numpy.quantile", x, 0.5, method="lower")
    assert lower.dtype == np.int32
    agree(lower, np.int32(2))
    half = normal(9, dtype=np.float16)
    agree(run("numpy.median", half), np.median(half))
    assert run("numpy.median", half).dtype == np.float16
    check("numpy.percentile", normal(4, 5), [3, 50], axis=0)
    check("numpy.nanpercentile", holes(), 30.5, axis=1)


def test_quantiles_at_computed_fractions() -> None:
    x, q = normal(3, 8), np.array([0.2, 0.9])
    check("numpy.quantile", x, q, axis=1, compiled=True)
    check("numpy.percentile", x, q * 100, axis=1)
    agree(run("numpy.quantile", x, np.float32(0.25)), np.quantile(x, 0.25))
    for code in ("f2", "f4", "f8"):
        for of in ("f2", "f4", "f8"):
            samples, fraction = x.astype(of), q.astype(code)
            for method in ("linear", "nearest"):
                found = run("numpy.quantile", samples, fraction, method=method)
                wanted = np.quantile(samples, fraction, method=method)
                assert found.dtype == wanted.dtype
                agree(found, wanted, 1e-2 if "2" in code + of else 1e-6)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_variances_in_complex_dtypes(name: str) -> None:
    real = normal(4, 5)
    for x in (real, real.astype(np.float32), real + 1j):
        for dtype in (np.complex64, np.complex128):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = getattr(np, name)(x, axis=0, dtype=dtype)
            found = run(f"numpy.{name}", x, axis=0, dtype=from_numpy(np.dtype(dtype)))
            assert found.dtype == wanted.dtype
            agree(found, wanted, 1e-5)


def test_quantiles_that_are_refused() -> None:
    x = normal(3)
    refused(BadArguments, "numpy.quantile", x, 1.5)
    refused(BadArguments, "numpy.percentile", x, [10, -1])
    refused(BadArguments, "numpy.quantile", x, "half")
    refused(BadArguments, "numpy.quantile", x, 0.5, method="guess")
    refused(EmptyReduction, "numpy.quantile", x[:0], 0.5)
    refused(DtypeNotAccepted, "numpy.quantile", x + 0j, 0.5)


def test_average() -> None:
    x = normal(5, 7)
    w = abs(normal(5, 7, seed=1))
    check("numpy.average", x)
    check("numpy.average", x, axis=0, weights=w[:, 0].copy(), compiled=True)
    check("numpy.average", x, weights=w, returned=True)
    check("numpy.average", x, axis=1, weights=w, keepdims=True)
    check("numpy.average", x, axis=1, returned=True)
    check("numpy.average", normal(2, 3, 4), axis=(2, 0), weights=abs(normal(4, 2)))
    check("numpy.average", x, axis=0, weights=[1.0, 2.0, 3.0, 4.0, 5.0], symbolic=False)
    counts = np.arange(1, 6)
    agree(run("numpy.average", counts, weights=counts), np.average(counts, weights=counts))
    refused(WeightsDoNotFit, "numpy.average", x, weights=w[0])
    refused(WeightsDoNotFit, "numpy.average", x, axis=0, weights=w[0])
    refused(DtypesDiffer, "numpy.average", x, axis=0, weights=counts)
    assert not np.isfinite(run("numpy.average", np.ones(3), weights=np.zeros(3)))


def test_covariances() -> None:
    x, y = normal(3, 8), normal(3, 8, seed=1)
    often, much = np.array([1, 2, 3, 1, 1, 1, 2, 1]), abs(normal(8))
    ways: list[dict[str, Any]] = [
        {},
        {"bias": True},
        {"ddof": 2},
        {"rowvar": False},
        {"fweights": often},
        {"aweights": much},
        {"fweights": often, "aweights": much},
    ]
    several = at_least(3, 8)
    for options in ways:
        check("numpy.cov", x, facts=several, **options)
    for name, dtype in (("aweights", np.float32), ("fweights", np.int32)):
        negative = {name: np.resize([1, -2, 3, 1], len(often)).astype(dtype)}
        assert np.isnan(run("numpy.cov", x, **negative)).all()  # NumPy raises
    check("numpy.cov", x, y, compiled=True, facts=several)
    check("numpy.cov", x[0])
    check("numpy.cov", x[0], y[0])
    check("numpy.cov", x + 1j * y, facts=several)
    check("numpy.corrcoef", x, compiled=True, facts=several)
    check("numpy.corrcoef", x[0], y[0])
    check("numpy.corrcoef", x + 1j * y, facts=several)
    agree(run("numpy.corrcoef", x[0]), 1.0)
    whole = (x * 10).astype(np.int32)
    agree(run("numpy.cov", whole), np.cov(whole), 1e-5)
    refused(LengthsDiffer, "numpy.cov", x, y[:, :4])
    refused(LengthsDiffer, "numpy.cov", x, fweights=often[:3])
    refused(WrongNumberOfAxes, "numpy.cov", normal(2, 2, 2))
    refused(BadArguments, "numpy.cov", x, ddof=0.5)


@pytest.mark.parametrize("bins", [10, 1, 3, [-1.0, 0.0, 0.5, 2.0]])
def test_histogram(bins: Any) -> None:
    x = normal(5, 7)
    bounds, weights = {"range": (-1.0, 1.0)}, {"weights": abs(x)}
    ways: list[dict[str, Any]] = [{}, bounds, weights, {"density": True}]
    for options in ways:
        check("numpy.histogram", x, bins, **options)
    check("numpy.histogram", x, bins, density=True, weights=abs(x), compiled=True)


def test_histograms_of_other_things() -> None:
    check("numpy.histogram_bin_edges", normal(9), 4)
    check("numpy.histogram_bin_edges", normal(9), 4, range=(-1.0, 2.0))
    check("numpy.histogram", np.ones(4), 4)
    check("numpy.histogram", np.array([0.0, 1.0, NAN, 0.5]), 2, range=(0.0, 1.0))
    whole = np.array([1, 5, 2, 5, 9])
    check("numpy.histogram", whole, 4)
    check("numpy.histogram", whole.astype(float), np.array([0.0, 2.0, 9.0]), facts=at_least(3))
    counts, edges = run_symbolic("numpy.histogram", normal(30), S(30))
    agree((counts, edges), theirs("numpy.histogram", normal(30), 30))
    refused(BadArguments, "numpy.histogram", whole, 0)
    refused(BadArguments, "numpy.histogram", whole, "auto")
    refused(TooFewElements, "numpy.histogram", whole, [1.0])
    refused(BadArguments, "numpy.histogram", whole, 3, range=5)
    refused(UnprovenSize, "numpy.histogram", whole, -1)
    refused(WeightsDoNotFit, "numpy.histogram", whole, 3, weights=normal(2))
    refused(EmptyReduction, "numpy.histogram", normal(0), 3)
    counts, _ = run("numpy.histogram", normal(0), 3, range=(0.0, 1.0))
    agree(counts, np.zeros(3, np.int64))


def test_histograms_up_to_infinity() -> None:
    agree(run("numpy.histogram", [1, 1], [0, 1, 10])[0], np.histogram([1, 1], [0, 1, 10])[0])
    x = np.array([0.5, 1.0, 2.0, np.inf, -np.inf, 0.0, -3.0])
    for edges in ([0.0, 1.0, np.inf], [-np.inf, 0.0, np.inf], [-np.inf, -1.0]):
        check("numpy.histogram", x, edges)
        check("numpy.histogram", x, np.array(edges), symbolic=False)
    bounds: Any
    for bounds in ((0.0, np.inf), (-np.inf, 0.0), (np.nan, 1.0), (1.0, 0.0)):
        with pytest.raises(ValueError, match=r"finite|larger"):
            np.histogram(x, 3, range=bounds)
        refused(BadArguments, "numpy.histogram", x, 3, range=bounds)
        refused(BadArguments, "numpy.histogram_bin_edges", x, 3, range=bounds)
        refused(BadArguments, "numpy.histogram2d", x, x, 3, range=(bounds, (0.0, 1.0)))
    for edges in ([1.0, 0.5, 2.0], [0.0, np.nan, 1.0]):
        refused(BadArguments, "numpy.histogram", x, edges)
        refused(BadArguments, "numpy.histogram", x, Static(np.array(edges)))


@pytest.mark.parametrize("code", ["i1", "u1", "i4", "u4", "i8", "u8"])
def test_bincount(code: str) -> None:
    x = np.array([1, 2, 2, 9, 0, 120], code)
    weights = np.arange(6) * 0.5
    for runner in (run, run_compiled):
        agree(runner("numpy.bincount", x, length=4), np.array([1, 1, 2, 0]))
        found = runner("numpy.bincount", x, weights, length=300)
        agree(found[:121], np.bincount(x, weights))
        agree(found[121:], np.zeros(179))


def test_bincount_at_its_edges() -> None:
    x = np.array([-1, 0, -(2**31), 2**31 - 1], np.int32)
    agree(run("numpy.bincount", x, length=2), np.array([1, 0]))
    agree(run("numpy.bincount", x[:0], length=2), np.array([0, 0]))
    agree(run_symbolic("numpy.bincount", np.arange(5), length=S(5)), np.ones(5, int))
    agree(run("numpy.bincount", x, length=0), np.zeros(0, int))
    assert "length=k" in (refused(DataDependentShape, "numpy.bincount", x).help() or "")
    refused(DataDependentShape, "numpy.bincount", x, length=np.array(3))
    refused(UnprovenSize, "numpy.bincount", x, length=-1)
    refused(DtypeNotAccepted, "numpy.bincount", normal(3), length=2)
    refused(WrongNumberOfAxes, "numpy.bincount", x[None], length=2)
    refused(LengthsDiffer, "numpy.bincount", x, normal(2), length=2)
    counts = build("numpy.bincount", (x,), {"length": 2}).function.body.out_types
    assert str(counts[0]) == "i64[2]"


PAIRS: list[Any] = [4, (3, 5), [[-1.0, 0.0, 0.5, 2.0], 2], [-2.0, -0.5, 0.25, 3.0]]


@pytest.mark.parametrize("bins", PAIRS)
def test_histograms_of_pairs(bins: Any) -> None:
    x, y = normal(35), normal(2, 35)[1]
    ways: list[dict[str, Any]] = [
        {},
        {"range": [(-1.0, 1.0), (-0.5, 2.0)]},
        {"range": [None, (-0.5, 2.0)]},
        {"weights": abs(x)},
        {"density": True},
        {"density": True, "weights": abs(y)},
    ]
    for options in ways:
        check("numpy.histogram2d", x, y, bins, **options)
    check("numpy.histogram2d", x, y, bins, density=True, weights=abs(x), compiled=True)


def test_histograms_of_few_pairs() -> None:
    for count in (1, 2):
        x = normal(count)
        check("numpy.histogram2d", x, -x, 3)
    check("numpy.histogram2d", normal(0), normal(0), [0.0, 1.0, 2.0], symbolic=False)
    check("numpy.histogram2d", np.array([0.0, NAN, 0.5]), np.ones(3), 2, range=((0, 1), (0, 1)))
    x = normal(5)
    refused(LengthsDiffer, "numpy.histogram2d", x, normal(4))
    refused(WrongNumberOfAxes, "numpy.histogram2d", normal(2, 2), normal(2, 2))
    refused(BadArguments, "numpy.histogram2d", x, x, [1.0, 2.0])
    refused(BadArguments, "numpy.histogram2d", x, x, [5])
    refused(BadArguments, "numpy.histogram2d", x, x, 3, range=(0.0, 1.0, 2.0))
    refused(WeightsDoNotFit, "numpy.histogram2d", x, x, weights=normal(2))


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_polynomials_that_come_nearest(degree: int) -> None:
    x, y = normal(9), normal(2, 9)[1]
    check("numpy.polyfit", x, y, degree, rtol=1e-7)
    check("numpy.polyfit", x, np.stack([y, x], 1), degree, rtol=1e-7)
    check("numpy.polyfit", x, y, degree, w=abs(y), rtol=1e-7)
    check("numpy.polyfit", x, np.stack([y, x], 1), degree, w=abs(y), rtol=1e-7)
    check("numpy.polyfit", x, y, degree, rcond=0.4, rtol=1e-7, compiled=True)
    check("numpy.polyfit", np.arange(9), np.arange(9) ** 2, degree, rtol=1e-6, symbolic=False)


@pytest.mark.filterwarnings("ignore")
def test_polynomials_of_few_points() -> None:
    for count in (1, 2):
        check("numpy.polyfit", normal(count), normal(count) ** 2, 2, symbolic=False)
    x = normal(5)
    refused(EmptyReduction, "numpy.polyfit", normal(0), normal(0), 1)
    refused(LengthsDiffer, "numpy.polyfit", x, normal(4), 1)
    refused(LengthsDiffer, "numpy.polyfit", x, x, 1, w=normal(4))
    refused(WrongNumberOfAxes, "numpy.polyfit", normal(2, 2), normal(2, 2), 1)
    refused(BadArguments, "numpy.polyfit", x, x, -1)
    refused(BadArguments, "numpy.polyfit", x, x, 1.0)
    refused(BadArguments, "numpy.polyfit", x, x, 1, full=True)
    refused(BadArguments, "numpy.polyfit", x, x, 1, cov=True)


@psc.kernel
def correlation_bent(x: f64["3"], y: f64["3"]) -> f64["3 3"]:
    """The second derivative of a correlation."""

    def correlation(x: f64["3"]) -> f64:
        return np.corrcoef(x, y)[0, 1]

    return psc.hessian(correlation)(x)


def test_correlations_have_no_kink_at_1() -> None:
    for x in normal(20, 3).astype(np.float64):
        w = x - x.mean()
        projection = np.eye(3) - 1 / 3 - np.outer(w, w) / (w @ w)
        for factor in (3.0, -1 / 7):
            wanted = -np.sign(factor) * projection / (w @ w)
            found = np.asarray(correlation_bent(x, factor * x))
            np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
