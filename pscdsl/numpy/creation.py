"""Arrays filled with one number.  Without a dtype they are open: it is that of what they meet."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Builder, Value, Weak, broadcast_to
from pscdsl._src.ir.scalars import kind_of
from pscdsl._src.language.meanings import function
from pscdsl.numpy.openness import as_dtype, as_operand, created, in_dtype, lifted
from pscdsl.numpy.sizes import as_shape
from pscdsl.typing.arrays import Shape
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import DType, Kind


@function("numpy.zeros")
def zeros(here: Builder, shape: Any, dtype: Any = None) -> Value | Weak:
    """Zeros; open as a float without a dtype."""
    return _filled(here, as_shape(shape, "numpy.zeros", here.facts), 0.0, dtype)


@function("numpy.ones")
def ones(here: Builder, shape: Any, dtype: Any = None) -> Value | Weak:
    """Ones; open as a float without a dtype."""
    return _filled(here, as_shape(shape, "numpy.ones", here.facts), 1.0, dtype)


@function("numpy.empty")
def empty(here: Builder, shape: Any, dtype: Any = None) -> Value | Weak:
    """Zeros: there is no memory that could be left as it was."""
    return _filled(here, as_shape(shape, "numpy.empty", here.facts), 0.0, dtype)


@function("numpy.full")
def full(here: Builder, shape: Any, fill_value: Any, dtype: Any = None) -> Value | Weak:
    """One number, or an array broadcast; its dtype is that of `fill_value`."""
    return _full(here, as_shape(shape, "numpy.full", here.facts), fill_value, dtype)


@function("numpy.zeros_like")
def zeros_like(here: Builder, a: Any, dtype: Any = None, shape: Any = None) -> Value | Weak:
    """Zeros in the dtype and shape of another array."""
    return _like(here, "numpy.zeros_like", a, False, dtype, shape)


@function("numpy.ones_like")
def ones_like(here: Builder, a: Any, dtype: Any = None, shape: Any = None) -> Value | Weak:
    """Ones in the dtype and shape of another array."""
    return _like(here, "numpy.ones_like", a, True, dtype, shape)


@function("numpy.empty_like")
def empty_like(here: Builder, prototype: Any, dtype: Any = None, shape: Any = None) -> Value | Weak:
    """Zeros in the dtype and shape of another array."""
    return _like(here, "numpy.empty_like", prototype, False, dtype, shape)


@function("numpy.full_like")
def full_like(
    here: Builder, a: Any, fill_value: Any, dtype: Any = None, shape: Any = None
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
    given = as_dtype(dtype)
    if isinstance(value, bool | int | float | complex):
        return created(here, given, kind_of(value), shape, lambda d: here.full(value, shape, d))
    if isinstance(value, Dim):
        return created(
            here, given, Kind.INT, shape, lambda d: here.full(here.size(value, d), shape, d)
        )
    if given is not None:
        return broadcast_to(in_dtype(here, value, given), shape)
    return lifted(here, value, lambda x: broadcast_to(x, shape))


def _like(
    here: Builder, name: str, prototype: Any, value: Any, dtype: Any, shape: Any
) -> Value | Weak:
    array = as_operand(here, prototype)
    sizes = array.shape if shape is None else as_shape(shape, name, here.facts)
    given = as_dtype(dtype)
    if given is None and isinstance(array, Value):
        given = array.dtype
    if given is None and isinstance(array, Weak):
        filling = as_operand(here, value)
        kind = filling.kind if isinstance(filling, Weak) else filling.dtype.kind
        if kind > array.kind:
            problem = f"gives what has the dtype of an array of {array.dtype}: name a `dtype`"
            raise Failure(BadArguments(function=name, problem=problem))
        if isinstance(filling, Weak):

            def at(wanted: DType) -> Value:
                return broadcast_to(filling.at(wanted), sizes)

            return Weak(here, array.kind, sizes, at, scalar=True)
    if isinstance(value, Value) and given is not None and value.dtype is not given:
        return broadcast_to(in_dtype(here, value, given), sizes)
    return _full(here, sizes, value, given)
