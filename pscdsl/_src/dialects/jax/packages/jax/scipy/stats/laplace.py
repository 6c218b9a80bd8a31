"""The Laplace distribution."""

import numpy as np


def logpdf(x, loc=0, scale=1):
    """Return the logarithm of the density."""
    return -(np.abs(x - loc) / scale + np.log(2.0 * scale))


def pdf(x, loc=0, scale=1):
    """Return the density."""
    return np.exp(logpdf(x, loc, scale))
