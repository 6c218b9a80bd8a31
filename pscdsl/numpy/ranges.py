"""Evenly spaced numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pscdsl._src.ir.builder import Builder, Value, Weak, broadcast_shapes, broadcast_to
from pscdsl._src.language.meanings import function
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Iota
from pscdsl.numpy.arguments import is_known_float
from pscdsl.numpy.axes import normalize_axis
from pscdsl.numpy.elementwise import require, to_inexact
from pscdsl.numpy.openness import as_dtype, met
from pscdsl.numpy.shorthand import cast, counting, largest, moved, where
from pscdsl.numpy.sizes import as_count, as_size
from pscdsl.typing.arrays import Shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.codes.shapes_manipulation import UnprovenSize
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import F64, DType, Kind

LARGEST_DENOMINATOR = 1 << 20
"""Up to here a float counts as the fraction it is, when it meets a symbolic size in `arange`."""


@function("numpy.arange")
def arange(
    here: Builder, start: Any, stop: Any = None, step: Any = 1, dtype: Any = None
) -> Value | Weak:
    """Numbers from `start` up to, not including, `stop`; their count is known while checking."""
    if stop is None:
        start, stop = 0, start
    bounds = [_bound(x) for x in (start, stop, step)]
    if any(isinstance(x, float) for x in bounds):
        count = _count_of_floats(here.facts, *bounds)
        kind = Kind.FLOAT
    else:
        first, last, by = (as_size(x, "numpy.arange") for x in bounds)
        count = _count(here.facts, first, last, by)
        kind = Kind.INT
    given = as_dtype(dtype)

    def at(wanted: DType) -> Value:
        if not wanted.is_number:
            raise Failure(BadArguments(function="numpy.arange", problem=f"gives no {wanted}"))
        numbers = here.bind(Iota((count,), 0, wanted), ())[0]
        return _shifted(here, numbers, bounds[0], bounds[2])

    return Weak(here, kind, (count,), at) if given is None else at(given)


def _bound(x: Any) -> Size | float:
    if is_known_float(x):
        return float(x)
    return as_size(x, "numpy.arange")


def _shifted(here: Builder, numbers: Value, start: Size | float, step: Size | float) -> Value:
    """`start + step * numbers`; a negative step is subtracted, which unsigned integers allow."""
    if isinstance(step, Dim) or step >= 0:
        up: Value = numbers if step == 1 else e.multiply(numbers, step)
        return up if start == 0 else e.add(up, start)
    down: Value = numbers if step == -1 else e.multiply(numbers, -step)
    return e.subtract(start, down)  # type: ignore[no-any-return]


def _count(facts: Assumptions, start: Size, stop: Size, step: Size) -> Size:
    """How many numbers there are, zero if `stop` is on the wrong side."""
    span = stop - start
    if facts.proves(Fact("<=", step, -1)):
        span, step = -span, -step
    elif not facts.proves(Fact("<=", 1, step)):
        if step == 0:
            raise Failure(BadArguments(function="numpy.arange", problem="takes no step of zero"))
        raise Failure(UnprovenSize.of(facts, "the step of `np.arange`", Fact("<=", 1, step)))
    return largest(facts, span if step == 1 else (span + step - 1) // step, 0)


def _count_of_floats(
    facts: Assumptions, start: Size | float, stop: Size | float, step: Size | float
) -> Size:
    if step == 0:
        raise Failure(BadArguments(function="numpy.arange", problem="takes no step of zero"))
    if not any(isinstance(x, Dim) for x in (start, stop, step)):
        return max(math.ceil((stop - start) / step), 0)  # type: ignore[operator]
    fractions = [x if isinstance(x, Dim) else Fraction(x) for x in (start, stop, step)]
    denominators = [1 if isinstance(x, Dim) else x.denominator for x in fractions]
    scale = math.lcm(*denominators)
    if scale > LARGEST_DENOMINATOR:
        raise Failure(
            NotSupported(
                what="`np.arange` up to a symbolic size in steps that are no binary fraction",
                instead="count in integers and multiply: `np.arange(n) * 0.1`",
            )
        )
    return _count(facts, *(x * scale if isinstance(x, Dim) else int(x * scale) for x in fractions))


@function("numpy.linspace")
def linspace(
    here: Builder,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """`num` numbers from `start` to `stop`, the last one exact; integers are rounded down."""
    count = as_count(num, "numpy.linspace", here.facts)
    numbers = _between(here, "numpy.linspace", start, stop, count, endpoint, dtype, axis)
    if not retstep:
        return numbers
    gaps = _gaps(here.facts, count, endpoint)
    step = met(
        here, (start, stop), None, lambda v: _divided(e.subtract(v[1], v[0]), gaps), Kind.FLOAT
    )
    return numbers, step


@function("numpy.logspace")
def logspace(
    here: Builder,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Value | Weak:
    """`base` to the power of evenly spaced numbers."""
    count = as_count(num, "numpy.logspace", here.facts)

    def build(values: Sequence[Value]) -> Value:
        first, last, root = _raised("numpy.logspace", values)
        exponents = _spaced(first, last, count, endpoint)
        return _placed("numpy.logspace", e.power(root, exponents), axis)

    return _in_wanted(here, (start, stop, base), dtype, build)


@function("numpy.geomspace")
def geomspace(
    here: Builder,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Value | Weak:
    """`num` numbers from `start` to `stop`, evenly spaced in their logarithms.

    Real ones have one sign; complex ones turn evenly, by less than half a circle together.
    """
    count = as_count(num, "numpy.geomspace", here.facts)
    if any(isinstance(x, int | float) and x == 0 for x in (start, stop)):
        problem = "has no geometric sequence from or to zero"
        raise Failure(BadArguments(function="numpy.geomspace", problem=problem))

    def build(values: Sequence[Value]) -> Value:
        first, last = _raised("numpy.geomspace", values)
        if first.dtype.is_complex:
            return _placed("numpy.geomspace", _spiral(first, last, count, endpoint), axis)
        require("numpy.geomspace", first, "floating")
        logs = _spaced(e.log(e.absolute(first)), e.log(e.absolute(last)), count, endpoint)
        numbers = e.multiply(e.sign(first), e.exp(logs))
        place = _places(numbers)
        numbers = where(e.equal(place, 0), broadcast_to(first, numbers.shape), numbers)
        if endpoint:
            numbers = _ending(numbers, last, count)
        return _placed("numpy.geomspace", numbers, axis)

    return _in_wanted(here, (start, stop), dtype, build)


def _spiral(first: Value, last: Value, count: Size, endpoint: bool) -> Value:
    """Complex numbers, each the same multiple of the one before; the first is exact."""
    turn = e.log(e.divide(last, first))
    steps = _spaced(e.subtract(turn, turn), turn, count, endpoint)
    numbers = e.multiply(broadcast_to(first, steps.shape), e.exp(steps))
    numbers = where(e.equal(_places(numbers), 0), broadcast_to(first, numbers.shape), numbers)
    return _ending(numbers, last, count) if endpoint else numbers


def _in_wanted(here: Builder, operands: Sequence[Any], dtype: Any, build: Any) -> Value | Weak:
    """Computed in a floating-point dtype, then cast if another one is wanted."""
    wanted = as_dtype(dtype)
    if wanted is None or wanted.is_inexact:
        return met(here, operands, wanted, build, Kind.FLOAT)
    numbers = met(here, operands, F64, build)
    assert isinstance(numbers, Value)
    return cast(numbers, wanted)


def _between(
    here: Builder,
    name: str,
    start: Any,
    stop: Any,
    count: Size,
    endpoint: bool,
    dtype: Any,
    axis: int,
) -> Value | Weak:
    wanted = as_dtype(dtype)
    down = wanted is not None and wanted.is_integer

    def build(values: Sequence[Value]) -> Value:
        first, last = _raised(name, values)
        numbers = _spaced(first, last, count, endpoint)
        return _placed(name, e.floor(numbers) if down else numbers, axis)

    return _in_wanted(here, (start, stop), dtype, build)


def _raised(name: str, values: Sequence[Value]) -> list[Value]:
    """Operands with one shape, in floating point."""
    shape = broadcast_shapes(values[0].builder.facts, *(x.shape for x in values))
    return [broadcast_to(to_inexact(x), shape) for x in values]


def _gaps(facts: Assumptions, count: Size, endpoint: bool) -> Size:
    """In how many steps the way is divided; 1 where there is no way to go."""
    return largest(facts, count - 1 if endpoint else count, 1)


def _divided(x: Value, by: Size) -> Value:
    return e.divide(to_inexact(x), by)  # type: ignore[no-any-return]


def _spaced(start: Value, stop: Value, count: Size, endpoint: bool) -> Value:
    """Evenly spaced numbers along a new first axis."""
    gaps = _gaps(start.builder.facts, count, endpoint)
    shape: Shape = (count, *start.shape)
    place = start.builder.bind(Iota(shape, 0, start.dtype.real), ())[0]
    way = broadcast_to(e.subtract(stop, start), shape)
    step = e.divide(way, gaps)
    numbers = e.add(e.multiply(cast(place, start.dtype), step), broadcast_to(start, shape))
    return _ending(numbers, stop, count) if endpoint else numbers


def _ending(numbers: Value, stop: Value, count: Size) -> Value:
    """The same numbers with the last one exact, where there are two or more."""
    last = largest(numbers.builder.facts, count - 1, 1)
    return where(e.equal(_places(numbers), last), broadcast_to(stop, numbers.shape), numbers)


def _places(numbers: Value) -> Value:
    return counting(numbers, 0)


def _placed(name: str, numbers: Value, axis: int) -> Value:
    return moved(numbers, 0, normalize_axis(axis, numbers.ndim, name))
