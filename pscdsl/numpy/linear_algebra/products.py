"""Powers and chains of matrices, and the names that `np.linalg` has for other products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import Meaning, describe, function
from pscdsl._src.primitives.linalg import matrices as m
from pscdsl.numpy import diagonals, linear
from pscdsl.numpy.calling import as_array, of_numbers
from pscdsl.numpy.choosing import items
from pscdsl.numpy.contraction import typical
from pscdsl.numpy.elementwise import require
from pscdsl.numpy.linear_algebra.operands import require_axes, require_precision, require_square
from pscdsl.numpy.linear_algebra.systems import inverse
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType


@of_numbers("numpy.linalg.matrix_power", together=("a",))
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
            result = a if result is None else linear.matrix_product(result, a, name)
        n //= 2
        if not n:
            assert result is not None
            return result
        a = linear.matrix_product(a, a, name)


@function("numpy.linalg.multi_dot", together=("arrays",))
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
    return linear.matrix_product(left, _chain(name, parts, cuts, cut + 1, last), name)


@of_numbers("numpy.linalg.matrix_transpose", together=("x",))
def matrix_transpose(x: Value, /) -> Value:
    """The last two axes exchanged."""
    require_axes("numpy.linalg.matrix_transpose", x)
    return m.turned(x)


@of_numbers("numpy.linalg.diagonal", together=("x",))
def diagonal(x: Value, /, *, offset: Any = 0) -> Value:
    """A diagonal of matrices in the last two axes."""
    require_axes("numpy.linalg.diagonal", x)
    return _call(diagonals.diagonal, x, offset, -2, -1)


@of_numbers("numpy.linalg.trace", together=("x",))
def trace(x: Value, /, *, offset: Any = 0, dtype: DType | None = None) -> Value:
    """The sum along a diagonal of matrices in the last two axes."""
    require_axes("numpy.linalg.trace", x)
    return _call(linear.trace, x, offset, -2, -1, dtype)


@of_numbers("numpy.linalg.outer", together=("x1", "x2"))
def outer(x1: Value, x2: Value, /) -> Value:
    """Each element of a vector times each of another."""
    for x in (x1, x2):
        if x.ndim != 1:
            name = "numpy.linalg.outer"
            raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted="vectors"))
    return _call(linear.outer, x1, x2)


@of_numbers("numpy.linalg.cross", together=("x1", "x2"))
def cross(x1: Value, x2: Value, /, *, axis: int = -1) -> Value:
    """The cross product of vectors with 3 elements."""
    return _call(linear.cross, x1, x2, axis, axis, axis)


@of_numbers("numpy.linalg.matmul", together=("x1", "x2"))
def matmul(x1: Value, x2: Value, /) -> Value:
    """The matrix product."""
    return linear.matrix_product(x1, x2)


@of_numbers("numpy.linalg.tensordot", together=("x1", "x2"))
def tensordot(x1: Value, x2: Value, /, *, axes: Any = 2) -> Value:
    """Axes of one array against axes of another."""
    return _call(linear.tensordot, x1, x2, axes)


@of_numbers("numpy.linalg.vecdot", together=("x1", "x2"))
def vecdot(x1: Value, x2: Value, /, *, axis: int = -1) -> Value:
    """The products of the elements along an axis, the first conjugated, summed."""
    return linear.vecdot(x1, x2, axis=axis)  # type: ignore[no-any-return]


def _call(meaning: Meaning, *args: Any) -> Value:
    result: Value = meaning(*args)
    return result
