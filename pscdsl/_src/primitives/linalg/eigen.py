"""Eigenvalues and eigenvectors: of Hermitian matrices, and of square matrices without symmetry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.factorisations import Lu, LuSolve
from pscdsl._src.primitives.linalg.matrices import (
    OfMatrices,
    nan_like,
    one_by_one,
    square_type,
    succeeded,
    vector_type,
    where_ok,
)
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32

# Eigenvalues and eigenvectors of square matrices without symmetry.


@dataclass(frozen=True)
class Eig(OfMatrices, name="eig"):
    """Eigenvalues in any order, and eigenvectors of length 1 as columns; results values, vectors.

    Both are complex, also where all eigenvalues are real.  Without `vectors`, the values alone.
    An iteration that does not end gives NaN.
    """

    vectors: bool = True

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (a,) = operands
        self.require_square(facts, a)
        whole = square_type(a).with_dtype(a.dtype.complex)
        values = vector_type(whole, a.shape[-1])
        return (values, whole) if self.vectors else (values,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (a,) = operands
        dtype = to_numpy(from_numpy(a.dtype).complex)

        def found(given: Sequence[NDArray]) -> Sequence[NDArray]:
            if not np.isfinite(given[0]).all():
                raise np.linalg.LinAlgError
            return [each.astype(dtype) for each in np.linalg.eig(given[0])]

        failed = nan_like(a.shape[:-1], dtype), nan_like(a.shape, dtype)
        return one_by_one(found, failed, a)[: 2 if self.vectors else 1]

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (a,), (given,), values = operands, inputs, outputs[0]
        if 0 in hlo.shape(values.shape):
            return [hlo.full(0, type_) for type_ in outputs]
        whole = given.with_dtype(values.dtype)
        batch = ArrayType(I32, given.shape[:-2])
        options = {"compute_left": "N", "compute_right": "V" if self.vectors else "N"}
        if given.dtype.is_complex:
            every: Types = (values, whole, whole, batch)
            found, _, vectors, info = hlo.lapack("geev", (a,), every, **options)
        else:
            part = values.with_dtype(given.dtype)
            every = (part, part, whole, whole, batch)
            real, imag, _, vectors, info = hlo.lapack("geev", (a,), every, **options)
            (found,) = hlo.op("complex", (real, imag), (values,))
        ok = succeeded(hlo, info, batch)
        results = where_ok(hlo, ok, found, values), where_ok(hlo, ok, vectors, whole)
        return results[: len(outputs)]

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        """The tangents of values need the vectors: one routine gives both."""
        outputs = Eig().bind(*primals)
        found = self.jvp(outputs, primals, tangents)
        return outputs[: len(found)], found

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # With M = V^-1 a' V, the values change by the diagonal of M, the vectors by V (F * M) as
        # those of `Eigh`, less what would change their lengths.
        (values, vectors), (tangent,) = outputs, tangents
        assert tangent is not None
        lu, _, permutation = Lu().bind(vectors)
        moved = m.product(m.cast(tangent, vectors.dtype), vectors)
        within = LuSolve()(vectors, lu, permutation, moved)
        changes = m.diagonal(within)
        if not self.vectors:
            return (changes,)
        gaps = e.subtract(m.in_rows(values, vectors), m.in_columns(values, vectors))
        turned = m.product(vectors, e.multiply(m.inverse_where_nonzero(gaps), within))
        longer = m.real(m.column_sums(e.multiply(m.conjugated(vectors), turned)))
        return changes, e.subtract(turned, m.times_diagonal(vectors, longer))

    def cost(self, inputs: Types, outputs: Types) -> Size:
        # Golub and Van Loan, "Matrix Computations", 4th edition, section 7.5.6.
        return size_of(inputs[0].shape) * inputs[0].shape[-1] * (25 if self.vectors else 10)


# Eigenvalues and eigenvectors of Hermitian matrices.


@dataclass(frozen=True)
class Eigh(OfMatrices, name="eigh"):
    """Eigenvalues in ascending order, and eigenvectors as columns; results values, vectors.

    Only the lower triangle of the matrix is read, and of its diagonal the real part.  Without
    `vectors`, the values alone.  An iteration that does not end gives NaN.
    """

    vectors: bool = True

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (a,) = operands
        self.require_square(facts, a)
        values = vector_type(a, a.shape[-1]).with_dtype(a.dtype.real)
        return (values, square_type(a)) if self.vectors else (values,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (a,) = operands
        failed = nan_like(a.shape[:-1], np.real(a).dtype), nan_like(a.shape, a.dtype)
        found = one_by_one(lambda given: np.linalg.eigh(given[0]), failed, a)
        return found if self.vectors else found[:1]

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (a,), (given,), values = operands, inputs, outputs[0]
        if 0 in hlo.shape(values.shape):
            return (hlo.full(0, values), a)[: len(outputs)]
        batch = ArrayType(I32, given.shape[:-2])
        mode = "V" if self.vectors else "N"
        vectors, found, info = hlo.lapack(
            "syevd", (a,), (given, values, batch), mode=mode, uplo="L"
        )
        ok = succeeded(hlo, info, batch)
        results = where_ok(hlo, ok, found, values), where_ok(hlo, ok, vectors, given)
        return results[: len(outputs)]

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        """The tangents of values need the vectors: one routine gives both."""
        outputs = Eigh().bind(*primals)
        found = self.jvp(outputs, primals, tangents)
        count = 2 if self.vectors else 1
        return outputs[:count], found[:count]

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # With M = V^H a' V, the values change by the diagonal of M, the vectors by V (F * M) with
        # F_ij = 1 / (w_j - w_i).  Vectors of equal values have no derivative, and do not move with
        # each other; nor do complex vectors change their phase.
        (values, vectors), (tangent,) = outputs, tangents
        assert tangent is not None
        moved = m.product(m.hermitian(tangent), vectors)
        if not self.vectors:
            return (m.real(m.column_sums(e.multiply(m.conjugated(vectors), moved))),)
        within = m.product(m.adjoint(vectors), moved)
        gaps = e.subtract(m.in_rows(values, vectors), m.in_columns(values, vectors))
        turning = e.multiply(m.inverse_where_nonzero(gaps), within)
        return m.real(m.diagonal(within)), m.product(vectors, turning)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        each = size_of(inputs[0].shape) * inputs[0].shape[-1]
        return each * 9 if self.vectors else each * 4 // 3
