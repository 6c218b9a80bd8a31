"""What the stencils compute, element by element."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tests.plain_numpy.program import NDArray


def inside(x: NDArray) -> Iterator[tuple[int, ...]]:
    """The indices of the elements that are not at an edge."""
    return product(*(range(1, size - 1) for size in x.shape))


def smoothed(x: NDArray, old: NDArray, own: float, other: float) -> NDArray:
    """A weighted sum of each element and its neighbours along the axes; `old` at the edges."""
    new = old.copy()
    for index in inside(x):
        total = own * x[index]
        for axis in range(x.ndim):
            for side in (-1, 1):
                near = [*index]
                near[axis] += side
                total += other * x[tuple(near)]
        new[index] = total
    return new


def alternated(tsteps: int, x: NDArray, y: NDArray, own: float, other: float) -> Any:
    """Two grids, each made of the other in turn."""
    for _ in range(tsteps):
        y = smoothed(x, y, own, other)
        x = smoothed(y, x, own, other)
    return x, y


def jacobi_1d(tsteps: int, A: NDArray, B: NDArray) -> Any:
    return alternated(tsteps, A, B, 1 / 3, 1 / 3)


def jacobi_2d(tsteps: int, A: NDArray, B: NDArray) -> Any:
    return alternated(tsteps, A, B, 0.2, 0.2)


def heat_3d(tsteps: int, A: NDArray, B: NDArray) -> Any:
    return alternated(tsteps, A, B, 0.25, 0.125)


def seidel_2d(tsteps: int, A: NDArray) -> Any:
    for _ in range(tsteps):
        for i, j in inside(A):
            A[i, j] = sum(A[i + a, j + b] for a in (-1, 0, 1) for b in (-1, 0, 1)) / 9
    return A


def fdtd_2d(ex: NDArray, ey: NDArray, hz: NDArray, source: NDArray) -> Any:
    n, m = hz.shape
    for each in source:
        magnetic = np.pad(hz, ((1, 0), (1, 0)), mode="edge")
        ey = ey - 0.5 * np.diff(magnetic, axis=0)[:, 1:]
        ey[0] = each
        ex = ex - 0.5 * np.diff(magnetic, axis=1)[1:]
        for i, j in product(range(n - 1), range(m - 1)):
            hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])
    return ex, ey, hz
