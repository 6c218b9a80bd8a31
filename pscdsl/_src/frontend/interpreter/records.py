"""Record classes as read from their class statements: fields, defaults, methods."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.functions import BoundMethod, items_of
from pscdsl._src.frontend.purity import is_closed
from pscdsl._src.frontend.values import (
    Applicable,
    EnumMember,
    Marker,
    RecordValue,
    StaticFunction,
    describe,
)
from pscdsl._src.ir.builder import Builder
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.typing.array_types import RecordName
from pscdsl.typing.codes.language import (
    BadArguments,
    NoSuchAttribute,
    NotCallable,
    NotStatic,
    Unsupported,
)
from pscdsl.typing.codes.language_evaluation import NoSuchItem
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType
from pscdsl.typing.python_containers import is_dict


def as_function(value: Any) -> Any:
    """A record that can be called as the method `__call__` of it; any other value as it is."""
    if isinstance(value, RecordValue):
        member = value.cls.members.get("__call__")
        if member is not None and member.kind == "method":
            return value.cls.attribute(None, value, "__call__")
    return value


@dataclass(frozen=True)
class Field:
    """A field of a record; `annotation` is evaluated in the frame of the class."""

    name: str
    annotation: ast.expr | None
    frame: Frame | None
    default: Callable[[], Any] | None = None
    applied: tuple[tuple[tuple[str, ...], Frame, ast.expr], ...] = ()
    """What the type variables of its class stand for in those that derive from it, in turn."""
    convert: Callable[[Builder, Any], Any] | None = None
    """What pyrsistent passes each value through that is given for it: a `factory`."""
    keyword: bool = False
    """Whether it is given by its name alone."""
    checked: bool = False
    """Whether pyrsistent looks at each value that is given for it: an `invariant`."""
    anew: bool = False
    """Whether a factory makes the default for each instance."""


@dataclass(frozen=True)
class Member:
    """A method of a record class, or a value in its body."""

    kind: str
    """method, property, static, class, value"""
    value: Any
    admit: Callable[[], None] = lambda: None
    """Refuses a member that something in the project writes."""


@dataclass(eq=False)
class RecordClass:
    """A class whose instances are immutable trees."""

    name: RecordName = field(init=False)
    title: str
    module: str
    kind: str
    """record, namedtuple, dataclass, precord, typeddict"""
    fields: tuple[Field, ...]
    members: Mapping[str, Member]
    dims: tuple[str, ...] = ()
    constructor: Any = None
    """The real class, when it has been loaded."""
    guard: Callable[[str, Any], None] | None = None
    """Refuses an attribute of the class that something in the project writes."""
    parents: tuple[RecordClass, ...] = ()
    """The record classes that it derives from."""
    variables: tuple[str, ...] = ()
    """The type variables that it is generic in."""
    enumeration: bool = False
    """Whether it is an enumeration, which has members in place of fields."""
    specs: dict[tuple[Any, ...], Any] = field(default_factory=dict[tuple[Any, ...], Any])
    """Its specification for each list of size or type arguments, once worked out."""

    number: int = 0
    """Which of the loaded classes of this name it is."""

    def __post_init__(self) -> None:
        self.name = RecordName(self.title, self.module, self, self.number)

    def description(self) -> str:
        """How messages speak of it."""
        return f"the class `{self.title}`"

    def _admit(self, name: str, member: Member) -> None:
        """Refuse a member that is written, in the class that has it or in this one."""
        member.admit()
        if self.guard is not None:
            self.guard(name, member.value)

    def ancestry(self) -> Iterator[RecordClass]:
        """The class and all that it derives from."""
        yield self
        for each in self.parents:
            yield from each.ancestry()

    def refuse_special(self, *methods: str) -> None:
        """Refuse syntax for which the class has a method of its own: it is called by its name."""
        for name in methods:
            if name in self.members:
                raise Failure(
                    Unsupported(
                        what=f"`{name}` of `{self.title}`",
                        rewrite="give the method a name and call it by that",
                    )
                )

    def enum_member(self, name: Any) -> Any:
        """`Mode["FAST"]`; a Failure if it has no such member."""
        member = self.members.get(name) if isinstance(name, str) else None
        if member is None or not isinstance(member.value, Enum | EnumMember):
            raise Failure(
                NoSuchItem(found=self.title, index=describe(name), reason="no such member")
            )
        self._admit(name, member)
        return member.value

    def enum_members(self) -> tuple[Any, ...]:
        """What a loop over an enumeration gives: its members in order, other names for one not."""
        found: list[Any] = []
        for name, member in self.members.items():
            if member.kind != "value" or name.startswith("__"):
                continue
            value = member.value
            if not isinstance(value, Enum | EnumMember):
                raise Failure(NotStatic(what=f"which members `{self.title}` has"))
            self._admit(name, member)
            canonical = not isinstance(value, Enum) or any(value is each for each in type(value))
            if canonical and value.name == name:
                found.append(value)
        return tuple(found)

    def field_names(self) -> tuple[str, ...]:
        """The fields in order."""
        return tuple(each.name for each in self.fields)

    def static_names(self) -> frozenset[str]:
        """The fields whose values are known while checking."""
        from pscdsl._src.frontend.annotations import static_fields  # annotations name records

        return static_fields(self)

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Construct an instance; of an enumeration, the member that has a value."""
        if self.enumeration and len(args) == 1 and not kwargs and is_closed(args[0]):
            members = self.enum_members()
            if all(is_closed(each.value) for each in members):
                for each in members:
                    if each.value == args[0]:
                        return each
        if self.kind == "namespace":
            instead = f"name a member: `{self.title}.NAME`" if self.enumeration else ""
            found = f"the class `{self.title}`, which is no record,"
            raise Failure(NotCallable(found=found, instead=instead))
        if self.kind == "typeddict":
            made_by: Any = MEANINGS["builtins.dict"]
            made_dict: Any = made_by.apply(here, args, kwargs)  # nothing of the keys is looked at
            return made_dict
        names = self.field_names()
        placed = [each.name for each in self.fields if not each.keyword]
        if len(args) > len(placed):
            problem = f"takes {len(placed)} fields but {len(args)} were given"
            raise Failure(BadArguments(function=self.title, problem=problem))
        values: dict[str, Any] = dict(zip(placed, args, strict=False))
        for key, value in kwargs.items():
            if key not in names:
                problem = f"has no field '{key}', only {', '.join(names)}"
                raise Failure(BadArguments(function=self.title, problem=problem))
            if key in values:
                problem = f"got two values for '{key}'"
                raise Failure(BadArguments(function=self.title, problem=problem))
            values[key] = value
        for each in self.fields:
            if each.name not in values:
                if each.default is None:
                    problem = f"misses a value for the field '{each.name}'"
                    raise Failure(BadArguments(function=self.title, problem=problem))
                values[each.name] = each.default()
        made = RecordValue(self, self._converted(here, {name: values[name] for name in names}))
        self.look_at(here, made)
        return made

    def look_at(self, here: Builder, made: RecordValue) -> None:
        """What the class does with each instance that is made."""
        check = self.members.get("__post_init__")
        if check is not None and self.kind in ("dataclass", "record"):
            check.value.apply(here, (made,), {})

    def _converted(self, here: Builder, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of fields that are set, each through the factory of its field."""
        for each in self.fields:
            if each.name in values and (each.checked or "__invariant__" in self.members):
                what = f"making a `{self.title}`, whose invariants are looked at where it is made,"
                raise Failure(Unsupported(what=what, rewrite="make it outside"))
        through = {each.name: each.convert for each in self.fields if each.convert is not None}
        return {
            name: through[name](here, value) if name in through else value
            for name, value in values.items()
        }

    def class_attribute(self, name: str) -> Any:
        """What `Class.name` is."""
        if name == "_fields" and self.kind == "namedtuple":
            return self.field_names()
        if name == "_make" and self.kind == "namedtuple":
            self.refuse_special("__len__")  # which it calls

            def make(here: Any, iterable: Any, /) -> Any:
                items = items_of(iterable)
                if len(items) != len(self.fields):
                    problem = f"takes {len(self.fields)} items but {len(items)} were given"
                    raise Failure(BadArguments(function=f"{self.title}._make", problem=problem))
                return self.apply(here, tuple(items), {})

            return StaticFunction(name, make)
        member = self.members.get(name)
        if member is None:
            raise Failure(NoSuchAttribute(owner=f"class {self.title}", attribute=name))
        self._admit(name, member)
        if member.kind == "class":
            return BoundMethod(f"{self.title}.{name}", member.value, self)
        return self._own(member.value) if member.kind == "method" else member.value

    def _own(self, method: Any) -> Any:
        """A method as this class has it: a kernel that is inherited takes instances of this one."""
        of_class = getattr(method, "of_class", None)
        return method if of_class is None else of_class(self)

    def attribute(self, here: Any, value: RecordValue, name: str) -> Any:
        """What `instance.name` is."""
        if name in value.fields:
            return value.fields[name]
        member = self.members.get(name)
        if member is not None:
            self._admit(name, member)
            if member.kind == "unread":
                what = f"the method `{name}` of `{self.title}`, with these decorators,"
                raise Failure(Unsupported(what=what, rewrite="a plain method"))
            if member.kind == "property":
                return member.value.apply(here, (value,), {})
            if member.kind == "value" and _binds(member.value):
                what = f"the function `{name}` as a value of the class `{self.title}`"
                raise Failure(Unsupported(what=what, rewrite="a method"))
            if member.kind == "method":
                return BoundMethod(f"{self.title}.{name}", self._own(member.value), value)
            return self.class_attribute(name)
        if name in ("_replace", "replace", "set", "_asdict", "update") and self.updates(name):

            def update(here: Builder, *args: Any, **kwargs: Any) -> Any:
                return self.updated(here, value, name, args, kwargs)

            return StaticFunction(name, update)
        if name == "_fields" and self.kind == "namedtuple":
            return self.field_names()
        raise Failure(
            NoSuchAttribute(owner=self.title, attribute=name, known=(*value.fields, *self.members))
        )

    def updates(self, name: str) -> bool:
        """Whether a method of this name makes a changed copy."""
        allowed = {
            "namedtuple": ("_replace", "_asdict"),
            "record": ("replace",),
            "precord": ("set", "update"),
        }
        return name in allowed.get(self.kind, ())

    def updated(
        self,
        here: Builder,
        value: RecordValue,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """A changed copy."""
        changes = dict(kwargs)
        if self.kind == "namedtuple":
            self.refuse_special("__iter__", "__len__")  # which it calls
        if name == "_asdict":
            if args or kwargs:
                raise Failure(BadArguments(function=name, problem="takes no arguments"))
            return dict(value.fields)
        if name == "set" and len(args) == 2:
            changes[args[0]] = args[1]
        elif name == "update" and len(args) == 1 and is_dict(args[0]):
            changes.update(args[0])
        elif args:
            raise Failure(BadArguments(function=name, problem="takes keyword arguments"))
        return replaced(here, value, self._converted(here, changes))


def _binds(value: Any) -> bool:
    """Whether a value of a class is something else where an instance is asked for it."""
    return isinstance(value, Applicable) and not isinstance(value, RecordClass | DType)


def replaced(here: Builder, value: RecordValue, changes: Mapping[str, Any]) -> RecordValue:
    """A record with some fields changed; of a dataclass, it is made and looked at anew."""
    unknown = [each for each in changes if each not in value.fields]
    if unknown:
        problem = f"has no field {describe(unknown[0])}, only {', '.join(value.fields)}"
        raise Failure(BadArguments(function=value.cls.title, problem=problem))
    made = RecordValue(value.cls, {**value.fields, **changes})
    if value.cls.kind in ("dataclass", "record"):
        value.cls.look_at(here, made)
    return made


BASES = {
    "pscdsl.Record": "record",
    "typing.NamedTuple": "namedtuple",
    "typing.TypedDict": "typeddict",
    "pyrsistent.PRecord": "precord",
    "pyrsistent.PClass": "precord",
}


def base_kind(base: Any) -> str | None:
    """What deriving from a class makes of a class."""
    return BASES.get(base.name) if isinstance(base, Marker) else None
