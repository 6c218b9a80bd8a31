"""`psc.constant`: immutable copies, which a kernel may read from outside."""

from __future__ import annotations

import types
from enum import Enum
from typing import Any, TypeVar, cast

import numpy as np
import pyrsistent

from pscdsl._src.calls.errors import ArgumentError
from pscdsl._src.language.elements import frozen
from pscdsl._src.language.instances import construct, reader
from pscdsl._src.support.tracebacks import public
from pscdsl.typing.python_containers import is_pmap, is_precord, is_pvector, is_tuple

T = TypeVar("T")
_UNCHANGING = (
    *(bool, int, float, complex, str, bytes, range, slice, type(None), np.generic, np.dtype),
    *(Enum, type, types.FunctionType, types.BuiltinFunctionType, np.ufunc),
)


@public
def constant(value: T) -> T:
    """Return a read-only copy of an array or tree, for kernels that read it from outside.

    No view and no flag makes the copy writeable. In records, tuples, lists and dicts all arrays are
    copied; lists become tuples, sets become frozen sets, and dicts become pyrsistent maps. In a
    kernel this is the identity.

    Examples:
        >>> table = psc.constant(np.array([1, 10, 100], np.float32))
        >>> @psc.kernel
        ... def weighted(x: f32["3"]) -> f32:
        ...     return np.sum(table * x)
        >>> weighted(np.ones(3, np.float32))
        pscdsl.Array(111., dtype=float32)
    """
    return cast("T", _constant(value))


def _constant(value: Any) -> Any:
    kind: type[Any] = value.__class__
    if issubclass(kind, _UNCHANGING):
        return value
    if kind is np.ndarray:
        if value.dtype.hasobject:
            raise ArgumentError("psc.constant: an array of Python objects can be written")
        return frozen(value)
    if kind is list or kind is tuple:
        return tuple([_constant(each) for each in value])
    if is_tuple(value):
        items = [_constant(each) for each in value]
        return cast("Any", tuple).__new__(kind, items)
    if kind is set or kind is frozenset:
        return frozenset(value)
    if kind is dict or (is_pmap(value) and not is_precord(value)):
        return pyrsistent.pmap({key: _constant(each) for key, each in value.items()})
    if is_pvector(value):
        return pyrsistent.pvector([_constant(each) for each in value])
    if hasattr(kind, "__pscdsl_definition__"):
        return value
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):  # of another library
        return frozen(np.asarray(value))
    return _record(value, kind)


def _record(value: Any, kind: type[Any]) -> Any:
    from pscdsl._src.frontend.modules.live import record_class  # arrays need no front end

    cls = record_class(kind)
    if cls is None or cls.kind == "namespace":
        raise ArgumentError(f"psc.constant: nothing is known of objects of class {kind.__name__}")
    read = reader(cls)
    return construct(cls, [_constant(read(value, name)) for name in cls.field_names()])
