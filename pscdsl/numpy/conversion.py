"""Arrays from numbers and lists of them, and casts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Scalar
from pscdsl._src.ir.scalars import kind_of
from pscdsl._src.language.meanings import describe, function, require_no_integers
from pscdsl._src.primitives.creation import Constant
from pscdsl._src.primitives.elementwise import Bitcast
from pscdsl.numpy.calling import of_arrays
from pscdsl.numpy.fitting import require_fitting
from pscdsl.numpy.openness import Known, as_dtype, as_operand, in_dtype, is_array, lifted, met
from pscdsl.numpy.shorthand import joined, reshaped
from pscdsl.numpy.sizes import as_integer
from pscdsl.typing.arrays import Shape
from pscdsl.typing.codes.dtypes import ScalarDoesNotFit
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL, DType, Kind
from pscdsl.typing.python_containers import is_sequence

MOST_AXES = 64
"""NumPy's arrays have no more."""


@function("numpy.array")
def array(
    here: Builder,
    object: Any,  # noqa: A002
    dtype: Any = None,
    *,
    copy: bool | None = True,
    ndmin: int = 0,
) -> Value | Weak:
    """Numbers, arrays and nested lists of them as one array; numbers alone leave it open."""
    array = made(here, "numpy.array", object, as_dtype(dtype))
    least = as_integer(ndmin, "numpy.array")
    if least > MOST_AXES:
        problem = f"makes arrays of at most {MOST_AXES} axes"
        raise Failure(BadArguments(function="numpy.array", problem=problem))
    missing = least - array.ndim
    return array if missing <= 0 else lifted(here, array, lambda x: _deepened(x, missing))


@function("numpy.asarray", "numpy.asanyarray")
def asarray(here: Builder, a: Any, dtype: Any = None, *, copy: bool | None = None) -> Value | Weak:
    """As `np.array`."""
    return made(here, "numpy.asarray", a, as_dtype(dtype))


@function("numpy.ascontiguousarray")
def ascontiguousarray(here: Builder, a: Any, dtype: Any = None) -> Value | Weak:
    """As `np.array`, with at least one axis."""
    return array(here, a, dtype, ndmin=1)  # type: ignore[no-any-return]


@function("numpy.copy")
def copy_(here: Builder, a: Any) -> Value | Weak:
    """The array itself: it never changes."""
    return made(here, "numpy.copy", a, None)


@function("numpy.astype")
def astype(here: Builder, x: Any, dtype: Any, /, *, copy: bool = True) -> Value:
    """A cast: floats to integers towards zero, complex to real by the real part."""
    wanted = as_dtype(dtype)
    if wanted is None:
        raise Failure(BadArguments(function="numpy.astype", problem="takes a dtype"))
    return in_dtype(here, x, wanted)


@of_arrays("numpy.ndarray.view", together=("a",))
def view(a: Value, dtype: Any) -> Value:
    """The same bits as another dtype of the same width."""
    wanted = as_dtype(dtype)
    if wanted is None or wanted.bits != a.dtype.bits or BOOL in (wanted, a.dtype):
        problem = f"reads {a.type} as a dtype of the same width, not as {wanted}"
        raise Failure(BadArguments(function="numpy.ndarray.view", problem=problem))
    return a if wanted is a.dtype else Bitcast(wanted)(a)


def made(here: Builder, name: str, given: Any, dtype: DType | None) -> Value | Weak:
    """Numbers, arrays and nested lists of them as one array, open if nothing decides."""
    if not is_sequence(given):
        if not is_array(given):
            problem = f"takes numbers, arrays and lists of them, not {describe(given)}"
            raise Failure(BadArguments(function=name, problem=problem))
        return as_operand(here, given) if dtype is None else in_dtype(here, given, dtype)
    outer = _outer(name, given)
    leaves = list(_leaves(given))
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


def _leaves(given: Any) -> Iterator[Any]:
    if is_sequence(given):
        for item in given:
            yield from _leaves(item)
    else:
        yield given


def _constant(
    here: Builder, numbers: Sequence[Scalar], shape: tuple[int, ...], dtype: DType | None
) -> Value | Weak:
    kind = max([kind_of(number) for number in numbers], default=Kind.FLOAT)

    def at(wanted: DType) -> Value:
        if wanted.is_integer and kind is Kind.INT:
            for number in numbers:
                here.literal(number, wanted)  # refuses what does not fit
        with np.errstate(all="ignore"):
            try:
                plain: Any = np.array(numbers, np.complex128 if kind is Kind.COMPLEX else None)
                if plain.dtype == object and wanted.is_inexact:  # integers of any size
                    plain = plain.astype(float)
            except OverflowError:
                raise Failure(
                    ScalarDoesNotFit(scalar="an integer this large", dtype=wanted)
                ) from None
            if kind is Kind.COMPLEX and not wanted.is_complex:
                plain = plain.real
            converted = plain.astype(to_numpy(wanted)).reshape(shape)
            finite = np.isfinite(plain) if plain.dtype != object else True
            lost = finite & ~np.isfinite(converted).reshape(plain.shape)
        if dtype is None and np.any(lost):
            raise Failure(ScalarDoesNotFit(scalar=repr(plain[lost][0].item()), dtype=wanted))
        return here.bind(Constant.of(converted, wanted), ())[0]

    if dtype is not None:
        return at(dtype)
    return Known(here, kind, np.array(numbers).reshape(shape), at)


def _stacked(name: str, values: Sequence[Value], outer: tuple[int, ...]) -> Value:
    """Arrays of one shape along new leading axes."""
    first = values[0].shape
    require_fitting(name, values)
    rows = [reshaped(each, (1, *first)) for each in values]
    shape: Shape = (*outer, *first)
    return reshaped(joined(rows, 0), shape)


def _deepened(x: Value, count: int) -> Value:
    return reshaped(x, ((1,) * count + x.shape))
