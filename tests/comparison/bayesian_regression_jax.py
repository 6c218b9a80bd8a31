"""The posterior of logistic regression, its Laplace approximation, and predictions by draws."""

# pyright: standard, reportMissingImports=false

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import norm
from jaxtyping import Float64, jaxtyped
from typeguard import typechecked

INTERCEPT_SCALE = 10.0


class Weights(NamedTuple):
    """A linear score of measurements."""

    slopes: Float64[Array, "d"]
    intercept: Float64[Array, ""]


@jax.jit
@jaxtyped(typechecker=typechecked)
def log_posterior(
    w: Weights, x: Float64[Array, "n d"], y: Float64[Array, "n"]
) -> Float64[Array, ""]:
    """The logarithm of the prior and the likelihood: standard normal slopes, a wide intercept."""
    prior = norm.logpdf(w.slopes).sum()
    prior = prior + norm.logpdf(w.intercept, 0.0, INTERCEPT_SCALE)
    score = x @ w.slopes + w.intercept
    return prior - (jnp.logaddexp(0, score) - y * score).sum()


@jax.jit
@jaxtyped(typechecker=typechecked)
def laplace(
    w: Weights, x: Float64[Array, "n d"], y: Float64[Array, "n"]
) -> tuple[Weights, Float64[Array, "d"]]:
    """The top of the posterior by Newton's method from w on, and the deviations of slopes there."""
    vector, weights = ravel_pytree(w)

    def density(v: Float64[Array, "k"]) -> Float64[Array, ""]:
        return log_posterior(weights(v), x, y)

    def step(v: Float64[Array, "k"], _: None) -> tuple[Float64[Array, "k"], None]:
        return v - jnp.linalg.solve(jax.hessian(density)(v), jax.grad(density)(v)), None

    top, _ = jax.lax.scan(step, vector, length=10)
    precision: Float64[Array, "k k"] = -jax.hessian(density)(top)
    variances = jnp.diagonal(jnp.linalg.inv(precision))
    return weights(top), jnp.sqrt(variances)[: w.slopes.shape[0]]


@jax.jit
@jaxtyped(typechecker=typechecked)
def predictions(
    slopes: Float64[Array, "s d"], intercept: Float64[Array, "s"], x: Float64[Array, "n d"]
) -> Float64[Array, "n"]:
    """The probability of class 1 by the mean over draws of weights."""
    return jax.nn.sigmoid(x @ slopes.T + intercept).mean(axis=1)
