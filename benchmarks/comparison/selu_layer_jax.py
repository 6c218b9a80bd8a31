"""A fully connected layer with the scaled exponential linear unit."""

# pyright: standard, reportMissingImports=false

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float32, jaxtyped
from typeguard import typechecked


class Layer(NamedTuple):
    """Weights and biases from i inputs to o outputs."""

    w: Float32[Array, "i o"]
    b: Float32[Array, "o"]


@jaxtyped(typechecker=typechecked)
def selu(
    x: Float32[Array, "n o"], alpha: float = 1.67, scale: float = 1.05
) -> Float32[Array, "n o"]:
    """The scaled exponential linear unit."""
    return scale * jnp.where(x > 0, x, alpha * jnp.expm1(jnp.minimum(x, 0)))


@jax.jit
@jaxtyped(typechecker=typechecked)
def layer(p: Layer, x: Float32[Array, "n i"]) -> Float32[Array, "n o"]:
    """One row for each of the n examples."""
    return selu(x @ p.w + p.b)
