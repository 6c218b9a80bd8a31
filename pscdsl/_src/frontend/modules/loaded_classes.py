"""The texts of loaded classes: the place of a real class's statement, if it is known."""

from __future__ import annotations

import ast
import dataclasses
import functools
import types
import weakref
from abc import ABC, ABCMeta
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, EnumType, Flag, IntEnum, StrEnum
from types import FunctionType
from typing import Any, Final, Generic, Protocol, TypeGuard, get_args, get_origin

import pyrsistent
from pyrsistent import _field_common

from pscdsl._src.frontend.classes import (
    FACTORIES,
    NO_KEY_MISSING,
    OF_CLASSES,
    OF_RECORDS,
    REBUILDING,
    class_text,
)
from pscdsl._src.frontend.interpreter.frames import Frame, Scope, Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.records import Field, Member, RecordClass
from pscdsl._src.frontend.modules.class_snapshots import is_generated
from pscdsl._src.frontend.modules.loaded_code import Abstract, type_node, unchecked
from pscdsl._src.frontend.modules.snapshots import class_of
from pscdsl._src.frontend.modules.traces import annotations_of
from pscdsl._src.frontend.purity import external_value
from pscdsl._src.frontend.text import code_texts
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.values import AnyValue, Applicable, External, describe
from pscdsl._src.ir.builder import Builder
from pscdsl._src.language.records import Record
from pscdsl.typing.codes.language import BadAnnotation, NotCallable, Unsupported
from pscdsl.typing.diagnostics import Failure


class LoadedClass:
    """A real class that is to be read, and the class statement that it may be from."""

    def __init__(
        self, cls: type, scope: Scope, abstract: Abstract, source: Source | None = None
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
        """Return the frame in which annotations and values of the class are evaluated."""
        source = Source("<a class>", "") if self.statement is None else self.statement[0]
        return Frame(Session(None), source, self.scope)

    def failure(self, what: str, rewrite: str) -> Failure:
        """Return the failure for a class that cannot be a record."""
        found = Unsupported(what=what, rewrite=rewrite)
        if self.statement is None:
            return Failure(found)
        source, node = self.statement
        return Failure(found.at(source.span(node)))

    def at(self, function: FunctionType | None, what: str, rewrite: str) -> Failure:
        """Return a refusal at a method, as far as its place is known."""
        match None if function is None else self.abstract(function, function.__name__):
            case Closure(node=node, source=source):
                return Failure(Unsupported(what=what, rewrite=rewrite, span=source.span(node)))
            case _:
                return self.failure(what, rewrite)

    def annotation(self, name: str, value: object) -> tuple[ast.expr, Frame]:
        """Return the type of a field as an annotation, at its place if known."""
        try:
            node, frame = type_node(value, self.scope, self.abstract)
        except SyntaxError:
            reason = f"`{name}: {value}` is no type"
            raise Failure(
                BadAnnotation(text=str(value), reason=reason, rewrite='write `f32["n d"]`')
            ) from None
        if self.statement is None or name not in (written := annotated_names(self.statement[1])):
            return node, frame
        frame.source, place = self.statement[0], written[name]
        if ast.dump(node) == ast.dump(place):
            return place, frame
        for inner in ast.walk(node):
            ast.copy_location(inner, place)
        return node, frame


def _texts(cls: type) -> Iterator[Source]:
    """Yield the texts that may have the statement, those of its methods first."""
    names = dict.fromkeys(
        function.__code__.co_filename
        for member in vars(cls).values()
        if is_own(function := function_of(member))
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


def _agrees(node: ast.ClassDef, cls: type, first: object) -> bool:
    """Return whether a class statement has the class's annotations, in the same order."""
    line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    own = own_annotations(cls)
    return (
        first in (None, line)
        and [*own] == [*annotated_names(node)]
        and all(
            line <= code.co_firstlineno <= (node.end_lineno or line)
            for name, member in vars(cls).items()
            if is_own(function := function_of(member))
            and (code := function.__code__).co_qualname == f"{cls.__qualname__}.{name}"
        )
    )


def annotated_names(node: ast.ClassDef) -> dict[str, ast.expr]:
    """Return the annotations of a class statement, by the names that have them."""
    return {
        statement.target.id: statement.annotation
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


_WRAPPERS: Final[Mapping[type, tuple[str, str]]] = {
    property: ("property", "fget"),
    functools.cached_property: ("property", "func"),
    staticmethod: ("static", "__func__"),
    classmethod: ("class", "__func__"),
}
"""The kinds of members that wrap a function, and their attribute that has it."""


def function_of(member: object) -> FunctionType | None:
    """Return the function in a member of a class; None if there is none."""
    for wrapper, (_, attribute) in _WRAPPERS.items():
        if isinstance(member, wrapper):
            member = getattr(member, attribute)
            break
    return unchecked(member) if isinstance(member, FunctionType) else None


def own_annotations(cls: type) -> Mapping[str, Any]:
    """Return the annotations of a class, without those that it inherits."""
    if "__annotate_func__" in vars(cls):  # from Python 3.14 on
        return annotations_of(cls)
    annotations: Mapping[str, Any] = vars(cls).get("__annotations__", {})
    return annotations


def is_own(function: object) -> TypeGuard[FunctionType]:
    """Return whether the author of a class wrote this method."""
    return isinstance(function, FunctionType) and not is_generated(function)


# The loaded classes that have a meaning: they meet the conditions that `classes.class_text` has for
# class statements.
#
# Whatever made a class (decorators, a metaclass, writes to its attributes), its members can be
# inspected. So a class is read only if all of them are modelled exactly; and if its statement is
# known, that has to be one of the short list, and to determine the class completely.


MADE: Final = frozenset(
    "__annotate__ __annotate_func__ __annotations__ __annotations_cache__ __classdictcell__ "
    "__conditional_annotations__ __dataclass_fields__ __dataclass_params__ __dict__ __dims__ "
    "__doc__ __firstlineno__ __hash__ __match_args__ __module__ __orig_bases__ __parameters__ "
    "__qualname__ __slots__ __static_attributes__ __type_params__ __weakref__ _abc_impl "
    "__abstractmethods__ __non_callable_proto_members__ __protocol_attrs__ _is_protocol "
    "_is_runtime_protocol __final__ __callable_proto_members_only__ __slotnames__".split()
)
"""Members that Python and record makers add to a class."""
TUPLES: Final = frozenset(
    "__getnewargs__ __new__ __replace__ __repr__ _asdict _field_defaults _fields _make "
    "_replace".split()
)
"""Names that `NamedTuple` defines, and does not allow others to define."""
KEYS: Final = frozenset(
    "__optional_keys__ __required_keys__ __readonly_keys__ __mutable_keys__ __total__ "
    "__closed__ __extra_items__".split()
)
"""Names that `TypedDict` defines."""
ENUMERATIONS: Final = (Enum, Flag, IntEnum, StrEnum)
_WITHOUT_MEANING: Final[tuple[Any, ...]] = (object, tuple, Generic, Protocol, ABC)
_BASES: Final[tuple[Any, ...]] = (Record, pyrsistent.PRecord, pyrsistent.PClass)


def kind_of(cls: type[Any]) -> str | None:
    """Return the kind of record that a class is, or None if it is no record."""
    if issubclass(cls, Record):
        return "record"
    if tuple in cls.__mro__ and hasattr(cls, "_fields"):
        return "namedtuple"
    if issubclass(cls, pyrsistent.PRecord | pyrsistent.PClass):
        return "precord"
    meta = type(cls)
    if meta.__name__ == "_TypedDictMeta" and meta.__module__ in ("typing", "typing_extensions"):
        return "typeddict"
    return "dataclass" if hasattr(cls, "__dataclass_fields__") else None


def require_plain(loaded: LoadedClass, kind: str | None) -> None:
    """Raise a Failure unless all parts of the class have an exact meaning."""
    if loaded.statement is not None and "<locals>" not in loaded.cls.__qualname__:
        class_text(loaded.frame(), loaded.statement[1])
    if isinstance(loaded.cls, EnumType):
        _require_enumeration(loaded)
        return
    if kind == "typeddict":
        _require_all_keys(loaded)
        return
    _require_bases(loaded, kind)
    for name, member in vars(loaded.cls).items():
        _require_name(loaded, kind, name, member)
    if kind in ("dataclass", "record"):
        _require_dataclass(loaded, kind)
    if kind is not None:
        _require_new_names(loaded)


def _require_all_keys(loaded: LoadedClass) -> None:
    """Refuse a TypedDict some of whose keys may be missing, or with anything besides keys."""
    cls: Any = loaded.cls
    if cls.__optional_keys__:
        name = sorted(cls.__optional_keys__)[0]
        what = f"the key `{name}` of the TypedDict `{cls.__name__}`, which may be missing,"
        raise loaded.failure(what, NO_KEY_MISSING)
    held: Mapping[str, Any] = vars(loaded.cls)
    for name, member in held.items():
        if name not in MADE | KEYS and not name.startswith("__"):
            what = f"`{name}` of a TypedDict, which is no key,"
            raise loaded.at(function_of(member), what, "a function of the module")


def _require_new_names(loaded: LoadedClass) -> None:
    """Refuse a field, a method or a value by the name of a field that is inherited."""
    cls = loaded.cls
    inherited = {name for base in cls.__mro__[1:] for name in field_names(base)}
    for name in (*vars(cls), *own_annotations(cls)):
        if name in inherited:
            what = f"`{name}`, which is a field of the base class already,"
            raise loaded.failure(what, "give it another name")


def field_names(cls: type) -> Iterator[str]:
    """Yield the names of the fields that a class declares or inherits."""
    if kind_of(cls) == "precord":
        yield from getattr(cls, "_precord_fields", getattr(cls, "_pclass_fields", ()))
    elif kind_of(cls) == "namedtuple":
        yield from getattr(cls, "_fields", ())
    elif dataclasses.is_dataclass(cls):
        yield from (field.name for field in dataclasses.fields(cls))


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


def _require_name(loaded: LoadedClass, kind: str | None, name: str, member: object) -> None:
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
    elif name == "__call__" and function is None:
        known = hasattr(member, "__pscdsl_definition__")  # a kernel
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
        if own_annotations(cls):
            what = f"fields of `{cls.__name__}`, which is no dataclass itself,"
            raise loaded.failure(what, "decorate it with `@dataclass(frozen=True)`")
        return
    if not parameters.frozen:
        what = f"the mutable dataclass `{cls.__name__}`"
        raise loaded.failure(what, "@dataclass(frozen=True)")
    usual = {"init": True, "eq": kind == "dataclass", "unsafe_hash": False}
    for name, value in usual.items():
        if getattr(parameters, name) is not value:
            raise loaded.failure(f"`{name}=` of a dataclass", "leave it out")
    for each in vars(cls)["__dataclass_fields__"].values():
        own = each.name in own_annotations(cls)
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


# Classes as loaded: the contents of a real class, where no file has its text.
#
# A class statement in a cell, at a prompt or in `-c` leaves no trace of its place; and a name may
# be bound to several classes, one after the other. So the real class is read: its fields with their
# types as they were evaluated, its methods, each with the text of its code, its values. Members
# that are not modelled exactly are refused. If a text with such a statement is found, findings
# point into it, and it must determine the class completely.


def class_of_object(
    cls: type, scope: Scope, abstract: Abstract, source: Source | None = None
) -> RecordClass:
    """Return a class as a record class; of any other class its constants and static methods."""
    loaded = LoadedClass(cls, scope, abstract, source)
    kind = kind_of(cls)
    require_plain(loaded, kind)
    if kind is None:
        return _namespace(loaded)
    bases = () if kind == "typeddict" else cls.__bases__  # it has the keys of all
    parents = [each for base in bases if isinstance(each := abstract(base, ""), RecordClass)]
    records = [each for each in parents if each.kind != "namespace"]
    return RecordClass(
        cls.__name__,
        cls.__module__,
        kind,
        tuple(_fields(loaded, kind, records)),
        {} if kind == "typeddict" else _all_members(loaded, kind),
        tuple(getattr(cls, "__dims__", ())),
        cls,
        _guard(loaded),
        tuple(parents),
        tuple([each.__name__ for each in getattr(cls, "__parameters__", ())]),
        number=_number(cls),
    )


_NUMBERED: dict[tuple[str, str], list[weakref.ref[type]]] = {}


def _number(cls: type) -> int:
    """Return the number of a class among those of its name, in the order of first reading."""
    known = _NUMBERED.setdefault((cls.__module__, cls.__name__), [])
    for number, each in enumerate(known):
        if each() is cls:
            return number
    known.append(weakref.ref(cls))
    return len(known) - 1


def _guard(loaded: LoadedClass) -> Callable[[str, AnyValue], None]:
    """Return a function that refuses attributes of the class that its text writes."""
    trace: Any = getattr(loaded.scope, "trace", None)

    def guard(name: str, value: AnyValue) -> None:
        if trace is not None:
            trace.member(loaded.cls, name)
        if loaded.statement is not None:
            loaded.scope.guard.of_class(*loaded.statement, name, value)

    return guard


# The members of a class.


def _fields(loaded: LoadedClass, kind: str, parents: list[RecordClass]) -> Iterator[Field]:
    """Yield the fields in the order of the constructor's parameters."""
    inherited: dict[str, Field] = {}
    for parent in reversed(parents):
        inherited.update((each.name, each) for each in _as_inherited(loaded, parent))
    for name, found in _declared(loaded, kind):
        field = found() if _owns(loaded.cls, kind, name) else inherited.get(name)
        if field is None:
            field = found()
        yield field


def _owns(cls: type, kind: str, name: str) -> bool:
    """Return whether a class declares a field itself."""
    if kind == "precord":
        own = vars(cls)
        fields = own.get("_precord_fields", own.get("_pclass_fields", {}))
        return all(
            name not in _pyrsistent(base) or _pyrsistent(base)[name] is not fields.get(name)
            for base in cls.__bases__
        )
    return name in own_annotations(cls)


def _declared(loaded: LoadedClass, kind: str) -> Iterator[tuple[str, Callable[[], Field]]]:
    cls = loaded.cls
    if kind in ("namedtuple", "typeddict"):
        declaring = [each for each in cls.__mro__ if "_fields" in vars(each)]
        types_ = annotations_of(declaring[0] if declaring else cls)
        for name in types_ if kind == "typeddict" else field_names(cls):
            yield name, functools.partial(_tuple_field, loaded, name, types_)
    elif kind == "precord":
        for name, each in _pyrsistent(cls).items():
            yield name, functools.partial(_precord_field, loaded, name, each)
    else:
        named = {field.name for field in dataclasses.fields(cls)}
        fields: Mapping[str, dataclasses.Field[Any]] = getattr(cls, "__dataclass_fields__", {})
        for name, each in fields.items():
            if name in named:
                yield name, functools.partial(_dataclass_field, loaded, each)
            elif get_origin(each.type) is None and isinstance(each.type, dataclasses.InitVar):
                what = f"the variable `{name}` of `{cls.__name__}` that is only given"
                raise loaded.failure(what, "declare a field")


def _tuple_field(loaded: LoadedClass, name: str, hints: Mapping[str, object]) -> Field:
    defaults: Mapping[str, object] = getattr(loaded.cls, "_field_defaults", {})
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

    def made() -> AnyValue:
        function = _default(loaded, each.name, factory)
        known = getattr(function, "name", "") in FACTORIES
        if not known or not isinstance(function, Applicable):
            what = f"the `default_factory` of `{loaded.cls.__name__}.{each.name}`"
            raise loaded.failure(what, "a default, or a function that makes the record")
        value: AnyValue = function.apply(annotation[1].here(annotation[0]), (), {})
        return value

    return Field(each.name, *annotation, made, keyword=keyword, anew=True)


def _pyrsistent(cls: type) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(cls, "_precord_fields", getattr(cls, "_pclass_fields", {}))
    return found


def _precord_field(loaded: LoadedClass, name: str, each: Any) -> Field:
    """Return a pyrsistent field, which has special markers for missing options."""
    absent: Any = _field_common
    own = [own_annotations(base) for base in loaded.cls.__mro__]
    kinds = tuple(each.type) or tuple([found[name] for found in own if name in found][:1])
    node: ast.expr | None = None
    frame: Frame | None = None
    if len(kinds) == 1:
        node, frame = loaded.annotation(name, kinds[0])
    convert: Callable[[Builder, AnyValue], AnyValue] | None = None
    default: Callable[[], AnyValue] | None = None
    if each._factory is not absent.PFIELD_NO_FACTORY:

        def through(here: Builder, value: AnyValue) -> AnyValue:
            function = _default(loaded, name, each._factory)
            if not isinstance(function, Applicable):
                raise Failure(NotCallable(found=describe(function)))
            converted: AnyValue = function.apply(here, (value,), {})
            return converted

        convert = through
    if each.initial is not absent.PFIELD_NO_INITIAL:

        def initial() -> AnyValue:
            value = _default(loaded, name, each.initial)
            if not isinstance(value, Applicable):
                return value
            here = loaded.frame() if frame is None else frame
            made: AnyValue = value.apply(here.here(node or ast.Name(name)), (), {})
            return made

        default = initial
    checked = each.invariant is not absent.PFIELD_NO_INVARIANT
    return Field(name, node, frame, default, convert=convert, checked=checked)


def _default(loaded: LoadedClass, name: str, real: object) -> AnyValue:
    """Return a value that was evaluated when the class was made."""
    value = loaded.abstract(real, name)
    if isinstance(value, External):
        raise Failure(external_value(value))
    return value


def _as_inherited(loaded: LoadedClass, parent: RecordClass) -> list[Field]:
    """Return the fields of a parent for a class that derives from it."""
    given: tuple[Any, ...] = ()
    bases: tuple[Any, ...] = vars(loaded.cls).get("__orig_bases__", loaded.cls.__bases__)
    for base in bases:
        if get_origin(base) is parent.constructor and get_args(base):
            given = get_args(base)
    if not parent.variables or not given:
        return [*parent.fields]
    node, frame = type_node(given, loaded.scope, loaded.abstract)
    assert isinstance(node, ast.Tuple)
    applied = (parent.variables, frame, tuple(node.elts))
    return [
        dataclasses.replace(field, applied=(*field.applied, applied)) for field in parent.fields
    ]


def _all_members(loaded: LoadedClass, kind: str) -> dict[str, Member]:
    """Return the methods and values of a class, including those that it inherits."""
    members: dict[str, Member] = {}
    for base in reversed(loaded.cls.__mro__[1:]):
        if base in (object, tuple, Record) or base.__module__ in ("typing", "abc", "pyrsistent"):
            continue
        if base.__module__.startswith("pyrsistent."):
            continue
        parent = loaded.abstract(base, base.__name__)
        for name, member in _members(LoadedClass(base, loaded.scope, loaded.abstract), kind):
            if isinstance(parent, RecordClass):
                of_parent = functools.partial(parent.admit, name, member)
                member = dataclasses.replace(member, admit=of_parent)
            members[name] = member
    members.update(_members(loaded, kind))
    return members


def _members(loaded: LoadedClass, kind: str) -> Iterator[tuple[str, Member]]:
    """Yield the members in the body of a class, without its fields."""
    cls = loaded.cls
    fields = {*getattr(cls, "_fields", ())}
    if dataclasses.is_dataclass(loaded.cls):
        fields |= {field.name for field in dataclasses.fields(loaded.cls)}
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


def _member(loaded: LoadedClass, name: str, member: object) -> Member:
    function = function_of(member)
    is_static = issubclass(class_of(member), staticmethod)
    kernel = getattr(member, "__func__", None) if is_static else member
    if hasattr(kernel, "__pscdsl_definition__"):
        kind = "method" if kernel is member else "static"
        return Member(kind, loaded.abstract(kernel, name))
    if function is None:
        shown = f"{loaded.cls.__module__}.{loaded.cls.__qualname__}.{name}"
        return Member("value", loaded.abstract(member, shown))
    if isinstance(member, functools.cached_property) and not loaded.cls.__dictoffset__:
        what = f"`cached_property` `{name}` of a class whose instances have no `__dict__`"
        raise Failure(Unsupported(what=what, rewrite="use `@property`"))
    kinds = [kind for wrapper, (kind, _) in _WRAPPERS.items() if isinstance(member, wrapper)]
    return Member(kinds[0] if kinds else "method", loaded.abstract(function, name))


def _namespace(loaded: LoadedClass) -> RecordClass:
    """Return a class without instances in kernels: its static methods and constants can be used."""
    cls = loaded.cls
    members: dict[str, Member] = {}
    names: Any = getattr(cls, "__members__", {}) if isinstance(cls, EnumType) else {}
    for name, member in vars(cls).items():
        function = function_of(member)
        special = name.startswith("__") and name.endswith("__")
        if name in names or name in MADE or (isinstance(cls, EnumType) and function is None):
            continue
        of_class = issubclass(class_of(member), staticmethod | classmethod)
        is_value = not special and not isinstance(member, _DESCRIPTORS)
        if is_value if function is None else of_class:
            members[name] = _member(loaded, name, member)
    for name, each in names.items():
        members[name] = Member("value", loaded.abstract(each, f"{cls.__name__}.{name}"))
    made = RecordClass(cls.__name__, cls.__module__, "namespace", (), members, guard=_guard(loaded))
    made.enumeration = isinstance(cls, EnumType)
    return made


_DESCRIPTORS: Final = (types.GetSetDescriptorType, types.MemberDescriptorType, property)
