"""Whether two values that are known while checking are equal.

Static arguments and fields are objects of Python's as a call gives them, where the source names
what these are as it reads it: `mode == Mode.FAST`, `dtype == np.float32`, `f is relu`.  Both are
brought to what the source would say of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from pscdsl.frontend.functions import Closure
from pscdsl.frontend.purity import external_value
from pscdsl.frontend.values import (
    PYTHON_DTYPES,
    External,
    MapValue,
    RecordValue,
    StaticFunction,
    describe,
)
from pscdsl.narrowing import is_tuple
from pscdsl.numpy_dtypes import from_numpy
from pscdsl.traces import Trace
from pscdsl.typing.codes.language import NotStatic
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType

_PLAIN: Final[tuple[type, ...]] = (
    *(bool, int, float, complex, str, bytes, range, slice, tuple, list, dict, set, frozenset),
    *(type(None), type(Ellipsis), np.ndarray),
)
_LIKE_RECORDS: Final = (RecordValue, MapValue, tuple)
_COMPARING: Final = frozenset({"builtins", "enum", "numpy"})


def meant(value: Any) -> Any:
    """A value as the source would name it; a Failure if that does not say what it is."""
    kind: type[Any] = value.__class__
    ours = kind.__module__.startswith("pscdsl.") and kind.__name__ != "ElementType"
    if not (ours or kind in _PLAIN or issubclass(kind, np.generic)):
        from pscdsl.frontend.loaded import abstract

        # It is compared as it is: what it is was written down where it was found, or given.
        value = abstract(value, "a static value", Trace(value))
    if isinstance(value, External):
        raise Failure(external_value(value))
    return value


def compares_as_itself(value: Any) -> bool:
    """Whether a value is compared by Python, and not by a method of its class."""
    for cls in value.__class__.__mro__:
        if "__eq__" in vars(cls):
            return cls.__module__ in _COMPARING
    return True


def same(left: Any, right: Any) -> bool:
    """Whether two static values are equal; a Failure where that is not known."""
    left, right = meant(left), meant(right)
    if is_tuple(left) and is_tuple(right):
        return len(left) == len(right) and all(map(same, left, right))
    for one, other in ((left, right), (right, left)):
        if isinstance(one, RecordValue) and isinstance(other, _LIKE_RECORDS) and one is not other:
            shown = [describe(each) for each in (left, right)]
            what = f"whether {shown[0]} and {shown[1]} are equal"
            raise Failure(NotStatic(what=what, rewrite="compare field by field"))
    if isinstance(left, DType) or isinstance(right, DType):
        one, other = _dtype(left), _dtype(right)
        return one is not None and one == other
    if isinstance(left, Closure) and isinstance(right, Closure):
        return left is right or _same_function(left, right)
    return bool(left == right)


def is_among(item: Any, items: Iterable[Any], *, hashed: bool) -> bool:
    """`in`, of a collection's items; where these are `hashed`, a dtype is not its name."""
    if hashed and isinstance(meant(item), DType):
        items = [each for each in items if isinstance(meant(each), DType)]
    return any([same(item, each) for each in items])


def _dtype(value: Any) -> DType | None:
    """What NumPy takes a value for that is compared with a dtype."""
    if isinstance(value, StaticFunction):
        value = PYTHON_DTYPES.get(value.name)
    if value is None or isinstance(value, DType):
        return value
    if not isinstance(value, str):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old names for dtypes
        try:
            return from_numpy(np.dtype(value))
        except TypeError:
            return None


def _same_function(left: Closure, right: Closure) -> bool:
    """Whether two readings of functions are of the same one."""
    if left.node is not right.node:
        return False
    cells = [getattr(each.scope, "cells", None) for each in (left, right)]
    if cells[0] == {} == cells[1] and not left.defaults and not right.defaults:
        return True
    raise Failure(NotStatic(what=f"whether two functions made as `{left.name}` are the same one"))
