"""`isinstance`, as far as the class of a value is known while checking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pscdsl._src.frontend.closed import is_closed
from pscdsl._src.frontend.interpreter.equality import meant
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.values.values import (
    EnumMember,
    External,
    MapValue,
    Marker,
    RecordValue,
    StaticFunction,
    Undecided,
    VectorValue,
    describe,
    is_traced,
)
from pscdsl.typing.codes.language import NotStatic
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.python_containers import is_tuple

PYTHON: dict[str, type] = {
    f"builtins.{each.__name__}": each
    for each in (
        bool, int, float, complex, str, tuple, list, dict, set, frozenset, range, slice,
    )
}  # fmt: skip
NUMBERS = {f"builtins.{each.__name__}" for each in (bool, int, float, complex)}
OURS = {
    "record": {"pscdsl.Record"},
    "namedtuple": {"builtins.tuple"},
    "precord": {"pyrsistent.PRecord", "pyrsistent.PMap"},
}
"""What instances of the kinds of record classes are besides."""
OPEN = ("typing.", "collections.", "numbers.", "abc.")
"""Where classes come from whose instances are decided by what they can do."""


def isinstance_(here: Any, value: Any, classes: Any, /) -> bool:
    """Whether a value is of one of some classes; a Failure where that is not known."""
    del here
    value = meant(value)
    for cls in _flat(classes):
        found = _is(value, cls)
        if found is None:  # perhaps no class at all, which Python finds before it tries the next
            what = f"whether {describe(value)} is an instance of {describe(cls)}"
            raise Failure(NotStatic(what=what))
        if found:
            return True
    return False


def _flat(classes: Any) -> Iterator[Any]:
    if is_tuple(classes):
        for each in classes:
            yield from _flat(each)
    else:
        yield classes


def _is(value: Any, cls: Any) -> bool | None:
    name = getattr(cls, "name", None)
    if isinstance(cls, RecordClass):
        if cls.kind == "namespace":
            return None  # an enumeration, a protocol, a class of which no instance is known
        return isinstance(value, RecordValue) and cls in value.cls.ancestry()
    if not isinstance(name, str) or not isinstance(cls, Marker | External | StaticFunction):
        return None
    if isinstance(cls, StaticFunction) and name not in PYTHON:
        return None  # Python takes a function for no class
    if name == "builtins.object":
        return True
    if name.startswith(OPEN):
        return None
    if isinstance(value, Undecided) or (is_traced(value) and not value.ndim):
        # A number of Python's or NumPy's, or an array: it is no container.
        return False if name in PYTHON.keys() - NUMBERS else None
    if is_traced(value):
        return name in ("numpy.ndarray", "pscdsl.Array")
    if isinstance(value, RecordValue):
        return name in OURS.get(value.cls.kind, ())
    if isinstance(value, MapValue | VectorValue):
        return name == ("pyrsistent.PMap" if isinstance(value, MapValue) else "pyrsistent.PVector")
    if isinstance(value, Dim):
        return name == "builtins.int"
    if is_closed(value) or isinstance(value, tuple | list | dict | slice):
        known = name in PYTHON or not name.startswith(("builtins.", "enum."))
        return (name in PYTHON and isinstance(value, PYTHON[name])) if known else None
    if isinstance(value, EnumMember) and name in PYTHON:
        return False
    return None
