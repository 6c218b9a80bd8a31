"""`np.linalg`: matrices are the last two axes, and functions work on each of a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from pscdsl._src.ir.broadcasting import broadcast_shapes, broadcast_to
from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import Meaning, describe, function
from pscdsl._src.language.results import Result, new_if
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import matrices as m
from pscdsl._src.primitives.custom_derivatives import Values, with_own_tangents
from pscdsl._src.primitives.elementwise import Select
from pscdsl._src.primitives.factorisations import (
    Cholesky,
    Determinant,
    LogDeterminant,
    Lu,
    LuSolve,
    Qr,
    TriangularSolve,
)
from pscdsl._src.primitives.matrices import ACCEPTED, EPSILON
from pscdsl._src.primitives.reductions import Reduce, Reduction
from pscdsl._src.primitives.shaping import Broadcast
from pscdsl._src.primitives.spectra import Eig, Eigh, LeastSquares, PseudoInverse, Svd
from pscdsl.numpy import creation, elementwise, products
from pscdsl.numpy.calling import (
    Axes,
    as_array,
    as_operand,
    in_dtype,
    normalize_axes,
    of_numbers,
    reduced_axes,
)
from pscdsl.numpy.elementwise import literal, require, to_inexact
from pscdsl.numpy.logic import items
from pscdsl.numpy.products import typical
from pscdsl.numpy.reductions import extremum, finished, reduced_shape, require_elements, total
from pscdsl.numpy.shorthand import (
    cast,
    filled,
    integers_of,
    is_nan,
    largest,
    reshaped,
    transposed,
    truth,
    where,
    wide,
)
from pscdsl.typing.array_types import Shape, size_of
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.codes.shapes import WrongNumberOfAxes, disagreement
from pscdsl.typing.codes.shapes_of_arguments import LengthsDiffer
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, DType
from pscdsl.typing.python_containers import is_scalar

# Checks of what functions of matrices take, under the names by which users know them.


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


def over(x: Value, batch: Shape) -> Value:
    """Matrices repeated along leading axes that they lack."""
    return broadcast_to(x, (*batch, *x.shape[-2:]))


def common_batch(x: Value, y: Value) -> Shape:
    """The leading axes of two operands, by broadcasting."""
    return broadcast_shapes(x.builder.facts, x.shape[:-2], y.shape[:-2])


# Results with names, as NumPy has them: tuples whose items are attributes too.


class NamedResults(tuple[Value, ...]):
    """Several results; subclasses name them."""

    __slots__ = ()
    STATIC_ATTRIBUTES: ClassVar[tuple[str, ...]] = ()
    """The names, which kernels may use."""

    def __getattr__(self, name: str) -> Value:
        if name not in self.STATIC_ATTRIBUTES:
            raise AttributeError(name)
        return self[self.STATIC_ATTRIBUTES.index(name)]


class EigResult(NamedResults):
    """What `eig` gives."""

    STATIC_ATTRIBUTES = ("eigenvalues", "eigenvectors")


class EighResult(NamedResults):
    """What `eigh` gives."""

    STATIC_ATTRIBUTES = ("eigenvalues", "eigenvectors")


class QRResult(NamedResults):
    """What `qr` gives."""

    STATIC_ATTRIBUTES = ("Q", "R")


class SVDResult(NamedResults):
    """What `svd` gives."""

    STATIC_ATTRIBUTES = ("U", "S", "Vh")


class SlogdetResult(NamedResults):
    """What `slogdet` gives."""

    STATIC_ATTRIBUTES = ("sign", "logabsdet")


# Factorisations: Cholesky, QR, eigenvalues, singular values.


# Note [Triangles]
# The functions of Hermitian matrices read one triangle, as NumPy's do.  The derivative of that
# would be triangular too: an element outside the diagonal would get all of what belongs to it and
# to its mirror image.  These share it in equal parts instead, so that the gradient of a Hermitian
# matrix is Hermitian; along Hermitian tangents this is the same.  Other tangents have the matrices
# of which only one triangle was filled: where all else is zero, the derivative is that of the
# triangle.


def from_triangle(x: Value, *, lower: bool = True) -> Value:
    """The Hermitian matrix that has a triangle of this one; see Note [Triangles]."""
    below = x if lower else m.adjoint(x)
    return with_own_tangents("from_triangle", m.hermitian, _moved_triangle, below)


def _moved_triangle(primals: Values, tangents: Values) -> tuple[Value, Value]:
    (x,), (tangent,) = primals, tangents
    last = x.ndim - 1
    filled = e.not_equal(x, m.zero(x))
    read, unread = (
        Reduce("any", (last - 1, last))(filled & m.where_row(relation, x))
        for relation in (e.greater, e.less)
    )
    alone = read & ~unread
    everywhere = Broadcast(x.shape, tuple(range(last - 1)))(alone)
    half = m.halved(tangent)
    shared = half + m.adjoint(half)
    return from_triangle(x), Select()(everywhere, m.hermitian(tangent), shared)


@of_numbers("numpy.linalg.cholesky", together=("a",))
def cholesky(a: Value, /, *, upper: bool = False) -> Value:
    """The lower triangular L with `L @ L^H = a`, or the upper `L^H`; NaN if there is none.

    The triangle of the result is the one that is read.
    """
    factor = Cholesky()(from_triangle(square("numpy.linalg.cholesky", a), lower=not upper))
    return m.adjoint(factor) if upper else factor


def _hermitian(name: str, a: Value, uplo: Any) -> Value:
    """The Hermitian matrix that has the named triangle of a matrix."""
    x = square(name, a)
    if uplo not in ("L", "U", "l", "u"):
        raise Failure(
            BadArguments(function=name, problem=f"takes 'L' or 'U', not {describe(uplo)}")
        )
    return from_triangle(x, lower=uplo in ("L", "l"))


@of_numbers("numpy.linalg.eigh", together=("a",))
def eigh(a: Value, UPLO: Any = "L") -> EighResult:
    """Eigenvalues in ascending order, and eigenvectors as columns."""
    return EighResult(Eigh().bind(_hermitian("numpy.linalg.eigh", a, UPLO)))


@of_numbers("numpy.linalg.eigvalsh", together=("a",))
def eigvalsh(a: Value, UPLO: Any = "L") -> Value:
    """Eigenvalues in ascending order."""
    return Eigh(vectors=False)(_hermitian("numpy.linalg.eigvalsh", a, UPLO))


@of_numbers("numpy.linalg.eig", together=("a",))
def eig(a: Value) -> EigResult:
    """Eigenvalues, and eigenvectors of length 1 as columns; complex whatever the data."""
    return EigResult(Eig().bind(square("numpy.linalg.eig", a)))


@of_numbers("numpy.linalg.eigvals", together=("a",))
def eigvals(a: Value) -> Value:
    """Eigenvalues, complex whatever the data."""
    return Eig(vectors=False)(square("numpy.linalg.eigvals", a))


@of_numbers("numpy.linalg.qr", together=("a",))
def qr(a: Value, mode: str = "reduced") -> QRResult | Value:
    """Orthonormal columns Q and upper triangular R with `Q @ R = a`; modes reduced, complete, r."""
    name = "numpy.linalg.qr"
    if mode == "raw":
        raise Failure(NotSupported(what="`np.linalg.qr` in mode 'raw'"))
    if mode not in ("reduced", "complete", "r"):
        problem = f"takes the mode 'reduced', 'complete' or 'r', not {describe(mode)}"
        raise Failure(BadArguments(function=name, problem=problem))
    found = Qr(complete=mode == "complete").bind(matrix(name, a))
    return found[1] if mode == "r" else QRResult(found)


@of_numbers("numpy.linalg.svd", together=("a",))
def svd(
    a: Value, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> SVDResult | Value:
    """`a = U @ diag(S) @ Vh` with S in descending order; without `compute_uv`, S alone."""
    name = "numpy.linalg.svd"
    x = from_triangle(square(name, a)) if hermitian else matrix(name, a)
    if not compute_uv:
        return Svd(vectors=False)(x)
    complete = full_matrices and not x.builder.facts.equal(*x.shape[-2:])
    return SVDResult(Svd(complete).bind(x))


@of_numbers("numpy.linalg.svdvals", together=("x",))
def svdvals(x: Value, /) -> Value:
    """The singular values in descending order."""
    return Svd(vectors=False)(matrix("numpy.linalg.svdvals", x))


# Systems of linear equations, inverses and determinants.


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


@of_numbers("numpy.linalg.tensorsolve", together=("a", "b"), result=Result.ARRAY)
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
    a: Value, b: Value, *, lower: bool, transpose: bool, unit_diagonal: bool
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


# What is left of an inverse where there is none: pseudo-inverses, least squares, ranks.
#
# Singular values up to a cutoff count as zero; by default it is the largest, times the larger size
# of the matrix, times the distance from 1 to the next number.


def _precision(a: Value) -> Value:
    """The cutoff relative to the largest singular value where none is given."""
    dtype = a.dtype.real
    size = largest(a.builder.facts, *a.shape[-2:])
    return a.builder.size(size, dtype) * EPSILON[dtype]


def _relative(name: str, a: Value, given: Any) -> Value:
    """A cutoff relative to the largest singular value, one for each matrix."""
    if given is None:
        return broadcast_to(_precision(a), a.shape[:-2])
    return number_for_each(name, a, given)


def number_for_each(name: str, a: Value, given: Any) -> Value:
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
    x = from_triangle(square(name, a)) if hermitian else matrix(name, a)
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
    if rounds_off(rcond):
        cutoff = a.builder.literal(EPSILON[a.dtype.real], a.dtype.real)
    else:
        cutoff = _relative(name, a, rcond)
    x = LeastSquares()(a, cutoff, columns)
    missing = columns - m.product(a, x)
    squares = m.real(missing * m.conjugated(missing))
    singular = Svd(vectors=False)(a)
    rank = _count(e.greater(singular, cutoff * extremum(singular, "maximum", (0,))))
    solution = reshaped(x, x.shape[:-1]) if b.ndim == 1 else x
    return solution, total(squares, (0,)), rank, singular


def rounds_off(rcond: Any) -> bool:
    """Whether LAPACK takes a known `rcond` for the rounding of the dtype: if it is no fraction."""
    known = literal(rcond) if isinstance(rcond, Value) else rcond
    return isinstance(known, int | float) and not 0 < known < 1


def _count(truths: Value) -> Value:
    """Return how many hold along the last axis, as i32."""
    return integers_of(total(cast(truths, I32), (truths.ndim - 1,)))


@of_numbers("numpy.linalg.matrix_rank", together=("A",), numbers=("tol", "rtol"))
def matrix_rank(A: Value, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Value:
    """Return how many singular values are above a tolerance, as i32."""
    name = "numpy.linalg.matrix_rank"
    if tol is not None and rtol is not None:
        raise Failure(BadArguments(function=name, problem="takes `tol` or `rtol`, not both"))
    if A.ndim < 2:
        some = truth(A)
        return integers_of(Reduce("any", (0,))(some) if A.ndim else some)
    x = from_triangle(square(name, A)) if hermitian else matrix(name, A)
    require_elements(x, (x.ndim - 2, x.ndim - 1), name)
    singular = Svd(vectors=False)(x)
    if tol is not None:
        bound = number_for_each(name, x, tol)
    else:
        first = extremum(singular, "maximum", (singular.ndim - 1,))
        bound = _relative(name, x, rtol) * first
    return _count(e.greater(singular, reshaped(bound, (*bound.shape, 1))))


# Norms of vectors and matrices, and condition numbers.
#
# Where a norm is 0 and has no derivative, its gradient is 0, which is one of its subgradients; see
# Note [Kinks].


Order: TypeAlias = "float | str | None"

FROBENIUS = (None, "fro", "f")


@of_numbers("numpy.linalg.norm", together=("x",))
def norm(x: Value, ord: Order = None, axis: Axes = None, keepdims: bool = False) -> Value:  # noqa: A002
    """The norm of vectors along an axis or of matrices in two; of all elements by default."""
    name = "numpy.linalg.norm"
    x, ord = to_inexact(x), known_order(name, ord)  # noqa: A001
    if axis is None and (
        ord is None or (ord in FROBENIUS and x.ndim == 2) or (ord == 2 and x.ndim == 1)
    ):
        return _vector_norm(name, x, 2, tuple(range(x.ndim)), keepdims)
    axes = normalize_axes(axis, x.ndim, name)
    if len(axes) == 1:
        return _vector_norm(name, x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(name, x, ord, axes, keepdims)
    given = f"{x.type} along {len(axes)} axes"
    problem = f"takes vectors or matrices in the order {describe(ord)}, not {given}"
    raise Failure(BadArguments(function=name, problem=problem))


@of_numbers("numpy.linalg.vector_norm", together=("x",))
def vector_norm(
    x: Value,
    /,
    *,
    axis: Axes = None,
    keepdims: bool = False,
    ord: Order = 2,  # noqa: A002
) -> Value:
    """The norm of vectors along some axes together, by default along all."""
    name = "numpy.linalg.vector_norm"
    axes = reduced_axes(axis, x.ndim, name)
    return _vector_norm(name, to_inexact(x), known_order(name, ord), axes, keepdims)


@of_numbers("numpy.linalg.matrix_norm", together=("x",))
def matrix_norm(x: Value, /, *, keepdims: bool = False, ord: Order = "fro") -> Value:  # noqa: A002
    """The norm of matrices in the last two axes."""
    name = "numpy.linalg.matrix_norm"
    require_axes(name, x)
    axes = (x.ndim - 2, x.ndim - 1)
    return _matrix_norm(name, to_inexact(x), known_order(name, ord), axes, keepdims)


def known_order(name: str, order: object) -> Order:
    """The order of a norm as a number of Python's, or as a name."""
    order = order.item() if is_scalar(order) else order
    if order is None or (isinstance(order, str | int | float) and not isinstance(order, bool)):
        return order
    raise Failure(
        BadArguments(function=name, problem=f"takes no norm of the order {describe(order)}")
    )


def _vector_norm(name: str, x: Value, order: Order, axes: Sequence[int], keepdims: bool) -> Value:
    if isinstance(order, str) or order is None:
        problem = f"takes a number as the order of a norm of vectors, not {describe(order)}"
        raise Failure(BadArguments(function=name, problem=problem))
    dtype, x, axes = x.dtype.real, cast(x, wide(x.dtype)), tuple(axes)
    if order == 0:
        counted = cast(e.not_equal(x, 0), x.dtype.real)
        return cast(total(counted, axes, keepdims), dtype)
    if order == 2:
        return cast(root(squares(x, axes, keepdims), 0.5), dtype)
    size: Value = e.absolute(x)
    if math.isinf(order):
        require_elements(x, axes, name)
        return cast(extremum(size, "maximum" if order > 0 else "minimum", axes, keepdims), dtype)
    if order == 1:
        return cast(total(size, axes, keepdims), dtype)
    powers = total(elementwise.power(size, size.builder.literal(order, size.dtype)), axes, keepdims)
    return cast(root(powers, 1 / order), dtype)


def squares(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """The sum of the squares."""
    if not x.dtype.is_complex:
        return total(x * x, axes, keepdims)
    parts = (part * part for part in (e.real(x), e.imag(x)))
    return total(e.add(*parts), axes, keepdims)


def root(x: Value, exponent: float) -> Value:
    """A power of a sum; with the gradient 0, and no second derivative, where the sum is 0."""
    if exponent < 0:
        return elementwise.power(x, x.builder.literal(exponent, x.dtype))  # type: ignore[no-any-return]
    nothing = e.equal(x, 0)
    some = where(nothing, filled(x, 1, ()), x)
    found = e.sqrt(some) if exponent == 0.5 else e.power(some, exponent)
    return where(nothing, filled(x, 0, ()), found) + e.bend(x)


def _matrix_norm(name: str, x: Value, order: Order, axes: Sequence[int], keepdims: bool) -> Value:
    axes = tuple(axes)
    rows, columns = axes
    if order in FROBENIUS:
        return _vector_norm(name, x, 2, axes, keepdims)
    if order in (1, -1, math.inf, -math.inf):
        summed, rest = (rows, columns) if abs(order) == 1 else (columns, rows)
        sums = total(e.absolute(x), (summed,), True)
        require_elements(sums, (rest,), name)
        found = Reduce("maximum" if order > 0 else "minimum", axes)(sums)
        return finished(found, x.shape, axes, keepdims)
    if order not in (2, -2, "nuc"):
        wanted = "'fro', 'nuc', 1, -1, 2, -2, np.inf or -np.inf"
        problem = f"takes {wanted} as the order of a norm of matrices, not {describe(order)}"
        raise Failure(BadArguments(function=name, problem=problem))
    rest_axes = [axis for axis in range(x.ndim) if axis not in axes]
    singular = _singular(name, transposed(x, (*rest_axes, *axes)), needed=order != "nuc")
    last = singular.ndim - 1
    kind: Reduction = "sum" if order == "nuc" else "maximum" if order == 2 else "minimum"
    result = Reduce(kind, (last,))(singular)
    return reshaped(result, reduced_shape(x.shape, axes, keepdims)) if keepdims else result


def _singular(name: str, x: Value, *, needed: bool) -> Value:
    x = require_precision(name, x)
    if needed:
        require_elements(x, (x.ndim - 2, x.ndim - 1), name)
    return Svd(vectors=False)(x)


@of_numbers("numpy.linalg.cond", together=("x",))
def cond(x: Value, p: Order = None) -> Value:
    """The condition number: the norm times that of the inverse; infinite for a singular matrix."""
    name = "numpy.linalg.cond"
    x, p = matrix(name, x), known_order(name, p)
    require_elements(x, (x.ndim - 2, x.ndim - 1), name)
    last = x.ndim - 1
    if p in (None, 2, -2):
        singular = Svd(vectors=False)(x)
        high, low = (
            extremum(singular, "maximum", (last - 1,)),
            extremum(singular, "minimum", (last - 1,)),
        )
        result = low / high if p == -2 else high / low
    else:
        require_square(name, x)
        axes = (last - 1, last)
        result = _matrix_norm(name, x, p, axes, False) * _matrix_norm(
            name, inverse(x), p, axes, False
        )
    given = Reduce("any", (last - 1, last))(is_nan(x))
    unknown = is_nan(result) & ~given
    return where(unknown, filled(result, math.inf, ()), result)


# Powers and chains of matrices, and the names that `np.linalg` has for other products.


def _is_power(given: Mapping[str, Any]) -> bool:
    """Return whether the result is new: the first power is the matrix."""
    n = given.get("n")
    return type(n) is int and n != 1


@of_numbers("numpy.linalg.matrix_power", together=("a",), result=new_if(_is_power))
def matrix_power(a: Value, n: Any) -> Value:
    """A square matrix multiplied with itself; its inverse, for a negative power."""
    name = "numpy.linalg.matrix_power"
    require_square(name, a)
    if not isinstance(n, int) or isinstance(n, bool):
        raise Failure(
            BadArguments(function=name, problem=f"takes a static integer, not {describe(n)}")
        )
    if n < 0:
        a, n = inverse(require_precision(name, a)), -n
    if n == 0:
        return m.identity(a.builder, a.shape, a.dtype)
    result: Value | None = None
    while True:
        if n % 2:
            result = a if result is None else products.matrix_product(result, a, name)
        n //= 2
        if not n:
            assert result is not None
            return result
        a = products.matrix_product(a, a, name)


@function("numpy.linalg.multi_dot", together=("arrays",), result=Result.NEW)
def multi_dot(arrays: Any) -> Value:
    """The product of several matrices, in the cheapest order; the first and last may be vectors."""
    name = "numpy.linalg.multi_dot"
    parts = [as_array(each, name, "arrays") for each in items(name, arrays)]
    if len(parts) < 2:
        raise Failure(BadArguments(function=name, problem="takes two arrays or more"))
    for place, each in enumerate(parts):
        require(name, each, "any")
        ranks = (1, 2) if place in (0, len(parts) - 1) else (2,)
        if each.ndim not in ranks:
            wanted = "a vector or a matrix" if len(ranks) == 2 else "matrices between its ends"
            raise Failure(WrongNumberOfAxes(function=name, given=each.type, wanted=wanted))
    return _chain(name, parts, _cuts(_sizes(parts)), 0, len(parts) - 1)


def _sizes(parts: Sequence[Value]) -> list[int]:
    """The sizes along a chain: part i is a matrix of size i by size i + 1."""
    first = typical(parts[0].shape[0]) if parts[0].ndim == 2 else 1
    inner = [typical(each.shape[0]) for each in parts[1:]]
    return [first, *inner, typical(parts[-1].shape[1]) if parts[-1].ndim == 2 else 1]


def _cuts(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """After which part each stretch of a chain is cut last, so that the cost is least."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            choices = [
                (
                    cost[first, cut]
                    + cost[cut + 1, last]
                    + sizes[first] * sizes[cut + 1] * sizes[last + 1],
                    cut,
                )
                for cut in range(first, last)
            ]
            cost[first, last], cuts[first, last] = min(choices)
    return cuts


def _chain(
    name: str, parts: Sequence[Value], cuts: dict[tuple[int, int], int], first: int, last: int
) -> Value:
    if first == last:
        return parts[first]
    cut = cuts[first, last]
    left = _chain(name, parts, cuts, first, cut)
    return products.matrix_product(left, _chain(name, parts, cuts, cut + 1, last), name)


@of_numbers("numpy.linalg.matrix_transpose", together=("x",), result=Result.ARRANGED)
def matrix_transpose(x: Value, /) -> Value:
    """The last two axes exchanged."""
    require_axes("numpy.linalg.matrix_transpose", x)
    return m.turned(x)


@of_numbers("numpy.linalg.diagonal", together=("x",), result=Result.UNKNOWN)
def diagonal(x: Value, /, *, offset: Any = 0) -> Value:
    """A diagonal of matrices in the last two axes."""
    require_axes("numpy.linalg.diagonal", x)
    return _call(creation.diagonal, x, offset, -2, -1)


@of_numbers("numpy.linalg.trace", together=("x",))
def trace(x: Value, /, *, offset: Any = 0, dtype: DType | None = None) -> Value:
    """The sum along a diagonal of matrices in the last two axes."""
    require_axes("numpy.linalg.trace", x)
    return _call(products.trace, x, offset, -2, -1, dtype)


@of_numbers("numpy.linalg.outer", together=("x1", "x2"))
def outer(x1: Value, x2: Value, /) -> Value:
    """Each element of a vector times each of another."""
    for x in (x1, x2):
        if x.ndim != 1:
            name = "numpy.linalg.outer"
            raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted="vectors"))
    return _call(products.outer, x1, x2)


@of_numbers("numpy.linalg.cross", together=("x1", "x2"))
def cross(x1: Value, x2: Value, /, *, axis: int = -1) -> Value:
    """The cross product of vectors with 3 elements."""
    return _call(products.cross, x1, x2, axis, axis, axis)


@of_numbers("numpy.linalg.matmul", together=("x1", "x2"))
def matmul(x1: Value, x2: Value, /) -> Value:
    """The matrix product."""
    return products.matrix_product(x1, x2)


@of_numbers("numpy.linalg.tensordot", together=("x1", "x2"), result=Result.ARRAY)
def tensordot(x1: Value, x2: Value, /, *, axes: Any = 2) -> Value:
    """Axes of one array against axes of another."""
    return _call(products.tensordot, x1, x2, axes)


@of_numbers("numpy.linalg.vecdot", together=("x1", "x2"))
def vecdot(x1: Value, x2: Value, /, *, axis: int = -1) -> Value:
    """The products of the elements along an axis, the first conjugated, summed."""
    return products.vecdot(x1, x2, axis=axis)  # type: ignore[no-any-return]


def _call(meaning: Meaning, *args: Any) -> Value:
    result: Value = meaning(*args)
    return result
