"""Pseudo-inverses and least squares, from the singular value decomposition.

Derivatives hold where the rank does not change: G. H. Golub and V. Pereyra, "The differentiation
of pseudo-inverses and nonlinear least squares problems whose variables separate" (1973).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.elementwise import Select
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.base import Composite
from pscdsl._src.primitives.linalg.svd import Svd
from pscdsl._src.primitives.linalg.triangular import many_columns
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast, same_sizes
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size


class OfSingularValues(Composite):
    """Functions that leave out the singular values up to a cutoff relative to the largest.

    The cutoff is an operand: a number for each matrix.
    """

    def check(self, facts: Assumptions, a: ArrayType, cutoff: ArrayType) -> None:
        """Refuse what is no matrix with a cutoff."""
        self.require_matrix(a)
        if (
            cutoff.dtype is not a.dtype.real
            or cutoff.rank != a.rank - 2
            or not same_sizes(facts, cutoff.shape, a.shape[:-2])
        ):
            self.ill_typed(f"the cutoff of {a} is {cutoff}")


@dataclass(frozen=True)
class PseudoInverse(OfSingularValues, name="pseudo_inverse"):
    """The Moore-Penrose inverse; operands a [m n] and a cutoff, result [n m]."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a, cutoff = operands
        self.check(facts, a, cutoff)
        *batch, rows, columns = a.shape
        return (a.with_shape((*batch, columns, rows)),)

    def define(self, *operands: Value) -> Sequence[Value]:
        a, cutoff = operands
        u, s, vh = Svd().bind(a)
        scaled = m.times_diagonal(m.adjoint(vh), _inverted(s, cutoff))
        return (m.product(scaled, m.adjoint(u)),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (p,), (a, _), (tangent, _) = outputs, primals, tangents
        if tangent is None:
            return (None,)
        turned, right = m.adjoint(tangent), m.adjoint(p)
        direct = m.product(p, m.product(tangent, p))
        rows = m.product(m.product(p, right), _outside(turned, a, p))
        left = m.product(turned, m.product(right, p))
        columns = e.subtract(left, m.product(p, m.product(a, left)))
        return (e.subtract(e.add(rows, columns), direct),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return _cost(inputs[0])


@dataclass(frozen=True)
class LeastSquares(OfSingularValues, name="least_squares"):
    """The shortest x of those with the smallest `|a @ x - b|`; operands a, a cutoff, b.

    a is [m n], b [m k], x [n k].
    """

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a, cutoff, b = operands
        self.check(facts, a, cutoff)
        self.require_columns(facts, a, b)
        return (b.with_shape((*b.shape[:-2], a.shape[-1], b.shape[-1])),)

    def define(self, *operands: Value) -> Sequence[Value]:
        a, cutoff, b = operands
        u, s, vh = Svd().bind(a)
        inside = m.diagonal_times(_inverted(s, cutoff), m.product(m.adjoint(u), b))
        return (m.product(m.adjoint(vh), inside),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # As for `p @ b`, where p is the pseudo-inverse.
        (x,), (a, cutoff, b), (moved, _, change) = outputs, primals, tangents
        if moved is None and change is None:
            return (None,)
        p = PseudoInverse()(a, cutoff)
        if moved is None:
            assert change is not None
            return (m.product(p, change),)
        part = m.product(moved, x)
        direct = m.product(p, -part if change is None else e.subtract(change, part))
        turned, right = m.adjoint(moved), m.adjoint(p)
        residual = e.subtract(b, m.product(a, x))
        rows = m.product(p, m.product(right, m.product(turned, residual)))
        left = m.product(turned, m.product(right, x))
        columns = e.subtract(left, m.product(p, m.product(a, left)))
        return (e.add(direct, e.add(rows, columns)),)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        if any(batched[:2]):
            return super().batch(operands, batched, size)
        return (many_columns(self, operands, size),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return _cost(inputs[0])


def _inverted(s: Value, cutoff: Value) -> Value:
    """`1 / s`, and 0 where s is not above the cutoff."""
    last = s.ndim - 1
    largest = Reduce("maximum", (last,))(s)
    bound = Broadcast(s.shape, tuple(range(last)))(e.multiply(cutoff, largest))
    above = e.greater(s, bound)
    one = s.builder.literal(1, s.dtype)
    inverse = Select()(above, e.divide(one, Select()(above, s, one)), m.zero(s))
    return Select()(e.not_equal(s, s), s, inverse)  # what has failed is NaN


def _outside(turned: Value, a: Value, p: Value) -> Value:
    """`a'^H @ (1 - a @ p)`."""
    result: Value = e.subtract(turned, m.product(m.product(turned, a), p))
    return result


def _cost(a: ArrayType) -> Size:
    return Svd().cost((a,), ())
