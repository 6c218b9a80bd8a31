"""Curves given by coefficients of polynomials, or by samples."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import Any

from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import OMITTED, describe, function
from pscdsl._src.language.results import Result, new_if
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.matrices import EPSILON
from pscdsl._src.primitives.reductions import Cumulative
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import Iota, Pad
from pscdsl._src.primitives.sorting import Sort
from pscdsl._src.primitives.spectra import Eig, LeastSquares
from pscdsl.numpy.calling import (
    Axes,
    as_array,
    as_times,
    normalize_axes,
    normalize_axis,
    of_arrays,
    of_numbers,
    require_scalar,
    require_static,
)
from pscdsl.numpy.convolution import convolve
from pscdsl.numpy.creation import vander
from pscdsl.numpy.elementwise import REAL, literal, require, to_inexact, with_i64
from pscdsl.numpy.linear_algebra import number_for_each, require_precision, require_same, rounds_off
from pscdsl.numpy.manipulation import concatenated
from pscdsl.numpy.reductions import require_elements, total
from pscdsl.numpy.shorthand import (
    at,
    at_least,
    cast,
    filled,
    iota,
    is_nan,
    joined,
    largest,
    least,
    listed,
    part,
    raveled,
    reshaped,
    reversed_along,
    spread,
    where,
    wide,
)
from pscdsl.numpy.sorting import places, require_count, require_same_length, require_vector
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL, I32

# Polynomials as vectors of coefficients, the highest first.


FEW = 32
"""Up to so many coefficients are written out one after the other; more are a loop."""


@of_numbers("numpy.polyval", together=("p", "x"))
def polyval(p: Value, x: Value) -> Value:
    """A polynomial at x, by Horner's rule."""
    require("numpy.polyval", p, "numeric")
    size = require_vector(p, "numpy.polyval", "a vector of coefficients")
    result = filled(x, 0)
    if isinstance(size, int) and size <= FEW:
        for index in range(size):
            step: Value = result * x + at(p, 0, index)
            result = step if index else filled(x, at(p, 0, 0))
        return result
    with x.builder.program.inside() as inner:
        total, coefficient = inner.parameter(x.type), inner.parameter(at_type(p))
        step = total * x + coefficient
        block, captured = inner.finish((total, coefficient), (step,))
    scan = Scan(block, captured=len(captured), carried=1, length=size)
    return scan.bind(*captured, result, p)[0]


def _without_rcond(given: Mapping[str, Any]) -> bool:
    """Return whether `rcond` is not given back, as it is with `full`."""
    return given.get("full", False) is False


@of_numbers(
    "numpy.polyfit", together=("x", "y", "w"), numbers=("rcond",), result=new_if(_without_rcond)
)
def polyfit(
    x: Value,
    y: Value,
    deg: Any,
    rcond: Any = None,
    full: bool = False,
    w: Value | None = None,
    cov: Any = False,
) -> Value:
    """The polynomial of a degree that comes nearest to points, the highest coefficient first.

    The sum of the squares of what is missing is the least; `y` may have a column for each of
    several polynomials.
    The degree `deg` is a number that is known.  Singular values below `rcond` times the largest are
    left out; without it, below as many roundings as there are points.  What is missing is
    multiplied by the weights `w` before it is squared.
    """
    name = "numpy.polyfit"
    if type(deg) is not int or deg < 0:
        raise Failure(BadArguments(function=name, problem=f"takes a degree, not {describe(deg)}"))
    if full is not False or cov is not False:
        problem = "gives the coefficients alone: leave out `full` and `cov`"
        raise Failure(BadArguments(function=name, problem=problem))
    vectors = [(x, "a vector", (1,)), (y, "a vector or a matrix", (1, 2))]
    for each, wanted, ranks in [*vectors, *([] if w is None else [(w, "a vector", (1,))])]:
        require(name, each, REAL)
        if each.ndim not in ranks:
            raise Failure(WrongNumberOfAxes(function=name, given=each.type, wanted=wanted))
        require_same(name, (f"{x.type}", x.shape[0]), (f"{each.type}", each.shape[0]), x)
    x, y = to_inexact(x), to_inexact(y)
    require_elements(x, (0,), name)
    (size,), columns = x.shape, deg + 1
    powers = vander(x, columns)
    wanted_values = reshaped(y, (size, 1)) if y.ndim == 1 else y
    if w is not None:
        factors = reshaped(to_inexact(w), (size, 1))
        powers = powers * broadcast_to(factors, powers.shape)
        wanted_values = wanted_values * broadcast_to(factors, wanted_values.shape)
    scale: Value = e.sqrt(total(powers * powers, (0,)))
    powers = powers / broadcast_to(reshaped(scale, (1, columns)), powers.shape)
    if rcond is None:
        here = x.builder.program.current
        cutoff = here.size(size, x.dtype) * EPSILON[x.dtype]
    elif rounds_off(rcond):
        cutoff = x.builder.literal(EPSILON[x.dtype], x.dtype)
    else:
        cutoff = number_for_each(name, powers, rcond)
    found: Value = LeastSquares()(powers, cutoff, wanted_values)
    found = found / broadcast_to(reshaped(scale, (columns, 1)), found.shape)
    return reshaped(found, (columns,)) if y.ndim == 1 else found


def at_type(p: Value) -> Any:
    """The type of one coefficient."""
    return p.type.with_shape(())


@of_numbers("numpy.polyadd", together=("a1", "a2"))
def polyadd(a1: Value, a2: Value) -> Value:
    """The sum of two polynomials."""
    return _of_both("numpy.polyadd", a1, a2, e.add)


@of_numbers("numpy.polysub", together=("a1", "a2"))
def polysub(a1: Value, a2: Value) -> Value:
    """The difference of two polynomials."""
    return _of_both("numpy.polysub", a1, a2, e.subtract)


def _of_both(name: str, a1: Value, a2: Value, combine: Any) -> Value:
    facts = a1.builder.facts
    sizes = [require_vector(p, name, "vectors of coefficients") for p in (a1, a2)]
    longest = largest(facts, *sizes)
    zero = a1.builder.program.current.literal(0, a1.dtype)
    left, right = (
        p if p.shape[0] == longest else Pad((longest - p.shape[0],), (0,), (0,))(p, zero)
        for p in (a1, a2)
    )
    result: Value = combine(left, right)
    return result


@of_numbers("numpy.polymul", together=("a1", "a2"))
def polymul(a1: Value, a2: Value) -> Value:
    """The product of two polynomials; leading zeros stay."""
    result: Value = convolve(a1, a2)
    return result


@of_numbers("numpy.roots", together=("p",))
def roots(p: Value) -> Value:
    """The roots of a polynomial whose first coefficient is not 0: eigenvalues of its companion."""
    require("numpy.roots", p, "numeric")
    size = require_vector(p, "numpy.roots", "a vector of coefficients")
    require_elements(p, (0,), "numpy.roots")
    p = require_precision("numpy.roots", p)
    count = size - 1
    if count == 0:
        return p.builder.full(0, (0,), p.dtype.complex)
    row: Value = -(part(p, 0, 1, size) / at(p, 0, 0))
    whole = (count, count)
    top = broadcast_to(reshaped(row, (1, count)), whole)
    down, across = (p.builder.program.current.bind(Iota(whole, a, I32), ())[0] for a in (0, 1))
    below = cast(e.equal(down, across + 1), p.dtype)
    return Eig(vectors=False)(where(e.equal(down, 0), top, below))


def _is_another(given: Mapping[str, Any]) -> bool:
    """Return whether the result is another polynomial: where `m` is 0, it is the same."""
    m = given.get("m", 1)
    return type(m) is int and m > 0


@of_numbers("numpy.polyder", together=("p",), result=new_if(_is_another))
def polyder(p: Value, m: int = 1) -> Value:
    """The m-th derivative of a polynomial; that of integers in i64, of u64 in f64."""
    require("numpy.polyder", p, "numeric")
    size = require_vector(p, "numpy.polyder", "a vector of coefficients")
    _check_order("numpy.polyder", m)
    p = with_i64(p) if m else p
    for _ in range(m):
        if not at_least(p.builder.facts, size, 1):
            problem = f"takes coefficients of which there are at least {m}, not {size}"
            raise Failure(BadArguments(function="numpy.polyder", problem=problem))
        size = size - 1
        exponents = reversed_along(iota(p, size, p.dtype) + 1, 0)
        p = part(p, 0, 0, size) * exponents
    return p


@of_numbers("numpy.polyint", together=("p",), traced=("k",), result=new_if(_is_another))
def polyint(p: Value, m: int = 1, k: Any = None) -> Value:
    """The m-th antiderivative of a polynomial, with constants k."""
    require("numpy.polyint", p, "numeric")
    size = require_vector(p, "numpy.polyint", "a vector of coefficients")
    _check_order("numpy.polyint", m)
    p = to_inexact(p)
    constants = listed(k) or [0 if k is None else k] * m
    if len(constants) != m:
        problem = f"takes {m} constants `k`, not {len(constants)}"
        raise Failure(BadArguments(function="numpy.polyint", problem=problem))
    for constant in constants:
        require_scalar(constant, "numpy.polyint", "k")
        exponents = reversed_along(iota(p, size, p.dtype) + 1, 0)
        last = filled(p, 0, (1,)) + constant
        p = joined((p / exponents, cast(last, p.dtype)), 0)
        size = size + 1
    return p


def _check_order(name: str, m: object) -> None:
    if as_times(m, name) < 0:
        problem = f"takes an order that is a number of times, not {describe(m)}"
        raise Failure(BadArguments(function=name, problem=problem))


# Curves given by samples: interpolation, slopes, areas, phases.


# Differences of neighbours.


def _has_steps(given: Mapping[str, Any]) -> bool:
    """Return whether differences are taken: where `n` is 0, the array is given back."""
    n = given.get("n", 1)
    return type(n) is int and n > 0


@function("numpy.diff", together=("a", "prepend", "append"), result=new_if(_has_steps))
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = OMITTED, append: Any = OMITTED) -> Any:
    """Each element's difference to the one before it, `n` times; of bools, whether they differ."""
    require_static(n, "numpy.diff", "n")
    require_static(axis, "numpy.diff", "axis")
    times = as_times(n, "numpy.diff")
    if times < 0:
        raise Failure(BadArguments(function="numpy.diff", problem=f"cannot be taken {times} times"))
    if times == 0:
        return a  # whatever it is
    a = as_array(a, "numpy.diff", "a")
    prepend, append = (
        x if x is None or x is OMITTED else as_array(x, "numpy.diff", name)
        for name, x in (("prepend", prepend), ("append", append))
    )
    place = normalize_axis(axis, a.ndim, "numpy.diff")
    ends = [_end(x, a, place) for x in (prepend, append)]
    pieces = [x for x in (ends[0], a, ends[1]) if x is not None]
    a = concatenated("numpy.diff", pieces, place)
    for _ in range(times):
        a = _once(a, place)
    return a


def _end(x: Value | None, a: Value, axis: int) -> Value | None:
    if x is None:
        raise Failure(BadArguments(function="numpy.diff", problem="takes no None at an end"))
    if x is OMITTED:
        return None
    if x.ndim:
        return x
    return broadcast_to(x, (*a.shape[:axis], 1, *a.shape[axis + 1 :]))


def _once(a: Value, axis: int) -> Value:
    facts, size = a.builder.facts, a.shape[axis]
    later = part(a, axis, least(facts, 1, size), size)
    earlier = part(a, axis, 0, largest(facts, size - 1, 0))
    return (e.bitwise_xor if a.dtype is BOOL else e.subtract)(later, earlier)


@of_arrays(
    "numpy.ediff1d",
    together=("ary", "to_end", "to_begin"),
    cast=("to_end", "to_begin"),
    keeps=("ary",),
    result=Result.NEW,
)
def ediff1d(ary: Value, to_end: Any = None, to_begin: Any = None) -> Value:
    """Differences of neighbours along all elements, maybe with numbers before and after."""
    require("numpy.ediff1d", ary, "numeric")
    pieces = [to_begin, _once(raveled(ary), 0), to_end]
    return concatenated("numpy.ediff1d", [raveled(x) for x in pieces if x is not None], 0)


@of_numbers("numpy.interp", together=("x", "xp", "fp", "left", "right", "period"))
def interp(
    x: Value,
    xp: Value,
    fp: Value,
    left: Value | None = None,
    right: Value | None = None,
    period: Value | None = None,
) -> Value:
    """The polygon through points, at x; `xp` ascends, which is not checked."""
    require("numpy.interp", x, REAL)
    sizes = (require_vector(xp, "numpy.interp", "`xp`"), require_vector(fp, "numpy.interp", "`fp`"))
    require_same_length(xp, sizes, "numpy.interp", "`xp`", "`fp`")
    require_elements(xp, (0,), "numpy.interp")
    for number in (left, right, period):
        if number is not None and number.ndim:
            wanted = "numbers as `left`, `right` and `period`"
            raise Failure(
                WrongNumberOfAxes(function="numpy.interp", given=number.type, wanted=wanted)
            )
    x, xp, fp = to_inexact(x), to_inexact(xp), to_inexact(fp)
    if period is not None:
        if literal(period) == 0:
            problem = "takes no period of 0"
            raise Failure(BadArguments(function="numpy.interp", problem=problem))
        x, xp, fp = _periodic(x, xp, fp, cast(period, x.dtype))
        left = right = None
    size = xp.shape[0]
    last = x.builder.program.current.size(size - 1, I32)
    low: Value = e.maximum(places(xp, x, "right") - 1, 0)
    high: Value = e.minimum(low + 1, last)
    x0, x1, y0, y1 = (_taken(points, index) for points in (xp, fp) for index in (low, high))
    run: Value = x1 - x0
    slope = (y1 - y0) / where(e.equal(run, 0), filled(run, 1, ()), run)
    result: Value = y0 + slope * (x - x0)
    # Beside a height that is NaN or infinite, as NumPy: at a point its height, else from the right.
    other: Value = y1 + slope * (x - x1)
    flat = e.equal(y0, y1) & (is_nan(other) & e.equal(x, x))
    there = e.equal(x, x0) | e.equal(last, 0) | flat
    result = where(is_nan(result), where(there, y0, other), result)
    before = at(fp, 0, 0) if left is None else cast(left, fp.dtype)
    after = at(fp, 0, size - 1) if right is None else cast(right, fp.dtype)
    result = where(e.less(x, at(xp, 0, 0)), before, result)
    return where(e.greater(x, at(xp, 0, size - 1)), after, result)


def _taken(points: Value, index: Value) -> Value:
    return Gather((0,))(points, reshaped(index, (*index.shape, 1)))


def _periodic(x: Value, xp: Value, fp: Value, period: Value) -> tuple[Value, Value, Value]:
    """Everything within one period, and a point of the neighbouring periods at each end."""
    period = e.absolute(period)
    x, size = e.remainder(x, period), xp.shape[0]
    xp, fp = Sort(0).bind(e.remainder(xp, period), fp)
    before, after = (part(xp, 0, size - 1, size), part(xp, 0, 0, 1))
    xp = joined((before - period, xp, after + period), 0)
    fp = joined((part(fp, 0, size - 1, size), fp, part(fp, 0, 0, 1)), 0)
    return x, xp, fp


def differences(x: Value, axis: int) -> Value:
    """Each element less the one before it along an axis that is known to have elements."""
    size = x.shape[axis]
    return part(x, axis, 1, size) - part(x, axis, 0, size - 1)


@of_numbers("numpy.trapezoid", together=("y", "x"), numbers=("dx",), own=("x",))
def trapezoid(y: Value, x: Value | None = None, dx: Any = 1.0, axis: int = -1) -> Value:
    """The area under samples, by trapezoids."""
    place = normalize_axis(axis, y.ndim, "numpy.trapezoid")
    require("numpy.trapezoid", y, "numeric")
    require_elements(y, (place,), "numpy.trapezoid")
    final = to_inexact(y).dtype
    y, size = cast(to_inexact(y), wide(final)), y.shape[place]
    sums: Value = part(y, place, 1, size) + part(y, place, 0, size - 1)
    if x is None:
        areas = sums * dx
    elif x.ndim == 1:
        sizes = (size, x.shape[0])
        require_same_length(y, sizes, "numpy.trapezoid", "the samples", "`x`")
        widths = differences(cast(x, y.dtype), 0)
        areas = sums * spread(widths, sums.shape, (place,))
    else:
        along = normalize_axis(axis, x.ndim, "numpy.trapezoid")
        require_elements(x, (along,), "numpy.trapezoid")
        areas = sums * differences(cast(x, y.dtype), along)
    return cast(total(areas, (place,)) / 2, final)


@of_numbers("numpy.unwrap", together=("p",))
def unwrap(p: Value, discont: Any = None, axis: int = -1, *, period: Any = 2 * pi) -> Value:
    """Samples of an angle without jumps: each jump is replaced by its complement in the period."""
    require("numpy.unwrap", p, "real")
    place = normalize_axis(axis, p.ndim, "numpy.unwrap")
    require_elements(p, (place,), "numpy.unwrap")
    for number, what in ((period, "period"), (discont, "discont")):
        if not (isinstance(number, int | float) or (number is None and what == "discont")):
            problem = f"takes a static number as `{what}`, not {describe(number)}"
            raise Failure(BadArguments(function="numpy.unwrap", problem=problem))
    whole = p.dtype.is_integer and isinstance(period, int)
    p = p if whole else to_inexact(p)
    half = period // 2 if whole else period / 2
    jump = differences(p, place)
    rest: Value = e.remainder(jump + half, period) - half
    if not whole or period % 2 == 0:  # the jump may be up or down by half a period
        upward = e.equal(rest, -half) & (jump > 0)
        rest = where(upward, filled(rest, half, ()), rest)
    small = e.less(e.absolute(jump), _threshold(jump, discont, period, whole))
    correction = where(small, filled(rest, 0, ()), rest - jump)
    start, size = part(p, place, 0, 1), p.shape[place]
    moved: Value = part(p, place, 1, size) + Cumulative("sum", place)(correction)
    return joined((start, moved), place)


def _threshold(jump: Value, discont: Any, period: Any, whole: bool) -> Any:
    least = period / 2 if discont is None else discont
    return -int(-least // 1) if whole else least  # for integers the next one above says the same


@function(
    "numpy.gradient",
    together=("f", "varargs"),
    own=("varargs",),
    lists=("f",),
    result=Result.NEW,
)
def gradient(
    f: Any, *varargs: Any, axis: Axes = None, edge_order: int = 1
) -> Value | tuple[Value, ...]:
    """The slopes of samples along each axis, by central differences."""
    f = as_array(f, "numpy.gradient", "f")
    require("numpy.gradient", f, "numeric")
    if edge_order not in (1, 2):
        problem = f"takes an `edge_order` of 1 or 2, not {describe(edge_order)}"
        raise Failure(BadArguments(function="numpy.gradient", problem=problem))
    axes = normalize_axes(axis, f.ndim, "numpy.gradient")
    if len(varargs) not in (0, 1, len(axes)):
        problem = f"takes one spacing, or one for each of {len(axes)} axes, not {len(varargs)}"
        raise Failure(BadArguments(function="numpy.gradient", problem=problem))
    if len(varargs) == 1 != len(axes) and as_array(varargs[0], "numpy.gradient", "spacing").ndim:
        problem = f"takes one number as the spacing of {len(axes)} axes, or one spacing for each"
        raise Failure(BadArguments(function="numpy.gradient", problem=problem))
    f = to_inexact(f)
    results: list[Value] = []
    for index, place in enumerate(axes):
        require_count(f, place, edge_order + 1, f"`edge_order={edge_order}`", "numpy.gradient")
        if not varargs:
            results.append(_even_slopes(f, place, None, edge_order))
            continue
        spacing = as_array(varargs[index if len(varargs) > 1 else 0], "numpy.gradient", "spacing")
        spacing = cast(spacing, f.dtype)
        if not spacing.ndim:
            results.append(_even_slopes(f, place, spacing, edge_order))
            continue
        sizes = (f.shape[place], require_vector(spacing, "numpy.gradient", "a spacing"))
        require_same_length(f, sizes, "numpy.gradient", "the samples", "the coordinates")
        results.append(_uneven_slopes(f, place, spacing, edge_order))
    return results[0] if len(results) == 1 else tuple(results)


def _even_slopes(f: Value, axis: int, step: Value | None, edge_order: int) -> Value:
    size = f.shape[axis]
    inner = (part(f, axis, 2, size) - part(f, axis, 0, size - 2)) / 2
    if edge_order == 1:
        first = part(f, axis, 1, 2) - part(f, axis, 0, 1)
        last = part(f, axis, size - 1, size) - part(f, axis, size - 2, size - 1)
    else:
        first = _combined(f, axis, 0, (-1.5, 2.0, -0.5))
        last = _combined(f, axis, size - 3, (0.5, -2.0, 1.5))
    slopes = joined((first, inner, last), axis)
    return slopes if step is None else slopes / step


def _combined(f: Value, axis: int, start: Any, factors: tuple[Any, Any, Any]) -> Value:
    """Three neighbours along an axis, each times a factor, summed."""
    a, b, c = (part(f, axis, start + i, start + i + 1) * factor for i, factor in enumerate(factors))
    result: Value = a + b + c
    return result


def _uneven_slopes(f: Value, axis: int, coordinates: Value, edge_order: int) -> Value:
    size = f.shape[axis]
    steps = differences(coordinates, 0)
    before, after = part(steps, 0, 0, size - 2), part(steps, 0, 1, size - 1)
    both = before + after
    shape = (*f.shape[:axis], size - 2, *f.shape[axis + 1 :])
    inner: Value | None = None
    for start, factor in enumerate(
        (
            -(after / (before * both)),
            (after - before) / (before * after),
            before / (after * both),
        )
    ):
        term = part(f, axis, start, size - 2 + start) * spread(factor, shape, (axis,))
        inner = term if inner is None else inner + term
    assert inner is not None
    first, last = (_edge(f, axis, steps, edge_order, end) for end in (False, True))
    return joined((first, inner, last), axis)


def _edge(f: Value, axis: int, steps: Value, edge_order: int, end: bool) -> Value:
    """The slope at the first or the last sample, by a polynomial of the order."""
    size = f.shape[axis]
    if edge_order == 1:
        start = size - 2 if end else 0
        rise = part(f, axis, start + 1, start + 2) - part(f, axis, start, start + 1)
        return rise / at(steps, 0, start)
    start = size - 3 if end else 0
    # Steps as seen from the edge: the slope at the end is that at the start, mirrored.
    near, far = (at(steps, 0, start + i) for i in ((1, 0) if end else (0, 1)))
    both = near + far
    factors = [
        -((near + both) / (near * both)),
        both / (near * far),
        -(near / (far * both)),
    ]
    if end:
        factors = [-factor for factor in reversed(factors)]
    return _combined(f, axis, start, (factors[0], factors[1], factors[2]))
