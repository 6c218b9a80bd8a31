"""Frozen dataclasses of plain values as JSON data, and back by their annotations.

Reading data makes no choice by what the data says: the annotations say what is read, and whatever
does not fit is refused.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Reader = Callable[[Any], Any]


class Unreadable(Exception):
    """The data is not of the type that was asked for."""


def encode(value: Any, special: Mapping[type, Callable[[Any], Any]]) -> Any:
    """A value as JSON data; `special` says how other classes are written."""
    if value is None or isinstance(value, str | int | float):
        return value.value if isinstance(value, Enum) else value
    for kind, write in special.items():
        if isinstance(value, kind):
            return write(value)
    if isinstance(value, frozenset):
        return sorted(encode(each, special) for each in _items(value))
    if isinstance(value, tuple | list):
        return [encode(each, special) for each in _items(value)]
    if is_dataclass(value):
        return [encode(getattr(value, field.name), special) for field in fields(value)]
    raise TypeError(f"{type(value).__name__} has no form as data")


def _items(value: Any) -> Any:
    return value


def decode(annotation: Any, data: Any, special: Mapping[type, Reader]) -> Any:
    """The value of a type that data stands for; raises `Unreadable` if it is none."""
    if isinstance(annotation, type):
        for kind, read in special.items():
            if issubclass(annotation, kind):
                return read(data)
        if annotation in (str, bool, int, float, types.NoneType):
            return _plain(annotation, data)
        if is_dataclass(annotation):
            return _record(annotation, data, special)
    if annotation is Any:
        return data
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal and data in arguments:
        return data
    if origin in (Union, types.UnionType):
        return _either(arguments, data, special)
    if origin in (tuple, frozenset) and isinstance(data, list):
        items: list[Any] = _items(data)
        if origin is frozenset:
            return frozenset({decode(arguments[0], each, special) for each in items})
        if arguments[-1] is Ellipsis:
            return tuple([decode(arguments[0], each, special) for each in items])
        if len(items) == len(arguments):
            pairs = zip(arguments, items, strict=True)
            return tuple([decode(each, item, special) for each, item in pairs])
    raise Unreadable(f"not {annotation}")


def _plain(annotation: type, data: Any) -> Any:
    if type(data) is not annotation:
        raise Unreadable(f"not {annotation.__name__}")
    return data


def _either(arguments: tuple[Any, ...], data: Any, special: Mapping[type, Reader]) -> Any:
    for each in arguments:
        try:
            return decode(each, data, special)
        except Unreadable:
            continue
    raise Unreadable("fits none of several types")


def _record(annotation: Any, data: Any, special: Mapping[type, Reader]) -> Any:
    hints = _hints(annotation)
    if not isinstance(data, list) or len(_items(data)) != len(hints):
        raise Unreadable(f"not {annotation.__name__}")
    pairs = zip(hints, _items(data), strict=True)
    return annotation(**{name: decode(hints[name], each, special) for name, each in pairs})


@cache
def _hints(annotation: Any) -> dict[str, Any]:
    hints = get_type_hints(annotation)
    return {field.name: hints[field.name] for field in fields(annotation)}
