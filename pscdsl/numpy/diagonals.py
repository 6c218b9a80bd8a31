"""Diagonals and triangles, and matrices made of them."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import function
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.linalg.matrices import Diagonal
from pscdsl._src.primitives.shaping import Pad
from pscdsl.numpy.arguments import as_count, as_size, normalize_axis
from pscdsl.numpy.calling import created, of_arrays
from pscdsl.numpy.elementwise import with_i64
from pscdsl.numpy.shorthand import (
    cast,
    filled,
    largest,
    least,
    raveled,
    reshaped,
    spread,
    transposed,
    where,
)
from pscdsl.typing.array_types import Shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import RepeatedAxis, UnprovenSize, WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, DType, Kind


@function("numpy.eye")
def eye(here: Builder, N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Value | Weak:
    """Ones on a diagonal, zeros elsewhere; open as a float without a dtype."""
    rows = as_count(N, "numpy.eye", here.facts)
    columns = rows if M is None else as_count(M, "numpy.eye", here.facts)
    return _masked(here, "equal", (rows, columns), as_size(k, "numpy.eye"), dtype)


@function("numpy.identity")
def identity(here: Builder, n: Any, dtype: Any = None) -> Value | Weak:
    """The identity matrix; open as a float without a dtype."""
    return eye(here, n, dtype=dtype)  # type: ignore[no-any-return]


@function("numpy.tri")
def tri(here: Builder, N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Value | Weak:
    """Ones at and below a diagonal, zeros elsewhere; open as a float without a dtype."""
    rows = as_count(N, "numpy.tri", here.facts)
    columns = rows if M is None else as_count(M, "numpy.tri", here.facts)
    return _masked(here, "greater_equal", (rows, columns), as_size(k, "numpy.tri"), dtype)


@of_arrays("numpy.tril", together=("m",))
def tril(m: Value, k: Any = 0) -> Value:
    """The part at and below a diagonal of the last two axes, zeros elsewhere."""
    return _triangle("numpy.tril", m, k, lower=True)


@of_arrays("numpy.triu", together=("m",))
def triu(m: Value, k: Any = 0) -> Value:
    """The part at and above a diagonal of the last two axes, zeros elsewhere."""
    return _triangle("numpy.triu", m, k, lower=False)


def _triangle(name: str, m: Value, k: Any, lower: bool) -> Value:
    offset = as_size(k, name)
    if m.ndim == 0:
        raise Failure(WrongNumberOfAxes(function=name, given=m.type, wanted="a matrix"))
    if m.ndim == 1:
        m = broadcast_to(m, (m.shape[0], m.shape[0]))
    relation = "greater_equal" if lower else "less_equal"
    mask = _mask(m.builder, relation, m.shape[-2:], offset)
    mask = spread(mask, m.shape, (m.ndim - 2, m.ndim - 1))
    return where(mask, m, m.builder.literal(False, m.dtype))


def _mask(here: Builder, relation: str, shape: Shape, k: Size) -> Value:
    """Where row + k stands in a relation to the column."""
    row, column = (here.bind(Iota(shape, axis, I32), ())[0] for axis in (0, 1))
    shifted = row if k == 0 else e.add(row, k)
    result: Value = e.TABLE[relation](shifted, column)
    return result


def _masked(here: Builder, relation: str, shape: Shape, k: Size, dtype: Any) -> Value | Weak:
    def at(wanted: DType) -> Value:
        return cast(_mask(here, relation, shape, k), wanted)

    return created(here, dtype, Kind.FLOAT, shape, at)


@of_arrays("numpy.diag", together=("v",))
def diag(v: Value, k: Any = 0) -> Value:
    """A matrix with a vector on a diagonal, or the diagonal of a matrix."""
    if v.ndim == 2:
        return _diagonal("numpy.diag", v, as_size(k, "numpy.diag"))
    if v.ndim != 1:
        wanted = "a vector or a matrix"
        raise Failure(WrongNumberOfAxes(function="numpy.diag", given=v.type, wanted=wanted))
    return _on_diagonal("numpy.diag", v, as_size(k, "numpy.diag"))


@of_arrays("numpy.diagflat", together=("v",))
def diagflat(v: Value, k: Any = 0) -> Value:
    """A matrix with the elements of an array on a diagonal."""
    return _on_diagonal("numpy.diagflat", raveled(v), as_size(k, "numpy.diagflat"))


def _on_diagonal(name: str, v: Value, k: Size) -> Value:
    before, after = _sides(v.builder.facts, name, k)
    zero = v.builder.literal(False, v.dtype)
    # The vector along the columns: its place in each row does not depend on the row.
    padded = v if k == 0 else Pad((before,), (after,), (0,))(v, zero)
    size = padded.shape[0]
    mask = _mask(v.builder, "equal", (size, size), k)
    return where(mask, spread(padded, (size, size), (1,)), zero)


def _sides(facts: Assumptions, name: str, k: Size) -> tuple[Size, Size]:
    """How far a diagonal is to the right, and how far down; one of them is zero."""
    if facts.proves(Fact("<=", 0, k)):
        return k, 0
    if not facts.proves(Fact("<=", k, 0)):
        raise Failure(UnprovenSize.of(facts, f"the diagonal in `{name}`", Fact("<=", 0, k)))
    return 0, -k


def _diagonal(name: str, x: Value, k: Size) -> Value:
    """The elements on a diagonal of the last two axes, along the last axis of the result."""
    facts = x.builder.facts
    right, down = _sides(facts, name, k)
    axis = x.ndim - 2
    rows, columns = x.shape[axis:]
    count = largest(facts, least(facts, rows - down, columns - right), 0)
    if count == 0:
        return filled(x, False, (*x.shape[:axis], 0))
    return Diagonal(axis, count, down, right)(x)


@of_arrays("numpy.diagonal", together=("a",))
def diagonal(a: Value, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """A diagonal of two axes, along the last axis of the result."""
    name = "numpy.diagonal"
    if a.ndim < 2:
        raise Failure(WrongNumberOfAxes(function=name, given=a.type, wanted="two axes or more"))
    first, second = normalize_axis(axis1, a.ndim, name), normalize_axis(axis2, a.ndim, name)
    if first == second:
        raise Failure(RepeatedAxis(function=name, axis=first))
    rest = [axis for axis in range(a.ndim) if axis not in (first, second)]
    return _diagonal(name, transposed(a, (*rest, first, second)), as_size(offset, name))


@of_arrays("numpy.vander", together=("x",))
def vander(x: Value, N: Any = None, increasing: bool = False) -> Value:
    """The powers of each element of a vector, the highest first; integers in i64, u64 in f64."""
    name = "numpy.vander"
    if x.ndim != 1:
        raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted="a vector"))
    (size,) = x.shape
    count = size if N is None else as_count(N, name, x.builder.facts)
    if not x.dtype.is_number:
        raise Failure(BadArguments(function=name, problem=f"takes numbers, not {x.type}"))
    x = with_i64(x)
    exponent = x.builder.bind(Iota((size, count), 1, I32), ())[0]
    if not increasing:
        exponent = e.subtract(count - 1, exponent)
    base = broadcast_to(reshaped(x, (size, 1)), (size, count))
    return e.power(base, cast(exponent, x.dtype))  # type: ignore[no-any-return]
