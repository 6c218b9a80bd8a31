"""Statements of functions, and the summary of a function from its start to its ends."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from pscdsl._src.dialects.jax.assignments import assign
from pscdsl._src.dialects.jax.calls import call
from pscdsl._src.dialects.jax.expressions import evaluate
from pscdsl._src.dialects.jax.lookup import meant
from pscdsl._src.dialects.jax.names import canonical
from pscdsl._src.dialects.jax.run import Run
from pscdsl._src.dialects.jax.summaries import Summary, leaves, roots
from pscdsl._src.dialects.jax.values import Value, path_of
from pscdsl._src.frontend.modules.jax_programs import imports_of
from pscdsl._src.frontend.text.source import FunctionStatement, parameters, targets

_MOST_USES = 60


def summarize(run: Run) -> Summary:
    """Run the function from its start to its ends."""
    node = run.scope.node
    if not isinstance(node, ast.Module):
        for name in parameters(node):
            run.state.names[name] = run.values.make("param", (run.scope, name))
    if isinstance(node, ast.Lambda):
        run.returned.append((evaluate(run, node.body), run.state))
    else:
        block(run, node.body)
        if run.state.alive:
            run.returned.append((run.values.constant(None), run.state))
    if not run.returned:
        return Summary(run.program.source, (), run.values.fresh(node), (), ())
    value, state = run.returned[0]
    for other, after in run.returned[1:]:
        test = run.telling(state.conditions, after.conditions)
        value = run.values.choice(test, value, other)
        state = run.merged(test, state, after)
    outer = {root for root in roots(value)}
    fields = tuple(
        (key, new) for key, new in state.fields.items() if path_of(key[0])[0].kind != "fresh"
    )
    uses = [
        use
        for use in run.recorded
        if use.value.kind != "fresh" or use.value in outer or use.value.atoms == frozenset()
    ]
    changed = tuple(obj for obj in state.versions if obj.kind != "fresh")
    return Summary(run.program.source, tuple(uses[:_MOST_USES]), value, fields, changed)


def block(run: Run, body: Sequence[ast.stmt]) -> None:
    """Run statements in order."""
    for node in body:
        if not run.state.alive:
            return
        statement(run, node)


def statement(run: Run, node: ast.stmt) -> None:
    """Run one statement."""
    match node:
        case ast.Expr(value=value):
            evaluate(run, value)
        case ast.Assign(targets=bound, value=value):
            new = evaluate(run, value)
            for each in bound:
                assign(run, each, new)
        case ast.AnnAssign(target=target, value=value):
            if value is not None:
                assign(run, target, evaluate(run, value))
        case ast.AugAssign(target=target, value=value):
            evaluate(run, value)
            assign(run, target, run.values.fresh(node))
        case ast.Return(value=value):
            result = run.values.constant(None) if value is None else evaluate(run, value)
            run.returned.append((_leaving(run, result), run.state))
            run.state = replace(run.state, alive=False)
        case ast.If(test=test, body=body, orelse=orelse):
            run.branch(evaluate(run, test), lambda: block(run, body), lambda: block(run, orelse))
        case ast.For(target=target, iter=iterated, body=body, orelse=orelse):
            _for(run, node, target, evaluate(run, iterated), body)
            block(run, orelse)
        case ast.While(test=test, body=body, orelse=orelse):
            _while(run, node, test, body)
            block(run, orelse)
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            for item in items:
                evaluate(run, item.context_expr)
                if item.optional_vars is not None:
                    assign(run, item.optional_vars, run.values.fresh(item.context_expr))
            block(run, body)
        case ast.Try() | ast.TryStar():
            _try(run, node)
        case ast.Match(subject=subject, cases=cases):
            evaluate(run, subject)
            _match(run, cases)
        case ast.Break() | ast.Continue():
            waiting = run.breaks if isinstance(node, ast.Break) else run.continues
            if waiting:
                waiting[-1].append(run.state)
            run.state = replace(run.state, alive=False)
        case ast.Raise():
            run.state = replace(run.state, alive=False)
        case ast.Assert(test=test):
            evaluate(run, test)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            run.state.names[node.name] = _defined(run, node)
        case ast.Import() | ast.ImportFrom():
            for name, full in imports_of(node):
                once = name in run.scope.once
                meaning = run.program.imported(canonical(full)) if once else canonical(full)
                run.state.names[name] = meant(run, meaning)
        case ast.ClassDef():
            run.state.names[node.name] = run.values.make("class", run.program.classes[node])
        case ast.Delete(targets=gone):
            for each in gone:
                assign(run, each, run.values.fresh(node))
        case _:
            pass


def _defined(run: Run, node: FunctionStatement) -> Value:
    value = run.values.make("function", run.program.scopes[node])
    for decorator in reversed(node.decorator_list):
        made = evaluate(run, decorator)
        value = call(run, made, [value], {}, decorator)
    return value


def _for(
    run: Run, node: ast.AST, target: ast.expr, iterated: Value, body: Sequence[ast.stmt]
) -> None:
    if iterated.kind == "tuple" and len(iterated.parts) <= 1:
        for part in iterated.parts:
            assign(run, target, part)
            run.breaks.append([])
            run.continues.append([])
            block(run, body)
            run.state = run.joined([run.state, *run.continues.pop(), *run.breaks.pop()])
        return
    parts = iter(iterated.parts if iterated.kind == "tuple" else ())

    def step(loop: Value) -> None:
        assign(run, target, next(parts, None) or run.element(iterated, loop, node))
        block(run, body)

    run.steps(node, step, surely=iterated.kind == "tuple")


def _while(run: Run, node: ast.AST, test: ast.expr, body: Sequence[ast.stmt]) -> None:
    forever = isinstance(test, ast.Constant) and bool(test.value)

    def step(loop: Value) -> None:
        evaluate(run, test)
        block(run, body)

    run.steps(node, step, surely=forever, forever=forever)


def _try(run: Run, node: ast.Try | ast.TryStar) -> None:
    before = run.state.copy()
    block(run, node.body)
    block(run, node.orelse)
    ends = [run.state]
    for handler in node.handlers:
        run.state = before.copy()
        run.state.conditions |= {(run.values.fresh(handler), True)}
        for name in (each for statement in node.body for each in targets(statement)):
            run.state.names[name] = run.values.fresh(handler)
        if handler.name:
            run.state.names[handler.name] = run.values.fresh(handler)
        block(run, handler.body)
        ends.append(run.state)
    run.state = run.joined(ends)
    if run.state.alive:
        block(run, node.finalbody)


def _match(run: Run, cases: Sequence[ast.match_case]) -> None:
    if not cases:
        return
    first, *others = cases

    def way() -> None:
        for name in targets(first.pattern):
            run.state.names[name] = run.values.fresh(first.pattern)
        block(run, first.body)

    wild = isinstance(first.pattern, ast.MatchAs) and first.pattern.pattern is None
    if wild and first.guard is None:
        way()
        return
    run.branch(run.values.fresh(first.pattern), way, lambda: _match(run, others))


def _leaving(run: Run, value: Value) -> Value:
    """Return a result in which functions keep the names that they use of this one."""
    if value.kind in ("tuple", "dict"):
        parts = (_leaving(run, part) for part in value.parts)
        return run.values.make(value.kind, value.data, *parts)
    if value.kind != "function" or value.data.parent is not run.scope:
        return value
    summary = run.keys.summary(value.data)
    if isinstance(summary, str):
        return run.values.fresh(value.data)
    names = {
        leaf.data[1]: run.state.names[leaf.data[1]]
        for use in summary.uses
        for leaf in leaves(use)
        if leaf.kind == "name" and leaf.data[0] is run.scope and leaf.data[1] in run.state.names
    }
    if not names:
        return value
    return run.values.make("closure", (value.data, tuple(names)), *names.values())
