"""Matrices in the last two axes of values: products, triangles and diagonals, as rules need them.

Everything here is linear in its matrix (or in each of two), and has derivatives by its parts.
"""

from __future__ import annotations

from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.diagonals import Diagonal
from pscdsl._src.primitives.elementwise import Convert, Elementwise, Select
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast, Slice, Transpose
from pscdsl.typing.array_types import Shape
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, DType


def product(x: Value, y: Value) -> Value:
    """`x @ y`, with the same leading axes."""
    last = x.ndim - 1
    shared = tuple(range(last - 1))
    return DotGeneral(((last,), (last - 1,)), (shared, shared))(x, y)


def turned(x: Value) -> Value:
    """The transpose."""
    rank = x.ndim
    return Transpose((*range(rank - 2), rank - 1, rank - 2))(x)


def conjugated(x: Value) -> Value:
    """The complex conjugate; itself if real."""
    return e.conjugate(x) if x.dtype.is_complex else x


def adjoint(x: Value) -> Value:
    """The conjugate transpose."""
    return turned(conjugated(x))


def real(x: Value) -> Value:
    """The real part."""
    return e.real(x) if x.dtype.is_complex else x


def cast(x: Value, dtype: DType) -> Value:
    """The same numbers in another dtype."""
    return x if x.dtype is dtype else Convert(dtype)(x)


def where_row(relation: Elementwise, x: Value) -> Value:
    """Where the row of an element stands in a relation to its column."""
    last = x.ndim - 1
    row, column = (x.builder.bind(Iota(x.shape, axis, I32), ())[0] for axis in (last - 1, last))
    return relation.bind(row, column)[0]


def kept(relation: Elementwise, x: Value) -> Value:
    """The elements whose row stands in a relation to their column; zeros elsewhere."""
    return Select()(where_row(relation, x), x, zero(x))


def zero(x: Value) -> Value:
    """0 in the dtype of a value."""
    return x.builder.literal(0, x.dtype)


def lower(x: Value) -> Value:
    """The lower triangle with the diagonal."""
    return kept(e.greater_equal, x)


def upper(x: Value) -> Value:
    """The upper triangle with the diagonal."""
    return kept(e.less_equal, x)


def strictly_lower(x: Value) -> Value:
    """The lower triangle without the diagonal."""
    return kept(e.greater, x)


def on_diagonal(x: Value) -> Value:
    """The diagonal, zeros elsewhere."""
    return kept(e.equal, x)


def diagonal(x: Value) -> Value:
    """The diagonal of a square matrix, as a vector."""
    return Diagonal(x.ndim - 2, x.shape[-1])(x)


def column_sums(x: Value) -> Value:
    """The sum of each column."""
    return Reduce("sum", (x.ndim - 2,))(x)


def hermitian(x: Value, *, lower: bool = True) -> Value:
    """The Hermitian matrix that has a triangle of this one."""
    other = adjoint(x)
    mirrored = Select()(where_row(e.greater if lower else e.less, x), x, other)
    return Select()(where_row(e.equal, x), halved(e.add(x, other)), mirrored)


def halved(x: Value) -> Value:
    """A half of each element."""
    result: Value = e.multiply(x, 0.5)
    return result


def in_rows(v: Value, like: Value) -> Value:
    """A vector along each row of a matrix, in the matrix's dtype: its places are the columns."""
    rank = like.ndim
    return Broadcast(like.shape, (*range(rank - 2), rank - 1))(cast(v, like.dtype))


def in_columns(v: Value, like: Value) -> Value:
    """A vector along each column of a matrix, in the matrix's dtype."""
    return Broadcast(like.shape, tuple(range(like.ndim - 1)))(cast(v, like.dtype))


def times_diagonal(x: Value, v: Value) -> Value:
    """A matrix times a diagonal one."""
    result: Value = e.multiply(x, in_rows(v, x))
    return result


def diagonal_times(v: Value, x: Value) -> Value:
    """A diagonal matrix times another one."""
    result: Value = e.multiply(in_columns(v, x), x)
    return result


def identity(here: Builder, shape: Shape, dtype: DType) -> Value:
    """Ones on the diagonal."""
    rank = len(shape)
    row, column = (here.bind(Iota(shape, axis, I32), ())[0] for axis in (rank - 2, rank - 1))
    return Convert(dtype)(e.equal.bind(row, column)[0])


def first_columns(x: Value, count: Size) -> Value:
    """The first columns; there are known to be so many."""
    if x.shape[-1] == count:
        return x
    return Slice((0,) * x.ndim, (*x.shape[:-1], count), (1,) * x.ndim)(x)


def inverse_where_nonzero(x: Value) -> Value:
    """`1 / x`, and 0 where x is 0."""
    none = e.equal(x, 0)
    one = x.builder.literal(1, x.dtype)
    return Select()(none, zero(x), e.divide(one, Select()(none, one, x)))
