"""The normal distribution."""

import numpy as np

from jax._checks import inexact as _inexact
from jax.scipy.special import log_ndtr as _log_ndtr
from jax.scipy.special import ndtr as _ndtr
from jax.scipy.special import ndtri as _ndtri

_TWO_PI = 6.283185307179586


def logpdf(x, loc=0, scale=1):
    """Return the logarithm of the density."""
    x, loc, scale = [_inexact(each) for each in (x, loc, scale)]
    variance = np.square(scale)  # as in JAX, a scale may be negative
    return -0.5 * (np.square(x - loc) / variance + np.log(_TWO_PI * variance))


def pdf(x, loc=0, scale=1):
    """Return the density."""
    return np.exp(logpdf(x, loc, scale))


def cdf(x, loc=0, scale=1):
    """Return the distribution function."""
    return _ndtr((x - loc) / scale)


def logcdf(x, loc=0, scale=1):
    """Return the logarithm of the distribution function."""
    return _log_ndtr((x - loc) / scale)


def sf(x, loc=0, scale=1):
    """Return the probability of a larger number."""
    return cdf(-x, -loc, scale)


def logsf(x, loc=0, scale=1):
    """Return the logarithm of the probability of a larger number."""
    return logcdf(-x, -loc, scale)


def ppf(q, loc=0, scale=1):
    """Return the inverse of the distribution function."""
    return _ndtri(q) * scale + loc


def isf(q, loc=0, scale=1):
    """Return the inverse of the probability of a larger number."""
    return ppf(1 - np.asarray(q), loc, scale)
