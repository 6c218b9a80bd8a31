"""Classes as loaded: what a real class holds, where no text of a file says it.

A class statement in a cell, at a prompt or in `-c` leaves no trace of where it stood; and a name
may stand for several classes, one after the other.  So the real class is read: its fields with
their types as they were evaluated, its methods, each with the text of its own code, its values.
`loaded_class_rules` refuses what is not modelled exactly.  Where a text is found that has such a
statement, findings point into it, and it must say all that there is to the class.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from enum import EnumType
from typing import Any, Final, get_args, get_origin

from pscdsl._src.frontend.interpreter.frames import Frame, Scope, Session
from pscdsl._src.frontend.interpreter.records import Field, Member, RecordClass
from pscdsl._src.frontend.loaded_class_rules import MADE, TUPLES, kind_of, require_plain
from pscdsl._src.frontend.loaded_class_texts import LoadedClass, function_of, is_generated
from pscdsl._src.frontend.modules.live_types import Abstract, Written
from pscdsl._src.frontend.specs.classes import FACTORIES, admitted
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.values.purity import external_value
from pscdsl._src.frontend.values.values import External
from pscdsl._src.language.records import Record
from pscdsl.typing.diagnostics import Failure


def class_of_object(
    cls: type[Any], scope: Scope, abstract: Abstract, source: Source | None = None
) -> RecordClass:
    """A real class as a record class; what is no record, for its constants and static methods."""
    loaded = LoadedClass(cls, scope, abstract, source)
    kind = kind_of(cls)
    require_plain(loaded, kind)
    if kind is None:
        return _namespace(loaded)
    parents = [
        each for base in cls.__bases__ if isinstance(each := abstract(base, ""), RecordClass)
    ]
    records = [each for each in parents if each.kind != "namespace"]
    return RecordClass(
        cls.__name__,
        cls.__module__,
        kind,
        tuple(_fields(loaded, kind, records)),
        _all_members(loaded, kind),
        tuple(getattr(cls, "__dims__", ())),
        cls,
        _guard(loaded),
        tuple(parents),
        tuple([each.__name__ for each in getattr(cls, "__parameters__", ())]),
        number=_number(cls),
    )


_NUMBERED: dict[tuple[str, str], list[weakref.ref[type[Any]]]] = {}


def _number(cls: type[Any]) -> int:
    """Which of the classes of its name a class is, in the order in which they were first read."""
    known = _NUMBERED.setdefault((cls.__module__, cls.__name__), [])
    for number, each in enumerate(known):
        if each() is cls:
            return number
    known.append(weakref.ref(cls))
    return len(known) - 1


def _guard(loaded: LoadedClass) -> Callable[[str, Any], None] | None:
    """What refuses attributes of the class that its text writes."""
    if loaded.statement is None:
        return None
    source, node = loaded.statement

    def guard(name: str, value: Any) -> None:
        loaded.scope.guard.of_class(source, node, name, value)

    return guard


# What it holds.


def _fields(loaded: LoadedClass, kind: str, parents: list[RecordClass]) -> Iterator[Field]:
    """The fields in the order of the constructor's parameters."""
    inherited: dict[str, Field] = {}
    for parent in reversed(parents):
        inherited.update((each.name, each) for each in _as_inherited(loaded, parent))
    for name, found in _declared(loaded, kind):
        field = found() if _owns(loaded.cls, kind, name) else inherited.get(name)
        if field is None:
            field = found()
        yield field


def _owns(cls: type[Any], kind: str, name: str) -> bool:
    """Whether a class declares a field itself."""
    if kind == "precord":
        own = vars(cls)
        fields = own.get("_precord_fields", own.get("_pclass_fields", {}))
        return all(
            name not in _pyrsistent(base) or _pyrsistent(base)[name] is not fields.get(name)
            for base in cls.__bases__
        )
    return name in vars(cls).get("__annotations__", {})


def _declared(loaded: LoadedClass, kind: str) -> Iterator[tuple[str, Callable[[], Field]]]:
    cls = loaded.cls
    if kind == "namedtuple":
        hints: Mapping[str, Any] = _tuple_types(cls)
        for name in cls._fields:
            yield name, functools.partial(_tuple_field, loaded, name, hints)
    elif kind == "precord":
        for name, each in _pyrsistent(cls).items():
            yield name, functools.partial(_precord_field, loaded, name, each)
    else:
        named = {each.name for each in dataclasses.fields(cls)}
        for name, each in cls.__dataclass_fields__.items():
            if name in named:
                yield name, functools.partial(_dataclass_field, loaded, each)
            elif get_origin(each.type) is None and isinstance(each.type, dataclasses.InitVar):
                what = f"the variable `{name}` of `{cls.__name__}` that is only given"
                raise loaded.failure(what, "declare a field")


def _tuple_types(cls: type[Any]) -> Mapping[str, Any]:
    """The types of a NamedTuple's fields; none of those of `collections.namedtuple`."""
    for each in cls.__mro__:
        if "_fields" in vars(each):
            found: Mapping[str, Any] = getattr(each, "__annotations__", {})
            return found
    return {}


def _tuple_field(loaded: LoadedClass, name: str, hints: Mapping[str, Any]) -> Field:
    defaults = loaded.cls._field_defaults
    default = (
        functools.partial(_default, loaded, name, defaults[name]) if name in defaults else None
    )
    if name not in hints:
        return Field(name, None, None, default)
    return Field(name, *loaded.annotation(name, hints[name]), default)


def _dataclass_field(loaded: LoadedClass, each: dataclasses.Field[Any]) -> Field:
    annotation, keyword = loaded.annotation(each.name, each.type), each.kw_only is True
    if each.default is not dataclasses.MISSING:
        default = functools.partial(_default, loaded, each.name, each.default)
        return Field(each.name, *annotation, default, keyword=keyword)
    if each.default_factory is dataclasses.MISSING:
        return Field(each.name, *annotation, keyword=keyword)
    factory = each.default_factory

    def made() -> Any:
        function = _default(loaded, each.name, factory)
        if getattr(function, "name", "") not in FACTORIES:
            what = f"the `default_factory` of `{loaded.cls.__name__}.{each.name}`"
            raise loaded.failure(what, "a default, or a function that makes the record")
        return function.apply(annotation[1].here(annotation[0]), (), {})

    return Field(each.name, *annotation, made, keyword=keyword, anew=True)


def _pyrsistent(cls: type[Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(cls, "_precord_fields", getattr(cls, "_pclass_fields", {}))
    return found


def _annotated(cls: type[Any], name: str) -> Iterator[Any]:
    """What a class, or the first that it derives from, annotates a name with."""
    for each in cls.__mro__:
        found: Mapping[str, Any] = vars(each).get("__annotations__", {})
        if name in found:
            yield found[name]
            return


def _precord_field(loaded: LoadedClass, name: str, each: Any) -> Field:
    """A field of pyrsistent's, which has names of its own for what is not given."""
    from pyrsistent import _field_common

    absent: Any = _field_common
    kinds = tuple(each.type) or tuple(_annotated(loaded.cls, name))
    node: ast.expr | None = None
    frame: Frame | None = None
    if len(kinds) == 1:
        node, frame = loaded.annotation(name, kinds[0])
    convert: Callable[[Any, Any], Any] | None = None
    default: Callable[[], Any] | None = None
    if each._factory is not absent.PFIELD_NO_FACTORY:

        def through(here: Any, value: Any) -> Any:
            return _default(loaded, name, each._factory).apply(here, (value,), {})

        convert = through
    if each.initial is not absent.PFIELD_NO_INITIAL:

        def initial() -> Any:
            value = _default(loaded, name, each.initial)
            if not hasattr(value, "apply"):
                return value
            here = loaded.frame() if frame is None else frame
            return value.apply(here.here(node or ast.Name(name)), (), {})

        default = initial
    checked = each.invariant is not absent.PFIELD_NO_INVARIANT
    return Field(name, node, frame, default, convert=convert, checked=checked)


def _default(loaded: LoadedClass, name: str, real: Any) -> Any:
    """A value that was worked out when the class was made."""
    value = loaded.abstract(real, name)
    if isinstance(value, External):
        raise Failure(external_value(value))
    return value


def _as_inherited(loaded: LoadedClass, parent: RecordClass) -> list[Field]:
    """The fields of a parent as a class has them that derives from it."""
    given: tuple[Any, ...] = ()
    bases: tuple[Any, ...] = vars(loaded.cls).get("__orig_bases__", loaded.cls.__bases__)
    for base in bases:
        if get_origin(base) is parent.constructor and get_args(base):
            given = get_args(base)
    if not parent.variables or not given:
        return [*parent.fields]
    written = Written(loaded.abstract)
    texts = ", ".join(map(written.text, given))
    node = ast.parse(f"({texts},)", mode="eval").body
    frame = Frame(Session(None), Source("<a type>", f"({texts},)"), loaded.scope)
    frame.names = written.names
    applied = (parent.variables, frame, node)
    return [dataclasses.replace(each, applied=(*each.applied, applied)) for each in parent.fields]


def _all_members(loaded: LoadedClass, kind: str) -> dict[str, Member]:
    """The methods and values of a class, those that it inherits among them."""
    members: dict[str, Member] = {}
    for base in reversed(loaded.cls.__mro__[1:]):
        if base in (object, tuple, Record) or base.__module__ in ("typing", "abc", "pyrsistent"):
            continue
        if base.__module__.startswith("pyrsistent."):
            continue
        parent = loaded.abstract(base, base.__name__)
        for name, member in _members(LoadedClass(base, loaded.scope, loaded.abstract), kind):
            if isinstance(parent, RecordClass):
                of_parent = functools.partial(admitted, parent, name, member)
                member = dataclasses.replace(member, admit=of_parent)
            members[name] = member
    members.update(_members(loaded, kind))
    return members


def _members(loaded: LoadedClass, kind: str) -> Iterator[tuple[str, Member]]:
    """What stands in the body of a class, its fields left out."""
    cls = loaded.cls
    fields = {*getattr(cls, "_fields", ()), *getattr(cls, "__dataclass_fields__", ())}
    fields -= _variables(cls)
    for name, member in vars(cls).items():
        function = function_of(member)
        if function is None and (name in MADE or name.startswith(("_precord_", "_pclass_"))):
            continue
        if name in fields or (kind == "namedtuple" and name in TUPLES):
            continue
        if kind == "precord" and name in _pyrsistent(cls):
            continue
        if function is not None and is_generated(function):
            continue
        yield name, _member(loaded, name, member)


def _variables(cls: type[Any]) -> set[str]:
    """The class variables that a dataclass keeps beside its fields."""
    if not dataclasses.is_dataclass(cls):
        return set()
    return {*cls.__dataclass_fields__} - {each.name for each in dataclasses.fields(cls)}


def _member(loaded: LoadedClass, name: str, member: Any) -> Member:
    function = function_of(member)
    kernel = member.__func__ if isinstance(member, staticmethod) else member
    if hasattr(kernel, "__pscdsl_definition__"):
        kind = "method" if kernel is member else "static"
        return Member(kind, loaded.abstract(kernel, name))
    if function is None:
        shown = f"{loaded.cls.__module__}.{loaded.cls.__qualname__}.{name}"
        return Member("value", loaded.abstract(member, shown))
    kind = "method"
    for each, known in _WRAPPERS.items():
        if isinstance(member, each):
            kind = known
    return Member(kind, loaded.abstract(function, name))


_WRAPPERS: Final[Mapping[type[Any], str]] = {
    property: "property",
    functools.cached_property: "property",
    staticmethod: "static",
    classmethod: "class",
}


def _namespace(loaded: LoadedClass) -> RecordClass:
    """A class that has no instances in kernels: its static methods and constants can be used."""
    cls = loaded.cls
    members: dict[str, Member] = {}
    names: Any = getattr(cls, "__members__", {}) if isinstance(cls, EnumType) else {}
    for name, member in vars(cls).items():
        function = function_of(member)
        special = name.startswith("__") and name.endswith("__")
        if name in names or name in MADE or (isinstance(cls, EnumType) and function is None):
            continue
        if function is not None and isinstance(member, staticmethod | classmethod):
            members[name] = _member(loaded, name, member)
        elif function is None and not special and not isinstance(member, _DESCRIPTORS):
            members[name] = _member(loaded, name, member)
    for name, each in names.items():
        members[name] = Member("value", loaded.abstract(each, f"{cls.__name__}.{name}"))
    made = RecordClass(cls.__name__, cls.__module__, "namespace", (), members, guard=_guard(loaded))
    made.enumeration = isinstance(cls, EnumType)
    return made


_DESCRIPTORS: Final = (types.GetSetDescriptorType, types.MemberDescriptorType, property)
