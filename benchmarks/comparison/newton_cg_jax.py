"""Minimisation by truncated Newton steps (Nocedal, Wright 2006, 7.1), on three problems."""

# pyright: standard, reportMissingImports=false

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.scipy.sparse.linalg import cg
from jax.scipy.special import logsumexp
from jaxtyping import Bool, Float, Float64, Int, Int32, PyTree, jaxtyped
from typeguard import typechecked

Vector: TypeAlias = Float[Array, "n"]
Scalar: TypeAlias = Float[Array, ""]


class Minimum(NamedTuple):
    """Where a loss is least, as far as was found."""

    params: PyTree[Float[Array, "..."]]
    """Where it is, a tree like the start."""
    value: Scalar
    """Of the loss there."""
    slope: Scalar
    """The length of the gradient there."""
    steps: Int32[Array, ""]
    products: Int32[Array, ""]
    """With the Hessian, in all steps together."""
    converged: Bool[Array, ""]
    """Whether the gradient is as short as the tolerance wants it."""


class _At(NamedTuple):
    x: Vector
    gradient: Vector
    steps: Int32[Array, ""]
    products: Int32[Array, ""]
    stuck: Bool[Array, ""]
    """Whether no length along the last direction made the loss smaller."""


class _Direction(NamedTuple):
    """Where conjugate gradients stand in the quadratic model of a loss."""

    z: Vector
    residual: Vector
    along: Vector
    bent: Bool[Array, ""]
    """Whether the model curves downwards along the last direction."""
    steps: Int32[Array, ""]


@jaxtyped(typechecker=typechecked)
def newton_cg(
    loss: Callable[[Any], Scalar],
    start: PyTree[Float[Array, "..."]],
    tolerance: float = 1e-6,
    max_steps: int = 50,
    max_products: int = 200,
    line_search: bool = True,
) -> Minimum:
    """A local minimum of a twice differentiable loss over a vector or tree of one dtype."""
    flat, restored = ravel_pytree(start)

    def on_vectors(x: Vector) -> Scalar:
        return loss(restored(x))

    def solve(
        gradient: Callable[[Vector], Vector], x: Vector
    ) -> tuple[Vector, tuple[Int32[Array, ""], Int32[Array, ""]]]:
        def unfinished(at: _At) -> Bool[Array, ""]:
            far = at.gradient @ at.gradient > tolerance * tolerance
            return far & ~at.stuck & (at.steps < max_steps)

        def step(at: _At) -> _At:
            _, product = jax.linearize(gradient, at.x)
            found = _direction(product, at.gradient, max_products)
            length = jnp.ones_like(at.gradient[0])
            if line_search:
                length = _length(on_vectors, at.x, at.gradient, found.z)
            x = at.x + length * found.z
            return _At(x, gradient(x), at.steps + 1, at.products + found.steps, length == 0)

        first = _At(x, gradient(x), jnp.int32(0), jnp.int32(0), jnp.bool(False))
        found = jax.lax.while_loop(unfinished, step, first)
        return found.x, (found.steps, found.products)

    def tangent(hessian: Callable[[Vector], Vector], y: Vector) -> Vector:
        return cg(hessian, y, tol=tolerance, maxiter=10 * max_products)[0]

    x, (steps, products) = jax.lax.custom_root(
        jax.grad(on_vectors), flat, solve, tangent, has_aux=True
    )
    value, slope = jax.value_and_grad(on_vectors)(x)
    size = jnp.linalg.norm(slope)
    return Minimum(restored(x), value, size, steps, products, size <= tolerance)


@jaxtyped(typechecker=typechecked)
def _direction(product: Callable[[Vector], Vector], gradient: Vector, most: int) -> _Direction:
    """Towards the minimum of the quadratic model, until that curves downwards."""
    slope = jnp.linalg.norm(gradient)
    enough = jnp.minimum(0.5, jnp.sqrt(slope)) * slope

    def unfinished(at: _Direction) -> Bool[Array, ""]:
        far = at.residual @ at.residual > enough * enough
        return far & ~at.bent & (at.steps < most)

    def step(at: _Direction) -> _Direction:
        image = product(at.along)
        curvature = at.along @ image
        bent = curvature <= 0
        square = at.residual @ at.residual
        first = jnp.where(at.steps == 0, 1, 0)  # of a slope that curves downwards, all
        length = jnp.where(bent, first, square / jnp.where(bent, 1, curvature))
        residual = at.residual + length * image
        along = residual @ residual / square * at.along - residual
        return _Direction(at.z + length * at.along, residual, along, bent, at.steps + 1)

    start = _Direction(jnp.zeros_like(gradient), gradient, -gradient, jnp.bool(False), jnp.int32(0))
    return jax.lax.while_loop(unfinished, step, start)


@jaxtyped(typechecker=typechecked)
def _length(
    loss: Callable[[Vector], Scalar], x: Vector, gradient: Vector, direction: Vector
) -> Scalar:
    """The largest of 1, 1/2, 1/4, … with which the loss falls enough; 0 where none does."""
    here, slope = loss(x), gradient @ direction
    least = 4 * jnp.finfo(x.dtype).eps
    slack = least * jnp.abs(here)  # differences of losses below this are noise

    def too_far(length: Scalar) -> Bool[Array, ""]:
        fallen = loss(x + length * direction) <= here + 1e-4 * length * slope + slack
        return ~fallen & (length > least)

    found = jax.lax.while_loop(too_far, lambda length: length / 2, jnp.ones_like(here))
    return jnp.where(found > least, found, 0)


class HMM(NamedTuple):
    """Logarithms of probabilities; -inf for what cannot happen."""

    log_start: Float[Array, "s"]
    """Of the first state."""
    log_transition: Float[Array, "s s"]
    """Of the next state (last axis) given the current one."""
    log_emission: Float[Array, "s o"]
    """Of the observed symbol (last axis) given the state."""


@jax.jit
@jaxtyped(typechecker=typechecked)
def log_emissions(p: HMM, observations: Int[Array, "t"]) -> Float[Array, "t s"]:
    """The log-probability of each observation in each state; 0 where it is missing."""
    seen = observations >= 0
    return jnp.where(seen[:, None], p.log_emission.T[jnp.maximum(observations, 0)], 0)


@jax.jit
@jaxtyped(typechecker=typechecked)
def log_likelihood(p: HMM, observations: Int[Array, "t"]) -> Float[Array, ""]:
    """The log-probability of the observations, whatever the states were."""
    return logsumexp(forward(p, observations)[-1])


@jax.jit
@jaxtyped(typechecker=typechecked)
def forward(p: HMM, observations: Int[Array, "t"]) -> Float[Array, "t s"]:
    """Log-probabilities of the observations up to each time together with the state then."""
    emissions = log_emissions(p, observations)

    def step(
        message: Float[Array, "s"], emission: Float[Array, "s"]
    ) -> tuple[Float[Array, "s"], Float[Array, "s"]]:
        joint = message[:, None] + p.log_transition
        message = logsumexp(joint, axis=0) + emission
        return message, message

    first = p.log_start + emissions[0]
    _, rest = jax.lax.scan(step, first, emissions[1:])
    messages = jnp.concatenate([first[None], rest])
    return messages


class Fit(NamedTuple):
    """Where a loss is least, and what it took to find out."""

    x: Float64[Array, "d"]
    value: Float64[Array, ""]
    slope: Float64[Array, ""]
    """The length of the gradient."""
    steps: Int32[Array, ""]
    products: Int32[Array, ""]
    """Of a Hessian with a vector."""


class Chain(NamedTuple):
    """A hidden Markov model in numbers that need not add up to anything."""

    start: Float64[Array, "s"]
    transition: Float64[Array, "s s"]
    emission: Float64[Array, "s o"]


@jax.jit
@jaxtyped(typechecker=typechecked)
def quadratic(
    a: Float64[Array, "n n"], bs: Float64[Array, "k n"]
) -> tuple[Float64[Array, "k n"], Float64[Array, "k"], Int32[Array, "k"], Int32[Array, "k"]]:
    """Where `x @ a @ x / 2 - b @ x` is least, for each b."""

    def one(
        b: Float64[Array, "n"],
    ) -> tuple[Float64[Array, "n"], Float64[Array, ""], Int32[Array, ""], Int32[Array, ""]]:
        def loss(x: Float64[Array, "n"]) -> Float64[Array, ""]:
            return x @ (a @ x) / 2 - b @ x

        found = newton_cg(loss, jnp.zeros_like(b), 1e-5, 50, 1000)
        return found.params, found.slope, found.steps, found.products

    return jax.lax.map(one, bs)


@jax.jit
@jaxtyped(typechecker=typechecked)
def logistic_loss(
    w: Float64[Array, "d"],
    x: Float64[Array, "n d"],
    signs: Float64[Array, "n"],
    strength: Float64[Array, ""],
) -> Float64[Array, ""]:
    """The mean loss of the examples, labelled -1 and 1; the last weight is not penalised."""
    margins = signs * (x @ w)
    return jnp.logaddexp(0, -margins).mean() + strength * (w[:-1] @ w[:-1]) / 2


@jax.jit
@jaxtyped(typechecker=typechecked)
def logistic(
    x: Float64[Array, "n d"], signs: Float64[Array, "n"], strength: Float64[Array, ""]
) -> Fit:
    """The weights with which `logistic_loss` is least."""
    start = jnp.zeros(x.shape[1])
    found = newton_cg(lambda w: logistic_loss(w, x, signs, strength), start, 1e-10, 50, 200)
    return Fit(found.params, found.value, found.slope, found.steps, found.products)


@jax.jit
@jaxtyped(typechecker=typechecked)
def chain_loss(p: Chain, text: Int32[Array, "t"], strength: Float64[Array, ""]) -> Scalar:
    """How improbable a text is, in nats for each letter, and half the penalised squares."""
    model = HMM(
        jax.nn.log_softmax(p.start),
        jax.nn.log_softmax(p.transition, axis=1),
        jax.nn.log_softmax(p.emission, axis=1),
    )
    square = sum(jnp.vdot(each, each) for each in p)
    return strength * square / 2 - log_likelihood(model, text) / text.shape[0]


@jax.jit
@jaxtyped(typechecker=typechecked)
def chain(
    start: Chain, text: Int32[Array, "t"], strength: Float64[Array, ""]
) -> tuple[Chain, Float64[Array, ""], Float64[Array, ""], Int32[Array, ""], Int32[Array, ""]]:
    """The model with which `chain_loss` is least, near the start."""
    found = newton_cg(lambda p: chain_loss(p, text, strength), start, 1e-8, 100, 100)
    return found.params, found.value, found.slope, found.steps, found.products


@jax.jit
@jaxtyped(typechecker=typechecked)
def chain_slope(
    p: Chain, text: Int32[Array, "t"], strength: Float64[Array, ""]
) -> tuple[Float64[Array, ""], Chain]:
    """The loss and its gradient, for SciPy."""
    return jax.value_and_grad(chain_loss)(p, text, strength)
