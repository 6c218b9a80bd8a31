"""The QR factorisation, by Householder reflections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.base import OfMatrices, emit_identity, emit_triangle, one_by_one
from pscdsl._src.primitives.linalg.triangular import TriangularSolve
from pscdsl._src.primitives.shaping import at_most
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size, minimum


@dataclass(frozen=True)
class Qr(OfMatrices, name="qr"):
    """Q with orthonormal columns and upper triangular R with `Q @ R = a`; results q, r.

    Of a matrix [m n] with k = min(m, n), Q is [m k] and R [k n]; [m m] and [m n] if `complete`.
    """

    complete: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (a,) = operands
        self.require_matrix(a)
        *batch, rows, columns = a.shape
        inner = rows if self.complete else smaller(facts, rows, columns)
        return a.with_shape((*batch, rows, inner)), a.with_shape((*batch, inner, columns))

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        def factored(given: Sequence[NDArray]) -> Sequence[NDArray]:
            return np.linalg.qr(given[0], "complete" if self.complete else "reduced")

        return one_by_one(factored, (), operands[0])

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (a,), (given,), (q_type, r_type) = operands, inputs, outputs
        shape = hlo.shape(given.shape)
        if 0 in shape:
            return emit_identity(hlo, q_type), hlo.full(0, r_type)
        *batch, rows, columns = shape
        inner = min(rows, columns)
        tau = given.with_shape((*batch, inner))
        packed, scales = hlo.lapack("geqrf", (a,), (given, tau))
        r = emit_triangle(hlo, _part(hlo, packed, r_type), r_type, "LE")
        width = hlo.shape(q_type.shape)[-1]
        reflectors = _part(hlo, packed, given.with_shape((*batch, rows, min(width, columns))))
        if width > columns:
            reflectors = _widened(hlo, reflectors, q_type, width - columns)
        (q,) = hlo.lapack("orgqr", (reflectors, scales), (q_type,))
        return q, r

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # For square R_1, the first columns of R: with C = Q^H a_1' R_1^-1, the tangent of Q is
        # a_1' R_1^-1 + Q (W - C), where W is antihermitian with the lower triangle of C; that of R
        # is Q^H a' - W R.  The diagonal of R is real, so that of W is imaginary.
        (q, r), (a,), (tangent,) = outputs, primals, tangents
        assert tangent is not None
        facts, (rows, columns) = a.builder.facts, a.shape[-2:]
        if self.complete and not at_most(facts, rows, columns):
            what = "derivatives of `qr` in mode 'complete' of more rows than columns"
            instead = "use the mode 'reduced': the columns that complete Q may be any"
            raise Failure(NotSupported(what=what, instead=instead))
        inner = smaller(facts, rows, columns)
        solve = TriangularSolve(lower_triangle=False, transposed=True)
        first = m.first_columns(r, inner)
        moved = m.turned(solve(first, m.turned(m.first_columns(tangent, inner))))
        within = m.product(m.adjoint(q), moved)
        below = m.strictly_lower(within)
        turning = e.subtract(below, m.adjoint(below))
        if a.dtype.is_complex:
            on = m.on_diagonal(within)
            turning = e.add(turning, m.halved(e.subtract(on, m.conjugated(on))))
        q_tangent = e.add(moved, m.product(q, e.subtract(turning, within)))
        r_tangent = e.subtract(m.product(m.adjoint(q), tangent), m.product(turning, r))
        return q_tangent, m.upper(r_tangent)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        *batch, rows, columns = inputs[0].shape
        inner = minimum(rows, columns)
        each = inner * inner * (3 * rows + 3 * columns - 2 * inner) * 2 // 3
        return size_of(tuple(batch)) * each


def smaller(facts: Assumptions, a: Size, b: Size) -> Size:
    """The smaller of two sizes, by its own name where it is known which."""
    if at_most(facts, a, b):
        return a
    return b if at_most(facts, b, a) else minimum(a, b)


def _part(hlo: Hlo, x: H, type: ArrayType) -> H:  # noqa: A002
    """The first rows and columns."""
    shape = hlo.shape(type.shape)
    if tuple(hlo.type_of(x).shape) == shape:
        return x
    return hlo.slice(x, [0] * len(shape), shape)


def _widened(hlo: Hlo, x: H, type: ArrayType, columns: int) -> H:  # noqa: A002
    """A matrix with more columns of zeros."""
    none = [0] * (type.rank - 1)
    return hlo.pad(x, hlo.full(0, ArrayType(type.dtype)), (*none, 0), (*none, columns))
