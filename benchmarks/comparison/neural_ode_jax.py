"""A network that says how a pendulum accelerates, learnt through an adaptive solver."""

# pyright: standard, reportMissingImports=false

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.scipy.optimize import minimize
from jaxtyping import Bool, Float, Float64, Int32, jaxtyped
from typeguard import typechecked

NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)
ROWS = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
WEIGHTS = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
DENSE = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)


class Trajectory(NamedTuple):
    """What an adaptive method found."""

    states: Float[Array, "t n"]
    """One for each time; NaN from the first time on that was not reached."""
    reached: Bool[Array, ""]
    steps: Int32[Array, ""]
    rejected: Int32[Array, ""]


class At(NamedTuple):
    """Where an adaptive method stands."""

    time: Float[Array, ""]
    state: Float[Array, "n"]
    slope: Float[Array, "n"]
    length: Float[Array, ""]
    """What the next step will try; positive."""
    error: Float[Array, ""]
    """Of the last step that was taken, relative to what is tolerated."""
    refused: Bool[Array, ""]
    """Whether the last step tried was rejected."""
    steps: Int32[Array, ""]
    rejected: Int32[Array, ""]


Field = Callable[[Array, Array], Array]


@jaxtyped(typechecker=typechecked)
def dormand_prince(
    field: Field,
    start: Float[Array, "n"],
    times: Float[Array, "t"],
    rtol: float = 1e-6,
    atol: float = 1e-9,
    max_steps: int = 4000,
) -> Trajectory:
    """The states at all times, from that at the first, by steps as long as the tolerance admits.

    A scan and no while loop, so that it has a reverse derivative.
    """
    origin, end = times[0], jax.lax.stop_gradient(times[-1])
    direction = jnp.where(end < origin, -1.0, 1.0)
    slope = field(origin, start)
    length = first_length(field, origin, start, slope, end, rtol, atol)
    zero = jnp.int32(0)
    first = At(origin, start, slope, length, jnp.full_like(end, 1e-4), jnp.array(False), zero, zero)

    def unfinished(at: At) -> Bool[Array, ""]:
        possible = at.length > 10 * jnp.finfo(times.dtype).eps * jnp.abs(at.time)
        return (direction * (end - at.time) > 0) & possible

    def attempt(run: tuple[At, Float[Array, "t n"]]) -> tuple[At, Float[Array, "t n"]]:
        at, states = run
        left = direction * (end - at.time)
        last = 1.01 * at.length >= left  # the last step is not left with a bit to do
        width = jax.lax.stop_gradient(direction * jnp.where(last, left, at.length))
        slopes = [at.slope]
        for node, row in zip(NODES, ROWS, strict=True):
            slopes.append(field(at.time + node * width, at.state + width * mixed(row, slopes)))
        state = at.state + width * mixed(WEIGHTS, slopes)
        time = at.time + width
        time = jnp.where(last, time + jax.lax.stop_gradient(end - time), time)
        slopes.append(field(time, state))
        error = jax.lax.stop_gradient(
            norm(width * mixed(ERROR, slopes), at.state, state, rtol, atol)
        )
        accepted = error <= 1  # not if it is NaN
        growth = 0.9 * jnp.maximum(error, 1e-7) ** -0.14 * at.error**0.08
        growth = jnp.clip(growth, 0.2, jnp.where(at.refused, 1.0, 10.0))
        shrinking = jnp.where(error < jnp.inf, jnp.maximum(0.9 * error**-0.2, 0.2), 0.2)
        longer, shorter = jnp.abs(width) * growth, jnp.abs(width) * shrinking
        one, error = jnp.int32(1), jnp.maximum(error, 1e-4)
        taken = At(time, state, slopes[-1], longer, error, ~accepted, at.steps + one, at.rejected)
        stayed = at._replace(length=shorter, refused=~accepted, rejected=at.rejected + one)

        change = state - at.state
        bend = width * at.slope - change
        curve = change - width * slopes[-1] - bend
        fourth = width * mixed(DENSE, slopes)
        share = ((times - at.time) / width)[:, None]
        rest = 1 - share
        between = change + rest * (bend + share * (curve + rest * fourth))
        passed = (direction * (times - at.time) > 0) & (direction * (times - time) <= 0)
        states = jnp.where((accepted & passed)[:, None], at.state + share * between, states)
        return jax.tree.map(partial(jnp.where, accepted), taken, stayed), states

    def step(
        run: tuple[At, Float[Array, "t n"]], _: None
    ) -> tuple[tuple[At, Float[Array, "t n"]], None]:
        return jax.lax.cond(unfinished(run[0]), attempt, lambda run: run, run), None

    nothing = jnp.full((times.shape[0], start.shape[0]), jnp.nan, start.dtype).at[0].set(start)
    (at, states), _ = jax.lax.scan(step, (first, nothing), length=max_steps)
    return Trajectory(states, direction * (end - at.time) <= 0, at.steps, at.rejected)


def mixed(weights: Sequence[float], slopes: Sequence[Float[Array, "n"]]) -> Float[Array, "n"]:
    """A combination of slopes."""
    return jnp.asarray(weights, slopes[0].dtype) @ jnp.stack(slopes)


@jaxtyped(typechecker=typechecked)
def norm(
    x: Float[Array, "n"], one: Float[Array, "n"], other: Float[Array, "n"], rtol: float, atol: float
) -> Float[Array, ""]:
    """The root mean square, relative to what is tolerated of two states."""
    size = jnp.maximum(jnp.abs(one), jnp.abs(other))
    return jnp.sqrt(jnp.mean((x / (atol + rtol * size)) ** 2))


@jaxtyped(typechecker=typechecked)
def first_length(
    field: Field,
    time: Float[Array, ""],
    state: Float[Array, "n"],
    slope: Float[Array, "n"],
    end: Float[Array, ""],
    rtol: float,
    atol: float,
) -> Float[Array, ""]:
    """How long the first step may be (Hairer, Nørsett, Wanner 1993, section II.4)."""
    span = jnp.abs(end - time)
    size, speed = norm(state, state, state, rtol, atol), norm(slope, state, state, rtol, atol)
    little = (size < 1e-5) | (speed < 1e-5)
    trial = jnp.minimum(jnp.where(little, 1e-6, 0.01 * size / jnp.where(little, 1, speed)), span)
    signed = jnp.where(end < time, -trial, trial)
    turn = field(time + signed, state + signed * slope) - slope
    bend = norm(turn, state, state, rtol, atol) / jnp.where(trial > 0, trial, 1)
    most = jnp.maximum(speed, bend)
    flat = most <= 1e-15
    by_bend = jnp.where(
        flat, jnp.maximum(1e-6, 1e-3 * trial), (0.01 / jnp.where(flat, 1, most)) ** 0.2
    )
    return jax.lax.stop_gradient(jnp.minimum(jnp.minimum(100 * trial, by_bend), span))


class Network(NamedTuple):
    """An acceleration for each angle and speed."""

    first: Float64[Array, "h 2"]
    offset: Float64[Array, "h"]
    last: Float64[Array, "h"]


class Track(NamedTuple):
    """Angles and speeds at all times, and how the solver fared."""

    states: Float64[Array, "t 2"]
    reached: Bool[Array, ""]
    steps: Int32[Array, ""]


class Fit(NamedTuple):
    """The network that was found, the loss with it, and how many steps it took."""

    network: Network
    loss: Float64[Array, ""]
    steps: Int32[Array, ""]


@jax.jit
@jaxtyped(typechecker=typechecked)
def acceleration(p: Network, state: Float64[Array, "2"]) -> Float64[Array, ""]:
    """What the network says."""
    return p.last @ jnp.tanh(p.first @ state + p.offset)


@jax.jit
@jaxtyped(typechecker=typechecked)
def swing(p: Network, start: Float64[Array, "2"], times: Float64[Array, "t"]) -> Track:
    """The track that begins like this, if the network is right."""

    def field(time: Float64[Array, ""], state: Float64[Array, "2"]) -> Float64[Array, "2"]:
        return jnp.stack([state[1], acceleration(p, state)])

    found = dormand_prince(field, start, times, 1e-5, 1e-7, max_steps=100)
    return Track(found.states, found.reached, found.steps)


@jax.jit
@jaxtyped(typechecker=typechecked)
def loss(
    p: Network, windows: Float64[Array, "k t 2"], times: Float64[Array, "t"]
) -> Float64[Array, ""]:
    """The mean square of what tracks miss, each from where its window begins."""
    tracks = jax.vmap(swing, in_axes=(None, 0, None))(p, windows[:, 0], times)
    missed = tracks.states - windows
    return jnp.mean(missed * missed)


slope = jax.jit(jax.grad(loss))
"""How the loss changes with each parameter."""


@jax.jit
@jaxtyped(typechecker=typechecked)
def fit(
    start: Network,
    windows: Float64[Array, "k t 2"],
    times: Float64[Array, "t"],
    most: Int32[Array, ""],
) -> Fit:
    """The network with which the loss is least, near the start; BFGS is what jax has."""
    vector, network = ravel_pytree(start)
    found = minimize(
        lambda v: loss(network(v), windows, times),
        vector,
        method="BFGS",
        tol=1e-7,
        options={"maxiter": most},
    )
    return Fit(network(found.x), found.fun, jnp.asarray(found.nit, jnp.int32))
