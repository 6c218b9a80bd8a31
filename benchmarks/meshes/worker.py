"""Run the steps of `programs` on four devices, and print what was found as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import median
from time import perf_counter
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


def cases() -> list[tuple[Any, tuple[Any, ...], tuple[str, ...], dict[str, Any]]]:
    """The kernels with arguments, the placements of those after parameters, and their sizes."""
    c, n, t, d, h = 16, 64, 32, 128, 8
    k, f = d // h, 4 * d
    network = Network(
        layer(c, 1, 3, 3),
        layer(c, c, 3, 3),
        layer(2 * c, c, 3, 3),
        layer(2 * c, 2 * c, 3, 3),
        layer(2 * c, 2 * c, 1, 1),
        layer(10, 2 * c, 1, 1),
    )
    digits = RANDOM.integers(0, 10, n).astype(np.int32)
    images = array(n, 32, 32), digits, psc.random.key(1)
    query, key, value = [array(h, d, k) for _ in range(3)]
    weights = Weights(query, key, value, array(h, k, d), array(d, f), array(f, d))
    sequences = array(n, t, d), array(n, t, d)
    sizes = {"n": n, "c": c, "h": 32, "w": 32, "Float": "f32"}
    small = {"n": n, "t": t, "d": d, "h": h, "k": k, "f": f}
    return [
        (convolutions, (network, *images), ("n@data h w", "n@data"), sizes),
        (transformer, (weights, *sequences), ("n@data t d", "n@data t d"), small),
    ]


def seconds(kernel: Any, parameters: Any, others: Sequence[Any]) -> float:
    """Return the median time of a step, which waits for its results."""
    found: list[float] = []
    for _ in range(35):
        started = perf_counter()
        parameters, _ = kernel(parameters, *others)
        found.append(perf_counter() - started)
    return median(found[5:])


def main() -> None:
    """Compare each case with one device."""
    job = psc.distributed.start()
    found: list[Any] = []
    for kernel, arguments, placements, sizes in cases():
        wanted = psc.tree.leaves(kernel(*arguments))
        alone = seconds(kernel, arguments[0], arguments[1:]) if job.processes == 1 else None
        axes = {"data": 4} if kernel is convolutions else {"data": 2, "model": 2}
        with psc.Mesh(**axes) as mesh:
            made = kernel(*arguments)
            results = psc.tree.leaves(psc.gather(made))
            rows = [mesh.put(x, at) for x, at in zip(arguments[1:], placements, strict=False)]
            taken = seconds(kernel, made[0], [*rows, *arguments[1 + len(rows) :]])
        pairs = zip(results, wanted, strict=True)
        difference = max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)
        placed = kernel.lower(**sizes).on_mesh(**axes)
        counted = sum(each.size for each in placed.compile().collectives.values())
        predicted = sum(placed.sent.values())
        found.append((kernel.name, repr(mesh), difference, predicted, counted, taken, alone))
    if job.process == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
