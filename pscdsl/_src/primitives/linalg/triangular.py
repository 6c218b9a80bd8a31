"""Systems of equations with a triangular matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.base import OfMatrices
from pscdsl._src.primitives.shaping import Reshape, Transpose
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size


@dataclass(frozen=True)
class TriangularSolve(OfMatrices, name="triangular_solve"):
    """X with `a @ x = b`, or `a^T @ x = b`; operands a and b, whose columns are solved for.

    Only the named triangle of `a` is read, and not its diagonal where that counts as ones.  A zero
    on the diagonal gives infinities and NaN.
    """

    lower_triangle: bool
    transposed: bool = False
    unit_diagonal: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a, b = operands
        self.require_square(facts, a)
        self.require_columns(facts, a, b)
        return (b,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        a, b = operands
        if self.transposed:
            a = a.swapaxes(-1, -2)
        with np.errstate(all="ignore"):
            return (substituted(a, b, self.lower_triangle != self.transposed, self.unit_diagonal),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        if 0 in hlo.shape(outputs[0].shape):
            return operands[1:]
        turn = "TRANSPOSE" if self.transposed else "NO_TRANSPOSE"
        attributes = {
            "left_side": True,
            "lower": self.lower_triangle,
            "unit_diagonal": self.unit_diagonal,
            "transpose_a": hlo.parse_attribute(f"#stablehlo<transpose {turn}>"),
        }
        return hlo.op("triangular_solve", operands, outputs, attributes)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (x,), (a, _), (moved, change) = outputs, primals, tangents
        if moved is not None:
            part = m.product(self._read(moved), x)
            change = -part if change is None else change - part
        assert change is not None
        return (self(a, change),)

    def _read(self, a: Value) -> Value:
        """The triangle that is read, turned if it is."""
        if self.unit_diagonal:
            part = m.kept(e.greater if self.lower_triangle else e.less, a)
        else:
            part = m.lower(a) if self.lower_triangle else m.upper(a)
        return m.turned(part) if self.transposed else part

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (a, _) = cotangents, operands
        assert cotangent is not None
        assert isinstance(a, Value)
        return None, replace(self, transposed=not self.transposed)(a, cotangent)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        if batched[0]:
            return super().batch(operands, batched, size)
        return (many_columns(self, operands, size),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[1].shape) * inputs[0].shape[-1]


def many_columns(primitive: OfMatrices, operands: Sequence[Value], size: Size) -> Value:
    """A batch of right-hand sides, the last operand, as more columns of one."""
    *matrix, b = operands
    rank, columns = b.ndim, b.shape[-1]
    # [batch, *leading, rows, columns] to [*leading, rows, batch * columns] and back
    inside = Transpose((*range(1, rank - 1), 0, rank - 1))(b)
    wide = Reshape((*b.shape[1:-1], size * columns))(inside)
    x = primitive(*matrix, wide)
    found = Reshape((*x.shape[:-1], size, columns))(x)
    return Transpose((rank - 2, *range(rank - 2), rank - 1))(found)


def substituted(a: NDArray, b: NDArray, lower: bool, unit_diagonal: bool) -> NDArray:
    """The solution by substitution; only the triangle is read."""
    size = a.shape[-1]
    x = b.copy()
    for i in range(size) if lower else reversed(range(size)):
        known = slice(0, i) if lower else slice(i + 1, size)
        x[..., i, :] -= np.matmul(a[..., i : i + 1, known], x[..., known, :])[..., 0, :]
        if not unit_diagonal:
            x[..., i, :] /= a[..., i, i, None]
    return x
