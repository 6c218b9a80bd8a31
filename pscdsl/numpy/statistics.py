"""Means, variances, quantiles, covariances and correlations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import OMITTED, describe
from pscdsl._src.language.results import Result, has_axes, new_if
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.custom_derivatives import StopGradient
from pscdsl._src.primitives.elementwise import (
    Clamp,
    imag,
    maximum,
    real,
    sqrt,
)
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.reductions import Reduce
from pscdsl.numpy.calling import (
    Axes,
    normalize_axes,
    of_numbers,
    reduced_axes,
    require_scalar,
)
from pscdsl.numpy.elementwise import REAL, require, to_inexact
from pscdsl.numpy.products import Labelled, conjugated, contract
from pscdsl.numpy.reductions import accumulated, count_along, reduced_shape, require_elements, total
from pscdsl.numpy.shorthand import (
    at,
    at_least,
    cast,
    filled,
    is_nan,
    joined,
    largest,
    reshaped,
    spread,
    transposed,
    where,
    wide,
)
from pscdsl.numpy.sorting import in_order, require_same_length, require_vector
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import WrongNumberOfAxes, instance
from pscdsl.typing.codes.shapes_of_arguments import TooFewElements, WeightsDoNotFit
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import BOOL, F64, I32, DType
from pscdsl.typing.python_containers import is_sequence

# Means, variances and standard deviations, in two passes; half precisions are taken in f32.


def averaged(a: Value, dtype: DType | None, name: str) -> tuple[Value, DType]:
    """An array of which an average is taken, and the floating-point dtype of that."""
    if dtype is None:
        a = to_inexact(a)
        return a, a.dtype
    if not dtype.is_inexact:
        problem = f"takes a floating-point or complex dtype, not {dtype}"
        raise Failure(BadArguments(function=name, problem=problem))
    return a, accumulated(a, dtype, name).dtype


def mean_over(x: Value, axes: tuple[int, ...], keepdims: bool = False) -> Value:
    """The mean over axes of an inexact array, in its own dtype."""
    return total(x, axes, keepdims) / count_along(x.shape, axes)


def squared(x: Value) -> Value:
    """The square of the absolute value of each element."""
    if not x.dtype.is_complex:
        return x * x
    re, im = real(x), imag(x)
    return re * re + im * im


@of_numbers("numpy.mean", together=("a",))
def mean(
    a: Value, axis: Axes = None, dtype: DType | None = None, *, keepdims: bool = False
) -> Value:
    """The mean over axes, in floating point."""
    a, result = averaged(a, dtype, "numpy.mean")
    axes = reduced_axes(axis, a.ndim, "numpy.mean")
    return cast(mean_over(cast(a, wide(result)), axes, keepdims), result)


@of_numbers("numpy.var", together=("a", "mean"), scalars=("ddof", "correction"))
def var(
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    ddof: Any = 0,
    keepdims: bool = False,
    mean: Value | None = None,
    correction: Any = OMITTED,
) -> Value:
    """The variance over axes, real also for complex numbers, unless a dtype is given."""
    a, result = averaged(a, dtype, "numpy.var")
    variance = _variance(a, axis, result, _ddof(ddof, correction), keepdims, mean)
    return cast(variance, result.real if dtype is None else result)


@of_numbers("numpy.std", together=("a", "mean"), scalars=("ddof", "correction"))
def std(
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    ddof: Any = 0,
    keepdims: bool = False,
    mean: Value | None = None,
    correction: Any = OMITTED,
) -> Value:
    """The standard deviation over axes, real also for complex numbers, unless a dtype is given."""
    a, result = averaged(a, dtype, "numpy.std")
    variance = _variance(a, axis, result, _ddof(ddof, correction), keepdims, mean)
    return cast(sqrt(variance), result.real if dtype is None else result)


def _variance(
    a: Value, axis: Axes, dtype: DType, ddof: Any, keepdims: bool, mean: Value | None
) -> Value:
    axes, x = reduced_axes(axis, a.ndim, "numpy.var"), cast(a, wide(dtype))
    middle = mean_over(x, axes, keepdims=True) if mean is None else _fitting(mean, x)
    summed = total(squared(x - middle), axes, keepdims)
    count = count_along(a.shape, axes)
    return summed / _degrees(summed, count, ddof)  # type: ignore[no-any-return]


def _fitting(mean: Value, x: Value) -> Value:
    """A mean that the user gives: it has the axes of the array, or fewer."""
    require("numpy.var", mean, "inexact")  # NumPy subtracts it from integers in their own dtype
    if mean.ndim > x.ndim:
        wanted = f"a mean with at most {x.ndim} axes"
        raise Failure(WrongNumberOfAxes(function="numpy.var", given=mean.type, wanted=wanted))
    return broadcast_to(cast(mean, x.dtype), x.shape)


def _degrees(like: Value, count: Size, ddof: Any) -> Any:
    """The count less the degrees of freedom, but not below 0."""
    if isinstance(ddof, int | Dim):
        return largest(like.builder.facts, count - ddof, 0)
    number = like.builder.size(count, like.dtype)
    return maximum(number - ddof, 0)


def _ddof(ddof: Any, correction: Any) -> Any:
    if correction is OMITTED:
        return ddof
    if correction is None or not (isinstance(ddof, int) and ddof == 0):
        problem = "takes `ddof` or `correction`, a number"
        raise Failure(BadArguments(function="numpy.var", problem=problem))
    return correction


@of_numbers("numpy.nanmean", together=("a",))
def nanmean(
    a: Value, axis: Axes = None, dtype: DType | None = None, *, keepdims: bool = False
) -> Value:
    """The mean of what is not NaN; NaN if there is nothing else."""
    a, result = averaged(a, dtype, "numpy.nanmean")
    axes, x = reduced_axes(axis, a.ndim, "numpy.nanmean"), cast(a, wide(result))
    return cast(_present_total(x, axes, keepdims) / _present(x, axes, keepdims), result)


@of_numbers("numpy.nanvar", together=("a", "mean"), scalars=("ddof", "correction"))
def nanvar(
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    ddof: Any = 0,
    keepdims: bool = False,
    mean: Value | None = OMITTED,
    correction: Any = OMITTED,
) -> Value:
    """The variance of what is not NaN; NaN if there is too little else."""
    a, result = averaged(a, dtype, "numpy.nanvar")
    variance = _nan_variance(a, axis, result, _ddof(ddof, correction), keepdims, mean)
    return cast(variance, result.real if dtype is None else result)


@of_numbers("numpy.nanstd", together=("a", "mean"), scalars=("ddof", "correction"))
def nanstd(
    a: Value,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    ddof: Any = 0,
    keepdims: bool = False,
    mean: Value | None = OMITTED,
    correction: Any = OMITTED,
) -> Value:
    """The standard deviation of what is not NaN; NaN if there is too little else."""
    a, result = averaged(a, dtype, "numpy.nanstd")
    variance = _nan_variance(a, axis, result, _ddof(ddof, correction), keepdims, mean)
    return cast(sqrt(variance), result.real if dtype is None else result)


def _nan_variance(
    a: Value, axis: Axes, dtype: DType, ddof: Any, keepdims: bool, mean: Value | None
) -> Value:
    axes, x = reduced_axes(axis, a.ndim, "numpy.nanvar"), cast(a, wide(dtype))
    if mean is None:
        raise Failure(BadArguments(function="numpy.nanvar", problem="takes an array as `mean`"))
    if mean is OMITTED:
        middle = _present_total(x, axes, True) / _present(x, axes, True)
    else:
        middle = _fitting(mean, x)
    zero = filled(x, 0, ())
    spread = where(is_nan(x), zero, x - middle)
    summed = total(squared(spread), axes, keepdims)
    degrees = cast(_present(x, axes, keepdims), summed.dtype) - ddof
    enough = degrees > 0
    return where(enough, summed / degrees, filled(summed, np.nan, ()))


def _present(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """Return how many elements over axes are not NaN."""
    return total(cast(~is_nan(x), x.dtype), axes, keepdims)


def _present_total(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    return total(where(is_nan(x), filled(x, 0, ()), x), axes, keepdims)


# Medians, quantiles and percentiles.
#
# Elements are sorted once; which of them to take is computed in f64, so that it does not depend on
# the precision of the elements.  A place that falls on an element gives that element, also beside
# an infinity.


@dataclass(frozen=True, slots=True)
class Method:
    """How a quantile is taken from sorted elements.

    place    where it lies among n elements, counted from 0, perhaps between two
    share    how much of the upper neighbour counts, from the fraction of the place; None if the
             place is always that of an element
    """

    place: Callable[[Value, Value], Any]
    share: Callable[[Value], Value] | None


def _proportional(n: Value, q: Value) -> Any:
    return (n - 1) * q


def _between(alpha: float, beta: float) -> Callable[[Value, Value], Any]:
    return lambda n, q: n * q + (q * (1 - alpha - beta) + (alpha - 1))


def _unchanged(share: Value) -> Value:
    return share


def _constant(inside: float, on: float) -> Callable[[Value], Value]:
    def share(x: Value) -> Value:
        return where(e.equal(x, 0), filled(x, on, ()), filled(x, inside, ()))

    return share


METHODS: dict[str, Method] = {
    "linear": Method(_proportional, _unchanged),
    "lower": Method(lambda n, q: e.floor(_proportional(n, q)), None),
    "higher": Method(lambda n, q: e.ceil(_proportional(n, q)), None),
    "nearest": Method(lambda n, q: e.round_even(_proportional(n, q)), None),
    "midpoint": Method(_proportional, _constant(0.5, 0.0)),
    "inverted_cdf": Method(lambda n, q: e.ceil(n * q - 1), None),
    "averaged_inverted_cdf": Method(lambda n, q: n * q - 1, _constant(1.0, 0.5)),
    "closest_observation": Method(lambda n, q: e.round_even(n * q) - 1, None),
    "interpolated_inverted_cdf": Method(_between(0, 1), _unchanged),
    "hazen": Method(_between(0.5, 0.5), _unchanged),
    "weibull": Method(_between(0, 0), _unchanged),
    "median_unbiased": Method(_between(1 / 3, 1 / 3), _unchanged),
    "normal_unbiased": Method(_between(3 / 8, 3 / 8), _unchanged),
}
"""The methods of Hyndman and Fan, and the older ones, by NumPy's names."""


def _fraction(here: Builder, q: Any, scale: int, name: str) -> Value:
    """The quantile wanted, in f64; what is known while checking must be within its range."""
    if is_sequence(q) and any(isinstance(each, Value | Weak) for each in q):
        fractions = [_fraction(here, each, scale, name) for each in q]
        for each in fractions:
            require_scalar(each, name, "q")
        return joined([reshaped(each, (1,)) for each in fractions], 0)
    if isinstance(q, Weak):
        q = q.at(F64)
    if isinstance(q, Value):
        require(name, q, "floating")
        q = cast(q, F64)
        return q if scale == 1 else q / scale  # type: ignore[no-any-return]
    try:
        numbers = np.asarray(q, np.float64) / scale
    except (TypeError, ValueError):
        raise Failure(
            BadArguments(function=name, problem=f"takes numbers, not {describe(q)}")
        ) from None
    if not np.all((numbers >= 0) & (numbers <= 1)):
        problem = f"takes fractions between 0 and {scale}, not {describe(q)}"
        raise Failure(BadArguments(function=name, problem=problem))
    return here.constant(numbers)


def _are_integers(q: Any) -> bool:
    """Return whether the quantiles wanted are known integers: 0 and 1."""
    parts = q if is_sequence(q) else (q,)
    return not any(isinstance(each, Value | Weak) for each in parts) and (
        np.asarray(q).dtype.kind in "biu"
    )


def _method(method: object, name: str) -> Method:
    found = METHODS.get(method) if isinstance(method, str) else None
    if found is None:
        raise Failure(BadArguments(function=name, problem=f"has no method {describe(method)}"))
    return found


def rows_of(a: Value, axes: Sequence[int]) -> Value:
    """The axes put together as a last one."""
    rest = [axis for axis in range(a.ndim) if axis not in axes]
    ordered = transposed(a, (*rest, *axes))
    shape = (*ordered.shape[: len(rest)], count_along(a.shape, axes))
    return reshaped(ordered, shape)


def _quantiles(
    a: Value,
    q: Value,
    axis: Axes,
    method: Method,
    keepdims: bool,
    name: str,
    skip_nan: bool,
    given: DType | None = None,
) -> Value:
    """The quantiles over axes; between elements they are in the `given` dtype if that is wider."""
    require(name, a, REAL)
    if a.dtype is BOOL and method.share is not None and "median" not in name:
        require(name, a, "real")  # NumPy's subtraction, which is not defined on bools
    a = a if method.share is None and not a.dtype.is_float else to_inexact(a)
    axes = normalize_axes(axis, a.ndim, name)
    require_elements(a, axes, name)
    rows = in_order(rows_of(a, axes), a.ndim - len(axes))
    final = a.dtype if given is None or given.bits <= a.dtype.bits else given
    if skip_nan and a.dtype.is_float:
        present = Reduce("sum", (rows.ndim - 1,))(cast(~is_nan(rows), I32))
        result = _taken(rows, cast(present, F64), q, method, final)
    else:
        count = a.builder.program.current.size(rows.shape[-1], F64)
        result = _taken(rows, count, q, method, final)
        if a.dtype.is_float:
            last = at(rows, rows.ndim - 1, rows.shape[-1] - 1)
            missing = spread(is_nan(last), result.shape, range(q.ndim, result.ndim))
            result = where(missing, filled(result, np.nan, ()), result)
    if keepdims:
        result = reshaped(result, (*q.shape, *reduced_shape(a.shape, axes, True)))
    return result


def _taken(rows: Value, count: Value, q: Value, method: Method, final: DType) -> Value:
    """The quantiles of sorted rows, of which `count` elements count; the axes of q come first.

    Those between elements are in the dtype `final`.
    """
    by_row = count.ndim
    if by_row:
        shape = (*count.shape, *q.shape)
        count = spread(count, shape, range(by_row))
        q = spread(q, shape, range(by_row, len(shape)))
    place: Value = method.place(count, q)
    below: Value = e.floor(place)
    low = _picked(rows, below, count, by_row)
    if method.share is None:
        return low
    high = _picked(rows, below + 1, count, by_row)
    share = method.share(place - below)
    if by_row:
        share = transposed(share, (*range(by_row, share.ndim), *range(by_row)))
    share = cast(share, wide(final))
    share = share if not share.ndim else spread(share, low.shape, range(share.ndim))
    return cast(_blended(cast(low, share.dtype), cast(high, share.dtype), share), final)


def _picked(rows: Value, place: Value, count: Value, by_row: int) -> Value:
    """The elements at places, clamped to those that count; the axes of the places come first."""
    zero = filled(place, 0, ())
    inside: Value = Clamp()(zero, place, e.maximum(count - 1, zero))
    index = reshaped(cast(inside, I32), (*place.shape, 1))
    found = Gather((rows.ndim - 1,), batched=by_row)(rows, index)
    return transposed(found, (*range(by_row, found.ndim), *range(by_row)))


def _blended(low: Value, high: Value, share: Value) -> Value:
    """Between two elements, exact at both, also where one is infinite or they are equal."""
    inner: Value = low * (1 - share) + high * share
    inner = where(e.equal(share, 1), high, inner)
    equal = e.equal(low, high)
    # Equal elements share the derivative.
    inner = where(equal, low + (high - low) * share, inner)
    infinite = equal & e.equal(e.absolute(low), math.inf)
    return where(e.equal(share, 0) | infinite, low, inner)


def _of_vectors(given: Mapping[str, Any]) -> bool:
    """Return whether an array has axes, and the median is along one at least."""
    axis = given.get("axis")
    return has_axes(given.get("a")) and not (is_sequence(axis) and not axis)


@of_numbers("numpy.median", together=("a",), result=new_if(_of_vectors))
def median(a: Value, axis: Axes = None, *, keepdims: bool = False) -> Value:
    """The middle element, or the mean of the two in the middle; NaN if one is NaN."""
    half = a.builder.program.current.literal(0.5, F64)
    return _quantiles(a, half, axis, METHODS["linear"], keepdims, "numpy.median", False)


@of_numbers("numpy.nanmedian", together=("a",), result=new_if(_of_vectors))
def nanmedian(a: Value, axis: Axes = None, *, keepdims: bool = False) -> Value:
    """The median of what is not NaN; NaN if there is nothing else."""
    half = a.builder.program.current.literal(0.5, F64)
    return _quantiles(a, half, axis, METHODS["linear"], keepdims, "numpy.nanmedian", True)


def _declare(name: str, scale: int, skip_nan: bool) -> None:
    qualified = f"numpy.{name}"

    @of_numbers(qualified, together=("a",), traced=("q",))
    def quantile(
        here: Builder,
        a: Value,
        q: Any,
        axis: Axes = None,
        *,
        method: str = "linear",
        keepdims: bool = False,
    ) -> Value:
        """Elements below which a fraction of all lies; the axes of q come first."""
        fraction, how = _fraction(here, q, scale, qualified), _method(method, qualified)
        if scale == 1 and not a.dtype.is_inexact and method == "linear" and _are_integers(q):
            how = METHODS["lower"]  # NumPy computes in integers: the first element or the last
        given = q.dtype if isinstance(q, Value) else None
        return _quantiles(a, fraction, axis, how, keepdims, qualified, skip_nan, given)


_declare("quantile", 1, False)
_declare("percentile", 100, False)
_declare("nanquantile", 1, True)
_declare("nanpercentile", 100, True)


# Weighted averages, covariances and correlations.


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
        result = total(x * w, axes, keepdims) / weight
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
    m, final = averaged(m, dtype, name)
    x = _variables(m, rowvar, name)
    if y is not None:
        y, _ = averaged(y, dtype, name)
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
        middle = total(x * each, (1,), True) / all_weight
        lost = _mean_weight(weight, weights[1], all_weight)
        divisor = e.maximum(_real(all_weight - lost * ddof), 0)
        divisor = cast(divisor, x.dtype)
    centred: Value = x - middle
    scaled = centred if weight is None else centred * spread(weight, x.shape, (1,))
    products = contract(
        (Labelled(scaled, ("i", "k")), Labelled(conjugated(centred), ("j", "k"))), ("i", "j")
    )
    return cast(products / divisor, final)


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
            if each.dtype.is_number and each.dtype.signed:  # NumPy raises
                negative = e.less(each, filled(each, 0))
                factor = where(negative, filled(factor, np.nan), factor)
            result = factor if result is None else result * factor
    return result


def _mean_weight(weight: Value, aweights: Value | None, all_weight: Value) -> Value:
    """The mean of `aweights`, each counted as often as all weights say; 1 without them."""
    if aweights is None:
        return filled(all_weight, 1)
    return total(weight * cast(aweights, weight.dtype), (0,)) / all_weight


def _squeezed(c: Value, given: Value, name: str) -> Value:
    """The covariances of several variables; that of one has no axes."""
    facts, count = c.builder.facts, c.shape[0]
    if facts.equal(count, 1):
        return reshaped(c, ())
    if count == 0 or at_least(facts, count, 2):
        return c
    why = instance(facts, Fact("<=", 2, count))
    what = "more than one variable, each a row unless `rowvar=False` is given,"
    raise Failure(
        TooFewElements(function=name, given=given.type, size=count, needed=2, what=what, why=why)
    )


@of_numbers("numpy.cov", together=("m", "y"), alone=("fweights", "aweights"), result=Result.ARRAY)
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
        c = c / spread(deviation, c.shape, (axis,))
    return _squeezed(_bounded(c), x, "numpy.corrcoef")


def _bounded(c: Value) -> Value:
    """Each part between -1 and 1, where rounding has led beyond.

    Exact correlations lie there, so the derivative is that of `c`: at 1 too there is no kink.
    """
    if c.dtype.is_complex:
        return e.make_complex(_bounded(e.real(c)), _bounded(e.imag(c)))
    bounded: Value = StopGradient()(Clamp()(filled(c, -1, ()), c, filled(c, 1, ())))
    beyond = StopGradient()(c - bounded)
    # Where variances have underflowed, c may be large: the difference has lost all digits.
    return where(e.absolute(c) < 2, c - beyond, bounded)
