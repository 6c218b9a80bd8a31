"""Products of matrices, factorizations and statistics, as they are written in plain NumPy.

The names are those of the benchmarks that are often used to compare compilers for NumPy.
"""

# Matrices have the names of mathematics, and Python numbers become arrays.
# pyright: reportConstantRedefinition=false
# mypy: disable-error-code="assignment"

import numpy as np

from pscdsl import f64
from tests.plain_numpy.program import Program, sizes


def gemm(alpha: f64, beta: f64, C: f64["n m"], A: f64["n k"], B: f64["k m"]) -> None:
    C[:] = beta * C + alpha * (A @ B)


def k2mm(alpha: f64, beta: f64, A: f64["n k"], B: f64["k m"], C: f64["m p"], D: f64["n p"]) -> None:
    D[:] = alpha * A @ B @ C + beta * D


def k3mm(A: f64["n k"], B: f64["k m"], C: f64["m p"], D: f64["p q"]) -> f64["n q"]:
    return A @ B @ C @ D


def atax(A: f64["m n"], x: f64["n"]) -> f64["n"]:
    y = A @ x
    return y @ A


def bicg(A: f64["n m"], p: f64["m"], r: f64["n"]) -> tuple[f64["m"], f64["n"]]:
    return r @ A, A @ p


def mvt(x1: f64["n"], x2: f64["n"], y1: f64["n"], y2: f64["n"], A: f64["n n"]) -> None:
    x1 += A @ y1
    x2 += A.T @ y2


def gemver(
    alpha: f64,
    beta: f64,
    A: f64["n n"],
    u1: f64["n"],
    v1: f64["n"],
    u2: f64["n"],
    v2: f64["n"],
    w: f64["n"],
    x: f64["n"],
    y: f64["n"],
    z: f64["n"],
) -> None:
    A += np.outer(u1, v1)
    A += np.outer(u2, v2)
    x += beta * (A.T @ y)
    x += z
    w += alpha * (A @ x)


def gesummv(alpha: f64, beta: f64, A: f64["n n"], B: f64["n n"], x: f64["n"]) -> f64["n"]:
    return alpha * (A @ x) + beta * (B @ x)


def doitgen(A: f64["r q p"], C4: f64["p p"]) -> None:
    r, q, p = A.shape
    rows = A.reshape(r * q, p)
    A[:] = (rows @ C4).reshape(r, q, p)


def symm(alpha: f64, beta: f64, C: f64["n m"], A: f64["n n"], B: f64["n m"]) -> None:
    n, m = C.shape
    upper = np.empty(m)
    C *= beta
    for i in range(n):
        for j in range(m):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            upper[j] = A[i, :i] @ B[:i, j]
        C[i] += alpha * (A[i, i] * B[i] + upper)


def syrk(alpha: f64, beta: f64, C: f64["n n"], A: f64["n k"]) -> None:
    n, k = A.shape
    for i in range(n):
        C[i, : i + 1] *= beta
        for p in range(k):
            C[i, : i + 1] += alpha * A[i, p] * A[: i + 1, p]


def syr2k(alpha: f64, beta: f64, C: f64["n n"], A: f64["n k"], B: f64["n k"]) -> None:
    n, k = A.shape
    for i in range(n):
        C[i, : i + 1] *= beta
        for p in range(k):
            left = A[: i + 1, p] * B[i, p]
            right = B[: i + 1, p] * A[i, p]
            C[i, : i + 1] += alpha * (left + right)


def trmm(alpha: f64, A: f64["n n"], B: f64["n m"]) -> None:
    n, m = B.shape
    for i in range(n):
        for j in range(m):
            B[i, j] += A[i + 1 :, i] @ B[i + 1 :, j]
    B *= alpha


def trisolv(L: f64["n n"], x: f64["n"], b: f64["n"]) -> None:
    for i in range(L.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


def lu(A: f64["n n"]) -> None:
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]


def ludcmp(A: f64["n n"], b: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    n = A.shape[0]
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[:j, j]) / A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


def cholesky(A: f64["n n"]) -> None:
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


def cholesky2(A: f64["n n"]) -> None:
    A[:] = np.linalg.cholesky(A) + np.triu(A, 1)


def durbin(r: f64["n"]) -> f64["n"]:
    y = np.empty_like(r)
    y[0] = -r[0]
    alpha = -r[0]
    beta = 1.0
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + r[:k][::-1] @ y[:k]) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def gramschmidt(A: f64["m n"]) -> tuple[f64["m n"], f64["n n"]]:
    m, n = A.shape
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    for k in range(n):
        R[k, k] = np.sqrt(A[:, k] @ A[:, k])
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = Q[:, k] @ A[:, j]
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def correlation(data: f64["n m"]) -> f64["m m"]:
    n, m = data.shape
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= np.mean(data, axis=0)
    data /= np.sqrt(float(n)) * stddev
    corr = np.eye(m)
    for i in range(m - 1):
        corr[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
        corr[i + 1 :, i] = corr[i, i + 1 :]
    return corr


def covariance(data: f64["n m"]) -> f64["m m"]:
    n, m = data.shape
    data -= data.mean(axis=0)
    cov = np.zeros((m, m))
    for i in range(m):
        cov[i, i:] = cov[i:, i] = data[:, i] @ data[:, i:] / (n - 1.0)
    return cov


def covariance2(data: f64["n m"]) -> f64["m m"]:
    assert data.shape[1] >= 2
    return np.cov(data, rowvar=False)


SQUARE = sizes("n", 0, 1, 2, 3, 6, 19)

PROGRAMS = (
    Program(
        gemm,
        lambda draw, s: (
            1.5,
            0.5,
            draw.reals(s.n, s.m),
            draw.reals(s.n, s.k),
            draw.reals(s.k, s.m),
        ),
        sizes("n m k", (0, 2, 3), (1, 1, 1), (2, 3, 4), (17, 5, 9)),
        writes=("C",),
    ),
    Program(
        k2mm,
        lambda draw, s: (
            *(1.5, 0.5, draw.reals(s.n, s.k), draw.reals(s.k, s.m)),
            *(draw.reals(s.m, s.p), draw.reals(s.n, s.p)),
        ),
        sizes("n k m p", (0, 2, 3, 1), (1, 1, 1, 1), (2, 3, 4, 5), (17, 5, 9, 2)),
        writes=("D",),
    ),
    Program(
        k3mm,
        lambda draw, s: (
            *(draw.reals(s.n, s.k), draw.reals(s.k, s.m)),
            *(draw.reals(s.m, s.p), draw.reals(s.p, s.q)),
        ),
        sizes("n k m p q", (0, 2, 3, 1, 2), (1, 1, 1, 1, 1), (2, 3, 4, 5, 6), (17, 5, 9, 2, 11)),
    ),
    Program(
        atax,
        lambda draw, s: (draw.reals(s.m, s.n), draw.reals(s.n)),
        sizes("m n", (0, 2), (1, 1), (2, 3), (19, 7)),
    ),
    Program(
        bicg,
        lambda draw, s: (draw.reals(s.n, s.m), draw.reals(s.m), draw.reals(s.n)),
        sizes("n m", (0, 2), (1, 1), (2, 3), (19, 7)),
    ),
    Program(
        mvt,
        lambda draw, s: (*(draw.reals(s.n) for _ in range(4)), draw.reals(s.n, s.n)),
        SQUARE,
        writes=("x1", "x2"),
    ),
    Program(
        gemver,
        lambda draw, s: (1.5, 0.5, draw.reals(s.n, s.n), *(draw.reals(s.n) for _ in range(8))),
        SQUARE,
        writes=("A", "w", "x"),
    ),
    Program(
        gesummv,
        lambda draw, s: (1.5, 0.5, draw.reals(s.n, s.n), draw.reals(s.n, s.n), draw.reals(s.n)),
        SQUARE,
    ),
    Program(
        doitgen,
        lambda draw, s: (draw.reals(s.r, s.q, s.p), draw.reals(s.p, s.p)),
        sizes("r q p", (0, 2, 3), (1, 1, 1), (2, 3, 4), (5, 4, 7)),
        writes=("A",),
    ),
    Program(
        symm,
        lambda draw, s: (
            1.5,
            0.5,
            draw.reals(s.n, s.m),
            draw.reals(s.n, s.n),
            draw.reals(s.n, s.m),
        ),
        sizes("n m", (0, 2), (1, 1), (2, 3), (3, 2), (13, 7)),
        writes=("C",),
    ),
    Program(
        syrk,
        lambda draw, s: (1.5, 0.5, draw.reals(s.n, s.n), draw.reals(s.n, s.k)),
        sizes("n k", (0, 2), (1, 1), (2, 3), (3, 2), (13, 7)),
        writes=("C",),
    ),
    Program(
        syr2k,
        lambda draw, s: (
            1.5,
            0.5,
            draw.reals(s.n, s.n),
            draw.reals(s.n, s.k),
            draw.reals(s.n, s.k),
        ),
        sizes("n k", (0, 2), (1, 1), (2, 3), (3, 2), (13, 7)),
        writes=("C",),
    ),
    Program(
        trmm,
        lambda draw, s: (1.5, draw.reals(s.n, s.n), draw.reals(s.n, s.m)),
        sizes("n m", (0, 2), (1, 1), (2, 3), (3, 2), (13, 7)),
        writes=("B",),
    ),
    Program(
        trisolv,
        lambda draw, s: (draw.dominant(s.n), draw.reals(s.n), draw.reals(s.n)),
        SQUARE,
        writes=("x",),
    ),
    Program(lu, lambda draw, s: (draw.dominant(s.n),), SQUARE, writes=("A",)),
    Program(ludcmp, lambda draw, s: (draw.dominant(s.n), draw.reals(s.n)), SQUARE, writes=("A",)),
    Program(cholesky, lambda draw, s: (draw.definite(s.n),), SQUARE, writes=("A",)),
    Program(cholesky2, lambda draw, s: (draw.definite(s.n),), SQUARE, writes=("A",)),
    Program(
        durbin,
        lambda draw, s: (draw.reals(s.n) / (2 * s.n),),
        sizes("n", 1, 2, 3, 6, 19),
    ),
    Program(
        gramschmidt,
        lambda draw, s: (draw.reals(s.m, s.n) + 2 * np.eye(s.m, s.n),),
        sizes("m n", (2, 0), (1, 1), (2, 2), (3, 2), (19, 7)),
        writes=("A",),
        tolerance=1e-11,
    ),
    Program(
        correlation,
        lambda draw, s: (draw.reals(s.n, s.m) * np.where(np.arange(s.m) == 1, 0.01, 1.0),),
        sizes("n m", (1, 1), (1, 3), (2, 3), (3, 2), (19, 7)),
        writes=("data",),
    ),
    Program(
        covariance,
        lambda draw, s: (draw.reals(s.n, s.m),),
        sizes("n m", (2, 0), (2, 1), (2, 3), (3, 2), (19, 7)),
        writes=("data",),
    ),
    Program(
        covariance2,
        lambda draw, s: (draw.reals(s.n, s.m),),
        sizes("n m", (2, 3), (3, 2), (19, 7)),
    ),
)
