"""Updates of grids from their neighbours, as they are written in plain NumPy."""

# Fields have the names of physics.
# pyright: reportConstantRedefinition=false

import numpy as np

from pscdsl import f64, i64
from tests.plain_numpy.program import Program, sizes


def jacobi_1d(tsteps: i64, A: f64["n"], B: f64["n"]) -> None:
    assert A.shape[0] >= 3
    for _ in range(tsteps):
        B[1:-1] = (A[:-2] + A[1:-1] + A[2:]) / 3.0
        A[1:-1] = (B[:-2] + B[1:-1] + B[2:]) / 3.0


def jacobi_2d(tsteps: i64, A: f64["n m"], B: f64["n m"]) -> None:
    assert A.shape[0] >= 3
    assert A.shape[1] >= 3
    for _ in range(tsteps):
        B[1:-1, 1:-1] = 0.2 * (
            A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[:-2, 1:-1] + A[2:, 1:-1]
        )
        A[1:-1, 1:-1] = 0.2 * (
            B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[:-2, 1:-1] + B[2:, 1:-1]
        )


def seidel_2d(tsteps: i64, A: f64["n m"]) -> None:
    n, m = A.shape
    assert n >= 3
    assert m >= 3
    for _ in range(tsteps):
        for i in range(1, n - 1):
            above = A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:]
            below = A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]
            A[i, 1:-1] += A[i, 2:] + above + below
            for j in range(1, m - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0


def heat_3d(tsteps: i64, A: f64["n m p"], B: f64["n m p"]) -> None:
    n, m, p = A.shape
    assert n >= 3
    assert m >= 3
    assert p >= 3
    for _ in range(tsteps):
        inner = A[1:-1, 1:-1, 1:-1]
        B[1:-1, 1:-1, 1:-1] = (
            inner
            + 0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * inner + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * inner + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * inner + A[1:-1, 1:-1, :-2])
        )
        inner = B[1:-1, 1:-1, 1:-1]
        A[1:-1, 1:-1, 1:-1] = (
            inner
            + 0.125 * (B[2:, 1:-1, 1:-1] - 2.0 * inner + B[:-2, 1:-1, 1:-1])
            + 0.125 * (B[1:-1, 2:, 1:-1] - 2.0 * inner + B[1:-1, :-2, 1:-1])
            + 0.125 * (B[1:-1, 1:-1, 2:] - 2.0 * inner + B[1:-1, 1:-1, :-2])
        )


def fdtd_2d(ex: f64["n m"], ey: f64["n m"], hz: f64["n m"], source: f64["t"]) -> None:
    assert ex.shape[0] >= 2
    assert ex.shape[1] >= 2
    for t in range(source.shape[0]):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def adi(tsteps: i64, u: f64["n n"]) -> None:
    n = u.shape[0]
    assert n >= 3
    r = 1.0 / tsteps * n * n
    a, b = -r, 1.0 + 2.0 * r
    d, e = -0.5 * r, 1.0 + r
    v = np.ones((n, n))
    p = np.empty_like(u)
    q = np.empty_like(u)
    for _ in range(tsteps):
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = v[0, 1:-1]
        for j in range(1, n - 1):
            pivot = a * p[1:-1, j - 1] + b
            across = (1.0 + 2.0 * d) * u[j, 1:-1] - d * (u[j, :-2] + u[j, 2:])
            p[1:-1, j] = -a / pivot
            q[1:-1, j] = (across - a * q[1:-1, j - 1]) / pivot
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]
        u[1:-1, 0] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = u[1:-1, 0]
        for j in range(1, n - 1):
            pivot = d * p[1:-1, j - 1] + e
            across = (1.0 + 2.0 * a) * v[1:-1, j] - a * (v[:-2, j] + v[2:, j])
            p[1:-1, j] = -d / pivot
            q[1:-1, j] = (across - d * q[1:-1, j - 1]) / pivot
        u[1:-1, -1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1] + q[1:-1, j]


def hdiff(in_field: f64["i+4 j+4 k"], out_field: f64["i j k"], coeff: f64["i j k"]) -> None:
    around = in_field[2:, 1:-1] + in_field[:-2, 1:-1] + in_field[1:-1, 2:] + in_field[1:-1, :-2]
    lap = 4.0 * in_field[1:-1, 1:-1] - around
    flux_i = lap[1:, 1:-1] - lap[:-1, 1:-1]
    slope_i = in_field[2:-1, 2:-2] - in_field[1:-2, 2:-2]
    flux_i = np.where(flux_i * slope_i > 0, 0.0, flux_i)
    flux_j = lap[1:-1, 1:] - lap[1:-1, :-1]
    slope_j = in_field[2:-2, 2:-1] - in_field[2:-2, 1:-2]
    flux_j = np.where(flux_j * slope_j > 0, 0.0, flux_j)
    spread = flux_i[1:] - flux_i[:-1] + flux_j[:, 1:] - flux_j[:, :-1]
    out_field[:] = in_field[2:-2, 2:-2] - coeff * spread


BEFORE = 0.4  # how much of a step is explicit
AFTER = 0.6  # how much is implicit


def vadv(
    utens_stage: f64["i j k"],
    u_stage: f64["i j k"],
    wcon: f64["i+1 j k"],
    u_pos: f64["i j k"],
    utens: f64["i j k"],
    dtr_stage: f64,
) -> None:
    ni, nj, nk = utens_stage.shape
    assert nk >= 2
    ccol = np.ndarray((ni, nj, nk), dtype=np.float64)
    dcol = np.ndarray((ni, nj, nk), dtype=np.float64)
    below = 0.25 * (wcon[1:, :, 1] + wcon[:-1, :, 1])
    change = below * BEFORE * (u_stage[:, :, 1] - u_stage[:, :, 0])
    ccol[:, :, 0] = below * AFTER
    bcol = dtr_stage - ccol[:, :, 0]
    dcol[:, :, 0] = dtr_stage * u_pos[:, :, 0] + utens[:, :, 0] + utens_stage[:, :, 0] - change
    ccol[:, :, 0] /= bcol
    dcol[:, :, 0] /= bcol
    for k in range(1, nk - 1):
        above = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        below = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        change = above * BEFORE * (u_stage[:, :, k - 1] - u_stage[:, :, k])
        change += below * BEFORE * (u_stage[:, :, k + 1] - u_stage[:, :, k])
        acol = above * AFTER
        ccol[:, :, k] = below * AFTER
        bcol = dtr_stage - acol - ccol[:, :, k]
        dcol[:, :, k] = dtr_stage * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] - change
        pivot = bcol - acol * ccol[:, :, k - 1]
        ccol[:, :, k] /= pivot
        dcol[:, :, k] = (dcol[:, :, k] - acol * dcol[:, :, k - 1]) / pivot
    last = nk - 1
    above = -0.25 * (wcon[1:, :, last] + wcon[:-1, :, last])
    acol = above * AFTER
    bcol = dtr_stage - acol
    sources = utens[:, :, last] + utens_stage[:, :, last]
    change = above * BEFORE * (u_stage[:, :, last - 1] - u_stage[:, :, last])
    column = dcol[:, :, last]
    column[:] = dtr_stage * u_pos[:, :, last] + sources - change
    column -= acol * dcol[:, :, last - 1]
    column /= bcol - acol * ccol[:, :, last - 1]
    utens_stage[:, :, last] = dtr_stage * (column - u_pos[:, :, last])
    for k in range(nk - 2, -1, -1):
        column[:] = dcol[:, :, k] - ccol[:, :, k] * column
        utens_stage[:, :, k] = dtr_stage * (column - u_pos[:, :, k])


PROGRAMS = (
    Program(
        jacobi_1d,
        lambda draw, s: (s.t, draw.reals(s.n), draw.reals(s.n)),
        sizes("t n", (0, 4), (1, 3), (2, 4), (5, 19)),
        writes=("A", "B"),
    ),
    Program(
        jacobi_2d,
        lambda draw, s: (s.t, draw.reals(s.n, s.m), draw.reals(s.n, s.m)),
        sizes("t n m", (0, 4, 5), (1, 3, 3), (2, 3, 5), (2, 5, 4), (5, 13, 19)),
        writes=("A", "B"),
    ),
    Program(
        seidel_2d,
        lambda draw, s: (s.t, draw.reals(s.n, s.m)),
        sizes("t n m", (0, 4, 5), (1, 3, 3), (2, 3, 5), (2, 5, 4), (5, 13, 9)),
        writes=("A",),
    ),
    Program(
        heat_3d,
        lambda draw, s: (s.t, draw.reals(s.n, s.m, s.p), draw.reals(s.n, s.m, s.p)),
        sizes("t n m p", (0, 4, 5, 3), (1, 3, 3, 3), (2, 3, 5, 4), (3, 8, 7, 9)),
        writes=("A", "B"),
    ),
    Program(
        fdtd_2d,
        lambda draw, s: (*(draw.reals(s.n, s.m) for _ in range(3)), draw.reals(s.t)),
        sizes("t n m", (0, 4, 5), (1, 2, 2), (2, 3, 2), (2, 2, 4), (5, 13, 19)),
        writes=("ex", "ey", "hz"),
    ),
    Program(
        adi,
        lambda draw, s: (s.t, draw.reals(s.n, s.n)),
        sizes("t n", (1, 3), (2, 4), (5, 19)),
        writes=("u",),
    ),
    Program(
        hdiff,
        lambda draw, s: (
            draw.reals(s.i + 4, s.j + 4, s.k),
            *(draw.reals(s.i, s.j, s.k), draw.reals(s.i, s.j, s.k)),
        ),
        sizes("i j k", (0, 2, 3), (1, 1, 1), (2, 3, 4), (3, 2, 1), (13, 9, 5)),
        writes=("out_field",),
    ),
    Program(
        vadv,
        lambda draw, s: (
            *(draw.reals(s.i, s.j, s.k), draw.reals(s.i, s.j, s.k)),
            draw.reals(s.i + 1, s.j, s.k),
            *(draw.reals(s.i, s.j, s.k), draw.reals(s.i, s.j, s.k), 3.0),
        ),
        sizes("i j k", (0, 2, 3), (1, 1, 2), (2, 3, 3), (3, 2, 4), (5, 4, 19)),
        writes=("utens_stage",),
    ),
)
