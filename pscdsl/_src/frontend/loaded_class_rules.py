"""The loaded classes that have a meaning: what `class_rules` asks of a text, asked of the class.

Whatever made a class (decorators, a metaclass, writes to its attributes), what it holds is there
to be looked at.  So a class is read only if it holds nothing that is not modelled exactly; and
where its statement is known, that has to be one of the short list, and to say all there is.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, ABCMeta
from collections.abc import Iterator
from enum import Enum, EnumType, Flag, IntEnum, StrEnum
from types import FunctionType
from typing import Any, Final, Generic, Protocol

import pyrsistent

from pscdsl._src.frontend.class_rules import OF_CLASSES, OF_RECORDS, REBUILDING, class_text
from pscdsl._src.frontend.loaded_class_texts import LoadedClass, function_of, is_generated
from pscdsl._src.language.records import Record

MADE: Final = frozenset(
    "__annotate__ __annotate_func__ __annotations__ __annotations_cache__ __dataclass_fields__ "
    "__dataclass_params__ __dict__ __dims__ __doc__ __firstlineno__ __hash__ __match_args__ "
    "__module__ __orig_bases__ __parameters__ __qualname__ __slots__ __static_attributes__ "
    "__type_params__ __weakref__ _abc_impl __abstractmethods__ __non_callable_proto_members__ "
    "__protocol_attrs__ _is_protocol _is_runtime_protocol __final__ "
    "__callable_proto_members_only__ __slotnames__".split()
)
"""What Python and the makers of records enter into a class."""
TUPLES: Final = frozenset(
    "__getnewargs__ __new__ __replace__ __repr__ _asdict _field_defaults _fields _make "
    "_replace".split()
)
"""What `NamedTuple` defines, and forbids to define."""
ENUMERATIONS: Final = (Enum, Flag, IntEnum, StrEnum)
_WITHOUT_MEANING: Final[tuple[Any, ...]] = (object, tuple, Generic, Protocol, ABC)
_BASES: Final[tuple[Any, ...]] = (Record, pyrsistent.PRecord, pyrsistent.PClass)


def kind_of(cls: type[Any]) -> str | None:
    """Which kind of record a class is; None if it is none."""
    if issubclass(cls, Record):
        return "record"
    if tuple in cls.__mro__ and hasattr(cls, "_fields"):
        return "namedtuple"
    if issubclass(cls, pyrsistent.PRecord | pyrsistent.PClass):
        return "precord"
    return "dataclass" if hasattr(cls, "__dataclass_fields__") else None


def require_plain(loaded: LoadedClass, kind: str | None) -> None:
    """A Failure unless all that the class is made of has an exact meaning."""
    if loaded.statement is not None and "<locals>" not in loaded.cls.__qualname__:
        class_text(loaded.frame(), loaded.statement[1])
    if isinstance(loaded.cls, EnumType):
        _require_enumeration(loaded)
        return
    _require_bases(loaded, kind)
    for name, member in vars(loaded.cls).items():
        _require_name(loaded, kind, name, member)
    if kind in ("dataclass", "record"):
        _require_dataclass(loaded, kind)
    if kind is not None:
        _require_new_names(loaded)


def _require_new_names(loaded: LoadedClass) -> None:
    """Refuse a field, a method or a value by the name of a field that is inherited."""
    cls = loaded.cls
    inherited = {name for base in cls.__mro__[1:] for name in field_names(base)}
    for name in (*vars(cls), *vars(cls).get("__annotations__", ())):
        if name in inherited:
            what = f"`{name}`, which is a field of the base class already,"
            raise loaded.failure(what, "give it another name")


def field_names(cls: type[Any]) -> Iterator[str]:
    """The names of the fields that a class declares or inherits."""
    if kind_of(cls) == "precord":
        yield from getattr(cls, "_precord_fields", getattr(cls, "_pclass_fields", ()))
    elif kind_of(cls) == "namedtuple":
        yield from getattr(cls, "_fields", ())
    elif dataclasses.is_dataclass(cls):
        yield from (each.name for each in dataclasses.fields(cls))


def _require_bases(loaded: LoadedClass, kind: str | None) -> None:
    cls = loaded.cls
    plain = type(cls) in (type, ABCMeta, type(Protocol))
    if not plain and kind != "precord":
        raise loaded.failure("a metaclass of a class", "derive from `psc.Record`")
    bases = [each for each in cls.__bases__ if each not in _WITHOUT_MEANING]
    if len(bases) > 1:
        what = "a class with several base classes"
        raise loaded.failure(what, "derive from one; use functions for the rest")
    for base in bases:
        if base not in _BASES and (kind is None or kind_of(base) is None):
            raise loaded.failure(f"the base class `{base.__name__}`", "use a function of it")


def _require_name(loaded: LoadedClass, kind: str | None, name: str, member: Any) -> None:
    """Refuse methods by which Python does something else with the class, or its instances."""
    function = function_of(member)
    if name.startswith(f"_{loaded.cls.__name__.lstrip('_')}__"):
        raise loaded.at(function, "a name with two underscores", "one underscore, or none")
    if not name.startswith("__") or (function is not None and is_generated(function)):
        return
    if kind is None:
        known = name not in OF_CLASSES
    elif name == "__invariant__":
        known = kind == "precord"
    elif function is not None:
        known = name in OF_RECORDS and isinstance(member, FunctionType)
    else:
        known = name in MADE or kind == "precord"
    if not known:
        what = f"`{name}` of {'a class' if kind is None else 'a record'}"
        rewrite = REBUILDING.get(name, "a method with a name of its own")
        raise loaded.at(function, what, rewrite)


def _require_dataclass(loaded: LoadedClass, kind: str) -> None:
    cls = loaded.cls
    parameters: Any = vars(cls).get("__dataclass_params__")
    if parameters is None:
        if vars(cls).get("__annotations__"):
            what = f"fields of `{cls.__name__}`, which is no dataclass itself,"
            raise loaded.failure(what, "decorate it with `@dataclass(frozen=True)`")
        return
    if not parameters.frozen:
        what = f"the mutable dataclass `{cls.__name__}`"
        raise loaded.failure(what, "@dataclass(frozen=True)")
    usual = {"init": True, "eq": kind == "dataclass", "order": False, "unsafe_hash": False}
    for name, value in usual.items():
        if getattr(parameters, name) is not value:
            raise loaded.failure(f"`{name}=` of a dataclass", "leave it out")
    for each in vars(cls)["__dataclass_fields__"].values():
        own = each.name in vars(cls).get("__annotations__", {})
        if own and not (each.init and each.compare and each.hash is None):
            what = f"the field `{each.name}` of `{cls.__name__}`, which is set otherwise"
            raise loaded.failure(what, "declare fields that are given in their order")


def _require_enumeration(loaded: LoadedClass) -> None:
    cls = loaded.cls
    if len(cls.__bases__) != 1 or cls.__bases__[0] not in ENUMERATIONS or type(cls) is not EnumType:
        what = "an enumeration with other base classes than one of Python's"
        raise loaded.failure(what, "derive from `enum.Enum`")
    for name, member in vars(cls).items():
        if name in ("name", "value", "_name_", "_value_") or isinstance(member, property):
            raise loaded.failure(f"`{name}` of an enumeration", "a function of a member")
