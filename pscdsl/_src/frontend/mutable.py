"""Which values can be changed in their place, and how."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Any

import numpy as np

from pscdsl._src.frontend.values.values import (
    EnumMember,
    MapValue,
    Once,
    Partial,
    RecordValue,
    VectorValue,
    is_traced,
)
from pscdsl._src.ir.builder import Weak
from pscdsl._src.language.elements import is_frozen
from pscdsl.typing.python_containers import is_constant, is_dict, is_sequence, is_tuple


class Kind(Enum):
    """How a value can be changed."""

    ARRAY = auto()
    """An array, and through each of its views."""
    FLAT = auto()
    """A list, dict or set of what cannot be changed itself."""
    DEEP = auto()
    """A value that holds others that can be changed."""


def kind_of(value: Any) -> Kind | None:
    """How a value can be changed; None if it cannot."""
    if is_constant(value) and isinstance(value, np.ndarray):
        if is_frozen(value):
            return None
        plain = type(value) is np.ndarray and not value.dtype.hasobject
        return Kind.ARRAY if plain else Kind.DEEP
    if isinstance(value, Once):
        return Kind.DEEP
    if isinstance(value, list | dict | set):
        return Kind.DEEP if any(kind_of(part) for part in parts(value)) else Kind.FLAT
    return Kind.DEEP if any(kind_of(part) for part in parts(value)) else None


def is_mutable(value: Any) -> bool:
    """Whether a value, or something in it, can be changed in its place."""
    return kind_of(value) is not None


def holds_arrays(value: Any) -> bool:
    """Whether a value is or holds an array that is computed."""
    return (is_traced(value) and not isinstance(value, Weak)) or any(
        map(holds_arrays, parts(value))
    )


def iterator_in(value: Any) -> Once | None:
    """The iterator that a value is or holds."""
    if isinstance(value, Once):
        return value
    return next((once for part in parts(value) if (once := iterator_in(part)) is not None), None)


def parts(value: Any) -> Iterator[Any]:
    """What a value holds."""
    if is_dict(value):
        yield from value.values()
    elif is_sequence(value) or is_tuple(value):
        yield from value
    elif isinstance(value, RecordValue):
        yield from value.fields.values()
    elif isinstance(value, MapValue):
        yield from value.items.values()
    elif isinstance(value, VectorValue):
        yield from value.items
    elif isinstance(value, Partial):
        yield from (*value.args, *value.kwargs.values())
    elif isinstance(value, EnumMember):
        yield value.value
    elif isinstance(value, Enum):
        yield value._value_
    elif hasattr(value, "self_value"):  # a bound method
        yield value.self_value


def has_keywords(value: Any) -> bool:
    """Whether a value is or holds a partial function with keywords, which are a dict."""
    if isinstance(value, Partial) and value.kwargs:
        return True
    return any(has_keywords(part) for part in parts(value))
