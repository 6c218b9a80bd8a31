"""Names and attributes as values."""

from __future__ import annotations

import ast

from pscdsl._src.dialects.jax.library import TRANSPARENT
from pscdsl._src.dialects.jax.names import Scope, canonical
from pscdsl._src.dialects.jax.run import Run
from pscdsl._src.dialects.jax.values import Value
from pscdsl._src.frontend.text.source import FunctionStatement, parameters


def name_value(run: Run, name: str) -> Value:
    for names in reversed(run.locals):
        if name in names:
            return names[name]
    if name in run.state.names:
        return run.state.names[name]
    owner = run.scope.owner_of(name)
    if owner is None:
        return run.values.make("library", f"builtins.{name}")
    if owner is run.scope:
        if (function := owner.functions.get(name)) is not None:
            return run.values.make("function", function)
        return run.values.fresh(run.scope.node)
    if name in owner.imports:
        return run.values.make("library", owner.imports[name])
    if (function := owner.functions.get(name)) is not None:
        if isinstance(function.node, FunctionStatement):
            return _around(run, function)
    if name in owner.classes:
        return run.values.make("class", owner.classes[name])
    return run.values.make("name", (owner, name))


def _around(run: Run, function: Scope) -> Value:
    """Return a function of a scope around this one, with its decorators."""
    value = run.values.make("function", function)
    node = function.node
    for decorator in reversed(
        node.decorator_list if not isinstance(node, ast.Lambda | ast.Module) else []
    ):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        full = run.program.full_name(function.parent or function, called)
        if full == "functools.partial" and isinstance(decorator, ast.Call) and decorator.args:
            full = run.program.full_name(function.parent or function, decorator.args[0])
        if full not in TRANSPARENT:
            return run.values.make("name", (function.parent, function.title))
    return value


def attribute(run: Run, owner: Value, attr: str) -> Value:
    if owner.kind == "library":
        return run.values.make("library", canonical(f"{owner.data}.{attr}"))
    if owner.kind == "phi":
        then, other = (attribute(run, each, attr) for each in owner.parts[1:])
        return run.values.choice(owner.parts[0], then, other)
    if (found := run.state.fields.get((owner, attr))) is not None:
        return found
    if owner.kind == "param" and owner.data[0].owner is not None:
        scope, name = owner.data
        given = parameters(scope.node)
        if given and given[0] == name:
            method = run.program.method(scope.owner, attr)
            if method is not None and not _decorated(run, method):
                return run.values.make("bound", method, owner)
    if owner.kind == "object":
        method = run.program.method(owner.data, attr)
        if method is not None and not _decorated(run, method):
            return run.values.make("bound", method, owner)
    if owner.kind == "tuple" or owner.kind == "dict":
        return run.values.make("method", attr, owner)
    return run.field(owner, attr, run.state)


def _decorated(run: Run, method: Scope) -> bool:
    """Return whether a method is something other than what its body says."""
    node = method.node
    if isinstance(node, ast.Module | ast.Lambda):
        return False
    for each in node.decorator_list:
        called = each.func if isinstance(each, ast.Call) else each
        full = run.program.full_name(run.program.module, called)
        if full == "functools.partial" and isinstance(each, ast.Call) and each.args:
            full = run.program.full_name(run.program.module, each.args[0])
        if full not in TRANSPARENT:
            return True
    return False
