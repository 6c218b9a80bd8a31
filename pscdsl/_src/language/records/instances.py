"""Instances of record classes at run time: how they are read, taken apart and put together.

What is put together are results, which the program describes, and what jax passes where arrays will
be: tracers, and marks of its own.  So a class's own checks are not run: no `__init__` of a data
class, and no types, invariants or factories of pyrsistent's fields.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import pyrsistent

from pscdsl._src.language.records import containers
from pscdsl.typing.trees import RecordName


class Record(Protocol):
    """What has to be known of a class whose instances are records."""

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
        """The fields in order."""
        ...


def known_statics(cls: Record) -> frozenset[str]:
    """The fields whose values are known while checking, as far as the declarations are known."""
    find: Callable[[], frozenset[str]] | None = getattr(cls, "static_names", None)
    return frozenset() if find is None else find()


def reader(cls: Record) -> Callable[[Any, str], Any]:
    """How a field of an instance is read."""
    is_map = cls.kind == "precord" and issubclass(cls.constructor, pyrsistent.PRecord)
    return (lambda value, name: value[name]) if is_map else getattr


def absent(cls: Record, value: Any) -> tuple[str, ...]:
    """The fields that an instance does not have: pyrsistent's need not have all."""
    if cls.kind != "precord":
        return ()
    return tuple([name for name in cls.field_names() if not _has(value, name)])


def _has(value: Any, name: str) -> bool:
    return name in value if isinstance(value, pyrsistent.PRecord) else hasattr(value, name)


def construct(cls: Record, values: Sequence[Any]) -> Any:
    """An instance of the real class; a dict where the class was never loaded."""
    names = cls.field_names()
    if cls.constructor is None:
        return dict(zip(names, values, strict=True))
    return assemble(cls, names, values)


def assemble(cls: Record, names: Sequence[str], values: Sequence[Any]) -> Any:
    """An instance of a real class that has the fields of these names."""
    real: Any = cls.constructor
    if cls.kind != "precord":
        return containers.construct(real, names, values)
    if pyrsistent.PRecord not in real.__mro__:
        made = containers.construct(real, names, values)
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


def ways(cls: Record, statics: Collection[str] = ()) -> containers.Ways:
    """What takes an instance apart, (children, rest), and what makes one of (rest, children).

    The values of `statics`, and which fields there are at all, are in the rest.
    """
    names = cls.field_names()
    if not statics and cls.kind != "precord" and cls.constructor is not None:
        return containers.ways(cls.constructor, names)
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
