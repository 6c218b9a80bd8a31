"""Checks of what functions of matrices take, under the names by which users know them."""

from __future__ import annotations

from pscdsl._src.ir.builder import Value, broadcast_shapes, broadcast_to
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.base import ACCEPTED
from pscdsl.numpy.elementwise import to_inexact
from pscdsl.typing.arrays import Shape
from pscdsl.typing.codes.dtypes import DtypeNotAccepted
from pscdsl.typing.codes.shapes import disagreement
from pscdsl.typing.codes.shapes_library import LengthsDiffer
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size


def require_precision(name: str, x: Value) -> Value:
    """An array in floating point, in a dtype that factorisations take."""
    x = to_inexact(x)
    if x.dtype not in ACCEPTED:
        accepts = "f32, f64, c64 and c128"
        raise Failure(DtypeNotAccepted(function=name, given=x.type, accepts=accepts))
    return x


def require_axes(name: str, x: Value) -> None:
    """Refuse an array without rows and columns."""
    if x.ndim < 2:
        wanted = "matrices, with 2 axes or more"
        raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted=wanted))


def matrix(name: str, x: Value) -> Value:
    """A matrix, or many, in a dtype that factorisations take."""
    require_axes(name, x)
    return require_precision(name, x)


def require_square(name: str, x: Value) -> None:
    """Refuse matrices that are not known to be square."""
    require_axes(name, x)
    facts, (rows, columns) = x.builder.facts, x.shape[-2:]
    if not facts.equal(rows, columns):
        why = f"the matrix is not square: {disagreement(facts, rows, columns)}"
        right = f"the columns of {x.type}"
        raise Failure(LengthsDiffer(function=name, left="the rows", right=right, why=why))


def square(name: str, x: Value) -> Value:
    """A square matrix, or many, in a dtype that factorisations take."""
    require_square(name, x)
    return require_precision(name, x)


def require_same(name: str, left: tuple[str, Size], right: tuple[str, Size], x: Value) -> None:
    """Refuse axes, each given by its name and its size, that differ in length."""
    facts, sizes = x.builder.facts, (left[1], right[1])
    if not facts.equal(*sizes):
        why = disagreement(facts, *sizes)
        raise Failure(LengthsDiffer(function=name, left=left[0], right=right[0], why=why))


def hermitian_part(x: Value) -> Value:
    """The mean of a matrix and its conjugate transpose; a Hermitian matrix itself."""
    half = m.halved(x)
    result: Value = e.add(half, m.adjoint(half))
    return result


def over(x: Value, batch: Shape) -> Value:
    """Matrices repeated along leading axes that they lack."""
    return broadcast_to(x, (*batch, *x.shape[-2:]))


def common_batch(x: Value, y: Value) -> Shape:
    """The leading axes of two operands, by broadcasting."""
    return broadcast_shapes(x.builder.facts, x.shape[:-2], y.shape[:-2])
