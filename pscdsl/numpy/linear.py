"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from pscdsl._src.ir.builder import Value, broadcast_shapes
from pscdsl._src.language.meanings import Meaning, describe
from pscdsl._src.primitives.elementwise import bitwise_and, conjugate, multiply, subtract
from pscdsl.numpy import diagonals, reductions
from pscdsl.numpy.axes import normalize_axes, normalize_axis
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.contraction import Labelled, Labels, contract
from pscdsl.numpy.elementwise import require
from pscdsl.numpy.shorthand import at, joined, listed, moved, raveled, reshaped
from pscdsl.typing.arrays import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import disagreement
from pscdsl.typing.codes.shapes_library import InnerSizesDiffer, LengthsDiffer
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, DType


def conjugated(x: Value) -> Value:
    """The complex conjugate; itself if real."""
    return conjugate(x) if x.dtype.is_complex else x


def times(x: Value, y: Value) -> Value:
    """The product of elements; of truth values, whether both hold."""
    return bitwise_and(x, y) if x.dtype is BOOL else multiply(x, y)  # type: ignore[no-any-return]


def _require_axes(x: Value, least: int, name: str) -> None:
    require(name, x, "any")
    if x.ndim < least:
        wanted = "arrays with 1 axis or more" if least == 1 else "arrays with 2 axes or more"
        raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted=wanted))


def _require_same(name: str, x: Value, y: Value, sizes: tuple[Size, Size]) -> None:
    facts = x.builder.facts
    if not facts.equal(*sizes):
        why = disagreement(facts, *sizes)
        left, right = f"an axis of {x.type}", f"an axis of {y.type}"
        raise Failure(LengthsDiffer(function=name, left=left, right=right, why=why))


def product_type(facts: Assumptions, left: ArrayType, right: ArrayType) -> ArrayType | None:
    """The type of a matrix product, if the operands fit."""
    if not left.rank or not right.rank:
        return None
    inner = right.shape[-2] if right.rank > 1 else right.shape[-1]
    if not facts.equal(left.shape[-1], inner):
        return None
    try:
        batch = broadcast_shapes(facts, left.shape[:-2], right.shape[:-2])
    except Failure:
        return None
    columns = right.shape[-1:] if right.rank > 1 else ()
    return left.with_shape((*batch, *left.shape[-2:-1], *columns))


def _inner_sizes_differ(name: str, x: Value, y: Value, sizes: tuple[Size, Size]) -> Failure:
    facts = x.builder.facts

    def turned(of: ArrayType) -> tuple[str, ArrayType | None]:
        shape = (*of.shape[:-2], *of.shape[:-3:-1])
        return ".T" if of.rank == 2 else ".mT", of.with_shape(shape) if of.rank > 1 else None

    (left, x_turned), (right, y_turned) = turned(x.type), turned(y.type)
    candidates: tuple[tuple[str, ArrayType | None, ArrayType | None], ...] = (
        ("{1} @ {0}", y.type, x.type),
        (f"{{0}}{left} @ {{1}}", x_turned, y.type),
        (f"{{0}} @ {{1}}{right}", x.type, y_turned),
    )
    works: list[tuple[str, ArrayType]] = []
    for text, one, other in candidates:
        if one is not None and other is not None:
            type_ = product_type(facts, one, other)
            if type_ is not None:
                works.append((text, type_))
    why = disagreement(facts, *sizes)
    short = name.rpartition(".")[2]
    return Failure(
        InnerSizesDiffer(function=short, left=x.type, right=y.type, why=why, works=tuple(works))
    )


def matrix_product(x: Value, y: Value, name: str = "numpy.matmul") -> Value:
    """`x @ y`: the last axis of x against the last but one of y, or its only one."""
    _require_axes(x, 1, name)
    _require_axes(y, 1, name)
    inner = y.shape[-2] if y.ndim > 1 else y.shape[-1]
    if not x.builder.facts.equal(x.shape[-1], inner):
        raise _inner_sizes_differ(name, x, y, (x.shape[-1], inner))
    broadcast_shapes(x.builder.facts, x.shape[:-2], y.shape[:-2])
    rows: Labels = ("row",) if x.ndim > 1 else ()
    columns: Labels = ("column",) if y.ndim > 1 else ()
    left, right = range(2 - x.ndim, 0), range(2 - y.ndim, 0)
    batch = left if len(left) > len(right) else right
    return contract(
        (Labelled(x, (*left, *rows, "inner")), Labelled(y, (*right, "inner", *columns))),
        (*batch, *rows, *columns),
    )


@of_numbers("numpy.matmul", together=("x1", "x2"))
def matmul(x1: Value, x2: Value, /) -> Value:
    """The matrix product, `x1 @ x2`; leading axes broadcast."""
    return matrix_product(x1, x2)


@of_numbers("numpy.matvec", together=("x1", "x2"))
def matvec(x1: Value, x2: Value, /) -> Value:
    """Matrices times vectors; leading axes broadcast."""
    _require_axes(x1, 2, "numpy.matvec")
    _require_axes(x2, 1, "numpy.matvec")
    column = reshaped(x2, (*x2.shape, 1))
    result = matrix_product(x1, column, "numpy.matvec")
    return reshaped(result, result.shape[:-1])


@of_numbers("numpy.vecmat", together=("x1", "x2"))
def vecmat(x1: Value, x2: Value, /) -> Value:
    """Vectors, conjugated, times matrices; leading axes broadcast."""
    _require_axes(x1, 1, "numpy.vecmat")
    _require_axes(x2, 2, "numpy.vecmat")
    row = conjugated(reshaped(x1, (*x1.shape[:-1], 1, x1.shape[-1])))
    result = matrix_product(row, x2, "numpy.vecmat")
    return reshaped(result, (*result.shape[:-2], result.shape[-1]))


@of_numbers("numpy.vecdot", together=("x1", "x2"))
def vecdot(x1: Value, x2: Value, /, *, axis: int = -1) -> Value:
    """The products of the elements along an axis, the first conjugated, summed; axes broadcast."""
    for x in (x1, x2):
        _require_axes(x, 1, "numpy.vecdot")
    x = moved(x1, normalize_axis(axis, x1.ndim, "numpy.vecdot"), x1.ndim - 1)
    y = moved(x2, normalize_axis(axis, x2.ndim, "numpy.vecdot"), x2.ndim - 1)
    _require_same("numpy.vecdot", x, y, (x.shape[-1], y.shape[-1]))
    broadcast_shapes(x.builder.facts, x.shape[:-1], y.shape[:-1])
    left, right = range(1 - x.ndim, 0), range(1 - y.ndim, 0)
    batch = left if len(left) > len(right) else right
    operands = (Labelled(conjugated(x), (*left, "inner")), Labelled(y, (*right, "inner")))
    return contract(operands, tuple(batch))


def _along(name: str, x: Value, y: Value, left: Sequence[int], right: Sequence[int]) -> Value:
    """Axes of x summed against axes of y; the other axes of x come first."""
    for one, other in zip(left, right, strict=True):
        _require_same(name, x, y, (x.shape[one], y.shape[other]))
    fresh = count()
    x_labels: list[Any] = [next(fresh) for _ in x.shape]
    y_labels: list[Any] = [next(fresh) for _ in y.shape]
    for one, other in zip(left, right, strict=True):
        y_labels[other] = x_labels[one]
    output = [
        label for label in (*x_labels, *y_labels) if label not in set(x_labels) & set(y_labels)
    ]
    return contract((Labelled(x, tuple(x_labels)), Labelled(y, tuple(y_labels))), tuple(output))


@of_numbers("numpy.dot", together=("a", "b"))
def dot(a: Value, b: Value) -> Value:
    """The last axis of a against the last but one of b, without broadcasting; scalars multiply."""
    if not a.ndim or not b.ndim:
        return times(a, b)
    if a.ndim <= 2 and b.ndim <= 2:
        return matrix_product(a, b, "numpy.dot")
    return _along("numpy.dot", a, b, [a.ndim - 1], [max(b.ndim - 2, 0)])


@of_numbers("numpy.inner", together=("a", "b"))
def inner(a: Value, b: Value) -> Value:
    """The last axes against each other; scalars multiply."""
    if not a.ndim or not b.ndim:
        return times(a, b)
    return _along("numpy.inner", a, b, [a.ndim - 1], [b.ndim - 1])


@of_numbers("numpy.vdot", together=("a", "b"))
def vdot(a: Value, b: Value) -> Value:
    """All elements against each other, in order, those of a conjugated."""
    return _along("numpy.vdot", conjugated(raveled(a)), raveled(b), [0], [0])


@of_numbers("numpy.outer", together=("a", "b"))
def outer(a: Value, b: Value) -> Value:
    """Each element of a times each of b, as a matrix."""
    return _along("numpy.outer", raveled(a), raveled(b), (), ())


@of_numbers("numpy.tensordot", together=("a", "b"))
def tensordot(a: Value, b: Value, axes: Any = 2) -> Value:
    """Axes of a against axes of b: so many of the last and the first, or the pairs named."""
    name = "numpy.tensordot"
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            problem = f"cannot take {describe(axes)} axes of {a.type} and {b.type}"
            raise Failure(BadArguments(function=name, problem=problem))
        return _along(name, a, b, range(a.ndim - axes, a.ndim), range(axes))
    pair = listed(axes)
    if pair is None or len(pair) != 2:
        problem = "takes a number of axes, or the axes of each operand"
        raise Failure(BadArguments(function=name, problem=problem))
    left = normalize_axes(_several(pair[0]), a.ndim, name)
    right = normalize_axes(_several(pair[1]), b.ndim, name)
    if len(left) != len(right):
        problem = f"takes as many axes of the one as of the other, not {len(left)} and {len(right)}"
        raise Failure(BadArguments(function=name, problem=problem))
    return _along(name, a, b, left, right)


def _several(axes: object) -> Sequence[object]:
    items = listed(axes)
    return (axes,) if items is None else items


@of_numbers("numpy.kron", together=("a", "b"))
def kron(a: Value, b: Value) -> Value:
    """The Kronecker product: each element of a times all of b, in blocks."""
    rank = max(a.ndim, b.ndim)
    left: Shape = (*(1 for _ in range(rank - a.ndim)), *a.shape)
    right: Shape = (*(1 for _ in range(rank - b.ndim)), *b.shape)
    blocks = times(
        reshaped(a, tuple([size for each in left for size in (each, 1)])),
        reshaped(b, tuple([size for each in right for size in (1, each)])),
    )
    return reshaped(blocks, tuple([x * y for x, y in zip(left, right, strict=True)]))


@of_numbers("numpy.trace", together=("a",), traced=("offset",))
def trace(
    a: Value, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: DType | None = None
) -> Value:
    """The sum along a diagonal; bool and small integers are summed in 32 bits."""
    return _call(reductions.sum, _call(diagonals.diagonal, a, offset, axis1, axis2), -1, dtype)


def _call(meaning: Meaning, *args: Any) -> Value:
    result: Value = meaning(*args)
    return result


@of_numbers("numpy.cross", together=("a", "b"))
def cross(
    a: Value,
    b: Value,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Value:
    """The cross product of vectors with 3 elements."""
    name = "numpy.cross"
    if axis is not None:
        axisa = axisb = axisc = axis
    x = moved(a, normalize_axis(axisa, a.ndim, name), a.ndim - 1)
    y = moved(b, normalize_axis(axisb, b.ndim, name), b.ndim - 1)
    for each in (x, y):
        if not each.builder.facts.equal(each.shape[-1], 3):
            problem = f"takes vectors with 3 elements, not {each.shape[-1]}"
            raise Failure(BadArguments(function=name, problem=problem))
    left, right = ([at(each, each.ndim - 1, i) for i in range(3)] for each in (x, y))
    parts = [
        _determinant(left[i], left[j], right[i], right[j]) for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    last = parts[0].ndim
    whole = joined([reshaped(part, (*part.shape, 1)) for part in parts], last)
    return moved(whole, last, normalize_axis(axisc, last + 1, name))


def _determinant(a: Value, b: Value, c: Value, d: Value) -> Value:
    """`a*d - b*c`, broadcast."""
    result: Value = subtract(multiply(a, d), multiply(b, c))
    return result
