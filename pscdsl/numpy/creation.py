"""New arrays: filled, from numbers and lists, evenly spaced, of indices, diagonals, triangles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from pscdsl._src.ir.broadcasting import broadcast_shapes, broadcast_to
from pscdsl._src.ir.builder import MOST_AXES, Builder, Value, Weak
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Scalar, kind_of
from pscdsl._src.language.meanings import OMITTED, describe, function, require_no_integers
from pscdsl._src.language.results import Result, new_if
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.elementwise import Bitcast
from pscdsl._src.primitives.matrices import Diagonal
from pscdsl._src.primitives.shaping import Constant, Iota, Pad
from pscdsl.numpy.calling import (
    as_array,
    as_count,
    as_integer,
    as_operand,
    as_shape,
    as_size,
    as_times,
    created,
    in_dtype,
    is_array,
    is_known_float,
    lifted,
    met,
    normalize_axis,
    of_arrays,
    require_fitting,
    whole,
)
from pscdsl.numpy.elementwise import require, to_inexact, with_i64
from pscdsl.numpy.indexing import known_places
from pscdsl.numpy.logic import items
from pscdsl.numpy.shorthand import (
    cast,
    counting,
    filled,
    integers_of,
    joined,
    largest,
    least,
    listed,
    moved,
    raveled,
    reshaped,
    spread,
    transposed,
    where,
)
from pscdsl.typing.array_types import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.element_types import CastDropsImaginaryPart, ScalarDoesNotFit
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.codes.shapes import (
    DataDependentShape,
    IndexOutOfRange,
    RepeatedAxis,
    UnprovenSize,
    WrongNumberOfAxes,
)
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import BOOL, C128, F64, I32, I64, DType, Kind
from pscdsl.typing.python_containers import is_sequence, is_slice, is_tuple, sequence_leaves

# New arrays: filled, from numbers and lists, evenly spaced, of indices and coordinates.


# Arrays filled with one number.  Without a dtype they are open: it is that of what they meet.


@function("numpy.zeros", result=Result.IN_C_ORDER)
def zeros(here: Builder, shape: Any, dtype: Any = None) -> Value | Weak:
    """Zeros; open as a float without a dtype."""
    return _filled(here, as_shape(shape, "numpy.zeros", here.facts), 0.0, dtype)


@function("numpy.ones", result=Result.IN_C_ORDER)
def ones(here: Builder, shape: Any, dtype: Any = None) -> Value | Weak:
    """Ones; open as a float without a dtype."""
    return _filled(here, as_shape(shape, "numpy.ones", here.facts), 1.0, dtype)


@function("numpy.empty", result=Result.IN_C_ORDER)
def empty(here: Builder, shape: Any, dtype: Any = None) -> Value | Weak:
    """Zeros: there is no memory that could be left as it was."""
    return _filled(here, as_shape(shape, "numpy.empty", here.facts), 0.0, dtype)


@function("numpy.full", result=Result.IN_C_ORDER)
def full(here: Builder, shape: Any, fill_value: Any, dtype: Any = None) -> Value | Weak:
    """One number, or an array broadcast; its dtype is that of `fill_value`."""
    return _full(here, as_shape(shape, "numpy.full", here.facts), fill_value, dtype)


@function("numpy.zeros_like", result=Result.ARRAY)
def zeros_like(here: Builder, a: Any, dtype: Any = None, *, shape: Any = None) -> Value | Weak:
    """Zeros in the dtype and shape of another array."""
    return _like(here, "numpy.zeros_like", a, False, dtype, shape)


@function("numpy.ones_like", result=Result.ARRAY)
def ones_like(here: Builder, a: Any, dtype: Any = None, *, shape: Any = None) -> Value | Weak:
    """Ones in the dtype and shape of another array."""
    return _like(here, "numpy.ones_like", a, True, dtype, shape)


@function("numpy.empty_like", result=Result.ARRAY)
def empty_like(
    here: Builder, prototype: Any, /, dtype: Any = None, *, shape: Any = None
) -> Value | Weak:
    """Zeros in the dtype and shape of another array."""
    return _like(here, "numpy.empty_like", prototype, False, dtype, shape)


@function("numpy.full_like", result=Result.ARRAY)
def full_like(
    here: Builder, a: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None
) -> Value | Weak:
    """One number in the dtype and shape of another array; it must fit the dtype."""
    return _like(here, "numpy.full_like", a, fill_value, dtype, shape)


def _filled(here: Builder, shape: Shape, number: float, dtype: Any) -> Value | Weak:
    # Bools hold zeros and ones too, though no other numbers.
    return created(
        here, dtype, Kind.FLOAT, shape, lambda d: here.full(_plain(number, d.kind), shape, d)
    )


def _plain(number: float, kind: Kind) -> bool | int | float:
    return bool(number) if kind is Kind.BOOL else int(number) if kind is Kind.INT else number


def _full(here: Builder, shape: Shape, value: Any, dtype: Any) -> Value | Weak:
    if isinstance(value, bool | int | float | complex):
        return created(here, dtype, kind_of(value), shape, lambda d: here.full(value, shape, d))
    if isinstance(value, Dim):
        return created(
            here, dtype, Kind.INT, shape, lambda d: here.full(here.size(value, d), shape, d)
        )
    if dtype is not None:
        return broadcast_to(in_dtype(here, value, dtype), shape)
    return lifted(here, value, lambda x: broadcast_to(x, shape))


def _like(
    here: Builder, name: str, prototype: Any, value: Any, dtype: Any, shape: Any
) -> Value | Weak:
    array = as_operand(here, prototype)
    sizes = array.shape if shape is None else as_shape(shape, name, here.facts)
    if dtype is None and isinstance(array, Value):
        dtype = array.dtype
    if dtype is None and isinstance(array, Weak):
        filling = as_operand(here, value)
        kind = filling.kind if isinstance(filling, Weak) else filling.dtype.kind
        if kind > array.kind:
            problem = f"gives what has the dtype of an array of {array.dtype}: name a `dtype`"
            raise Failure(BadArguments(function=name, problem=problem))
        if isinstance(filling, Weak):

            def at(wanted: DType) -> Value:
                return broadcast_to(filling.at(wanted), sizes)

            return Weak(here, array.kind, sizes, at, scalar=True)
    if isinstance(value, Value) and dtype is not None and value.dtype is not dtype:
        return broadcast_to(in_dtype(here, value, dtype), sizes)
    return _full(here, sizes, value, dtype)


# Arrays from numbers and lists of them, and casts.


@function("numpy.array", result=Result.ARRAY, lists=("object",), several=True)
def array(
    here: Builder,
    object: Any,  # noqa: A002
    dtype: Any = None,
    *,
    copy: bool | None = True,
    ndmin: int = 0,
) -> Value | Weak:
    """Numbers, arrays and nested lists of them as one array; numbers alone leave it open."""
    array = made(here, "numpy.array", object, dtype)
    _refuse_copy("numpy.array", object, array, copy)
    least = as_integer(ndmin, "numpy.array")
    if least > MOST_AXES:
        problem = f"makes arrays of at most {MOST_AXES} axes"
        raise Failure(BadArguments(function="numpy.array", problem=problem))
    missing = least - array.ndim
    return array if missing <= 0 else lifted(here, array, lambda x: _deepened(x, missing))


def _as_array(given: Mapping[str, Any]) -> Result:
    """Return what `np.asarray` gives back: of a list, a new array."""
    new = is_sequence(given.get("a")) or given.get("copy") is True
    return Result.ARRAY if new else Result.SAME_ELEMENTS


@function("numpy.asarray", "numpy.asanyarray", result=_as_array, lists=("a",), several=True)
def asarray(here: Builder, a: Any, dtype: Any = None, *, copy: bool | None = None) -> Value | Weak:
    """Like `np.array`."""
    array = made(here, "numpy.asarray", a, dtype)
    _refuse_copy("numpy.asarray", a, array, copy)
    return array


def _refuse_copy(name: str, given: object, array: Value | Weak, copy: bool | None) -> None:
    """Refuse `copy=False` where NumPy raises: for lists, numbers and casts."""
    if copy is False and (array is not given or not array.ndim):
        problem = f"copies {describe(given)} to make {array.type}, which `copy=False` forbids"
        raise Failure(BadArguments(function=name, problem=problem))


@function("numpy.ascontiguousarray", result=Result.SAME_ELEMENTS)
def ascontiguousarray(here: Builder, a: Any, dtype: Any = None) -> Value | Weak:
    """Like `np.array`, with at least one axis."""
    return array(here, a, dtype, ndmin=1)  # type: ignore[no-any-return]


@function("numpy.copy", result=Result.ARRAY)
def copy_(here: Builder, a: Any) -> Value | Weak:
    """The array itself: it never changes."""
    return made(here, "numpy.copy", a, None)


@function("numpy.astype", result=Result.ARRAY)
def astype(here: Builder, x: Any, dtype: Any, /, *, copy: bool = True) -> Value:
    """A cast: floats to integers towards zero."""
    if dtype is None:
        raise Failure(BadArguments(function="numpy.astype", problem="takes a dtype"))
    if not isinstance(x, Value | Weak | np.ndarray | np.generic):
        problem = f"takes an array, not {describe(x)}"
        instead = "`np.array(values, dtype=...)` makes one"
        raise Failure(BadArguments(function="numpy.astype", problem=problem, instead=instead))
    return in_dtype(here, x, dtype)


@of_arrays("numpy.ndarray.view", together=("a",))
def view(a: Value, dtype: Any) -> Value:
    """The same bits as another dtype of the same width."""
    if dtype is None or dtype.bits != a.dtype.bits or BOOL in (dtype, a.dtype):
        problem = f"reads {a.type} as a dtype of the same width, not as {dtype}"
        raise Failure(BadArguments(function="numpy.ndarray.view", problem=problem))
    return a if dtype is a.dtype else Bitcast(dtype)(a)


def made(here: Builder, name: str, given: Any, dtype: DType | None) -> Value | Weak:
    """Numbers, arrays and nested lists of them as one array, open if nothing decides."""
    if not is_sequence(given):
        if not is_array(given):
            problem = f"takes numbers, arrays and lists of them, not {describe(given)}"
            raise Failure(BadArguments(function=name, problem=problem))
        return as_operand(here, given) if dtype is None else in_dtype(here, given, dtype)
    outer = _outer(name, given)
    leaves = list(sequence_leaves(given))
    if all(isinstance(leaf, bool | int | float | complex) for leaf in leaves):
        return _constant(here, leaves, outer, dtype)

    def stacked(values: Sequence[Value]) -> Value:
        if dtype is None:
            require_no_integers(name, leaves, values[0].dtype)
        return _stacked(name, values, outer)

    return met(here, leaves, dtype, stacked)


def _outer(name: str, given: Any) -> tuple[int, ...]:
    """The lengths of nested lists, which must be regular."""
    if not is_sequence(given):
        if not is_array(given):
            problem = f"takes numbers, arrays and lists of them, not {describe(given)}"
            raise Failure(BadArguments(function=name, problem=problem))
        return ()
    shapes = {_outer(name, item) for item in given}
    if len(shapes) > 1:
        raise Failure(BadArguments(function=name, problem="takes lists of equal lengths"))
    return (len(given), *(shapes.pop() if shapes else ()))


def _constant(
    here: Builder, numbers: Sequence[Scalar], shape: tuple[int, ...], dtype: DType | None
) -> Value | Weak:
    kind = max([kind_of(number) for number in numbers], default=Kind.FLOAT)

    def at(wanted: DType) -> Value:
        if kind is Kind.COMPLEX and wanted.is_number and not wanted.is_complex:
            given = ArrayType(C128, shape)
            raise Failure(CastDropsImaginaryPart(given=given, wanted=wanted))
        if wanted.is_integer:
            for number in numbers:
                whole(number, wanted)  # type: ignore[arg-type]
        with np.errstate(all="ignore"):
            try:
                plain: Any = np.array(numbers, np.complex128 if kind is Kind.COMPLEX else None)
                if plain.dtype == object and wanted.is_inexact:  # integers of any size
                    plain = plain.astype(float)
            except OverflowError:
                raise Failure(
                    ScalarDoesNotFit(scalar="an integer this large", dtype=wanted)
                ) from None
            converted = plain.astype(to_numpy(wanted)).reshape(shape)
            finite = np.isfinite(plain) if plain.dtype != object else True
            lost = finite & ~np.isfinite(converted).reshape(plain.shape)
        if dtype is None and np.any(lost):
            raise Failure(ScalarDoesNotFit(scalar=repr(plain[lost][0].item()), dtype=wanted))
        return here.bind(Constant.of(converted, wanted), ())[0]

    if dtype is not None:
        return at(dtype)
    known = np.array(numbers).reshape(shape)
    return Weak(here, kind, known.shape, at, scalar=True, known=known)


def _stacked(name: str, values: Sequence[Value], outer: tuple[int, ...]) -> Value:
    """Arrays of one shape along new leading axes."""
    first = values[0].shape
    require_fitting(name, values)
    rows = [reshaped(each, (1, *first)) for each in values]
    shape: Shape = (*outer, *first)
    return reshaped(joined(rows, 0), shape)


def _deepened(x: Value, count: int) -> Value:
    return reshaped(x, ((1,) * count + x.shape))


# Evenly spaced numbers.


LARGEST_DENOMINATOR = 1 << 20
"""Up to here a float counts as the fraction it is, when it meets a symbolic size in `arange`."""


@function("numpy.arange", result=Result.IN_C_ORDER)
def arange(
    here: Builder,
    start_or_stop: Any = OMITTED,
    /,
    stop: Any = OMITTED,
    step: Any = 1,
    dtype: Any = None,
    *,
    start: Any = OMITTED,
) -> Value | Weak:
    """Numbers from `start` up to, not including, `stop`; their count is known while checking."""
    step = 1 if step is None else step
    if start is not OMITTED and (stop is OMITTED or start_or_stop is not OMITTED):
        problem = "takes `start` beside `stop`, once"
        raise Failure(BadArguments(function="numpy.arange", problem=problem))
    if start_or_stop is not OMITTED:
        start = start_or_stop
    if start is OMITTED and stop is OMITTED:
        raise Failure(BadArguments(function="numpy.arange", problem="takes a `stop`"))
    if start is OMITTED:
        start = 0
    elif stop is OMITTED or stop is None:
        start, stop = 0, start
    bounds = [_bound(x) for x in (start, stop, step)]
    if any(isinstance(x, float) for x in bounds):
        count = _count_of_floats(here.facts, *bounds)
        kind = Kind.FLOAT
        if count == 1:
            bounds[2] = 1  # it may be infinite
    else:
        first, last, by = (as_size(x, "numpy.arange") for x in bounds)
        count = _count(here.facts, first, last, by)
        kind = Kind.INT
    given = dtype

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
        up: Value = numbers if step == 1 else numbers * step
        return up if start == 0 else up + start
    down: Value = numbers if step == -1 else numbers * -step
    return start - down


def _count(facts: Assumptions, start: Size, stop: Size, step: Size) -> Size:
    """Return how many numbers there are, zero if `stop` is on the wrong side."""
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
    is_known = not any(isinstance(x, Dim) for x in (start, stop, step))
    finite = (start, stop) if is_known and step == step else (start, stop, step)
    if not all(isinstance(x, Dim) or math.isfinite(x) for x in finite):
        problem = "takes no infinite bounds, no NaN, and no infinite step up to a size"
        raise Failure(BadArguments(function="numpy.arange", problem=problem))
    if is_known:
        steps: float = (stop - start) / step  # type: ignore[operator]
        if steps == 0 and start != stop:  # an infinite step, or one that is too large
            return int(math.copysign(1, steps) > 0)
        return max(math.ceil(steps), 0)  # pyright: ignore[reportUnknownArgumentType]
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


@function("numpy.linspace", result=Result.NEW)
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
    gaps = count - 1 if endpoint else count

    def stepped(values: Sequence[Value]) -> Value:
        first, last = values
        return _step(to_inexact(last - first), gaps)

    return numbers, met(here, (start, stop), None, stepped, Kind.FLOAT)


@function("numpy.logspace", result=Result.NEW)
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


@function("numpy.geomspace", result=Result.NEW)
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

    Between real ones of different signs are NaN; complex ones turn evenly, by less than half a
    circle together.
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
        sign = e.sign(first)
        logs = _spaced(e.log(e.absolute(first)), e.log(sign * last), count, endpoint)
        numbers = sign * e.exp(logs)
        place = _places(numbers)
        numbers = where(e.equal(place, 0), broadcast_to(first, numbers.shape), numbers)
        if endpoint:
            numbers = _ending(numbers, last, count)
        return _placed("numpy.geomspace", numbers, axis)

    if dtype is not None and dtype.is_complex:
        start, stop = (in_dtype(here, end, C128) for end in (start, stop))
    return _in_wanted(here, (start, stop), dtype, build)


def _spiral(first: Value, last: Value, count: Size, endpoint: bool) -> Value:
    """Complex numbers, each the same multiple of the one before; the first is exact."""
    turn = e.log(last / first)
    steps = _spaced(turn - turn, turn, count, endpoint)
    numbers = broadcast_to(first, steps.shape) * e.exp(steps)
    numbers = where(e.equal(_places(numbers), 0), broadcast_to(first, numbers.shape), numbers)
    return _ending(numbers, last, count) if endpoint else numbers


def _in_wanted(here: Builder, operands: Sequence[Any], dtype: Any, build: Any) -> Value | Weak:
    """Computed in the dtype that the operands have in NumPy, then cast if another one is wanted."""
    if dtype is None:
        return met(here, operands, None, build, Kind.FLOAT)
    arrays = [as_operand(here, operand) for operand in operands]
    own = {array.dtype for array in arrays}
    if len(own) > 1 or not all(isinstance(x, Value) and x.dtype.is_inexact for x in arrays):
        own = {C128 if any(array.dtype.is_complex for array in arrays) else F64}
    numbers = met(here, arrays, own.pop(), build)
    assert isinstance(numbers, Value)
    return in_dtype(here, numbers, dtype)


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
    down = dtype is not None and dtype.is_integer

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


def _step(way: Value, gaps: Size) -> Value:
    """A way by the number of its steps; NaN where there are none."""
    here, facts = way.builder, way.builder.facts
    nan = here.literal(math.nan, way.dtype)
    if facts.proves(Fact("<=", gaps, 0)):
        return nan
    step: Value = way / largest(facts, gaps, 1)
    if facts.proves(Fact("<=", 1, gaps)):
        return step
    return where(here.size(gaps, I64) < 1, nan, step)


def _spaced(start: Value, stop: Value, count: Size, endpoint: bool) -> Value:
    """Evenly spaced numbers along a new first axis."""
    gaps = _gaps(start.builder.facts, count, endpoint)
    shape: Shape = (count, *start.shape)
    place = start.builder.bind(Iota(shape, 0, start.dtype.real), ())[0]
    way = broadcast_to(stop - start, shape)
    step = way / gaps
    numbers = cast(place, start.dtype) * step + broadcast_to(start, shape)
    return _ending(numbers, stop, count) if endpoint else numbers


def _ending(numbers: Value, stop: Value, count: Size) -> Value:
    """The same numbers with the last one exact, where there are two or more."""
    last = largest(numbers.builder.facts, count - 1, 1)
    return where(e.equal(_places(numbers), last), broadcast_to(stop, numbers.shape), numbers)


def _places(numbers: Value) -> Value:
    return counting(numbers, 0)


def _placed(name: str, numbers: Value, axis: int) -> Value:
    return moved(numbers, 0, normalize_axis(axis, numbers.ndim, name))


# Arrays of indices and coordinates, and indices of places counted through all axes.


@function("numpy.meshgrid", result=Result.NEW)
def meshgrid(
    here: Builder, *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Value | Weak, ...]:
    """Coordinates of a grid: each vector along an axis of its own, repeated along the others."""
    if indexing not in ("xy", "ij"):
        problem = f"takes `indexing` as 'xy' or 'ij', not {describe(indexing)}"
        raise Failure(BadArguments(function="numpy.meshgrid", problem=problem))
    vectors = [as_operand(here, x) for x in xi]
    sizes: list[Size] = []
    for x in vectors:
        if x.ndim > 1:
            wanted = "vectors and scalars"
            raise Failure(WrongNumberOfAxes(function="numpy.meshgrid", given=x.type, wanted=wanted))
        sizes.append(size_of(x.shape))
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[:2] = [1, 0]
    shape = tuple([sizes[places[axis]] for axis in range(len(vectors))])

    def laid(x: Value, axis: int) -> Value:
        own: Shape = tuple([shape[axis] if a == axis else 1 for a in range(len(shape))])
        x = reshaped(x, own)
        return x if sparse else broadcast_to(x, shape)

    return tuple(
        [lifted(here, x, lambda v, a=places[i]: laid(v, a)) for i, x in enumerate(vectors)]  # type: ignore[misc]
    )


@function("numpy.ix_")
def ix_(here: Builder, *args: Any) -> tuple[Value | Weak, ...]:
    """Vectors of indices, each along an axis of its own; an empty list is one of integers."""
    vectors = [as_operand(here, x) for x in args]
    for axis, x in enumerate(args):
        if listed(x) is not None and not listed(x):
            vectors[axis] = here.full(0, (0,), I64)
    for x in vectors:
        if x.ndim != 1:
            raise Failure(WrongNumberOfAxes(function="numpy.ix_", given=x.type, wanted="vectors"))
        if x.dtype is BOOL:
            instead = "give the indices themselves, as in `np.ix_([0, 2], [1])`"
            raise Failure(DataDependentShape(what="`np.ix_` of a mask", instead=instead))
    return meshgrid(here, *vectors, sparse=True, indexing="ij")  # type: ignore[no-any-return]


@function("numpy.indices", result=Result.NEW)
def indices(here: Builder, dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """The indices of an array of this shape, one axis after the other along the first axis."""
    if not is_sequence(dimensions):
        problem = f"takes a tuple of sizes, not {describe(dimensions)}"
        raise Failure(BadArguments(function="numpy.indices", problem=problem))
    shape = as_shape(dimensions, "numpy.indices", here.facts)

    def counted(axis: int, wanted: DType) -> Value:
        own = tuple([size if a == axis or not sparse else 1 for a, size in enumerate(shape)])
        return here.bind(Iota(own, axis, wanted), ())[0]

    def stacked(wanted: DType) -> Value:
        if not shape:
            return here.full(0, (0,), wanted)
        return joined([reshaped(counted(a, wanted), (1, *shape)) for a in range(len(shape))], 0)

    def made(own: Shape, at: Callable[[DType], Value]) -> Value | Weak:
        return Weak(here, Kind.INT, own, at) if dtype is None else at(dtype)

    if not sparse:
        return made((len(shape), *shape), stacked)
    lone = [
        tuple([s if a == axis else 1 for a, s in enumerate(shape)]) for axis in range(len(shape))
    ]
    return tuple([made(own, partial(counted, axis)) for axis, own in enumerate(lone)])


def grid(here: Builder, index: Any, name: str) -> Weak | tuple[Weak, ...]:
    """`np.mgrid[index]` and `np.ogrid[index]` of slices of integers: counters along each axis."""
    slices = index if is_tuple(index) else (index,)
    counters = [_counter(here, each, name) for each in slices]
    if not is_tuple(index):
        return counters[0]
    rank = len(counters)
    shape = tuple([each.shape[0] for each in counters])

    def lone(axis: int, wanted: DType) -> Value:
        own = [1] * rank
        return reshaped(counters[axis].at(wanted), (*own[:axis], shape[axis], *own[axis + 1 :]))

    if name == "numpy.ogrid":
        shapes = [
            tuple([s if a == axis else 1 for a, s in enumerate(shape)]) for axis in range(rank)
        ]
        return tuple([Weak(here, Kind.INT, own, partial(lone, a)) for a, own in enumerate(shapes)])

    def stacked(wanted: DType) -> Value:
        whole = [broadcast_to(lone(axis, wanted), shape) for axis in range(rank)]
        return joined([reshaped(each, (1, *shape)) for each in whole], 0)

    if not rank:
        raise Failure(BadArguments(function=name, problem="takes at least one slice"))
    return Weak(here, Kind.INT, (rank, *shape), stacked)


def numbers_of(here: Builder, given: slice, name: str) -> Any:
    """Return the numbers of a slice in `np.r_`; an imaginary step says how many there are."""
    start = 0 if given.start is None else given.start
    if given.stop is None or any(isinstance(each, complex) for each in (start, given.stop)):
        problem = f"takes slices with real bounds and a stop, `0:n`, not {describe(given)}"
        raise Failure(BadArguments(function=name, problem=problem))
    step: Any = 1 if given.step is None else given.step
    if step.__class__ in (complex, np.complex64, np.complex128):
        count = float(np.abs(step))
        if count < MOST_PLACES:
            return linspace.apply(here, (start, given.stop, int(count)), {})
    return arange.apply(here, (start, given.stop, step), {})


def _counter(here: Builder, given: Any, name: str) -> Weak:
    """The integers of a slice."""
    if not is_slice(given) or given.stop is None:
        problem = f"takes slices with a stop, `0:n`, not {describe(given)}"
        raise Failure(BadArguments(function=name, problem=problem))
    bounds = [0 if given.start is None else given.start, given.stop]
    bounds.append(1 if given.step is None else given.step)
    if any(isinstance(each, float | complex | np.inexact) for each in bounds):
        instead = '`np.linspace(start, stop, n)`, and `np.meshgrid(…, indexing="ij")`'
        problem = "takes slices of integers here"
        raise Failure(BadArguments(function=name, problem=problem, instead=instead))
    found = arange.apply(here, bounds, {})
    assert isinstance(found, Weak)
    return found


@function("numpy.diag_indices")
def diag_indices(here: Builder, n: Any, ndim: int = 2) -> tuple[Weak, ...]:
    """The places on the diagonal of an array with axes of one size."""
    size = as_count(n, "numpy.diag_indices", here.facts)

    def at(dtype: DType) -> Value:
        return here.bind(Iota((size,), 0, dtype), ())[0]

    axes = as_times(ndim, "numpy.diag_indices")
    return tuple([Weak(here, Kind.INT, (size,), at) for _ in range(axes)])


@function("numpy.tril_indices", result=Result.NEW)
def tril_indices(here: Builder, n: Any, k: Any = 0, m: Any = None) -> Any:
    """The places at and below a diagonal; of sizes that are numbers."""
    return _triangle_indices(here, "numpy.tril_indices", np.tril_indices, n, k, m)


@function("numpy.triu_indices", result=Result.NEW)
def triu_indices(here: Builder, n: Any, k: Any = 0, m: Any = None) -> Any:
    """The places at and above a diagonal; of sizes that are numbers."""
    return _triangle_indices(here, "numpy.triu_indices", np.triu_indices, n, k, m)


MOST_PLACES = 1_000_000
"""No larger matrix is gone through while checking."""


def _triangle_indices(
    here: Builder, name: str, places: Callable[..., Any], n: Any, k: Any, m: Any
) -> tuple[Value | Weak, ...]:
    rows, diagonal, columns = (as_integer(x, name) for x in (n, k, n if m is None else m))
    if max(rows, 1) * max(columns, 1) > MOST_PLACES:
        raise Failure(TooLarge(what=f"`{name}` of a matrix with more than {MOST_PLACES} places"))
    given = rows, diagonal, columns
    return tuple([array(here, each.tolist()) for each in places(*given)])


@of_arrays("numpy.unravel_index", alone=("indices",), traced=("shape",), result=Result.NEW)
def unravel_index(indices: Value, shape: Any, order: str = "C") -> tuple[Value, ...]:
    """Places among all elements as places on each axis."""
    name = "numpy.unravel_index"
    require(name, indices, "integer")
    sizes = as_shape(shape, name, indices.builder.facts)
    count = size_of(sizes)
    if isinstance(count, int) and count > I64.range[1]:
        problem = f"takes a shape of fewer elements than {count}"
        raise Failure(BadArguments(function=name, problem=problem))
    _require_within(name, indices, count, 0)
    _require_places(name, (indices,), sizes)
    narrow = indices.dtype is I32
    indices = _counting((indices,), count)[0]
    places: list[Value] = []
    backwards = _is_backwards(name, order)
    for size in sizes if backwards else reversed(sizes):
        places.append(e.remainder(indices, size))
        indices = e.floor_divide(indices, size)
    if narrow:
        places = [integers_of(each) for each in places]
    return tuple(places if backwards else reversed(places))


@function("numpy.ravel_multi_index", alone=("multi_index",), result=Result.NEW)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Value:
    """Places on each axis as places among all elements; `mode` may bring them onto their axes."""
    name = "numpy.ravel_multi_index"
    places = [as_array(each, name, "multi_index") for each in items(name, multi_index)]
    sizes = as_shape(dims, name, places[0].builder.facts)
    if len(places) != len(sizes):
        problem = f"takes places for each of {len(sizes)} axes, not {len(places)}"
        raise Failure(BadArguments(function=name, problem=problem))
    modes = mode if is_tuple(mode) else (mode,) * len(sizes)
    if len(modes) != len(sizes) or not all(
        isinstance(x, str) and x in ("raise", "wrap", "clip") for x in modes
    ):
        problem = "takes 'raise', 'wrap' or 'clip' as `mode`, or one for each axis, not {}"
        raise Failure(BadArguments(function=name, problem=problem.format(describe(mode))))
    for axis, (place, size) in enumerate(zip(places, sizes, strict=True)):
        require(name, place, "integer")
        if modes[axis] == "raise":
            _require_within(name, place, size, axis)
    _require_places(name, places, sizes)
    count = size_of(sizes)
    narrow = all(each.dtype is I32 for each in places) and not _is_wide(count)
    counted = _counting(places, count)
    brought = [_on_axis(name, *each) for each in zip(counted, sizes, modes, strict=True)]
    pairs = list(zip(brought, sizes, strict=True))
    if _is_backwards(name, order):
        pairs.reverse()
    result = pairs[0][0]
    for place, size in pairs[1:]:
        result = result * size + place
    return integers_of(result) if narrow else result


def _is_backwards(name: str, order: object) -> bool:
    """Return whether the first axis counts fastest."""
    if not isinstance(order, str) or order not in ("C", "c", "F", "f"):
        problem = f"takes 'C' or 'F' as `order`, not {describe(order)}"
        raise Failure(BadArguments(function=name, problem=problem))
    return order in ("F", "f")


def _on_axis(name: str, places: Value, size: Size, mode: str) -> Value:
    """Places beyond the ends of an axis, brought onto it."""
    if mode == "raise":
        return places
    as_count(size - 1, name, places.builder.facts)  # there are none on an empty axis
    if mode == "wrap":
        found: Value = e.remainder(places, size)
    else:
        found = e.minimum(e.maximum(places, 0), size - 1)
    return found


def _require_within(name: str, places: Value, size: Size, axis: int) -> None:
    """Refuse places that are known while checking and not among so many."""
    known, facts = known_places(places), places.builder.facts
    if isinstance(known, Value) or not np.size(known):
        return
    for end in (known,) if isinstance(known, Dim) else (int(np.min(known)), int(np.max(known))):
        if not facts.proves(Fact("<=", 0, end)):
            raise Failure(BadArguments(function=name, problem=f"takes no negative places: {end}"))
        if not facts.proves(Fact("<", end, size)):
            raise Failure(IndexOutOfRange.of(facts, end, size, axis))


def _require_places(name: str, places: Sequence[Value], sizes: Shape) -> None:
    """Refuse places in a shape that has none."""
    if 0 in sizes and all(0 not in each.shape for each in places):
        problem = f"takes no shape without elements: {describe(sizes)}"
        raise Failure(BadArguments(function=name, problem=problem))


def _counting(places: Sequence[Value], count: Size) -> list[Value]:
    """Places in i64; in i32 if they and the number of elements are."""
    small = isinstance(count, int) and not _is_wide(count)
    narrow = small and all(each.dtype is I32 for each in places)
    return [each if narrow else cast(each, I64) for each in places]


def _is_wide(count: Size) -> bool:
    """Return whether places among so many elements are known to need more than 32 bits."""
    return isinstance(count, int) and count - 1 > I32.range[1]


# Diagonals and triangles, and matrices made of them.


@function("numpy.eye", result=Result.IN_C_ORDER)
def eye(here: Builder, N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Value | Weak:
    """Ones on a diagonal, zeros elsewhere; open as a float without a dtype."""
    rows = as_count(N, "numpy.eye", here.facts)
    columns = rows if M is None else as_count(M, "numpy.eye", here.facts)
    return _masked(here, "equal", (rows, columns), as_size(k, "numpy.eye"), dtype)


@function("numpy.identity", result=Result.IN_C_ORDER)
def identity(here: Builder, n: Any, dtype: Any = None) -> Value | Weak:
    """The identity matrix; open as a float without a dtype."""
    return eye(here, n, dtype=dtype)  # type: ignore[no-any-return]


@function("numpy.tri", result=Result.NEW)
def tri(here: Builder, N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Value | Weak:
    """Ones at and below a diagonal, zeros elsewhere; open as a float without a dtype."""
    rows = as_count(N, "numpy.tri", here.facts)
    columns = rows if M is None else as_count(M, "numpy.tri", here.facts)
    return _masked(here, "greater_equal", (rows, columns), as_size(k, "numpy.tri"), dtype)


@of_arrays("numpy.tril", together=("m",), result=Result.NEW)
def tril(m: Value, k: Any = 0) -> Value:
    """The part at and below a diagonal of the last two axes, zeros elsewhere."""
    return _triangle("numpy.tril", m, k, lower=True)


@of_arrays("numpy.triu", together=("m",), result=Result.NEW)
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
    """Return where row + k stands in a relation to the column."""
    row, column = (here.bind(Iota(shape, axis, I32), ())[0] for axis in (0, 1))
    shifted = row if k == 0 else row + k
    return e.TABLE[relation](shifted, column)


def _masked(here: Builder, relation: str, shape: Shape, k: Size, dtype: Any) -> Value | Weak:
    def at(wanted: DType) -> Value:
        return cast(_mask(here, relation, shape, k), wanted)

    return created(here, dtype, Kind.FLOAT, shape, at)


def _is_placed(given: Mapping[str, Any]) -> bool:
    """Return whether a vector is placed in a matrix: the diagonal of a matrix is a view."""
    return getattr(given.get("v"), "ndim", None) == 1


@of_arrays("numpy.diag", together=("v",), result=new_if(_is_placed))
def diag(v: Value, k: Any = 0) -> Value:
    """A matrix with a vector on a diagonal, or the diagonal of a matrix."""
    if v.ndim == 2:
        return _diagonal("numpy.diag", v, as_size(k, "numpy.diag"))
    if v.ndim != 1:
        wanted = "a vector or a matrix"
        raise Failure(WrongNumberOfAxes(function="numpy.diag", given=v.type, wanted=wanted))
    return _on_diagonal("numpy.diag", v, as_size(k, "numpy.diag"))


@of_arrays("numpy.diagflat", together=("v",), result=Result.NEW)
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
    """Return how far a diagonal is to the right, and how far down; one of them is zero."""
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


@of_arrays("numpy.vander", together=("x",), result=Result.NEW)
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
        exponent = count - 1 - exponent
    base = broadcast_to(reshaped(x, (size, 1)), (size, count))
    return e.power(base, cast(exponent, x.dtype))
