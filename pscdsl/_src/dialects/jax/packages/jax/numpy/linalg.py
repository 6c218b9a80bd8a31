"""The names of `jax.numpy.linalg`."""

import numpy as np
from numpy.linalg import (
    cond,
    det,
    eig,
    eigvals,
    inv,
    lstsq,
    matrix_norm,
    matrix_power,
    matrix_rank,
    matrix_transpose,
    multi_dot,
    norm,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
    tensorinv,
    tensorsolve,
    trace,
    vector_norm,
)


def _symmetric(a):
    """Return the symmetric part of a matrix, as JAX takes it."""
    return (a + np.conj(np.swapaxes(a, -1, -2))) / 2


def cholesky(a, *, upper=False, symmetrize_input=True):
    """Return the triangular factor of a positive definite matrix."""
    return np.linalg.cholesky(_symmetric(a) if symmetrize_input else a, upper=upper)


def eigh(a, UPLO=None, symmetrize_input=True):
    """Return the eigenvalues and eigenvectors of a symmetric matrix."""
    return np.linalg.eigh(_symmetric(a) if symmetrize_input else a, "L" if UPLO is None else UPLO)


def eigvalsh(a, UPLO="L", *, symmetrize_input=True):
    """Return the eigenvalues of a symmetric matrix."""
    return np.linalg.eigvalsh(_symmetric(a) if symmetrize_input else a, UPLO)


def matmul(x1, x2, /, *, precision=None, preferred_element_type=None):
    """Return the product of two matrices."""
    return np.matmul(x1, x2)
