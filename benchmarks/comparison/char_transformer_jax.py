"""A transformer that reads and writes characters, and its training by AdamW."""

# pyright: standard, reportMissingImports=false

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.nn.initializers import glorot_uniform, normal
from jaxtyping import Bool, Float, Int, Int32, Key, PyTree, jaxtyped
from typeguard import typechecked

LONGEST = 10_000


class Dense(NamedTuple):
    """A linear map; two of one signature differ in sizes, so that these have no names."""

    weights: Float[Array, "_ _"]
    bias: Float[Array, "_"]


class Embedding(NamedTuple):
    """A vector of d features for each of v symbols."""

    table: Float[Array, "v d"]


class Affine(NamedTuple):
    """What normalised features are multiplied by, and what is added then."""

    scale: Float[Array, "d"]
    shift: Float[Array, "d"]


class Heads(NamedTuple):
    """Attention of d features by h heads with keys of k numbers."""

    query: Float[Array, "d h k"]
    key: Float[Array, "d h k"]
    value: Float[Array, "d h k"]
    out: Float[Array, "h k d"]


class Block(NamedTuple):
    """One of the layers."""

    attention_norm: Affine
    attention: Heads
    hidden_norm: Affine
    hidden: Dense
    out: Dense


class Model(NamedTuple):
    """Of v characters, in d features."""

    characters: Embedding
    blocks: tuple[Block, Block]
    norm: Affine


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
    return Dense(glorot_uniform()(key, (inputs, outputs)), jnp.zeros(outputs))


@jaxtyped(typechecker=typechecked)
def embedding_layer(key: Key[Array, ""], symbols: int, features: int) -> Embedding:
    """Normal vectors whose squared length is 1 on average."""
    return Embedding(normal(features**-0.5)(key, (symbols, features)))


@jaxtyped(typechecker=typechecked)
def attention_layer(key: Key[Array, ""], features: int, heads: int, size: int) -> Heads:
    """Parameters by Glorot and Bengio, each matrix taken as one from or to all heads."""
    keys = jax.random.split(key, 4)
    into = glorot_uniform(in_axis=0, out_axis=(1, 2))
    out_of = glorot_uniform(in_axis=(0, 1), out_axis=2)
    return Heads(
        into(keys[0], (features, heads, size)),
        into(keys[1], (features, heads, size)),
        into(keys[2], (features, heads, size)),
        out_of(keys[3], (heads, size, features)),
    )


@jaxtyped(typechecker=typechecked)
def transformer_block(
    key: Key[Array, ""], features: int, heads: int, size: int, hidden: int
) -> Block:
    """Parameters by Glorot and Bengio, and norms that change nothing."""
    keys = jax.random.split(key, 3)
    neutral = Affine(jnp.ones(features), jnp.zeros(features))
    return Block(
        neutral,
        attention_layer(keys[0], features, heads, size),
        neutral,
        dense_layer(keys[1], features, hidden),
        dense_layer(keys[2], hidden, features),
    )


@partial(jax.jit, static_argnames="v")
@jaxtyped(typechecker=typechecked)
def new_model(key: Key[Array, ""], v: int) -> Model:
    """A random model."""
    keys = jax.random.split(key, 3)
    blocks = transformer_block(keys[0], 64, 4, 16, 256), transformer_block(keys[1], 64, 4, 16, 256)
    return Model(embedding_layer(keys[2], v, 64), blocks, Affine(jnp.ones(64), jnp.zeros(64)))


@jax.jit
@jaxtyped(typechecker=typechecked)
def no_moments(p: Model) -> Moments:
    """The state of the optimizer before the first step."""
    nothing = jax.tree.map(jnp.zeros_like, p)
    return Moments(nothing, nothing, jnp.int32(0))


@jax.jit
@jaxtyped(typechecker=typechecked)
def dense(p: Dense, x: Float[Array, "*batch i"]) -> Float[Array, "*batch o"]:
    """The last axis mapped."""
    return x @ p.weights + p.bias


@jax.jit
@jaxtyped(typechecker=typechecked)
def layer_norm(
    p: Affine, x: Float[Array, "*batch d"], epsilon: float = 1e-5
) -> Float[Array, "*batch d"]:
    """Features of mean 0 and variance 1 along the last axis, scaled and shifted."""
    z = jax.nn.standardize(widened(x), epsilon=epsilon)
    return (z * widened(p.scale) + widened(p.shift)).astype(x.dtype)


@jax.jit
@jaxtyped(typechecker=typechecked)
def rotary(x: Float[Array, "*batch t h k"]) -> Float[Array, "*batch t h k"]:
    """Features turned by pairs, by an angle that grows with the place of their row; k is even."""
    t, _, k = x.shape[-3:]
    frequencies = LONGEST ** (-2 * jnp.arange(k // 2, dtype=jnp.float32) / k)
    angles = jnp.arange(t, dtype=jnp.float32)[:, None, None] * frequencies
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    even, odd = widened(x[..., ::2]), widened(x[..., 1::2])
    turned = jnp.stack([cos * even - sin * odd, sin * even + cos * odd], axis=-1)
    return turned.reshape(x.shape).astype(x.dtype)


@jaxtyped(typechecker=typechecked)
def multi_head(
    p: Heads,
    x: Float[Array, "*batch t d"],
    mask: Bool[Array, "*batch 1 1 t"] | None,
    causal: bool,
    positions: bool,
) -> Float[Array, "*batch t d"]:
    """Attention of a sequence to itself."""
    queries = jnp.einsum("...td,dhk->...thk", x, p.query)
    keys = jnp.einsum("...td,dhk->...thk", x, p.key)
    values = jnp.einsum("...td,dhk->...thk", x, p.value)
    if positions:
        queries, keys = rotary(queries), rotary(keys)
    found = jax.nn.dot_product_attention(queries, keys, values, mask=mask, is_causal=causal)
    return jnp.einsum("...thk,hkd->...td", found, p.out)


@partial(jax.jit, static_argnames=("causal", "positions"))
@jaxtyped(typechecker=typechecked)
def transform(
    p: Block,
    x: Float[Array, "*batch t d"],
    present: Bool[Array, "*batch t"] | None = None,
    causal: bool = False,
    positions: bool = False,
) -> Float[Array, "*batch t d"]:
    """`x`, plus attention to its rows, plus a layer with `gelu` for each row by itself."""
    mask = None if present is None else present[..., None, None, :]
    x = x + multi_head(p.attention, layer_norm(p.attention_norm, x), mask, causal, positions)
    hidden = jax.nn.gelu(dense(p.hidden, layer_norm(p.hidden_norm, x)), approximate=False)
    return x + dense(p.out, hidden)


@jax.jit
@jaxtyped(typechecker=typechecked)
def logits(p: Model, text: Int32[Array, "*batch t"]) -> Float[Array, "*batch t v"]:
    """For each place, how probable each character is to come next, knowing those up to there."""
    x = p.characters.table[text]
    for block in p.blocks:
        x = transform(block, x, causal=True, positions=True)
    return layer_norm(p.norm, x) @ p.characters.table.T


@jax.jit
@jaxtyped(typechecker=typechecked)
def cross_entropy(
    logits: Float[Array, "*batch k"], labels: Int[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """The negative log-likelihood of classes."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)[..., 0]


@jax.jit
@jaxtyped(typechecker=typechecked)
def loss(p: Model, text: Int32[Array, "*batch t"]) -> Float[Array, ""]:
    """The mean of the negative log-likelihoods of all characters but the first."""
    return cross_entropy(logits(p, text[..., :-1]), text[..., 1:]).mean()


@jaxtyped(typechecker=typechecked)
def clip_by_norm(gradient: PyTree[Float[Array, "..."]], limit: float) -> PyTree:
    """The gradient, shortened to a length if it is longer."""
    length = jnp.sqrt(sum(jnp.sum(widened(g) ** 2) for g in jax.tree.leaves(gradient)))
    factor = jnp.where(length > limit, limit / length, 1)
    return jax.tree.map(lambda g: g * factor.astype(g.dtype), gradient)


@jaxtyped(typechecker=typechecked)
def warmup(step: Int[Array, ""], steps: int, rate: float = 1.0) -> Float[Array, ""]:
    """A line up to `rate`, which it reaches with the last of `steps` steps."""
    return rate * jnp.minimum((step + 1) / jnp.maximum(steps, 1), 1)


@jaxtyped(typechecker=typechecked)
def cosine(step: Int[Array, ""], steps: Int[Array, ""], rate: float) -> Float[Array, ""]:
    """Half a wave of a cosine from `rate` down to 0."""
    done = jnp.minimum(step / jnp.maximum(steps, 1), 1)
    return rate * (1 + jnp.cos(jnp.pi * done)) / 2


@jaxtyped(typechecker=typechecked)
def adamw(
    params: PyTree[Float[Array, "..."]],
    state: Moments,
    gradient: PyTree[Float[Array, "..."]],
    rate: Float[Array, ""],
    weight_decay: float = 0.01,
    decay: float = 0.9,
    square_decay: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[PyTree[Float[Array, "..."]], Moments]:
    """A step along corrected means (Kingma, Ba 2015), with decay (Loshchilov, Hutter 2019)."""

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
        wide = widened(p)
        return (wide - rate * (m / (jnp.sqrt(s) + epsilon) + weight_decay * wide)).astype(p.dtype)

    return jax.tree.map(step, params, mean, square), Moments(mean, square, steps)


@partial(jax.jit, donate_argnames=("p", "state"))
@jaxtyped(typechecker=typechecked)
def step(
    p: Model, state: Moments, text: Int32[Array, "n t"], steps: Int32[Array, ""]
) -> tuple[Model, Moments, Float[Array, ""]]:
    """One of so many steps of AdamW; the loss before it, too."""
    value, gradient = jax.value_and_grad(loss)(p, text)
    rate = warmup(state.steps, 20) * cosine(state.steps, steps, 3e-3)
    p, state = adamw(p, state, clip_by_norm(gradient, 1.0), rate)
    return p, state, value


@partial(jax.jit, static_argnames="count")
@jaxtyped(typechecker=typechecked)
def write(
    p: Model,
    start: Int32[Array, "t"],
    key: Key[Array, ""],
    count: int,
    temperature: Float[Array, ""],
) -> Int32[Array, "{count}"]:
    """Characters that go on from `start`, each drawn by the model that has seen the t before."""

    def following(
        seen: Int32[Array, "t"], key: Key[Array, ""]
    ) -> tuple[Int32[Array, "t"], Int32[Array, ""]]:
        scores = logits(p, seen)[-1] / temperature
        character = jax.random.categorical(key, scores)
        return jnp.append(seen[1:], character), character

    return jax.lax.scan(following, start, jax.random.split(key, count))[1]
