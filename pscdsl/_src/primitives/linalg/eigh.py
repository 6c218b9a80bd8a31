"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.base import (
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
