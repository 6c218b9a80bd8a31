"""The LU factorisation with partial pivoting, and systems of equations solved by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.elementwise import Select
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.base import (
    Composite,
    OfMatrices,
    nan_like,
    one_by_one,
    square_type,
    vector_type,
)
from pscdsl._src.primitives.linalg.triangular import TriangularSolve, many_columns
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast, Reshape, at_most
from pscdsl._src.primitives.sorting import Sort
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32

# Note [Factored operands]
# Primitives that are computed from the factorisation of a matrix take the matrix, then what `Lu`
# gives for it.  They are functions of the matrix: this is what `evaluate` says, and why tangents
# of the factorisation do not count.  A derivative uses the same factorisation again, to any order.


@dataclass(frozen=True)
class Lu(OfMatrices, name="lu"):
    """Square matrices as `a[permutation] = L @ U`; results lu, pivots, permutation.

    L has ones on its diagonal and stands below that of U.  The pivots (i32) tell by which row
    each row was replaced, in order.  A singular matrix has a zero on the diagonal of U.
    """

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (a,) = operands
        self.require_square(facts, a)
        rows = vector_type(a, a.shape[-1]).with_dtype(I32)
        return square_type(a), rows, rows

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return factored(operands[0])

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (lu, rows, _) = outputs
        shape = hlo.shape(rows.shape)
        if 0 in shape:
            return operands[0], hlo.full(0, rows), hlo.full(0, rows)
        batch = rows.with_shape(rows.shape[:-1])
        found, pivots, _ = hlo.lapack("getrf", operands, (lu, rows, batch))
        pivots = hlo.binary("subtract", pivots, hlo.full(1, rows))
        return found, pivots, _permutation(hlo, pivots, rows.with_shape(shape))

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # With M = L^-1 P a' U^-1: L' = L tril(M, -1) and U' = triu(M) U.
        (lu, _, permutation), (tangent,) = outputs, tangents
        assert tangent is not None
        left = TriangularSolve(lower_triangle=True, unit_diagonal=True)
        right = TriangularSolve(lower_triangle=False, transposed=True)
        half = left(lu, _rows(tangent, permutation))
        middle = m.turned(right(lu, m.turned(half)))
        unit = Select()(m.where_row(e.equal, lu), lu.builder.literal(1, lu.dtype), m.lower(lu))
        below = m.product(unit, m.strictly_lower(middle))
        above = m.product(m.upper(middle), m.upper(lu))
        return e.add(below, above), None, None

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape) * inputs[0].shape[-1] * 2 // 3


@dataclass(frozen=True)
class LuSolve(Composite, name="lu_solve"):
    """X with `a @ x = b`, or `a^T @ x = b`; operands a, lu, permutation, b.

    See Note [Factored operands].  A singular matrix gives NaN.
    """

    transposed: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a, lu, permutation, b = operands
        require_factors(self, facts, a, lu, permutation)
        self.require_columns(facts, a, b)
        return (b,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        a, _, _, b = operands
        if self.transposed:
            a = a.swapaxes(-1, -2)
        failed = nan_like(b.shape, b.dtype)
        return one_by_one(lambda given: (np.linalg.solve(*given),), (failed,), a, b)

    def define(self, *operands: Value) -> Sequence[Value]:
        _, lu, permutation, b = operands
        if 0 in b.shape:
            return (b,)
        x = by_factors(lu, permutation, b, transposed=self.transposed)
        singular = Reduce("any", (lu.ndim - 2,))(e.equal(m.diagonal(lu), m.zero(lu)))
        nan = b.builder.literal(float("nan"), b.dtype.real)
        none = e.make_complex(nan, nan) if b.dtype.is_complex else nan
        everywhere = Broadcast(b.shape, tuple(range(b.ndim - 2)))(singular)
        return (Select()(everywhere, none, x),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (x,), (*factors, _), (moved, *_, change) = outputs, primals, tangents
        if moved is not None:
            part = m.product(m.turned(moved) if self.transposed else moved, x)
            change = -part if change is None else change - part
        return (None if change is None else self(*factors, change),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,) = cotangents
        factors = [each for each in operands[:3] if isinstance(each, Value)]
        assert cotangent is not None
        return None, None, None, replace(self, transposed=not self.transposed)(*factors, cotangent)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        if any(batched[:3]):
            return super().batch(operands, batched, size)
        return (many_columns(self, operands, size),), (True,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[3].shape) * inputs[0].shape[-1] * 2


def require_factors(
    primitive: OfMatrices, facts: Assumptions, a: ArrayType, lu: ArrayType, *rows: ArrayType
) -> None:
    """Refuse what cannot be the factorisation of a matrix."""
    primitive.require_square(facts, a)
    wanted = vector_type(a, a.shape[-1]).with_dtype(I32)
    given = ((lu, a), *((each, wanted) for each in rows))
    for each, like in given:
        if (
            each.dtype is not like.dtype
            or each.rank != like.rank
            or not all(map(facts.equal, each.shape, like.shape))
        ):
            primitive.ill_typed(f"{each} is not of a factorisation of {a}")


def by_factors(lu: Value, permutation: Value, b: Value, *, transposed: bool) -> Value:
    """The solution of a system of equations, or of that with the transposed matrix."""
    lower = TriangularSolve(lower_triangle=True, transposed=transposed, unit_diagonal=True)
    upper = TriangularSolve(lower_triangle=False, transposed=transposed)
    if transposed:
        return _rows(lower(lu, upper(lu, b)), _inverse(permutation))
    return upper(lu, lower(lu, _rows(b, permutation)))


def _rows(x: Value, permutation: Value) -> Value:
    """The rows of matrices in another order."""
    rank = x.ndim
    if at_most(x.builder.facts, 1, x.shape[-2]):
        places = Reshape((*permutation.shape, 1))(permutation)
        return Gather((rank - 2,), rank - 2)(x, places)
    shape = (*permutation.shape, permutation.shape[-1])  # of none there may be no places
    row = Broadcast(shape, tuple(range(rank - 1)))(permutation)
    column = x.builder.bind(Iota(shape, rank - 1, I32), ())[0]
    return m.product(m.cast(e.equal(row, column), x.dtype), x)


def _inverse(permutation: Value) -> Value:
    """The permutation that leads back."""
    last = permutation.ndim - 1
    counts = permutation.builder.bind(Iota(permutation.shape, last, I32), ())[0]
    return Sort(last).bind(permutation, counts)[1]


def _permutation(hlo: Hlo, pivots: H, rows: ArrayType) -> H:
    """What the exchange of rows, one after the other, makes of their order."""
    last, count = rows.rank - 1, rows.shape[-1]
    assert isinstance(count, int)
    scalar = ArrayType(I32)
    if not last:
        return _exchanged(hlo, pivots, rows, count)
    one = rows.with_shape(rows.shape[:-1])
    (place,) = hlo.op("iota", (), (rows,), {"iota_dimension": last})
    zero = hlo.full(0, scalar)

    def picked(x: H, where: H) -> H:
        """The element of each row where a mask holds, along the row."""
        chosen = hlo.select(where, x, hlo.full(0, rows))
        add = hlo.reduce(
            (chosen,), (zero,), (last,), (one,), lambda a, b: (hlo.binary("add", a[0], b[0]),)
        )
        return hlo.broadcast(add[0], rows, range(last))

    def step(state: Sequence[H]) -> Sequence[H]:
        index, order = state
        here = hlo.compare("EQ", place, hlo.broadcast(index, rows, ()))
        there = hlo.compare("EQ", place, picked(pivots, here))
        first, second = picked(order, here), picked(order, there)
        changed = hlo.select(there, first, hlo.select(here, second, order))
        return hlo.binary("add", index, hlo.full(1, scalar)), changed

    end = hlo.full(count, scalar)
    return hlo.while_loop((zero, place), lambda state: hlo.compare("LT", state[0], end), step)[1]


def _exchanged(hlo: Hlo, pivots: H, rows: ArrayType, count: int) -> H:
    """The same for one matrix, by reading and writing two numbers in each step."""
    scalar, single = ArrayType(I32), ArrayType(I32, (1,))
    (order,) = hlo.op("iota", (), (rows,), {"iota_dimension": 0})
    size = {"slice_sizes": hlo.i64_array((1,))}

    def at(x: H, place: H) -> H:
        return hlo.op("dynamic_slice", (x, place), (single,), size)[0]

    def step(state: Sequence[H]) -> Sequence[H]:
        here, order = state
        there = hlo.reshape(at(pivots, here), scalar)
        first, second = at(order, here), at(order, there)
        (order,) = hlo.op("dynamic_update_slice", (order, second, here), (rows,))
        (order,) = hlo.op("dynamic_update_slice", (order, first, there), (rows,))
        return hlo.binary("add", here, hlo.full(1, scalar)), order

    start, end = hlo.full(0, scalar), hlo.full(count, scalar)
    return hlo.while_loop((start, order), lambda state: hlo.compare("LT", state[0], end), step)[1]


def factored(a: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """The factorisation in NumPy; the pivot is the largest by the sum of its parts, as LAPACK's."""
    size = a.shape[-1]
    lu: NDArray = a.reshape((prod(a.shape[:-2]), size, size)).copy()
    each = np.arange(len(lu))
    pivots = np.zeros((len(lu), size), np.int32)
    order = np.tile(np.arange(size, dtype=np.int32), (len(lu), 1))
    with np.errstate(all="ignore"):
        for k in range(size):
            column = lu[:, k:, k]
            pivot = k + np.argmax(np.abs(np.real(column)) + np.abs(np.imag(column)), axis=1)
            pivots[:, k] = pivot
            for moved in (lu, order):
                moved[each, k], moved[each, pivot] = moved[each, pivot], moved[each, k].copy()
            top = lu[:, k, None, k]
            lu[:, k + 1 :, k] /= np.where(top == 0, 1, top)
            lu[:, k + 1 :, k + 1 :] -= lu[:, k + 1 :, k, None] * lu[:, k, None, k + 1 :]
    rows = a.shape[:-1]
    return np.reshape(lu, a.shape), np.reshape(pivots, rows), np.reshape(order, rows)
