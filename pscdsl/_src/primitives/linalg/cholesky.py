"""The Cholesky factorisation of Hermitian positive definite matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.elementwise import Select
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.base import (
    OfMatrices,
    emit_triangle,
    nan_like,
    one_by_one,
    square_type,
    where_ok,
)
from pscdsl._src.primitives.linalg.triangular import TriangularSolve
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL


@dataclass(frozen=True)
class Cholesky(OfMatrices, name="cholesky"):
    """The lower triangular L with positive diagonal and `L @ L^H = a`.

    Of the matrix only the lower triangle is read, and of its diagonal the real part.  One that is
    not positive definite gives NaN in the lower triangle.
    """

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (a,) = operands
        self.require_square(facts, a)
        return (square_type(a),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        (a,) = operands
        failed = np.tril(nan_like(a.shape, a.dtype))
        return one_by_one(lambda given: (np.linalg.cholesky(*given),), (failed,), a)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (a,), (output,) = operands, outputs
        if 0 in hlo.shape(output.shape):
            return operands
        (factor,) = hlo.op("cholesky", (a,), (output,), {"lower": True})
        triangle = emit_triangle(hlo, factor, output, "GE")
        batch, rank = output.with_shape(output.shape[:-2]), output.rank
        known = hlo.compare("EQ", triangle, triangle)
        (ok,) = hlo.reduce(
            (known,),
            (hlo.full(True, ArrayType(BOOL)),),
            (rank - 2, rank - 1),
            (batch.with_dtype(BOOL),),
            lambda left, right: (hlo.binary("and", left[0], right[0]),),
        )
        return (emit_triangle(hlo, where_ok(hlo, ok, triangle, output), output, "GE"),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # Iain Murray, "Differentiation of the Cholesky decomposition" (2016): the tangent is
        # L phi(L^-1 a' L^-H), where phi takes the lower triangle and halves the diagonal.
        (factor,), (tangent,) = outputs, tangents
        assert tangent is not None
        solve = TriangularSolve(lower_triangle=True)
        half = solve(factor, m.hermitian(tangent))
        whole = solve(factor, m.adjoint(half))
        on = m.where_row(e.equal, whole)
        phi = m.lower(Select()(on, m.halved(whole), whole))
        return (m.product(factor, phi),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        size = inputs[0].shape[-1]
        return size_of(inputs[0].shape) * size // 3
