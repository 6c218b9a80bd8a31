"""The names of `jax.numpy.linalg`."""

from typing import NamedTuple as _NamedTuple

import numpy as np
from numpy.linalg import (
    cond,
    det,
    eig,
    eigvals,
    inv,
    lstsq,
    matrix_power,
    matrix_rank,
    matrix_transpose,
    multi_dot,
    pinv,
    qr,
    solve,
    svd,
    svdvals,
    tensorinv,
    tensorsolve,
    trace,
)
from numpy.linalg import matrix_norm as _matrix_norm
from numpy.linalg import norm as _norm
from numpy.linalg import vector_norm as _vector_norm

from jax._checks import inexact as _inexact


def _symmetric(a):
    """Return the symmetric part of a matrix, as JAX takes it."""
    return (a + np.conj(np.swapaxes(a, -1, -2))) / 2


class _Slogdet(_NamedTuple):
    """What `slogdet` gives."""

    sign: object
    logabsdet: object


def slogdet(a, *, method=None):
    """Return the sign and the logarithm of the size of a determinant; small ones show NaN."""
    sign, size = np.linalg.slogdet(a)
    is_small = np.asarray(np.shape(a)[-1]) <= 2
    return _Slogdet(np.where(is_small & np.isnan(size), np.nan, sign), size)


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


def norm(x, ord=None, axis=None, keepdims=False):
    """Return the norm of vectors or matrices; that of squares has no gradient at 0."""
    x = _inexact(x)
    if axis is None and x.ndim == 1 and (ord == "fro" or ord == "f" or ord == "nuc"):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    if ord is None and axis is None:
        return _root_of_squares(x, None, keepdims)
    if axis is not None and not isinstance(axis, tuple) and (ord is None or ord == 2):
        return _root_of_squares(x, axis, keepdims)
    if axis is None and x.ndim == 1 and ord == 2:
        return _root_of_squares(x, axis, keepdims)
    if ord is None or ord == "fro" or ord == "f":
        return _root_of_squares(x, axis, keepdims)
    return _norm(x, ord, axis, keepdims)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Return the norm of matrices; that of squares has no gradient at 0."""
    if ord == "fro" or ord == "f":
        return _root_of_squares(np.asarray(x), (-2, -1), keepdims)
    return _matrix_norm(x, keepdims=keepdims, ord=ord)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Return the norm of vectors; that of squares has no gradient at 0."""
    if ord is None or ord == 2:
        return _root_of_squares(np.asarray(x), axis, keepdims)
    return _vector_norm(_inexact(x), axis=axis, keepdims=keepdims, ord=ord)


def _root_of_squares(x, axis, keepdims):
    x = _inexact(x)
    squares = np.real(x * np.conj(x))
    return np.sqrt(np.sum(squares, axis=axis, keepdims=keepdims))
