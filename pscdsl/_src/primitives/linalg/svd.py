"""The singular value decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.base import (
    OfMatrices,
    emit_identity,
    nan_like,
    one_by_one,
    succeeded,
    vector_type,
    where_ok,
)
from pscdsl._src.primitives.linalg.qr import smaller
from pscdsl._src.primitives.shaping import at_most
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size, minimum
from pscdsl.typing.dtypes import I32


@dataclass(frozen=True)
class Svd(OfMatrices, name="svd"):
    """`a = U @ diag(s) @ V^H` with s real and in descending order; results U, s, V^H.

    Of a matrix [m n] with k = min(m, n), U is [m k] and V^H [k n]; [m m] and [n n] if `complete`.
    Without `vectors`, s alone.  An iteration that does not end gives NaN.
    """

    complete: bool = False
    vectors: bool = True

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (a,) = operands
        self.require_matrix(a)
        *batch, rows, columns = a.shape
        inner = smaller(facts, rows, columns)
        values = vector_type(a, inner).with_dtype(a.dtype.real)
        if not self.vectors:
            return (values,)
        left, right = (rows, columns) if self.complete else (inner, inner)
        return a.with_shape((*batch, rows, left)), values, a.with_shape((*batch, right, columns))

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (a,) = operands
        *batch, rows, columns = a.shape
        inner = min(rows, columns)
        left, right = (rows, columns) if self.complete else (inner, inner)
        failed = (
            nan_like((*batch, rows, left), a.dtype),
            nan_like((*batch, inner), np.real(a).dtype),
            nan_like((*batch, right, columns), a.dtype),
        )
        found = one_by_one(lambda given: np.linalg.svd(given[0], self.complete), failed, a)
        return found if self.vectors else found[1:2]

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (a,), (given,) = operands, inputs
        *batch, rows, columns = hlo.shape(given.shape)
        if 0 in (*batch, rows, columns):
            if not self.vectors:
                return (hlo.full(0, outputs[0]),)
            left, values, right = outputs
            return emit_identity(hlo, left), hlo.full(0, values), emit_identity(hlo, right)
        inner = min(rows, columns)
        if self.vectors:
            types = outputs
        else:
            types = (
                given.with_shape((*batch, rows, inner)),
                outputs[0],
                given.with_shape((*batch, inner, columns)),
            )
        left, values, right = types
        plain = ArrayType(I32, tuple(batch))
        mode = "N" if not self.vectors else "A" if self.complete else "S"
        _, s, u, vh, info = hlo.lapack(
            "gesdd", (a,), (given, values, left, right, plain), mode=mode
        )
        ok = succeeded(hlo, info, plain)
        found = [where_ok(hlo, ok, x, each) for x, each in zip((u, s, vh), types, strict=True)]
        return found if self.vectors else found[1:2]

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        """The tangents of values need the vectors: one routine gives both."""
        if self.vectors:
            return super().differentiate(primals, tangents)
        outputs = replace(self, vectors=True, complete=False).bind(*primals)
        found = self.jvp(outputs, primals, tangents)
        return outputs[1:2], found[1:2]

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # With M = U^H a' V the values change by the real part of its diagonal.  The vectors turn
        # within their span by F * (M s + s M^H) and F * (s M + M^H s), where F_ij is
        # 1 / (s_j^2 - s_i^2), or 0 as in `Eigh`; the imaginary part of the
        # diagonal turns U; what a' adds outside of a span is divided by the value.
        (u, s, vh), (a,), (tangent,) = outputs, primals, tangents
        assert tangent is not None
        facts, (rows, columns) = a.builder.facts, a.shape[-2:]
        wide, tall = at_most(facts, rows, columns), at_most(facts, columns, rows)
        if self.vectors and self.complete and not (wide and tall):
            what = "derivatives of `svd` with full matrices, of a matrix that is not square"
            instead = "use `full_matrices=False`: the columns that complete U or V may be any"
            raise Failure(NotSupported(what=what, instead=instead))
        v = m.adjoint(vh)
        right = m.product(tangent, v)
        if not self.vectors:
            return None, m.real(m.column_sums(e.multiply(m.conjugated(u), right))), None
        within = m.product(m.adjoint(u), right)
        changes = m.real(m.diagonal(within))
        after, before = m.times_diagonal(within, s), m.diagonal_times(s, within)
        gaps = e.multiply(
            e.subtract(m.in_rows(s, within), m.in_columns(s, within)),
            e.add(m.in_rows(s, within), m.in_columns(s, within)),
        )
        factor, inverse = m.inverse_where_nonzero(gaps), m.inverse_where_nonzero(s)
        turning = e.multiply(factor, e.add(after, m.adjoint(after)))
        if a.dtype.is_complex:
            on = m.on_diagonal(within)
            angle = m.halved(e.subtract(on, m.conjugated(on)))
            turning = e.add(turning, m.times_diagonal(angle, inverse))
        u_tangent = m.product(u, turning)
        v_tangent = m.product(v, e.multiply(factor, e.add(before, m.adjoint(before))))
        if not wide:
            outside = e.subtract(right, m.product(u, within))
            u_tangent = e.add(u_tangent, m.times_diagonal(outside, inverse))
        if not tall:
            left = m.product(m.adjoint(tangent), u)
            outside = e.subtract(left, m.product(v, m.adjoint(within)))
            v_tangent = e.add(v_tangent, m.times_diagonal(outside, inverse))
        return u_tangent, changes, m.adjoint(v_tangent)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        # Golub and Van Loan, "Matrix Computations", 4th edition, figure 8.6.1.
        *batch, rows, columns = inputs[0].shape
        inner = minimum(rows, columns)
        outer = rows + columns - inner
        each = outer * inner * inner
        more = inner * inner * inner
        if not self.vectors:
            each, more = each * 4, more * 4 // 3
        elif self.complete:
            each, more = outer * outer * inner * 4 + each * 8, more * 9
        else:
            each, more = each * 14, more * 8
        return size_of(tuple(batch)) * (each + more)
