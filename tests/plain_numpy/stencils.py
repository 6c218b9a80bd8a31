"""Updates of grids from their neighbours, as they are written in plain NumPy."""

# Fields have the names of physics.
# pyright: reportConstantRedefinition=false

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
)
