"""A Kalman filter and smoother, and noise levels learnt by Newton's method through the filter."""

# pyright: standard, reportMissingImports=false

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float, Float64, jaxtyped
from typeguard import typechecked


class Model(NamedTuple):
    """A model with s numbers as its state and o as an observation; all in the same dtype."""

    transition: Float[Array, "s s"]
    transition_noise: Float[Array, "s s"]
    """The covariance of what is added in each step."""
    emission: Float[Array, "o s"]
    emission_noise: Float[Array, "o o"]
    """The covariance of what is added to each observation: positive definite."""
    start_mean: Float[Array, "s"]
    start_covariance: Float[Array, "s s"]
    """Of the state at the first time, before anything is observed."""


class Gaussian(NamedTuple):
    """A normal distribution of states."""

    mean: Float[Array, "s"]
    covariance: Float[Array, "s s"]


class Gaussians(NamedTuple):
    """A normal distribution of states at each time."""

    mean: Float[Array, "t s"]
    covariance: Float[Array, "t s s"]


class Filtered(NamedTuple):
    """What is known of the states as observations come in."""

    mean: Float[Array, "t s"]
    """Given the observations up to each time."""
    covariance: Float[Array, "t s s"]
    log_densities: Float[Array, "t"]
    """Of the observation at each time, given those before; they sum up to the log-likelihood."""


@jax.jit
@jaxtyped(typechecker=typechecked)
def predict(p: Model, state: Gaussian) -> Gaussian:
    """The state one step later."""
    covariance = p.transition @ state.covariance @ p.transition.T + p.transition_noise
    return Gaussian(p.transition @ state.mean, symmetric(covariance))


@jax.jit
@jaxtyped(typechecker=typechecked)
def update(
    p: Model, state: Gaussian, observation: Float[Array, "o"]
) -> tuple[Gaussian, Float[Array, ""]]:
    """The state given an observation of it, and the log-density of the observation."""
    emission, noise = emission_of(p, observation)
    missing = jnp.isnan(observation)
    difference = jnp.where(missing, 0, observation) - emission @ state.mean

    root = jnp.linalg.cholesky(emission @ state.covariance @ emission.T + noise)
    scaled = solve_triangular(root, emission @ state.covariance, lower=True)
    gain = solve_triangular(root, scaled, lower=True, trans=1).T
    standard = solve_triangular(root, difference, lower=True)

    rest = jnp.eye(p.transition.shape[0]) - gain @ emission
    covariance = rest @ state.covariance @ rest.T + gain @ noise @ gain.T
    constant = jnp.where(missing, 0, jnp.log(2 * jnp.pi) / 2 + jnp.log(jnp.diagonal(root)))
    log_density = -(standard @ standard) / 2 - constant.sum()
    return Gaussian(state.mean + gain @ difference, symmetric(covariance)), log_density


@jax.jit
@jaxtyped(typechecker=typechecked)
def emission_of(
    p: Model, observation: Float[Array, "o"]
) -> tuple[Float[Array, "o s"], Float[Array, "o o"]]:
    """How an observation depends on the state, and the covariance of its noise."""
    missing = jnp.isnan(observation)
    noise = jnp.where(missing[:, None] | missing, jnp.eye(missing.shape[0]), p.emission_noise)
    return jnp.where(missing[:, None], 0, p.emission), noise


@jax.jit
@jaxtyped(typechecker=typechecked)
def kalman_filter(p: Model, observations: Float[Array, "t o"]) -> Filtered:
    """The states given the observations so far (Kalman 1960)."""

    def step(
        ahead: Gaussian, observation: Float[Array, "o"]
    ) -> tuple[Gaussian, tuple[Gaussian, Float[Array, ""]]]:
        state, log_density = update(p, ahead, observation)
        return predict(p, state), (state, log_density)

    start = Gaussian(p.start_mean, p.start_covariance)
    _, (states, log_densities) = jax.lax.scan(step, start, observations)
    return Filtered(states.mean, states.covariance, log_densities)


@jax.jit
@jaxtyped(typechecker=typechecked)
def log_likelihood(p: Model, observations: Float[Array, "t o"]) -> Float[Array, ""]:
    """The log-density of all observations; differentiate it to fit a model."""
    return kalman_filter(p, observations).log_densities.sum()


@jax.jit
@jaxtyped(typechecker=typechecked)
def smooth(p: Model, observations: Float[Array, "t o"]) -> Gaussians:
    """The states given all observations (Rauch, Tung, Striebel 1965)."""
    found = kalman_filter(p, observations)

    def step(later: Gaussian, filtered: Gaussian) -> tuple[Gaussian, Gaussian]:
        gain = smoother_gain(p, filtered.covariance)
        mean = filtered.mean + gain @ (later.mean - p.transition @ filtered.mean)
        rest = jnp.eye(p.transition.shape[0]) - gain @ p.transition
        spread = rest @ filtered.covariance @ rest.T
        covariance = spread + gain @ (later.covariance + p.transition_noise) @ gain.T
        state = Gaussian(mean, symmetric(covariance))
        return state, state

    last = Gaussian(found.mean[-1], found.covariance[-1])
    filtered = Gaussian(found.mean[:-1], found.covariance[:-1])
    _, before = jax.lax.scan(step, last, filtered, reverse=True)
    mean = jnp.concatenate([before.mean, last.mean[None]])
    covariance = jnp.concatenate([before.covariance, last.covariance[None]])
    return Gaussians(mean, covariance)


@jax.jit
@jaxtyped(typechecker=typechecked)
def smoother_gain(p: Model, covariance: Float[Array, "s s"]) -> Float[Array, "s s"]:
    """What a state with this covariance gains from knowing the next one."""
    ahead = p.transition @ covariance @ p.transition.T + p.transition_noise
    root = jnp.linalg.cholesky(symmetric(ahead))
    scaled = solve_triangular(root, p.transition @ covariance, lower=True)
    return solve_triangular(root, scaled, lower=True, trans=1).T


@jaxtyped(typechecker=typechecked)
def symmetric(matrix: Float[Array, "*batch s s"]) -> Float[Array, "*batch s s"]:
    """The symmetric part of a matrix."""
    return (matrix + matrix.mT) / 2


@jax.jit
@jaxtyped(typechecker=typechecked)
def constant_velocity(levels: Float64[Array, "2"], dt: Float64[Array, ""]) -> Model:
    """Positions and velocities in the plane, given the logarithms of two standard deviations."""
    sensor, acceleration = jnp.exp(2 * levels[0]), jnp.exp(2 * levels[1])
    one, nothing = jnp.eye(2), jnp.zeros((2, 2))
    transition = jnp.concatenate(
        [jnp.concatenate([one, dt * one], axis=1), jnp.concatenate([nothing, one], axis=1)]
    )
    corner, edge = dt**3 / 3 * one, dt**2 / 2 * one
    noise = jnp.concatenate(
        [jnp.concatenate([corner, edge], axis=1), jnp.concatenate([edge, dt * one], axis=1)]
    )
    emission = jnp.concatenate([one, nothing], axis=1)
    return Model(
        transition=transition,
        transition_noise=acceleration * noise,
        emission=emission,
        emission_noise=sensor * one,
        start_mean=jnp.zeros(4),
        start_covariance=10 * jnp.eye(4),
    )


@jax.jit
@jaxtyped(typechecker=typechecked)
def fit(
    start: Float64[Array, "2"], seen: Float64[Array, "t 2"], dt: Float64[Array, ""]
) -> tuple[Float64[Array, "2"], Float64[Array, "8"]]:
    """The levels of most likelihood, by Newton's method, and the likelihood before each step."""

    def objective(levels: Float64[Array, "2"]) -> Float64[Array, ""]:
        return log_likelihood(constant_velocity(levels, dt), seen)

    def slope_and_value(
        levels: Float64[Array, "2"],
    ) -> tuple[Float64[Array, "2"], tuple[Float64[Array, "2"], Float64[Array, ""]]]:
        value, slope = jax.value_and_grad(objective)(levels)
        return slope, (slope, value)

    def step(
        levels: Float64[Array, "2"], _: None
    ) -> tuple[Float64[Array, "2"], Float64[Array, ""]]:
        curvature, (slope, value) = jax.jacfwd(slope_and_value, has_aux=True)(levels)
        # Uphill also where the likelihood is not concave, and by at most a factor of e.
        values, vectors = jnp.linalg.eigh(curvature)
        move = vectors @ ((slope @ vectors) / jnp.maximum(jnp.abs(values), 1e-3))
        return levels + jnp.clip(move, -1, 1), value

    return jax.lax.scan(step, start, length=8)
