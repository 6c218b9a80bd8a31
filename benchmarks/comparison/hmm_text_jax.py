"""Training of a hidden Markov model by expectation maximisation, in logarithms."""

# pyright: standard, reportMissingImports=false

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import logsumexp
from jaxtyping import Float, Int, Int32, jaxtyped
from typeguard import typechecked


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


@jax.jit
@jaxtyped(typechecker=typechecked)
def backward(p: HMM, observations: Int[Array, "t"]) -> Float[Array, "t s"]:
    """Log-probabilities of the observations after each time, given the state then."""
    emissions = log_emissions(p, observations)

    def step(
        message: Float[Array, "s"], emission: Float[Array, "s"]
    ) -> tuple[Float[Array, "s"], Float[Array, "s"]]:
        message = logsumexp(p.log_transition + emission + message, axis=1)
        return message, message

    last = jnp.zeros_like(p.log_start)
    _, rest = jax.lax.scan(step, last, emissions[1:], reverse=True)
    messages = jnp.concatenate([rest, last[None]])
    return messages


class Counts(NamedTuple):
    """How often a model expects things to have happened; those of several sequences add up."""

    start: Float[Array, "s"]
    transition: Float[Array, "s s"]
    emission: Float[Array, "s o"]
    log_likelihood: Float[Array, ""]


@jax.jit
@jaxtyped(typechecker=typechecked)
def expected_counts(p: HMM, observations: Int[Array, "t"]) -> Counts:
    """What one sequence of observations, which must be possible, counts."""
    before, after = forward(p, observations), backward(p, observations)
    states = jax.nn.softmax(before + after)
    seen = observations >= 0
    going_on = jnp.flip(jnp.cumsum(jnp.flip(seen))) > 0
    ahead = log_emissions(p, observations) + after
    joint = before[:-1, :, None] + p.log_transition + ahead[1:, None, :]
    total = logsumexp(joint, axis=(1, 2), keepdims=True)  # of each time: f32 drifts
    pairs = jnp.where(going_on[1:, None, None], jnp.exp(joint - total), 0)
    emission = (
        jnp.zeros_like(p.log_emission.T)
        .at[jnp.maximum(observations, 0)]
        .add(jnp.where(seen[:, None], states, 0))
    )
    return Counts(states[0], pairs.sum(axis=0), emission.T, logsumexp(before[-1]))


@jax.jit
@jaxtyped(typechecker=typechecked)
def most_likely(counts: Counts, p: HMM) -> HMM:
    """The model under which these counts are most probable: relative frequencies."""
    return HMM(
        log_start=_log_frequencies(counts.start, p.log_start),
        log_transition=_log_frequencies(counts.transition, p.log_transition),
        log_emission=_log_frequencies(counts.emission, p.log_emission),
    )


@jax.jit
@jaxtyped(typechecker=typechecked)
def improve(p: HMM, sequences: Int[Array, "n t"]) -> tuple[HMM, Float[Array, ""]]:
    """One step of expectation maximisation, and the log-likelihood of all sequences before it."""
    each = jax.vmap(expected_counts, in_axes=(None, 0))(p, sequences)
    counts = Counts(
        each.start.sum(axis=0),
        each.transition.sum(axis=0),
        each.emission.sum(axis=0),
        each.log_likelihood.sum(),
    )
    return most_likely(counts, p), counts.log_likelihood


@partial(jax.jit, static_argnames="steps")
@jaxtyped(typechecker=typechecked)
def baum_welch(
    p: HMM, sequences: Int[Array, "n t"], steps: int = 100
) -> tuple[HMM, Float[Array, "{steps}"]]:
    """So many steps from `p` on, and the log-likelihood of all sequences before each of them."""

    def step(p: HMM, _: None) -> tuple[HMM, Float[Array, ""]]:
        return improve(p, sequences)

    return jax.lax.scan(step, p, length=steps)


@jaxtyped(typechecker=typechecked)
def _log_frequencies(
    counts: Float[Array, "*batch k"], otherwise: Float[Array, "*batch k"]
) -> Float[Array, "*batch k"]:
    """The logarithms of the shares of a row; those given where the row is 0."""
    total = counts.sum(axis=-1, keepdims=True)
    counted = total > 0
    return jnp.where(counted, jnp.log(counts / jnp.where(counted, total, 1)), otherwise)


@partial(jax.jit, static_argnames="steps")
@jaxtyped(typechecker=typechecked)
def fit(model: HMM, text: Int32[Array, "t"], steps: int) -> tuple[HMM, Float[Array, "{steps}+1"]]:
    """Train on one text."""
    model, likelihoods = baum_welch(model, text[None], steps)
    return model, jnp.append(likelihoods, log_likelihood(model, text))


@partial(jax.jit, static_argnames="steps")
def fit_all(
    models: HMM, text: Int32[Array, "t"], steps: int
) -> tuple[HMM, Float[Array, "g {steps}+1"]]:
    """The same for several models, along the first axis."""
    return jax.vmap(partial(fit, steps=steps), in_axes=(0, None))(models, text)
