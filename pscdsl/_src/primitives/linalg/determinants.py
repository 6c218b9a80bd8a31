"""Determinants and cofactors, from the LU factorisation; see Note [Factored operands]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Evaluation, NDArray, Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.elementwise import Select
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.factorisations import (
    LuSolve,
    by_factors,
    factored,
    require_factors,
)
from pscdsl._src.primitives.linalg.matrices import Composite, one_by_one, square_type
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import F32, F64, I32


class OfFactors(Composite):
    """A function of square matrices that have been factored; operands as `Lu` gives them."""

    def check(self, facts: Assumptions, operands: Types) -> ArrayType:
        """The matrix, if the others can be its factorisation."""
        a, lu, pivots, permutation = operands
        require_factors(self, facts, a, lu, pivots, permutation)
        return a

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[1].shape[:-1]) * 2


@dataclass(frozen=True)
class Determinant(OfFactors, name="determinant"):
    """The determinant; operands a, lu, pivots, permutation."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a = self.check(facts, operands)
        return (a.with_shape(a.shape[:-2]),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return one_by_one(lambda given: (np.linalg.det(*given),), (), operands[0])

    def define(self, *operands: Value) -> Sequence[Value]:
        _, lu, pivots, _ = operands
        return (e.multiply(_product(m.diagonal(lu)), _sign(pivots, lu)),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # The cofactors are there for singular matrices too, where `det(a) * inv(a)` is not.
        tangent = tangents[0]
        return (None if tangent is None else _paired(Cofactors()(*primals), tangent),)


@dataclass(frozen=True)
class LogDeterminant(OfFactors, name="log_determinant"):
    """Sign and logarithm of the size of the determinant; operands a, lu, pivots, permutation."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a = self.check(facts, operands)
        sign = a.with_shape(a.shape[:-2])
        return sign, sign.with_dtype(a.dtype.real)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return one_by_one(lambda given: np.linalg.slogdet(*given), (), operands[0])

    def define(self, *operands: Value) -> Sequence[Value]:
        _, lu, pivots, _ = operands
        on = m.diagonal(lu)
        axes = (on.ndim - 1,)
        sign = e.multiply(Reduce("product", axes)(e.sign(on)), _sign(pivots, lu))
        return sign, Reduce("sum", axes)(e.log(e.absolute(on)))

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # The logarithm of the determinant changes by trace(inv(a) @ a'): its real part is that of
        # the size, its imaginary part turns the sign.
        (sign, _), (a, lu, _, permutation), tangent = outputs, primals, tangents[0]
        if tangent is None:
            return None, None
        whole = m.identity(a.builder, square_type(a.type).shape, a.dtype)
        change = _paired(LuSolve(transposed=True)(a, lu, permutation, whole), tangent)
        if not a.dtype.is_complex:
            return None, change
        angle = e.imag(change)
        return e.multiply(sign, e.make_complex(m.zero(angle), angle)), e.real(change)


@dataclass(frozen=True)
class Cofactors(OfFactors, name="cofactors"):
    """The matrix of cofactors, `det(a) * inv(a)^T`; operands a, lu, pivots, permutation.

    It is there for singular matrices too, to within rounding.
    """

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return (square_type(self.check(facts, operands)),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return super().evaluate(here, operands[0], *factored(operands[0]))

    def define(self, *operands: Value) -> Sequence[Value]:
        # Cofactors are polynomials of the entries: a zero on the diagonal of U may be replaced by
        # one that is as small as rounding errors, and then they are those of a regular matrix.
        a, lu, pivots, permutation = operands
        whole = m.identity(a.builder, a.shape, a.dtype)
        if 0 in a.shape:
            return (a,)
        if a.shape[-1] == 1:
            return (whole,)
        last = a.ndim - 1
        largest = Reduce("maximum", (last - 1, last))(e.absolute(m.upper(lu)))
        on = m.diagonal(lu)
        tiny = e.multiply(largest, EPSILON[largest.dtype])
        tiny = m.cast(Broadcast(on.shape, tuple(range(last - 1)))(tiny), a.dtype)
        on = Select()(e.equal(on, m.zero(on)), tiny, on)
        regular = Select()(m.where_row(e.equal, lu), m.in_rows(on, lu), lu)
        det = e.multiply(_product(on), _sign(pivots, lu))
        inverse = by_factors(regular, permutation, whole, transposed=True)
        everywhere = Broadcast(a.shape, tuple(range(last - 1)))
        scaled = e.multiply(everywhere(det), inverse)
        nothing = everywhere(e.equal(largest, m.zero(largest)))
        return (Select()(nothing, m.zero(a), scaled),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # With W = inv(a)^T the cofactors are det(a) W, and W' = -W a'^T W.
        (cofactors,), (a, lu, _, permutation), tangent = outputs, primals, tangents[0]
        if tangent is None:
            return (None,)
        solve = LuSolve(transposed=True)
        whole = m.identity(a.builder, square_type(a.type).shape, a.dtype)
        trace = _paired(solve(a, lu, permutation, whole), tangent)
        rest = solve(a, lu, permutation, m.product(m.turned(tangent), cofactors))
        first = Broadcast(cofactors.shape, tuple(range(a.ndim - 2)))(trace)
        return (e.subtract(e.multiply(first, cofactors), rest),)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape) * inputs[0].shape[-1] * 2


EPSILON = {each: float(np.finfo(kind).eps) for each, kind in ((F32, np.float32), (F64, np.float64))}
"""The distance from 1 to the next number."""


def _product(on: Value) -> Value:
    """The product of numbers along the last axis, whose parts may be beyond the dtype's range.

    Of such parts it is computed by logarithms, as NumPy computes a determinant.
    """
    axes = (on.ndim - 1,)
    plain = Reduce("product", axes)(on)
    size = e.absolute(plain)
    within = e.bitwise_and(e.is_finite(size), e.not_equal(size, 0))
    logarithm = Reduce("sum", axes)(e.log(e.absolute(on)))
    direction = Reduce("product", axes)(e.sign(on))
    scaled = e.multiply(direction, m.cast(e.exp(logarithm), on.dtype))
    result: Value = Select()(within, plain, scaled)
    return result


def _sign(pivots: Value, like: Value) -> Value:
    """1 or -1 in the dtype of a value: -1 for an odd number of exchanged rows."""
    axis = pivots.ndim - 1
    place = pivots.builder.bind(Iota(pivots.shape, axis, I32), ())[0]
    count = Reduce("sum", (axis,))(m.cast(e.not_equal(pivots, place), I32))
    odd = m.cast(e.bitwise_and(count, 1), like.dtype)
    result: Value = 1 - 2 * odd
    return result


def _paired(x: Value, y: Value) -> Value:
    """The sum of the products of the elements of two matrices."""
    last = x.ndim - 1
    return Reduce("sum", (last - 1, last))(e.multiply(x, y))
