"""Record classes as read from their class statements: fields, defaults, methods."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pscdsl.builder import Builder
from pscdsl.frontend.frames import Frame
from pscdsl.frontend.functions import BoundMethod
from pscdsl.frontend.values import Marker, RecordValue, StaticFunction
from pscdsl.narrowing import is_dict
from pscdsl.typing.codes.language import (
    BadArguments,
    NoSuchAttribute,
    NotCallable,
    Unsupported,
)
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.trees import RecordName


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
    """record, namedtuple, dataclass, precord"""
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
    specs: dict[tuple[Any, ...], Any] = field(default_factory=dict[tuple[Any, ...], Any])
    """Its specification for each list of size or type arguments, once worked out."""

    number: int = 0
    """Which of the loaded classes of this name it is."""

    def __post_init__(self) -> None:
        self.name = RecordName(self.title, self.module, self, self.number)

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

    def field_names(self) -> tuple[str, ...]:
        """The fields in order."""
        return tuple(each.name for each in self.fields)

    def static_names(self) -> frozenset[str]:
        """The fields whose values are known while checking."""
        from pscdsl.frontend.annotations import static_fields

        return static_fields(self)

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> RecordValue:
        """Construct an instance."""
        if self.kind == "namespace":
            raise Failure(NotCallable(found=f"the class `{self.title}`, which is no record,"))
        names = self.field_names()
        if len(args) > len(names):
            problem = f"takes {len(names)} fields but {len(args)} were given"
            raise Failure(BadArguments(function=self.title, problem=problem))
        values: dict[str, Any] = dict(zip(names, args, strict=False))
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
        check = self.members.get("__post_init__")
        if check is not None:
            check.value.apply(here, (made,), {})
        return made

    def _converted(self, here: Builder, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of fields that are set, each through the factory of its field."""
        through = {each.name: each.convert for each in self.fields if each.convert is not None}
        return {
            name: through[name](here, value) if name in through else value
            for name, value in values.items()
        }

    def class_attribute(self, name: str) -> Any:
        """What `Class.name` is."""
        if name == "_fields":
            return self.field_names()
        if name in ("_make", "create"):

            def make(here: Any, items: Any) -> RecordValue:
                return self.apply(here, tuple(items), {})

            return StaticFunction(name, make)
        member = self.members.get(name)
        if member is None:
            raise Failure(NoSuchAttribute(owner=f"class {self.title}", attribute=name))
        self._admit(name, member)
        if member.kind == "class":
            return BoundMethod(f"{self.title}.{name}", member.value, self)
        return member.value

    def attribute(self, here: Any, value: RecordValue, name: str) -> Any:
        """What `instance.name` is."""
        if name in value.fields:
            return value.fields[name]
        member = self.members.get(name)
        if member is not None:
            self._admit(name, member)
            if member.kind == "property":
                return member.value.apply(here, (value,), {})
            if member.kind == "method":
                return BoundMethod(f"{self.title}.{name}", member.value, value)
            return self.class_attribute(name)
        if name in ("_replace", "replace", "set", "_asdict", "update") and self.updates(name):

            def update(here: Builder, *args: Any, **kwargs: Any) -> Any:
                return self.updated(here, value, name, args, kwargs)

            return StaticFunction(name, update)
        if name == "_fields":
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
        if name == "_asdict":
            return dict(value.fields)
        if name == "set" and len(args) == 2:
            changes[args[0]] = args[1]
        elif name == "update" and len(args) == 1 and is_dict(args[0]):
            changes.update(args[0])
        elif args:
            raise Failure(BadArguments(function=name, problem="takes keyword arguments"))
        return replaced(value, self._converted(here, changes))


def replaced(value: RecordValue, changes: Mapping[str, Any]) -> RecordValue:
    """A record with some fields changed."""
    unknown = changes.keys() - value.fields.keys()
    if unknown:
        problem = f"has no field '{sorted(unknown)[0]}', only {', '.join(value.fields)}"
        raise Failure(BadArguments(function=value.cls.title, problem=problem))
    return RecordValue(value.cls, {**value.fields, **changes})


BASES = {
    "pscdsl.Record": "record",
    "typing.NamedTuple": "namedtuple",
    "pyrsistent.PRecord": "precord",
    "pyrsistent.PClass": "precord",
}


def base_kind(base: Any) -> str | None:
    """What deriving from a class makes of a class."""
    return BASES.get(base.name) if isinstance(base, Marker) else None
