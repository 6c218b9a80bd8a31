"""Classes of JAX programs as their methods see them, also where not all of a class is known.

A method is tried with an instance that has the attributes that its text names. What cannot be
followed, such as a base class of another library, is left out: a method that needs it has no
program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from pscdsl._src.dialects.jax.concrete import static_parameters
from pscdsl._src.dialects.jax.library import JITTED, OF_ARRAYS
from pscdsl._src.discover.usage import FunctionStatement
from pscdsl._src.frontend.classes import DESCRIPTORS, WITHOUT_MEANING
from pscdsl._src.frontend.interpreter.constructors import Construction
from pscdsl._src.frontend.interpreter.expressions import closure, evaluate, known_or_why
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.records import Field, Member, RecordClass
from pscdsl._src.frontend.jax_annotations import is_abstract as has_no_body
from pscdsl._src.frontend.modules.scope import (
    ModuleValue,
    StaticModule,
    decorated,
    imported_module,
)
from pscdsl._src.frontend.text.source import called, parameters, subscripted
from pscdsl._src.frontend.values import AnyValue, External
from pscdsl.typing.diagnostics import Failure

MAX_BASES = 16
"""How many classes a class may derive from, directly and indirectly."""


class Unfit(Exception):
    """The reason why a function is not tried."""


COMPUTED = ("__getattr__", "__getattribute__")
"""Methods of a class whose attributes its text does not name."""
_PLAIN = frozenset({"abc.abstractmethod", "typing.override", "typing.final"})


def class_of(module: StaticModule, node: ast.ClassDef) -> RecordClass:
    """Return a class of a module: as it is followed elsewhere, or its methods alone."""
    try:
        value = module.own(node.name)
    except Failure:
        value = None
    if isinstance(value, RecordClass) and value.kind != "namespace":
        return value
    return _described(module, node, MAX_BASES)


def _described(module: StaticModule, node: ast.ClassDef, depth: int) -> RecordClass:
    """Return the fields and methods of a class statement, and those of its bases."""
    fields: dict[str, Field] = {}
    members: dict[str, Member] = {}
    parents: list[RecordClass] = []
    has_unseen_bases = False
    for base in reversed(node.bases):
        found = None if depth == 0 else class_statement(module, subscripted(base))
        is_known = found is not None or _named(module.frame(), subscripted(base)) in WITHOUT_MEANING
        has_unseen_bases |= not is_known
        if found is not None and found[1] is not node:
            parent = _described(*found, depth - 1)
            parents.insert(0, parent)
            assert parent.construction is not None
            has_unseen_bases |= parent.construction.has_unseen_bases
            fields |= {each.name: each for each in parent.fields}
            members |= parent.members
    frame = module.frame()
    for statement in node.body:
        match statement:
            case ast.FunctionDef(name=name):
                members[name] = _method(frame, statement)
                fields.pop(name, None)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                fields[name] = Field(name, annotation, frame)
                members.pop(name, None)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                members[name] = Member("value", _value(frame, value, f"{node.name}.{name}"))
                fields.pop(name, None)
            case _:
                pass
    return RecordClass(
        *(node.name, module.module, "record", tuple(fields.values()), members),
        parents=(*parents,),
        construction=Construction(False, has_unseen_bases),
    )


def _method(frame: Frame, node: ast.FunctionDef) -> Member:
    """Return a method; unread if its decorators are not known."""
    kind = "method"
    for decorator in node.decorator_list:
        name = _named(frame, called(decorator))
        if name in DESCRIPTORS and kind == "method":
            kind = DESCRIPTORS[name]
        elif name not in _PLAIN:
            kind = "unread"
    try:
        return Member(kind, closure(frame, node, node.name))
    except Failure:
        return Member("unread", None)


def _named(frame: Frame, node: ast.expr) -> str:
    """Return the qualified name of an expression's value; empty if it has none."""
    return str(getattr(_evaluated(frame, node), "name", ""))


def _evaluated(frame: Frame, node: ast.expr) -> AnyValue:
    try:
        return evaluate(Frame(Session(None), frame.source, frame.scope), node)
    except Failure:
        return None


def _value(frame: Frame, node: ast.expr, name: str) -> AnyValue:
    quiet = Frame(Session(None), frame.source, frame.scope)
    try:
        return known_or_why(quiet, evaluate(quiet, node), name)
    except Failure:
        return None


def is_abstract(node: object) -> bool:
    """Return whether this is a method with nothing to run: it is abstract, or always raises."""
    if not isinstance(node, FunctionStatement):
        return False
    is_declared = any(ast.unparse(each).endswith("abstractmethod") for each in node.decorator_list)
    return is_declared or has_no_body(node)


def followed(cls: RecordClass) -> dict[str, Member]:
    """Return the members of a class but abstract methods and those with unknown decorators.

    An instance has functions of these names, of which nothing is known.
    """
    return {
        name: member
        for name, member in cls.members.items()
        if member.kind != "unread" and not is_abstract(getattr(member.value, "node", None))
    }


def method_of(
    module: StaticModule, node: ast.FunctionDef, owner: RecordClass | None
) -> tuple[str, Closure]:
    """Return the kind of a method, and the closure of a function without its decorators.

    Raise `Unfit` if a decorator is not known.
    """
    kind, frame = "" if owner is None else "method", module.frame()
    value: AnyValue = closure(frame, node, node.name)
    for decorator in reversed(node.decorator_list):
        name = _named(frame, called(decorator))
        if owner is not None and name in DESCRIPTORS:
            kind = DESCRIPTORS[name]
        elif name not in _PLAIN:
            value = decorated(frame, decorator, value)
            if isinstance(value, External):
                raise Unfit("its decorators are not known")
    return kind, closure(frame, node, node.name)


def traced_parameters(module: StaticModule, node: FunctionStatement) -> frozenset[str]:
    """Return the parameters that `jax.jit` traces, by the decorators of a function."""
    frame, traced = module.frame(), set[str]()
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        made = _evaluated(frame, called(decorator))
        if getattr(made, "name", "") == "functools.partial" and call is not None and call.args:
            made = _evaluated(frame, call.args[0])
        if isinstance(made, Closure) and f"{made.scope.module}.{made.name}" in JITTED - OF_ARRAYS:
            traced |= {*parameters(node)} - static_parameters(node, call)
    return frozenset(traced)


def is_leaf(module: StaticModule, node: ast.ClassDef) -> bool:
    """Return whether JAX refuses instances of a class as arguments: nothing says their parts."""
    frame = module.frame()
    names = {_named(frame, called(each)) for each in node.decorator_list}
    return (
        all(_named(frame, subscripted(each)) in WITHOUT_MEANING for each in node.bases)
        and names <= {"dataclasses.dataclass"}
        and "register" not in module.source.text
    )


def class_statement(
    module: StaticModule, node: ast.expr
) -> tuple[StaticModule, ast.ClassDef] | None:
    """Return the statement of the class that an expression names, and its module."""
    match node:
        case ast.Name(id=name):
            return _bound_class(module, name)
        case ast.Attribute(value=value, attr=name):
            owner = _evaluated(module.frame(), value)
            return _bound_class(owner.scope, name) if isinstance(owner, ModuleValue) else None
        case _:
            return None


def _bound_class(module: StaticModule, name: str) -> tuple[StaticModule, ast.ClassDef] | None:
    for _ in range(MAX_BASES):
        bindings = module.bindings().get(name, ())
        if len(bindings) != 1:
            return None
        binding, statement = bindings[0]
        if isinstance(statement, ast.ClassDef):
            return module, statement
        if not isinstance(statement, ast.ImportFrom) or not isinstance(binding, ast.alias):
            if isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Name):
                return class_statement(module, statement.value)
            return None
        try:
            other = imported_module(module, statement)
        except Failure:
            return None
        if other is None or other is module:
            return None
        module, name = other, binding.name
    return None


# The attributes of names in the text of functions.


Attributes: TypeAlias = "dict[str, Attributes]"
"""The attributes of a value, each with its own."""


def attributes(node: ast.AST) -> dict[str, Attributes]:
    """Return the attributes that an expression reads, below each name."""
    found: dict[str, Attributes] = {}
    for each in ast.walk(node):
        path: list[str] = []
        inner: ast.AST = each
        while isinstance(inner, ast.Attribute):
            path.append(inner.attr)
            inner = inner.value
        if path and isinstance(inner, ast.Name):
            below = found.setdefault(inner.id, {})
            for name in reversed(path):
                below = below.setdefault(name, {})
    return found


def attributes_of_instance(cls: RecordClass, node: ast.AST, own: str) -> Attributes:
    """Return the attributes of an instance that a method reads, and the methods that it calls."""
    found: Attributes = {}
    waiting, seen = [(node, own)], set[int]()
    while waiting:
        current, name = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        tree = attributes(current).get(name, {})
        _merge(found, tree)
        for each in methods_named(cls, tree):
            spec = each.args
            waiting.extend((each, first.arg) for first in [*spec.posonlyargs, *spec.args][:1])
    return found


def methods_named(cls: RecordClass, names: Iterable[str]) -> Iterator[ast.FunctionDef]:
    """Yield the methods and properties of a class with these names."""
    for name in names:
        member = cls.members.get(name)
        node = None if member is None else getattr(member.value, "node", None)
        if member is not None and member.kind in ("method", "property"):
            if isinstance(node, ast.FunctionDef):
                yield node


def _merge(into: Attributes, other: Attributes) -> None:
    for name, below in other.items():
        _merge(into.setdefault(name, {}), below)
