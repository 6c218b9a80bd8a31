"""Factorisations of matrices and what is computed from them, by LAPACK.

Matrices stand in the last two axes, batches along leading ones; dtypes are f32, f64, c64, c128.
"""

from pscdsl._src.primitives.linalg.determinants import Cofactors, Determinant, LogDeterminant
from pscdsl._src.primitives.linalg.eigen import Eig, Eigh
from pscdsl._src.primitives.linalg.factorisations import Cholesky, Lu, LuSolve, Qr, TriangularSolve
from pscdsl._src.primitives.linalg.svd import LeastSquares, PseudoInverse, Svd

__all__ = [
    "Cholesky",
    "Cofactors",
    "Determinant",
    "Eig",
    "Eigh",
    "LeastSquares",
    "LogDeterminant",
    "Lu",
    "LuSolve",
    "PseudoInverse",
    "Qr",
    "Svd",
    "TriangularSolve",
]
