"""Class statements as record classes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pscdsl.builder import Builder
from pscdsl.frontend.expressions import closure, evaluate, known_or_why
from pscdsl.frontend.frames import Frame, Session
from pscdsl.frontend.purity import external_value
from pscdsl.frontend.records import Field, Member, RecordClass, base_kind
from pscdsl.frontend.type_variables import TypeVariable
from pscdsl.frontend.values import EnumMember, External, Poison, StaticFunction
from pscdsl.meanings import MEANINGS
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.diagnostics import Failure


def class_value(frame: Frame, node: ast.ClassDef, module: str, constructor: Any = None) -> Any:
    """A class statement: a record class if it is one, else something that is not known."""
    kind: str | None = None
    fields: list[Field] = []
    members: dict[str, Member] = {}
    dims: tuple[str, ...] = ()
    parents: list[RecordClass] = []
    for base in node.bases:
        value = evaluate(frame, base.value if isinstance(base, ast.Subscript) else base)
        if isinstance(value, RecordClass):
            parents.append(value)
            kind = value.kind
            fields.extend(_inherited(frame, value, base))
            members.update(
                (name, replace(member, admit=partial(admitted, value, name, member)))
                for name, member in value.members.items()
            )
            dims = value.dims
        else:
            kind = kind or base_kind(value)
    for keyword in node.keywords:
        if keyword.arg == "dims":
            text = evaluate(frame, keyword.value)
            dims = tuple(text.split()) if isinstance(text, str) else ()
    frozen = _dataclass(frame, node)

    def guard(name: str, value: Any) -> None:
        frame.scope.guard.of_class(frame.source, node, name, value)

    if kind is None and frozen is None:
        return _namespace(frame, node, module, guard, constructor)
    _refuse_rebuilt(frame, node)
    if kind is None:
        if not frozen:
            raise Failure(
                Unsupported(
                    what=f"the mutable dataclass `{node.name}`",
                    rewrite="@dataclass(frozen=True)",
                    span=frame.span(node),
                )
            )
        kind = "dataclass"
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            if _is_class_variable(statement.annotation):
                if statement.value is not None:
                    members[name] = Member("value", _constant(frame, statement.value, name))
                continue
            fields = [each for each in fields if each.name != name]
            fields.append(_field(frame, name, statement))
        elif isinstance(statement, ast.FunctionDef):
            if statement.name in REBUILDING:
                rewrite = REBUILDING[statement.name]
                what = f"`{statement.name}` of a record"
                span = frame.span(statement)
                raise Failure(Unsupported(what=what, rewrite=rewrite, span=span))
            members[statement.name] = _method(frame, statement)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if kind == "precord" and isinstance(statement.value, ast.Call):
                fields.append(_precord_field(frame, name, statement.value))
            else:
                members[name] = Member("value", _constant(frame, statement.value, name))
    return RecordClass(
        node.name,
        module,
        kind,
        tuple(fields),
        members,
        dims,
        constructor,
        guard,
        tuple(parents),
        _variables(frame, node),
    )


def _inherited(frame: Frame, cls: RecordClass, base: ast.expr) -> Sequence[Field]:
    """The fields of a class as those that derive from it have them."""
    if not cls.variables or not isinstance(base, ast.Subscript):
        return cls.fields
    given = (cls.variables, frame, base.slice)
    return [replace(each, applied=(*each.applied, given)) for each in cls.fields]


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


_MAKE = "declare fields; compute them in a function that makes the record"
REBUILDING = {
    "__init__": _MAKE,
    "__new__": _MAKE,
    "__getattribute__": "declare fields; properties compute what is not stored",
    "__setattr__": "records do not change; make a changed copy with `.replace`",
    "__init_subclass__": "a record that other records derive from has fields and methods only",
}
"""Methods that change what making or reading a record means."""
_REBUILDERS = frozenset("dataclasses.dataclass typing.final typing.dataclass_transform".split())


def _refuse_rebuilt(frame: Frame, node: ast.ClassDef) -> None:
    """Refuse metaclasses, and decorators of which is not known what they make of a record."""
    for keyword in node.keywords:
        if keyword.arg == "metaclass":
            what, rewrite = "a metaclass of a record", "derive from `psc.Record`"
            raise Failure(Unsupported(what=what, rewrite=rewrite, span=frame.span(keyword)))
    for decorator in node.decorator_list:
        head = decorator.func if isinstance(decorator, ast.Call) else decorator
        value = evaluate(frame, head)
        if getattr(value, "name", "") not in _REBUILDERS:
            what = f"the decorator `{frame.source.text_of(head)}` of a record"
            span = frame.span(decorator)
            raise Failure(Unsupported(what=what, rewrite="leave it out", span=span))


def _namespace(
    frame: Frame,
    node: ast.ClassDef,
    module: str,
    guard: Callable[[str, Any], None],
    loaded: Any,
) -> RecordClass:
    """A class that has no instances in kernels: its static methods and constants can be used."""
    members: dict[str, Member] = {}
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            member = _method(frame, statement)
            if member.kind in ("static", "class"):
                members[statement.name] = member
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = (
                [statement.target] if isinstance(statement, ast.AnnAssign) else statement.targets
            )
            value: Any = None
            for target in targets:
                if isinstance(target, ast.Name):
                    value = _constant(frame, statement.value, f"{module}.{node.name}.{target.id}")
                    members[target.id] = Member("value", value)
    if _is_enumeration(frame, node):
        _enumerate(node, module, members, getattr(loaded, "__members__", None))
    return RecordClass(node.name, module, "namespace", (), members, guard=guard)


def _is_enumeration(frame: Frame, node: ast.ClassDef) -> bool:
    """Whether members are objects of their own; those of `IntEnum` are numbers, and so on."""
    names = [getattr(evaluate(frame, base), "name", "") for base in node.bases]
    return names in (["enum.Enum"], ["enum.Flag"])


def _enumerate(
    node: ast.ClassDef, module: str, members: dict[str, Member], loaded: Mapping[str, Any] | None
) -> None:
    """Make values the members of an enumeration: names for one value are names of one member."""
    owner, found = f"{module}.{node.name}", list[EnumMember]()
    compared = any(isinstance(x, ast.FunctionDef) and x.name == "__eq__" for x in node.body)
    for name, each in members.items():
        if each.kind != "value" or name.startswith("_"):
            continue
        value = each.value
        member: Any = EnumMember(owner, name, value)
        if compared:
            member = External(f"{owner}.{name}")
        elif loaded is not None:
            member = loaded.get(name, member)
        elif not isinstance(value, External):
            member = next((m for m in found if m.value == value), member)
        found.append(member)
        members[name] = replace(each, value=member)


def admitted(cls: RecordClass, name: str, member: Member) -> None:
    """Refuse a member that is written in the class that it is inherited from."""
    member.admit()
    if cls.guard is not None:
        cls.guard(name, member.value)


def _constant(frame: Frame, node: ast.expr, name: str) -> Any:
    """A value in a class body; one that cannot be worked out is not known."""
    quiet = Frame(Session(None), frame.source, frame.scope, frame.outer)
    value = evaluate(quiet, node)
    return External(name) if isinstance(value, Poison) else value


def _dataclass(frame: Frame, node: ast.ClassDef) -> bool | None:
    """Whether a class is a dataclass, and frozen."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        value = evaluate(frame, call.func if call is not None else decorator)
        name = getattr(value, "name", "")
        if name == "dataclasses.dataclass":
            options = {} if call is None else {k.arg: k.value for k in call.keywords}
            frozen = options.get("frozen")
            return isinstance(frozen, ast.Constant) and frozen.value is True
    return None


def _field(frame: Frame, name: str, statement: ast.AnnAssign) -> Field:
    value = statement.value
    if value is None:
        return Field(name, statement.annotation, frame)
    if isinstance(value, ast.Call):
        function = evaluate(frame, value.func)
        if getattr(function, "name", "") == "dataclasses.field":
            options = {k.arg: k.value for k in value.keywords}
            default, factory = options.get("default"), options.get("default_factory")
            if default is not None:
                return Field(name, statement.annotation, frame, lambda: _outside(frame, default))
            if factory is not None:
                made = evaluate(frame, factory)
                if not isinstance(made, Poison):
                    return Field(
                        name,
                        statement.annotation,
                        frame,
                        lambda: made.apply(frame.here(factory), (), {}),
                    )
            return Field(name, statement.annotation, frame)
    return Field(name, statement.annotation, frame, lambda: _outside(frame, value))


def _outside(frame: Frame, node: ast.expr) -> Any:
    """A default, as it was worked out when the class was made."""
    quiet = Frame(Session(None), frame.source, frame.scope, frame.outer)
    value = known_or_why(quiet, evaluate(quiet, node), ast.unparse(node))
    if isinstance(value, External):
        raise Failure(external_value(value))
    return value


def _precord_field(frame: Frame, name: str, call: ast.Call) -> Field:
    """`x = field(type=f32["n"])` of a PRecord."""
    options = {k.arg: k.value for k in call.keywords}
    initial, factory = options.get("initial"), options.get("factory")
    annotation = options.get("type") or (call.args[0] if call.args else None)

    def default() -> Any:
        assert initial is not None
        value = _outside(frame, initial)
        return value.apply(frame.here(initial), (), {}) if hasattr(value, "apply") else value

    def convert(here: Builder, value: Any) -> Any:
        assert factory is not None
        return _outside(frame, factory).apply(here, (value,), {})

    return Field(
        name,
        annotation,
        frame,
        None if initial is None else default,
        convert=None if factory is None else convert,
    )


def _method(frame: Frame, node: ast.FunctionDef) -> Member:
    kind = "method"
    for decorator in node.decorator_list:
        value = evaluate(frame, decorator)
        name = getattr(value, "name", "")
        kind = {
            "builtins.property": "property",
            "builtins.staticmethod": "static",
            "builtins.classmethod": "class",
            "functools.cached_property": "property",
        }.get(name, kind)
    return Member(kind, closure(frame, node, node.name))


def _is_class_variable(annotation: ast.expr) -> bool:
    text = ast.unparse(annotation)
    return text.startswith(("ClassVar", "typing.ClassVar"))


def named_tuple(here: Any, name: Any, fields: Any = (), **rest: Any) -> Any:
    """`NamedTuple("P", [("x", …)])` and `collections.namedtuple("P", "x y")`."""
    items = fields.replace(",", " ").split() if isinstance(fields, str) else fields
    names = [item if isinstance(item, str) else item[0] for item in items]
    return RecordClass(
        str(name), "", "namedtuple", tuple(Field(each, None, None) for each in names), {}
    )


MEANINGS["collections.namedtuple"] = StaticFunction("collections.namedtuple", named_tuple)
