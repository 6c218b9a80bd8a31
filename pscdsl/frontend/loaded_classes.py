"""Classes as loaded: what a real class holds, where no text of a file says it.

A class statement in a cell, at a prompt or in `-c` leaves no trace of where it stood; and a name
may stand for several classes, one after the other.  So the real class is read: its fields with
their types as they were evaluated, its methods, each with the text of its own code, its values.
Where a text is found that has such a statement, findings point into it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import types
import weakref
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, EnumType, Flag
from typing import Any, Final, cast, get_args, get_origin

import pyrsistent

from pscdsl import code_texts
from pscdsl.frontend.classes import REBUILDING, admitted
from pscdsl.frontend.frames import Frame, Scope, Session
from pscdsl.frontend.loaded_code import unchecked
from pscdsl.frontend.loaded_types import Abstract, Written
from pscdsl.frontend.purity import external_value
from pscdsl.frontend.records import Field, Member, RecordClass
from pscdsl.frontend.source import Source
from pscdsl.frontend.values import External
from pscdsl.records import Record
from pscdsl.typing.codes.language import BadAnnotation, Unsupported
from pscdsl.typing.diagnostics import Failure

_MADE: Final = frozenset(
    "__annotate__ __annotate_func__ __annotations__ __annotations_cache__ __dataclass_fields__ "
    "__dataclass_params__ __dict__ __dims__ __doc__ __firstlineno__ __hash__ __match_args__ "
    "__module__ __orig_bases__ __parameters__ __qualname__ __slots__ __static_attributes__ "
    "__type_params__ __weakref__ _abc_impl".split()
)
"""What Python and the makers of records enter into a class."""
_TUPLES: Final = frozenset(
    "__getnewargs__ __new__ __replace__ __repr__ _asdict _field_defaults _fields _make "
    "_replace".split()
)
"""What `NamedTuple` defines, and forbids to define."""


class LoadedClass:
    """A real class that is to be read, and the class statement that it may be from."""

    def __init__(
        self, cls: type[Any], scope: Scope, abstract: Abstract, source: Source | None = None
    ) -> None:
        self.cls = cls
        self.scope = scope
        self.abstract = abstract
        self.source = source
        """The text of its module, if that is in a file."""

    @functools.cached_property
    def statement(self) -> tuple[Source, ast.ClassDef] | None:
        """The newest text with a statement that may be this class's: findings point there."""
        first = vars(self.cls).get("__firstlineno__")
        for source in _texts(self.cls) if self.source is None else (self.source,):
            node = source.classes().get(self.cls.__qualname__)
            if node is not None and _agrees(node, self.cls, first):
                return source, node
        return None

    def frame(self) -> Frame:
        """Where annotations and values of the class are read."""
        source = Source("<a class>", "") if self.statement is None else self.statement[0]
        return Frame(Session(None), source, self.scope)

    def failure(self, what: str, rewrite: str) -> Failure:
        """What to say of a class that cannot be a record."""
        found = Unsupported(what=what, rewrite=rewrite)
        if self.statement is None:
            return Failure(found)
        source, node = self.statement
        return Failure(found.at(source.span(node)))

    def annotation(self, name: str, value: Any) -> tuple[ast.expr, Frame]:
        """The type of a field as an annotation, at its place if that is known."""
        frame = self.frame()
        if isinstance(value, str):
            text = value
        else:
            written = Written(self.abstract)
            text, frame.names = written.text(value), written.names
        try:
            node = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            reason = f"`{name}: {text}` is no type"
            raise Failure(
                BadAnnotation(text=text, reason=reason, rewrite='write `f32["n d"]`')
            ) from None
        place = None if self.statement is None else _annotations(self.statement[1]).get(name)
        if place is not None and ast.dump(node) == ast.dump(place):
            return place, frame
        if place is not None:
            for each in ast.walk(node):
                ast.copy_location(each, place)
        elif self.statement is None:
            frame.source = Source("<a type>", text)
        return node, frame


def class_of_object(
    cls: type[Any], scope: Scope, abstract: Abstract, source: Source | None = None
) -> RecordClass:
    """A real class as a record class; what is no record, for its constants and static methods."""
    loaded = LoadedClass(cls, scope, abstract, source)
    kind = _kind(cls)
    if kind is None:
        return _namespace(loaded)
    if type(cls) not in (type, ABCMeta) and kind != "precord":
        raise loaded.failure("a metaclass of a record", "derive from `psc.Record`")
    if kind == "dataclass" and not cls.__dataclass_params__.frozen:
        what = f"the mutable dataclass `{cls.__name__}`"
        raise loaded.failure(what, "@dataclass(frozen=True)")
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


def is_record(cls: type[Any]) -> bool:
    """Whether instances of a class are records."""
    return _kind(cls) is not None


def _kind(cls: type[Any]) -> str | None:
    """Which kind of record a class is; None if it is none."""
    if issubclass(cls, Record):
        return "record"
    bases = cls.__mro__
    if tuple in bases and hasattr(cls, "_fields"):
        return "namedtuple"
    if pyrsistent.PRecord in bases or pyrsistent.PClass in bases:
        return "precord"
    return "dataclass" if hasattr(cls, "__dataclass_fields__") else None


# Where it stood.


def _texts(cls: type[Any]) -> Iterator[Source]:
    """The texts that may have the statement, those that its methods are from first."""
    names = dict.fromkeys(
        function.__code__.co_filename
        for member in vars(cls).values()
        if _is_own(function := _function(member))
    )
    word = f"class {cls.__name__}"
    for name in names or dict.fromkeys(code_texts.kept_names()):
        text = code_texts.shown_text(name)
        if text is not None and word in text:
            try:
                yield _source(code_texts.shown_name(name), text)
            except Failure:
                continue


@functools.lru_cache(maxsize=64)
def _source(name: str, text: str) -> Source:
    return Source(name, text)


def _agrees(node: ast.ClassDef, cls: type[Any], first: object) -> bool:
    """Whether a class statement annotates what the class does, in the same order."""
    line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    own = vars(cls).get("__annotations__", {})
    return first in (None, line) and [*own] == [*_annotations(node)]


def _annotations(node: ast.ClassDef) -> dict[str, ast.expr]:
    return {
        each.target.id: each.annotation
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


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
        ordinary = dataclasses.fields(cls)
        named = {each.name for each in ordinary}
        last = [each.kw_only is True for each in ordinary]
        for name, each in cls.__dataclass_fields__.items():
            if name in named and (not each.init or last != sorted(last)):
                what = f"the field `{name}` of `{cls.__name__}`, which is set otherwise"
                raise loaded.failure(what, "declare fields that are given in their order")
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
    annotation = loaded.annotation(each.name, each.type)
    if each.default is not dataclasses.MISSING:
        default = functools.partial(_default, loaded, each.name, each.default)
        return Field(each.name, *annotation, default)
    if each.default_factory is dataclasses.MISSING:
        return Field(each.name, *annotation)
    factory = each.default_factory

    def made() -> Any:
        function = _default(loaded, each.name, factory)
        return function.apply(annotation[1].here(annotation[0]), (), {})

    return Field(each.name, *annotation, made)


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
    return Field(name, node, frame, default, convert=convert)


def _default(loaded: LoadedClass, name: str, real: Any) -> Any:
    """A value that was worked out when the class was made."""
    value = loaded.abstract(real, name)
    if isinstance(value, External):
        raise Failure(external_value(value))
    return value


def _as_inherited(loaded: LoadedClass, parent: RecordClass) -> list[Field]:
    """The fields of a parent as a class has them that derives from it."""
    given: tuple[Any, ...] = ()
    for base in vars(loaded.cls).get("__orig_bases__", loaded.cls.__bases__):
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
    fields -= {*_variables(cls)}
    for name, member in vars(cls).items():
        function = _function(member)
        if name in _MADE or name.startswith(("_precord_", "_pclass_")):
            continue
        if name in fields or (kind == "namedtuple" and name in _TUPLES):
            continue
        if kind == "precord" and (
            name in _pyrsistent(cls) or (function is None and "__" in name[:2])
        ):
            continue
        if name in REBUILDING:
            if function is None or _is_own(function):
                raise _at(loaded, function, f"`{name}` of a record", REBUILDING[name])
            continue
        if function is not None and _is_generated(function):
            continue
        yield name, _member(loaded, name, member)


def _variables(cls: type[Any]) -> set[str]:
    """The class variables that a dataclass keeps beside its fields."""
    if not dataclasses.is_dataclass(cls):
        return set()
    return {*cls.__dataclass_fields__} - {each.name for each in dataclasses.fields(cls)}


def _member(loaded: LoadedClass, name: str, member: Any) -> Member:
    function = _function(member)
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


def _function(member: Any) -> Any:
    """The function in a member of a class; None if there is none."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, functools.cached_property):
        return cast("Any", member).func
    if isinstance(member, staticmethod | classmethod):
        member = cast("Any", member).__func__
    return member if isinstance(member, types.FunctionType) else None


def _is_generated(function: types.FunctionType) -> bool:
    """Whether `dataclass` wrote a method."""
    function = unchecked(function)
    home = function.__globals__.get("__name__")
    made = function.__code__.co_qualname.startswith("__create_fn__.")
    return made or home in ("dataclasses", "reprlib", "collections")


def _is_own(function: Any) -> bool:
    """Whether whoever wrote a class wrote this method."""
    return isinstance(function, types.FunctionType) and not _is_generated(function)


def _at(loaded: LoadedClass, function: Any, what: str, rewrite: str) -> Failure:
    """A refusal at a method, as far as its place is known."""
    method = None if function is None else loaded.abstract(function, function.__name__)
    node, source = getattr(method, "node", None), getattr(method, "source", None)
    if node is None or source is None:
        return loaded.failure(what, rewrite)
    return Failure(Unsupported(what=what, rewrite=rewrite, span=source.span(node)))


def _namespace(loaded: LoadedClass) -> RecordClass:
    """A class that has no instances in kernels: its static methods and constants can be used."""
    cls = loaded.cls
    members: dict[str, Member] = {}
    names: Any = getattr(cls, "__members__", {}) if isinstance(cls, EnumType) else {}
    for name, member in vars(cls).items():
        function = _function(member)
        special = name.startswith("__") and name.endswith("__")
        if name in names or name in _MADE or (isinstance(cls, EnumType) and function is None):
            continue
        if function is not None and isinstance(member, staticmethod | classmethod):
            members[name] = _member(loaded, name, member)
        elif function is None and not special and not isinstance(member, _DESCRIPTORS):
            members[name] = _member(loaded, name, member)
    for name, each in names.items():
        members[name] = Member("value", _member_value(loaded, name, each))
    return RecordClass(cls.__name__, cls.__module__, "namespace", (), members, guard=_guard(loaded))


_DESCRIPTORS: Final = (types.GetSetDescriptorType, types.MemberDescriptorType, property)


def _member_value(loaded: LoadedClass, name: str, member: Any) -> Any:
    """What a member of an enumeration stands for; those that are numbers or text are these."""
    return loaded.abstract(
        member if loaded.cls.__bases__ in ((Enum,), (Flag,)) else member.value, name
    )
