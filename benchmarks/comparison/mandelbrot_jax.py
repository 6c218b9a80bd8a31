"""A picture of the Mandelbrot set: a while loop over all points at once, and its colours."""

# pyright: standard, reportMissingImports=false

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float64, Int32, UInt8, jaxtyped
from typeguard import typechecked


class Orbits(NamedTuple):
    """One orbit of `z * z + c` for each point of the plane."""

    x: Float64[Array, "h w"]
    y: Float64[Array, "h w"]
    counts: Int32[Array, "h w"]
    """How many steps it took until the orbit was seen to escape."""
    inside: Bool[Array, "h w"]
    """Which orbits have not escaped."""
    steps: Int32[Array, ""]


@jax.jit
@jaxtyped(typechecker=typechecked)
def orbits(
    real: Float64[Array, "w"], imaginary: Float64[Array, "h"], limit: Int32[Array, ""]
) -> Orbits:
    """Follow the orbits of all points until none is left, for at most `limit` steps."""

    def unfinished(at: Orbits) -> Bool[Array, ""]:
        return jnp.any(at.inside) & (at.steps < limit)

    def step(at: Orbits) -> Orbits:
        # An orbit that has escaped stays where it is, so that it cannot overflow.
        x = jnp.where(at.inside, at.x * at.x - at.y * at.y + real, at.x)
        y = jnp.where(at.inside, 2 * at.x * at.y + imaginary[:, None], at.y)
        inside = at.inside & (x * x + y * y <= 256)
        return Orbits(x, y, at.counts + inside.astype(jnp.int32), inside, at.steps + 1)

    h, w = imaginary.shape[0], real.shape[0]
    zero = jnp.zeros((h, w), jnp.float64)
    start = Orbits(zero, zero, jnp.zeros((h, w), jnp.int32), jnp.full((h, w), True), jnp.int32(0))
    return jax.lax.while_loop(unfinished, step, start)


@jax.jit
@jaxtyped(typechecker=typechecked)
def picture(found: Orbits) -> UInt8[Array, "h w 3"]:
    """The colours of the points: black inside, and by the speed of escape outside."""
    distance = jnp.where(found.inside, 256, found.x * found.x + found.y * found.y)
    speed = found.counts.astype(jnp.float64) + 1 - jnp.log2(jnp.log2(distance) / 8)
    hue = 0.6 * jnp.log1p(speed)[:, :, None] + jnp.array([0.0, 0.1, 0.2])
    colour = jnp.where(found.inside[:, :, None], 0, 0.5 - 0.5 * jnp.cos(2 * jnp.pi * hue))
    return (255 * colour).astype(jnp.uint8)
