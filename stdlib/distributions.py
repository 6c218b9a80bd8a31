"""Continuous distributions: logarithms of densities, and probabilities below and above a number.

These are functions for kernels: numbers and parameters of any shapes that broadcast, in one dtype.
Outside of its support a density is 0, and its logarithm -inf; NaN gives NaN.  Parameters that
make no distribution (negative deviations) are not looked for.  Samples are drawn by `psc.random`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float

_HALF_LOG_TWO_PI = float(np.log(2 * np.pi) / 2)


def normal_log_density(
    x: Float["*s"], mean: Float["*p"] | float = 0.0, deviation: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density of the normal distribution with this mean and standard deviation."""
    z = (x - mean) / deviation
    return -(z * z) / 2 - np.log(deviation) - _HALF_LOG_TWO_PI


def normal_cdf(
    x: Float["*s"], mean: Float["*p"] | float = 0.0, deviation: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x; `psc.special.log_ndtr` is its logarithm, of a standard x."""
    return psc.special.ndtr((x - mean) / deviation)


def log_normal_log_density(
    x: Float["*s"], mean: Float["*p"] | float = 0.0, deviation: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density of numbers whose logarithms are normal with this mean and deviation."""
    outside = x <= 0
    logarithm = np.log(np.where(outside, 1, x))
    log_density = normal_log_density(logarithm, mean, deviation) - logarithm
    return np.where(outside, -np.inf, log_density)


def log_normal_cdf(
    x: Float["*s"], mean: Float["*p"] | float = 0.0, deviation: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x."""
    outside = x <= 0
    logarithm = np.log(np.where(outside, 1, x))
    return np.where(outside, 0, normal_cdf(logarithm, mean, deviation))


def student_t_log_density(
    x: Float["*s"],
    freedom: Float["*f"] | float,
    location: Float["*p"] | float = 0.0,
    scale: Float["*q"] | float = 1.0,
) -> Float["*r"]:
    """The log-density of Student's t; `freedom` may be fractional (Gosset 1908)."""
    z = (x - location) / scale
    tail = (freedom + 1) / 2 * _log_one_and_square(z / np.sqrt(freedom))
    constant = psc.special.betaln(freedom / 2, 0.5) + np.log(freedom) / 2 + np.log(scale)
    return -tail - constant


def student_t_cdf(
    x: Float["*s"],
    freedom: Float["*f"] | float,
    location: Float["*p"] | float = 0.0,
    scale: Float["*q"] | float = 1.0,
) -> Float["*r"]:
    """The probability of less than x."""
    r = (x - location) / scale / np.sqrt(freedom)
    large = np.abs(r) > 1
    near, far = np.where(large, 0, r), 1 / np.where(large, r, 1)
    # The share of r * r in 1 + r * r, or of 1: each where it is the smaller one.
    square, one = near * near / (1 + near * near), far * far / (1 + far * far)
    inner = psc.special.betaincc(0.5, freedom / 2, square)
    outer = psc.special.betainc(freedom / 2, 0.5, one)
    tail = np.where(large, outer, inner) / 2
    return np.where(r > 0, 1 - tail, tail)


def cauchy_log_density(
    x: Float["*s"], location: Float["*p"] | float = 0.0, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density of the Cauchy distribution, Student's t with one degree of freedom."""
    return -_log_one_and_square((x - location) / scale) - np.log(np.pi * scale)


def cauchy_cdf(
    x: Float["*s"], location: Float["*p"] | float = 0.0, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x, with relative accuracy far to the left."""
    z = (x - location) / scale
    return np.arctan2(np.ones_like(z), -z) / np.pi


def laplace_log_density(
    x: Float["*s"], location: Float["*p"] | float = 0.0, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density proportional to `-abs(x - location) / scale` (Laplace 1774)."""
    return -np.abs(x - location) / scale - np.log(2 * scale)


def laplace_cdf(
    x: Float["*s"], location: Float["*p"] | float = 0.0, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x."""
    z = (x - location) / scale
    tail = np.exp(-np.abs(z)) / 2
    return np.where(z > 0, 1 - tail, tail)


def logistic_log_density(
    x: Float["*s"], location: Float["*p"] | float = 0.0, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density of the distribution whose cdf is the logistic function."""
    z = np.abs(x - location) / scale
    return -z - 2 * np.log1p(np.exp(-z)) - np.log(scale)


def logistic_cdf(
    x: Float["*s"], location: Float["*p"] | float = 0.0, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x."""
    return psc.special.expit((x - location) / scale)


def uniform_log_density(
    x: Float["*s"], low: Float["*p"] | float = 0.0, high: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """`-log(high - low)` for all numbers from `low` to `high`, both included."""
    inside = np.where(np.isnan(x), x, -np.log(high - low))
    return np.where((x < low) | (x > high), -np.inf, inside)


def uniform_cdf(
    x: Float["*s"], low: Float["*p"] | float = 0.0, high: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x."""
    return np.clip((x - low) / (high - low), 0, 1)


def exponential_log_density(x: Float["*s"], rate: Float["*p"] | float = 1.0) -> Float["*r"]:
    """The log-density of waiting times, with `rate` events per unit of time on average."""
    return np.where(x < 0, -np.inf, np.log(rate) - rate * x)


def exponential_cdf(x: Float["*s"], rate: Float["*p"] | float = 1.0) -> Float["*r"]:
    """The probability of less than x; the probability of more is `exp(-rate * x)`."""
    return -np.expm1(-rate * np.maximum(x, 0))


def gamma_log_density(
    x: Float["*s"], shape: Float["*p"] | float, rate: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density of the gamma with mean `shape / rate`; exact for large shapes, too."""
    outside = x < 0
    log_weight = log_poisson_weight(shape - 1, rate * np.where(outside, 1, x))
    return np.where(outside, -np.inf, log_weight + np.log(rate))


def gamma_cdf(
    x: Float["*s"], shape: Float["*p"] | float, rate: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x."""
    return psc.special.gammainc(shape, rate * np.maximum(x, 0))


def gamma_survival(
    x: Float["*s"], shape: Float["*p"] | float, rate: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of more than x, with relative accuracy where it is small."""
    return psc.special.gammaincc(shape, rate * np.maximum(x, 0))


def inverse_gamma_log_density(
    x: Float["*s"], shape: Float["*p"] | float, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density of `scale / y`, where y is gamma with this shape and rate 1."""
    outside = x <= 0
    positive = np.where(outside, 1, x)
    log_density = log_poisson_weight(shape, scale / positive) + np.log(shape) - np.log(positive)
    return np.where(outside, -np.inf, log_density)


def beta_log_density(x: Float["*s"], a: Float["*p"] | float, b: Float["*q"] | float) -> Float["*r"]:
    """The log-density of the beta distribution; exact for large parameters, too."""
    outside = (x < 0) | (x > 1)
    return np.where(outside, -np.inf, log_beta_weight(a - 1, b - 1, np.where(outside, 0.5, x)))


def beta_cdf(x: Float["*s"], a: Float["*p"] | float, b: Float["*q"] | float) -> Float["*r"]:
    """The probability of less than x."""
    return psc.special.betainc(a, b, np.clip(x, 0, 1))


def beta_survival(x: Float["*s"], a: Float["*p"] | float, b: Float["*q"] | float) -> Float["*r"]:
    """The probability of more than x, with relative accuracy where it is small."""
    return psc.special.betaincc(a, b, np.clip(x, 0, 1))


def log_poisson_weight(x: Float["*s"] | float, mean: Float["*p"] | float) -> Float["*r"]:
    """`x * log(mean) - mean - gammaln(x + 1)` for x > -1, without its cancellation.

    From x = 16 on by the deviance and Stirling's series, as in Loader, "Fast and accurate
    computation of binomial probabilities" (2000).
    """
    too_many = mean == np.inf  # where the difference would be NaN
    mean = np.where(too_many, 1, mean)
    large = x >= _LARGE
    little, much = np.where(large, 0, x), np.where(large, x, _LARGE)
    exact = psc.special.xlogy(little, mean) - (mean + psc.special.gammaln(little + 1))
    root = np.log(much) / 2 + _HALF_LOG_TWO_PI
    series = -psc.special.kl_div(much, mean) - _stirling_error(much) - root
    return np.where(too_many, -np.inf, np.where(large, series, exact))


def log_beta_weight(k: Any, m: Any, x: Any) -> Any:
    """`k * log(x) + m * log(1 - x) - betaln(k + 1, m + 1)` for k, m > -1, without cancellation."""
    large = (k >= _LARGE) & (m >= _LARGE)
    little_k, little_m = np.where(large, 0, k), np.where(large, 0, m)
    exact = psc.special.xlogy(little_k, x) + psc.special.xlog1py(little_m, -x)
    exact = exact - psc.special.betaln(little_k + 1, little_m + 1)

    much_k, much_m = np.where(large, k, _LARGE), np.where(large, m, _LARGE)
    n = much_k + much_m
    deviance = psc.special.kl_div(much_k, n * x) + psc.special.kl_div(much_m, n * (1 - x))
    errors = _stirling_error(n) - _stirling_error(much_k) - _stirling_error(much_m)
    root = np.log(n / much_k / much_m) / 2 - _HALF_LOG_TWO_PI
    return np.where(large, errors + root - deviance + np.log1p(n), exact)


_LARGE = 16
"""From where on five terms of Stirling's series have all digits of f64."""


def _stirling_error(x: Any) -> Any:
    """`gammaln(x + 1)` less Stirling's `(x + 1/2) * log(x) - x + log(2 * pi) / 2`."""
    y = 1 / (x * x)
    tail = 1 / 1260 - y * (1 / 1680 - y / 1188)
    return (1 / 12 - y * (1 / 360 - y * tail)) / x


def _log_one_and_square(x: Float["*s"]) -> Float["*s"]:
    """`log(1 + x * x)`, also where the square overflows."""
    size = np.abs(x)
    near, far = np.minimum(size, 1e8), np.maximum(size, 1e8)
    return np.where(size > 1e8, 2 * np.log(far), np.log1p(near * near))
