"""Factorisations and systems: small ones written out, large ones in parts or by LAPACK."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.hlo import TargetHlo
from pscdsl._src.ir.primitive import H, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.elementwise import Select
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.factorisations import Cholesky, TriangularSolve
from pscdsl._src.primitives.linalg.matrices import emit_triangle, succeeded, where_ok
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast, Concatenate, Reshape, Slice
from pscdsl._src.targets.forms import Context, Form, Translation
from pscdsl._src.targets.rewriting import defined
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import I32

if TYPE_CHECKING:
    from pscdsl._src.primitives.linalg.factorisations import Lu


# Factorisations and systems of small real matrices, written out element by element.
#
# LAPACK's routines are called once for each matrix, and a loop that calls them is no native
# function. The sizes of operands are numbers here. Larger ones, and many of them, are done in
# `many`.


SMALL_MATRICES = Form(
    "small_matrices",
    "Small matrices are factored, and systems with them solved, without LAPACK: 2000 of 4x4 in "
    "0.15 to 0.3 of the time, of 8x8 in 0.4; one of 4x4 in a loop in 0.1, of 8x8 in 0.2.",
)
LARGEST = 4
"""The largest matrices that are written out; there are operations for each element, ..."""
LARGEST_IN_LOOPS = 6
"""... and the largest one in each step of a loop, unless its rows are exchanged; ..."""
LARGEST_OF_ONE_COLUMN = 8
"""... and there with one right-hand side."""
MANY = 512
"""So many matrices are worth it outside of loops."""
FEW_COLUMNS = 4
"""With more right-hand sides than these LAPACK does well."""


def is_small(
    here: Context,
    a: ArrayType,
    columns: int = 1,
    *,
    pivots: bool = False,
    largest: int = LARGEST_OF_ONE_COLUMN,
) -> bool:
    """Whether matrices are better written out; `columns` is how many right-hand sides there are.

    With one of these in a loop a matrix may be as large as the `largest`.
    """
    *batch, size, _ = numbers(a.shape)
    count = prod(batch)
    if a.dtype.is_complex or count == 0 or not 0 < columns <= FEW_COLUMNS:
        return False
    if not here.in_loop and count < MANY:
        return False
    if not here.in_loop or count > 1 or pivots:
        return 0 < size <= LARGEST
    return 0 < size <= (largest if columns == 1 else LARGEST_IN_LOOPS)


@SMALL_MATRICES.rewrite
def written_out_cholesky(
    primitive: Cholesky, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """The factor of small matrices, element by element."""
    return defined(cholesky, primitive, inputs) if is_small(here, outputs[0]) else None


@SMALL_MATRICES.rewrite
def portable_cholesky(
    primitive: Cholesky, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """The same where devices differ in what larger ones take."""
    fits = is_small(here, outputs[0], largest=LARGEST_IN_LOOPS)
    return defined(cholesky, primitive, inputs) if fits else None


@SMALL_MATRICES.rewrite
def written_out_solve(
    primitive: TriangularSolve, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """Systems with small triangular matrices, row by row."""
    *_, columns = numbers(inputs[1].shape)
    return defined(substitution, primitive, inputs) if is_small(here, inputs[0], columns) else None


@SMALL_MATRICES.rewrite
def portable_solve(
    primitive: TriangularSolve, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """The same where devices differ in what larger ones take."""
    *_, columns = numbers(inputs[1].shape)
    fits = is_small(here, inputs[0], columns, largest=LARGEST_IN_LOOPS)
    return defined(substitution, primitive, inputs) if fits else None


@SMALL_MATRICES.rewrite
def written_out_lu(primitive: Lu, inputs: Types, outputs: Types, here: Context) -> Block | None:
    """The factorisation of small matrices, element by element."""
    return defined(lu, primitive, inputs) if is_small(here, outputs[0], pivots=True) else None


def cholesky(_: Cholesky, operands: Sequence[Value]) -> Sequence[Value]:
    """The factor column by column; NaN where an element of the diagonal is no positive number."""
    (a,) = operands
    size = _count(a)
    factor: dict[tuple[int, int], Value] = {}
    fine: Value | None = None
    for j in range(size):
        rest = _less(_element(a, j, j), [(factor[j, k], factor[j, k]) for k in range(j)])
        positive = e.greater(rest, m.zero(rest))
        fine = positive if fine is None else e.bitwise_and(fine, positive)
        factor[j, j] = e.sqrt(rest)
        for i in range(j + 1, size):
            products = [(factor[i, k], factor[j, k]) for k in range(j)]
            factor[i, j] = e.divide(_less(_element(a, i, j), products), factor[j, j])
    assert fine is not None
    nan, none = a.builder.literal(float("nan"), a.dtype), a.builder.full(0.0, a.shape[:-2], a.dtype)
    kept = {place: Select()(fine, each, nan) for place, each in factor.items()}
    return (_matrix([[kept.get((i, j), none) for j in range(size)] for i in range(size)]),)


def substitution(solve: TriangularSolve, operands: Sequence[Value]) -> Sequence[Value]:
    """The rows of the solution, one after the other."""
    a, b = operands
    size, lower = _count(a), solve.lower_triangle != solve.transposed
    rows: dict[int, Value] = {}
    for i in range(size) if lower else reversed(range(size)):
        known = range(i) if lower else range(i + 1, size)
        places = [(k, i) if solve.transposed else (i, k) for k in known]
        factors = [_wide(_element(a, *place), b) for place in places]
        rest = _less(_row(b, i), list(zip(factors, [rows[k] for k in known], strict=True)))
        rows[i] = rest if solve.unit_diagonal else e.divide(rest, _wide(_element(a, i, i), b))
    return (_stacked([rows[i] for i in range(size)], b.ndim - 2),)


def lu(_: Lu, operands: Sequence[Value]) -> Sequence[Value]:
    """Elimination with the largest pivot of each column; rows are exchanged by selection."""
    (a,) = operands
    size, batch = _count(a), a.shape[:-2]
    rows = [_row(a, i) for i in range(size)]
    order = [a.builder.full(i, batch, I32) for i in range(size)]
    (column,) = a.builder.bind(Iota(rows[0].shape, a.ndim - 2, I32), ())
    pivots: list[Value] = []
    for k in range(size):
        best, pivot = e.absolute(_at(rows[k], k)), a.builder.full(k, batch, I32)
        for i in range(k + 1, size):
            mine = e.absolute(_at(rows[i], k))
            unknown = e.bitwise_and(e.not_equal(mine, mine), e.equal(best, best))
            better = e.bitwise_or(e.greater(mine, best), unknown)  # as the reference has it
            best = Select()(better, mine, best)
            pivot = Select()(better, a.builder.literal(i, I32), pivot)
        pivots.append(pivot)
        row, place = rows[k], order[k]
        for i in range(k + 1, size):
            here = e.equal(pivot, a.builder.literal(i, I32))
            everywhere = _wide_as(here, row)
            old_row, old_place = rows[i], order[i]
            rows[i] = Select()(everywhere, rows[k], old_row)
            order[i] = Select()(here, order[k], old_place)
            row, place = Select()(everywhere, old_row, row), Select()(here, old_place, place)
        rows[k], order[k] = row, place
        top = _at(row, k)
        one = a.builder.literal(1.0, a.dtype)
        top = Select()(e.equal(top, m.zero(top)), one, top)
        right = e.greater(column, a.builder.literal(k, I32))
        here = e.equal(column, a.builder.literal(k, I32))
        for i in range(k + 1, size):
            factor = _wide_as(e.divide(_at(rows[i], k), top), row)
            rest = e.subtract(rows[i], e.multiply(factor, row))
            rows[i] = Select()(here, factor, Select()(right, rest, rows[i]))
    last = a.ndim - 2
    return _stacked(rows, last), _stacked(pivots, last), _stacked(order, last)


def _count(a: Value) -> int:
    size = a.shape[-1]
    assert isinstance(size, int)
    return size


def _less(x: Value, products: Sequence[tuple[Value, Value]]) -> Value:
    """What is left after subtracting products."""
    for left, right in products:
        x = e.subtract(x, e.multiply(left, right))
    return x


def _element(a: Value, i: int, j: int) -> Value:
    """An element of each matrix."""
    batch = a.shape[:-2]
    none = (0,) * len(batch)
    ones = (1,) * a.ndim
    return Reshape(batch)(Slice((*none, i, j), (*batch, i + 1, j + 1), ones)(a))


def _row(a: Value, i: int) -> Value:
    """A row of each matrix."""
    *batch, _, columns = a.shape
    none = (0,) * len(batch)
    found = Slice((*none, i, 0), (*batch, i + 1, columns), (1,) * a.ndim)(a)
    return Reshape((*batch, columns))(found)


def _at(row: Value, i: int) -> Value:
    """An element of each row."""
    *batch, _ = row.shape
    found = Slice((*(0 for _ in batch), i), (*batch, i + 1), (1,) * row.ndim)(row)
    return Reshape(tuple(batch))(found)


def _wide(x: Value, b: Value) -> Value:
    """A number for each matrix, as rows of right-hand sides."""
    shape = (*b.shape[:-2], b.shape[-1])
    return Broadcast(shape, tuple(range(x.ndim)))(x)


def _wide_as(x: Value, row: Value) -> Value:
    return Broadcast(row.shape, tuple(range(x.ndim)))(x)


def _stacked(parts: Sequence[Value], axis: int) -> Value:
    """Arrays side by side along a new axis."""
    shape = parts[0].shape
    each = [Reshape((*shape[:axis], 1, *shape[axis:]))(part) for part in parts]
    return each[0] if len(each) == 1 else Concatenate(axis)(*each)


def _matrix(elements: Sequence[Sequence[Value]]) -> Value:
    """Matrices of the elements of each place."""
    last = elements[0][0].ndim
    return _stacked([_stacked(row, last) for row in elements], last)


# Systems with one large triangular matrix and one right-hand side, block by block.
#
# LAPACK takes matrices by columns, so XLA copies the whole matrix before the call.  Here only the
# blocks on the diagonal are copied; what is beside them is multiplied where it lies.


ONE_COLUMN = Form(
    "one_column",
    "A system with one large triangular matrix and one right-hand side is solved by blocks, "
    "without a copy of the matrix: 1000x1000 in 0.45 of the time, 5000x5000 in 0.5.",
)
SMALLEST = 512
"""Copies of smaller matrices cost little."""
BLOCKS = 16
"""How many blocks are on the diagonal."""


@ONE_COLUMN.rewrite
def solved_by_blocks(
    primitive: TriangularSolve, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """A system with one right-hand side, by blocks of the matrix."""
    *batch, size, columns = numbers(outputs[0].shape)
    if prod(batch) != 1 or columns != 1 or size < SMALLEST:
        return None
    return defined(by_blocks, primitive, inputs)


def by_blocks(solve: TriangularSolve, operands: Sequence[Value]) -> Sequence[Value]:
    """The solution, from the end at which it begins; each block needs those before it."""
    a, b = operands
    *_, size = numbers(a.shape)
    a, left = Reshape((size, size))(a), Reshape((size,))(b)
    width = -(-size // BLOCKS)
    blocks = [(start, min(start + width, size)) for start in range(0, size, width)]
    forward = solve.lower_triangle != solve.transposed
    solved: list[Value] = []
    for start, stop in blocks if forward else blocks[::-1]:
        rest = _part(left, start, stop)
        if solved:
            known = solved[0] if len(solved) == 1 else Concatenate(0)(*solved)
            low, high = (0, start) if forward else (stop, size)
            rest = e.subtract(rest, _products(solve, a, known, (start, stop), (low, high)))
        count = stop - start
        square = Slice((start, start), (stop, stop), (1, 1))(a)
        found = Reshape((count,))(solve(square, Reshape((count, 1))(rest)))
        solved = [*solved, found] if forward else [found, *solved]
    whole = Concatenate(0)(*solved)
    return (Reshape(b.shape)(whole),)


def _products(
    solve: TriangularSolve,
    a: Value,
    known: Value,
    rows: tuple[int, int],
    columns: tuple[int, int],
) -> Value:
    """What the known part of the solution adds to the rows; XLA sums it up where `a` lies."""
    if solve.transposed:
        rows, columns = columns, rows
    part = Slice((rows[0], columns[0]), (rows[1], columns[1]), (1, 1))(a)
    axis = 0 if solve.transposed else 1
    shape = part.shape
    factor = Broadcast(shape, (axis,))(known)
    return Reduce("sum", (axis,))(e.multiply(part, factor))


def _part(x: Value, start: int, stop: int) -> Value:
    return Slice((start,), (stop,), (1,))(x)


# Factorisations and solutions by LAPACK's routines, which XLA calls on CPUs.


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
