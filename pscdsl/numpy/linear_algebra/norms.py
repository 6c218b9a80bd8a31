"""Norms of vectors and matrices, and condition numbers.

Where a norm is 0 and has no derivative, its gradient is 0, which is one of its subgradients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.linalg import Svd
from pscdsl._src.primitives.reductions import Reduce, Reduction
from pscdsl.numpy import arithmetic
from pscdsl.numpy.axes import Axes, normalize_axes
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.elementwise import to_inexact
from pscdsl.numpy.linear_algebra.operands import (
    matrix,
    require_axes,
    require_precision,
    require_square,
)
from pscdsl.numpy.linear_algebra.systems import inverse
from pscdsl.numpy.reductions import extremum, finished, reduced_shape, require_elements, total
from pscdsl.numpy.shorthand import cast, filled, is_nan, reshaped, transposed, where, wide
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_scalar

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
    axes = normalize_axes(axis, x.ndim, name)
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
    powers = total(arithmetic.power(size, size.builder.literal(order, size.dtype)), axes, keepdims)
    return cast(root(powers, 1 / order), dtype)


def squares(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """The sum of the squares."""
    if not x.dtype.is_complex:
        return total(e.multiply(x, x), axes, keepdims)
    parts = (e.multiply(part, part) for part in (e.real(x), e.imag(x)))
    return total(e.add(*parts), axes, keepdims)


def root(x: Value, exponent: float) -> Value:
    """A power of a sum; with the gradient 0 where the sum is 0."""
    if exponent < 0:
        return arithmetic.power(x, x.builder.literal(exponent, x.dtype))  # type: ignore[no-any-return]
    nothing = e.equal(x, 0)
    some = where(nothing, filled(x, 1, ()), x)
    found = e.sqrt(some) if exponent == 0.5 else e.power(some, exponent)
    return where(nothing, filled(x, 0, ()), found)


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
        result = e.divide(low, high) if p == -2 else e.divide(high, low)
    else:
        require_square(name, x)
        axes = (last - 1, last)
        result = e.multiply(
            _matrix_norm(name, x, p, axes, False), _matrix_norm(name, inverse(x), p, axes, False)
        )
    given = Reduce("any", (last - 1, last))(is_nan(x))
    unknown = e.bitwise_and(is_nan(result), e.invert(given))
    return where(unknown, filled(result, math.inf, ()), result)
