"""Records: immutable classes of arrays, their instances, and how these are taken apart."""

from __future__ import annotations

import collections
import dataclasses
import operator
import types
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, Self, TypeAlias, cast, dataclass_transform

import pyrsistent

from pscdsl.typing.trees import RecordName

# Records as containers: how they are taken apart and put together, at every call.
#
# What stands here needs no more than the class, as Python has it: NamedTuples, and frozen data
# classes, `psc.Record` among them.


Ways: TypeAlias = tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]


def field_names(cls: type[Any]) -> tuple[str, ...] | None:
    """The fields of a record in order; None if the class is no record of these kinds."""
    if tuple in cls.__mro__:
        return getattr(cls, "_fields", None)
    parameters = getattr(cls, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return None
    return tuple([each.name for each in fields(cls)])


def plain_fields(cls: type[Any]) -> tuple[str, ...] | None:
    """The fields of a data class whose construction does nothing but set them; None of another."""
    parameters = vars(cls).get("__dataclass_params__")
    if parameters is None or not parameters.init or hasattr(cls, "__post_init__"):
        return None
    kind: Any = type(cls)
    if getattr(cls, "__new__", None) is not object.__new__ or kind.__call__ is not type.__call__:
        return None
    names = tuple([each.name for each in fields(cls)])
    code: Any = getattr(vars(cls).get("__init__"), "__code__", None)
    if code is None:
        return None
    taken = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    return names if sorted(taken) == sorted(names) else None


def ways_of_container(cls: type[Any], names: Sequence[str]) -> Ways:
    """What takes an instance apart, (children, rest), and what makes one of (rest, children)."""

    def made(rest: Any, items: Any) -> Any:
        del rest
        return construct_container(cls, names, list(items))

    if len(names) < 2:
        return lambda value: (tuple([getattr(value, name) for name in names]), None), made
    read = operator.attrgetter(*names)  # a tuple of them, made in C
    new = object.__new__
    slots = any(hasattr(getattr(cls, name, None), "__set__") for name in names)
    if slots or not hasattr(new(cls), "__dict__"):
        return lambda value: (read(value), None), made

    def put_together(rest: Any, items: Any) -> Any:
        record: Any = new(cls)
        record.__dict__.update(zip(names, items, strict=True))  # as `construct` does
        return record

    return lambda value: (read(value), None), put_together


def register(cls: type[Any], register_class: Callable[..., None]) -> None:
    """Tell `register_class` of a class of records; what a NamedTuple is, it knows."""
    names = field_names(cls)
    if names is not None and tuple not in cls.__mro__:
        register_class(cls, *ways_of_container(cls, names))


def construct_container(cls: type[Any], names: Sequence[str], values: Sequence[Any]) -> Any:
    """An instance with these fields, as they are."""
    if tuple in cls.__mro__:
        return cls(*values)
    made = object.__new__(cls)  # its fields were checked when the program was
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


# Instances of record classes at run time: how they are read, taken apart and put together.
#
# What is put together are results, which the program describes, and what jax passes where arrays
# will be: tracers, and marks of its own. So a class's own checks are not run: no `__init__` of a
# data class, and no types, invariants or factories of pyrsistent's fields.


class RecordClass(Protocol):
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


def known_statics(cls: RecordClass) -> frozenset[str]:
    """The fields whose values are known while checking, as far as the declarations are known."""
    find: Callable[[], frozenset[str]] | None = getattr(cls, "static_names", None)
    return frozenset() if find is None else find()


def reader(cls: RecordClass) -> Callable[[Any, str], Any]:
    """How a field of an instance is read."""
    is_map = cls.kind == "precord" and issubclass(cls.constructor, pyrsistent.PRecord)
    return (lambda value, name: value[name]) if is_map else getattr


def absent(cls: RecordClass, value: Any) -> tuple[str, ...]:
    """The fields that an instance does not have: pyrsistent's need not have all."""
    if cls.kind != "precord":
        return ()
    return tuple([name for name in cls.field_names() if not _has(value, name)])


def _has(value: Any, name: str) -> bool:
    return name in value if isinstance(value, pyrsistent.PRecord) else hasattr(value, name)


def construct(cls: RecordClass, values: Sequence[Any]) -> Any:
    """An instance of the real class; a dict where the class was never loaded."""
    names = cls.field_names()
    if cls.constructor is None:
        return dict(zip(names, values, strict=True))
    return assemble(cls, names, values)


def assemble(cls: RecordClass, names: Sequence[str], values: Sequence[Any]) -> Any:
    """An instance of a real class that has the fields of these names."""
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


def ways(cls: RecordClass, statics: Collection[str] = ()) -> Ways:
    """What takes an instance apart, (children, rest), and what makes one of (rest, children).

    The values of `statics`, and which fields there are at all, are in the rest.
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


# `psc.Record`: immutable records of arrays.


@dataclass(frozen=True)
class Sizes:
    """What stands in the brackets of `Layer["d h"]`; no string, which would name a type."""

    text: str

    def __repr__(self) -> str:
        return repr(self.text)


@dataclass_transform(frozen_default=True)
class Record:
    """Base class of immutable records: fields are annotated names, instances are trees of arrays.

    A subclass is a frozen dataclass. `class Layer(psc.Record, dims="i o")` declares size
    parameters, and `Layer["d h"]` applies them. One parameter may be a group of any number of
    sizes, `dims="o i *window"`: `Window["8 3 5 5"]`. `class Moments(psc.Record, Generic[T])`
    declares type parameters, and `Moments[Layer]` applies them.
    """

    __dims__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, dims: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if dims:
            cls.__dims__ = tuple(dims.split())
        dataclasses.dataclass(frozen=True, eq=False)(cls)

    def __class_getitem__(cls, sizes: Any) -> type[Self]:
        if getattr(cls, "__parameters__", ()):  # of `Generic`: types stand in the brackets
            return cast("type[Self]", types.GenericAlias(cls, sizes))
        applied = Sizes(sizes) if isinstance(sizes, str) else sizes[0]  # as `typing` rebuilds it
        return cast("type[Self]", types.GenericAlias(cls, (applied,)))

    def replace(self, **changes: Any) -> Self:
        """Return the record with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


# What classes of records look like from outside, without their source.


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
