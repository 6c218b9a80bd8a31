"""What the programs of linear algebra compute, in closed form."""

# SciPy has no stubs, and the arrays are of any dtype.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tests.plain_numpy.program import NDArray


def gemm(alpha: float, beta: float, C: NDArray, A: NDArray, B: NDArray) -> Any:
    return alpha * np.einsum("nk,km->nm", A, B) + beta * C


def k2mm(alpha: float, beta: float, A: NDArray, B: NDArray, C: NDArray, D: NDArray) -> Any:
    return alpha * np.einsum("nk,km,mp->np", A, B, C) + beta * D


def k3mm(A: NDArray, B: NDArray, C: NDArray, D: NDArray) -> Any:
    return np.einsum("nk,km,mp,pq->nq", A, B, C, D)


def atax(A: NDArray, x: NDArray) -> Any:
    return np.einsum("mi,mj,j->i", A, A, x)


def bicg(A: NDArray, p: NDArray, r: NDArray) -> Any:
    return np.einsum("nm,n->m", A, r), np.einsum("nm,m->n", A, p)


def mvt(x1: NDArray, x2: NDArray, y1: NDArray, y2: NDArray, A: NDArray) -> Any:
    return x1 + np.einsum("ij,j->i", A, y1), x2 + np.einsum("ji,j->i", A, y2)


def gemver(
    alpha: float,
    beta: float,
    A: NDArray,
    u1: NDArray,
    v1: NDArray,
    u2: NDArray,
    v2: NDArray,
    w: NDArray,
    x: NDArray,
    y: NDArray,
    z: NDArray,
) -> Any:
    updated = A + np.column_stack([u1, u2]) @ np.vstack([v1, v2])
    solution = x + beta * np.einsum("ji,j->i", updated, y) + z
    return updated, w + alpha * np.einsum("ij,j->i", updated, solution), solution


def gesummv(alpha: float, beta: float, A: NDArray, B: NDArray, x: NDArray) -> Any:
    return np.einsum("ij,j->i", alpha * A + beta * B, x)


def doitgen(A: NDArray, C4: NDArray) -> Any:
    return np.einsum("rqs,sp->rqp", A, C4)


def symm(alpha: float, beta: float, C: NDArray, A: NDArray, B: NDArray) -> Any:
    symmetric = np.tril(A) + np.tril(A, -1).T
    return alpha * np.einsum("nk,km->nm", symmetric, B) + beta * C


def syrk(alpha: float, beta: float, C: NDArray, A: NDArray) -> Any:
    full = alpha * np.einsum("ik,jk->ij", A, A) + beta * C
    return np.where(np.tri(*C.shape, dtype=np.bool), full, C)


def syr2k(alpha: float, beta: float, C: NDArray, A: NDArray, B: NDArray) -> Any:
    product = np.einsum("ik,jk->ij", A, B)
    full = alpha * (product + product.T) + beta * C
    return np.where(np.tri(*C.shape, dtype=np.bool), full, C)


def trmm(alpha: float, A: NDArray, B: NDArray) -> Any:
    unit = np.tril(A, -1) + np.eye(A.shape[0])
    return alpha * np.einsum("ki,kj->ij", unit, B)


def trisolv(L: NDArray, x: NDArray, b: NDArray) -> Any:
    return scipy.linalg.solve_triangular(L, b, lower=True) if b.size else b


def lu(A: NDArray) -> Any:
    """The factors of a matrix whose diagonal dominates: its Schur complements, one by one."""
    left, rest = np.zeros_like(A), A.copy()
    for k in range(len(A)):
        left[k:, k] = rest[k:, k]
        column = rest[:, k] / rest[k, k]
        left[k, k:] = rest[k, k:]
        left[k + 1 :, k] = column[k + 1 :]
        rest = rest - np.outer(column, rest[k])
    return left


def ludcmp(A: NDArray, b: NDArray) -> Any:
    factors = lu(A)
    lower = np.tril(factors, -1) + np.eye(len(A))
    return np.linalg.solve(A, b), np.linalg.solve(lower, b), factors


def cholesky(A: NDArray) -> Any:
    return np.tril(np.linalg.cholesky(A)) + np.triu(A, 1)


def cholesky2(A: NDArray) -> Any:
    root = scipy.linalg.cholesky(A).T if A.size else A
    return root + A * (1 - np.tri(*A.shape))


def durbin(r: NDArray) -> Any:
    column = np.concatenate([[1.0], r[:-1]])
    return np.linalg.solve(scipy.linalg.toeplitz(column), -r)


def gramschmidt(A: NDArray) -> Any:
    q, r = np.linalg.qr(A)
    signs = np.where(np.diag(r) < 0, -1.0, 1.0)
    q, r = q * signs, r * signs[:, None]
    return q, r, q * np.diag(r)


def correlation(data: NDArray) -> Any:
    deviations = data - data.sum(axis=0) / len(data)
    spread = np.sqrt((deviations**2).sum(axis=0) / len(data))
    scaled = deviations / np.where(spread <= 0.1, 1.0, spread)
    products = np.einsum("ni,nj->ij", scaled, scaled) / len(data)
    np.fill_diagonal(products, 1.0)
    return products, scaled / np.sqrt(len(data))


def covariance(data: NDArray) -> Any:
    deviations = data - data.sum(axis=0) / len(data)
    return np.einsum("ni,nj->ij", deviations, deviations) / (len(data) - 1), deviations


def covariance2(data: NDArray) -> Any:
    return covariance(data)[0]
