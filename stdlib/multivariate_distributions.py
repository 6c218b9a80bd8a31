"""Distributions of vectors: logarithms of densities of one distribution, at many vectors."""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import Float


@psc.kernel
def multivariate_normal_log_density(
    x: Float["*batch d"], mean: Float["d"], root: Float["d d"]
) -> Float["*batch"]:
    """The log-density of the normal with covariance `root @ root.T`; `root` is lower triangular.

    `np.linalg.cholesky` finds it.  It wants more than 16 bits.

    Examples:
        >>> root = np.linalg.cholesky(np.array([[2.0, 0.5], [0.5, 1.0]]))
        >>> multivariate_normal_log_density(np.array([[0.0, 0.0], [1.0, -1.0]]), np.zeros(2), root)
        pscdsl.Array([-2.1177, -3.2605], dtype=float64)

    Cost: at most batch*d*d + 3*batch*d + 6*batch + 10*d flops.
    """
    assert np.finfo(x.dtype).bits >= 32
    square = _mahalanobis(x, mean, root)
    constant = np.log(np.abs(np.diagonal(root))).sum() + x.shape[-1] * np.log(2 * np.pi) / 2
    return -square / 2 - constant


@psc.kernel
def multivariate_student_t_log_density(
    x: Float["*batch d"], freedom: Float, location: Float["d"], root: Float["d d"]
) -> Float["*batch"]:
    """The log-density of Student's t with the shape matrix `root @ root.T`.

    `root` is lower triangular.  It wants more than 16 bits (Kotz, Nadarajah 2004).

    Examples:
        >>> multivariate_student_t_log_density(np.array([1.0, -1.0]), 3.0, np.zeros(2), np.eye(2))
        pscdsl.Array(-3.1149, dtype=float64)

    Cost: at most batch*d*d + 3*batch*d + 188*batch + 10*d flops.
    """
    assert np.finfo(x.dtype).bits >= 32
    d = x.shape[-1]
    square = _mahalanobis(x, location, root)
    constant = np.log(np.abs(np.diagonal(root))).sum() + d * np.log(np.pi * freedom) / 2
    gammas = psc.special.gammaln((freedom + d) / 2) - psc.special.gammaln(freedom / 2)
    return gammas - constant - (freedom + d) / 2 * np.log1p(square / freedom)


@psc.kernel
def dirichlet_log_density(x: Float["*batch d"], concentration: Float["d"]) -> Float["*batch"]:
    """The log-density of positive probabilities that sum to 1; the sum is not checked.

    Examples:
        >>> dirichlet_log_density(np.array([0.2, 0.3, 0.5]), np.array([1.0, 2.0, 3.0]))
        pscdsl.Array(1.5041, dtype=float64)

    Cost: 14*batch*d + 2*batch + 83*d + 81 flops.
    """
    outside = (x < 0).any(axis=-1)
    constant = psc.special.gammaln(concentration).sum() - psc.special.gammaln(concentration.sum())
    log_density = (
        psc.special.xlogy(concentration - 1, np.where(x < 0, 1, x)).sum(axis=-1) - constant
    )
    return np.where(outside, -np.inf, log_density)


def _mahalanobis(x: Float["*batch d"], mean: Float["d"], root: Float["d d"]) -> Float["*batch"]:
    """The square of the distance from the mean, in units of the spread."""
    columns = (x - mean).reshape(-1, x.shape[-1]).T
    standard = psc.triangular_solve(root, columns, lower=True)
    return (standard * standard).sum(axis=0).reshape(x.shape[:-1])
