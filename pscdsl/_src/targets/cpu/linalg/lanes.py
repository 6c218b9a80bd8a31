"""Many small matrices side by side: each operation is done for all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.primitive import Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control.while_loop import While
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.dynamic_slicing import DynamicSlice, DynamicUpdate
from pscdsl._src.primitives.elementwise import Bitcast, Select
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Concatenate, Reshape, Slice, Transpose
from pscdsl._src.targets.cpu.linalg.systems import (
    FEW_COLUMNS,
    LARGEST_IN_LOOPS,
    MANY,
    SMALL_MATRICES,
    is_small,
)
from pscdsl._src.targets.forms import Context
from pscdsl._src.targets.rewriting import defined
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import BOOL, F32, F64, I32, I64

if TYPE_CHECKING:
    from pscdsl._src.primitives.linalg.factorisations import Cholesky, Lu, LuSolve, TriangularSolve


# Many small matrices side by side: each operation is done for a few of them at once.
#
# A part of the batch is turned so that its matrices lie along the last axis; elements of matrices
# are then vectors, and what is done with them is a loop that becomes a native function.
# The sizes of operands are numbers here.


BYTES = 13 << 10
"""With more bytes in a part of an operand the loop would be no native function."""


def in_lanes(
    function: Callable[[Sequence[Value]], Sequence[Value]],
    operands: Sequence[Value],
    rank: int,
    results: Sequence[ArrayType],
    lanes: int,
) -> Sequence[Value]:
    """The results of a function of arrays whose last axis are so many elements of a batch.

    Fewer are compiled faster, more may run faster.  The first `rank` axes of operands and results
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
            start = e.multiply(index, lanes)  # the last part may overlap with the one before
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
    """What becomes of a carry in so many steps, which get their number too."""
    program = carry[0].builder.program
    state = [program.current.literal(0, I32), *carry]
    with program.inside() as inner:
        index, *rest = params = [inner.parameter(each.type) for each in state]
        body, captured = inner.finish(params, [e.add(index, 1), *step(index, rest)])
    with program.inside() as inner:
        params = [inner.parameter(each.type) for each in state]
        cond, _ = inner.finish(params, [e.less(params[0], count)])
    primitive = While(cond, body, 0, len(captured), count)
    return program.current.bind(primitive, (*captured, *state))[1:]


def part(x: Value, axis: int, start: Value, size: int = 1) -> Value:
    """What lies along an axis from a computed place on."""
    sizes = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    return DynamicSlice(sizes)(x, *_places(x, axis, start))


def changed(x: Value, axis: int, start: Value, new: Value) -> Value:
    """An array with a part replaced, from a computed place on along an axis."""
    return DynamicUpdate()(x, new, *_places(x, axis, start))


def places(x: Value, axis: int) -> Value:
    """The place of each element along an axis."""
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


# Factorisations of many small real matrices, and systems with them, for a vector of them at once.
#
# Here the elements of a batch are the last axis: `a[row, column]` is a vector.


BITS = {F32: I32, F64: I64}
"""Integers of the same width."""
LANES_OF_FACTORS, LANES_OF_TRIANGLES, LANES_OF_PIVOTS = 16, 24, 32
"""How many matrices are taken at once."""
LEAST, LEAST_WITH_PIVOTS, LARGEST = 5, 4, 8
"""The sizes of matrices; smaller ones are written out element by element."""
MOST_COLUMNS = 8
"""With more right-hand sides than these LAPACK does well."""


def fits(here: Context, a: ArrayType, columns: int = 1, *, pivots: bool = False) -> bool:
    """Whether matrices are better taken side by side; `columns` are the right-hand sides.

    In loops that includes a single one: a loop that calls LAPACK is no native function.
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
    return least <= size <= LARGEST


@SMALL_MATRICES.rewrite
def cholesky_in_lanes(
    primitive: Cholesky, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """The factors of many matrices side by side."""
    return defined(cholesky, primitive, inputs) if fits(here, outputs[0]) else None


@SMALL_MATRICES.rewrite
def solve_in_lanes(
    primitive: TriangularSolve, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """Systems with many triangular matrices side by side."""
    *_, columns = numbers(inputs[1].shape)
    return defined(substitution, primitive, inputs) if fits(here, inputs[0], columns) else None


@SMALL_MATRICES.rewrite
def lu_in_lanes(primitive: Lu, inputs: Types, outputs: Types, here: Context) -> Block | None:
    """The factorisations of many matrices side by side."""
    return defined(lu, primitive, inputs) if fits(here, outputs[0], pivots=True) else None


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


def cholesky(_: Cholesky, operands: Sequence[Value]) -> Sequence[Value]:
    """The factor column by column; NaN where an element of the diagonal is no positive number."""
    (a,) = operands
    rank = a.ndim - 2
    return in_lanes(lambda parts: (_factor(*parts),), operands, rank, (a.type,), LANES_OF_FACTORS)


def substitution(solve: TriangularSolve, operands: Sequence[Value]) -> Sequence[Value]:
    """The rows of the solution, one after the other."""
    _, b = operands

    def solved(parts: Sequence[Value]) -> Sequence[Value]:
        a, b = parts
        return (_substituted(a, b, solve.lower_triangle, solve.transposed, solve.unit_diagonal),)

    return in_lanes(solved, operands, b.ndim - 2, (b.type,), LANES_OF_TRIANGLES)


def lu(_: Lu, operands: Sequence[Value]) -> Sequence[Value]:
    """Elimination with the largest pivot of each column; lu, pivots and permutation."""
    (a,) = operands
    rows = a.type.with_shape(a.shape[:-1]).with_dtype(I32)
    results = (a.type, rows, rows)
    return in_lanes(
        lambda parts: _eliminated(*parts), operands, a.ndim - 2, results, LANES_OF_PIVOTS
    )


def lu_solve(solve: LuSolve, operands: Sequence[Value]) -> Sequence[Value]:
    """Both substitutions and the exchange of rows; NaN where a matrix is singular."""
    _, *rest = operands
    b = rest[-1]

    def solved(parts: Sequence[Value]) -> Sequence[Value]:
        found, order, x = parts
        if solve.transposed:
            x = _substituted(found, x, lower=False, transposed=True, unit=False)
            x = _substituted(found, x, lower=True, transposed=True, unit=True)
            x = _exchanged(x, order, back=True)
        else:
            x = _exchanged(x, order, back=False)
            x = _substituted(found, x, lower=True, transposed=False, unit=True)
            x = _substituted(found, x, lower=False, transposed=False, unit=False)
        on = e.equal(places(found, 0), places(found, 1))
        none = e.bitwise_and(on, e.equal(found, m.zero(found)))
        return (_where(Reduce("any", (0, 1))(none), float("nan"), x),)

    return in_lanes(solved, rest, b.ndim - 2, (b.type,), LANES_OF_PIVOTS)


def _factor(a: Value) -> Value:
    none = broadcast_to(m.zero(a), a.shape)
    fine = a.builder.full(True, (1, a.shape[-1]), BOOL)

    def step(k: Value, state: Sequence[Value]) -> Sequence[Value]:
        made, fine = state  # [column, row]; zeros from column k on
        known = Reduce("sum", (0,))(e.multiply(made, part(made, 1, k)))
        rest = e.subtract(Reshape(known.shape)(part(a, 1, k)), known)
        top, place = part(rest, 0, k), places(rest, 0)
        root = e.sqrt(top)
        column = _where(e.less(place, k), 0.0, e.divide(rest, root))
        column = _where(e.equal(place, k), root, column)
        new = changed(made, 0, k, Reshape((1, *column.shape))(column))
        return new, e.bitwise_and(fine, e.greater(top, m.zero(top)))

    made, fine = repeated(_count(a), [none, fine], step)
    found = Transpose((1, 0, 2))(made)
    lower = e.greater_equal(places(found, 0), places(found, 1))
    return _where(e.bitwise_or(fine, e.invert(lower)), found, float("nan"))


def _substituted(a: Value, b: Value, lower: bool, transposed: bool, unit: bool) -> Value:
    forward = lower != transposed

    def step(index: Value, state: Sequence[Value]) -> Sequence[Value]:
        (x,) = state
        k = index if forward else e.subtract(_count(a) - 1, index)
        row = part(a, 1, k) if transposed else Transpose((1, 0, 2))(part(a, 0, k))
        place = places(row, 0)
        known = _where(e.less(place, k) if forward else e.greater(place, k), row, 0.0)
        total = Reduce("sum", (0,))(e.multiply(x, known))
        rest = e.subtract(part(b, 0, k), Reshape((1, *total.shape))(total))
        return (changed(x, 0, k, rest if unit else e.divide(rest, part(row, 0, k))),)

    return repeated(_count(a), [broadcast_to(m.zero(b), b.shape)], step)[0]


def _eliminated(a: Value) -> Sequence[Value]:
    size, here = _count(a), a.builder
    lanes = a.shape[-1]
    # The number of each row stands behind it: both are exchanged at once.
    numbers = broadcast_to(_column(m.cast(places(a, 0), a.dtype), 0), (size, 1, lanes))
    pivots = here.full(0, (size, lanes), I32)

    def step(k: Value, state: Sequence[Value]) -> Sequence[Value]:
        t, pivots = state
        column, first = part(t, 1, k), part(t, 0, k)
        place = places(column, 0)
        height = _where(e.less(place, k), -1.0, e.absolute(column))
        largest = Reduce("maximum", (0,))(height)
        unknown = e.not_equal(height, height)  # is taken first, as the reference has it
        best = e.bitwise_or(e.equal(height, largest), unknown)
        pivot = Reduce("minimum", (0,))(_where(best, place, here.literal(size, I32)))
        chosen = e.equal(place, pivot)
        row = Reshape((1, *t.shape[1:]))(_picked(chosen, t))
        top, below = part(row, 1, k), e.greater(place, k)
        top = _where(e.equal(top, m.zero(top)), 1.0, top)
        other = _where(chosen, part(first, 1, k), column)
        factor = e.divide(_where(below, other, 0.0), _where(below, top, 1.0))
        rows, columns = places(t, 0), places(t, 1)
        old = _where(chosen, first, t)
        rest = e.subtract(old, e.multiply(factor, row))
        inside = e.bitwise_and(e.greater(columns, k), e.less(columns, size))
        new = _where(inside, rest, _where(e.equal(columns, k), factor, old))
        t = _where(e.greater(rows, k), new, _where(e.equal(rows, k), row, t))
        return t, changed(pivots, 0, k, pivot)

    t, pivots = repeated(size, [Concatenate(1)(a, numbers), pivots], step)
    found = Slice((0, 0, 0), (size, size, lanes), (1, 1, 1))(t)
    return found, pivots, m.cast(Reshape((size, lanes))(_column(t, size)), I32)


def _exchanged(x: Value, order: Value, *, back: bool) -> Value:
    """Rows in another order; or as they were before."""
    size, columns, lanes = x.shape
    given = Reshape((size, 1, columns, lanes))(x)
    wanted = Reshape((size, 1, 1, lanes) if back else (1, size, 1, lanes))(order)
    whole = broadcast_to(given, (size, size, columns, lanes))
    mine = places(whole, 1 if back else 0)
    return _picked(e.equal(mine, wanted), whole)


def _picked(where: Value, x: Value) -> Value:
    """What there is of the first axis where a mask holds, once; as bits, for zeros have signs."""
    bits = Bitcast(BITS[x.dtype])(x)
    found = Reduce("sum", (0,))(_where(where, bits, 0))
    return Bitcast(x.dtype)(found)


def _where(mask: Value, x: Value | float, y: Value | float) -> Value:
    """Elements of one or the other; shapes broadcast."""
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
    """A column, as a matrix."""
    rows, _, lanes = x.shape
    return Slice((0, place, 0), (rows, place + 1, lanes), (1, 1, 1))(x)


def _count(a: Value) -> int:
    size = a.shape[0]
    assert isinstance(size, int)
    return size
