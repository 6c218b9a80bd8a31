"""Logarithms of densities and probabilities against SciPy, on and off the support, in the tails."""

# SciPy is not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as untyped

import pscdsl as psc
from pscdsl import Float, f64, i32
from pscdsl.stdlib import discrete_distributions as discrete
from pscdsl.stdlib import distributions as d
from pscdsl.stdlib import multivariate_distributions as several

pytestmark = pytest.mark.quick_code

stats: Any = untyped
POINTS = [-np.inf, -30, -3, -0.4, 0, 1e-3, 0.3, 0.7, 1, 2.5, 20, 90, 1e3, np.inf, np.nan]
PARAMETERS = [0.3, 1, 2.5, 20, 400]


@psc.kernel
def densities(x: Float["n"], a: Float["n"], b: Float["n"]) -> Float["_ n"]:
    return np.stack(
        [
            d.normal_log_density(x, a, b),
            d.log_normal_log_density(x, a, b),
            d.student_t_log_density(x, a, 1.5, b),
            d.cauchy_log_density(x, a, b),
            d.laplace_log_density(x, a, b),
            d.logistic_log_density(x, a, b),
            d.uniform_log_density(x, a, a + b),
            d.exponential_log_density(x, a),
            d.gamma_log_density(x, a, b),
            d.inverse_gamma_log_density(x, a, b),
            d.beta_log_density(x, a, b),
        ]
    )


@psc.kernel
def probabilities(x: Float["n"], a: Float["n"], b: Float["n"]) -> Float["_ n"]:
    return np.stack(
        [
            d.normal_cdf(x, a, b),
            d.log_normal_cdf(x, a, b),
            d.student_t_cdf(x, a, 1.5, b),
            d.cauchy_cdf(x, a, b),
            d.laplace_cdf(x, a, b),
            d.logistic_cdf(x, a, b),
            d.uniform_cdf(x, a, a + b),
            d.exponential_cdf(x, a),
            d.gamma_cdf(x, a, b),
            d.gamma_survival(x, a, b),
            d.beta_cdf(x, a, b),
            d.beta_survival(x, a, b),
        ]
    )


def frozen(a: NDArray[Any], b: NDArray[Any]) -> dict[str, Any]:
    """The distributions as SciPy has them."""
    return {
        "normal": stats.norm(a, b),
        "log-normal": stats.lognorm(b, scale=np.exp(a)),
        "student t": stats.t(a, 1.5, b),
        "cauchy": stats.cauchy(a, b),
        "laplace": stats.laplace(a, b),
        "logistic": stats.logistic(a, b),
        "uniform": stats.uniform(a, b),
        "exponential": stats.expon(scale=1 / a),
        "gamma": stats.gamma(a, scale=1 / b),
        "inverse gamma": stats.invgamma(a, scale=b),
        "beta": stats.beta(a, b),
    }


def grid(dtype: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Every point with every pair of parameters; in f32 first."""
    x, a, b = np.meshgrid(
        *(np.array(each, np.float32) for each in (POINTS, PARAMETERS, PARAMETERS))
    )
    return x.ravel().astype(dtype), a.ravel().astype(dtype), b.ravel().astype(dtype)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 2e-5), (np.float64, 1e-10)])
def test_densities(dtype: Any, rtol: float) -> None:
    args = grid(dtype)
    x, a, b = (each.astype(np.float64) for each in args)
    found = np.asarray(densities(*args))
    assert found.dtype == dtype
    with np.errstate(all="ignore"):
        expected = {name: each.logpdf(x) for name, each in frozen(a, b).items()}
    for row, (name, right) in zip(found, expected.items(), strict=True):
        if name == "laplace":  # scipy's underflows
            right = -np.abs(x - a) / b - np.log(2 * b)
        if name == "log-normal":  # scipy has NaN where the scale overflows
            right = np.where(a > 50, row, right)
        right = np.where(np.isinf(x), -np.inf, right)  # scipy has NaN at some ends
        np.testing.assert_allclose(row, right, rtol=rtol, atol=rtol, err_msg=name)


def test_probabilities() -> None:
    dtype, rtol = np.float32, 5e-5  # which has the shorter tails
    args = grid(dtype)
    x, a, b = (each.astype(np.float64) for each in args)
    found = np.asarray(probabilities(*args))
    with np.errstate(all="ignore"):
        names = frozen(a, b)
        expected = {name: each.cdf(x) for name, each in names.items() if name != "inverse gamma"}
        rows = list(expected.items())
        rows.insert(9, ("gamma", names["gamma"].sf(x)))
        rows.append(("beta", names["beta"].sf(x)))
    for row, (name, right) in zip(found, rows, strict=True):
        right = np.where(a > 50, row, right) if name == "log-normal" else right
        np.testing.assert_allclose(
            row, right, rtol=rtol, atol=float(np.finfo(dtype).tiny), err_msg=name
        )


@psc.kernel
def masses(k: i32["n"], n: i32["n"], p: Float["n"], mean: Float["n"]) -> Float["_ n"]:
    return np.stack(
        [
            discrete.bernoulli_log_mass(k, p),
            discrete.binomial_log_mass(k, n, p),
            discrete.negative_binomial_log_mass(k, mean, p),
            discrete.geometric_log_mass(k, p),
            discrete.poisson_log_mass(k, mean),
            discrete.binomial_cdf(k, n, p),
            discrete.poisson_cdf(k, mean),
            discrete.poisson_survival(k, mean),
        ]
    )


def test_masses() -> None:
    dtype, rtol = np.float32, 3e-5
    k, n, p, mean = (
        each.ravel()
        for each in np.meshgrid(
            np.array([-1, 0, 1, 3, 17, 40, 300]),
            np.array([1, 3, 40, 500]),
            np.array([1e-4, 0.3, 0.9], np.float32),
            np.array([0.2, 3, 290], np.float32),
        )
    )
    narrow = (k.astype(np.int32), n.astype(np.int32), p.astype(dtype), mean.astype(dtype))
    found = np.asarray(masses(*narrow))
    q, m = p.astype(np.float64), mean.astype(np.float64)
    expected = [
        stats.bernoulli.logpmf(k, q),
        stats.binom.logpmf(k, n, q),
        stats.nbinom.logpmf(k, m, q),
        stats.geom.logpmf(k, q),
        stats.poisson.logpmf(k, m),
        stats.binom.cdf(k, n, q),
        stats.poisson.cdf(k, m),
        stats.poisson.sf(k, m),
    ]
    for i, (row, right) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(row, right, rtol=rtol, atol=rtol / 100, err_msg=str(i))


@psc.kernel
def of_many(k: i32, n: i32, p: Float, mean: Float) -> Float["4"]:
    number = k.astype(p.dtype)
    return np.stack(
        [
            discrete.binomial_log_mass(k, n, p),
            discrete.poisson_log_mass(k, mean),
            d.gamma_log_density(number, mean),
            d.beta_log_density(p, number, n.astype(p.dtype) - number),
        ]
    )


def test_large_counts_keep_the_digits_of_single_precision() -> None:
    k, n, p, mean = 400_300, 1_000_000, np.float32(0.4), np.float32(400_000)
    found = of_many(np.int32(k), np.int32(n), p, mean)
    expected = [
        stats.binom.logpmf(k, n, float(p)),
        stats.poisson.logpmf(k, float(mean)),
        stats.gamma.logpdf(k, float(mean)),
        stats.beta.logpdf(float(p), k, n - k),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@psc.kernel
def slopes(x: f64["n"], a: f64) -> f64["3 n"]:
    """Derivatives of densities that hide logarithms of numbers off the support."""

    def gamma(x: f64["n"]) -> f64:
        return np.sum(d.gamma_log_density(x, a))

    def log_normal(x: f64["n"]) -> f64:
        return np.sum(d.log_normal_log_density(x))

    def student_t(x: f64["n"]) -> f64:
        return np.sum(d.student_t_log_density(x, a))

    return np.stack([psc.grad(gamma)(x), psc.grad(log_normal)(x), psc.grad(student_t)(x)])


def test_derivatives_are_finite_off_the_support() -> None:
    x, a = np.array([-2.0, -1e-3, 0.5, 30.0, 1e200]), 20.0
    found = np.asarray(slopes(x, a))
    assert np.isfinite(found).all()
    assert not found[:2, :2].any()
    np.testing.assert_allclose(found[0, 2:4], (a - 1) / x[2:4] - 1, rtol=1e-9)
    np.testing.assert_allclose(found[2, :4], -(a + 1) * x[:4] / (a + x[:4] ** 2), rtol=1e-9)


@psc.kernel
def of_vectors(
    x: Float["*b d"], mean: Float["d"], root: Float["d d"], freedom: Float
) -> tuple[Float["*b"], Float["*b"]]:
    assert np.finfo(x.dtype).bits >= 32
    return (
        several.multivariate_normal_log_density(x, mean, root),
        several.multivariate_student_t_log_density(x, freedom, mean, root),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distributions_of_vectors(dtype: Any) -> None:
    random = np.random.default_rng(0)
    x, mean = random.normal(size=(2, 5, 3)), random.normal(size=3)
    root = np.tril(random.normal(size=(3, 3))) + 2 * np.eye(3)
    covariance = root @ root.T
    args = (x.astype(dtype), mean.astype(dtype), root.astype(dtype), dtype(3))
    normal, student = of_vectors(*args)
    rtol = 50 * float(np.finfo(dtype).eps)
    right = stats.multivariate_normal(mean, covariance).logpdf(x)
    np.testing.assert_allclose(normal, right, rtol=rtol)
    right = stats.multivariate_t(mean, covariance, df=3).logpdf(x)
    np.testing.assert_allclose(student, right, rtol=rtol)


def test_distributions_over_classes() -> None:
    alpha, x = np.array([0.5, 2.0, 7.0]), np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    found = several.dirichlet_log_density(x, alpha)
    np.testing.assert_allclose(found, stats.dirichlet(alpha).logpdf(x.T), rtol=1e-12)
    counts, shares = np.array([[3, 0, 40], [0, 0, 0], [-1, 2, 3]]), np.array([0.2, 0.3, 0.5])
    found = discrete.multinomial_log_mass(counts, shares)
    right = [stats.multinomial(c.sum(), shares).logpmf(c) for c in counts[:2]]
    np.testing.assert_allclose(found, [*right, -np.inf], rtol=1e-12, atol=1e-12)
    logs = np.log(np.array([shares] * 4))
    found = discrete.categorical_log_mass(np.array([0, 2, 3, -1]), logs)
    np.testing.assert_allclose(found, [np.log(0.2), np.log(0.5), -np.inf, -np.inf])
