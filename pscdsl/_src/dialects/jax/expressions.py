"""Expressions as values: operators, comparisons, comprehensions, and the arguments of calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pscdsl._src.dialects.jax.assignments import assign
from pscdsl._src.dialects.jax.calls import call
from pscdsl._src.dialects.jax.lookup import attribute, name_value
from pscdsl._src.dialects.jax.run import Run, TooMuch
from pscdsl._src.dialects.jax.values import Value
from pscdsl._src.frontend.text.source import targets

_MOST_NODES = 4_000
"""The most expressions of a function that are evaluated, loops counted as often as they run."""
_MUTATORS = frozenset("append extend insert pop remove clear update add setdefault".split())


def evaluate(run: Run, node: ast.expr) -> Value:
    """Return the value of an expression."""
    run.nodes += 1
    if run.nodes > _MOST_NODES:
        raise TooMuch
    values = run.values
    match node:
        case ast.Constant(value=data):
            return values.constant(data)
        case ast.Name(id=name):
            return name_value(run, name)
        case ast.Attribute(value=owner, attr=attr):
            return attribute(run, evaluate(run, owner), attr)
        case ast.Call():
            return _call(run, node)
        case ast.Subscript(value=owner, slice=index):
            return values.item(evaluate(run, owner), evaluate(run, index))
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            found = [evaluate(run, part) for part in parts]
            if any(isinstance(part, ast.Starred) for part in parts):
                return values.fresh(node)
            return values.make("tuple", None, *found)
        case ast.Starred(value=value):
            return evaluate(run, value)
        case ast.Dict(keys=keys, values=items):
            names = [None if key is None else evaluate(run, key) for key in keys]
            found = [evaluate(run, item) for item in items]
            if all(name is not None and name.kind == "const" for name in names):
                known = {
                    name.data: part
                    for name, part in zip(names, found, strict=True)
                    if name is not None
                }
                return values.make("dict", tuple(known), *known.values())
            return values.fresh(node)
        case ast.Lambda():
            return values.make("function", run.program.scopes[node])
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _either(run, evaluate(run, test), body, orelse)
        case ast.BoolOp(op=op, values=parts):
            return _logic(run, op, parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            truth = evaluate(run, operand)
            if truth.kind == "const":
                return values.constant(not truth.data)
            return values.make("not", None, truth)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return values.constant(-number)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compare(run, op, evaluate(run, left), evaluate(run, right))
        case ast.BinOp(left=left, op=op, right=right):
            pair = evaluate(run, left), evaluate(run, right)
            return values.make("op", type(op).__name__, *pair)
        case ast.NamedExpr(target=target, value=value):
            new = evaluate(run, value)
            run.state.names[target.id] = new
            return new
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return _comprehension(run, node)
        case ast.Slice():
            ends = [
                values.constant(None) if end is None else evaluate(run, end)
                for end in (node.lower, node.upper, node.step)
            ]
            return values.make("slice", None, *ends)
        case _:
            inner = [
                evaluate(run, child)
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.expr)
            ]
            kind = isinstance(node, ast.UnaryOp | ast.Compare)
            if kind and inner:
                return values.make("op", ast.dump(node)[:12] + _operators(node), *inner)
            return values.fresh(node)


def _either(run: Run, test: Value, body: ast.expr, orelse: ast.expr) -> Value:
    found: list[Value] = []
    run.branch(
        test,
        lambda: found.append(evaluate(run, body)),
        lambda: found.append(evaluate(run, orelse)),
    )
    return found[0] if len(found) == 1 else run.values.choice(test, *found)


def _logic(run: Run, op: ast.boolop, parts: Sequence[ast.expr]) -> Value:
    """Run the parts of `and` or `or`, each if those before it do not decide."""
    first = evaluate(run, parts[0])
    if len(parts) == 1:
        return first
    is_and = isinstance(op, ast.And)
    if first.kind == "const" and bool(first.data) != is_and:
        return first
    rest: list[Value] = []
    way = lambda: rest.append(_logic(run, op, parts[1:]))  # noqa: E731
    stay = lambda: None  # noqa: E731
    run.branch(first, *((way, stay) if is_and else (stay, way)))
    if first.kind == "const":
        return rest[0]
    return run.values.make("and" if is_and else "or", None, first, *rest)


def _compare(run: Run, op: ast.cmpop, left: Value, right: Value) -> Value:
    values = run.values
    match op:
        case ast.Eq() | ast.Is():
            return values.equal(left, right)
        case ast.NotEq() | ast.IsNot():
            same = values.equal(left, right)
            if same.kind == "const":
                return values.constant(not same.data)
            return values.make("not", None, same)
        case _:
            return values.make("op", type(op).__name__, left, right)


def _comprehension(
    run: Run, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
) -> Value:
    names = {name for each in node.generators for name in targets(each.target)}
    run.locals.append(dict.fromkeys(names, run.values.fresh(node)))
    made: list[Value] = []

    def generate(number: int) -> None:
        if number == len(node.generators):
            if isinstance(node, ast.DictComp):
                evaluate(run, node.key)
                made.append(evaluate(run, node.value))
            else:
                made.append(evaluate(run, node.elt))
            return
        each = node.generators[number]
        iterated = evaluate(run, each.iter)
        elements = iter(iterated.parts if iterated.kind == "tuple" else ())

        def step(loop: Value) -> None:
            element = next(elements, None) or run.element(iterated, loop, each.target)
            assign(run, each.target, element)
            for test in each.ifs:
                run.state.conditions |= run.known(evaluate(run, test), True)
            generate(number + 1)

        if iterated.kind == "tuple" and len(iterated.parts) <= 1:
            if iterated.parts:
                step(run.values.fresh(node))
        else:
            run.steps(each.target, step)

    before = run.state.conditions
    generate(0)
    run.locals.pop()
    run.state.conditions = before
    if len(made) == 2 and isinstance(node, ast.ListComp) and len(node.generators) == 1:
        iterated = node.generators[0].iter
        if isinstance(iterated, ast.Tuple | ast.List) and len(iterated.elts) == 2:
            return run.values.make("tuple", None, *made)
    return run.values.fresh(node)


def _call(run: Run, node: ast.Call) -> Value:
    if isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
        owner = node.func.value
        if isinstance(owner, ast.Name) and evaluate(run, owner).kind in ("tuple", "dict"):
            for each in (*node.args, *(word.value for word in node.keywords)):
                evaluate(run, each)
            assign(run, owner, run.values.fresh(node))
            return run.values.fresh(node)
    function = evaluate(run, node.func)
    spread = any(isinstance(each, ast.Starred) for each in node.args)
    args: list[Value] = []
    for each in node.args:
        value = evaluate(run, each)
        if isinstance(each, ast.Starred) and value.kind == "tuple":
            args += value.parts
            continue
        args.append(
            run.values.make("spread", None, value) if isinstance(each, ast.Starred) else value
        )
    words = {each.arg or "**": evaluate(run, each.value) for each in node.keywords}
    if spread and any(each.kind == "spread" for each in args):
        words.setdefault("**", run.values.fresh(node))
    return call(run, function, args, words, node)


def _operators(node: ast.AST) -> str:
    if isinstance(node, ast.Compare):
        return " ".join(type(op).__name__ for op in node.ops)
    return type(node.op).__name__ if isinstance(node, ast.UnaryOp) else ""
