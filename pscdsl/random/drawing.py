"""What all functions of this package share: their key, a shape, a dtype, operands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from pscdsl._src.ir.builder import Builder, Value, Weak, broadcast_shapes, broadcast_to
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.language.meanings import Meaning, describe, function
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.random import SplitKey
from pscdsl.numpy.conversion import asarray
from pscdsl.numpy.openness import as_dtype, as_operand, is_array
from pscdsl.numpy.shorthand import at
from pscdsl.numpy.sizes import as_shape
from pscdsl.typing.arrays import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.dtypes import DtypeNotAccepted, DtypesDiffer
from pscdsl.typing.codes.keys import NotOneKey
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import F32, KEY, DType
from pscdsl.typing.python_containers import is_constant, is_sequence


def of_key(name: str) -> Callable[[Callable[..., Any]], Meaning]:
    """Declare a function of this package whose parameters begin with the builder and one key."""
    qualified = f"pscdsl.random.{name}"

    def declare(body: Callable[..., Any]) -> Meaning:
        @wraps(body)
        def checked(here: Builder, key: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(key, Value) or key.dtype is not KEY or key.ndim:
                raise Failure(NotOneKey(function=f"psc.random.{name}", found=describe(key)))
            return body(here, key, *args, **kwargs)

        checked.__signature__ = inspect.signature(body)  # type: ignore[attr-defined]
        return function(qualified)(checked)

    return declare


def subkeys(key: Value, count: int) -> list[Value]:
    """So many keys in place of one."""
    keys = SplitKey((count,))(key)
    return [at(keys, 0, index) for index in range(count)]


def float_dtype(name: str, dtype: Any, operands: Sequence[Any] = ()) -> DType:
    """The floating-point dtype that is asked for, or that of the operands, or f32."""
    found = as_dtype(dtype)
    if found is None:
        found = dtype_of(operands) or F32
    return required(name, found, "floating")


def dtype_of(operands: Sequence[Any]) -> DType | None:
    """The dtype of the first array among parameters, captured ones included; None for numbers."""
    for each in operands:
        if isinstance(each, Value):
            return each.dtype
        if is_constant(each):
            return from_numpy(each.dtype)
    return None


def required(name: str, dtype: DType, accepts: str) -> DType:
    """A dtype that a function accepts."""
    if not e.ACCEPTS[accepts](dtype):
        given = ArrayType(dtype)
        raise Failure(DtypeNotAccepted(function=f"psc.random.{name}", given=given, accepts=accepts))
    return dtype


def array_of(here: Builder, x: Any) -> Value | Weak:
    """A parameter as an array; a list of numbers or arrays is one."""
    if is_sequence(x):
        found: Value | Weak = asarray(here, x)
        return found
    if not is_array(x):
        problem = f"takes numbers and arrays as parameters, not {describe(x)}"
        raise Failure(BadArguments(function="psc.random", problem=problem))
    return as_operand(here, x)


def operand(here: Builder, x: Any, dtype: DType) -> Value:
    """A parameter of a distribution in the dtype that is drawn in."""
    given = array_of(here, x)
    if isinstance(given, Weak):
        return given.at(dtype)
    if given.dtype is not dtype:
        raise Failure(DtypesDiffer(left=given.type, right=given.type.with_dtype(dtype)))
    return given


def shape_of(name: str, facts: Assumptions, shape: Any, operands: Sequence[Value] = ()) -> Shape:
    """The shape that is asked for, or that to which the operands broadcast."""
    if shape is None:
        return broadcast_shapes(facts, *(each.shape for each in operands))
    return as_shape(shape, f"psc.random.{name}", facts)


def fitted(operands: Sequence[Value], shape: Shape) -> list[Value]:
    """Operands of a shape, those of rank 0 left as they are: they fit everywhere."""
    return [broadcast_to(each, shape) if each.shape else each for each in operands]
