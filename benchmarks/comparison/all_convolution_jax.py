"""A network that is nothing but convolutions (Springenberg et al. 2015), and a step of training."""

# pyright: standard, reportMissingImports=false

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int, Int32, Key, jaxtyped
from typeguard import typechecked

T = TypeVar("T")

he_normal = jax.nn.initializers.variance_scaling(2, "fan_in", "normal", in_axis=1, out_axis=0)


class Convolution(NamedTuple):
    """A window over input channels for each output channel, and what is added to these."""

    weights: Float[Array, "_ _ ..."]
    bias: Float[Array, "_"]


@jaxtyped(typechecker=typechecked)
def convolution_layer(
    key: Key[Array, ""], inputs: int, outputs: int, window: Sequence[int]
) -> Convolution:
    """A convolution with weights by He et al. (2015), and a bias of 0."""
    return Convolution(he_normal(key, (outputs, inputs, *window)), jnp.zeros(outputs))


@jaxtyped(typechecker=typechecked)
def convolution(
    p: Convolution,
    x: Float[Array, "n c *space"],
    strides: int = 1,
    padding: str = "SAME",
    dilation: int = 1,
    groups: int = 1,
) -> Float[Array, "n o ..."]:
    """`x` convolved with the windows, and the bias added."""
    rank = x.ndim - 2
    y = jax.lax.conv_general_dilated(
        x,
        p.weights,
        (strides,) * rank,
        padding,
        rhs_dilation=(dilation,) * rank,
        feature_group_count=groups,
    )
    return y + p.bias.reshape(-1, *(1,) * rank)


@jax.jit
@jaxtyped(typechecker=typechecked)
def global_average(x: Float[Array, "n c *space"]) -> Float[Array, "n c"]:
    """The mean of each channel over space."""
    return x.mean(axis=tuple(range(2, x.ndim)))


@jax.jit
@jaxtyped(typechecker=typechecked)
def dropout(
    key: Key[Array, ""], x: Float[Array, "*s"], rate: Float[Array, ""] | float = 0.5
) -> Float[Array, "*s"]:
    """Each element 0 with probability `rate`, else over `1 - rate`: the mean stays."""
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


@jax.jit
@jaxtyped(typechecker=typechecked)
def cross_entropy(
    logits: Float[Array, "*batch k"], labels: Int[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """The negative log-likelihood of classes with probabilities `softmax(logits)`."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)[..., 0]


@jax.jit
@jaxtyped(typechecker=typechecked)
def cosine(
    step: Int[Array, ""],
    steps: Int[Array, ""],
    rate: Float[Array, ""] | float,
    last: Float[Array, ""] | float = 0.0,
) -> Float[Array, ""]:
    """Half a wave of a cosine from `rate` down to `last`, and `last` after `steps` steps."""
    done = jnp.minimum(step / jnp.maximum(steps, 1), 1)
    return last + (1 + jnp.cos(jnp.pi * done)) / 2 * (rate - last)


def momentum(
    params: T,
    velocity: T,
    gradient: T,
    rate: Float[Array, ""] | float,
    *,
    decay: float = 0.9,
    nesterov: bool = False,
) -> tuple[T, T]:
    """A step along the velocity, a sum of gradients of which each counts less with every step."""

    def gathered(v: Array, g: Array) -> Array:
        return decay * v + g

    velocity = jax.tree.map(gathered, velocity, gradient)
    ahead = jax.tree.map(gathered, velocity, gradient) if nesterov else velocity
    return jax.tree.map(lambda p, v: p - rate * v, params, ahead), velocity


class Network(NamedTuple):
    """Convolutions, with c channels in the first."""

    first: Convolution
    halving: Convolution
    third: Convolution
    halving_again: Convolution
    fifth: Convolution
    last: Convolution


@partial(jax.jit, static_argnames="c")
@jaxtyped(typechecker=typechecked)
def new_network(key: Key[Array, ""], c: int) -> Network:
    """Random windows."""
    assert c >= 1
    keys = jax.random.split(key, 6)
    return Network(
        convolution_layer(keys[0], 1, c, (3, 3)),
        convolution_layer(keys[1], c, c, (3, 3)),
        convolution_layer(keys[2], c, 2 * c, (3, 3)),
        convolution_layer(keys[3], 2 * c, 2 * c, (3, 3)),
        convolution_layer(keys[4], 2 * c, 2 * c, (1, 1)),
        convolution_layer(keys[5], 2 * c, 10, (1, 1)),
    )


@jax.jit
@jaxtyped(typechecker=typechecked)
def moved(key: Key[Array, ""], image: Float[Array, "h w"]) -> Float[Array, "h w"]:
    """The image, one place away from where it was at most in each direction."""
    h, w = image.shape
    first, second = jax.random.split(key)
    starts = jax.random.randint(first, (), 0, 3), jax.random.randint(second, (), 0, 3)
    return jax.lax.dynamic_slice(jnp.pad(image, 1), starts, (h, w))


@jax.jit
@jaxtyped(typechecker=typechecked)
def logits(
    p: Network, images: Float[Array, "n h w"], key: Key[Array, ""] | None = None
) -> Float[Array, "n 10"]:
    """How much each image looks like each digit; with a key, parts are left out at random."""
    x = images[:, None]
    x = jax.nn.relu(convolution(p.first, x))
    x = jax.nn.relu(convolution(p.halving, x, strides=2))
    x = jax.nn.relu(convolution(p.third, x))
    x = jax.nn.relu(convolution(p.halving_again, x, strides=2))
    if key is not None:
        x = dropout(key, x, 0.2)
    x = jax.nn.relu(convolution(p.fifth, x))
    return global_average(convolution(p.last, x))


@jax.jit
@jaxtyped(typechecker=typechecked)
def loss(
    p: Network, images: Float[Array, "n h w"], digits: Int32[Array, "n"], key: Key[Array, ""]
) -> Float[Array, ""]:
    """The mean of the negative log-likelihoods of images that are moved a little."""
    first, second = jax.random.split(key)
    shifted = jax.vmap(moved)(jax.random.split(first, images.shape[0]), images)
    return cross_entropy(logits(p, shifted, second), digits).mean()


@partial(jax.jit, donate_argnames=("p", "velocity"))
@jaxtyped(typechecker=typechecked)
def step(
    p: Network,
    velocity: Network,
    images: Float[Array, "n h w"],
    digits: Int32[Array, "n"],
    i: Int32[Array, ""],
    steps: Int32[Array, ""],
    key: Key[Array, ""],
) -> tuple[Network, Network, Float[Array, ""]]:
    """One step of stochastic gradient descent with momentum; the loss before it, too."""
    value, gradient = jax.value_and_grad(loss)(p, images, digits, jax.random.fold_in(key, i))
    rate = cosine(i, steps, 0.05)
    p, velocity = momentum(p, velocity, gradient, rate, nesterov=True)
    return p, velocity, value


@jax.jit
@jaxtyped(typechecker=typechecked)
def count_right(
    p: Network, images: Float[Array, "n h w"], digits: Int32[Array, "n"]
) -> Int32[Array, ""]:
    """How many digits the network recognises."""
    return (logits(p, images).argmax(axis=1) == digits).sum()
