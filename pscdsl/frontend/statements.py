"""Statements: assignment, static control flow, preconditions; all else is refused."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pscdsl.frontend import operators, purity
from pscdsl.frontend.expressions import closure, evaluate
from pscdsl.frontend.frames import Frame
from pscdsl.frontend.iteration import elements
from pscdsl.frontend.source import FunctionNode, targets
from pscdsl.frontend.values import (
    POISON,
    External,
    Poison,
    Poisoned,
    Undecided,
    describe,
    is_poisoned,
    is_traced,
)
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import NotStatic, Unsupported
from pscdsl.typing.codes.language_arrays import BranchOnArray
from pscdsl.typing.codes.language_evaluation import RaiseReached, WrongUnpacking
from pscdsl.typing.codes.purity import Mutation, OuterWrite
from pscdsl.typing.codes.shapes import instance
from pscdsl.typing.codes.shapes_signatures import AssertionFails, PreconditionNotMet
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.dims import Dim, names
from pscdsl.typing.spans import Span


class Return:
    """A function has returned."""

    __slots__ = ("node", "value")

    def __init__(self, value: Any, node: ast.AST) -> None:
        self.value = value
        self.node = node


class Widened(Exception):
    """A size may be 0: elaborate again with that known from the start."""

    def __init__(self, fact: Fact) -> None:
        super().__init__(fact)
        self.fact = fact


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
        return replace(span, end_line=span.line, end_column=span.column + len(keyword))
    if isinstance(statement, ast.With):
        return frame.span(statement.items[0].context_expr)
    if isinstance(statement, ast.For):
        return frame.span(statement.iter)
    if isinstance(statement, ast.While | ast.If):
        return frame.span(statement.test)
    return span


def assign(frame: Frame, target: ast.expr, value: Any) -> None:
    """Bind a pattern of names."""
    if isinstance(target, ast.Name):
        frame.names[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target, value)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, value)
    elif isinstance(target, ast.Subscript):
        raise _subscript_store(frame, target)
    elif isinstance(target, ast.Attribute):
        raise _attribute_store(frame, target)
    else:
        raise Failure(Unsupported(what="this assignment", rewrite=""))


def _subscript_store(frame: Frame, target: ast.Subscript) -> Failure:
    text = frame.source.text_of
    owner, index = text(target.value), purity.index_text(text(target.slice), target.slice)
    rewrite = f"{owner} = psc.update({owner}, {index}, …)"
    if not is_traced(evaluate(frame, target.value)):
        rewrite = "build a new tuple, or a PMap and its `.set`"
    return Failure(
        Mutation(what=f"a store into `{text(target)}`", rewrite=rewrite, span=frame.span(target))
    )


def _attribute_store(frame: Frame, target: ast.Attribute) -> Failure:
    text = frame.source.text_of
    rewrite = f"make a changed copy: `{text(target.value)}.replace({target.attr}=…)` of a record"
    what = f"a write to the attribute `{text(target)}`"
    return Failure(Mutation(what=what, rewrite=rewrite, span=frame.span(target)))


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Any) -> None:
    names = target.elts
    if isinstance(value, Poison):
        for each in names:
            assign(frame, each, POISON)
        return
    if is_traced(value) and value.ndim and isinstance(value.shape[0], int):
        from pscdsl.numpy import indexing

        frame.here(target)
        items: Sequence[Any] = [indexing.getitem(value, i) for i in range(value.shape[0])]
    elif is_traced(value):
        raise Failure(WrongUnpacking(expected=len(names), found=f"an array of type {value.type}"))
    else:
        items = list(elements(frame, value, target))
    stars = [i for i, each in enumerate(names) if isinstance(each, ast.Starred)]
    if not stars:
        if len(items) != len(names):
            raise Failure(WrongUnpacking(expected=len(names), found=f"{len(items)} items"))
        for each, item in zip(names, items, strict=True):
            assign(frame, each, item)
        return
    star = stars[0]
    after = len(names) - star - 1
    if len(items) < star + after:
        raise Failure(WrongUnpacking(expected=star + after, found=f"{len(items)} items"))
    for each, item in zip(names[:star], items[:star], strict=True):
        assign(frame, each, item)
    assign(frame, names[star], list(items[star : len(items) - after]))
    for each, item in zip(names[star + 1 :], items[len(items) - after :], strict=True):
        assign(frame, each, item)


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
    if not isinstance(node.target, ast.Name):
        text = frame.source.text_of
        owner = text(node.target.value)
        if isinstance(node.target, ast.Subscript):
            index = purity.index_text(text(node.target.slice), node.target.slice)
            combine = {"Add": "add", "Mult": "multiply"}.get(type(node.op).__name__)
            how = f', combine="{combine}"' if combine else ""
            rewrite = f"{owner} = psc.update({owner}, {index}, {text(node.value)}{how})"
        else:
            rewrite = f"make a changed copy: `{owner}.replace({node.target.attr}=…)` of a record"
        raise Failure(
            Mutation(
                what=f"an in-place update of `{text(node.target)}`",
                rewrite=rewrite,
                span=frame.span(node.target),
            )
        )
    name = node.target.id
    if name not in frame.assigned and name not in frame.names:
        raise Poisoned  # declared global or nonlocal, and reported there
    left = frame.lookup(name)
    right = evaluate(frame, node.value)
    if is_poisoned(left) or is_poisoned(right):
        frame.names[name] = POISON
        return None
    if isinstance(left, list | dict):
        sign = operators.SIGNS[type(node.op).__name__]
        kind = "list" if isinstance(left, list) else "dict"
        rewrite = f"{name} = {name} {sign} …"
        raise Failure(Mutation(what=f"`{sign}=` on the {kind} `{name}`", rewrite=rewrite))
    frame.names[name] = POISON
    frame.names[name] = operators.binary(frame, node, type(node.op).__name__, left, right)
    return None


def _return(frame: Frame, node: ast.Return) -> Outcome:
    value = None if node.value is None else evaluate(frame, node.value)
    return Return(value, node.value or node)


def _expression(frame: Frame, node: ast.Expr) -> Outcome:
    if not isinstance(node.value, ast.Constant):
        evaluate(frame, node.value)
    return None


def _if(frame: Frame, node: ast.If) -> Outcome:
    if _only_raises(node):
        return _guard(frame, node)
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


def _only_raises(node: ast.If) -> bool:
    return len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse


def _guard(frame: Frame, node: ast.If) -> Outcome:
    """`if fact: raise …` is a precondition."""
    value = evaluate(frame, node.test)
    if isinstance(value, Poison):
        return None
    if isinstance(value, Undecided):
        _require(frame, node, value.negated(), "")
        return None
    _static_only(frame, node.test, value, "`if … raise`")
    if value:
        return run(frame, node.body)
    return None


def _assert(frame: Frame, node: ast.Assert) -> Outcome:
    value = evaluate(frame, node.test)
    text = "" if node.msg is None else evaluate(frame, node.msg)
    if isinstance(value, Poison):
        return None
    _admit_empty(frame, node.test)
    _static_only(frame, node.test, value, "`assert`")
    if isinstance(value, Dim):
        value = True
    _require(frame, node, value, text if isinstance(text, str) else "")
    return None


def _admit_empty(frame: Frame, test: ast.expr) -> None:
    """`assert n >= 0` says that a size may be 0; sizes are at least 1 otherwise."""
    program = frame.program
    if program is None or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return
    left, right = evaluate(frame, test.left), evaluate(frame, test.comparators[0])
    sign = type(test.ops[0]).__name__
    if sign in ("GtE", "Gt"):
        left, right = right, left
    bound = {"LtE": 0, "GtE": 0, "Lt": -1, "Gt": -1}.get(sign)
    if left == bound and isinstance(right, Dim) and len(names(right)) == 1:
        fact = Fact("<=", 0, right)
        if frame.in_kernel and fact not in program.facts.facts:
            raise Widened(fact)


def _static_only(frame: Frame, test: ast.expr, value: Any, construct: str) -> None:
    if is_traced(value):
        raise Failure(
            BranchOnArray(
                construct=construct,
                found=describe(value),
                rewrite="check values outside, before the call",
                span=frame.span(test),
            )
        )


def _require(frame: Frame, node: ast.Assert | ast.If, value: Any, text: str) -> None:
    """A fact that holds from here on: assumed in the kernel itself, proven in a helper."""
    if isinstance(value, Undecided):
        program = frame.program
        assert program is not None
        if value.any_of:
            raise Failure(NotStatic(what="an `or` of facts about sizes"))
        if frame.in_kernel:
            assumed = program.facts.assume(*value.facts)
            if assumed.consistent().name == "NO":
                raise Failure(
                    AssertionFails(
                        condition=str(value), text="no sizes satisfy it", span=frame.span(node.test)
                    )
                )
            program.facts = assumed
            return
        name = frame.closure.name if frame.closure is not None else "helper"
        for fact in value.facts:
            found = PreconditionNotMet(
                function=name, fact=str(fact), instance=instance(program.facts, fact)
            )
            frame.report(node.test, found)
        program.facts = program.facts.assume(*value.facts)  # reported: what follows is not
        return
    if not value:
        from pscdsl.frontend.definitions import Excluded

        condition = frame.source.text_of(node.test)
        finding = AssertionFails(condition=condition, text=text, span=frame.span(node.test))
        if frame.in_kernel:
            raise Excluded(finding)
        raise Failure(finding)


def _raise(frame: Frame, node: ast.Raise) -> Outcome:
    text = "" if node.exc is None else frame.source.text_of(node.exc)
    finding: Diagnostic = RaiseReached(what=text, span=frame.span(node))
    if frame.in_kernel and frame.program is not None:
        from pscdsl.frontend.definitions import Excluded

        raise Excluded(finding)
    raise Failure(finding)


def _for(frame: Frame, node: ast.For) -> Outcome:
    source = evaluate(frame, node.iter)
    if isinstance(source, Poison):
        raise Poisoned
    broken = False
    for item in elements(frame, source, node.iter):
        frame.session.step()
        assign(frame, node.target, item)
        outcome = run(frame, node.body)
        if isinstance(outcome, Return):
            return outcome
        if isinstance(outcome, Jump) and outcome.kind == "break":
            broken = True
            break
    return None if broken else run(frame, node.orelse)


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
            known = purity.external_call(function.name)
            finding = known if known.code.startswith("PSC2") else finding
        frame.report(manager, finding)
    return run(frame, node.body)


def _function(frame: Frame, node: ast.FunctionDef) -> Outcome:
    value: Any = closure(frame, node, node.name)
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
