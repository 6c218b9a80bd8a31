"""Systems of linear equations, inverses and determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.ir.builder import Value, broadcast_to
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives.linalg import Determinant, LogDeterminant, Lu, LuSolve, TriangularSolve
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl.numpy.axes import normalize_axes
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.linear_algebra.operands import (
    common_batch,
    over,
    require_precision,
    require_same,
    square,
)
from pscdsl.numpy.linear_algebra.results import SlogdetResult
from pscdsl.numpy.shorthand import reshaped, transposed
from pscdsl.typing.arrays import Shape, size_of
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import disagreement
from pscdsl.typing.codes.shapes_library import LengthsDiffer
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure


def _right_hand_sides(name: str, a: Value, b: Value) -> Value:
    """The right-hand sides as columns: one if b is a vector."""
    if not b.ndim:
        wanted = "right-hand sides with 1 axis or more"
        raise Failure(WrongNumberOfAxes(function=name, given=b.type, wanted=wanted))
    columns = reshaped(b, (*b.shape, 1)) if b.ndim == 1 else b
    rows = ("the rows of " + str(a.type), a.shape[-2])
    require_same(name, rows, (f"an axis of {b.type}", columns.shape[-2]), a)
    return columns


@of_numbers("numpy.linalg.solve", together=("a", "b"))
def solve(a: Value, b: Value) -> Value:
    """The x with `a @ x = b`, by LU; NaN for a singular matrix.

    b is a vector if it has one axis, else it has columns; leading axes broadcast.
    """
    name = "numpy.linalg.solve"
    a, b = square(name, a), require_precision(name, b)
    columns = _right_hand_sides(name, a, b)
    batch = common_batch(a, columns)
    lu, _, permutation = Lu().bind(a)
    if a.ndim == 2:
        solved = _solved(LuSolve(), (a, lu, permutation), columns)
    else:
        factors = over(a, batch), over(lu, batch)
        rows = broadcast_to(permutation, (*batch, permutation.shape[-1]))
        solved = LuSolve()(*factors, rows, over(columns, batch))
    return reshaped(solved, solved.shape[:-1]) if b.ndim == 1 else solved


def _solved(primitive: LuSolve | TriangularSolve, matrix: Sequence[Value], b: Value) -> Value:
    """One matrix and many right-hand sides: all of them are columns."""
    rank = b.ndim
    inside = transposed(b, (rank - 2, *range(rank - 2), rank - 1))
    wide = reshaped(inside, (b.shape[-2], size_of((*b.shape[:-2], b.shape[-1]))))
    found = reshaped(primitive(*matrix, wide), inside.shape)
    return transposed(found, (*range(1, rank - 1), 0, rank - 1))


@of_numbers("numpy.linalg.inv", together=("a",))
def inv(a: Value) -> Value:
    """The inverse, by LU; NaN for a singular matrix."""
    return inverse(square("numpy.linalg.inv", a))


def inverse(a: Value) -> Value:
    """The inverse of square matrices."""
    lu, _, permutation = Lu().bind(a)
    shape = (*a.shape[:-1], a.shape[-2])
    return LuSolve()(a, lu, permutation, m.identity(a.builder, shape, a.dtype))


@of_numbers("numpy.linalg.det", together=("a",))
def det(a: Value) -> Value:
    """The determinant, by LU."""
    x = square("numpy.linalg.det", a)
    return Determinant()(x, *Lu().bind(x))


@of_numbers("numpy.linalg.slogdet", together=("a",))
def slogdet(a: Value) -> SlogdetResult:
    """The sign of the determinant, and the logarithm of its size; 0 and -inf if it is 0."""
    x = square("numpy.linalg.slogdet", a)
    return SlogdetResult(LogDeterminant().bind(x, *Lu().bind(x)))


@of_numbers("numpy.linalg.tensorinv", together=("a",))
def tensorinv(a: Value, ind: int = 2) -> Value:
    """The inverse of what `tensordot(a, x, ind)` does."""
    name = "numpy.linalg.tensorinv"
    if not 0 < ind <= a.ndim:
        problem = f"takes a number of leading axes of {a.type}, not {describe(ind)}"
        raise Failure(BadArguments(function=name, problem=problem))
    left, right = a.shape[:ind], a.shape[ind:]
    flat = _flat(name, require_precision(name, a), left, right)
    return reshaped(inverse(flat), (*right, *left))


def _flat(name: str, a: Value, left: Shape, right: Shape) -> Value:
    """An array whose leading axes make the rows, and whose other axes make the columns."""
    rows, columns = size_of(left), size_of(right)
    if not a.builder.facts.equal(rows, columns):
        why = disagreement(a.builder.facts, rows, columns)
        sides = "the leading axes, together,", f"the others of {a.type}"
        raise Failure(LengthsDiffer(function=name, left=sides[0], right=sides[1], why=why))
    return reshaped(a, (rows, columns))


@of_numbers("numpy.linalg.tensorsolve", together=("a", "b"))
def tensorsolve(a: Value, b: Value, axes: Any = None) -> Value:
    """The x with `tensordot(a, x, x.ndim) = b`; `axes` of a are moved to its end first."""
    name = "numpy.linalg.tensorsolve"
    if axes is not None:
        last: Sequence[int] = normalize_axes(axes, a.ndim, name)
        a = transposed(a, (*(axis for axis in range(a.ndim) if axis not in last), *last))
    a, b = require_precision(name, a), require_precision(name, b)
    rest = a.shape[b.ndim :]
    flat = _flat(name, a, a.shape[: b.ndim], rest)
    sides = (f"{b.type}", size_of(b.shape)), (f"the leading axes of {a.type}", flat.shape[0])
    require_same(name, *sides, b)
    lu, _, permutation = Lu().bind(flat)
    column = reshaped(b, (flat.shape[0], 1))
    return reshaped(LuSolve()(flat, lu, permutation, column), rest)


@of_numbers("pscdsl.triangular_solve", together=("a", "b"))
def triangular_solve(
    a: Value,
    b: Value,
    *,
    lower: bool = False,
    transpose: bool = False,
    unit_diagonal: bool = False,
) -> Value:
    """The x with `a @ x = b`, of which only a triangle is read, or with `a.mT @ x = b`."""
    name = "pscdsl.triangular_solve"
    a, b = square(name, a), require_precision(name, b)
    columns = _right_hand_sides(name, a, b)
    batch = common_batch(a, columns)
    primitive = TriangularSolve(lower, transpose, unit_diagonal)
    if a.ndim == 2:
        solved = _solved(primitive, (a,), columns)
    else:
        solved = primitive(over(a, batch), over(columns, batch))
    return reshaped(solved, solved.shape[:-1]) if b.ndim == 1 else solved
