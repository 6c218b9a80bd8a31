"""A network that reads digits: its training by Adam, its answers, and what is exported."""

# pyright: standard, reportMissingImports=false

import shutil
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, export
from jax.nn.initializers import glorot_uniform
from jaxtyping import Float, Float32, Int, Int32, Key, PyTree, jaxtyped
from typeguard import typechecked

SERVER = Path(__file__).with_name("deployment_server.py")


class Dense(NamedTuple):
    """A linear map; two of one signature differ in sizes, so that these have no names."""

    weights: Float[Array, "_ _"]
    bias: Float[Array, "_"]


class Network(NamedTuple):
    """Two layers, from pixels over features to classes."""

    hidden: Dense
    output: Dense


class Reading(NamedTuple):
    """What each image shows, and how likely that is."""

    digit: Int32[Array, "n"]
    probability: Float[Array, "n"]


class Moments(NamedTuple):
    """Running means over steps: trees like the parameters."""

    mean: PyTree[Float[Array, "..."]]
    """Of gradients."""
    square: PyTree[Float[Array, "..."]]
    """Of their squares."""
    steps: Int32[Array, ""]


@jaxtyped(typechecker=typechecked)
def widened(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """At least 32 bits, for sums."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


@jaxtyped(typechecker=typechecked)
def dense_layer(key: Key[Array, ""], inputs: int, outputs: int) -> Dense:
    """Weights by Glorot and Bengio, and a bias of 0."""
    return Dense(glorot_uniform()(key, (inputs, outputs), jnp.float32), jnp.zeros(outputs))


@jax.jit
@jaxtyped(typechecker=typechecked)
def dense(p: Dense, x: Float[Array, "*batch i"]) -> Float[Array, "*batch o"]:
    """The last axis mapped."""
    return x @ p.weights + p.bias


@jax.jit
@jaxtyped(typechecker=typechecked)
def cross_entropy(
    logits: Float[Array, "*batch k"], labels: Int[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """The negative log-likelihood of classes."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)[..., 0]


@jaxtyped(typechecker=typechecked)
def adam_start(params: PyTree[Float[Array, "..."]]) -> Moments:
    """The state before the first step."""
    nothing = jax.tree.map(lambda p: jnp.zeros_like(widened(p)), params)
    return Moments(nothing, nothing, jnp.int32(0))


@jaxtyped(typechecker=typechecked)
def adam(
    params: PyTree[Float[Array, "..."]],
    state: Moments,
    gradient: PyTree[Float[Array, "..."]],
    rate: Float[Array, ""],
    decay: float = 0.9,
    square_decay: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[PyTree[Float[Array, "..."]], Moments]:
    """A step along corrected means (Kingma, Ba 2015)."""

    def mixed(mean: Array, g: Array, share: float) -> Array:
        return (share * widened(mean) + (1 - share) * widened(g)).astype(mean.dtype)

    mean = jax.tree.map(lambda m, g: mixed(m, g, decay), state.mean, gradient)
    square = jax.tree.map(
        lambda s, g: mixed(s, widened(g) ** 2, square_decay), state.square, gradient
    )
    steps = state.steps + 1
    done = steps.astype(jnp.float32)

    def step(p: Array, m: Array, s: Array) -> Array:
        m = widened(m) / (1 - decay**done)
        s = widened(s) / (1 - square_decay**done)
        return (widened(p) - rate * (m / (jnp.sqrt(s) + epsilon))).astype(p.dtype)

    return jax.tree.map(step, params, mean, square), Moments(mean, square, steps)


@jax.jit
@jaxtyped(typechecker=typechecked)
def classify(p: Network, pixels: Float[Array, "n d"]) -> Reading:
    """The most likely class of each image, whose pixels are in 0..1."""
    likely = jax.nn.softmax(dense(p.output, jax.nn.relu(dense(p.hidden, pixels))))
    return Reading(likely.argmax(axis=1).astype(jnp.int32), likely.max(axis=1))


@jax.jit
@jaxtyped(typechecker=typechecked)
def loss(p: Network, pixels: Float[Array, "n d"], digits: Int32[Array, "n"]) -> Float[Array, ""]:
    """The mean of the negative log-likelihoods."""
    scores = dense(p.output, jax.nn.relu(dense(p.hidden, pixels)))
    return cross_entropy(scores, digits).mean()


@jax.jit
@jaxtyped(typechecker=typechecked)
def train(
    key: Key[Array, ""],
    pixels: Float32[Array, "n d"],
    digits: Int32[Array, "n"],
    batches: Int32[Array, "t b"],
    rate: Float32[Array, ""],
) -> tuple[Network, Float32[Array, "t"]]:
    """A new network after a step for each batch of rows; also the loss before each step."""
    first, second = jax.random.split(key)
    p = Network(dense_layer(first, pixels.shape[1], 64), dense_layer(second, 64, 10))

    def step(
        state: tuple[Network, Moments], rows: Int32[Array, "b"]
    ) -> tuple[tuple[Network, Moments], Float32[Array, ""]]:
        p, moments = state
        value, gradient = jax.value_and_grad(loss)(p, pixels[rows], digits[rows])
        return adam(p, moments, gradient, rate), value

    (p, _), losses = jax.lax.scan(step, (p, adam_start(p)), batches)
    return p, losses


def deploy(p: Network, folder: Path) -> None:
    """Write the three files that another machine needs; the batch's size stays open."""
    for record in (Network, Dense, Reading):
        export.register_namedtuple_serialization(record, serialized_name=record.__name__)
    (n,) = export.symbolic_shape("n")
    pixels = jax.ShapeDtypeStruct((n, p.hidden.weights.shape[0]), jnp.float32)
    artefact = export.export(classify)(p, pixels)
    (folder / "classify.jax").write_bytes(artefact.serialize())
    arrays = {
        f"{layer}.{field}": np.asarray(getattr(getattr(p, layer), field))
        for layer in ("hidden", "output")
        for field in ("weights", "bias")
    }
    np.savez(folder / "network.npz", allow_pickle=False, **arrays)
    shutil.copy(SERVER, folder)
