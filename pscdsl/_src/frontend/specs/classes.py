"""Class statements as record classes: what `class_rules` admits, made into values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pscdsl._src.frontend.class_rules import ClassText, class_text
from pscdsl._src.frontend.closed import hashable, is_closed
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.expressions import closure, evaluate, known_or_why
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.records import Field, Member, RecordClass
from pscdsl._src.frontend.specs.type_variables import TypeVariable
from pscdsl._src.frontend.values.purity import external_use, external_value
from pscdsl._src.frontend.values.values import EnumMember, External, StaticFunction
from pscdsl._src.ir.builder import Builder
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.typing.codes.language import BadArguments, Unsupported
from pscdsl.typing.diagnostics import Failure


def class_value(frame: Frame, node: ast.ClassDef, module: str) -> RecordClass:
    """What a class statement binds."""
    text = class_text(frame, node)
    own = {name: _method(frame, text, name) for name in text.methods}
    title = f"{module}.{node.name}"
    for name, each in text.values.items():
        own[name] = Member("value", _value(frame, each, f"{title}.{name}"))
    fields = [_field(frame, text, name, each) for name, each in text.fields.items()]
    if text.kind == "enumeration":
        own = _enumeration(frame, text, title, own)

    def guard(name: str, value: Any) -> None:
        frame.scope.guard.of_class(frame.source, node, name, value)

    if text.kind in ("namespace", "enumeration"):
        own = {name: each for name, each in own.items() if each.kind not in _OF_INSTANCES}
        made = RecordClass(node.name, module, "namespace", (), own, guard=guard)
        made.enumeration = text.kind == "enumeration"
        return made
    parent = text.parent
    members = {} if parent is None else _inherited_members(parent)
    inherited = () if parent is None else _inherited_fields(frame, parent, text.parent_node)
    return RecordClass(
        node.name,
        module,
        text.kind,
        (*inherited, *fields),
        {**members, **own},
        _dims(frame, text),
        None,
        guard,
        () if parent is None else (parent,),
        _variables(frame, node),
    )


_OF_INSTANCES = ("method", "property", "unread")
"""Members that a class without instances in kernels does not have."""


def _inherited_members(parent: RecordClass) -> dict[str, Member]:
    return {
        name: replace(member, admit=partial(admitted, parent, name, member))
        for name, member in parent.members.items()
    }


def admitted(cls: RecordClass, name: str, member: Member) -> None:
    """Refuse a member that is written in the class that it is inherited from."""
    member.admit()
    if cls.guard is not None:
        cls.guard(name, member.value)


def _inherited_fields(frame: Frame, cls: RecordClass, base: ast.expr | None) -> Sequence[Field]:
    """The fields of a class as those that derive from it have them."""
    if not cls.variables or not isinstance(base, ast.Subscript):
        return cls.fields
    given = (cls.variables, frame, base.slice)
    return [replace(each, applied=(*each.applied, given)) for each in cls.fields]


def _dims(frame: Frame, text: ClassText) -> tuple[str, ...]:
    if text.dims is None:
        return () if text.parent is None else text.parent.dims
    dims = evaluate(frame, text.dims)
    if not isinstance(dims, str):
        what, rewrite = "these `dims=` of a record", 'a string, `dims="n d"`'
        raise Failure(Unsupported(what=what, rewrite=rewrite, span=frame.span(text.dims)))
    return tuple(dims.split())


def _variables(frame: Frame, node: ast.ClassDef) -> tuple[str, ...]:
    """The type variables that a class is generic in: those of `Generic[…]`, or of all its bases."""
    found: dict[str, None] = {}
    for base in node.bases:
        if not isinstance(base, ast.Subscript):
            continue
        items = base.slice.elts if isinstance(base.slice, ast.Tuple) else [base.slice]
        own = [evaluate(frame, each) for each in items]
        names = dict.fromkeys(each.name for each in own if isinstance(each, TypeVariable))
        if getattr(evaluate(frame, base.value), "name", "") == "typing.Generic":
            return tuple(names)
        found.update(names)
    return tuple(found)


def _enumeration(
    frame: Frame, text: ClassText, owner: str, own: Mapping[str, Member]
) -> dict[str, Member]:
    """Members of an enumeration in place of their values: names for one value are one member."""
    found: list[EnumMember] = []
    alone = text.base in ("enum.Enum", "enum.Flag")
    automatic = [_is_automatic(frame, each) for each in text.values.values()]
    distinct = all(automatic) and text.base != "enum.StrEnum"
    known = distinct or all(_is_kept(text.base, own[name].value) for name in text.values)
    compared = any(name in text.methods for name in ("__eq__", "__ne__", "__hash__"))
    made = dict(own)
    all_hashable = all(hashable(own[name].value) for name in text.values)
    by_value: dict[Any, EnumMember] = {}
    for name in text.values:
        value = own[name].value
        if compared or not known:
            why = value.why if isinstance(value, External) else ()
            made[name] = Member("value", External(f"{owner}.{name}", why))
            continue
        member = EnumMember(owner, name, value, alone)
        if not distinct and all_hashable:
            member = by_value.setdefault(value, member)
        elif not distinct:
            member = next((each for each in found if bool(each.value == value)), member)
            found.append(member)
        made[name] = Member("value", member)
    return made


def _is_kept(base: str, value: Any) -> bool:
    """Whether a member has the very value that its statement says."""
    if base == "enum.IntEnum":
        return value.__class__ is int
    if base == "enum.StrEnum":
        return value.__class__ is str
    if base == "enum.Flag":
        return value.__class__ is int and value > 0 and value & (value - 1) == 0
    return is_closed(value)


def _is_automatic(frame: Frame, node: ast.expr) -> bool:
    """Whether this is `auto()`, which gives each member a value of its own."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    return getattr(evaluate(_quiet(frame), node.func), "name", "") == "enum.auto"


def _quiet(frame: Frame) -> Frame:
    """A frame outside of the kernel, whose findings are for whoever uses what it gives."""
    return Frame(Session(None), frame.source, frame.scope, frame.outer)


def _value(frame: Frame, node: ast.expr, name: str) -> Any:
    """A value in a class body; one that cannot be worked out is not known."""
    quiet = _quiet(frame)
    return known_or_why(quiet, evaluate(quiet, node), name)


def _default(frame: Frame, node: ast.expr) -> Callable[[], Any]:
    """A default, as it was worked out when the class was made."""

    def default() -> Any:
        value = _value(frame, node, ast.unparse(node))
        if isinstance(value, External):
            raise Failure(external_value(value))
        return value

    return default


FACTORIES = ("builtins.tuple", "builtins.frozenset")
"""What makes a default, for each instance anew, that nobody can change."""


def _field(
    frame: Frame, text: ClassText, name: str, statement: ast.AnnAssign | ast.Assign
) -> Field:
    value = statement.value
    if isinstance(statement, ast.Assign):
        assert isinstance(value, ast.Call)
        return _precord_field(frame, name, value)
    made = Field(name, statement.annotation, frame, keyword=text.keywords)
    if value is None:
        return made
    if isinstance(value, ast.Call):
        function = evaluate(frame, value.func)
        if text.kind != "namedtuple" and getattr(function, "name", "") == "dataclasses.field":
            options = {each.arg: each.value for each in value.keywords}
            if "kw_only" in options:
                made = replace(made, keyword=evaluate(frame, options["kw_only"]) is True)
            if "default" in options:
                return replace(made, default=_default(frame, options["default"]))
            factory = options.get("default_factory")
            if factory is None:
                return made
            return replace(made, default=_made_by(frame, factory), anew=True)
    return replace(made, default=_default(frame, value))


def _made_by(frame: Frame, factory: ast.expr) -> Callable[[], Any]:
    """A default that a function makes, for each instance anew."""

    def default() -> Any:
        function = evaluate(_quiet(frame), factory)
        if isinstance(function, External):
            raise Failure(external_use(function))
        if getattr(function, "name", "") not in FACTORIES:
            what, rewrite = (
                "this `default_factory`",
                "a default, or a function that makes the record",
            )
            raise Failure(Unsupported(what=what, rewrite=rewrite, span=frame.span(factory)))
        return function.apply(frame.here(factory), (), {})

    return default


def _precord_field(frame: Frame, name: str, call: ast.Call) -> Field:
    """`x = field(type=f32["n"])` of a PRecord."""
    options = {each.arg: each.value for each in call.keywords}
    initial, factory = options.get("initial"), options.get("factory")
    annotation = options.get("type") or (call.args[0] if call.args else None)
    default = None
    if initial is not None:
        value = _default(frame, initial)

        def plain() -> Any:
            found = value()
            if not hasattr(found, "apply"):
                return found
            quiet = _quiet(frame)  # a function is called for each instance anew
            made = found.apply(quiet.here(initial), (), {})
            if quiet.session.findings:
                raise Failure(*quiet.session.findings)
            return made

        default = plain

    def convert(here: Builder, value: Any) -> Any:
        assert factory is not None
        return _default(frame, factory)().apply(here, (value,), {})

    return Field(
        name,
        annotation,
        frame,
        default,
        convert=None if factory is None else convert,
        checked="invariant" in options,
    )


def _method(frame: Frame, text: ClassText, name: str) -> Member:
    kind, node = text.methods[name]
    made: Any = closure(frame, node, name)
    if name not in text.kernels:
        return Member(kind, made)
    from pscdsl._src.frontend.modules.scope import decorated

    made = decorated(frame, node.decorator_list[-1], made)
    if isinstance(made, Definition) and kind == "method":
        made.method_of = text.node.name
    return Member(kind, made)


def named_tuple(here: Any, typename: Any, fields: Any = (), /) -> Any:
    """`NamedTuple("P", [("x", …)])` and `collections.namedtuple("P", "x y")`."""
    del here
    items = fields.replace(",", " ").split() if isinstance(fields, str) else fields
    names = [item if isinstance(item, str) else item[0] for item in items]
    plain = all(isinstance(each, str) and each.isidentifier() for each in names)
    if not isinstance(typename, str) or not plain or len({*names}) < len(names):
        problem = "takes a name, and names of fields"
        raise Failure(BadArguments(function="collections.namedtuple", problem=problem))
    if any(each.startswith("_") for each in names):
        problem = "takes names of fields that do not start with an underscore"
        raise Failure(BadArguments(function="collections.namedtuple", problem=problem))
    return RecordClass(
        typename, "", "namedtuple", tuple(Field(each, None, None) for each in names), {}
    )


MEANINGS["collections.namedtuple"] = StaticFunction("collections.namedtuple", named_tuple)
