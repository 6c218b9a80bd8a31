"""Which programs are measured, and at which sizes."""

from __future__ import annotations

from typing import Final

import numpy as np

from benchmarks.plain_numpy.elements import ELEMENTS
from pscdsl import f64, i64
from tests.plain_numpy.acceptance import source
from tests.plain_numpy.program import Program, Sizes, sizes
from tests.plain_numpy.programs import PROGRAMS


def eliminated(a: f64["n n"]) -> f64["n n"]:
    a = a.copy()
    for k in range(len(a)):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def histogram(bins: i64["n"], counts: f64["k"]) -> None:
    for i in range(len(bins)):
        counts[bins[i]] += 1.0


def double_buffer(u: f64["n m"], steps: i64) -> f64["n m"]:
    assert u.shape[0] >= 3
    assert u.shape[1] >= 3
    u = u.copy()
    v = u.copy()
    for _ in range(steps):
        v[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
        u, v = v, u
    return u


OTHERS: Final = (
    Program(eliminated, lambda draw, s: (draw.dominant(s.n),), sizes("n", 1, 5)),
    Program(
        histogram,
        lambda draw, s: (draw.integers(0, s.k, s.n), np.zeros(s.k)),
        sizes("n k", (1, 1), (9, 3)),
        writes=("counts",),
    ),
    Program(
        double_buffer,
        lambda draw, s: (draw.reals(s.n, s.m), s.t),
        sizes("n m t", (3, 3, 1), (4, 5, 3)),
    ),
)
"""Programs that are not among those of `tests.plain_numpy`."""

SIZES: Final[dict[str, str]] = {
    "gemm": "n=300 m=300 k=300",
    "k2mm": "n=200 k=200 m=200 p=200",
    "k3mm": "n=200 k=200 m=200 p=200 q=200",
    "atax": "m=1000 n=1000",
    "bicg": "n=1000 m=1000",
    "mvt": "n=1000",
    "gemver": "n=1000",
    "gesummv": "n=1000",
    "doitgen": "r=50 q=50 p=60",
    "symm": "n=60 m=60",
    "syrk": "n=100 k=80",
    "syr2k": "n=100 k=80",
    "trmm": "n=100 m=80",
    "trisolv": "n=1000",
    "lu": "n=120",
    "ludcmp": "n=120",
    "cholesky": "n=120",
    "cholesky2": "n=300",
    "durbin": "n=1000",
    "gramschmidt": "m=120 n=100",
    "correlation": "n=300 m=200",
    "covariance": "n=300 m=200",
    "covariance2": "n=300 m=200",
    "jacobi_1d": "t=200 n=10000",
    "jacobi_2d": "t=50 n=400 m=400",
    "seidel_2d": "t=5 n=120 m=120",
    "heat_3d": "t=30 n=40 m=40 p=40",
    "fdtd_2d": "t=50 n=400 m=400",
    "adi": "t=10 n=200",
    "hdiff": "i=128 j=128 k=40",
    "vadv": "i=64 j=64 k=60",
    "cavity_flow": "nx=100 ny=100 nt=20 nit=20",
    "channel_flow": "nx=60 ny=60 nit=20",
    "softmax": "n=8 h=8 s=128 t=128",
    "mlp": "n=64 a=784 b=256 c=128 d=10",
    "conv2d_bias": "n=4 h=40 w=40 c=3 k=5 d=16",
    "lenet": "n=8",
    "resnet": "n=4 h=28 w=28 c=32 d=16",
    "nbody": "n=100 nt=50",
    "azimint_naive": "n=100000 npt=100",
    "azimint_hist": "n=200000 npt=100",
    "arc_distance": "n=500 m=500",
    "contour_integral": "slab=2 nr=50 nm=50 p=32",
    "scattering_self_energies": "nk=2 ne=4 nq=2 nw=2 na=6 nb=3 no=6",
    "compute": "n=1000 m=1000",
    "go_fast": "n=1000",
    "crc16": "n=10000",
    "mandelbrot1": "xn=200 yn=200 maxiter=50",
    "mandelbrot2": "xn=200 yn=200 maxiter=50",
    "stockham_fft": "r=2 k=14",
    "spmv": "n=1000 m=1000 nnz=20000",
    "nussinov": "n=50",
    "floyd_warshall": "n=200",
    "deriche": "w=400 h=400",
    "eliminated": "n=200",
    "histogram": "n=100000 k=100",
    "double_buffer": "n=400 m=400 t=100",
    "biquad": "n=100000",
    "smoothed": "n=100000",
    "drawdown": "n=100000",
    "tridiagonal": "n=100000",
    "edit_distance": "n=300 m=300",
    "run_lengths": "n=100000",
    "kalman": "n=100000",
    "reflected": "n=100000",
    "binned": "n=100000 k=100",
    "labels": "n=200 m=200",
    "lagged": "n=20000 k=5",
    "warped": "n=300 m=300",
    "sieved": "n=100000",
    "collatz": "n=2000",
    "levinson": "n=500",
    "merged": "n=50000 m=50000",
}
"""Plain NumPy takes between some microseconds and a second at these."""

MEASURED: Final = {each.name: each for each in (*PROGRAMS, *OTHERS, *ELEMENTS)}


def measured_at(program: Program) -> Sizes:
    """The sizes at which a program is measured."""
    pairs = (each.split("=") for each in SIZES[program.name].split())
    return Sizes({name: int(size) for name, size in pairs})


def lines_of(program: Program) -> int:
    """How many lines a program has, with what it calls, as it is in plain NumPy."""
    text = source(program).splitlines()
    unwritten = ("import ", "from ", "@psc.kernel")
    return sum(1 for line in text if line.strip() and not line.startswith(unwritten))
