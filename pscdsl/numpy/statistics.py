"""Weighted averages, covariances and correlations."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.elementwise import Clamp
from pscdsl.numpy.axes import Axes, normalize_axes
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.contraction import Labelled, contract
from pscdsl.numpy.elementwise import REAL, require, to_inexact
from pscdsl.numpy.linear import conjugated
from pscdsl.numpy.moments import averaging_dtype, mean_over
from pscdsl.numpy.reductions import count_along, total
from pscdsl.numpy.searching import require_same_length, require_vector
from pscdsl.numpy.shorthand import (
    at_least,
    cast,
    filled,
    joined,
    largest,
    reshaped,
    spread,
    transposed,
    wide,
)
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import instance
from pscdsl.typing.codes.shapes_library import TooFewElements, WeightsDoNotFit
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType


def _fitted(weights: Value, a: Value, axes: tuple[int, ...], whole: bool) -> Value:
    """Weights in the shape of what they weigh."""
    facts = a.builder.facts

    def fits(shape: tuple[Any, ...]) -> bool:
        return len(shape) == weights.ndim and all(map(facts.equal, shape, weights.shape))

    if fits(a.shape):
        return weights
    along = tuple([a.shape[axis] for axis in axes])
    if whole or not fits(along):
        raise Failure(
            WeightsDoNotFit(function="numpy.average", shape=a.shape, weights=weights.shape)
        )
    order = sorted(range(len(axes)), key=lambda index: axes[index])
    return spread(transposed(weights, order), a.shape, sorted(axes))


@of_numbers("numpy.average", together=("a", "weights"))
def average(
    a: Value,
    axis: Axes = None,
    weights: Value | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Value | tuple[Value, Value]:
    """The weighted mean; not a number or infinite where the weights add up to zero."""
    x = to_inexact(a)
    x = cast(x, wide(x.dtype))
    axes = normalize_axes(axis, a.ndim, "numpy.average")
    if weights is None:
        result = mean_over(x, axes, keepdims)
        count = x.builder.program.current.size(count_along(a.shape, axes), x.dtype)
        weight = filled(result, count)
    else:
        w = _fitted(cast(weights, x.dtype), x, axes, axis is None)
        weight = total(w, axes, keepdims)
        result = e.divide(total(e.multiply(x, w), axes, keepdims), weight)
    final = to_inexact(a).dtype if a.dtype.is_inexact else x.dtype
    return (cast(result, final), cast(weight, final)) if returned else cast(result, final)


def _variables(m: Value, rowvar: bool, name: str) -> Value:
    """One row for each variable."""
    require(name, m, "any")
    if m.ndim > 2:
        raise Failure(WrongNumberOfAxes(function=name, given=m.type, wanted="1 or 2 axes"))
    if m.ndim < 2:
        return reshaped(m, (1, *(m.shape or (1,))))
    return m if rowvar else transposed(m, (1, 0))


def _covariances(
    m: Value,
    y: Value | None,
    rowvar: bool,
    ddof: Any,
    weights: tuple[Value | None, Value | None],
    dtype: DType | None,
    name: str,
) -> Value:
    final = averaging_dtype(m, dtype, name)
    x = _variables(m, rowvar, name)
    if y is not None:
        other = _variables(y, rowvar, name)
        sizes = (x.shape[1], other.shape[1])
        require_same_length(x, sizes, name, "a row of `m`", "a row of `y`")
        x = joined((x, other), 0)
    x = cast(x, wide(final))
    observations = x.shape[1]
    facts = x.builder.facts
    weight = _weight(x, weights, name)
    divisor: Any
    if weight is None:
        middle = mean_over(x, (1,), keepdims=True)
        divisor = largest(facts, observations - ddof, 0)
    else:
        all_weight = total(weight, (0,))
        each = spread(weight, x.shape, (1,))
        middle = e.divide(total(e.multiply(x, each), (1,), True), all_weight)
        lost = _mean_weight(weight, weights[1], all_weight)
        divisor = e.maximum(_real(e.subtract(all_weight, e.multiply(lost, ddof))), 0)
        divisor = cast(divisor, x.dtype)
    centred: Value = e.subtract(x, middle)
    scaled = centred if weight is None else e.multiply(centred, spread(weight, x.shape, (1,)))
    products = contract(
        (Labelled(scaled, ("i", "k")), Labelled(conjugated(centred), ("j", "k"))), ("i", "j")
    )
    return cast(e.divide(products, divisor), final)


def _real(x: Value) -> Value:
    return e.real(x) if x.dtype.is_complex else x


def _weight(x: Value, weights: tuple[Value | None, Value | None], name: str) -> Value | None:
    """The product of the weights that are given."""
    result: Value | None = None
    for each, what in zip(weights, ("`fweights`", "`aweights`"), strict=True):
        if each is not None:
            require(name, each, REAL if what == "`aweights`" else "integer or bool")
            sizes = (x.shape[1], require_vector(each, name, what))
            require_same_length(x, sizes, name, "the observations", what)
            factor = cast(each, x.dtype)
            result = factor if result is None else e.multiply(result, factor)
    return result


def _mean_weight(weight: Value, aweights: Value | None, all_weight: Value) -> Value:
    """The mean of `aweights`, each counted as often as all weights say; 1 without them."""
    if aweights is None:
        return filled(all_weight, 1)
    result: Value = e.divide(
        total(e.multiply(weight, cast(aweights, weight.dtype)), (0,)), all_weight
    )
    return result


def _squeezed(c: Value, given: Value, name: str) -> Value:
    """The covariances of several variables; that of one has no axes."""
    facts, count = c.builder.facts, c.shape[0]
    if facts.equal(count, 1):
        return reshaped(c, ())
    if count == 0 or at_least(facts, count, 2):
        return c
    why = instance(facts, Fact("<=", 2, count))
    what = "more than one variable, that is a result with axes,"
    raise Failure(
        TooFewElements(function=name, given=given.type, size=count, needed=2, what=what, why=why)
    )


@of_numbers("numpy.cov", together=("m", "y"), alone=("fweights", "aweights"))
def cov(
    here: Any,
    m: Value,
    y: Value | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Value | None = None,
    aweights: Value | None = None,
    *,
    dtype: DType | None = None,
) -> Value:
    """The covariances of variables, one row of observations each."""
    if ddof is None:
        ddof = 0 if bias else 1
    if not isinstance(ddof, int):
        problem = f"takes an integer `ddof`, not {describe(ddof)}"
        raise Failure(BadArguments(function="numpy.cov", problem=problem))
    weights = (fweights, aweights)
    return _squeezed(_covariances(m, y, rowvar, ddof, weights, dtype, "numpy.cov"), m, "numpy.cov")


@of_numbers("numpy.corrcoef", together=("x", "y"))
def corrcoef(
    x: Value, y: Value | None = None, rowvar: bool = True, *, dtype: DType | None = None
) -> Value:
    """The correlations of variables, one row of observations each."""
    c = _covariances(x, y, rowvar, 1, (None, None), dtype, "numpy.corrcoef")
    variance = contract((Labelled(_real(c), ("i", "i")),), ("i",))
    deviation: Value = cast(e.sqrt(variance), c.dtype)
    for axis in (0, 1):
        c = e.divide(c, spread(deviation, c.shape, (axis,)))
    return _squeezed(_bounded(c), x, "numpy.corrcoef")


def _bounded(c: Value) -> Value:
    """Each part between -1 and 1, where rounding has led beyond."""
    if c.dtype.is_complex:
        result: Value = e.make_complex(_bounded(e.real(c)), _bounded(e.imag(c)))
        return result
    return Clamp()(filled(c, -1, ()), c, filled(c, 1, ()))
