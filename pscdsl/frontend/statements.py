"""Statements: static control flow and what leaves a block; all else is refused."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from pscdsl.frontend import operators, purity
from pscdsl.frontend.assignment import assign, augment
from pscdsl.frontend.expressions import closure, evaluate
from pscdsl.frontend.frames import Frame
from pscdsl.frontend.iteration import elements, unrolling
from pscdsl.frontend.preconditions import check_assert, check_guard, is_guard
from pscdsl.frontend.source import FunctionNode, targets
from pscdsl.frontend.values import (
    POISON,
    External,
    Poison,
    Poisoned,
)
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.codes.language_evaluation import RaiseReached
from pscdsl.typing.codes.purity import Mutation, OuterWrite
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.spans import Span


class Return:
    """A function has returned."""

    __slots__ = ("node", "value")

    def __init__(self, value: Any, node: ast.AST) -> None:
        self.value = value
        self.node = node


class Jump:
    """`break` or `continue`."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind


Outcome = Return | Jump | None
Handler = Callable[[Frame, Any], Outcome]


def run_body(frame: Frame, node: FunctionNode) -> Any:
    """Elaborate a function's body in a frame with its parameters bound."""
    if isinstance(node, ast.Lambda):
        frame.returned = frame.source.span(node.body)
        return evaluate(frame, node.body)
    frame.assigned = frame.source.scoping(node)
    generator = frame.source.yields(node)
    if generator is not None:
        evaluate(frame, generator)  # refused, and what it would return is not known
        return POISON
    outcome = run(frame, node.body)
    program = frame.session.program
    if isinstance(outcome, Return):
        frame.returned = frame.source.span(outcome.node)
        if program is not None and frame.closure is frame.session.root:
            program.return_span = frame.span(outcome.node)
        return outcome.value
    return None


def run(frame: Frame, body: Sequence[ast.stmt]) -> Outcome:
    """Elaborate statements in order until one leaves the block."""
    for statement in body:
        outcome = _run_one(frame, statement)
        if outcome is not None:
            return outcome
    return None


def _run_one(frame: Frame, statement: ast.stmt) -> Outcome:
    handler = STATEMENTS.get(type(statement))
    session = frame.session
    try:
        frame.session.step()
        if handler is None:
            what, rewrite = REFUSED.get(type(statement), (type(statement).__name__, ""))
            raise Failure(Unsupported(what=what, rewrite=rewrite))
        return handler(frame, statement)
    except Failure as failure:
        session.report(failure.at(_head(frame, statement)))
    except Poisoned:
        pass
    for name in targets(statement):
        frame.names[name] = POISON
    return None


_KEYWORDS: dict[type[ast.stmt], str] = {
    ast.Try: "try",
    ast.TryStar: "try",
    ast.Match: "match",
    ast.ClassDef: "class",
    ast.AsyncFunctionDef: "async def",
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
}


def _head(frame: Frame, statement: ast.stmt) -> Span:
    """The part of a statement that a finding points to: of a compound one, its head."""
    span = frame.span(statement)
    keyword = _KEYWORDS.get(type(statement))
    if keyword is not None:
        return span.head(len(keyword))
    if isinstance(statement, ast.With):
        return frame.span(statement.items[0].context_expr)
    if isinstance(statement, ast.For):
        return frame.span(statement.iter)
    if isinstance(statement, ast.While | ast.If):
        return frame.span(statement.test)
    return span


def _assign(frame: Frame, node: ast.Assign) -> Outcome:
    value = evaluate(frame, node.value)
    for target in node.targets:
        assign(frame, target, value)
    return None


def _annotated(frame: Frame, node: ast.AnnAssign) -> Outcome:
    if node.value is not None:
        assign(frame, node.target, evaluate(frame, node.value))
    return None


def _augmented(frame: Frame, node: ast.AugAssign) -> Outcome:
    augment(frame, node)
    return None


def _assert(frame: Frame, node: ast.Assert) -> Outcome:
    check_assert(frame, node)
    return None


def _return(frame: Frame, node: ast.Return) -> Outcome:
    value = None if node.value is None else evaluate(frame, node.value)
    return Return(value, node.value or node)


def _expression(frame: Frame, node: ast.Expr) -> Outcome:
    if not isinstance(node.value, ast.Constant):
        evaluate(frame, node.value)
    return None


def _if(frame: Frame, node: ast.If) -> Outcome:
    if is_guard(node):
        return run(frame, node.body) if check_guard(frame, node) else None
    chosen = operators.truth(frame, node.test, "`if`", "psc.cond(…), or np.where(…)")
    if chosen is not None:
        return run(frame, node.body if chosen else node.orelse)
    before = dict(frame.names)
    outcomes: list[Outcome] = []
    program = frame.program
    facts = None if program is None else program.facts
    for body, truth in ((node.body, True), (node.orelse, False)):  # look for findings in both
        frame.names = dict(before)
        if program is not None and facts is not None:
            program.facts = facts.assume(*operators.presumed(frame, node.test, truth))
        outcomes.append(run(frame, body))
    frame.names = before
    if program is not None and facts is not None:
        program.facts = facts
    for statement in (*node.body, *node.orelse):
        frame.names.update(dict.fromkeys(targets(statement), POISON))
    returned = next((o for o in outcomes if isinstance(o, Return)), None)
    return None if returned is None else Return(POISON, returned.node)


def _raise(frame: Frame, node: ast.Raise) -> Outcome:
    text = "" if node.exc is None else frame.source.text_of(node.exc)
    finding: Diagnostic = RaiseReached(what=text, span=frame.span(node))
    if frame.in_kernel and frame.program is not None:
        from pscdsl.frontend.definitions import Excluded

        raise Excluded(finding)
    raise Failure(finding)


def _for(frame: Frame, node: ast.For) -> Outcome:
    source = evaluate(frame, node.iter)
    broken = False
    if isinstance(source, Poison):
        return _unrolled_in_doubt(frame, node)
    try:
        items = elements(source)
    except Failure as failure:
        frame.session.report(failure.at(frame.span(node.iter)))
        return _unrolled_in_doubt(frame, node)
    with unrolling(frame, frame.span(node).head(len("for")), items):
        for item in items:
            frame.session.step()
            assign(frame, node.target, item)
            outcome = run(frame, node.body)
            if isinstance(outcome, Return):
                return outcome
            if isinstance(outcome, Jump) and outcome.kind == "break":
                broken = True
                break
    return None if broken else run(frame, node.orelse)


def _unrolled_in_doubt(frame: Frame, node: ast.For) -> Outcome:
    """What is wrong in the body of a loop whatever it runs over."""
    assign(frame, node.target, POISON)
    run(frame, node.body)
    for statement in node.body:
        frame.names.update(dict.fromkeys(targets(statement), POISON))
    return None


def _while(frame: Frame, node: ast.While) -> Outcome:
    while True:
        frame.session.step()
        chosen = operators.truth(frame, node.test, "`while`", "psc.while_loop(cond, body, init)")
        if chosen is None:
            run(frame, node.body)
            for statement in node.body:
                frame.names.update(dict.fromkeys(targets(statement), POISON))
            return None
        if not chosen:
            return run(frame, node.orelse)
        outcome = run(frame, node.body)
        if isinstance(outcome, Return):
            return outcome
        if isinstance(outcome, Jump) and outcome.kind == "break":
            return None


def _with(frame: Frame, node: ast.With) -> Outcome:
    for item in node.items:
        manager = item.context_expr
        function = evaluate(frame, manager.func if isinstance(manager, ast.Call) else manager)
        if isinstance(function, Poison) or getattr(function, "name", "") == "psc.scope":
            continue
        if item.optional_vars is not None:
            for name in targets(item.optional_vars):
                frame.names[name] = POISON
        finding: Diagnostic = Unsupported(
            what="`with`", rewrite="only `with psc.scope(name)` has a meaning"
        )
        if isinstance(function, External):
            known = purity.external_use(function)
            finding = known if known.code.startswith("PSC2") else finding
        frame.report(manager, finding)
    return run(frame, node.body)


def _function(frame: Frame, node: ast.FunctionDef) -> Outcome:
    value: Any = closure(frame, node, node.name)
    spec = node.args
    parameters = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg)
    for annotation in (node.returns, *(p.annotation for p in parameters if p is not None)):
        if annotation is not None and any(isinstance(n, ast.Call) for n in ast.walk(annotation)):
            evaluate(frame, annotation)  # what it calls is called where the function is defined
    for decorator in reversed(node.decorator_list):
        function = evaluate(frame, decorator)
        if isinstance(function, Poison):
            value = POISON
            break
        value = function.apply(frame.here(decorator), (value,), {})
    frame.names[node.name] = value
    return None


def _global(frame: Frame, node: ast.Global | ast.Nonlocal) -> Outcome:
    raise Failure(OuterWrite(name=", ".join(node.names)))


def _delete(frame: Frame, node: ast.Delete) -> Outcome:
    raise Failure(
        Mutation(what=f"`{frame.source.text_of(node)}`", rewrite="leave the name, or rebind it")
    )


def _import(frame: Frame, node: ast.Import | ast.ImportFrom) -> Outcome:
    from pscdsl.frontend.scope import imported

    frame.names.update(imported(frame.scope, node))
    return None


def _pass(frame: Frame, node: ast.Pass) -> Outcome:
    return None


def _break(frame: Frame, node: ast.Break) -> Outcome:
    return Jump("break")


def _continue(frame: Frame, node: ast.Continue) -> Outcome:
    return Jump("continue")


STATEMENTS: dict[type[ast.stmt], Handler] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: _return,
    ast.Expr: _expression,
    ast.If: _if,
    ast.For: _for,
    ast.While: _while,
    ast.With: _with,
    ast.FunctionDef: _function,
    ast.Assert: _assert,
    ast.Raise: _raise,
    ast.Global: _global,
    ast.Nonlocal: _global,
    ast.Delete: _delete,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Pass: _pass,
    ast.Break: _break,
    ast.Continue: _continue,
}

REFUSED: dict[type[ast.stmt], tuple[str, str]] = {
    ast.Try: ("`try`", "a kernel raises nothing; use `np.where` or `psc.cond` for special cases"),
    ast.TryStar: ("`try`", "use `np.where` or `psc.cond` for special cases"),
    ast.AsyncFor: ("`async for`", "use `psc.scan`"),
    ast.AsyncWith: ("`async with`", ""),
    ast.AsyncFunctionDef: ("an `async` function", "use a plain `def`"),
    ast.ClassDef: ("a class inside a kernel", "define it at module level"),
    ast.Match: ("`match`", "use `if` over static values, or `psc.switch`"),
}
