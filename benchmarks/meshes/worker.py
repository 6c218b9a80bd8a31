"""Run the steps of `programs` on four devices, and print what was found as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import pscdsl as psc
from benchmarks.meshes.programs import Network, Weights, convolutions, transformer
from pscdsl.stdlib.layers import Convolution

RANDOM = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Random numbers."""
    return (RANDOM.normal(size=shape) / 4).astype(np.float32)


def layer(*shape: int) -> Any:
    """A convolution."""
    return Convolution(array(*shape), array(shape[0]))


def cases() -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """The kernels with arguments, and their sizes."""
    c, n = 8, 16
    network = Network(
        layer(c, 1, 3, 3),
        layer(c, c, 3, 3),
        layer(2 * c, c, 3, 3),
        layer(2 * c, 2 * c, 3, 3),
        layer(2 * c, 2 * c, 1, 1),
        layer(10, 2 * c, 1, 1),
    )
    digits = RANDOM.integers(0, 10, n).astype(np.int32)
    images = array(n, 16, 16)
    small = {"n": n, "t": 8, "d": 32, "h": 4, "k": 8, "f": 64}
    query, key, value = [array(4, 32, 8) for _ in range(3)]
    weights = Weights(query, key, value, array(4, 8, 32), array(32, 64), array(64, 32))
    sequences = array(n, 8, 32), array(n, 8, 32)
    sizes = {"n": n, "c": c, "h": 16, "w": 16, "Float": "f32"}
    return [
        (convolutions, (network, images, digits, psc.random.key(1)), sizes),
        (transformer, (weights, *sequences), small),
    ]


def main() -> None:
    """Compare each case with one device."""
    process = psc.distributed.start().process
    found: list[Any] = []
    for kernel, arguments, sizes in cases():
        wanted = psc.tree.leaves(kernel(*arguments))
        axes = {"data": 4} if kernel is convolutions else {"data": 2, "model": 2}
        with psc.Mesh(**axes) as mesh:
            results = psc.tree.leaves(psc.gather(kernel(*arguments)))
        pairs = zip(results, wanted, strict=True)
        difference = max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)
        placed = kernel.lower(**sizes).on_mesh(**axes)
        counted = sum(each.size for each in placed.compile().collectives.values())
        predicted = sum(placed.sent.values())
        found.append((kernel.name, repr(mesh), difference, predicted, counted))
    if process == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
