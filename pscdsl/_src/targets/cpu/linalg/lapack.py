"""Factorisations and solutions by LAPACK's routines, which XLA calls on CPUs."""

from __future__ import annotations

from collections.abc import Sequence

from pscdsl._src.ir.hlo import TargetHlo
from pscdsl._src.ir.primitive import H, Types
from pscdsl._src.primitives.linalg.factorisations import Cholesky, TriangularSolve
from pscdsl._src.primitives.linalg.matrices import emit_triangle, succeeded, where_ok
from pscdsl._src.targets.forms import Translation
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import I32


@Translation
def potrf(
    primitive: Cholesky, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """The Cholesky factor; NaN where the routine fails."""
    (a,), (output,) = operands, outputs
    if 0 in hlo.shape(output.shape):
        return None
    batch = ArrayType(I32, output.shape[:-2])
    factor, info = hlo.lapack("potrf", (a,), (output, batch), uplo="L")
    factor = where_ok(hlo, succeeded(hlo, info, batch), factor, output)
    return (emit_triangle(hlo, factor, output, "GE"),)


@Translation
def trsm(
    primitive: TriangularSolve, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """The solution of systems with a triangular matrix."""
    if 0 in hlo.shape(outputs[0].shape):
        return None
    return hlo.lapack(
        "trsm",
        operands,
        outputs,
        side="L",
        uplo="L" if primitive.lower_triangle else "U",
        trans_x="T" if primitive.transposed else "N",
        diag="U" if primitive.unit_diagonal else "N",
    )
