"""Factorisations of matrices and what is computed from them, by LAPACK.

Matrices stand in the last two axes, batches along leading ones; dtypes are f32, f64, c64, c128.
"""

from pscdsl.primitives.linalg.cholesky import Cholesky
from pscdsl.primitives.linalg.determinants import Cofactors, Determinant, LogDeterminant
from pscdsl.primitives.linalg.eig import Eig
from pscdsl.primitives.linalg.eigh import Eigh
from pscdsl.primitives.linalg.least_squares import LeastSquares, PseudoInverse
from pscdsl.primitives.linalg.lu import Lu, LuSolve
from pscdsl.primitives.linalg.qr import Qr
from pscdsl.primitives.linalg.svd import Svd
from pscdsl.primitives.linalg.triangular import TriangularSolve

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
