"""Arrays whose dtype may stay open: what creation functions give, and functions of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak, promote, weakened
from pscdsl._src.ir.numpy_dtypes import meant_by
from pscdsl._src.language.meanings import describe
from pscdsl.numpy.shorthand import cast
from pscdsl.typing.arrays import Shape
from pscdsl.typing.codes.dtypes import DtypeNotAccepted
from pscdsl.typing.codes.dtypes_library import NoSuchDType
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import KEY, DType, Kind, accepts_weak, is_dtype_name
from pscdsl.typing.dtypes import dtype as named
from pscdsl.typing.python_containers import NDArray, is_dtype


def created(
    here: Builder, dtype: object, kind: Kind, shape: Shape, at: Callable[[DType], Value]
) -> Value | Weak:
    """A new array: in a dtype if one is given, else open; `at` must be exact in every dtype."""
    given = as_dtype(dtype)
    return Weak(here, kind, shape, at, scalar=True) if given is None else at(given)


class Known(Weak):
    """An open array whose numbers are known while checking."""

    __slots__ = ("numbers",)

    def __init__(
        self, builder: Builder, kind: Kind, numbers: NDArray, at: Callable[[DType], Value]
    ) -> None:
        super().__init__(builder, kind, numbers.shape, at, scalar=True)
        self.numbers = numbers


def as_dtype(dtype: object) -> DType | None:
    """A dtype argument, maybe by its name; a Failure if it is none."""
    if dtype is None or (isinstance(dtype, DType) and dtype is not KEY):
        return dtype
    shown = f"an array ({dtype.type})" if isinstance(dtype, Value | Weak) else describe(dtype)
    if isinstance(dtype, str) and is_dtype_name(dtype):
        return named(dtype)
    if isinstance(dtype, str) or is_dtype(dtype):
        found = meant_by(dtype)
        if found is not None:
            return found
    raise Failure(NoSuchDType(given=shown))


def as_operand(here: Builder, x: Any) -> Value | Weak:
    """An argument as an array: scalars, sizes and lists of numbers stay open."""
    if isinstance(x, Value | Weak):
        return x
    if isinstance(x, np.ndarray | np.generic):
        return here.constant(x)
    if is_array(x):
        return here.weak(x)
    from pscdsl.numpy.conversion import made  # which is about lists of what this is about

    return made(here, "numpy.asarray", x, None)


def in_dtype(here: Builder, x: Any, dtype: DType) -> Value:
    """An argument in a dtype, by a cast where need be; what is open is made in it."""
    x = as_operand(here, x)
    if x.dtype is KEY:
        raise Failure(DtypeNotAccepted(function="astype", given=x.type, accepts="numeric or bool"))
    if isinstance(x, Weak):
        return x.at(dtype) if accepts_weak(dtype, x.kind) else cast(x.default(), dtype)
    return cast(x, dtype)


def lifted(here: Builder, x: Any, change: Callable[[Value], Value]) -> Value | Weak:
    """A function of one array that keeps its dtype, and keeps it open if it was."""
    array = as_operand(here, x)
    if isinstance(array, Value):
        return change(array)
    return weakened(here, array.kind, lambda dtype: change(array.at(dtype)))


def met(
    here: Builder,
    operands: Sequence[Any],
    dtype: DType | None,
    build: Callable[[Sequence[Value]], Value],
    kind: Kind = Kind.BOOL,
) -> Value | Weak:
    """A function of operands in one dtype: a given one, that of the arrays, or open from `kind`."""
    if dtype is not None:
        return build([in_dtype(here, x, dtype) for x in operands])
    arrays = [as_operand(here, x) for x in operands]
    values = promote(*arrays, weak_ok=True) if arrays else None
    if values is not None:
        return build(values)
    weak = [x for x in arrays if isinstance(x, Weak)]
    kind = max([kind, *(x.kind for x in weak)])
    return weakened(here, kind, lambda dtype: build([x.at(dtype) for x in weak]))


def is_array(x: object) -> bool:
    """Whether an argument is an array or a number, not a list of them."""
    return isinstance(
        x, Value | Weak | Dim | bool | int | float | complex | np.generic | np.ndarray
    )
