"""The posterior of logistic regression: by Markov chains, and by Laplace's approximation."""

# pyright: standard, reportMissingImports=false

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import norm
from jaxtyping import Bool, Float, Float64, Int, Key, PyTree, jaxtyped
from typeguard import typechecked

Density = Callable[[Float[Array, "d"]], tuple[Float[Array, ""], Float[Array, "d"]]]
"""The log-density of a vector, and its gradient."""


class Samples(NamedTuple):
    """The positions of a chain after each step."""

    positions: PyTree[Float[Array, "..."]]
    log_densities: Float[Array, "t"]
    acceptance: Float[Array, "t"]


class Tuned(NamedTuple):
    """What is found out by warming up."""

    position: PyTree[Float[Array, "..."]]
    step_size: Float[Array, ""]
    variance: PyTree[Float[Array, "..."]]


class Point(NamedTuple):
    """A position, as a vector, with its momentum."""

    position: Float[Array, "d"]
    momentum: Float[Array, "d"]
    slope: Float[Array, "d"]
    log_density: Float[Array, ""]


class Averaging(NamedTuple):
    """Where dual averaging stands."""

    count: Float[Array, ""]
    error: Float[Array, ""]
    origin: Float[Array, ""]
    log_step: Float[Array, ""]
    log_average: Float[Array, ""]


class Spread(NamedTuple):
    """Count, mean and sum of squared differences from it, of positions so far."""

    count: Float[Array, ""]
    mean: Float[Array, "d"]
    square: Float[Array, "d"]


class WarmUp(NamedTuple):
    """Where warming up stands."""

    at: Point
    averaging: Averaging
    spread: Spread
    variance: Float[Array, "d"]


@jaxtyped(typechecker=typechecked)
def hamiltonian(
    log_density: Callable,
    start: PyTree[Float[Array, "..."]],
    key: Key[Array, ""],
    steps: int,
    step_size: Float[Array, ""],
    variance: PyTree[Float[Array, "..."]],
    moves: int = 16,
) -> Samples:
    """Hamiltonian Monte Carlo (Duane et al. 1987; Neal 2011)."""
    vector, shaped = ravel_pytree(start)
    inverse_mass, _ = ravel_pytree(variance)
    density = jax.value_and_grad(lambda position: log_density(shaped(position)))

    def step(
        here: Point, key: Key[Array, ""]
    ) -> tuple[Point, tuple[Float[Array, "d"], Float[Array, ""], Float[Array, ""]]]:
        at, acceptance = hamiltonian_step(density, here, key, step_size, inverse_mass, moves)
        return at, (at.position, at.log_density, acceptance)

    _, (positions, densities, acceptance) = jax.lax.scan(
        step, at_rest(density, vector), jax.random.split(key, steps)
    )
    return Samples(jax.vmap(shaped)(positions), densities, acceptance)


@jaxtyped(typechecker=typechecked)
def warm_up(
    log_density: Callable,
    start: PyTree[Float[Array, "..."]],
    key: Key[Array, ""],
    steps: int,
    step_size: float = 0.1,
    moves: int = 16,
    target: float = 0.8,
) -> Tuned:
    """Steps that find a step size and variances; their positions are dropped."""
    vector, shaped = ravel_pytree(start)
    density = jax.value_and_grad(lambda position: log_density(shaped(position)))
    quarter = steps // 4

    def step(state: WarmUp, row: tuple[Int[Array, ""], Key[Array, ""]]) -> tuple[WarmUp, None]:
        i, key = row
        size = jnp.exp(state.averaging.log_step)
        at, acceptance = hamiltonian_step(density, state.at, key, size, state.variance, moves)
        averaging = averaged(state.averaging, target - acceptance)
        seen = spread_with(state.spread, at.position)
        spread = chosen((i >= quarter) & (i < steps - quarter), seen, state.spread)

        change = i == steps - quarter - 1
        share = spread.count / (spread.count + 5)
        new = share * spread.square / jnp.maximum(spread.count - 1, 1) + (1 - share) * 1e-3
        # In units of deviations, what fits the smallest of them is longer by its inverse.
        again = averaging_from(jnp.exp(averaging.log_average) / jnp.sqrt(new.min()))
        averaging = chosen(change, again, averaging)
        return WarmUp(at, averaging, spread, jnp.where(change, new, state.variance)), None

    one = jnp.ones_like(vector)
    nothing = Spread(jnp.zeros_like(one[0]), jnp.zeros_like(one), jnp.zeros_like(one))
    begin = WarmUp(at_rest(density, vector), averaging_from(one[0] * step_size), nothing, one)
    rows = jnp.arange(steps), jax.random.split(key, steps)
    found, _ = jax.lax.scan(step, begin, rows)
    size = jnp.exp(found.averaging.log_average)
    return Tuned(shaped(found.at.position), size, shaped(found.variance))


@jaxtyped(typechecker=typechecked)
def leapfrog(
    density: Callable,
    start: Point,
    step_size: Float[Array, ""],
    inverse_mass: Float[Array, "d"],
    moves: Int[Array, ""],
) -> Point:
    """Follow the motion in the potential `-log_density`, by so many steps of order 2."""

    def move(_: Int[Array, ""], at: Point) -> Point:
        momentum = at.momentum + step_size / 2 * at.slope
        position = at.position + step_size * inverse_mass * momentum
        value, slope = density(position)
        return Point(position, momentum + step_size / 2 * slope, slope, value)

    return jax.lax.fori_loop(0, moves, move, start)


@jaxtyped(typechecker=typechecked)
def energy(at: Point, inverse_mass: Float[Array, "d"]) -> Float[Array, ""]:
    """The kinetic energy and the potential one, which a trajectory keeps."""
    return (inverse_mass * at.momentum * at.momentum).sum() / 2 - at.log_density


@jaxtyped(typechecker=typechecked)
def hamiltonian_step(
    density: Callable,
    here: Point,
    key: Key[Array, ""],
    step_size: Float[Array, ""],
    inverse_mass: Float[Array, "d"],
    moves: int,
) -> tuple[Point, Float[Array, ""]]:
    """One step of Hamiltonian Monte Carlo, and how probable it was to be taken."""
    pushes, counts, chances = jax.random.split(key, 3)
    normal = jax.random.normal(pushes, here.position.shape, here.position.dtype)
    start = here._replace(momentum=normal / jnp.sqrt(inverse_mass))
    count = jax.random.randint(counts, (), 1, moves + 1)
    there = leapfrog(density, start, step_size, inverse_mass, count)
    difference = energy(start, inverse_mass) - energy(there, inverse_mass)
    chance = jnp.exp(jnp.where(jnp.isnan(difference), -jnp.inf, jnp.minimum(difference, 0)))
    taken = jax.random.uniform(chances, (), chance.dtype) < chance
    return chosen(taken, there, start), chance


@jaxtyped(typechecker=typechecked)
def at_rest(density: Callable, position: Float[Array, "d"]) -> Point:
    """A position without momentum."""
    value, slope = density(position)
    return Point(position, jnp.zeros_like(position), slope, value)


def chosen(which: Bool[Array, ""], one: Any, other: Any) -> Any:
    """One tree or the other."""
    return jax.tree.map(lambda x, y: jnp.where(which, x, y), one, other)


@jaxtyped(typechecker=typechecked)
def averaging_from(size: Float[Array, ""]) -> Averaging:
    """Dual averaging that starts with this step size."""
    zero, log_size = jnp.zeros_like(size), jnp.log(size)
    return Averaging(zero, zero, log_size + jnp.log(10), log_size, log_size)


@jaxtyped(typechecker=typechecked)
def averaged(state: Averaging, error: Float[Array, ""]) -> Averaging:
    """One step of dual averaging, with the constants of Hoffman and Gelman."""
    count = state.count + 1
    share = 1 / (count + 10)
    mean = (1 - share) * state.error + share * error
    log_step = state.origin - jnp.sqrt(count) / 0.05 * mean
    weight = count**-0.75
    log_average = weight * log_step + (1 - weight) * state.log_average
    return Averaging(count, mean, state.origin, log_step, log_average)


@jaxtyped(typechecker=typechecked)
def spread_with(spread: Spread, position: Float[Array, "d"]) -> Spread:
    """One more position (Welford 1962)."""
    count = spread.count + 1
    difference = position - spread.mean
    mean = spread.mean + difference / count
    return Spread(count, mean, spread.square + difference * (position - mean))


INTERCEPT_SCALE = 10.0


class Weights(NamedTuple):
    """A linear score of measurements."""

    slopes: Float64[Array, "d"]
    intercept: Float64[Array, ""]


class Draws(NamedTuple):
    """What one chain drew."""

    slopes: Float64[Array, "t d"]
    intercept: Float64[Array, "t"]
    acceptance: Float64[Array, ""]
    step_size: Float64[Array, ""]


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


@partial(jax.jit, static_argnames=("warming", "steps"))
@jaxtyped(typechecker=typechecked)
def chain(
    key: Key[Array, ""],
    start: Weights,
    x: Float64[Array, "n d"],
    y: Float64[Array, "n"],
    warming: int,
    steps: int,
) -> Draws:
    """One Markov chain, after it has found its step size and the variances of the weights."""
    assert warming >= 4
    assert steps >= 1

    def density(w: Weights) -> Float64[Array, ""]:
        return log_posterior(w, x, y)

    first, second = jax.random.split(key)
    tuned = warm_up(density, start, first, warming)
    found = hamiltonian(density, tuned.position, second, steps, tuned.step_size, tuned.variance)
    at = found.positions
    return Draws(at.slopes, at.intercept, found.acceptance.mean(), tuned.step_size)


@partial(jax.jit, static_argnames=("warming", "steps"))
def many_chains(
    keys: Key[Array, "k"],
    starts: Weights,
    x: Float64[Array, "n d"],
    y: Float64[Array, "n"],
    warming: int,
    steps: int,
) -> Draws:
    """Several at once, from keys and starts along the first axis."""

    def one(key: Key[Array, ""], start: Weights) -> Draws:
        return chain(key, start, x, y, warming, steps)

    return jax.vmap(one)(keys, starts)


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
