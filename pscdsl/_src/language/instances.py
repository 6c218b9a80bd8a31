"""Instances of record classes, and descriptions of these classes."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyrsistent

from pscdsl._src.language.records import (
    Record,
    Ways,
    construct_container,
    ways_of_container,
)
from pscdsl.typing.array_types import RecordName

# Instances of record classes at run time: reading, flattening and rebuilding them.
#
# Instances are rebuilt of results, which the program describes, and of jax's placeholders for
# arrays: tracers and internal marks. So a class's own checks are not run: no `__init__` of a data
# class, and no types, invariants or factories of pyrsistent's fields.


class InstanceClass(Protocol):
    """The description of a class whose instances are records."""

    @property
    def name(self) -> RecordName:
        """The class in types; its definition is this."""
        ...

    @property
    def kind(self) -> str:
        """One of record, namedtuple, dataclass, precord."""
        ...

    @property
    def constructor(self) -> Any:
        """The class; None where it was never loaded."""
        ...

    def field_names(self) -> tuple[str, ...]:
        """Return the fields in order."""
        ...


def known_statics(cls: InstanceClass) -> frozenset[str]:
    """Return the fields whose values are known while checking, as far as declarations are known."""
    find: Callable[[], frozenset[str]] | None = getattr(cls, "static_names", None)
    return frozenset() if find is None else find()


def reader(cls: InstanceClass) -> Callable[[Any, str], Any]:
    """Return a function that reads a field of an instance."""
    is_map = cls.kind == "precord" and issubclass(cls.constructor, pyrsistent.PRecord)
    return (lambda value, name: value[name]) if is_map else getattr


def absent(cls: InstanceClass, value: Any) -> tuple[str, ...]:
    """Return the fields that an instance does not have: pyrsistent's need not have all."""
    if cls.kind != "precord":
        return ()
    return tuple([name for name in cls.field_names() if not _has(value, name)])


def _has(value: Any, name: str) -> bool:
    return name in value if isinstance(value, pyrsistent.PRecord) else hasattr(value, name)


def construct(cls: InstanceClass, values: Sequence[Any]) -> Any:
    """Return an instance of the real class; a dict if the class was never loaded."""
    names = cls.field_names()
    if cls.constructor is None:
        return dict(zip(names, values, strict=True))
    return assemble(cls, names, values)


def assemble(cls: InstanceClass, names: Sequence[str], values: Sequence[Any]) -> Any:
    """Return an instance of a real class that has the fields of these names."""
    real: Any = cls.constructor
    if cls.kind != "precord":
        return construct_container(real, names, values)
    if pyrsistent.PRecord not in real.__mro__:
        made = construct_container(real, names, values)
        object.__setattr__(made, "_pclass_frozen", True)
        return made
    # As its own `__new__` makes the map, so that the fields come in the same order.
    empty: Any = pyrsistent.pmap
    declared: Any = real._precord_fields
    evolver = empty(pre_size=len(declared)).evolver()
    for name, value in zip(names, values, strict=True):
        evolver[name] = value
    fields = evolver.persistent()
    return real(_precord_size=len(fields), _precord_buckets=fields._buckets)


def ways(cls: InstanceClass, statics: Collection[str] = ()) -> Ways:
    """Return the functions that flatten an instance, into (children, rest), and rebuild it.

    The values of `statics`, and the names of the present fields, are in the rest.
    """
    names = cls.field_names()
    if not statics and cls.kind != "precord" and cls.constructor is not None:
        return ways_of_container(cls.constructor, names)
    read = reader(cls)

    def apart(value: Any) -> tuple[Any, Any]:
        missing = absent(cls, value)
        known = names if not missing else tuple([name for name in names if name not in missing])
        children = [read(value, name) for name in known if name not in statics]
        return children, (known, tuple([read(value, name) for name in known if name in statics]))

    def together(rest: Any, children: Any) -> Any:
        known, still = rest
        moving, unmoved = iter(children), iter(still)
        values = [next(unmoved if name in statics else moving) for name in known]
        return assemble(cls, known, values)

    return apart, together


# Descriptions of classes of records, without their source.


@dataclass(frozen=True, eq=False)
class RecordLayout:
    """The description of a class of records for `pscdsl._src.calls.boundary`."""

    name: RecordName
    kind: str
    """record, namedtuple, dataclass, precord"""
    constructor: Any
    names: tuple[str, ...]
    statics: frozenset[str] = frozenset()

    def field_names(self) -> tuple[str, ...]:
        """Return the fields in order."""
        return self.names

    def static_names(self) -> frozenset[str]:
        """Return the fields whose values are known while checking."""
        return self.statics


def layout_of(cls: type[Any]) -> RecordLayout | None:
    """Return the layout of a class; None if its instances are no records."""
    name = RecordName(cls.__name__, cls.__module__)
    bases = cls.__mro__
    if tuple in bases and hasattr(cls, "_fields"):
        return RecordLayout(name, "namedtuple", cls, tuple(cls._fields))
    if pyrsistent.PRecord in bases:
        return RecordLayout(name, "precord", cls, tuple(cls._precord_fields))
    if pyrsistent.PClass in bases:
        return RecordLayout(name, "precord", cls, tuple(cls._pclass_fields))
    if dataclasses.is_dataclass(cls):
        kind = "record" if Record in bases else "dataclass"
        return RecordLayout(
            name, kind, cls, tuple([field.name for field in dataclasses.fields(cls)])
        )
    return None


def stand_in_class(name: RecordName, fields: Sequence[str]) -> RecordLayout:
    """Return a class for records whose class is missing: a NamedTuple, or a frozen dataclass."""
    if any(field.startswith("_") for field in fields):  # which fields of a NamedTuple must not
        plain = dataclasses.make_dataclass(name.name, list(fields), frozen=True, eq=False)
        return RecordLayout(name, "dataclass", plain, tuple(fields))
    make: Any = collections.namedtuple
    return RecordLayout(
        name, "namedtuple", make(name.name, fields, module=name.module), tuple(fields)
    )
