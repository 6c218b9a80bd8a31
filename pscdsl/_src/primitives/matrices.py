"""Matrices in the last two axes: common parts of the primitives of linear algebra."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import nan
from typing import Any

import numpy as np

from pscdsl._src.interpreters.replay import closed, repeated
from pscdsl._src.ir.axis_rules import AxisRule, along
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.elementwise import Convert, Elementwise, Select, equal
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Iota,
    Pad,
    Shaping,
    Slice,
    Transpose,
    at_most,
    same_sizes,
    stored,
    without,
)
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, C64, C128, F32, F64, I32, DType

# Common parts of the primitives of linear algebra.
#
# Their operands are matrices in the last two axes; all leading axes are equal, and index the
# matrices. Dtypes are those of LAPACK. A matrix for which a routine fails (a singular one, one that
# is not positive definite, an iteration that does not end) gives NaN, the others their results.


ACCEPTED = (F32, F64, C64, C128)
"""The dtypes of matrices."""


class OfMatrices(Primitive):
    """A primitive of matrices: a batch is one more leading axis."""

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        given = [x if b else repeated(x, size) for x, b in zip(operands, batched, strict=True)]
        outputs = self.bind(*given)
        return outputs, (True,) * len(outputs)

    def require_matrix(self, a: ArrayType) -> None:
        """Refuse an operand that is not a matrix."""
        if a.rank < 2 or a.dtype not in ACCEPTED:
            self.ill_typed(f"the operand is {a}")

    def require_square(self, facts: Assumptions, a: ArrayType) -> None:
        """Refuse an operand that is not a square matrix."""
        self.require_matrix(a)
        if not facts.equal(a.shape[-1], a.shape[-2]):
            self.ill_typed(f"{a} is not square")

    def require_columns(self, facts: Assumptions, a: ArrayType, b: ArrayType) -> None:
        """Refuse right-hand sides that do not fit to a matrix."""
        if (
            b.dtype is not a.dtype
            or b.rank != a.rank
            or not same_sizes(facts, b.shape[:-1], a.shape[:-1])
        ):
            self.ill_typed(f"{b} does not fit to {a}")

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        operands, results = [x.rank for x in inputs], [x.rank for x in outputs]
        return AxisRule.leading(operands[0] - 2, operands, results)


class Composite(OfMatrices):
    """A primitive that consists of others, but has its own derivative."""

    def define(self, *operands: Value) -> Sequence[Value]:
        """Return the results, by other primitives; the sizes are numbers."""
        raise NotImplementedError

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        types = tuple([ArrayType(from_numpy(x.dtype), x.shape) for x in operands])
        return here.block(_definition(self, types), operands)

    def expansion(self, inputs: Types) -> Block:
        return _definition(self, inputs)


@lru_cache(maxsize=1024)
def _definition(primitive: Composite, types: Types) -> Block:
    """Return the definition of a primitive for operands of these types."""

    def build(here: Builder, params: list[Value]) -> Sequence[Value]:
        return primitive.define(*params)

    return closed(Assumptions(), types, build)


def square_type(a: ArrayType) -> ArrayType:
    """Return the type of a square matrix, with its number of columns as its number of rows."""
    return a.with_shape((*a.shape[:-2], a.shape[-1], a.shape[-1]))


def vector_type(a: ArrayType, size: Size) -> ArrayType:
    """Return the type of a vector for each matrix."""
    return a.with_shape((*a.shape[:-2], size))


def one_by_one(
    function: Callable[[Sequence[NDArray]], Sequence[NDArray]],
    failed: Sequence[NDArray],
    *operands: NDArray,
) -> tuple[NDArray, ...]:
    """Apply a function of matrices; where it fails for one, that one's results are those given."""
    with np.errstate(all="ignore"):
        try:
            return tuple([np.asarray(each) for each in function(operands)])
        except np.linalg.LinAlgError:
            results = [array.copy() for array in failed]
            for place in np.ndindex(operands[0].shape[:-2]):
                try:
                    found = function([x[place] for x in operands])
                except np.linalg.LinAlgError:
                    continue
                for result, each in zip(results, found, strict=True):
                    result[place] = each
            return tuple(results)


def nan_like(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> NDArray:
    """Return an array of NaN."""
    return np.full(shape, np.nan, dtype)


def succeeded(hlo: Hlo, info: H, batch: ArrayType) -> H:
    """Return whether a routine of LAPACK has succeeded, by its `info`."""
    return hlo.compare("EQ", info, hlo.full(0, batch.with_dtype(I32)))


def where_ok(hlo: Hlo, ok: H, x: H, type: ArrayType) -> H:  # noqa: A002
    """Emit a result, and NaN for the matrices for which something has failed."""
    mask = hlo.broadcast(ok, type.with_dtype(BOOL), range(len(hlo.type_of(ok).shape)))
    nan = complex("nan+nanj") if type.dtype.is_complex else float("nan")
    return hlo.select(mask, x, hlo.full(nan, type))


def emit_triangle(hlo: Hlo, x: H, type: ArrayType, relation: str) -> H:  # noqa: A002
    """Emit the elements whose row and column satisfy a relation; zeros elsewhere."""
    return hlo.select(_where(hlo, type, relation), x, hlo.full(0, type))


def emit_identity(hlo: Hlo, type: ArrayType) -> H:  # noqa: A002
    """Ones on the diagonal."""
    return hlo.select(_where(hlo, type, "EQ"), hlo.full(1, type), hlo.full(0, type))


def _where(hlo: Hlo, type: ArrayType, relation: str) -> H:  # noqa: A002
    counts, last = type.with_dtype(I32), type.rank - 1
    row, column = (
        hlo.op("iota", (), (counts,), {"iota_dimension": axis})[0] for axis in (last - 1, last)
    )
    return hlo.compare(relation, row, column)


# Diagonals of matrices, read where they are.


@dataclass(frozen=True)
class Diagonal(Shaping, name="diagonal"):
    """The diagonal of two neighbouring axes, from a row and a column on, along one new axis.

    If there are any elements, there are as many rows and columns from there on. A derivative
    selects zeros elsewhere, which fuses with its further computation.
    """

    axis: int
    count: Size
    row: Size = 0
    column: Size = 0

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        (x,) = operands
        axis = self.axis
        if not 0 <= axis < x.rank - 1 or not at_most(facts, 0, self.count):
            self.ill_typed(f"{self.count} of axes {axis} and {axis + 1} of {x}")
        return (x.with_shape((*x.shape[:axis], self.count, *x.shape[axis + 2 :])),)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        count, row, column = here.shape((self.count, self.row, self.column))
        places = np.arange(count)
        index: list[Any] = [slice(None)] * self.axis
        index += [row + places, column + places]
        return (np.asarray(operands[0][tuple(index)]),)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        (given,), (output,), axis = inputs, outputs, self.axis
        if 0 in hlo.shape(output.shape):
            return (hlo.full(0, output),)
        places = ArrayType(I32, (self.count, 2))
        (pairs,) = hlo.op("iota", (), (places,), {"iota_dimension": 0})
        start = hlo.shape((self.row, self.column))
        if any(start):
            first = hlo.constant(np.array(start, np.int32), ArrayType(I32, (2,)))
            pairs = hlo.binary("add", pairs, hlo.broadcast(first, places, (1,)))
        whole = [*hlo.shape(given.shape), *stored(given)]
        kept = [place for place in range(len(whole) - 1) if place != axis]
        numbers = hlo.parse_attribute(
            f"#stablehlo.gather<offset_dims = {kept}, "
            f"collapsed_slice_dims = {[axis, axis + 1]}, "
            f"start_index_map = {[axis, axis + 1]}, index_vector_dim = 1>"
        )
        whole[axis] = whole[axis + 1] = 1
        attributes = {"dimension_numbers": numbers, "slice_sizes": hlo.i64_array(whole)}
        return hlo.op("gather", (operands[0], pairs), outputs, attributes)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x,) = cotangents, operands
        assert cotangent is not None
        assert isinstance(x, ArrayType)
        here, axis, columns = cotangent.builder, self.axis, x.shape[self.axis + 1]
        zero = here.literal(0, x.dtype)
        if self.column != 0 or self.count != columns:
            before: list[Size] = [0] * cotangent.ndim
            after = list(before)
            before[axis], after[axis] = self.column, columns - self.column - self.count
            inside = (0,) * cotangent.ndim
            cotangent = Pad(tuple(before), tuple(after), inside)(cotangent, zero)
        across = Broadcast(x.shape, without(range(x.rank), (axis,)))(cotangent)
        row, column = (here.bind(Iota(x.shape, each, I32), ())[0] for each in (axis, axis + 1))
        if self.row != self.column:
            column = column - here.size(self.column - self.row, I32)
        return (Select()(equal(row, column), across, zero),)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return replace(self, axis=self.axis + 1).bind(*operands), (True,)

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        x, axis = inputs[0].rank, self.axis
        factors = along(x, (axis, axis + 1))
        return AxisRule((factors,), ((*factors[: axis + 1], *factors[axis + 2 :]),), linear=((0,),))


# Matrices in the last two axes of values: products, triangles and diagonals, as rules need them.
#
# Everything here is linear in its matrix (or in each of two), and has derivatives by its parts.


def product(x: Value, y: Value) -> Value:
    """`x @ y`, with the same leading axes."""
    last = x.ndim - 1
    shared = tuple(range(last - 1))
    return DotGeneral(((last,), (last - 1,)), (shared, shared))(x, y)


def turned(x: Value) -> Value:
    """Return the transpose."""
    rank = x.ndim
    return Transpose((*range(rank - 2), rank - 1, rank - 2))(x)


def conjugated(x: Value) -> Value:
    """Return the complex conjugate; itself if real."""
    return e.conjugate(x) if x.dtype.is_complex else x


def adjoint(x: Value) -> Value:
    """Return the conjugate transpose."""
    return turned(conjugated(x))


def real(x: Value) -> Value:
    """Return the real part."""
    return e.real(x) if x.dtype.is_complex else x


def cast(x: Value, dtype: DType) -> Value:
    """Convert numbers to another dtype."""
    return x if x.dtype is dtype else Convert(dtype)(x)


def where_row(relation: Elementwise, x: Value) -> Value:
    """Return where the row and column of an element satisfy a relation."""
    last = x.ndim - 1
    row, column = (x.builder.bind(Iota(x.shape, axis, I32), ())[0] for axis in (last - 1, last))
    return relation.bind(row, column)[0]


def kept(relation: Elementwise, x: Value) -> Value:
    """Return the elements whose row and column satisfy a relation; zeros elsewhere."""
    return Select()(where_row(relation, x), x, zero(x))


def zero(x: Value) -> Value:
    """0 in the dtype of a value."""
    return x.builder.literal(0, x.dtype)


def lower(x: Value) -> Value:
    """Return the lower triangle with the diagonal."""
    return kept(e.greater_equal, x)


def upper(x: Value) -> Value:
    """Return the upper triangle with the diagonal."""
    return kept(e.less_equal, x)


def strictly_lower(x: Value) -> Value:
    """Return the lower triangle without the diagonal."""
    return kept(e.greater, x)


def on_diagonal(x: Value) -> Value:
    """Return the diagonal, zeros elsewhere."""
    return kept(e.equal, x)


def diagonal(x: Value) -> Value:
    """Return the diagonal of a square matrix, as a vector."""
    return Diagonal(x.ndim - 2, x.shape[-1])(x)


def column_sums(x: Value) -> Value:
    """Return the sum of each column."""
    return Reduce("sum", (x.ndim - 2,))(x)


def hermitian(x: Value) -> Value:
    """Return the Hermitian matrix with the lower triangle of this one, and its real diagonal."""
    mirrored = Select()(where_row(e.greater_equal, x), x, adjoint(x))
    if not x.dtype.is_complex:
        return mirrored
    none = x.builder.literal(0, x.dtype.real)
    return Select()(where_row(e.equal, x), e.make_complex(e.real(x), none), mirrored)


def halved(x: Value) -> Value:
    """Return a half of each element."""
    return x * 0.5


def in_rows(v: Value, like: Value) -> Value:
    """Return a vector along each row of a matrix, in the matrix's dtype; its axis is columns."""
    rank = like.ndim
    return Broadcast(like.shape, (*range(rank - 2), rank - 1))(cast(v, like.dtype))


def in_columns(v: Value, like: Value) -> Value:
    """Return a vector along each column of a matrix, in the matrix's dtype."""
    return Broadcast(like.shape, tuple(range(like.ndim - 1)))(cast(v, like.dtype))


def times_diagonal(x: Value, v: Value) -> Value:
    """Return a matrix times a diagonal one."""
    return x * in_rows(v, x)


def diagonal_times(v: Value, x: Value) -> Value:
    """Return a diagonal matrix times another one."""
    return in_columns(v, x) * x


def identity(here: Builder, shape: Shape, dtype: DType) -> Value:
    """Ones on the diagonal."""
    rank = len(shape)
    row, column = (here.bind(Iota(shape, axis, I32), ())[0] for axis in (rank - 2, rank - 1))
    return Convert(dtype)(e.equal.bind(row, column)[0])


def first_columns(x: Value, count: Size) -> Value:
    """Return the first `count` columns, which must exist."""
    if x.shape[-1] == count:
        return x
    return Slice((0,) * x.ndim, (*x.shape[:-1], count), (1,) * x.ndim)(x)


def inverse_where_nonzero(x: Value) -> Value:
    """`1 / x`, and 0 where x is 0."""
    none = e.equal(x, 0)
    one = x.builder.literal(1, x.dtype)
    return Select()(none, zero(x), one / Select()(none, one, x))


def inverse_or_nan(x: Value, nothing: Value) -> Value:
    """`1 / x`, and NaN where x counts as nothing."""
    one, unknown = (x.builder.literal(number, x.dtype) for number in (1, nan))
    return Select()(nothing, unknown, one / Select()(nothing, one, x))


def by_gaps(x: Value, gaps: Value, size: Value) -> Value:
    """Divide a matrix off its diagonal by the gaps between the values of matrices of a size.

    Values that are equal to within rounding errors give NaN, except for elements that are 0.
    """
    inverse = inverse_or_nan(gaps, unresolved(gaps, size))
    return e.multiply_absorbing(kept(e.not_equal, x), inverse)


def times_inverses(x: Value, v: Value) -> Value:
    """Multiply a matrix by a diagonal one; its NaN elements do not affect columns of 0."""
    return e.multiply_absorbing(x, in_rows(v, x))


def unresolved(gaps: Value, size: Value) -> Value:
    """Return where the gaps between values of matrices of a size are within rounding errors."""
    bound = size * (16 * EPSILON[size.dtype])
    count = cast(gaps.builder.size(gaps.shape[-1], I32), size.dtype)
    bound = Broadcast(gaps.shape, tuple(range(size.ndim)))(bound * count)
    return e.less_equal(e.absolute(gaps), bound)


EPSILON = {each: float(np.finfo(kind).eps) for each, kind in ((F32, np.float32), (F64, np.float64))}
"""The distance from 1 to the next number."""


def largest(x: Value, axes: int = 1) -> Value:
    """Return the largest absolute value along the last axes."""
    return Reduce("maximum", tuple(range(x.ndim - axes, x.ndim)))(e.absolute(x))
