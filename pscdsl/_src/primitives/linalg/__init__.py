"""Factorisations of matrices and what is computed from them, by LAPACK.

Matrices stand in the last two axes, batches along leading ones; dtypes are f32, f64, c64, c128.
"""

from pscdsl._src.primitives.linalg.cholesky import Cholesky
from pscdsl._src.primitives.linalg.determinants import Cofactors, Determinant, LogDeterminant
from pscdsl._src.primitives.linalg.eig import Eig
from pscdsl._src.primitives.linalg.eigh import Eigh
from pscdsl._src.primitives.linalg.least_squares import LeastSquares, PseudoInverse
from pscdsl._src.primitives.linalg.lu import Lu, LuSolve
from pscdsl._src.primitives.linalg.qr import Qr
from pscdsl._src.primitives.linalg.svd import Svd
from pscdsl._src.primitives.linalg.triangular import TriangularSolve

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
