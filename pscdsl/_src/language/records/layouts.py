"""What classes of records look like from outside, without their source."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyrsistent

from pscdsl._src.language.records.classes import Record
from pscdsl.typing.trees import RecordName


@dataclass(frozen=True, eq=False)
class Layout:
    """A class of records: what `pscdsl._src.calls.boundary` wants to know of it."""

    name: RecordName
    kind: str
    """record, namedtuple, dataclass, precord"""
    constructor: Any
    names: tuple[str, ...]
    statics: frozenset[str] = frozenset()

    def field_names(self) -> tuple[str, ...]:
        """The fields in order."""
        return self.names

    def static_names(self) -> frozenset[str]:
        """The fields whose values are known while checking."""
        return self.statics


def layout_of(cls: type[Any]) -> Layout | None:
    """The layout of a class; None if its instances are no records."""
    name = RecordName(cls.__name__, cls.__module__)
    bases = cls.__mro__
    if tuple in bases and hasattr(cls, "_fields"):
        return Layout(name, "namedtuple", cls, tuple(cls._fields))
    if pyrsistent.PRecord in bases:
        return Layout(name, "precord", cls, tuple(cls._precord_fields))
    if pyrsistent.PClass in bases:
        return Layout(name, "precord", cls, tuple(cls._pclass_fields))
    if dataclasses.is_dataclass(cls):
        kind = "record" if Record in bases else "dataclass"
        return Layout(name, kind, cls, tuple([each.name for each in dataclasses.fields(cls)]))
    return None


def stand_in_class(name: RecordName, fields: Sequence[str]) -> Layout:
    """A class for records whose own class is not there: a NamedTuple, or a frozen dataclass."""
    if any(field.startswith("_") for field in fields):  # which fields of a NamedTuple must not
        plain = dataclasses.make_dataclass(name.name, list(fields), frozen=True, eq=False)
        return Layout(name, "dataclass", plain, tuple(fields))
    make: Any = collections.namedtuple
    return Layout(name, "namedtuple", make(name.name, fields, module=name.module), tuple(fields))
