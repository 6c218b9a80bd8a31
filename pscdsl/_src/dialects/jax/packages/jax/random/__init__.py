"""The names of `jax.random`; the numbers are those that JAX draws."""

import numpy as np

import pscdsl.random as draws
from pscdsl.random import fold_in, key, split

PRNGKey = key


def _dtype(dtype, default=float):
    """Return a dtype as arrays have it."""
    return np.zeros((), default if dtype is None else dtype).dtype


def clone(key):
    """Return the key."""
    return key


def bits(key, shape=(), dtype=None):
    """Draw random bits."""
    return draws.bits(key, shape, dtype)


def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0):
    """Draw numbers between two bounds."""
    return draws.uniform(key, shape, _dtype(dtype), minval, maxval)


def normal(key, shape=(), dtype=None):
    """Draw standard normal numbers."""
    return draws.normal(key, shape, _dtype(dtype))


def randint(key, shape, minval, maxval, dtype=None):
    """Draw integers below a bound."""
    return draws.randint(key, shape, minval, maxval, _dtype(dtype, int))


def bernoulli(key, p=0.5, shape=None):
    """Draw truth values."""
    return draws.bernoulli(key, p, shape)


def rademacher(key, shape=(), dtype=None):
    """Draw -1 and 1."""
    return draws.rademacher(key, shape, _dtype(dtype, int))


def truncated_normal(key, lower, upper, shape=None, dtype=None):
    """Draw normal numbers between two bounds."""
    return draws.truncated_normal(key, lower, upper, shape, _dtype(dtype))


def exponential(key, shape=(), dtype=None):
    """Draw from the exponential distribution."""
    return draws.exponential(key, shape, _dtype(dtype))


def laplace(key, shape=(), dtype=None):
    """Draw from the Laplace distribution."""
    return draws.laplace(key, shape, _dtype(dtype))


def logistic(key, shape=(), dtype=None):
    """Draw from the logistic distribution."""
    return draws.logistic(key, shape, _dtype(dtype))


def gumbel(key, shape=(), dtype=None, mode=None):
    """Draw from the Gumbel distribution."""
    return draws.gumbel(key, shape, _dtype(dtype))


def gamma(key, a, shape=None, dtype=None):
    """Draw from the gamma distribution."""
    return draws.gamma(key, a, shape, _dtype(dtype))


def loggamma(key, a, shape=None, dtype=None):
    """Draw logarithms of gamma variates."""
    return draws.loggamma(key, a, shape, _dtype(dtype))


def beta(key, a, b, shape=None, dtype=None):
    """Draw from the beta distribution."""
    return draws.beta(key, a, b, shape, _dtype(dtype))


def dirichlet(key, alpha, shape=None, dtype=None):
    """Draw from the Dirichlet distribution."""
    return draws.dirichlet(key, alpha, shape, _dtype(dtype))


def poisson(key, lam, shape=None, dtype=None):
    """Draw from the Poisson distribution."""
    return draws.poisson(key, lam, shape, _dtype(dtype, int))


def permutation(key, x, axis=0, independent=False):
    """Return the rows in another order."""
    return draws.permutation(key, x, axis, independent)


def choice(key, a, shape=(), replace=True, p=None, axis=0, mode=None):
    """Draw rows."""
    return draws.choice(key, a, shape, replace, p, axis)


def categorical(key, logits, axis=-1, shape=None, replace=True, mode=None):
    """Draw places by the logarithms of their probabilities, with replacement."""
    if not replace:
        return draws.categorical.without_replacement
    return draws.categorical(key, logits, axis, shape)
