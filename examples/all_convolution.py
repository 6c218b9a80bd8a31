"""Handwritten digits, told apart by a network that is nothing but convolutions.

Where others take the largest of neighbouring values, it has a convolution with stride 2, and a mean
over space at its end (Springenberg, Dosovitskiy, Brox, Riedmiller 2015).  A step of training is one
compiled program, gradient and update together, and Python decides what it is given: the example of
Frostig, Johnson and Leary, "Compiling machine learning programs via high-level tracing" (SysML
2018).
"""

# scikit-learn comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import pscdsl as psc
from pscdsl import Float, Key, i32
from pscdsl.stdlib.activations import relu
from pscdsl.stdlib.dropout import dropout
from pscdsl.stdlib.layers import Convolution, convolution, convolution_layer, global_average
from pscdsl.stdlib.losses import cross_entropy
from pscdsl.stdlib.optimizers import momentum
from pscdsl.stdlib.schedules import cosine

TOLERANCE = 1e-4
"""How far the network may be from NumPy's, as a part of the largest logit."""


class Network(psc.Record, dims="c"):
    """Convolutions, with c channels in the first."""

    first: Convolution["c 1 3 3"]
    halving: Convolution["c c 3 3"]
    third: Convolution["2*c c 3 3"]
    halving_again: Convolution["2*c 2*c 3 3"]
    fifth: Convolution["2*c 2*c 1 1"]
    last: Convolution["10 2*c 1 1"]


@psc.kernel
def new_network(key: Key, c: psc.Static[int]) -> Network["c"]:
    """Random windows."""
    assert c >= 1
    keys = psc.random.split(key, 6)
    return Network(
        convolution_layer(keys[0], 1, c, (3, 3)),
        convolution_layer(keys[1], c, c, (3, 3)),
        convolution_layer(keys[2], c, 2 * c, (3, 3)),
        convolution_layer(keys[3], 2 * c, 2 * c, (3, 3)),
        convolution_layer(keys[4], 2 * c, 2 * c, (1, 1)),
        convolution_layer(keys[5], 2 * c, 10, (1, 1)),
    )


@psc.kernel
def moved(key: Key, image: Float["h w"]) -> Float["h w"]:
    """The image, one place away from where it was at most in each direction."""
    h, w = image.shape
    first, second = psc.random.split(key)
    starts = psc.random.randint(first, (), 0, 3), psc.random.randint(second, (), 0, 3)
    return psc.dynamic_slice(np.pad(image, 1), starts, (h, w))


@psc.kernel
def logits(p: Network["c"], images: Float["n h w"], key: Key | None = None) -> Float["n 10"]:
    """How much each image looks like each digit; with a key, parts are left out at random."""
    x = images[:, None]
    x = relu(convolution(p.first, x))
    x = relu(convolution(p.halving, x, strides=2))
    x = relu(convolution(p.third, x))
    x = relu(convolution(p.halving_again, x, strides=2))
    if key is not None:
        x = dropout(key, x, 0.2)
    x = relu(convolution(p.fifth, x))
    return global_average(convolution(p.last, x))


@psc.kernel
def loss(p: Network["c"], images: Float["n h w"], digits: i32["n"], key: Key) -> Float:
    """The mean of the negative log-likelihoods of images that are moved a little."""
    first, second = psc.random.split(key)
    shifted = psc.vmap(moved)(psc.random.split(first, images.shape[0]), images)
    return cross_entropy(logits(p, shifted, second), digits).mean()


@psc.kernel(donate=("p", "velocity"))
def step(
    p: Network["c"],
    velocity: Network["c"],
    images: Float["n h w"],
    digits: i32["n"],
    i: i32,
    steps: i32,
    key: Key,
) -> tuple[Network["c"], Network["c"], Float]:
    """One step of stochastic gradient descent with momentum; the loss before it, too."""
    value, gradient = psc.value_and_grad(loss)(p, images, digits, psc.random.fold_in(key, i))
    rate = cosine(i, steps, 0.05)
    p, velocity = momentum(p, velocity, gradient, rate, nesterov=True)
    return p, velocity, value


@psc.kernel
def count_right(p: Network["c"], images: Float["n h w"], digits: i32["n"]) -> i32:
    """How many digits the network recognises."""
    return (logits(p, images).argmax(axis=1) == digits).sum()


def logits_in_numpy(p: Network[Any], images: np.ndarray) -> np.ndarray:
    """`logits` by sums over windows, in 64 bits."""
    x = images[:, None].astype(np.float64)
    layers = p.first, p.halving, p.third, p.halving_again, p.fifth, p.last
    for layer, stride in zip(layers, (1, 2, 1, 2, 1, 1), strict=True):
        x = np.maximum(x, 0)  # images are not negative
        weights, bias = np.asarray(layer.weights), np.asarray(layer.bias)
        size, width = weights.shape[-1], x.shape[-1]
        missing = (-(-width // stride) - 1) * stride + size - width
        edges = [(0, 0), (0, 0), *[(max(missing, 0) // 2, max(missing, 0) - missing // 2)] * 2]
        windows = sliding_window_view(np.pad(x, edges), (size, size), (2, 3))
        taken = windows[:, :, ::stride, ::stride]
        x = np.einsum("ncyxab,ocab->noyx", taken, weights, optimize=True) + bias[:, None, None]
    return np.asarray(x.mean(axis=(2, 3)))


class Result(NamedTuple):
    """What training achieved."""

    parameters: int
    losses: np.ndarray
    """Before each step."""
    accuracy: float
    """On unseen images."""
    from_numpy: float
    """How far the logits of unseen images are from NumPy's, as a part of the largest."""
    compiled: int
    """How many programs the steps took."""
    seconds: float
    """Of training, with its compilation."""


def run(epochs: int = 40, channels: int = 32, batch: int = 32, seed: int = 0) -> Result:
    """Train on four fifths of the images, and recognise the others."""
    data: Any = load_digits()
    images = (data.images / 16).astype(np.float32)
    digits = data.target.astype(np.int32)
    parts: Any = train_test_split(images, digits, test_size=0.2, random_state=seed, stratify=digits)
    seen, unseen, seen_digits, unseen_digits = parts
    start = time.perf_counter()
    first, key = psc.random.split(psc.random.key(seed))
    network = new_network(first, channels)
    velocity = psc.tree.zeros_like(network)
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(len(seen)) for _ in range(epochs)])
    steps = len(order) // batch
    losses: list[psc.Array] = []
    for i in range(steps):
        rows = order[i * batch : (i + 1) * batch]
        network, velocity, value = step(
            network, velocity, seen[rows], seen_digits[rows], np.int32(i), np.int32(steps), key
        )
        losses.append(value)
    seconds = time.perf_counter() - start
    right = int(count_right(network, unseen, unseen_digits))
    exact = logits_in_numpy(network, unseen)
    from_numpy = np.abs(np.asarray(logits(network, unseen)) - exact).max() / np.abs(exact).max()
    np.testing.assert_array_less(from_numpy, TOLERANCE)
    return Result(
        parameters=psc.tree.size(network),
        losses=np.array(losses),
        accuracy=right / len(unseen),
        compiled=step.cache_info().entries,
        from_numpy=float(from_numpy),
        seconds=seconds,
    )


def main() -> None:
    """Print what training achieved."""
    result = run()
    first, last = result.losses[0], result.losses[-20:].mean()
    print(f"{result.parameters} parameters, {len(result.losses)} steps of training")
    print(f"programs compiled for them: {result.compiled}")
    print(f"loss {first:.2f} to {last:.4f} in {result.seconds:.0f} seconds")
    print(f"accuracy on unseen images: {result.accuracy:.1%}")
    print(f"their logits differ from NumPy's by {result.from_numpy:.0e} of the largest", end=", ")
    print(f"at most {TOLERANCE:.0e} is allowed")


if __name__ == "__main__":
    main()
