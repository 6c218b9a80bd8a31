"""Distributions of whole numbers and multivariate ones: logarithms of probabilities.

The functions of numbers are for kernels: parameters of any shapes that broadcast, in one dtype,
which is that of the result. Impossible values have the logarithm -inf. Samples are drawn by
`psc.random`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float, Integer
from pscdsl.stdlib.distributions import log_beta_weight, log_poisson_weight


def bernoulli_log_mass(k: Integer["*s"], probability: Float["*p"] | float) -> Float["*r"]:
    """The log-probability of a number that is 1 with this probability, else 0.

    By log-odds it is `-logistic_loss(logits, labels)` of `pscdsl.stdlib.losses`.

    Examples:
        >>> bernoulli_log_mass(np.array([0, 1, 1]), 0.8)
        array([-1.6094, -0.2231, -0.2231])
    """
    number = _like(k, probability)
    outside = (k < 0) | (k > 1)
    log_success = psc.special.xlogy(number, probability)
    return np.where(outside, -np.inf, log_success + psc.special.xlog1py(1 - number, -probability))


def binomial_log_mass(
    k: Integer["*s"], n: Integer["*n"] | int, probability: Float["*p"] | float
) -> Float["*r"]:
    """The log-probability of k successes in n trials; exact for large n, too.

    Examples:
        >>> binomial_log_mass(np.arange(4), 3, 0.5)
        array([-2.0794, -0.9808, -0.9808, -2.0794])
    """
    outside = (k < 0) | (k > n)
    possible = np.where(outside, 0, k)
    ones, zeros = _like(possible, probability), _like(n - possible, probability)
    log_mass = log_beta_weight(ones, zeros, probability) - np.log(ones + zeros + 1)
    return np.where(outside, -np.inf, log_mass)


def binomial_cdf(
    k: Integer["*s"], n: Integer["*n"] | int, probability: Float["*p"] | float
) -> Float["*r"]:
    """The probability of at most k.

    Examples:
        >>> binomial_cdf(np.arange(4), 3, 0.5)
        array([0.125, 0.5  , 0.875, 1.   ])
    """
    below = np.clip(k, 0, n - 1)
    ones, zeros = _like(below + 1, probability), _like(n - below, probability)
    cdf = psc.special.betaincc(ones, zeros, probability)
    return np.where(k < 0, 0, np.where(k >= n, 1, cdf))


def negative_binomial_log_mass(
    k: Integer["*s"], count: Float["*n"] | float, probability: Float["*p"] | float
) -> Float["*r"]:
    """The log-probability of k failures before `count` successes; `count` may be any number > 0.

    `probability` is that of a success.

    Examples:
        >>> negative_binomial_log_mass(np.arange(4), 2.0, 0.5)
        array([-1.3863, -1.3863, -1.674 , -2.0794])
    """
    outside = k < 0
    number = _like(np.where(outside, 0, k), probability)
    ratio = np.log(count / (count + number))
    log_mass = log_beta_weight(count, number, probability) + ratio - np.log(count + number + 1)
    return np.where(outside, -np.inf, log_mass)


def geometric_log_mass(k: Integer["*s"], probability: Float["*p"] | float) -> Float["*r"]:
    """The log-probability that trial k, counted from 1, is the first to succeed.

    Examples:
        >>> geometric_log_mass(np.array([1, 2, 3]), 0.5)
        array([-0.6931, -1.3863, -2.0794])
    """
    number = _like(k, probability)
    log_mass = psc.special.xlog1py(number - 1, -probability) + np.log(probability)
    return np.where(k < 1, -np.inf, log_mass)


def poisson_log_mass(k: Integer["*s"], mean: Float["*p"] | float) -> Float["*r"]:
    """The log-probability of k independent events, with `mean` events on average (Poisson 1837).

    Examples:
        >>> poisson_log_mass(np.arange(4), 2.0)
        array([-2.    , -1.3069, -1.3069, -1.7123])
    """
    outside = k < 0
    log_mass = log_poisson_weight(_like(np.where(outside, 0, k), mean), mean)
    return np.where(outside, -np.inf, log_mass)


def poisson_cdf(k: Integer["*s"], mean: Float["*p"] | float) -> Float["*r"]:
    """The probability of at most k.

    Examples:
        >>> poisson_cdf(np.arange(4), 2.0)
        array([0.1353, 0.406 , 0.6767, 0.8571])
    """
    cdf = psc.special.gammaincc(_like(np.maximum(k, 0), mean) + 1, mean)
    return np.where(k < 0, 0, cdf)


def poisson_survival(k: Integer["*s"], mean: Float["*p"] | float) -> Float["*r"]:
    """The probability of more than k, with relative accuracy where it is small.

    Examples:
        >>> poisson_survival(np.array([0, 5, 20]), 2.0)
        array([8.6466e-01, 1.6564e-02, 6.1081e-15])
    """
    survival = psc.special.gammainc(_like(np.maximum(k, 0), mean) + 1, mean)
    return np.where(k < 0, 1, survival)


@psc.kernel
def categorical_log_mass(
    k: Integer["*batch"], log_probabilities: Float["*batch n"]
) -> Float["*batch"]:
    """The log-probability of a class, given the log-probabilities of all classes (last axis).

    Numbers below 0 or above n - 1 are no class and have -inf.

    Examples:
        >>> log_probabilities = np.log(np.array([0.7, 0.2, 0.1]))
        >>> categorical_log_mass(np.array(2), log_probabilities)
        pscdsl.Array(-2.3026, dtype=float64)

    Cost: 9*batch flops.
    """
    n = log_probabilities.shape[-1]
    place = np.clip(k, 0, n - 1)
    log_mass = np.take_along_axis(log_probabilities, place[..., None], axis=-1)[..., 0]
    return np.where((k < 0) | (k >= n), -np.inf, log_mass)


@psc.kernel
def multinomial_log_mass(counts: Integer["*batch n"], probabilities: Float["n"]) -> Float["*batch"]:
    """The log-probability of the counts of n classes, in as many trials as the counts sum to.

    Examples:
        >>> multinomial_log_mass(np.array([[2, 0], [1, 1]]), np.array([0.5, 0.5]))
        pscdsl.Array([-1.3863, -0.6931], dtype=float64)

    Cost: 172*batch*n + 169*batch flops.
    """
    numbers = counts.astype(probabilities.dtype)
    total = numbers.sum(axis=-1)
    # Independent Poisson numbers of the same means, given their sum.
    means = total[..., None] * probabilities
    found = log_poisson_weight(numbers, means).sum(axis=-1) - log_poisson_weight(total, total)
    return np.where((counts < 0).any(axis=-1), -np.inf, found)


def _like(k: Any, parameter: Any) -> Any:
    """Whole numbers as numbers of the dtype of a parameter."""
    return np.asarray(k).astype(np.asarray(parameter).dtype)
