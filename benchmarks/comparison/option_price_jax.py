"""The price of an option by simulation: random keys that are split, looped over and used once."""

# pyright: standard, reportMissingImports=false

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float32, Float64, Key, jaxtyped
from typeguard import typechecked


class Market(NamedTuple):
    """What is known of a share and of its option."""

    price: Float32[Array, ""]
    strike: Float32[Array, ""]
    rate: Float32[Array, ""]
    volatility: Float32[Array, ""]
    years: Float32[Array, ""]


class Estimate(NamedTuple):
    """A mean over paths, and the standard error of it."""

    mean: Float64[Array, ""]
    error: Float64[Array, ""]


@jax.jit
@jaxtyped(typechecker=typechecked)
def estimate(values: Float32[Array, "n"]) -> Estimate:
    """The mean of independent values; there are at least 2."""
    n = values.shape[0]
    assert n >= 2
    wide = values.astype(jnp.float64)
    mean = wide.mean()
    variance = ((wide - mean) ** 2).sum() / (n - 1)
    return Estimate(mean, jnp.sqrt(variance / n))


@jax.jit
@jaxtyped(typechecker=typechecked)
def paths(
    key: Key[Array, ""], market: Market, like: Float32[Array, "t n"]
) -> Float32[Array, "t n"]:
    """The prices of n shares after each of t steps; every step draws from a key of its own."""
    steps, n = like.shape
    span = market.years / steps
    drift = (market.rate - market.volatility**2 / 2) * span
    spread = market.volatility * jnp.sqrt(span)

    def step(
        log_price: Float32[Array, "n"], key: Key[Array, ""]
    ) -> tuple[Float32[Array, "n"], Float32[Array, "n"]]:
        log_price = log_price + drift + spread * jax.random.normal(key, (n,), jnp.float32)
        return log_price, log_price

    start = jnp.log(market.price) + jnp.zeros(n, jnp.float32)
    _, logs = jax.lax.scan(step, start, jax.random.split(key, steps))
    return jnp.exp(logs)


@jax.jit
@jaxtyped(typechecker=typechecked)
def prices(
    key: Key[Array, ""], market: Market, like: Float32[Array, "t n"]
) -> tuple[Estimate, Estimate]:
    """What the European and the Asian call are worth, each by paths of its own."""
    assert like.shape[1] >= 2
    european, asian = jax.random.split(key)
    discount = jnp.exp(-market.rate * market.years)
    last = paths(european, market, like)[-1]
    mean = jnp.mean(paths(asian, market, like), axis=0)
    return (
        estimate(discount * jnp.maximum(last - market.strike, 0)),
        estimate(discount * jnp.maximum(mean - market.strike, 0)),
    )
