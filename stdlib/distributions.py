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
    """The log-density of the normal distribution with this mean and standard deviation.

    Examples:
        >>> normal_log_density(np.array([0.0, 1.0, 2.0]))
        array([-0.9189, -1.4189, -2.9189])
        >>> normal_log_density(np.array([0.0, 1.0, 2.0]), mean=1.0, deviation=0.5)
        array([-2.2258, -0.2258, -2.2258])
    """
    z = (x - mean) / deviation
    return -(z * z) / 2 - np.log(deviation) - _HALF_LOG_TWO_PI


def normal_cdf(
    x: Float["*s"], mean: Float["*p"] | float = 0.0, deviation: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x; `psc.special.log_ndtr` is its logarithm, of a standard x.

    Examples:
        >>> normal_cdf(np.array([-1.96, 0.0, 1.96]))
        array([0.025, 0.5  , 0.975])
    """
    return psc.special.ndtr((x - mean) / deviation)


def log_normal_log_density(
    x: Float["*s"], mean: Float["*p"] | float = 0.0, deviation: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density of numbers whose logarithms are normal with this mean and deviation.

    Examples:
        >>> log_normal_log_density(np.array([0.5, 1.0, 2.0]))
        array([-0.466 , -0.9189, -1.8523])
    """
    outside = x <= 0
    logarithm = np.log(np.where(outside, 1, x))
    log_density = normal_log_density(logarithm, mean, deviation) - logarithm
    return np.where(outside, -np.inf, log_density)


def log_normal_cdf(
    x: Float["*s"], mean: Float["*p"] | float = 0.0, deviation: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x.

    Examples:
        >>> log_normal_cdf(np.array([0.5, 1.0, 2.0]))
        array([0.2441, 0.5   , 0.7559])
    """
    outside = x <= 0
    logarithm = np.log(np.where(outside, 1, x))
    return np.where(outside, 0, normal_cdf(logarithm, mean, deviation))


def student_t_log_density(
    x: Float["*s"],
    freedom: Float["*f"] | float,
    location: Float["*p"] | float = 0.0,
    scale: Float["*q"] | float = 1.0,
) -> Float["*r"]:
    """The log-density of Student's t; `freedom` may be fractional (Gosset 1908).

    Examples:
        >>> student_t_log_density(np.array([0.0, 2.0, 4.0]), freedom=3.0)
        array([-1.0009, -2.6955, -4.6925])
    """
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
    """The probability of less than x.

    Examples:
        >>> student_t_cdf(np.array([-2.0, 0.0, 2.0]), freedom=3.0)
        array([0.0697, 0.5   , 0.9303])
    """
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
    """The log-density of the Cauchy distribution, Student's t with one degree of freedom.

    Examples:
        >>> cauchy_log_density(np.array([0.0, 1.0, 10.0]))
        array([-1.1447, -1.8379, -5.7599])
    """
    return -_log_one_and_square((x - location) / scale) - np.log(np.pi * scale)


def cauchy_cdf(
    x: Float["*s"], location: Float["*p"] | float = 0.0, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x, with relative accuracy far to the left.

    Examples:
        >>> cauchy_cdf(np.array([-1.0, 0.0, 1.0]))
        array([0.25, 0.5 , 0.75])
    """
    z = (x - location) / scale
    return np.arctan2(np.ones_like(z), -z) / np.pi


def laplace_log_density(
    x: Float["*s"], location: Float["*p"] | float = 0.0, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density proportional to `-abs(x - location) / scale` (Laplace 1774).

    Examples:
        >>> laplace_log_density(np.array([0.0, 1.0, 2.0]), scale=2.0)
        array([-1.3863, -1.8863, -2.3863])
    """
    return -np.abs(x - location) / scale - np.log(2 * scale)


def laplace_cdf(
    x: Float["*s"], location: Float["*p"] | float = 0.0, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x.

    Examples:
        >>> laplace_cdf(np.array([-1.0, 0.0, 1.0]))
        array([0.1839, 0.5   , 0.8161])
    """
    z = (x - location) / scale
    tail = np.exp(-np.abs(z)) / 2
    return np.where(z > 0, 1 - tail, tail)


def logistic_log_density(
    x: Float["*s"], location: Float["*p"] | float = 0.0, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density of the distribution whose cdf is the logistic function.

    Examples:
        >>> logistic_log_density(np.array([0.0, 1.0, 2.0]))
        array([-1.3863, -1.6265, -2.2539])
    """
    z = np.abs(x - location) / scale
    return -z - 2 * np.log1p(np.exp(-z)) - np.log(scale)


def logistic_cdf(
    x: Float["*s"], location: Float["*p"] | float = 0.0, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x.

    Examples:
        >>> logistic_cdf(np.array([-1.0, 0.0, 1.0]), scale=0.5)
        array([0.1192, 0.5   , 0.8808])
    """
    return psc.special.expit((x - location) / scale)


def uniform_log_density(
    x: Float["*s"], low: Float["*p"] | float = 0.0, high: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """`-log(high - low)` for all numbers from `low` to `high`, both included.

    Examples:
        >>> uniform_log_density(np.array([-1.0, 0.5, 3.0]), low=0.0, high=2.0)
        array([   -inf, -0.6931,    -inf])
    """
    inside = np.where(np.isnan(x), x, -np.log(high - low))
    return np.where((x < low) | (x > high), -np.inf, inside)


def uniform_cdf(
    x: Float["*s"], low: Float["*p"] | float = 0.0, high: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x.

    Examples:
        >>> uniform_cdf(np.array([-1.0, 0.5, 3.0]), low=0.0, high=2.0)
        array([0.  , 0.25, 1.  ])
    """
    return np.clip((x - low) / (high - low), 0, 1)


def exponential_log_density(x: Float["*s"], rate: Float["*p"] | float = 1.0) -> Float["*r"]:
    """The log-density of waiting times, with `rate` events per unit of time on average.

    Examples:
        >>> exponential_log_density(np.array([0.0, 1.0, 2.0]), rate=2.0)
        array([ 0.6931, -1.3069, -3.3069])
    """
    return np.where(x < 0, -np.inf, np.log(rate) - rate * x)


def exponential_cdf(x: Float["*s"], rate: Float["*p"] | float = 1.0) -> Float["*r"]:
    """The probability of less than x; the probability of more is `exp(-rate * x)`.

    Examples:
        >>> exponential_cdf(np.array([0.0, 1.0, 2.0]), rate=2.0)
        array([0.    , 0.8647, 0.9817])
    """
    return -np.expm1(-rate * np.maximum(x, 0))


def gamma_log_density(
    x: Float["*s"], shape: Float["*p"] | float, rate: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density of the gamma with mean `shape / rate`; exact for large shapes, too.

    Examples:
        >>> gamma_log_density(np.array([0.5, 1.0, 4.0]), shape=2.0)
        array([-1.1931, -1.    , -2.6137])
    """
    outside = x < 0
    log_weight = log_poisson_weight(shape - 1, rate * np.where(outside, 1, x))
    return np.where(outside, -np.inf, log_weight + np.log(rate))


def gamma_cdf(
    x: Float["*s"], shape: Float["*p"] | float, rate: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of less than x.

    Examples:
        >>> gamma_cdf(np.array([0.5, 1.0, 4.0]), shape=2.0, rate=1.5)
        array([0.1734, 0.4422, 0.9826])
    """
    return psc.special.gammainc(shape, rate * np.maximum(x, 0))


def gamma_survival(
    x: Float["*s"], shape: Float["*p"] | float, rate: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The probability of more than x, with relative accuracy where it is small.

    Examples:
        >>> gamma_survival(np.array([1.0, 4.0, 100.0]), shape=2.0)
        array([7.3576e-01, 9.1578e-02, 3.7573e-42])
    """
    return psc.special.gammaincc(shape, rate * np.maximum(x, 0))


def inverse_gamma_log_density(
    x: Float["*s"], shape: Float["*p"] | float, scale: Float["*q"] | float = 1.0
) -> Float["*r"]:
    """The log-density of `scale / y`, where y is gamma with this shape and rate 1.

    Examples:
        >>> inverse_gamma_log_density(np.array([0.5, 1.0, 4.0]), shape=2.0)
        array([ 0.0794, -1.    , -4.4089])
    """
    outside = x <= 0
    positive = np.where(outside, 1, x)
    log_density = log_poisson_weight(shape, scale / positive) + np.log(shape) - np.log(positive)
    return np.where(outside, -np.inf, log_density)


def beta_log_density(x: Float["*s"], a: Float["*p"] | float, b: Float["*q"] | float) -> Float["*r"]:
    """The log-density of the beta distribution; exact for large parameters, too.

    Examples:
        >>> beta_log_density(np.array([0.2, 0.5, 0.8]), 2.0, 5.0)
        array([ 0.8992, -0.0645, -3.2597])
    """
    outside = (x < 0) | (x > 1)
    return np.where(outside, -np.inf, log_beta_weight(a - 1, b - 1, np.where(outside, 0.5, x)))


def beta_cdf(x: Float["*s"], a: Float["*p"] | float, b: Float["*q"] | float) -> Float["*r"]:
    """The probability of less than x.

    Examples:
        >>> beta_cdf(np.array([0.2, 0.5, 0.8]), 2.0, 5.0)
        array([0.3446, 0.8906, 0.9984])
    """
    return psc.special.betainc(a, b, np.clip(x, 0, 1))


def beta_survival(x: Float["*s"], a: Float["*p"] | float, b: Float["*q"] | float) -> Float["*r"]:
    """The probability of more than x, with relative accuracy where it is small.

    Examples:
        >>> beta_survival(np.array([0.2, 0.5, 0.8]), 2.0, 5.0)
        array([0.6554, 0.1094, 0.0016])
    """
    return psc.special.betaincc(a, b, np.clip(x, 0, 1))


def log_poisson_weight(x: Float["*s"] | float, mean: Float["*p"] | float) -> Float["*r"]:
    """`x * log(mean) - mean - gammaln(x + 1)` for x > -1, without its cancellation.

    From x = 16 on by the deviance and Stirling's series, as in Loader, "Fast and accurate
    computation of binomial probabilities" (2000).

    Examples:
        >>> log_poisson_weight(np.array([0.0, 3.0, 1e6]), np.array([1.0, 3.0, 1e6]))
        array([-1.    , -1.4959, -7.8267])
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
    """`k * log(x) + m * log(1 - x) - betaln(k + 1, m + 1)` for k, m > -1, without cancellation.

    Examples:
        >>> log_beta_weight(np.array([1.0, 1e6]), np.array([4.0, 1e6]), np.array([0.2, 0.5]))
        array([0.8992, 7.0285])
    """
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
