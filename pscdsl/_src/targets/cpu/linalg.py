"""Factorisations and systems: small ones written out or side by side, others by LAPACK."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import H, TargetHlo, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import matrices as m
from pscdsl._src.primitives.elementwise import Bitcast, Select
from pscdsl._src.primitives.factorisations import Cholesky, TriangularSolve
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate
from pscdsl._src.primitives.matrices import emit_triangle, succeeded, where_ok
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast, Concatenate, Iota, Reshape, Slice, Transpose
from pscdsl._src.primitives.while_loop import While
from pscdsl._src.targets.forms import Context, Form, FormTranslation
from pscdsl._src.targets.rewriting import defined
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import BOOL, F32, F64, I32, I64

if TYPE_CHECKING:
    from pscdsl._src.primitives.factorisations import Lu, LuSolve


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
"""The largest matrices that are written out; the code grows with the number of elements."""
LARGEST_IN_LOOPS = 6
"""The largest matrix in each step of a loop, unless its rows are exchanged."""
LARGEST_OF_ONE_COLUMN = 8
"""The largest one there with one right-hand side."""
MANY = 512
"""The number of matrices from which writing them out pays outside of loops."""
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
    """Return whether it is better to write out matrices, with `columns` right-hand sides.

    `largest` bounds a matrix in a loop if it has one right-hand side.
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
    """Return the factor of small matrices, element by element."""
    return defined(cholesky, primitive, inputs) if is_small(here, outputs[0]) else None


@SMALL_MATRICES.rewrite
def portable_cholesky(
    primitive: Cholesky, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """Write out a small factorisation, for targets that differ in how they treat larger ones."""
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
    """Write out the solution of a small system, for targets that differ in larger ones."""
    *_, columns = numbers(inputs[1].shape)
    fits = is_small(here, inputs[0], columns, largest=LARGEST_IN_LOOPS)
    return defined(substitution, primitive, inputs) if fits else None


@SMALL_MATRICES.rewrite
def written_out_lu(primitive: Lu, inputs: Types, outputs: Types, here: Context) -> Block | None:
    """Return the factorisation of small matrices, element by element."""
    return defined(lu, primitive, inputs) if is_small(here, outputs[0], pivots=True) else None


def cholesky(_: Cholesky, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the factor column by column; NaN where a diagonal element is not positive."""
    (a,) = operands
    size = _count(a)
    factor: dict[tuple[int, int], Value] = {}
    fine: Value | None = None
    for j in range(size):
        rest = _less(_element(a, j, j), [(factor[j, k], factor[j, k]) for k in range(j)])
        positive = e.greater(rest, m.zero(rest))
        fine = positive if fine is None else fine & positive
        factor[j, j] = e.sqrt(rest)
        for i in range(j + 1, size):
            products = [(factor[i, k], factor[j, k]) for k in range(j)]
            factor[i, j] = _less(_element(a, i, j), products) / factor[j, j]
    assert fine is not None
    nan, none = a.builder.literal(float("nan"), a.dtype), a.builder.full(0.0, a.shape[:-2], a.dtype)
    kept = {place: Select()(fine, each, nan) for place, each in factor.items()}
    return (_matrix([[kept.get((i, j), none) for j in range(size)] for i in range(size)]),)


def substitution(solve: TriangularSolve, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the rows of the solution, one after the other."""
    a, b = operands
    size, lower = _count(a), solve.lower_triangle != solve.transposed
    rows: dict[int, Value] = {}
    for i in range(size) if lower else reversed(range(size)):
        known = range(i) if lower else range(i + 1, size)
        places = [(k, i) if solve.transposed else (i, k) for k in known]
        factors = [_wide(_element(a, *place), b) for place in places]
        rest = _less(_row(b, i), list(zip(factors, [rows[k] for k in known], strict=True)))
        rows[i] = rest if solve.unit_diagonal else rest / _wide(_element(a, i, i), b)
    return (_stack([rows[i] for i in range(size)], b.ndim - 2),)


def lu(_: Lu, operands: Sequence[Value]) -> Sequence[Value]:
    """Elimination with the largest pivot of each column; rows are exchanged by selection."""
    (a,) = operands
    size, batch = _count(a), a.shape[:-2]
    rows = [_row(a, i) for i in range(size)]
    order = [a.builder.full(i, batch, I32) for i in range(size)]
    (column,) = a.builder.bind(Iota(rows[0].shape, a.ndim - 2, I32), ())
    pivots: list[Value] = []
    for k in range(size):
        best, pivot = e.absolute(_row_element(rows[k], k)), a.builder.full(k, batch, I32)
        for i in range(k + 1, size):
            mine = e.absolute(_row_element(rows[i], k))
            unknown = e.not_equal(mine, mine) & e.equal(best, best)
            better = e.greater(mine, best) | unknown  # as the reference has it
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
        top = _row_element(row, k)
        one = a.builder.literal(1.0, a.dtype)
        top = Select()(e.equal(top, m.zero(top)), one, top)
        right = e.greater(column, a.builder.literal(k, I32))
        here = e.equal(column, a.builder.literal(k, I32))
        for i in range(k + 1, size):
            factor = _wide_as(_row_element(rows[i], k) / top, row)
            rest = rows[i] - factor * row
            rows[i] = Select()(here, factor, Select()(right, rest, rows[i]))
    last = a.ndim - 2
    return _stack(rows, last), _stack(pivots, last), _stack(order, last)


def _count(a: Value) -> int:
    size = a.shape[-1]
    assert isinstance(size, int)
    return size


def _less(x: Value, products: Sequence[tuple[Value, Value]]) -> Value:
    """Return `x` minus the sum of the products."""
    for left, right in products:
        x = x - left * right
    return x


def _element(a: Value, i: int, j: int) -> Value:
    """Return an element of each matrix."""
    batch = a.shape[:-2]
    none = (0,) * len(batch)
    ones = (1,) * a.ndim
    return Reshape(batch)(Slice((*none, i, j), (*batch, i + 1, j + 1), ones)(a))


def _row(a: Value, i: int) -> Value:
    """Return a row of each matrix."""
    *batch, _, columns = a.shape
    none = (0,) * len(batch)
    found = Slice((*none, i, 0), (*batch, i + 1, columns), (1,) * a.ndim)(a)
    return Reshape((*batch, columns))(found)


def _row_element(row: Value, i: int) -> Value:
    """Return an element of each row."""
    *batch, _ = row.shape
    found = Slice((*(0 for _ in batch), i), (*batch, i + 1), (1,) * row.ndim)(row)
    return Reshape(tuple(batch))(found)


def _wide(x: Value, b: Value) -> Value:
    """Return a number for each matrix, as rows of right-hand sides."""
    shape = (*b.shape[:-2], b.shape[-1])
    return Broadcast(shape, tuple(range(x.ndim)))(x)


def _wide_as(x: Value, row: Value) -> Value:
    return Broadcast(row.shape, tuple(range(x.ndim)))(x)


def _stack(parts: Sequence[Value], axis: int) -> Value:
    """Arrays side by side along a new axis."""
    shape = parts[0].shape
    each = [Reshape((*shape[:axis], 1, *shape[axis:]))(part) for part in parts]
    return each[0] if len(each) == 1 else Concatenate(axis)(*each)


def _matrix(elements: Sequence[Sequence[Value]]) -> Value:
    """Matrices of the elements of each place."""
    last = elements[0][0].ndim
    return _stack([_stack(row, last) for row in elements], last)


# Factorisations and solutions by LAPACK's routines, which XLA calls on CPUs.


@FormTranslation
def potrf(
    primitive: Cholesky, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit the Cholesky factor; NaN where the routine fails."""
    (a,), (output,) = operands, outputs
    if 0 in hlo.shape(output.shape):
        return None
    batch = ArrayType(I32, output.shape[:-2])
    factor, info = hlo.lapack("potrf", (a,), (output, batch), uplo="L")
    factor = where_ok(hlo, succeeded(hlo, info, batch), factor, output)
    return (emit_triangle(hlo, factor, output, "GE"),)


@FormTranslation
def trsm(
    primitive: TriangularSolve, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H] | None:
    """Emit the solution of systems with a triangular matrix."""
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


# Many small matrices side by side: each operation is done for all of them together.


# Many small matrices side by side: each operation is done for a few of them together.
#
# A part of the batch is transposed so that its matrices are along the last axis; elements of
# matrices are then vectors, and their computation is a loop that becomes a native function. The
# sizes of operands are numbers here.


BYTES = 13 << 10
"""With more bytes in a part of an operand the loop would be no native function."""


def in_lanes(
    function: Callable[[Sequence[Value]], Sequence[Value]],
    operands: Sequence[Value],
    rank: int,
    results: Sequence[ArrayType],
    lanes: int,
) -> Sequence[Value]:
    """Apply a function of arrays whose last axis holds `lanes` elements of a batch.

    Fewer lanes compile faster, more may run faster. The first `rank` axes of operands and results
    are those of the batch.
    """
    batch = _numbers(operands[0].type)[:rank]
    count = prod(batch)
    most = max(prod(_numbers(x.type)[rank:]) * x.dtype.bits // 8 for x in operands)
    lanes = min(count, lanes, BYTES // most // 8 * 8)
    here = operands[0].builder
    given = [Reshape((count, *x.shape[rank:]))(x) for x in operands]
    if count == lanes:
        found: Sequence[Value] = [_first(x) for x in function([_last(x) for x in given])]
    else:
        wanted = [(count, *type_.shape[rank:]) for type_ in results]
        empty = [
            here.full(0, shape, type_.dtype) for shape, type_ in zip(wanted, results, strict=True)
        ]

        def step(index: Value, made: Sequence[Value]) -> Sequence[Value]:
            start = index * lanes  # the last part may overlap with the one before
            parts = [part(x, 0, start, lanes) for x in given]
            new = [_first(x) for x in function([_last(x) for x in parts])]
            return [changed(x, 0, start, y) for x, y in zip(made, new, strict=True)]

        found = repeated(-(-count // lanes), empty, step)
    return [Reshape(type_.shape)(x) for x, type_ in zip(found, results, strict=True)]


def repeated(
    count: int,
    carry: Sequence[Value],
    step: Callable[[Value, Sequence[Value]], Sequence[Value]],
) -> Sequence[Value]:
    """Return the carry after `count` steps; `step` also gets the step's number."""
    program = carry[0].builder.program
    state = [program.current.literal(0, I32), *carry]
    with program.inside() as inner:
        index, *rest = params = [inner.parameter(each.type) for each in state]
        body, captured = inner.finish(params, [index + 1, *step(index, rest)])
    with program.inside() as inner:
        params = [inner.parameter(each.type) for each in state]
        cond, _ = inner.finish(params, [e.less(params[0], count)])
    primitive = While(cond, body, 0, len(captured), count)
    return program.current.bind(primitive, (*captured, *state))[1:]


def part(x: Value, axis: int, start: Value, size: int = 1) -> Value:
    """Return `size` elements along an axis, from a computed start."""
    sizes = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    return DynamicSlice(sizes)(x, *_places(x, axis, start))


def changed(x: Value, axis: int, start: Value, new: Value) -> Value:
    """Return an array with a part replaced, from a computed place on along an axis."""
    return DynamicUpdate()(x, new, *_places(x, axis, start))


def places(x: Value, axis: int) -> Value:
    """Return the place of each element along an axis."""
    return x.builder.bind(Iota(x.shape, axis, I32), ())[0]


def _places(x: Value, axis: int, start: Value) -> list[Value]:
    zero = x.builder.literal(0, I32)
    return [start if each == axis else zero for each in range(x.ndim)]


def _last(x: Value) -> Value:
    return Transpose((*range(1, x.ndim), 0))(x)


def _first(x: Value) -> Value:
    return Transpose((x.ndim - 1, *range(x.ndim - 1)))(x)


def _numbers(of: ArrayType) -> tuple[int, ...]:
    return tuple([size for size in of.shape if isinstance(size, int)])


# Factorisations of many small real matrices, and systems with them, for a vector of them together.
#
# Here the elements of a batch are the last axis: `a[row, column]` is a vector.


BITS = {F32: I32, F64: I64}
"""Integers of the same width."""
LANES_OF_FACTORS, LANES_OF_TRIANGLES, LANES_OF_PIVOTS = 16, 24, 32
"""The number of matrices that are treated together."""
LEAST, LEAST_WITH_PIVOTS, LARGEST_IN_LANES = 5, 4, 8
"""The sizes of matrices; smaller ones are written out element by element."""
MOST_COLUMNS = 8
"""With more right-hand sides than these LAPACK does well."""


def fits(here: Context, a: ArrayType, columns: int = 1, *, pivots: bool = False) -> bool:
    """Return whether it is better to treat matrices side by side, with `columns` right-hand sides.

    In a loop this includes a single matrix: a loop that calls LAPACK is no native function.
    """
    *batch, size, _ = numbers(a.shape)
    count = prod(batch)
    if a.dtype.is_complex or count < (1 if here.in_loop else MANY):
        return False
    if not 0 < columns <= MOST_COLUMNS:
        return False
    if pivots:
        least = LEAST if here.in_loop else LEAST_WITH_PIVOTS
    else:
        least = LEAST if count > 1 or columns > FEW_COLUMNS else LARGEST_IN_LOOPS + 1
    return least <= size <= LARGEST_IN_LANES


@SMALL_MATRICES.rewrite
def cholesky_in_lanes(
    primitive: Cholesky, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """Return the factors of many matrices side by side."""
    return defined(root_in_lanes, primitive, inputs) if fits(here, outputs[0]) else None


@SMALL_MATRICES.rewrite
def solve_in_lanes(
    primitive: TriangularSolve, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """Systems with many triangular matrices side by side."""
    *_, columns = numbers(inputs[1].shape)
    return (
        defined(substitution_in_lanes, primitive, inputs)
        if fits(here, inputs[0], columns)
        else None
    )


@SMALL_MATRICES.rewrite
def lu_in_lanes(primitive: Lu, inputs: Types, outputs: Types, here: Context) -> Block | None:
    """Return the factorisations of many matrices side by side."""
    return (
        defined(elimination_in_lanes, primitive, inputs)
        if fits(here, outputs[0], pivots=True)
        else None
    )


@SMALL_MATRICES.rewrite
def lu_solve_in_lanes(
    primitive: LuSolve, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """Systems with many matrices side by side, unless both substitutions are written out."""
    a, *_, b = inputs
    *_, columns = numbers(b.shape)
    written_out = here.in_loop and is_small(here, a, columns)
    if written_out or not fits(here, a, columns, pivots=True):
        return None
    return defined(lu_solve, primitive, inputs)


def root_in_lanes(_: Cholesky, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the factor column by column; NaN where a diagonal element is not positive."""
    (a,) = operands
    rank = a.ndim - 2
    return in_lanes(lambda parts: (_factor(*parts),), operands, rank, (a.type,), LANES_OF_FACTORS)


def substitution_in_lanes(solve: TriangularSolve, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the rows of the solution, one after the other."""
    _, b = operands

    def solved(parts: Sequence[Value]) -> Sequence[Value]:
        a, b = parts
        return (_substitute(a, b, solve.lower_triangle, solve.transposed, solve.unit_diagonal),)

    return in_lanes(solved, operands, b.ndim - 2, (b.type,), LANES_OF_TRIANGLES)


def elimination_in_lanes(_: Lu, operands: Sequence[Value]) -> Sequence[Value]:
    """Elimination with the largest pivot of each column; lu, pivots and permutation."""
    (a,) = operands
    rows = a.type.with_shape(a.shape[:-1]).with_dtype(I32)
    results = (a.type, rows, rows)
    return in_lanes(
        lambda parts: _eliminate(*parts), operands, a.ndim - 2, results, LANES_OF_PIVOTS
    )


def lu_solve(solve: LuSolve, operands: Sequence[Value]) -> Sequence[Value]:
    """Return both substitutions and the exchange of rows; NaN where a matrix is singular."""
    _, *rest = operands
    b = rest[-1]

    def solved(parts: Sequence[Value]) -> Sequence[Value]:
        found, order, x = parts
        if solve.transposed:
            x = _substitute(found, x, lower=False, transposed=True, unit=False)
            x = _substitute(found, x, lower=True, transposed=True, unit=True)
            x = _exchange_rows(x, order, back=True)
        else:
            x = _exchange_rows(x, order, back=False)
            x = _substitute(found, x, lower=True, transposed=False, unit=True)
            x = _substitute(found, x, lower=False, transposed=False, unit=False)
        on = e.equal(places(found, 0), places(found, 1))
        none = on & e.equal(found, m.zero(found))
        return (_where(Reduce("any", (0, 1))(none), float("nan"), x),)

    return in_lanes(solved, rest, b.ndim - 2, (b.type,), LANES_OF_PIVOTS)


def _factor(a: Value) -> Value:
    none = broadcast_to(m.zero(a), a.shape)
    fine = a.builder.full(True, (1, a.shape[-1]), BOOL)

    def step(k: Value, state: Sequence[Value]) -> Sequence[Value]:
        made, fine = state  # [column, row]; zeros from column k on
        known = Reduce("sum", (0,))(made * part(made, 1, k))
        rest = Reshape(known.shape)(part(a, 1, k)) - known
        top, place = part(rest, 0, k), places(rest, 0)
        root = e.sqrt(top)
        column = _where(e.less(place, k), 0.0, rest / root)
        column = _where(e.equal(place, k), root, column)
        new = changed(made, 0, k, Reshape((1, *column.shape))(column))
        return new, fine & e.greater(top, m.zero(top))

    made, fine = repeated(_order(a), [none, fine], step)
    found = Transpose((1, 0, 2))(made)
    lower = e.greater_equal(places(found, 0), places(found, 1))
    return _where(fine | ~lower, found, float("nan"))


def _substitute(a: Value, b: Value, lower: bool, transposed: bool, unit: bool) -> Value:
    forward = lower != transposed

    def step(index: Value, state: Sequence[Value]) -> Sequence[Value]:
        (x,) = state
        k = index if forward else _order(a) - 1 - index
        row = part(a, 1, k) if transposed else Transpose((1, 0, 2))(part(a, 0, k))
        place = places(row, 0)
        known = _where(e.less(place, k) if forward else e.greater(place, k), row, 0.0)
        total = Reduce("sum", (0,))(x * known)
        rest = part(b, 0, k) - Reshape((1, *total.shape))(total)
        return (changed(x, 0, k, rest if unit else rest / part(row, 0, k)),)

    return repeated(_order(a), [broadcast_to(m.zero(b), b.shape)], step)[0]


def _eliminate(a: Value) -> Sequence[Value]:
    size, here = _order(a), a.builder
    lanes = a.shape[-1]
    # The number of each row is appended to it, so that one exchange moves both.
    numbers = broadcast_to(_column(m.cast(places(a, 0), a.dtype), 0), (size, 1, lanes))
    pivots = here.full(0, (size, lanes), I32)

    def step(k: Value, state: Sequence[Value]) -> Sequence[Value]:
        t, pivots = state
        column, first = part(t, 1, k), part(t, 0, k)
        place = places(column, 0)
        height = _where(e.less(place, k), -1.0, e.absolute(column))
        largest = Reduce("maximum", (0,))(height)
        unknown = e.not_equal(height, height)  # is taken first, as the reference has it
        best = e.equal(height, largest) | unknown
        pivot = Reduce("minimum", (0,))(_where(best, place, here.literal(size, I32)))
        chosen = e.equal(place, pivot)
        row = Reshape((1, *t.shape[1:]))(_pick(chosen, t))
        top, below = part(row, 1, k), e.greater(place, k)
        top = _where(e.equal(top, m.zero(top)), 1.0, top)
        other = _where(chosen, part(first, 1, k), column)
        factor = _where(below, other, 0.0) / _where(below, top, 1.0)
        rows, columns = places(t, 0), places(t, 1)
        old = _where(chosen, first, t)
        rest = old - factor * row
        inside = e.greater(columns, k) & e.less(columns, size)
        new = _where(inside, rest, _where(e.equal(columns, k), factor, old))
        t = _where(e.greater(rows, k), new, _where(e.equal(rows, k), row, t))
        return t, changed(pivots, 0, k, pivot)

    t, pivots = repeated(size, [Concatenate(1)(a, numbers), pivots], step)
    found = Slice((0, 0, 0), (size, size, lanes), (1, 1, 1))(t)
    return found, pivots, m.cast(Reshape((size, lanes))(_column(t, size)), I32)


def _exchange_rows(x: Value, order: Value, *, back: bool) -> Value:
    """Rows in another order; or as they were before."""
    size, columns, lanes = x.shape
    given = Reshape((size, 1, columns, lanes))(x)
    wanted = Reshape((size, 1, 1, lanes) if back else (1, size, 1, lanes))(order)
    whole = broadcast_to(given, (size, size, columns, lanes))
    mine = places(whole, 1 if back else 0)
    return _pick(e.equal(mine, wanted), whole)


def _pick(where: Value, x: Value) -> Value:
    """Return the slice of the first axis at which a mask holds, bit by bit: zeros have signs."""
    bits = Bitcast(BITS[x.dtype])(x)
    found = Reduce("sum", (0,))(_where(where, bits, 0))
    return Bitcast(x.dtype)(found)


def _where(mask: Value, x: Value | float, y: Value | float) -> Value:
    """Select elements of one or the other; shapes broadcast."""
    given = [each for each in (mask, x, y) if isinstance(each, Value)]
    rank = max(each.ndim for each in given)
    shape = tuple(
        [
            max(sizes)
            for sizes in zip(*[(1,) * (rank - v.ndim) + v.shape for v in given], strict=True)
        ]
    )
    dtype = next(each.dtype for each in (x, y) if isinstance(each, Value))
    wide = [
        broadcast_to(each, shape) if isinstance(each, Value) else mask.builder.literal(each, dtype)
        for each in (x, y)
    ]
    return Select()(broadcast_to(mask, shape), *wide)


def _column(x: Value, place: int) -> Value:
    """Return a column, as a matrix."""
    rows, _, lanes = x.shape
    return Slice((0, place, 0), (rows, place + 1, lanes), (1, 1, 1))(x)


def _order(a: Value) -> int:
    size = a.shape[0]
    assert isinstance(size, int)
    return size
