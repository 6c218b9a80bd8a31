"""What is left of an inverse where there is none: pseudo-inverses, least squares, ranks.

Singular values up to a cutoff count as zero; by default it is the largest, times the larger size of
the matrix, times the distance from 1 to the next number.
"""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Value, broadcast_to
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.linalg import LeastSquares, PseudoInverse, Svd
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl._src.primitives.linalg.determinants import EPSILON
from pscdsl._src.primitives.reductions import Reduce
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.elementwise import literal
from pscdsl.numpy.linear_algebra.operands import (
    hermitian_part,
    matrix,
    require_precision,
    require_same,
    square,
)
from pscdsl.numpy.openness import as_operand, in_dtype
from pscdsl.numpy.reductions import extremum, require_elements, total
from pscdsl.numpy.shorthand import cast, largest, reshaped, truth
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import I32


def _precision(a: Value) -> Value:
    """The cutoff relative to the largest singular value where none is given."""
    dtype = a.dtype.real
    size = largest(a.builder.facts, *a.shape[-2:])
    result: Value = e.multiply(a.builder.size(size, dtype), EPSILON[dtype])
    return result


def _relative(name: str, a: Value, given: Any) -> Value:
    """A cutoff relative to the largest singular value, one for each matrix."""
    if given is None:
        return broadcast_to(_precision(a), a.shape[:-2])
    return _number(name, a, given)


def _number(name: str, a: Value, given: Any) -> Value:
    """A real number for each matrix, in the matrix's precision."""
    x = as_operand(a.builder, given)
    if not (x.dtype.is_float or x.dtype.is_integer):
        raise Failure(BadArguments(function=name, problem=f"takes real cutoffs, not {x.type}"))
    if x.ndim > a.ndim - 2:
        wanted = "a cutoff that is a number, or one for each matrix"
        raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted=wanted))
    return broadcast_to(in_dtype(a.builder, x, a.dtype.real), a.shape[:-2])


@of_numbers("numpy.linalg.pinv", together=("a",), numbers=("rcond", "rtol"))
def pinv(a: Value, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Value:
    """The Moore-Penrose inverse, by singular values."""
    name = "numpy.linalg.pinv"
    x = hermitian_part(square(name, a)) if hermitian else matrix(name, a)
    if rcond is not None and rtol is not None:
        raise Failure(BadArguments(function=name, problem="takes `rcond` or `rtol`, not both"))
    return PseudoInverse()(x, _relative(name, x, rtol if rcond is None else rcond))


@of_numbers("numpy.linalg.lstsq", together=("a", "b"), numbers=("rcond",))
def lstsq(a: Value, b: Value, rcond: Any = None) -> tuple[Value, Value, Value, Value]:
    """The shortest x with the smallest `|a @ x - b|`; its residual, the rank, the singular values.

    The residual is the sum of the squares for each column, at least one.
    """
    name = "numpy.linalg.lstsq"
    for x, wanted, ranks in ((a, "a matrix", (2,)), (b, "a vector or a matrix", (1, 2))):
        if x.ndim not in ranks:
            raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted=wanted))
    a, b = matrix(name, a), require_precision(name, b)
    require_elements(a, (0, 1), name)
    columns = reshaped(b, (*b.shape, 1)) if b.ndim == 1 else b
    rows = (f"the rows of {a.type}", a.shape[0]), (f"an axis of {b.type}", b.shape[0])
    require_same(name, *rows, a)
    known = literal(rcond) if isinstance(rcond, Value) else rcond
    if isinstance(known, int | float) and known < 0:
        cutoff = a.builder.literal(EPSILON[a.dtype.real], a.dtype.real)
    else:
        cutoff = _relative(name, a, rcond)
    x = LeastSquares()(a, cutoff, columns)
    missing = e.subtract(columns, m.product(a, x))
    squares = m.real(e.multiply(missing, m.conjugated(missing)))
    singular = Svd(vectors=False)(a)
    rank = _count(e.greater(singular, e.multiply(cutoff, extremum(singular, "maximum", (0,)))))
    solution = reshaped(x, x.shape[:-1]) if b.ndim == 1 else x
    return solution, total(squares, (0,)), rank, singular


def _count(truths: Value) -> Value:
    """How many hold along the last axis, as i32."""
    return total(cast(truths, I32), (truths.ndim - 1,))


@of_numbers("numpy.linalg.matrix_rank", together=("A",), numbers=("tol", "rtol"))
def matrix_rank(A: Value, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Value:
    """How many singular values are above a tolerance, as i32."""
    name = "numpy.linalg.matrix_rank"
    if tol is not None and rtol is not None:
        raise Failure(BadArguments(function=name, problem="takes `tol` or `rtol`, not both"))
    if A.ndim < 2:
        some = truth(A)
        return cast(Reduce("any", (0,))(some) if A.ndim else some, I32)
    x = hermitian_part(square(name, A)) if hermitian else matrix(name, A)
    require_elements(x, (x.ndim - 2, x.ndim - 1), name)
    singular = Svd(vectors=False)(x)
    if tol is not None:
        bound = _number(name, x, tol)
    else:
        first = extremum(singular, "maximum", (singular.ndim - 1,))
        bound = e.multiply(_relative(name, x, rtol), first)
    return _count(e.greater(singular, reshaped(bound, (*bound.shape, 1))))
