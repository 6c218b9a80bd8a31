"""Names and attributes as values."""

from __future__ import annotations

import ast

from pscdsl._src.dialects.jax.library import TRANSPARENT
from pscdsl._src.dialects.jax.names import Class, Meaning, Program, Scope, Variable, canonical
from pscdsl._src.dialects.jax.run import Run
from pscdsl._src.dialects.jax.values import Value
from pscdsl._src.frontend.text.source import FunctionStatement, parameters


def name_value(run: Run, name: str) -> Value:
    """Return the value of a name."""
    for names in reversed(run.locals):
        if name in names:
            return names[name]
    if name in run.state.names:
        return run.state.names[name]
    owner = run.scope.owner_of(name)
    if owner is not None and name in owner.rebound:
        return run.values.fresh(run.scope.node)
    if owner is None:
        return meant(run, run.program.builtin(name))
    if owner is run.scope:
        if (function := owner.functions.get(name)) is not None:
            return run.values.make("function", function)
        return run.values.fresh(run.scope.node)
    return meant(run, run.program.bound(owner, name) or Variable(owner, name))


def meant(run: Run, meaning: Meaning) -> Value:
    """Return the value of what a name of the project or of a library means."""
    values = run.values
    match meaning:
        case str():
            return values.make("library", meaning)
        case Scope():
            if _decorated(meaning):
                return values.make("name", (meaning.parent, meaning.title))
            return values.make("function", meaning)
        case Class():
            return values.make("class", meaning)
        case Program():
            return values.make("module", meaning)
        case Variable():
            return values.make("name", (meaning.scope, meaning.name))


def attribute(run: Run, owner: Value, attr: str) -> Value:
    """Return the value of an attribute."""
    if owner.kind == "module":
        found = owner.data.member(attr)
        return run.values.make("library", attr) if found is None else meant(run, found)
    if owner.kind == "library":
        return run.values.make("library", canonical(f"{owner.data}.{attr}"))
    if owner.kind == "phi":
        then, other = (attribute(run, each, attr) for each in owner.parts[1:])
        return run.values.choice(owner.parts[0], then, other)
    if (found := run.state.fields.get((owner, attr))) is not None:
        return found
    cls = _class_of(owner)
    method = None if cls is None else cls.method(attr)
    if cls is not None and method is not None:
        if not _decorated(method) and not _is_changed_by(cls, method):
            return run.values.make("bound", method, owner)
    if owner.kind == "tuple" or owner.kind == "dict":
        return run.values.make("method", attr, owner)
    return run.field(owner, attr, run.state)


def _class_of(value: Value) -> Class | None:
    """Return the class of an object, or one above it."""
    if value.kind == "object":
        found: Class = value.data
        return found
    if value.kind not in ("param", "name"):
        return None
    scope: Scope = value.data[0]
    name: str = value.data[1]
    if value.kind == "param":
        first = isinstance(scope.node, FunctionStatement) and parameters(scope.node)[:1] == [name]
        return scope.owner if first else None
    match scope.values.get(name):
        case ast.Call(func=func):
            called = scope.program.meaning(scope, func)
            return called if isinstance(called, Class) else None
        case _:
            return None


def _is_changed_by(cls: Class, method: Scope) -> bool:
    """Return whether an inherited method uses methods that a class replaces by its own."""
    pending, seen = [method], {method}
    while pending:
        each = pending.pop()
        if each.owner is None or each.owner is cls:
            continue
        for node in ast.walk(each.node):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = each.owner.method(node.attr)
                if each.program.method_scope(each, node.value.id) is None or used in seen:
                    continue
                if cls.method(node.attr) is not used:
                    return True
                if used is not None:
                    seen.add(used)
                    pending.append(used)
    return False


def _decorated(function: Scope) -> bool:
    """Return whether a function is something other than what its body says."""
    node, around = function.node, function.parent or function
    for each in node.decorator_list if isinstance(node, FunctionStatement) else ():
        called = each.func if isinstance(each, ast.Call) else each
        full = function.program.full_name(around, called)
        if full == "functools.partial" and isinstance(each, ast.Call) and each.args:
            full = function.program.full_name(around, each.args[0])
        if full not in TRANSPARENT:
            return True
    return False
