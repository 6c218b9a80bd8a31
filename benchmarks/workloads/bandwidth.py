"""Programs that only read and write memory: what counts is where the results lie.

Each side runs in a process of its own: how freed memory is kept holds for a whole process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pscdsl as psc
from benchmarks.workload import Workload, normal
from pscdsl import f32
from pscdsl._src.xla.runtime.memory import MEMORY_VARIABLE


@psc.kernel
def update(x: f32["n"]) -> f32["n"]:
    """A multiple and a shift."""
    return x * 2.5 + 1


@psc.kernel
def moments(m: f32["n"], v: f32["n"], g: f32["n"]) -> tuple[f32["n"], f32["n"], f32["n"]]:
    """The averages that Adam keeps, and the direction of its step."""
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return m, v, m / (v + 1e-6)


@psc.kernel
def turned(x: f32["n"], y: f32["n"], c: f32, s: f32) -> tuple[f32["n"], f32["n"]]:
    """Points turned about the origin."""
    return c * x - s * y, s * x + c * y


@psc.kernel
def lorenz(x: f32["n"], y: f32["n"], z: f32["n"]) -> tuple[f32["n"], f32["n"], f32["n"]]:
    """How points of the Lorenz system move."""
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z


def _update(jax: Any) -> Callable[..., Any]:
    def update(x: Any) -> Any:
        return x * 2.5 + 1

    return update


def _moments(jax: Any) -> Callable[..., Any]:
    def moments(m: Any, v: Any, g: Any) -> Any:
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return m, v, m / (v + 1e-6)

    return moments


def _turned(jax: Any) -> Callable[..., Any]:
    def turned(x: Any, y: Any, c: Any, s: Any) -> Any:
        return c * x - s * y, s * x + c * y

    return turned


def _lorenz(jax: Any) -> Callable[..., Any]:
    def lorenz(x: Any, y: Any, z: Any) -> Any:
        return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z

    return lorenz


def _row(n: int) -> tuple[Any, ...]:
    return (normal(n),)


def _rows(n: int) -> tuple[Any, ...]:
    return normal(n), normal(n) ** 2, normal(n)


def _points(n: int) -> tuple[Any, ...]:
    return normal(n), normal(n), np.float32(0.6), np.float32(0.8)


SIZES = {
    "1k": (1 << 10, 1.05),
    "64k": (1 << 16, 1.05),
    "1M": (1 << 20, 1.05),
    "7M": (7_000_000, 1.05),
    "8M": (1 << 23, 0.3),
    "32M": (1 << 25, 0.4),
}
"""How many numbers, and the goal.

Below 32 MiB glibc keeps a block by itself once one was freed, unless several are in use at a time;
beyond, it keeps none.
"""

HEAP, REUSE = ((MEMORY_VARIABLE, "heap"),), ((MEMORY_VARIABLE, "reuse"),)

WORKLOADS = (
    *[
        Workload(
            f"update {name}", update, _row, size, _update, goal=goal, alone=True, settings=REUSE
        )
        for name, (size, goal) in SIZES.items()
    ],
    Workload(
        "update 32M, heap", update, _row, 1 << 25, _update, goal=0.4, alone=True, settings=HEAP
    ),
    Workload("moments 1M", moments, _rows, 1 << 20, _moments, goal=1.0, alone=True, settings=REUSE),
    Workload(
        "moments 7M", moments, _rows, 7_000_000, _moments, goal=0.6, alone=True, settings=REUSE
    ),
    Workload("turned points 1M", turned, _points, 1 << 20, _turned, goal=0.8),
    Workload("Lorenz system 1M", lorenz, _rows, 1 << 20, _lorenz, goal=0.8),
)
