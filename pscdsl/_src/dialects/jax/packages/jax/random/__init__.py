"""The names of `jax.random`; the numbers are those that JAX draws."""

from jax.random._gamma import beta, chisquare, dirichlet, f, gamma, loggamma, poisson, t
from jax.random._places import categorical, choice, permutation, randint
from jax.random._uniform import (
    bernoulli,
    bits,
    cauchy,
    exponential,
    geometric,
    gumbel,
    laplace,
    logistic,
    lognormal,
    multivariate_normal,
    normal,
    pareto,
    rademacher,
    rayleigh,
    triangular,
    truncated_normal,
    uniform,
    weibull_min,
)
from pscdsl.random import fold_in, key, split

PRNGKey = key


def clone(key):
    """Return the key."""
    return key
