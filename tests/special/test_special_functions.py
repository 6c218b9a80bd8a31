"""Special functions: against values of many digits, against SciPy, and at their edges."""

# SciPy is not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special
from numpy.typing import NDArray

import pscdsl as psc
from pscdsl import f32, f64
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.special import functions
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.codes.language import BadArguments
from tests.support.numpy_differential import meaning, refused
from tests.support.numpy_harness import build, run
from tests.support.special_values import SPECIAL_VALUES

pytestmark = [pytest.mark.jaxlib, pytest.mark.quick_code(but=4)]

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(0)
SIZES = np.exp(RNG.uniform(-60, 60, 300)) * RNG.choice([-1.0, 1.0], 300)
EDGES = np.array([0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 30.0, -30.0])
AROUND = np.concatenate([RNG.uniform(-30, 30, 500), EDGES])
FINITE = AROUND[np.isfinite(AROUND)]
WIDE = np.concatenate([AROUND, SIZES])
POSITIVE = np.concatenate([RNG.uniform(0, 40, 500), abs(SIZES), EDGES])
UNIT = np.concatenate([RNG.uniform(0, 1, 500), np.exp(RNG.uniform(-60, 0, 300)), EDGES])


def ours(name: str, *args: Any, compiled: bool = False) -> NDArray[Any]:
    """A function of ours, interpreted or by XLA."""
    built = build(f"pscdsl.special.{name}", args, {})
    return np.asarray(built.compiled() if compiled else built.evaluated())


def theirs(name: str, *args: Any) -> NDArray[Any]:
    """SciPy's function, in double precision."""
    doubles = [np.asarray(x, np.float64) if isinstance(x, np.ndarray) else x for x in args]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(getattr(scipy.special, name)(*doubles))


def assert_near(
    found: NDArray[Any], wanted: NDArray[Any], units: float, absolute: Any = 0.0
) -> None:
    """Equal but for so many units in the last place; what underflows in f32 may be zero."""
    limits = np.finfo(found.dtype)
    precise = found.astype(np.float64)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(found.dtype).astype(np.float64)
        error = abs(precise - wanted) - absolute * float(limits.eps)
        near = error <= units * float(limits.eps) * abs(wanted)
        small = (abs(precise) <= limits.tiny) & (abs(wanted) <= limits.tiny)
        large = abs(wanted) > float(limits.max) * (1 - units * float(limits.eps))
        far = large & (abs(precise) > float(limits.max) * (1 - units * float(limits.eps)))
    same = (precise == rounded) | (np.isnan(precise) & np.isnan(wanted))
    bad = ~(near | small | far | same)
    assert not bad.any(), (found[bad][:5], wanted[bad][:5], np.flatnonzero(bad)[:5])


def tolerance(name: str) -> float:
    """How many units in the last place f64 may be off at the hard values."""
    return {"gammainc": 400, "gammaincc": 400, "betainc": 4000, "betaincc": 4000}.get(name, 6)


@pytest.mark.parametrize("name", SPECIAL_VALUES)
@pytest.mark.parametrize("compiled", [False, True])
def test_values_of_many_digits(name: str, compiled: bool) -> None:
    places, values = zip(*SPECIAL_VALUES[name], strict=True)
    operands = [np.array(column) for column in zip(*places, strict=True)]
    absolute = 8.0 if name in ("betaln", "gammaln", "digamma") else 0.0
    found = ours(name, *operands, compiled=compiled)
    assert_near(found, np.array(values), tolerance(name), absolute)


ONE: dict[str, tuple[NDArray[Any], float, float]] = {
    "erf": (WIDE, 8, 0),
    "erfc": (WIDE, 600, 0),
    "erfcx": (WIDE, 600, 0),
    "erfinv": (np.concatenate([UNIT, -UNIT]), 16, 0),
    "erfcinv": (np.concatenate([UNIT, 2 - UNIT]), 16, 0),
    "ndtr": (WIDE, 1500, 0),
    "log_ndtr": (WIDE, 1500, 0),
    "ndtri": (UNIT, 16, 0),
    "gamma": (AROUND, 16, 0),
    "gammaln": (WIDE, 16, 16),
    "digamma": (WIDE, 400, 400),
    "psi": (WIDE, 400, 400),
    "i0": (FINITE, 16, 0),
    "i0e": (WIDE, 16, 0),
    "i1": (FINITE, 16, 0),
    "i1e": (WIDE, 16, 0),
    "expit": (WIDE, 8, 0),
    "log_expit": (WIDE, 8, 0),
    "logit": (UNIT, 8, 1),
    "entr": (POSITIVE, 8, 0),
}
"""Operands, and what SciPy and we may differ by: in relation to the result, and absolutely.

SciPy's tails of the normal distribution are off by a thousand units in the last place, its digamma
function beside poles by a hundred."""


@pytest.mark.sampled
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_one_number(name: str, dtype: Any) -> None:
    x, units, absolute = ONE[name]
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    for compiled in (False, True):
        found = ours(name, x, compiled=compiled)
        assert found.dtype == dtype
        assert_near(found, theirs(name, x), units, absolute)


def pairs(left: NDArray[Any], right: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Random pairs, and each edge with each."""
    rng = np.random.default_rng(1)
    edges = np.meshgrid(EDGES, EDGES)
    return tuple(
        np.concatenate([rng.choice(each, 600), edge.ravel()])
        for each, edge in zip((left, right), edges, strict=True)
    )


TWO: dict[str, tuple[tuple[NDArray[Any], ...], float, float]] = {
    "gammainc": (pairs(POSITIVE, POSITIVE), 3000, 4),
    "gammaincc": (pairs(POSITIVE, POSITIVE), 3000, 4),
    "xlogy": (pairs(WIDE, WIDE), 4, 0),
    "xlog1py": (pairs(WIDE, WIDE), 4, 0),
    "rel_entr": (pairs(POSITIVE, POSITIVE), 32, 0),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_two_numbers(name: str, dtype: Any) -> None:
    operands, units, absolute = TWO[name]
    with np.errstate(over="ignore"):
        operands = tuple(x.astype(dtype) for x in operands)
    wanted = theirs(name, *operands)
    for compiled in (False, True):
        assert_near(ours(name, *operands, compiled=compiled), wanted, units, absolute)


def test_divergence() -> None:
    x, y = pairs(POSITIVE, POSITIVE)
    for compiled in (False, True):
        with np.errstate(invalid="ignore"):  # SciPy's is a difference of numbers of their size
            cancelled = np.where(np.isfinite(x + y), abs(x) + abs(y), 0)
        assert_near(ours("kl_div", x, y, compiled=compiled), theirs("kl_div", x, y), 32, cancelled)
    near = np.array([0.3, 1.0, 5.0])
    for step in (1e-5, -1e-7):
        found = ours("kl_div", near, near * (1 + step))
        exact = near * (1 + step) - near  # of which half the square is all that is left
        np.testing.assert_allclose(found, exact**2 / near / 2, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_incomplete_beta_functions(dtype: Any) -> None:
    rng = np.random.default_rng(2)
    a, b = np.exp(rng.uniform(-4, 7, (2, 800)))
    mean = a / (a + b)
    spread = np.sqrt(mean * (1 - mean) / (a + b + 1))
    x = np.clip(mean + spread * rng.normal(size=800) * 3, 0, 1)
    a, b, x = (each.astype(dtype) for each in (a, b, x))
    units = 1e5 if dtype == np.float64 else 2e3
    for name in ("betainc", "betaincc"):
        for compiled in (False, True):
            found = ours(name, a, b, x, compiled=compiled)
            assert_near(found, theirs(name, a, b, x), units, 500)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_incomplete_beta_functions_of_small_parameters(dtype: Any) -> None:
    """Almost all of the distribution stands at 0, or at 1: what is left is as small as they are."""
    rng = np.random.default_rng(5)
    small, other = 10 ** rng.uniform(-20, -0.5, (2, 400))
    large, x = 10 ** rng.uniform(-1, 1, 400), rng.uniform(0.01, 0.9, 400)
    x[::4] = 1 - 10 ** rng.uniform(-6, -1, 100)
    for a, b in ((small, other), (small, large), (large, small)):
        near = (x < 0.9) | (b < 1)  # elsewhere the complement cancels
        points = [v[near].astype(dtype) for v in (a, b, x)]
        for name in ("betainc", "betaincc"):
            found = ours(name, *points, compiled=True)
            assert_near(found, theirs(name, *points), 2000)


def test_incomplete_beta_functions_at_edges() -> None:
    numbers = np.array([0.0, 1.0, 2.5, INF, NAN, -1.0])
    a, b, x = (v.ravel() for v in np.meshgrid(numbers, numbers, [0, 0.3, 1, -0.1, 1.5, NAN]))
    for name in ("betainc", "betaincc"):
        for compiled in (False, True):
            found = ours(name, a, b, x, compiled=compiled)
            assert_near(found, theirs(name, a, b, x), 8)


def test_large_parameters_have_an_expansion() -> None:
    rng = np.random.default_rng(3)
    a, b = np.exp(rng.uniform(19, 24, (2, 100)))
    mean = a / (a + b)
    spread = np.sqrt(mean * (1 - mean) / (a + b))
    x = mean + spread * np.append(rng.normal(size=99) * 3, 0)
    found = ours("betainc", a, b, x)
    np.testing.assert_allclose(found, theirs("betainc", a, b, x), rtol=1e-8)


def test_log_beta() -> None:
    numbers = np.array([0.2, 1, 2.5, 7.9, 8.1, 100, 1e5, 1e10, INF, NAN, 0, -0.5, -1.5])
    a, b = (v.ravel() for v in np.meshgrid(numbers, numbers))
    finite = (a > 0) & (b > 0) | ((a > -2) & (b > 0) & (b < 3))
    for compiled in (False, True):
        found = ours("betaln", a, b, compiled=compiled)
        wanted = theirs("betaln", a, b)
        undefined = np.isnan(wanted) & np.isfinite(a) & np.isfinite(b)
        assert np.array_equal(np.isnan(found), np.isnan(a) | np.isnan(b) | undefined)
        good = finite & np.isfinite(wanted)
        np.testing.assert_allclose(found[good], wanted[good], rtol=1e-9, atol=1e-9)
    a, b = abs(a[good]), abs(b[good])
    found = ours("beta", a, b)
    np.testing.assert_allclose(found, theirs("beta", a, b), rtol=1e-7)
    for other in (a[:5, None], a[3]):
        np.testing.assert_allclose(ours("beta", other, b), theirs("beta", other, b), rtol=1e-7)


ENDS = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -0.5, -1.5, 1e-30, 800.0])
WITHOUT_LIMITS = ("i0", "i1", "beta", "betaln")
"""Of infinities SciPy gives NaN instead of the limit, and of a pole beside NaN infinity."""


def operands_of(name: str) -> int:
    """How many operands a function has."""
    return len(inspect.signature(getattr(psc.special, name)).parameters)


@pytest.mark.parametrize(
    "name",
    [
        each
        for names in (*functions.OF_ELEMENTS, "beta")
        if operands_of(each := names.split()[0]) < 3
    ],
)
def test_zeros_and_poles_are_scipys(name: str) -> None:
    ends = ENDS if name in WITHOUT_LIMITS else np.append(ENDS, [INF, -INF, NAN])
    operands = (
        (ends,) if operands_of(name) == 1 else tuple(v.ravel() for v in np.meshgrid(ends, ends))
    )
    wanted = theirs(name, *operands)
    for compiled in (False, True):
        found = ours(name, *operands, compiled=compiled)
        np.testing.assert_allclose(found, wanted, rtol=1e-8)
        zeros = (wanted == 0) & (found == 0)
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


def test_probabilities_are_not_negative() -> None:
    tiny, numbers = np.array([1e-30, 1e-9, 1e-4]), np.array([0.5, 1.0, 800.0])
    a, b, x = (v.ravel() for v in np.meshgrid(tiny, numbers, [1e-30, 0.5, 1 - 1e-16]))
    for name in ("betainc", "betaincc"):
        for operands in ((a, b, x), (b, a, x)):
            for compiled in (False, True):
                found = ours(name, *operands, compiled=compiled)
                assert ((found >= 0) & (found <= 1)).all()
                np.testing.assert_allclose(found, theirs(name, *operands), atol=1e-13)


def test_zeta_and_polygamma() -> None:
    rng = np.random.default_rng(4)
    s, q = 1 + np.exp(rng.uniform(-8, 4, 500)), np.exp(rng.uniform(-5, 8, 500))
    for dtype in (np.float32, np.float64):
        x, y = s.astype(dtype), q.astype(dtype)
        for compiled in (False, True):
            found, wanted = ours("zeta", x, y, compiled=compiled), theirs("zeta", x, y)
            inside = wanted > 1e-25  # its terms are smaller, and must not underflow
            assert_near(found[inside], wanted[inside], 64)
    left = -np.exp(rng.uniform(-5, 3, 500))
    for n in range(4):
        for x in (q, left):
            for compiled in (False, True):
                found, wanted = (
                    ours("polygamma", n, x, compiled=compiled),
                    theirs("polygamma", n, x),
                )
                assert_near(found, wanted, 64, 64 * max(1.0, float(np.max(abs(wanted)) / 1e3)))
    edges = np.array([0.0, -1.0, -3.0, INF, 2.5, -1e12 - 0.5, NAN])
    np.testing.assert_array_equal(ours("zeta", np.full(7, 2.0), edges)[:4], [INF, INF, INF, 0])
    np.testing.assert_array_equal(
        ours("zeta", np.array([1.0, 0.5, NAN, 1.5]), np.array([2.0, 2.0, 2.0, -0.5])),
        [INF, NAN, NAN, NAN],
    )
    np.testing.assert_allclose(run("pscdsl.special.zeta", s), theirs("zeta", s), rtol=1e-13)
    large = run("pscdsl.special.polygamma", 40, np.array([3.0, 30.0]))
    np.testing.assert_allclose(large, theirs("polygamma", 40, np.array([3.0, 30.0])), rtol=1e-12)
    np.testing.assert_allclose(
        run("pscdsl.special.multigammaln", q + 2, 4),
        [theirs("multigammaln", each, 4) for each in q + 2],
        rtol=1e-12,
    )


@pytest.mark.parametrize("compiled", [False, True])
def test_binomial_coefficients(compiled: bool) -> None:
    """Integers are exact while the logarithm is near enough; the others are near SciPy's."""
    n, k = np.arange(-2.0, 40.0)[:, None], np.arange(-1.0, 42.0)
    found, wanted = ours("comb", n, k, compiled=compiled), theirs("comb", n, k)
    small = np.round(wanted[wanted < 1e11])  # SciPy's may miss them by a unit in the last place
    np.testing.assert_array_equal(found[wanted < 1e11], small)
    np.testing.assert_allclose(found, wanted, rtol=2e-14)
    whole = ours("comb", n.astype(np.int64), k.astype(np.int64), compiled=compiled)
    np.testing.assert_array_equal(whole, found)
    found = ours("comb", n + 0.3, k + 0.2, compiled=compiled)
    np.testing.assert_allclose(found, theirs("comb", n + 0.3, k + 0.2), rtol=1e-13)
    few = np.arange(0, 31, dtype=np.float32)
    found = ours("comb", np.float32(30), few, compiled=compiled)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, theirs("comb", 30.0, few), rtol=5e-6)


def test_binomial_coefficients_with_repetition() -> None:
    n, k = np.arange(0.0, 20.0)[:, None], np.arange(0.0, 12.0)
    found = run("pscdsl.special.comb", n, k, repetition=True)
    wanted = [[math.comb(int(a + b) - 1, int(b)) if b else 1 for b in k] for a in n[:, 0]]
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    negative = run("pscdsl.special.comb", np.array([-1.0, -3, 2]), np.array([0.0, 2, -1]))
    np.testing.assert_array_equal(negative, np.zeros(3))


def test_half_precision_is_computed_in_single() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = RNG.uniform(0.1, 5, 200).astype(dtype)
        for name in ("erfc", "gammaln", "digamma", "i0e", "log_ndtr"):
            found = ours(name, x, compiled=True)
            wanted = theirs(name, x.astype(np.float64)).astype(dtype)
            assert found.dtype == dtype
            step = 2.0**-10 if dtype is np.float16 else 2.0**-7
            np.testing.assert_allclose(
                found.astype(np.float64), wanted.astype(np.float64), rtol=step, atol=step / 100
            )


def test_dtypes_and_operands() -> None:
    assert ours("gammaln", np.arange(1, 5)).dtype == np.float64
    assert ours("gammaln", np.arange(1, 5, dtype=np.int32)).dtype == np.float64
    np.testing.assert_allclose(ours("erf", [0.5, 1.0]), theirs("erf", [0.5, 1.0]), rtol=1e-6)
    assert ours("xlogy", np.ones((2, 3)), 2.0).shape == (2, 3)
    assert ours("xlogy", np.ones((2, 1)), np.ones(3)).shape == (2, 3)
    name = "pscdsl.special."
    refused(DtypeNotAccepted, name + "gammaln", np.ones(2, np.complex64))
    refused(BadArguments, name + "polygamma", -1, np.ones(2))
    refused(BadArguments, name + "polygamma", 1.5, np.ones(2))
    refused(BadArguments, name + "multigammaln", np.ones(2), 0)
    refused(BadArguments, name + "comb", np.ones(2), 1, exact=True)
    refused(BadArguments, name + "gammaln", np.ones(2), out=None)


def test_the_public_functions_are_those_of_scipy() -> None:
    for name in psc.special.__all__:
        public: Callable[..., Any] = getattr(psc.special, name)
        assert MEANINGS[f"scipy.special.{name}"] is meaning(f"pscdsl.special.{name}")
        assert hasattr(scipy.special, name)
        assert public.__doc__
    declared = {n.removeprefix("pscdsl.special.") for n in MEANINGS if "pscdsl.special." in n}
    assert declared == {*psc.special.__all__}


def test_numpys_own() -> None:
    x = np.linspace(-30, 30, 61)
    np.testing.assert_allclose(run("numpy.i0", x), np.i0(x), rtol=1e-14)
    for size, beta in ((1, 3.0), (2, 0), (9, 5.5), (8, 14)):
        found = run("numpy.kaiser", size, beta)
        np.testing.assert_allclose(found, np.kaiser(size, beta), rtol=1e-4, atol=1e-7)
    refused(BadArguments, "numpy.kaiser", 5, np.float64(2))


def test_outside_of_kernels_arrays_are_numpys() -> None:
    assert psc.special.gammaln(0.5) == pytest.approx(np.log(np.pi) / 2)
    x = np.linspace(0.1, 2, 6, dtype=np.float32).reshape(2, 3)
    for found in (psc.special.digamma(x), psc.special.xlogy(x, 2.0), psc.special.softmax(x, 1)):
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.float32
    pair = psc.special.logsumexp(x, axis=0, b=-x, return_sign=True)
    np.testing.assert_array_equal(pair[1], -np.ones(3))
    with pytest.raises(TypeError, match="c128"):
        psc.special.gammaln(1j)
    with pytest.raises(TypeError, match="f32"):
        psc.special.xlogy(x, np.float64(2))
    with pytest.raises(TypeError, match="takes"):
        psc.special.polygamma(-1, x)


@psc.kernel
def by_both_names(x: f32["n"]) -> f32["n"]:
    from scipy.special import expit

    return scipy.special.erfc(x) + psc.special.ndtr(x) + expit(x)


def test_scipys_names_mean_the_same_in_kernels() -> None:
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    wanted = scipy.special.erfc(x) + scipy.special.ndtr(x) + scipy.special.expit(x)
    np.testing.assert_allclose(np.asarray(by_both_names(x)), wanted, rtol=1e-6)


@psc.kernel
def sums(x: f64["n"], y: f64["n"], z: f64["n"]) -> f64:
    s = psc.special
    products = s.xlogy(x, y).sum() + s.xlog1py(x, y).sum() + s.rel_entr(x, z).sum()
    return products + s.i1(x).sum() + s.i1e(x).sum() + s.i0(x).sum() + s.i0e(x).sum()


def test_derivatives_at_zero_are_numbers() -> None:
    zeros, ones = np.zeros(3), np.full(3, 1.5)
    dx, dy, dz = psc.grad(sums, (0, 1, 2))(zeros, ones, ones)
    # Of i0e the derivative jumps at 0: between, there is none.
    np.testing.assert_allclose(dx[:1], [np.log(1.5) + np.log(2.5) - INF], rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(dy), zeros)
    np.testing.assert_array_equal(np.asarray(dz), zeros)
    second = psc.hessian(bessel)(np.zeros(2))
    np.testing.assert_allclose(np.asarray(second), np.eye(2) * 0.5, atol=1e-15)


@psc.kernel
def bessel(x: f64["n"]) -> f64:
    return psc.special.i0(x).sum() + psc.special.i1(x).sum()


@psc.kernel
def of_order(a: f32["n"], x: f32["n"]) -> f32:
    return psc.special.gammainc(a, x).sum()


def test_derivatives_in_parameters_are_refused() -> None:
    x = np.ones(2, np.float32)
    psc.grad(of_order, 1)(x, x)
    with pytest.raises(psc.CheckError, match=r"`gammainc` has no rule for a derivative in `a`"):
        psc.grad(of_order, 0)(x, x)


def test_polygamma_in_half_precision() -> None:
    x = np.array([1.5, 3], np.float16)
    found = np.asarray(psc.special.polygamma(9, x))
    np.testing.assert_allclose(found, theirs("polygamma", 9, x.astype(np.float64)), rtol=2e-3)
