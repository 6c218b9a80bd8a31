"""The vorticity of a flow in a plane, by products in Fourier space and Runge-Kutta's steps."""

# pyright: standard, reportMissingImports=false

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Complex128, Float, Float64, UInt8, jaxtyped
from typeguard import typechecked


@jaxtyped(typechecker=typechecked)
def rk4(
    field: Callable[[Array, Array], Array],
    start: Float[Array, "*s"],
    times: Float[Array, "t"],
    substeps: int = 1,
) -> Float[Array, "t *s"]:
    """The states at all times, by the classical Runge-Kutta method (Kutta 1901)."""

    def advance(
        state: Float[Array, "*s"], ends: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
        begin, end = ends
        length = (end - begin) / substeps

        def step(i: Array, state: Float[Array, "*s"]) -> Float[Array, "*s"]:
            time = begin + length * i
            first = field(time, state)
            second = field(time + length / 2, state + length / 2 * first)
            third = field(time + length / 2, state + length / 2 * second)
            fourth = field(time + length, state + length * third)
            return state + length * (first + 2 * second + 2 * third + fourth) / 6

        state = jax.lax.fori_loop(0, substeps, step, state)
        return state, state

    _, rest = jax.lax.scan(advance, start, (times[:-1], times[1:]))
    return jnp.concatenate([start[None], rest])


@jax.jit
@jaxtyped(typechecker=typechecked)
def velocity(w: Float64[Array, "n n"]) -> tuple[Float64[Array, "n n"], Float64[Array, "n n"]]:
    """The velocity to the right and down of a flow with this vorticity, without a mean."""
    n = w.shape[0]
    right, down = derivatives(n)
    laplace = right * right + down * down
    stream = jnp.fft.rfft2(w) / jnp.where(laplace == 0, 1, -laplace)
    return real(down * stream, n), real(-right * stream, n)


@jax.jit
@jaxtyped(typechecker=typechecked)
def carried(w: Float64[Array, "n n"], viscosity: Float64[Array, ""]) -> Float64[Array, "n n"]:
    """How fast the vorticity changes."""
    n = w.shape[0]
    right, down = derivatives(n)
    spectrum = jnp.fft.rfft2(w)
    u, v = velocity(w)
    product = u * real(right * spectrum, n) + v * real(down * spectrum, n)
    kept = (3 * jnp.abs(right) < n) & (3 * jnp.abs(down) < n)
    friction = viscosity * (right * right + down * down) * spectrum
    return real(friction - jnp.where(kept, jnp.fft.rfft2(product), 0), n)


@partial(jax.jit, static_argnames="substeps")
@jaxtyped(typechecker=typechecked)
def flow(
    w: Float64[Array, "n n"],
    times: Float64[Array, "t"],
    viscosity: Float64[Array, ""],
    substeps: int = 1,
) -> Float64[Array, "t n n"]:
    """The vorticity at all times, from that at the first."""
    return rk4(lambda _, w: carried(w, viscosity), w, times, substeps)


@jax.jit
@jaxtyped(typechecker=typechecked)
def invariants(w: Float64[Array, "n n"]) -> tuple[Float64[Array, ""], Float64[Array, ""]]:
    """Energy and enstrophy, which a flow without friction keeps."""
    u, v = velocity(w)
    return jnp.mean(u * u + v * v) / 2, jnp.mean(w * w) / 2


@jax.jit
@jaxtyped(typechecker=typechecked)
def picture(w: Float64[Array, "n n"]) -> UInt8[Array, "n n 3"]:
    """Red where the fluid turns to the left, blue where to the right."""
    shade = (w / jnp.abs(w).max())[:, :, None]
    fading = jnp.where(shade > 0, jnp.array([0.1, 0.8, 0.95]), jnp.array([0.95, 0.7, 0.05]))
    return (255 * (1 - jnp.sqrt(jnp.abs(shade)) * fading)).astype(jnp.uint8)


@jaxtyped(typechecker=typechecked)
def derivatives(n: int) -> tuple[Complex128[Array, "m"], Complex128[Array, "n 1"]]:
    """What derivatives to the right and down multiply the waves of a real transform by."""
    right, down = jnp.fft.rfftfreq(n, 1 / n), jnp.fft.fftfreq(n, 1 / n)
    return 1j * right, 1j * down[:, None]


@jaxtyped(typechecker=typechecked)
def real(spectrum: Complex128[Array, "n m"], n: int) -> Float64[Array, "n n"]:
    """A transform's inverse."""
    return jnp.fft.irfft2(spectrum, (n, n))
