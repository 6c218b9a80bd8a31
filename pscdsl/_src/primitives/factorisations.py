"""The Cholesky, LU and QR factorisations, the systems of equations they solve, determinants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import matrices as m
from pscdsl._src.primitives.elementwise import Select
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.matrices import (
    EPSILON,
    Composite,
    OfMatrices,
    emit_identity,
    emit_triangle,
    nan_like,
    one_by_one,
    square_type,
    vector_type,
    where_ok,
)
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast, Iota, Reshape, Transpose, at_most
from pscdsl._src.primitives.sorting import Sort
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size, minimum
from pscdsl.typing.dtypes import BOOL, I32

# The Cholesky, LU and QR factorisations, and the systems of equations they solve.


# Systems of equations with a triangular matrix.


@dataclass(frozen=True)
class TriangularSolve(OfMatrices, name="triangular_solve"):
    """X with `a @ x = b`, or `a^T @ x = b`; operands a and b, whose columns are right sides.

    Only the named triangle of `a` is read, without its diagonal if that counts as ones. A zero on
    the diagonal gives infinities and NaN.
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
        """Return the triangle that is read, transposed if necessary."""
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
    """Return a batch of right-hand sides, the last operand, as more columns of one."""
    *matrix, b = operands
    rank, columns = b.ndim, b.shape[-1]
    # [batch, *leading, rows, columns] to [*leading, rows, batch * columns] and back
    inside = Transpose((*range(1, rank - 1), 0, rank - 1))(b)
    wide = Reshape((*b.shape[1:-1], size * columns))(inside)
    x = primitive(*matrix, wide)
    found = Reshape((*x.shape[:-1], size, columns))(x)
    return Transpose((rank - 2, *range(rank - 2), rank - 1))(found)


def substituted(a: NDArray, b: NDArray, lower: bool, unit_diagonal: bool) -> NDArray:
    """Return the solution by substitution; only the triangle is read."""
    size = a.shape[-1]
    x = b.copy()
    for i in range(size) if lower else reversed(range(size)):
        known = slice(0, i) if lower else slice(i + 1, size)
        x[..., i, :] -= np.matmul(a[..., i : i + 1, known], x[..., known, :])[..., 0, :]
        if not unit_diagonal:
            x[..., i, :] /= a[..., i, i, None]
    return x


# The Cholesky factorisation of Hermitian positive definite matrices.


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


# The LU factorisation with partial pivoting, and systems of equations solved by it.


# Note [Factored operands]
# Primitives that use the factorisation of a matrix take the matrix, then the results of `Lu` for
# it. They are functions of the matrix: `evaluate` says so, and therefore tangents of the
# factorisation do not count. A derivative uses the same factorisation again, to any order.


@dataclass(frozen=True)
class Lu(OfMatrices, name="lu"):
    """Square matrices as `a[permutation] = L @ U`; results lu, pivots, permutation.

    L has ones on its diagonal and is stored below that of U. The pivots (i32) are the rows by which
    each row was replaced, in order. A singular matrix has a zero on the diagonal of U.
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
        return below + above, None, None

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
        factors = [operand for operand in operands[:3] if isinstance(operand, Value)]
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
    """Refuse operands that cannot be the factorisation of a matrix."""
    primitive.require_square(facts, a)
    wanted = vector_type(a, a.shape[-1]).with_dtype(I32)
    given = ((lu, a), *((type_, wanted) for type_ in rows))
    for each, like in given:
        if (
            each.dtype is not like.dtype
            or each.rank != like.rank
            or not all(map(facts.equal, each.shape, like.shape))
        ):
            primitive.ill_typed(f"{each} is not of a factorisation of {a}")


def by_factors(lu: Value, permutation: Value, b: Value, *, transposed: bool) -> Value:
    """Return the solution of a system of equations, or of that with the transposed matrix."""
    lower = TriangularSolve(lower_triangle=True, transposed=transposed, unit_diagonal=True)
    upper = TriangularSolve(lower_triangle=False, transposed=transposed)
    if transposed:
        return _rows(lower(lu, upper(lu, b)), _inverse(permutation))
    return upper(lu, lower(lu, _rows(b, permutation)))


def _rows(x: Value, permutation: Value) -> Value:
    """Return the rows of matrices in another order."""
    rank = x.ndim
    if at_most(x.builder.facts, 1, x.shape[-2]):
        places = Reshape((*permutation.shape, 1))(permutation)
        return Gather((rank - 2,), rank - 2)(x, places)
    shape = (*permutation.shape, permutation.shape[-1])  # of none there may be no places
    row = Broadcast(shape, tuple(range(rank - 1)))(permutation)
    column = x.builder.bind(Iota(shape, rank - 1, I32), ())[0]
    return m.product(m.cast(e.equal(row, column), x.dtype), x)


def _inverse(permutation: Value) -> Value:
    """Return the permutation that leads back."""
    last = permutation.ndim - 1
    counts = permutation.builder.bind(Iota(permutation.shape, last, I32), ())[0]
    return Sort(last).bind(permutation, counts)[1]


def _permutation(hlo: Hlo, pivots: H, rows: ArrayType) -> H:
    """Return the order of rows after the exchanges of rows, one after the other."""
    last, count = rows.rank - 1, rows.shape[-1]
    assert isinstance(count, int)
    scalar = ArrayType(I32)
    if not last:
        return _exchange(hlo, pivots, rows, count)
    one = rows.with_shape(rows.shape[:-1])
    (place,) = hlo.op("iota", (), (rows,), {"iota_dimension": last})
    zero = hlo.full(0, scalar)

    def picked(x: H, where: H) -> H:
        """Emit the element of each row where a mask holds, along the row."""
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


def _exchange(hlo: Hlo, pivots: H, rows: ArrayType, count: int) -> H:
    """Return the order for one matrix, by reading and writing two numbers in each step."""
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
    """Return the factorisation in NumPy; as in LAPACK, a pivot has the largest sum of parts."""
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


# The QR factorisation, by Householder reflections.


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
            reflectors = _widen(hlo, reflectors, q_type, width - columns)
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
        turning = below - m.adjoint(below)
        if a.dtype.is_complex:
            on = m.on_diagonal(within)
            turning = turning + m.halved(on - m.conjugated(on))
        q_tangent = moved + m.product(q, turning - within)
        r_tangent = m.product(m.adjoint(q), tangent) - m.product(turning, r)
        return q_tangent, m.upper(r_tangent)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        *batch, rows, columns = inputs[0].shape
        inner = minimum(rows, columns)
        each = inner * inner * (3 * rows + 3 * columns - 2 * inner) * 2 // 3
        return size_of(tuple(batch)) * each


def smaller(facts: Assumptions, a: Size, b: Size) -> Size:
    """Return the smaller of two sizes, by its own name where it is known which."""
    if at_most(facts, a, b):
        return a
    return b if at_most(facts, b, a) else minimum(a, b)


def _part(hlo: Hlo, x: H, type: ArrayType) -> H:  # noqa: A002
    """Emit the first rows and columns."""
    shape = hlo.shape(type.shape)
    if tuple(hlo.type_of(x).shape) == shape:
        return x
    return hlo.slice(x, [0] * len(shape), shape)


def _widen(hlo: Hlo, x: H, type: ArrayType, columns: int) -> H:  # noqa: A002
    """Emit a matrix with more columns of zeros."""
    none = [0] * (type.rank - 1)
    return hlo.pad(x, hlo.full(0, ArrayType(type.dtype)), (*none, 0), (*none, columns))


# Determinants and cofactors, from the LU factorisation; see Note [Factored operands].


class OfFactors(Composite):
    """A function of square matrices that have been factored; operands as `Lu` gives them."""

    def check(self, facts: Assumptions, operands: Types) -> ArrayType:
        """Return the matrix, if the others can be its factorisation."""
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
        return (_product(m.diagonal(lu)) * _sign(pivots, lu),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # The cofactors exist for singular matrices too, where `det(a) * inv(a)` does not.
        tangent = tangents[0]
        return (None if tangent is None else _inner_products(Cofactors()(*primals), tangent),)


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
        sign = Reduce("product", axes)(e.sign(on)) * _sign(pivots, lu)
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
        change = _inner_products(LuSolve(transposed=True)(a, lu, permutation, whole), tangent)
        if not a.dtype.is_complex:
            return None, change
        angle = e.imag(change)
        return sign * e.make_complex(m.zero(angle), angle), e.real(change)


@dataclass(frozen=True)
class Cofactors(OfFactors, name="cofactors"):
    """The matrix of cofactors, `det(a) * inv(a)^T`; operands a, lu, pivots, permutation.

    It exists for singular matrices too, to within rounding.
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
        tiny = largest * EPSILON[largest.dtype]
        tiny = m.cast(Broadcast(on.shape, tuple(range(last - 1)))(tiny), a.dtype)
        on = Select()(e.equal(on, m.zero(on)), tiny, on)
        regular = Select()(m.where_row(e.equal, lu), m.in_rows(on, lu), lu)
        det = _product(on) * _sign(pivots, lu)
        inverse = by_factors(regular, permutation, whole, transposed=True)
        everywhere = Broadcast(a.shape, tuple(range(last - 1)))
        scaled = everywhere(det) * inverse
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
        trace = _inner_products(solve(a, lu, permutation, whole), tangent)
        rest = solve(a, lu, permutation, m.product(m.turned(tangent), cofactors))
        first = Broadcast(cofactors.shape, tuple(range(a.ndim - 2)))(trace)
        return (first * cofactors - rest,)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape) * inputs[0].shape[-1] * 2


def _product(on: Value) -> Value:
    """Return the product of numbers along the last axis, whose parts may exceed the dtype's range.

    If they do, it is computed by logarithms, as NumPy computes a determinant.
    """
    axes = (on.ndim - 1,)
    plain = Reduce("product", axes)(on)
    size = e.absolute(plain)
    within = e.is_finite(size) & e.not_equal(size, 0)
    logarithm = Reduce("sum", axes)(e.log(e.absolute(on)))
    direction = Reduce("product", axes)(e.sign(on))
    scaled = direction * m.cast(e.exp(logarithm), on.dtype)
    return Select()(within, plain, scaled)


def _sign(pivots: Value, like: Value) -> Value:
    """1 or -1 in the dtype of a value: -1 for an odd number of exchanged rows."""
    axis = pivots.ndim - 1
    place = pivots.builder.bind(Iota(pivots.shape, axis, I32), ())[0]
    count = Reduce("sum", (axis,))(m.cast(e.not_equal(pivots, place), I32))
    odd = m.cast(count & 1, like.dtype)
    return 1 - 2 * odd


def _inner_products(x: Value, y: Value) -> Value:
    """Return the sum of the products of the elements of two matrices."""
    last = x.ndim - 1
    return Reduce("sum", (last - 1, last))(x * y)
