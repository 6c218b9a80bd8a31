"""Distributions of numbers, random orders, and choices among what there is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.numpy_dtypes import finfo, to_numpy
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import special as s
from pscdsl._src.primitives.random import RandomBits
from pscdsl._src.primitives.shaping import Iota
from pscdsl._src.primitives.sorting import Sort
from pscdsl.numpy.calling import as_count, normalize_axis
from pscdsl.numpy.elementwise import literal
from pscdsl.numpy.indexing import require_elements
from pscdsl.numpy.reductions import cumsum, extremum, total
from pscdsl.numpy.shorthand import (
    at,
    at_least,
    cast,
    counting,
    filled,
    integers_of,
    part,
    reshaped,
    where,
    wide,
)
from pscdsl.numpy.sorting import argmax, places
from pscdsl.numpy.updating import take
from pscdsl.random.drawing import (
    Values,
    accepted,
    array_of,
    between,
    drawn_in,
    fitted,
    float_dtype,
    integers,
    interval,
    loop,
    of_key,
    operand,
    required,
    shape_of,
    some,
    subkeys,
    unit,
)
from pscdsl.typing.array_types import Shape, size_of
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import UnprovenSize, WrongNumberOfAxes, disagreement
from pscdsl.typing.codes.shapes_of_arguments import LengthsDiffer
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import F64, I32, KEY, U64, DType, Kind
from pscdsl.typing.python_containers import is_integer_scalar

# Distributions: continuous ones, Poisson numbers, gamma numbers and what is made of them.


# Distributions on the real line, by the inverse of their distribution functions.
#
# Numbers of half precision are drawn in f32 and rounded: from as few bits as they have, they would
# be a few hundred numbers.


TAIL = 4.0
"""Beyond this, the distribution function is too near 1 to tell one number from the next."""


def tiny(dtype: DType) -> float:
    """The smallest positive number with full precision."""
    return float(finfo(dtype).tiny)


def positive(key: Value, shape: Shape, dtype: DType) -> Value:
    """Uniform numbers above 0 and below 1."""
    return e.maximum(unit(key, shape, dtype), tiny(dtype))


def _signed(key: Value, shape: Shape, dtype: DType) -> Value:
    """Uniform numbers above -1 and below 1."""
    above = float(np.nextafter(to_numpy(dtype).type(-1), to_numpy(dtype).type(0)))
    here = key.builder.program.current
    return interval(key, shape, here.literal(above, dtype), here.literal(1.0, dtype))


def standard_normal(key: Value, shape: Shape, dtype: DType) -> Value:
    """Normal numbers with mean 0 and variance 1; complex ones with half of it in each part."""
    found = e.erf_inv(_signed(key, shape, wide(dtype))) * math.sqrt(2)
    return cast(found, dtype)


def standard_gumbel(key: Value, shape: Shape, dtype: DType) -> Value:
    """Gumbel numbers; all are finite."""
    found = -e.log(-e.log(positive(key, shape, wide(dtype))))
    return cast(found, dtype)


def standard_exponential(key: Value, shape: Shape, dtype: DType) -> Value:
    """Exponential numbers with mean 1."""
    found = -e.log1p(-unit(key, shape, wide(dtype)))
    return cast(found, dtype)


@of_key("normal")
def _normal(here: Builder, key: Value, shape: Any, dtype: Any) -> Value:
    sizes = shape_of("normal", here.facts, shape)
    if dtype is None or not dtype.is_complex:
        return standard_normal(key, sizes, float_dtype(here, "normal", dtype))
    parts = [standard_normal(each, sizes, dtype.real) for each in subkeys(key, 2)]
    return e.make_complex(*parts) / math.sqrt(2)


@of_key("exponential")
def _exponential(here: Builder, key: Value, shape: Any, dtype: Any) -> Value:
    kind = float_dtype(here, "exponential", dtype)
    return standard_exponential(key, shape_of("exponential", here.facts, shape), kind)


@of_key("laplace")
def _laplace(here: Builder, key: Value, shape: Any, dtype: Any) -> Value:
    kind = float_dtype(here, "laplace", dtype)
    u = _signed(key, shape_of("laplace", here.facts, shape), wide(kind))
    return cast(e.sign(u) * e.log1p(-e.absolute(u)), kind)


@of_key("gumbel")
def _gumbel(here: Builder, key: Value, shape: Any, dtype: Any) -> Value:
    kind = float_dtype(here, "gumbel", dtype)
    return standard_gumbel(key, shape_of("gumbel", here.facts, shape), kind)


@of_key("logistic")
def _logistic(here: Builder, key: Value, shape: Any, dtype: Any) -> Value:
    kind = float_dtype(here, "logistic", dtype)
    u = positive(key, shape_of("logistic", here.facts, shape), wide(kind))
    return cast(e.log(u) - e.log1p(-u), kind)


@of_key("truncated_normal")
def _truncated_normal(
    here: Builder, key: Value, lower: Any, upper: Any, shape: Any, dtype: Any
) -> Value:
    kind = float_dtype(here, "truncated_normal", dtype, (lower, upper))
    bounds = [operand(here, each, kind) for each in (lower, upper)]
    sizes = shape_of("truncated_normal", here.facts, shape, bounds)
    low, high = fitted(bounds, sizes)
    # In double precision, so that bounds far from 0 leave more than a few numbers between them.
    share = unit(key, sizes, F64)
    low64, high64 = cast(low, F64), cast(high, F64)
    ends = [e.erf(each * math.sqrt(0.5)) for each in (low64, high64)]
    found = e.erf_inv(between(share, *ends)) * math.sqrt(2)
    if _may_be_in_tail(bounds):
        right = e.greater(low64, TAIL)
        tail = right | e.less(high64, -TAIL)
        first = where(right, -high64, low64)
        last = where(right, -low64, high64)
        first, last = (
            where(tail, first, filled(low64, -TAIL - 1)),
            where(tail, last, filled(low64, -TAIL)),
        )
        drawn = _lower_tail(where(right, 1.0 - share, share), first, last)
        found = where(tail, where(right, -drawn, drawn), found)
    return e.minimum(e.maximum(low, cast(found, kind)), high)


def _may_be_in_tail(bounds: Sequence[Value]) -> bool:
    """Return whether both bounds may be far on one side of 0."""
    low, high = map(literal, bounds)
    known = [isinstance(each, int | float) for each in (low, high)]
    return not ((known[0] and low <= TAIL) and (known[1] and high >= -TAIL))  # type: ignore[operator]


def _lower_tail(share: Value, low: Value, high: Value) -> Value:
    """The number between two, far below 0, below which so much of the probability is.

    By the logarithm of the distribution function, which Newton's method inverts.
    """
    most = s.log_ndtr(high)
    least = e.exp(s.log_ndtr(low) - most)
    part = least + (1.0 - least) * e.maximum(share, tiny(F64))
    wanted = most + e.log(part)
    size = wanted * -2.0 - math.log(2 * math.pi)
    x: Value = -e.sqrt(size - e.log(size))
    for _ in range(3):
        inverse = s.erfcx(x * -math.sqrt(0.5)) * math.sqrt(math.pi / 2)
        x = x - (s.log_ndtr(x) - wanted) * inverse
    return x


# Poisson numbers: by counting where the mean is small, else by transformed rejection.
#
# W. Hörmann: "The transformed rejection method for generating Poisson random variables", Insurance:
# Mathematics and Economics 12 (1993), algorithm PTRS.


SMALL = 10.0
TINY = 1e-30
"""Terms below this change no sum."""
SHIFT = 8
"""Where Stirling's series has the precision of f64 after so many steps of the recurrence."""
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


@of_key("poisson")
def _poisson(here: Builder, key: Value, lam: Any, shape: Any, dtype: Any) -> Value:
    kind = required("poisson", dtype or drawn_in(here, Kind.INT), "integer")
    given = operand(here, lam, float_dtype(here, "poisson", None, (lam,)))
    sizes = shape_of("poisson", here.facts, shape, (given,))
    mean = broadcast_to(cast(given, F64), sizes)
    most = float(kind.range[1])
    zero, limit = here.literal(0.0, F64), here.literal(2.0 * most, F64)
    mean = e.minimum(where(mean > 0.0, mean, zero), limit)
    small = e.less(mean, SMALL)
    first, second = subkeys(key, 2)
    few = _summed_up(first, where(small, mean, zero))
    many = _transformed(second, where(small, here.literal(SMALL, F64), mean))
    found = where(small, few, many)
    return cast(e.minimum(found, most), kind)


def _summed_up(key: Value, mean: Value) -> Value:
    """For means below 10: the inverse of the distribution function, summed up term by term."""
    here = key.builder.program.current
    u = unit(key, mean.shape, F64)
    none, first = here.full(0.0, mean.shape, F64), e.exp(-mean)

    def step(state: Values) -> Values:
        count, term, total = state
        later = count + 1.0
        term = term * mean / later
        count = where(e.greater_equal(u, total), later, count)
        return count, term, total + term

    def going(state: Values) -> Value:
        # Rounding may keep the sum from ever reaching a number close to 1.
        left = e.greater_equal(u, state[2])
        return some(left & e.greater(state[1], TINY))

    return loop((none, first, first), going, step)[0]


def _log_factorial(k: Value) -> Value:
    """The logarithm of k!, for numbers that are whole and not negative."""
    z = k + (SHIFT + 1.0)
    inverse = 1.0 / z
    square = inverse * inverse
    series: Any = STIRLING[-1]
    for each in reversed(STIRLING[:-1]):
        series = square * series + each
    product = k + 1.0
    for step in range(2, SHIFT + 1):
        product = product * (k + float(step))
    main = (z - 0.5) * e.log(z) - z
    main = main + 0.5 * math.log(2 * math.pi)
    found: Value = main + series * inverse - e.log(product)
    return found


def _transformed(key: Value, mean: Value) -> Value:
    """For means of at least 10."""
    log_mean, root = e.log(mean), e.sqrt(mean)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    within = 0.9277 - 3.6224 / (b - 2.0)

    def propose(used: Value) -> tuple[Value, Value]:
        first, second = subkeys(used, 2)
        u = unit(first, mean.shape, F64) - 0.5
        v = positive(second, mean.shape, F64)
        us = 0.5 - e.absolute(u)
        slope = 2.0 * a / us + b
        k = e.floor(slope * u + mean + 0.43)
        quick = (us >= 0.07) & e.less_equal(v, within)
        never = (us < 0.013) & e.greater(v, us)
        never = never | (k < 0.0)
        squeeze = a / (us * us) + b
        left = e.log(v * inverse_alpha / squeeze)
        counted = e.maximum(k, 0.0)
        right = counted * log_mean - mean - _log_factorial(counted)
        slow = e.less_equal(left, right) & ~never
        return k, quick | slow

    return accepted(key, mean.shape, F64, propose)


# Gamma numbers and what is made of them.
#
# G. Marsaglia, W. W. Tsang: "A simple method for generating gamma variables", ACM Transactions on
# Mathematical Software 26 (2000).


def _cubes(key: Value, a: Value) -> tuple[Value, Value]:
    """For parameters of at least 1: the gamma numbers are the products of the two results."""
    d = a - 1 / 3
    c = 1.0 / e.sqrt(9.0 * d)

    def propose(used: Value) -> tuple[Value, Value]:
        first, second = subkeys(used, 2)
        x = standard_normal(first, a.shape, a.dtype)
        u = positive(second, a.shape, a.dtype)
        root = 1.0 + c * x
        v = root * root * root
        inside = v > 0.0
        log_v = e.log(where(inside, v, v.builder.literal(1.0, v.dtype)))
        bound = 0.5 * (x * x) + d
        bound = bound - d * v + d * log_v
        good = inside & e.less(e.log(u), bound)
        possible = e.is_finite(d) & (d > 0.0)
        return v, good | ~possible

    return d, accepted(key, a.shape, a.dtype, propose)


def _drawn(key: Value, a: Value) -> tuple[Value, Value, Value]:
    """Gamma numbers as `d v exp(boost)`, for each parameter of an array."""
    first, second = subkeys(key, 2)
    small = a < 1.0
    d, v = _cubes(first, where(small, a + 1.0, a))
    u = positive(second, a.shape, a.dtype)
    zero = a.builder.literal(0.0, a.dtype)
    return d, v, where(small, e.log(u) / a, zero)


def _checked(found: Value, a: Value) -> Value:
    """Not a number where the parameter is negative or none."""
    nan = a.builder.literal(float("nan"), a.dtype)
    return where(a >= 0.0, found, nan)


def log_gamma_numbers(key: Value, a: Value) -> Value:
    """Logarithms of gamma numbers."""
    d, v, boost = _drawn(key, a)
    return _checked(e.log(d) + e.log(v) + boost, a)


def _parameters(
    here: Builder, name: str, given: tuple[Any, ...], shape: Any, dtype: Any
) -> tuple[list[Value], Shape, Any]:
    """The parameters of a distribution as it computes with them, their shape, and its dtype."""
    kind = float_dtype(here, name, dtype, given)
    values = [operand(here, each, kind) for each in given]
    sizes = shape_of(name, here.facts, shape, values)
    return [broadcast_to(cast(each, wide(kind)), sizes) for each in values], sizes, kind


@of_key("gamma")
def _gamma(here: Builder, key: Value, a: Any, shape: Any, dtype: Any) -> Value:
    (parameter,), _, kind = _parameters(here, "gamma", (a,), shape, dtype)
    d, v, boost = _drawn(key, parameter)
    found = d * v * e.exp(boost)
    return cast(_checked(found, parameter), kind)


@of_key("loggamma")
def _loggamma(here: Builder, key: Value, a: Any, shape: Any, dtype: Any) -> Value:
    (parameter,), _, kind = _parameters(here, "loggamma", (a,), shape, dtype)
    return cast(log_gamma_numbers(key, parameter), kind)


@of_key("beta")
def _beta(here: Builder, key: Value, a: Any, b: Any, shape: Any, dtype: Any) -> Value:
    (first, second), _, kind = _parameters(here, "beta", (a, b), shape, dtype)
    keys = subkeys(key, 2)
    one, other = (log_gamma_numbers(each, x) for each, x in zip(keys, (first, second), strict=True))
    return cast(e.logistic(one - other), kind)


@of_key("dirichlet")
def _dirichlet(here: Builder, key: Value, alpha: Any, shape: Any, dtype: Any) -> Value:
    kind = float_dtype(here, "dirichlet", dtype, (alpha,))
    given = operand(here, alpha, kind)
    if not given.ndim:
        raise Failure(
            WrongNumberOfAxes(
                function="psc.random.dirichlet", given=given.type, wanted="at least 1 axis"
            )
        )
    batch = given.shape[:-1] if shape is None else shape_of("dirichlet", here.facts, shape)
    parameter = broadcast_to(cast(given, wide(kind)), (*batch, given.shape[-1]))
    logs = log_gamma_numbers(key, parameter)
    last = (logs.ndim - 1,)
    parts = e.exp(logs - extremum(logs, "maximum", last, True))
    return cast(parts / total(parts, last, True), kind)


# Random orders, and choices among what there is.


def shuffled(key: Value, x: Value, axis: int) -> Value:
    """Each row along an axis in an order of its own: that of random numbers of 64 bits.

    Two of n numbers are equal, and their elements in order, with a probability below n**2 / 2**65.
    """
    return Sort(axis).bind(RandomBits(x.shape, U64)(key), x)[1]


def order(key: Value, size: Size) -> Value:
    """The i32 numbers below a size in a random order."""
    return shuffled(key, key.builder.program.current.bind(Iota((size,), 0, I32), ())[0], 0)


def _counted(here: Builder, name: str, x: Any) -> Size | None:
    """The size that is to be counted up to; None for an array."""
    counted = isinstance(x, int | Dim) or is_integer_scalar(x)
    return as_count(x, f"psc.random.{name}", here.facts) if counted else None


def _array(here: Builder, x: Any) -> Value:
    found = array_of(here, x)
    return found.default() if isinstance(found, Weak) else found


@of_key("permutation")
def _permutation(here: Builder, key: Value, x: Any, axis: int, independent: bool) -> Value:
    size = _counted(here, "permutation", x)
    if size is not None:
        return integers_of(order(key, size))
    array = _array(here, x)
    along = normalize_axis(axis, array.ndim, "psc.random.permutation")
    if array.dtype is not KEY and (independent or array.ndim == 1):
        return shuffled(key, array, along)
    if independent and array.ndim > 1:
        problem = "orders keys along one axis for all rows alike"
        raise Failure(BadArguments(function="psc.random.permutation", problem=problem))
    return _taken(array, order(key, array.shape[along]), along)


def _taken(array: Value, indices: Value, axis: int) -> Value:
    found: Value = take(array, indices, axis)
    return found


@of_key("choice")
def _choice(
    here: Builder, key: Value, a: Any, shape: Any, replace: bool, p: Any, axis: int
) -> Value:
    size, array, along = _counted(here, "choice", a), None, 0
    if size is None:
        array = _array(here, a)
        along = normalize_axis(axis, array.ndim, "psc.random.choice")
        size = array.shape[along]
    require_elements(here.facts, size, along)
    sizes = shape_of("choice", here.facts, shape)
    chances = None if p is None else _chances(here, p, size)
    if replace:
        found = _with_replacement(here, key, sizes, size, chances)
    else:
        found = _without_replacement(here, key, sizes, size, chances)
    return found if array is None else _taken(array, found, along)


def _chances(here: Builder, p: Any, size: Size) -> Value:
    chances = operand(here, p, float_dtype(here, "choice", None, (p,)))
    if chances.ndim != 1 or not here.facts.equal(chances.shape[0], size):
        given = chances.shape[0] if chances.ndim == 1 else chances.ndim
        why = disagreement(here.facts, given, size) if chances.ndim == 1 else "`p` has 1 axis"
        raise Failure(
            LengthsDiffer(function="psc.random.choice", left="`p`", right="what there is", why=why)
        )
    return chances


def _with_replacement(
    here: Builder, key: Value, shape: Shape, size: Size, chances: Value | None
) -> Value:
    if chances is None:
        return integers(here, key, shape, 0, size, I32)
    sums: Value = cumsum(chances, 0)
    total = at(sums, 0, size - 1)
    # Above 0, so that what has no chance is not found.
    reached = (1.0 - unit(key, shape, chances.dtype)) * total
    return places(sums, reached, "left")


def _without_replacement(
    here: Builder, key: Value, shape: Shape, size: Size, chances: Value | None
) -> Value:
    count = size_of(shape)
    if not at_least(here.facts, size, count):
        what = "`psc.random.choice` without replacement"
        raise Failure(UnprovenSize.of(here.facts, what, Fact("<=", count, size)))
    if chances is None:
        found = order(key, size)
    else:  # the largest of Gumbel numbers raised by the logarithms: one after the other
        raised = standard_gumbel(key, (size,), chances.dtype) + e.log(chances)
        found = Sort(0, descending=True).bind(raised, counting(raised, 0))[1]
    return reshaped(part(found, 0, 0, count), shape)


@of_key("categorical")
def _categorical(here: Builder, key: Value, logits: Any, axis: int, shape: Any) -> Value:
    given = operand(here, logits, float_dtype(here, "categorical", None, (logits,)))
    along = normalize_axis(axis, given.ndim, "psc.random.categorical")
    batch = (*given.shape[:along], *given.shape[along + 1 :])
    wanted = batch if shape is None else shape_of("categorical", here.facts, shape)
    extra = len(wanted) - len(batch)
    if extra < 0:
        problem = f"takes a shape with at least {len(batch)} axes, those of the logits"
        raise Failure(BadArguments(function="psc.random.categorical", problem=problem))
    place = extra + along
    sizes = (*wanted[:place], given.shape[along], *wanted[place:])
    raised = standard_gumbel(key, sizes, given.dtype) + broadcast_to(given, sizes)
    found: Value = argmax(here, raised, place)
    return found
