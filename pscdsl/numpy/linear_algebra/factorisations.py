"""Factorisations: Cholesky, QR, eigenvalues, singular values."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives.linalg import Cholesky, Eig, Eigh, Qr, Svd
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.linear_algebra.operands import hermitian_part, matrix, square
from pscdsl.numpy.linear_algebra.results import EighResult, EigResult, QRResult, SVDResult
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import Failure

# The functions of Hermitian matrices take the Hermitian part of what they are given, so that
# gradients are Hermitian too; NumPy reads one triangle.


@of_numbers("numpy.linalg.cholesky", together=("a",))
def cholesky(a: Value, /, *, upper: bool = False) -> Value:
    """The lower triangular L with `L @ L^H = a`, or the upper `L^H`; NaN if there is none."""
    factor = Cholesky()(hermitian_part(square("numpy.linalg.cholesky", a)))
    return m.adjoint(factor) if upper else factor


def _hermitian(name: str, a: Value, uplo: Any) -> Value:
    """The Hermitian part, or the Hermitian matrix with a triangle, if one is named."""
    x = square(name, a)
    if uplo is None:
        return hermitian_part(x)
    if uplo not in ("L", "U", "l", "u"):
        raise Failure(
            BadArguments(function=name, problem=f"takes 'L' or 'U', not {describe(uplo)}")
        )
    return x if uplo in ("L", "l") else m.hermitian(x, lower=False)


@of_numbers("numpy.linalg.eigh", together=("a",))
def eigh(a: Value, UPLO: Any = None) -> EighResult:
    """Eigenvalues in ascending order, and eigenvectors as columns."""
    return EighResult(Eigh().bind(_hermitian("numpy.linalg.eigh", a, UPLO)))


@of_numbers("numpy.linalg.eigvalsh", together=("a",))
def eigvalsh(a: Value, UPLO: Any = None) -> Value:
    """Eigenvalues in ascending order."""
    return Eigh(vectors=False)(_hermitian("numpy.linalg.eigvalsh", a, UPLO))


@of_numbers("numpy.linalg.eig", together=("a",))
def eig(a: Value) -> EigResult:
    """Eigenvalues, and eigenvectors of length 1 as columns; complex whatever the data."""
    return EigResult(Eig().bind(square("numpy.linalg.eig", a)))


@of_numbers("numpy.linalg.eigvals", together=("a",))
def eigvals(a: Value) -> Value:
    """Eigenvalues, complex whatever the data."""
    return Eig(vectors=False)(square("numpy.linalg.eigvals", a))


@of_numbers("numpy.linalg.qr", together=("a",))
def qr(a: Value, mode: str = "reduced") -> QRResult | Value:
    """Orthonormal columns Q and upper triangular R with `Q @ R = a`; modes reduced, complete, r."""
    name = "numpy.linalg.qr"
    if mode == "raw":
        raise Failure(NotSupported(what="`np.linalg.qr` in mode 'raw'"))
    if mode not in ("reduced", "complete", "r"):
        problem = f"takes the mode 'reduced', 'complete' or 'r', not {describe(mode)}"
        raise Failure(BadArguments(function=name, problem=problem))
    found = Qr(complete=mode == "complete").bind(matrix(name, a))
    return found[1] if mode == "r" else QRResult(found)


@of_numbers("numpy.linalg.svd", together=("a",))
def svd(
    a: Value, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> SVDResult | Value:
    """`a = U @ diag(S) @ Vh` with S in descending order; without `compute_uv`, S alone."""
    name = "numpy.linalg.svd"
    x = hermitian_part(square(name, a)) if hermitian else matrix(name, a)
    if not compute_uv:
        return Svd(vectors=False)(x)
    complete = full_matrices and not x.builder.facts.equal(*x.shape[-2:])
    return SVDResult(Svd(complete).bind(x))


@of_numbers("numpy.linalg.svdvals", together=("x",))
def svdvals(x: Value, /) -> Value:
    """The singular values in descending order."""
    return Svd(vectors=False)(matrix("numpy.linalg.svdvals", x))
