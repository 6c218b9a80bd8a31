"""What the stencils compute, element by element."""

# The arrays are of any dtype.
# pyright: reportUnknownVariableType=false

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


def solved(rows: NDArray, off: float, on: float) -> NDArray:
    """Solutions of tridiagonal systems for the rows; the ends are neighbours of ones."""
    size = rows.shape[1]
    right = rows.copy()
    right[:, 0] -= off
    right[:, -1] -= off
    matrix = on * np.eye(size) + off * (np.eye(size, k=1) + np.eye(size, k=-1))
    return np.linalg.solve(matrix, right.T).T


def explicit(x: NDArray, weight: float) -> NDArray:
    """The inner rows of an explicit step along the columns."""
    return x[1:-1] + weight * np.diff(x, 2, axis=0)


def adi(tsteps: int, u: NDArray) -> Any:
    r = len(u) ** 2 / tsteps
    ends = [(1, 1), (1, 1)]
    for _ in range(tsteps):
        half = solved(explicit(u.T, 0.5 * r)[:, 1:-1], -r, 1 + 2 * r)
        v = np.pad(half.T, ends, constant_values=1.0)
        u[1:-1, 0] = u[1:-1, -1] = 1.0
        u[1:-1, 1:-1] = solved(explicit(v, r)[:, 1:-1], -0.5 * r, 1 + r)
    return u


def hdiff(in_field: NDArray, out_field: NDArray, coeff: NDArray) -> Any:
    x = in_field

    def laplacian(i: int, j: int) -> Any:
        near = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
        return 4 * x[i, j] - near

    def flux(i: int, j: int, di: int, dj: int) -> Any:
        through = laplacian(i + di, j + dj) - laplacian(i, j)
        downhill = through * (x[i + di, j + dj] - x[i, j]) <= 0
        return through * downhill

    for i, j in product(range(coeff.shape[0]), range(coeff.shape[1])):
        a, b = i + 2, j + 2
        leaving = flux(a, b, 1, 0) + flux(a, b, 0, 1)
        entering = flux(a - 1, b, 1, 0) + flux(a, b - 1, 0, 1)
        out_field[i, j] = x[a, b] - coeff[i, j] * (leaving - entering)
    return out_field


def vadv(
    utens_stage: NDArray,
    u_stage: NDArray,
    wcon: NDArray,
    u_pos: NDArray,
    utens: NDArray,
    dtr_stage: float,
) -> Any:
    wind = 0.25 * (wcon[1:] + wcon[:-1])
    size = utens_stage.shape[2]
    for i, j in product(*map(range, utens_stage.shape[:2])):
        upwind = np.zeros((size, size))
        for k in range(1, size):
            for row, sign in ((k, -1.0), (k - 1, 1.0)):  # the face between k - 1 and k
                upwind[row, 2 * k - 1 - row] += sign * wind[i, j, k]
                upwind[row, row] -= sign * wind[i, j, k]
        implicit = dtr_stage * np.eye(size) + 0.6 * upwind
        sources = utens[i, j] + utens_stage[i, j] - 0.4 * upwind @ u_stage[i, j]
        change = np.linalg.solve(implicit, sources - 0.6 * upwind @ u_pos[i, j])
        utens_stage[i, j] = dtr_stage * change
    return utens_stage
