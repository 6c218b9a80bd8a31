"""The normal distribution of vectors."""

import numpy as np
import scipy.linalg


def logpdf(x, mean, cov, allow_singular=None):
    """Return the logarithm of the density."""
    x, mean, cov = np.asarray(x), np.asarray(mean), np.asarray(cov)
    if not mean.ndim:
        return -0.5 * np.square(x - mean) / cov - 0.5 * (np.log(2 * np.pi) + np.log(cov))
    count = mean.shape[-1]
    if not cov.ndim:
        away = x - mean
        return -0.5 * np.sum(away * away, axis=-1) / cov - count / 2 * (
            np.log(2 * np.pi) + np.log(cov)
        )
    lower = np.linalg.cholesky(cov)
    away = np.swapaxes(np.atleast_2d(x - mean), -1, -2)
    scaled = scipy.linalg.solve_triangular(lower, away, lower=True)
    logs = np.sum(np.log(np.diagonal(lower, axis1=-1, axis2=-2)), axis=-1)
    found = -0.5 * np.sum(scaled * scaled, axis=-2) - count / 2 * np.log(2 * np.pi) - logs
    return np.reshape(found, np.shape(x)[:-1])


def pdf(x, mean, cov):
    """Return the density."""
    return np.exp(logpdf(x, mean, cov))
