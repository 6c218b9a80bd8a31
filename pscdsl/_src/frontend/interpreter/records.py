"""Record classes as read from their class statements: fields, defaults, methods."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pscdsl._src.frontend.interpreter.frames import Frame, session_of
from pscdsl._src.frontend.interpreter.functions import BoundMethod, items_of
from pscdsl._src.frontend.modules.jax_programs import BESIDE, PACKAGES
from pscdsl._src.frontend.purity import is_closed
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    EnumMember,
    External,
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
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType
from pscdsl.typing.python_containers import is_dict

if TYPE_CHECKING:
    from pscdsl._src.frontend.interpreter.constructors import Construction
    from pscdsl.typing.signatures import RecordSpec, Spec

SpecKey: TypeAlias = "tuple[tuple[str, ...], tuple[Spec, ...]]"
"""The size and type arguments of a record class."""


def as_function(value: AnyValue) -> AnyValue:
    """Return a callable record's method `__call__`; any other value as given."""
    return value.cls.method(value, "__call__") or value if isinstance(value, RecordValue) else value


@dataclass(frozen=True)
class Field:
    """A field of a record; `annotation` is evaluated in the frame of the class."""

    name: str
    annotation: ast.expr | None
    frame: Frame | None
    default: Callable[[], AnyValue] | None = None
    applied: tuple[tuple[tuple[str, ...], Frame, tuple[ast.expr, ...]], ...] = ()
    """The arguments for type variables of its class in derived classes, in order."""
    convert: Callable[[Builder, AnyValue], AnyValue] | None = None
    """Converts each given value: a `factory` of pyrsistent."""
    keyword: bool = False
    """Whether it is passed only by keyword."""
    checked: bool = False
    """Whether pyrsistent checks each given value: an `invariant`."""
    anew: bool = False
    """Whether a factory makes the default for each instance."""


@dataclass(frozen=True)
class Member:
    """A method of a record class, or a value in its body."""

    kind: str
    """method, property, static, class, value"""
    value: AnyValue
    admit: Callable[[], None] = lambda: None
    """Refuses a member that the project writes to."""


@dataclass(eq=False)
class RecordClass(Applicable):
    """A class whose instances are immutable trees."""

    name: RecordName = field(init=False)
    title: str
    module: str
    kind: str
    """record, namedtuple, dataclass, precord, typeddict"""
    fields: tuple[Field, ...]
    members: Mapping[str, Member]
    dims: tuple[str, ...] = ()
    constructor: type[Any] | None = None
    """The real class, if it has been loaded."""
    guard: Callable[[str, AnyValue], None] | None = None
    """Refuses an attribute of the class that the project writes to."""
    parents: tuple[RecordClass, ...] = ()
    """The record classes that it derives from."""
    variables: tuple[str, ...] = ()
    """Its type variables, if it is generic."""
    enumeration: bool = False
    """Whether it is an enumeration, which has members instead of fields."""
    specs: dict[SpecKey, RecordSpec | None] = field(
        default_factory=dict["SpecKey", "RecordSpec | None"]
    )
    """Its specification for each list of size and type arguments; None while it is read."""

    construction: Construction | None = None
    """How instances are made, if it is a class of a JAX program."""
    number: int = 0
    """Its number among the loaded classes of this name."""

    def __post_init__(self) -> None:
        self.name = RecordName(self.title, self.module, self, self.number)

    def description(self) -> str:
        """Describe the class for messages."""
        return f"the class `{self.title}`"

    def admit(self, name: str, member: Member) -> None:
        """Refuse a member that is written, in its own class or in this one."""
        member.admit()
        if self.guard is not None:
            self.guard(name, member.value)

    def ancestry(self) -> Iterator[RecordClass]:
        """Yield the class and all its ancestors."""
        yield self
        for each in self.parents:
            yield from each.ancestry()

    @property
    def has_unseen_bases(self) -> bool:
        """True if it derives from classes that are not followed, which may define anything."""
        return self.construction is not None and self.construction.has_unseen_bases

    def refuse_special(self, *methods: str) -> None:
        """Refuse syntax for which the class defines a method, which can be called by its name."""
        for name in methods:
            if name in self.members or self.has_unseen_bases:
                raise Failure(
                    Unsupported(
                        what=f"`{name}` of `{self.title}`",
                        rewrite="give the method a name and call it by that",
                    )
                )

    def enum_member(self, name: AnyValue) -> Enum | EnumMember:
        """Return `Mode["FAST"]`; a Failure if there is no such member."""
        if isinstance(name, str) and (member := self.members.get(name)) is not None:
            if isinstance(member.value, Enum | EnumMember):
                self.admit(name, member)
                return member.value
        raise Failure(NoSuchItem(found=self.title, index=describe(name), reason="no such member"))

    def enum_members(self) -> tuple[Enum | EnumMember, ...]:
        """Return the members of an enumeration in order, without aliases."""
        found: list[Enum | EnumMember] = []
        for name, member in self.members.items():
            if member.kind != "value" or name.startswith("__"):
                continue
            value = member.value
            if not isinstance(value, Enum | EnumMember):
                raise Failure(NotStatic(what=f"which members `{self.title}` has"))
            self.admit(name, member)
            canonical = not isinstance(value, Enum) or any(value is each for each in type(value))
            if canonical and value.name == name:
                found.append(value)
        return tuple(found)

    def field_names(self) -> tuple[str, ...]:
        """Return the names of the fields in order."""
        return tuple(each.name for each in self.fields)

    def static_names(self) -> frozenset[str]:
        """Return the names of the fields whose values are known while checking."""
        from pscdsl._src.frontend.annotations import static_fields  # avoids an import cycle

        return static_fields(self)

    def apply(
        self, here: Builder, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Construct an instance; for an enumeration, return the member with a value."""
        if self.enumeration and len(args) == 1 and not kwargs and is_closed(args[0]):
            members = self.enum_members()
            if all(is_closed(each.value) for each in members):
                for one in members:
                    if one.value == args[0]:
                        return one
        if self.kind == "namespace":
            instead = f"name a member: `{self.title}.NAME`" if self.enumeration else ""
            found = f"the class `{self.title}`, which is no record,"
            raise Failure(NotCallable(found=found, instead=instead))
        if self.kind == "typeddict":
            made_by = MEANINGS["builtins.dict"]
            assert isinstance(made_by, Applicable)
            return made_by.apply(here, args, kwargs)  # the keys are not checked
        if self.construction is not None:
            return self.construction.instance(here, self, args, kwargs)
        if "__init__" in self.members:
            raise Failure(NotSupported(what=f"a call of `{self.title}`, which has an `__init__`,"))
        made = RecordValue(self, self.converted(here, self.given_fields(args, kwargs)))
        self.look_at(here, made)
        return made

    def given_fields(
        self, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
    ) -> dict[str, AnyValue]:
        """Return the fields that the arguments of a generated constructor give."""
        names = self.field_names()
        placed = [each.name for each in self.fields if not each.keyword]
        if len(args) > len(placed):
            problem = f"takes {len(placed)} fields but {len(args)} were given"
            raise Failure(BadArguments(function=self.title, problem=problem))
        values: dict[str, AnyValue] = dict(zip(placed, args, strict=False))
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
        return {name: values[name] for name in names}

    def look_at(self, here: Builder, made: RecordValue) -> None:
        """Run the class's check of a new instance."""
        check = self.members.get("__post_init__")
        if check is not None and self.kind in ("dataclass", "record"):
            self._own(check.value).apply(here, (made,), {})

    def converted(self, here: Builder, values: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
        """Return the values of given fields, converted by the factories of the fields."""
        for each in self.fields:
            if each.name in values and (each.checked or "__invariant__" in self.members):
                what = f"making a `{self.title}`, whose invariants are looked at where it is made,"
                raise Failure(Unsupported(what=what, rewrite="make it outside"))
        through = {each.name: each.convert for each in self.fields if each.convert is not None}
        return {
            name: through[name](here, value) if name in through else value
            for name, value in values.items()
        }

    def class_attribute(self, name: str) -> AnyValue:
        """Return `Class.name`."""
        if name == "_fields" and self.kind == "namedtuple":
            return self.field_names()
        if name == "_make" and self.kind == "namedtuple":
            self.refuse_special("__len__")  # `_make` calls it

            def make(here: Builder, iterable: AnyValue, /) -> AnyValue:
                items = items_of(iterable)
                if len(items) != len(self.fields):
                    problem = f"takes {len(self.fields)} items but {len(items)} were given"
                    raise Failure(BadArguments(function=f"{self.title}._make", problem=problem))
                return self.apply(here, tuple(items), {})

            return StaticFunction(name, make)
        member = self.members.get(name)
        if member is None:
            raise Failure(NoSuchAttribute(owner=f"class {self.title}", attribute=name))
        self.admit(name, member)
        if member.kind == "class":
            return BoundMethod(f"{self.title}.{name}", self._own(member.value), self)
        return self._own(member.value) if member.kind == "method" else member.value

    def _own(self, method: AnyValue) -> Applicable:
        """Return a method as in this class: an inherited kernel takes instances of this class."""
        if not isinstance(method, Applicable):
            raise Failure(NotCallable(found=describe(method)))
        of_class: Callable[[RecordClass], Applicable] | None = getattr(method, "of_class", None)
        return method if of_class is None else of_class(self)

    def method(self, value: RecordValue, name: str) -> BoundMethod | None:
        """Return the method `instance.name`; None if the class defines no method of this name."""
        member = self.members.get(name)
        if member is None or member.kind != "method":
            return None
        self.admit(name, member)
        return BoundMethod(f"{self.title}.{name}", self._own(member.value), value)

    def attribute(self, here: Builder, value: RecordValue, name: str) -> AnyValue:
        """Return `instance.name`."""
        if name in value.fields:
            return value.fields[name]
        if (method := self.method(value, name)) is not None:
            return method
        member = self.members.get(name)
        if member is not None:
            self.admit(name, member)
            if member.kind == "unread":
                what = f"the method `{name}` of `{self.title}`, with these decorators,"
                raise Failure(Unsupported(what=what, rewrite="a plain method"))
            if member.kind == "property":
                return self._own(member.value).apply(here, (value,), {})
            if member.kind == "value" and _binds(member.value):
                what = f"the function `{name}` as a value of the class `{self.title}`"
                raise Failure(Unsupported(what=what, rewrite="a method"))
            return self.class_attribute(name)
        if name in ("_replace", "replace", "set", "_asdict", "update") and self.updates(name):

            def update(here: Builder, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
                return self.updated(here, value, name, args, kwargs)

            return StaticFunction(name, update)
        if name == "_fields" and self.kind == "namedtuple":
            return self.field_names()
        if name in session_of(here).added:
            return External(f"{self.title}.{name}", library=True)
        raise Failure(
            NoSuchAttribute(owner=self.title, attribute=name, known=(*value.fields, *self.members))
        )

    def lacks(self, name: str) -> bool:
        """Return whether the class certainly gives its instances no attribute of this name."""
        unseen = any(
            each.construction is None
            or each.construction.has_unseen_bases
            or "__getattr__" in each.members
            or each.module.partition(".")[0] in {*PACKAGES, *BESIDE}
            for each in self.ancestry()
        )
        known = name in self.members or name in self.field_names() or name in _GIVEN
        return not unseen and not known and not name.startswith("_")

    def updates(self, name: str) -> bool:
        """Return whether a method of this name makes a changed copy."""
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
        args: Sequence[AnyValue],
        kwargs: Mapping[str, AnyValue],
    ) -> AnyValue:
        """Return a changed copy."""
        changes: dict[Any, AnyValue] = dict(kwargs)
        if self.kind == "namedtuple":
            self.refuse_special("__iter__", "__len__")  # the method calls it
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
        return replaced(here, value, self.converted(here, changes))


_GIVEN: Final = frozenset("count from_tuple index replace to_tuple".split())
"""Attributes that a base or a decorator may give to instances."""


def _binds(value: AnyValue) -> bool:
    """Return whether a value of a class differs when it is read from an instance."""
    return isinstance(value, Applicable) and not isinstance(value, RecordClass | DType)


def replaced(here: Builder, value: RecordValue, changes: Mapping[str, AnyValue]) -> RecordValue:
    """Return a record with some fields changed; a dataclass is constructed and checked again."""
    unknown = [each for each in changes if each not in value.fields]
    if unknown:
        problem = f"has no field {describe(unknown[0])}, only {', '.join(value.fields)}"
        raise Failure(BadArguments(function=value.cls.title, problem=problem))
    if value.cls.construction is not None:
        return value.cls.construction.replaced(here, value, changes)
    made = RecordValue(value.cls, {**value.fields, **changes})
    if value.cls.kind in ("dataclass", "record"):
        value.cls.look_at(here, made)
    return made


BASES: Final = {
    "pscdsl.Record": "record",
    "typing.NamedTuple": "namedtuple",
    "typing.TypedDict": "typeddict",
    "pyrsistent.PRecord": "precord",
    "pyrsistent.PClass": "precord",
}


def base_kind(base: AnyValue) -> str | None:
    """Return the kind of record that a base class makes; None for other bases."""
    return BASES.get(base.name) if isinstance(base, Marker) else None
