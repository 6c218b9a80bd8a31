"""Classes that are loaded: what their text says is compared with what they are.

Values, defaults and methods are taken from the class itself.  Where it is not what its text says
(a decorator, a write to an attribute, a metaclass made it into something else), it is refused.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import reprlib
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from pscdsl.frontend.class_rules import CALLED_BY_SYNTAX, ClassText, refuse
from pscdsl.frontend.equality import compares_as_itself
from pscdsl.frontend.frames import Frame
from pscdsl.frontend.records import Field, Member
from pscdsl.typing.diagnostics import Failure

_GENERATING = frozenset(
    ("<string>", *(each.__file__ for each in (collections, dataclasses, reprlib, typing)))
)
"""The files of methods that a class has from `dataclass` or `NamedTuple`."""


def asked(
    frame: Frame,
    text: ClassText,
    own: Mapping[str, Member],
    fields: Sequence[Field],
    cls: type[Any],
) -> tuple[dict[str, Member], list[Field]]:
    """The members and fields of a class as it is; a Failure if its text says something else."""
    found = vars(cls)
    _require_bases(frame, text, cls)
    if text.kind == "enumeration":
        members = getattr(cls, "__members__", {})
        if list(members) != list(text.values):
            raise _differs(frame, text.node, cls, "has other members")
        made = {name: Member("value", _member(each, cls)) for name, each in members.items()}
        return {**_members(frame, text, own, found, cls, skip=members), **made}, []
    if text.kind != "precord":  # pyrsistent takes fields out of the class
        _require_names(frame, text, found, cls)
    _require_fields(frame, text, fields, cls)
    return _members(frame, text, own, found, cls), [_asked_field(each, cls) for each in fields]


def _differs(frame: Frame, node: ast.AST, cls: type[Any], how: str) -> Failure:
    what = f"the class `{cls.__name__}`, which {how} than its text says,"
    return refuse(frame, node, what, "let the class statement say all there is to the class")


def _member(member: Any, cls: type[Any]) -> Any:
    from pscdsl.frontend.values import External

    if isinstance(member, Enum) and compares_as_itself(member):
        return member
    return External(f"{cls.__module__}.{cls.__qualname__}.{getattr(member, 'name', '?')}")


def _require_bases(frame: Frame, text: ClassText, cls: type[Any]) -> None:
    parent = text.parent
    if parent is not None and parent.constructor not in cls.__bases__:
        raise _differs(frame, text.node, cls, "has other bases")
    own = [each for each in cls.__mro__ if each.__module__ == cls.__module__]
    if len(own) > 1 and parent is None:
        raise _differs(frame, text.node, cls, "has other bases")


def _require_names(frame: Frame, text: ClassText, found: Mapping[str, Any], cls: type[Any]) -> None:
    """No name that the text does not show."""
    said = {*text.fields, *text.values, *text.methods}
    for name, each in found.items():
        public = not name.startswith("_")
        written = isinstance(each, types.FunctionType) and name in CALLED_BY_SYNTAX
        generated = written and each.__code__.co_filename in _GENERATING
        if name in said or not (public or written) or generated:
            continue
        raise _differs(frame, text.node, cls, f"has another `{name}`")


def _require_fields(frame: Frame, text: ClassText, fields: Sequence[Field], cls: type[Any]) -> None:
    inherited = () if text.parent is None else text.parent.field_names()
    said = [*inherited, *(each.name for each in fields)]
    if dataclasses.is_dataclass(cls):
        real = [each.name for each in dataclasses.fields(cls)]
    else:
        real = list(getattr(cls, "_fields", said))
    if text.kind in ("dataclass", "record", "namedtuple") and real != said:
        raise _differs(frame, text.node, cls, "has other fields")


def _asked_field(field: Field, cls: type[Any]) -> Field:
    """A field with the default that the class has."""
    from pscdsl.frontend.loaded import abstract

    if field.default is None:
        return field
    defaults = getattr(cls, "_field_defaults", {})
    if dataclasses.is_dataclass(cls):
        real = {each.name: each.default for each in dataclasses.fields(cls)}
        defaults = {key: each for key, each in real.items() if each is not dataclasses.MISSING}
    if field.name not in defaults:
        return field
    value = defaults[field.name]
    return dataclasses.replace(field, default=lambda: abstract(value, field.name))


def _members(
    frame: Frame,
    text: ClassText,
    own: Mapping[str, Member],
    found: Mapping[str, Any],
    cls: type[Any],
    skip: Mapping[str, Any] | None = None,
) -> dict[str, Member]:
    from pscdsl.frontend.loaded import abstract

    made: dict[str, Member] = {}
    for name, member in own.items():
        if name in (skip or {}):
            continue
        if member.kind == "unread" or (name not in found and name.startswith("__")):
            made[name] = member
            continue
        if name not in found:
            raise _differs(frame, text.node, cls, f"lacks `{name}`, other")
        real = found[name]
        if member.kind == "value":
            value = member.value if name.startswith("__") else abstract(real, name)
            made[name] = Member("value", value)
        else:
            _, node = text.methods[name]
            made[name] = Member(member.kind, _method(frame, node, member.kind, real, cls))
    return made


_WRAPPERS: dict[type, str] = {property: "property", staticmethod: "static", classmethod: "class"}


def _method(frame: Frame, node: ast.FunctionDef, kind: str, real: Any, cls: type[Any]) -> Any:
    """The function of a method, which is the one that the text has."""
    from pscdsl.frontend.loaded import closure_of

    function: Any = real
    actual = _WRAPPERS.get(type(real), "method")
    if isinstance(real, property):
        function = real.fget if real.fset is None and real.fdel is None else None
    elif isinstance(real, staticmethod | classmethod):
        function = real.__func__
    elif isinstance(real, functools.cached_property):
        function, actual = real.func, "property"
    if not isinstance(function, types.FunctionType) or actual != kind:
        raise _differs(frame, node, cls, f"has another `{node.name}`")
    found = closure_of(function)
    if found.node.lineno != node.lineno or found.name != node.name:
        raise _differs(frame, node, cls, f"has another `{node.name}`")
    return found
