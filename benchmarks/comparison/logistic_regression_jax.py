"""Logistic regression: scaling, minibatch gradient descent, and Newton's method by products."""

# pyright: standard, reportMissingImports=false

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.sparse.linalg import cg
from jaxtyping import Bool, Float32, Int32, jaxtyped
from typeguard import typechecked


class Scaling(NamedTuple):
    """What makes each measurement have mean 0 and deviation 1."""

    mean: Float32[Array, "d"]
    deviation: Float32[Array, "d"]


@jax.jit
@jaxtyped(typechecker=typechecked)
def fit_scaling(x: Float32[Array, "n d"]) -> Scaling:
    """The mean and the standard deviation of each column."""
    return Scaling(x.mean(axis=0), x.std(axis=0))


@jax.jit
@jaxtyped(typechecker=typechecked)
def features(scaling: Scaling, x: Float32[Array, "n d"]) -> Float32[Array, "n d+1"]:
    """The scaled measurements, and a column of ones, whose weight is the intercept."""
    scaled = (x - scaling.mean) / scaling.deviation
    ones = jnp.ones((x.shape[0], 1))
    return jnp.concatenate([scaled, ones], axis=1)


@jax.jit
@jaxtyped(typechecker=typechecked)
def penalties(w: Float32[Array, "d"], strength: Float32[Array, ""]) -> Float32[Array, "d"]:
    """The strength of regularisation for each weight; the intercept, the last, has none."""
    n = w.shape[0]
    return jnp.where(jnp.arange(n) < n - 1, strength, 0)


@jax.jit
@jaxtyped(typechecker=typechecked)
def loss(
    w: Float32[Array, "d"],
    x: Float32[Array, "n d"],
    y: Float32[Array, "n"],
    strength: Float32[Array, ""],
) -> Float32[Array, ""]:
    """The mean loss of the examples, and half the penalised squares of the weights."""
    score = x @ w
    losses = jnp.logaddexp(0, score) - y * score
    return losses.mean() + (penalties(w, strength) * w * w).sum() / 2


@jax.jit
@jaxtyped(typechecker=typechecked)
def gradient(
    w: Float32[Array, "d"],
    x: Float32[Array, "n d"],
    y: Float32[Array, "n"],
    strength: Float32[Array, ""],
) -> Float32[Array, "d"]:
    """The derivative of `loss` with respect to the weights."""
    return x.T @ (jax.nn.sigmoid(x @ w) - y) / x.shape[0] + penalties(w, strength) * w


@jax.jit
@jaxtyped(typechecker=typechecked)
def descend(
    w: Float32[Array, "d"],
    x: Float32[Array, "n d"],
    y: Float32[Array, "n"],
    batches: Int32[Array, "t b"],
    rate: Float32[Array, ""],
    strength: Float32[Array, ""],
) -> tuple[Float32[Array, "d"], Float32[Array, "t"]]:
    """One step of gradient descent for each batch of rows; also the loss after each step."""

    def step(
        w: Float32[Array, "d"], rows: Int32[Array, "b"]
    ) -> tuple[Float32[Array, "d"], Float32[Array, ""]]:
        w = w - rate * gradient(w, x[rows], y[rows], strength)
        return w, loss(w, x, y, strength)

    return jax.lax.scan(step, w, batches)


class Search(NamedTuple):
    """Where Newton's method stands."""

    w: Float32[Array, "d"]
    slope: Float32[Array, "d"]
    steps: Int32[Array, ""]


@jax.jit
@jaxtyped(typechecker=typechecked)
def newton(
    w: Float32[Array, "d"],
    x: Float32[Array, "n d"],
    y: Float32[Array, "n"],
    strength: Float32[Array, ""],
) -> Search:
    """Newton's method, until the gradient is tiny, for at most 20 steps."""

    def unfinished(at: Search) -> Bool[Array, ""]:
        return (jnp.abs(at.slope).max() > 1e-6) & (at.steps < 20)

    def step(at: Search) -> Search:
        p = jax.nn.sigmoid(x @ at.w)
        curvature = p * (1 - p) / x.shape[0]

        def hessian(v: Float32[Array, "d"]) -> Float32[Array, "d"]:
            return x.T @ (curvature * (x @ v)) + penalties(at.w, strength) * v

        w = at.w - cg(hessian, at.slope)[0]
        return Search(w, gradient(w, x, y, strength), at.steps + 1)

    start = Search(w, gradient(w, x, y, strength), jnp.int32(0))
    return jax.lax.while_loop(unfinished, step, start)


@jax.jit
@jaxtyped(typechecker=typechecked)
def predict(w: Float32[Array, "d"], x: Float32[Array, "n d"]) -> Bool[Array, "n"]:
    """Whether each example is more likely than not in class 1."""
    return x @ w > 0
