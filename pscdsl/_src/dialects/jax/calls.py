"""Calls of functions of the project: what their summaries say of their arguments."""

from __future__ import annotations

import ast
from dataclasses import replace

from pscdsl._src.dialects.jax.consuming import consume
from pscdsl._src.dialects.jax.control import mapped
from pscdsl._src.dialects.jax.library_calls import library_call
from pscdsl._src.dialects.jax.lookup import attribute, name_value
from pscdsl._src.dialects.jax.names import Class, Scope
from pscdsl._src.dialects.jax.run import Run
from pscdsl._src.dialects.jax.summaries import roots, with_path
from pscdsl._src.dialects.jax.values import Condition, Value
from pscdsl._src.frontend.text.source import FunctionStatement, parameters, with_defaults

_ARRANGING = frozenset("reshape ravel flatten".split())
"""Methods whose result holds the same keys."""


def call(
    run: Run, function: Value, args: list[Value], words: dict[str, Value], node: ast.AST
) -> Value:
    """Return the result of a call, and do what it does to keys."""
    result = _result(run, function, args, words, node)
    for name in (*run.scope.outer, *run.scope.rebound) if function.kind != "library" else ():
        if name in run.state.names:  # what was called may have bound it
            run.state.names[name] = run.values.fresh(node)
    return result


def _result(
    run: Run, function: Value, args: list[Value], words: dict[str, Value], node: ast.AST
) -> Value:
    match function.kind:
        case "function":
            return _apply(run, function.data, args, words, {}, node)
        case "closure":
            scope, names = function.data
            given = {
                run.values.make("name", (scope.parent, name)): value
                for name, value in zip(names, function.parts, strict=True)
            }
            return _apply(run, scope, args, words, given, node)
        case "bound":
            return _apply(run, function.data, [*function.parts, *args], words, {}, node)
        case "partial":
            words_given: tuple[str, ...] = function.data
            first, *bound = function.parts
            place = len(bound) - len(words_given)
            own = bound[:place]
            fixed = dict(zip(words_given, bound[place:], strict=True))
            return call(run, first, [*own, *args], {**fixed, **words}, node)
        case "mapped":
            return mapped(run, function, args, words, node)
        case "derivative":
            call(run, function.parts[0], args, words, node)
            return run.values.fresh(node)
        case "initializer":
            if args:
                consume(run, args[0], node)
            return run.values.fresh(node)
        case "class":
            return _construct(run, function.data, args, words, node)
        case "library":
            run.bodies += 1
            result = library_call(run, function.data, args, words, node)
            run.bodies -= 1
            return result
        case "field" if function.data[0] == "squeeze":
            return function.parts[0]
        case "field" if function.data[0] in _ARRANGING:
            return run.values.item(function.parts[0], run.values.fresh(node))
        case "phi":
            found: list[Value] = []
            test, then, other = function.parts
            run.branch(
                test,
                lambda: found.append(call(run, then, args, words, node)),
                lambda: found.append(call(run, other, args, words, node)),
            )
            return found[0] if len(found) == 1 else run.values.choice(test, *found)
        case _:
            return run.unknown(function, args, words, node)


def _construct(
    run: Run, cls: Class, args: list[Value], words: dict[str, Value], node: ast.AST
) -> Value:
    start = cls.method("__init__")
    run.keys.calls += 1
    made = run.values.make("object", cls, run.values.fresh(node))
    if start is None:
        run.unknown(made, args, words, node, "class")
    else:
        _apply(run, start, [made, *args], words, {}, node)
    return made


def _apply(
    run: Run,
    scope: Scope,
    args: list[Value],
    words: dict[str, Value],
    given: dict[Value, Value],
    node: ast.AST,
) -> Value:
    """Return the result of a function of the project, and use the keys that it uses."""
    summary = run.keys.summary(scope)
    function = scope.node
    if not isinstance(summary, str) and _is_generator(scope):
        summary = "generator"
    if isinstance(summary, str) or isinstance(function, ast.Module):
        cause = summary if isinstance(summary, str) else "value"
        return run.unknown(run.values.fresh(node), args, words, node, cause)
    bound = _bound(run, scope, function, args, words, node)
    run.keys.calls += 1
    number = run.keys.calls

    def leaf(value: Value) -> Value | None:
        match value.kind:
            case "param" if value.data[0] is scope:
                return bound[value.data[1]]
            case "name" if value in given:
                return given[value]
            case "name" if value.data[0] is run.scope:
                return name_value(run, value.data[1])
            case "fresh":
                made = run.values.fresh(value.data[1])
                if value in run.keys.known_keys:
                    run.keys.known_keys.add(made)
                return made
            case "field":
                name, version = value.data
                if version > 0:  # something unknown changed it on the way
                    return run.values.fresh(node)
                owner = run.values.substituted(value.parts[0], leaf, known)
                return attribute(run, owner, name)
            case _:
                return None

    known: dict[Value, Value] = {}

    def new(value: Value) -> Value:
        return run.values.substituted(value, leaf, known)

    returned = {*roots(summary.result)}
    for use in summary.uses:
        conditions: set[Condition] = set()
        for test, holds in use.conditions:
            changed = new(test)
            if changed.kind == "const":
                if bool(changed.data) != holds:
                    break
            else:
                conditions |= run.known(changed, holds)
        else:
            value = new(with_path(run.values, use.key, use.path))
            place = use if use.place else replace(use, place=use.node, source=summary.source)
            hidden = use.key not in returned
            consume(run, value, node, frozenset(conditions), number, place, hidden=hidden)
    result = new(summary.result)
    changes = [(new(key[0]), key[1], new(value)) for key, value in summary.fields]
    for obj in summary.changed:
        run.change(new(obj))
    for owner, name, value in changes:
        run.state.fields[(owner, name)] = value
    return result


def _bound(
    run: Run,
    scope: Scope,
    function: FunctionStatement | ast.Lambda,
    args: list[Value],
    words: dict[str, Value],
    node: ast.AST,
) -> dict[str, Value]:
    """Return the values of parameters at a call."""
    spec = function.args
    static = isinstance(function, FunctionStatement) and any(
        isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list
    )
    if static and scope.owner is not None and args:
        args = args[1:]
    found: dict[str, Value] = {}
    positional = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    known = next((n for n, each in enumerate(args) if each.kind == "spread"), len(args))
    found.update(zip(positional, args[:known], strict=False))
    if spec.vararg is not None:
        more = args[len(positional) :]
        found[spec.vararg.arg] = run.values.make("tuple", None, *more)
        if known < len(args):
            found[spec.vararg.arg] = run.values.fresh(node)
    found.update({name: value for name, value in words.items() if name != "**"})
    defaults = {each.arg: default for each, default in with_defaults(spec)}
    for name in parameters(function):
        default = defaults.get(name)
        if name in found:
            continue
        if "**" not in words and isinstance(default, ast.Constant):
            found[name] = run.values.constant(default.value)
        else:
            found[name] = run.values.fresh(node)
    return found


def _is_generator(scope: Scope) -> bool:
    function = scope.node
    if not isinstance(function, FunctionStatement):
        return False
    is_async = isinstance(function, ast.AsyncFunctionDef)
    return is_async or scope.program.source.yields(function) is not None
