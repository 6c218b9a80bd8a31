"""Kernels to vary: `{name}` is the kernel, lower-case words in braces are numbers and choices.

Each is about twenty lines, valid Python, and clean for mypy and pyright.
"""

from __future__ import annotations

KERNELS = {
    "dense": '''
@psc.kernel
def {name}(
    p: Dense,
    x: f32["batch i"],
) -> f32["batch o"]:
    """A dense layer with a bounded, centred activation."""
    hidden = x @ p.weight + p.bias
    centred = hidden - hidden.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + {small})
    scaled = p.gain * centred / spread
    gate = {activation}(scaled)
    mixed = gate * scaled + (1.0 - gate) * hidden
    return clipped(mixed, {large})
''',
    "attention": '''
@psc.kernel
def {name}(
    query: f32["batch t d"],
    key: f32["batch s d"],
    value: f32["batch s e"],
    mask: bool_["t s"],
) -> f32["batch t e"]:
    """Attention over positions that the mask admits."""
    depth = query.shape[-1]
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(depth)
    admitted = np.where(mask, scores, {floor})
    shifted = admitted - admitted.max(axis=-1, keepdims=True)
    weights = np.exp(shifted)
    total = weights.sum(axis=-1, keepdims=True)
    probabilities = weights / (total + {small})
    found = probabilities @ value
    return {activation}(found) * found
''',
    "recurrent": '''
@psc.kernel
def {name}(
    p: Cell,
    xs: f32["t d"],
    start: f32["h"],
) -> tuple[f32["h"], f32["t h"]]:
    """A gated recurrent network over a sequence."""

    def step(
        state: f32["h"], x: f32["d"]
    ) -> tuple[f32["h"], f32["h"]]:
        update = sigmoid(p.update @ state + p.read @ x)
        proposal = np.tanh(p.mix @ state + p.read @ x + p.bias)
        after = update * state + (1 - update) * proposal
        return after, {activation}(after)

    last, outputs = psc.scan(step, start, xs)
    return last, outputs
''',
    "descent": '''
@psc.kernel
def {name}(
    matrix: f32["n n"],
    target: f32["n"],
    rate: f32,
) -> f32["n"]:
    """Momentum descent on a regularised quadratic."""

    def step(
        i: i32,
        state: tuple[f32["n"], f32["n"]],
    ) -> tuple[f32["n"], f32["n"]]:
        point, velocity = state
        slope = matrix.T @ (matrix @ point - target) + {small} * point
        velocity = {fraction} * velocity - rate * slope
        return clipped(point + velocity, {large}), velocity

    point, _ = psc.fori_loop(0, {count}, step, (target, np.zeros_like(target)))
    return point
''',
    "moments": '''
@psc.kernel
def {name}(
    x: f32["n d"],
    weight: f32["n"],
) -> Moments:
    """Weighted moments of the columns, without their extremes."""
    bounded = np.clip(x, -{large}, {large})
    positive = np.maximum(weight, {small})
    total = positive.sum()
    share = (positive / total)[:, None]
    mean = (share * bounded).sum(axis=0)
    centred = bounded - mean
    variance = (share * centred**2).sum(axis=0)
    deviation = np.sqrt(variance + {small})
    skew = (share * (centred / deviation) ** 3).sum(axis=0)
    kurtosis = (share * (centred / deviation) ** 4).sum(axis=0) - 3.0
    return Moments(mean, variance, skew, kurtosis)
''',
    "loss": '''
@psc.kernel
def {name}(
    logits: f32["batch k"],
    labels: i32["batch"],
    weights: f32["batch"],
) -> f32:
    """Smoothed cross entropy, and a penalty on large scores."""
    classes = logits.shape[-1]
    shifted = logits - logits.max(axis=-1, keepdims=True)
    normaliser = np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    log_probabilities = shifted - normaliser
    chosen = labels[:, None] == np.arange(classes, dtype=np.int32)
    smooth = np.where(chosen, 1.0 - {small}, {small})
    each = -(smooth * log_probabilities).sum(axis=-1)
    focal = (-np.expm1(-each)) ** {power}
    penalty = {small} * np.square(logits).mean()
    return weighted_mean(focal * each, weights) + penalty
''',
    "distances": '''
@psc.kernel
def {name}(
    points: f32["n d"],
    centres: f32["k d"],
) -> tuple[i32["n"], f32["k d"]]:
    """One round of clustering: the nearest centre of each point, and the new centres."""
    squares = (points**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)[None, :]
    distances = np.maximum(squares - 2.0 * points @ centres.T, 0.0)
    nearest = np.argmin(distances, axis=1).astype(np.int32)
    soft = np.exp(-distances / {large})
    share = soft / (soft.sum(axis=0, keepdims=True) + {small})
    moved = share.T @ points
    inertia = {fraction}
    centre = inertia * centres + (1.0 - inertia) * moved
    return nearest, {activation}(centre) * centre
''',
    "filter": '''
@psc.kernel
def {name}(
    belief: Belief,
    motion: f32["n n"],
    noise: f32["n n"],
    observed: f32["n"],
) -> Belief:
    """A step of a filter whose gain is bounded."""
    predicted = motion @ belief.mean
    spread = motion @ belief.covariance @ motion.T + noise
    surprise = observed - predicted
    scale = np.trace(spread) / spread.shape[0] + {small}
    gain = spread / (scale + {fraction})
    mean = predicted + clipped(gain @ surprise, {large})
    identity = np.eye(spread.shape[0], dtype=np.float32)
    covariance = (identity - gain) @ spread
    symmetric = 0.5 * (covariance + covariance.T)
    return Belief(mean, symmetric)
''',
    "windows": '''
@psc.kernel
def {name}(
    signal: f32["channels t"],
    taps: f32["3"],
) -> f32["channels t"]:
    """Smooth each channel with three taps, and take its trend away."""
    assert signal.shape[1] >= 3
    left = np.concatenate([signal[:, :1], signal[:, :-1]], axis=1)
    right = np.concatenate([signal[:, 1:], signal[:, -1:]], axis=1)
    smooth = taps[0] * left + taps[1] * signal + taps[2] * right
    time = np.arange(signal.shape[1], dtype=np.float32) - (signal.shape[1] - 1) / 2
    slope = (smooth * time).sum(axis=1) / (np.square(time).sum() + {small})
    trend = slope[:, None] * time[None, :]
    rest = smooth - smooth.mean(axis=1, keepdims=True) - trend
    energy = np.sqrt((rest**2).mean(axis=1, keepdims=True) + {small})
    return {activation}(rest / energy) * {fraction}
''',
    "pooling": '''
@psc.kernel
def {name}(
    images: f32["batch height width channels"],
    scale: f32["channels"],
) -> f32["batch height//2 channels"]:
    """Pool pairs of rows, then weigh the columns by how bright they are."""
    batch, height, width, channels = images.shape
    assert height % 2 == 0
    pairs = images.reshape(batch, height // 2, 2, width, channels)
    pooled = {fraction} * pairs.max(axis=2) + (1.0 - {fraction}) * pairs.mean(axis=2)
    bright = np.abs(pooled).sum(axis=-1, keepdims=True)
    weights = np.exp(bright - bright.max(axis=2, keepdims=True))
    weights = weights / (weights.sum(axis=2, keepdims=True) + {small})
    reduced = (weights * pooled).sum(axis=2)
    return {activation}(scale * reduced) + reduced
''',
}

CALLER = '''
@psc.kernel
def {name}(
    x: f32["batch n"],
    weight: f32["batch"],
) -> f32["n"]:
    """What other modules make of the same data, put together."""
    mine = {first}(x, weight)
    theirs = {second}(np.tanh(x), weight)
    centre = 0.5 * (mine.mean + theirs.mean)
    spread = np.sqrt(mine.variance + theirs.variance + {small})
    shifted = (x - centre) / spread
    folded = np.where(shifted > 0, shifted, {fraction} * shifted)
    weighted = folded * weight[:, None]
    total = weighted.sum(axis=0) / (weight.sum() + {small})
    return clipped(total, LIMIT)
'''

HELPERS = '''"""Small functions that the kernels of this package share."""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import f32

LIMIT = {large}
FLOORS = (1e-6, 1e-5, 1e-4)


def sigmoid(x: f32["*s"]) -> f32["*s"]:
    """A smooth step."""
    return 1 / (1 + np.exp(-x))


def swish(x: f32["*s"]) -> f32["*s"]:
    """A smooth ramp."""
    return x * sigmoid(x)


def softsign(x: f32["*s"]) -> f32["*s"]:
    """A bounded ramp."""
    return x / (1 + np.abs(x))


def clipped(x: f32["*s"], bound: float) -> f32["*s"]:
    """Kept between two bounds."""
    return np.minimum(np.maximum(x, -bound), bound)


def weighted_mean(
    x: f32["n"], weight: f32["n"]
) -> f32:
    """A mean with weights, none of which need be positive."""
    positive = np.maximum(weight, FLOORS[0])
    return (x * positive).sum() / positive.sum()
'''

RECORDS = '''"""Trees of arrays that the kernels of this package take and return."""

from __future__ import annotations

from typing import NamedTuple

import pscdsl as psc
from pscdsl import f32


class Dense(psc.Record):
    """The weights of a dense layer."""

    weight: f32["i o"]
    bias: f32["o"]
    gain: f32["o"]


class Cell(psc.Record):
    """The weights of a recurrent network."""

    update: f32["h h"]
    mix: f32["h h"]
    read: f32["h d"]
    bias: f32["h"]


class Belief(psc.Record):
    """A normal distribution."""

    mean: f32["n"]
    covariance: f32["n n"]


class Moments(NamedTuple):
    """The moments of columns."""

    mean: f32["d"]
    variance: f32["d"]
    skew: f32["d"]
    kurtosis: f32["d"]
'''

MODULE = '''"""Kernels of {topic}."""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import bool_, f32, i32
{imports}
__all__ = {exports}

{body}'''
