"""The names of `jax.scipy.linalg`."""

import numpy as np
import scipy.linalg

from jax.numpy.linalg import _symmetric


def cholesky(a: object, lower=False, overwrite_a=False, check_finite=True):
    """Return the triangular factor of a positive definite matrix."""
    if lower:
        return np.linalg.cholesky(a)
    return np.conj(np.swapaxes(np.linalg.cholesky(np.conj(np.swapaxes(a, -1, -2))), -1, -2))


def cho_factor(a: object, lower=False, overwrite_a=False, check_finite=True):
    """Return the triangular factor, and the side on which it is."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: object, b: object, overwrite_b=False, check_finite=True):
    """Return the solution of a system from its factor."""
    return scipy.linalg.cho_solve(c_and_lower, b)


def solve_triangular(
    a: object,
    b: object,
    trans=0,
    lower=False,
    unit_diagonal=False,
    overwrite_b=False,
    debug=None,
    check_finite=True,
):
    """Return the solution of a triangular system."""
    return scipy.linalg.solve_triangular(a, b, trans, lower, unit_diagonal)


def solve(
    a,
    b,
    lower=False,
    overwrite_a=False,
    overwrite_b=False,
    debug=False,
    check_finite=True,
    assume_a="gen",
):
    """Return the solution of a system."""
    return np.linalg.solve(a, b)


def inv(a, overwrite_a=False, check_finite=True):
    """Return the inverse."""
    return np.linalg.inv(a)


def det(a, overwrite_a=False, check_finite=True):
    """Return the determinant."""
    return np.linalg.det(a)


def eigh(
    a: object,
    b=None,
    lower=True,
    eigvals_only=False,
    overwrite_a=False,
    overwrite_b=False,
    turbo=True,
    eigvals=None,
    type=1,
    check_finite=True,
):
    """Return the eigenvalues and eigenvectors of a symmetric matrix."""
    if b is not None or eigvals is not None or type != 1:
        return np.linalg.eigh.of_two_matrices
    values, vectors = np.linalg.eigh(_symmetric(a))
    return values if eigvals_only else (values, vectors)


def svd(
    a: object,
    full_matrices=True,
    compute_uv=True,
    overwrite_a=False,
    check_finite=True,
    lapack_driver="gesdd",
):
    """Return the singular values and vectors."""
    if not compute_uv:
        return np.linalg.svd(a, compute_uv=False)
    left, values, right = np.linalg.svd(a, full_matrices)
    return left, values, right


def qr(a: object, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    """Return an orthogonal and a triangular factor."""
    if pivoting:
        return np.linalg.qr.with_pivots
    if mode == "r":
        return (np.linalg.qr(a, "r"),)
    first, second = np.linalg.qr(a, "complete" if mode == "full" else "reduced")
    return first, second


def expm(A, *, upper_triangular=False, max_squarings=16):
    """Return the exponential of a matrix."""
    return scipy.linalg.expm(A)


def block_diag(*arrs):
    """Return a matrix with others along its diagonal."""
    blocks = [np.atleast_2d(each) for each in arrs]
    rows = []
    for number, block in enumerate(blocks):
        row = [
            block if at == number else np.zeros((block.shape[0], each.shape[1]), block.dtype)
            for at, each in enumerate(blocks)
        ]
        rows.append(np.concatenate(row, axis=1))
    return np.concatenate(rows, axis=0)


def toeplitz(c, r=None):
    """Return a matrix with constant diagonals."""
    c = np.ravel(c)
    r = np.conj(c) if r is None else np.ravel(r)
    rows, columns = c.shape[0], r.shape[0]
    values = np.concatenate([c[::-1], r[1:]])
    places = np.arange(rows)[::-1][:, None] + np.arange(columns)[None, :]
    return np.take(values, places)
