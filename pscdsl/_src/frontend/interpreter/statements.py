"""Statements: static control flow, and exits from blocks; everything else is refused."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from pscdsl._src.frontend import purity
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.frontend.interpreter import matching, operators, special_methods
from pscdsl._src.frontend.interpreter.assignments import assign, augment, delete_item_of
from pscdsl._src.frontend.interpreter.branches import (
    ON,
    Jump,
    Maybe,
    Outcome,
    Return,
    after_loop,
    after_step,
    fork,
    is_condition,
    predicate_of,
    resumed,
)
from pscdsl._src.frontend.interpreter.containers import walking
from pscdsl._src.frontend.interpreter.expressions import (
    closure,
    evaluate,
    forked_on_sizes,
    locate,
    read,
)
from pscdsl._src.frontend.interpreter.frames import (
    Frame,
    Session,
    due,
    evaluated_annotations,
    fields,
    without_meaning,
)
from pscdsl._src.frontend.interpreter.functions import MAX_UNROLL, elements, unrolling
from pscdsl._src.frontend.interpreter.iteration import (
    FEW_STEPS,
    Iterated,
    Position,
    counted_range,
    iterated,
)
from pscdsl._src.frontend.interpreter.loops import Rolled, TestChanges
from pscdsl._src.frontend.interpreter.places import Located
from pscdsl._src.frontend.interpreter.state import State, Trial
from pscdsl._src.frontend.interpreter.tries import run_try
from pscdsl._src.frontend.modules.jax_programs import is_package_of_ours
from pscdsl._src.frontend.modules.known import CONTEXTS
from pscdsl._src.frontend.modules.loaded_code import is_pythons
from pscdsl._src.frontend.modules.scope import imported
from pscdsl._src.frontend.purity import range_length
from pscdsl._src.frontend.text.source import FunctionNode, targets
from pscdsl._src.frontend.values import (
    POISON,
    AnyValue,
    Applicable,
    Array,
    External,
    Place,
    Poison,
    Poisoned,
    Undecided,
    describe,
    is_poisoned,
    is_traced,
    is_type,
)
from pscdsl._src.ir.builder import Value, Weak
from pscdsl._src.ir.program import acts
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.control import EndlessLoop, ReturnsOnSomePaths
from pscdsl.typing.codes.language import (
    BranchOnArray,
    NotCallable,
    NotStatic,
    RefusedByJax,
    UnknownName,
    Unsupported,
)
from pscdsl.typing.codes.language_evaluation import RaiseReached
from pscdsl.typing.codes.performance import ValueUnused
from pscdsl.typing.codes.purity import Mutation, OuterWrite
from pscdsl.typing.codes.shapes import IndexOutOfRange
from pscdsl.typing.codes.shapes_of_arguments import AssertionFails, PreconditionNotMet
from pscdsl.typing.diagnostics import Diagnostic, Failure, Span
from pscdsl.typing.dims import Dim, names

# Preconditions of a kernel: `assert` and `if …: raise` over sizes, ranks and dtypes.


class Widened(Exception):
    """A size may be 0: the kernel is elaborated again with this fact from the start."""

    def __init__(self, fact: Fact) -> None:
        super().__init__(fact)
        self.fact = fact


def raises(body: Sequence[ast.stmt]) -> ast.Raise | None:
    """Return the `raise` at the end of a block that otherwise only binds names; else None."""
    *before, last = body or [ast.Pass()]
    plain = all(isinstance(each, ast.Assign | ast.AnnAssign) for each in before)
    names = all(isinstance(each, ast.Name) for each in (x for y in before for x in _stored(y)))
    return last if isinstance(last, ast.Raise) and plain and names else None


def _stored(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assign():
            return statement.targets
        case ast.AnnAssign():
            return [statement.target]
        case _:
            return []


def is_guard(node: ast.If) -> bool:
    """Return whether an `if` only raises in one of its branches."""
    return raises(node.body) is not None or raises(node.orelse) is not None


def check_assert(frame: Frame, node: ast.Assert, test: ast.expr, msg: ast.expr | None) -> None:
    """Execute `assert fact`."""
    value = read(frame, test)
    text = "" if msg is None else _message(frame, msg)
    if isinstance(value, Poison):
        return
    _admit_empty(frame, test)
    if _is_checked_when_run(frame, value):
        return
    if is_traced(value):
        check = f"assert {_line(frame, test)}"
        raise _of_values(frame, test, value, "`assert`", check)
    value = operators.static_truth(value, operators.decider(frame))
    _require(frame, node, value, text)


def _message(frame: Frame, msg: ast.expr) -> str:
    """Return the message of an `assert`; it is evaluated only on failure, and changes nothing."""
    state = State(frame.session)
    text = read(frame, msg)
    state.restore()
    return text if isinstance(text, str) else ""


def check_guard(frame: Frame, node: ast.If) -> bool:
    """Assume the precondition `if fact: raise …`; return whether the body, not `else`, runs."""
    test, otherwise = node.test, raises(node.body) is None
    value = read(frame, test)
    if isinstance(value, Poison):
        return otherwise
    if _is_checked_when_run(frame, value):
        return otherwise
    if is_traced(value):
        end = raises(node.orelse if otherwise else node.body)
        assert end is not None
        condition = f"not ({_line(frame, test)})" if otherwise else _line(frame, test)
        check = f"if {condition}: {_line(frame, end)}"
        raise _of_values(frame, test, value, "`if … raise`", check)
    truth = operators.static_truth(value, operators.decider(frame))
    if isinstance(truth, Undecided):
        _require(frame, node, truth if otherwise else truth.negated(), "")
        return otherwise
    return truth


def _admit_empty(frame: Frame, test: ast.expr) -> None:
    """Note that `assert n >= 0` allows a size of 0; otherwise sizes are at least 1."""
    program = frame.program
    if program is None or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return
    ledger = frame.session.ledger
    left, right = ledger.value(test.left), ledger.value(test.comparators[0])
    sign = type(test.ops[0]).__name__
    if sign in ("GtE", "Gt"):
        left, right = right, left
    bound = {"LtE": 0, "GtE": 0, "Lt": -1, "Gt": -1}.get(sign)
    if (
        left.__class__ is int
        and left == bound
        and isinstance(right, Dim)
        and len(names(right)) == 1
    ):
        fact = Fact("<=", 0, right)
        if frame.in_kernel and fact not in program.facts.facts:
            raise Widened(fact)


def _is_checked_when_run(frame: Frame, value: Place) -> bool:
    """Return whether this is a computed truth value of a JAX program, which goes on or raises."""
    in_jax = frame.program is not None and frame.program.jax is not None
    return in_jax and isinstance(value, Value) and not value.shape


def _excludes(frame: Frame) -> bool:
    """Return whether a failing check excludes a choice: in a kernel, and all of a JAX program.

    A helper of a kernel has to be called with what it accepts.
    """
    program = frame.program
    if program is not None and program.jax is not None and not _is_of_jax(frame):
        return frame.in_kernel or not frame.session.branches
    return frame.in_kernel


def _is_of_jax(frame: Frame) -> bool:
    """Return whether a function stands for one of JAX's own, which refuses what it is given."""
    return is_package_of_ours(frame.source.path, "jax")


def _line(frame: Frame, node: ast.AST) -> str:
    """Return the text of a node in one line."""
    return " ".join(frame.source.text_of(node).split())


def _of_values(frame: Frame, test: ast.expr, value: Array, construct: str, check: str) -> Failure:
    """Return the refusal of a check of computed values, with the check that the caller can make."""
    if _of_arguments(frame, test):
        assert frame.closure is not None
        rewrite = f"make the check before the call of `{frame.closure.name}`: `{check}`"
    else:
        condition = _line(frame, test)
        rewrite = f"return `{condition}` with the result, and raise where the kernel is called"
    finding = BranchOnArray(
        construct=construct,
        found=describe(value),
        rewrite=f"a compiled program raises nothing; {rewrite}",
        span=frame.span(test),
    )
    return Failure(finding)


def _of_arguments(frame: Frame, test: ast.expr) -> bool:
    """Return whether the local names of an expression are parameters of the kernel, bound once."""
    if frame.closure is None or frame.closure is not frame.session.root:
        return False
    function = frame.closure.node
    parameters = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    names = [each for each in ast.walk(function) if isinstance(each, ast.Name)]
    bound = {each.id for each in names if not isinstance(each.ctx, ast.Load)}
    used = {each.id for each in ast.walk(test) if isinstance(each, ast.Name)}
    return not used & bound and not used & set(frame.names) - parameters


_IN_BRANCH: Final = "a check of sizes in a branch that is taken when the program runs"
_BEFORE: Final = "check them before the branch, for both ways"


def _require(frame: Frame, node: ast.Assert | ast.If, value: bool | Undecided, text: str) -> None:
    """Require a fact from here on: it is assumed in the kernel itself, and proven in a helper."""
    if isinstance(value, Undecided):
        program = frame.program
        assert program is not None
        if value.any_of:
            raise Failure(NotStatic(what="an `or` of facts about sizes"))
        if _excludes(frame):
            if frame.session.branches:
                raise Failure(Unsupported(what=_IN_BRANCH, rewrite=_BEFORE, span=frame.span(node)))
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
            frame.report(node.test, PreconditionNotMet.of(program.facts, name, fact))
        program.facts = program.facts.assume(*value.facts)  # report nothing that follows from it
        return
    if not value:
        condition = frame.source.text_of(node.test)
        finding = AssertionFails(condition=condition, text=text, span=frame.span(node.test))
        if _excludes(frame):
            raise Excluded(finding)
        raise Failure(finding)


T = TypeVar("T")
Handler = Callable[..., Outcome]


def run_body(frame: Frame, node: FunctionNode) -> Place:
    """Elaborate a function's body in a frame with its parameters bound."""
    if isinstance(node, ast.Lambda):
        frame.returned = frame.source.span(node.body)
        return locate(frame, node.body)
    frame.assigned = frame.source.scoping(node)
    generator = frame.source.yields(node)
    if generator is not None:
        evaluate(frame, generator)  # refused, with an unknown result
        return POISON
    outcome = run(frame, node.body)
    program = frame.session.program
    if frame.may_have_returned and not isinstance(outcome, Return):
        return POISON
    if isinstance(outcome, Maybe) and outcome.value is not None:
        name = frame.closure.name if frame.closure is not None else "the function"
        raise Failure(ReturnsOnSomePaths(function=name)).at(frame.span(outcome.node))
    if outcome is None and frame.closure is not frame.session.root:
        _unreturned(frame, node.body)
    if isinstance(outcome, Return):
        frame.returned = frame.source.span(outcome.node)
        if program is not None and frame.closure is frame.session.root:
            program.return_span = frame.span(outcome.node)
        return outcome.value
    return None


def run(frame: Frame, body: Sequence[ast.stmt]) -> Outcome:
    """Elaborate statements in order until one leaves the block."""
    for place, statement in enumerate(body):
        rest = body[place + 1 :]
        if rest and isinstance(statement, ast.If) and not is_guard(statement):
            leaving = [leaves(statement.body), leaves(statement.orelse)]
            if leaving in ([True, False], [False, True]):
                # The following statements belong to the branch that continues.
                parts = [
                    part if gone else [*part, *rest]
                    for part, gone in zip((statement.body, statement.orelse), leaving, strict=True)
                ]
                whole = ast.If(statement.test, *parts)
                return _run_one(frame, ast.copy_location(whole, statement))
        outcome = _run_one(frame, statement)
        if isinstance(outcome, Maybe) and ON in outcome.kinds and rest:
            return resumed(frame, statement, outcome, partial(run, frame, rest))
        if outcome is not None:
            return outcome
    return None


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Return whether no path reaches the end of a block."""
    match body:
        case [*_, ast.If(body=inner, orelse=orelse)]:
            return leaves(inner) and leaves(orelse)
        case [*_, ast.Return() | ast.Break() | ast.Continue()]:
            return True
        case _:
            return False


def _run_one(frame: Frame, statement: ast.stmt) -> Outcome:
    handler = STATEMENTS.get(type(statement))
    session = frame.session
    began, known = session.ledger.now(), len(session.findings)
    try:
        session.step()
        if handler is None:
            raise Failure(without_meaning(statement, REFUSED))
        outcome = handler(frame, statement, **fields(statement, handler))
        if len(session.findings) == known:
            session.ledger.settle(statement, due(statement), began)
        return outcome
    except Failure as failure:
        session.report(failure.at(_head(frame, statement)))
    except Poisoned:
        pass
    for name in targets(statement):
        frame.names[name] = POISON
    if isinstance(statement, ast.Return):
        return Return(POISON, statement.value or statement)
    frame.may_have_returned |= returns(statement)
    return None


def returns(statement: ast.AST) -> bool:
    """Return whether a statement holds a `return` of this function."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return isinstance(statement, ast.Return) or any(
        returns(part)
        for part in ast.iter_child_nodes(statement)
        if isinstance(part, ast.stmt | ast.match_case | ast.ExceptHandler)
    )


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
    """Return the part of a statement that a finding points to: the head of a compound statement."""
    span = frame.span(statement)
    keyword = _KEYWORDS.get(type(statement))
    if keyword is not None:
        return span.head(len(keyword))
    match statement:
        case ast.With(items=[ast.withitem(context_expr=head), *_]):
            return frame.span(head)
        case ast.For(iter=head) | ast.While(test=head) | ast.If(test=head):
            return frame.span(head)
        case _:
            return span


def _assign(frame: Frame, node: ast.Assign, targets: list[ast.expr], value: ast.expr) -> Outcome:
    del node
    unpacked = len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List)
    found = locate(frame, value, unpacked=unpacked)
    for target in targets:
        assign(frame, target, found)
    return None


def _annotated(
    frame: Frame,
    node: ast.AnnAssign,
    target: ast.expr,
    annotation: ast.expr,
    value: ast.expr | None,
) -> Outcome:
    del node, annotation  # the annotation of a local name is never evaluated
    if not isinstance(target, ast.Name):
        text = frame.source.text_of(target)
        what = f"the annotation of `{text}`, which is no name,"
        raise Failure(Unsupported(what=what, rewrite="", span=frame.span(target)))
    if value is not None:
        assign(frame, target, locate(frame, value))
    return None


def _augmented(
    frame: Frame, node: ast.AugAssign, target: ast.expr, op: ast.operator, value: ast.expr
) -> Outcome:
    augment(frame, node, target, type(op).__name__, value)
    return None


def _assert(frame: Frame, node: ast.Assert, test: ast.expr, msg: ast.expr | None) -> Outcome:
    check_assert(frame, node, test, msg)
    return None


def _return(frame: Frame, node: ast.Return, value: ast.expr | None) -> Outcome:
    return Return(None if value is None else locate(frame, value), value or node)


def _expression(frame: Frame, node: ast.Expr, value: ast.expr) -> Outcome:
    del node
    if isinstance(value, ast.Constant):
        return None
    session, program = frame.session, frame.program
    known = len(session.findings), len(session.journal), program and len(program.revealed)
    equations = program.current.equations if program else []
    count = len(equations)
    found = locate(frame, value)
    now = len(session.findings), len(session.journal), program and len(program.revealed)
    is_plain = now == known and not any(map(acts, equations[count:]))
    if is_plain and isinstance(value, _COMPUTING) and isinstance(found, Located | Value | Weak):
        text, operand = frame.source.text_of(value), _first_operand(value)
        frame.report(value, ValueUnused(text=text, operand=operand))
    return None


_COMPUTING: Final = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare)
"""Expressions that may be written as a statement for their effect, or by mistake."""


def _first_operand(node: ast.expr) -> str:
    """Return the name of an expression's first operand; empty if it is no name."""
    match node:
        case ast.Call(args=[ast.Name(id=name), *_]) | ast.BinOp(left=ast.Name(id=name)):
            return name
        case _:
            return ""


def _unreturned(frame: Frame, body: Sequence[ast.stmt]) -> None:
    """Report the last name that a function without `return` binds, since it is lost."""
    last = body[-1]
    if frame.closure is None or frame.program is None or any(map(returns, body)):
        return
    if isinstance(last, ast.Assign) and all(isinstance(each, ast.Name) for each in last.targets):
        (name, *_) = targets(last)
        frame.report(last, ValueUnused(text=name, function=frame.closure.name))


_ONE_TRUTH: Final = "`.any()` or `.all()` makes one truth of it; `np.where` selects by element"


def _if(
    frame: Frame, node: ast.If, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]
) -> Outcome:
    if is_guard(node):
        return run(frame, body if check_guard(frame, node) else orelse)
    value = read(frame, test)
    if frame.program is not None and is_condition(value):
        predicate = predicate_of(frame.here(test), value, "`if`")
        return _forked(frame, node, predicate, body, orelse)
    made = forked_on_sizes(
        frame, test, value, "`if`", lambda on: _forked(frame, node, on, body, orelse)
    )
    if made is not None:
        return made[0]
    chosen = operators.truth_of(frame, test, value, "`if`", _ONE_TRUTH)
    if chosen is not None:
        return run(frame, body if chosen else orelse)
    state = State(frame.session)
    outcomes: list[Outcome] = []
    program = frame.program
    facts = None if program is None else program.facts
    for branch, truth in ((body, True), (orelse, False)):  # look for findings in both
        if program is not None and facts is not None:
            program.facts = facts.assume(*operators.presumed(frame, test, truth))
        outcomes.append(run(frame, branch))
        state.restore()
    if program is not None and facts is not None:
        program.facts = facts
    for statement in (*body, *orelse):
        frame.names.update(dict.fromkeys(targets(statement), POISON))
    returned = next((o for o in outcomes if isinstance(o, Return | Maybe)), None)
    return None if returned is None else Return(POISON, returned.node)


def _match(
    frame: Frame, node: ast.Match, subject: ast.expr, cases: list[ast.match_case]
) -> Outcome:
    """Run the first case whose pattern fits a known value."""
    value = evaluate(frame, subject)
    if isinstance(value, Poison):
        raise Poisoned
    for case in cases:
        names: matching.Names = {}
        if not matching.fits(frame, case.pattern, value, names):
            continue
        for name, found in names.items():
            target = ast.copy_location(ast.Name(name, ast.Store()), case.pattern)
            assign(frame, target, found)
        if case.guard is not None:
            guard = read(frame, case.guard)
            chosen = operators.truth_of(frame, case.guard, guard, "`if` of a case", "np.where(…)")
            if chosen is None:
                raise Poisoned
            if not chosen:
                continue
        return run(frame, case.body)
    return None


def _forked(
    frame: Frame, node: ast.If, predicate: Value, body: list[ast.stmt], orelse: list[ast.stmt]
) -> Outcome:
    """Run both branches; the program takes one of them."""
    return fork(
        frame, node.test, predicate, (partial(run, frame, body), partial(run, frame, orelse))
    )


def _raise(frame: Frame, node: ast.Raise, exc: ast.expr | None, cause: ast.expr | None) -> Outcome:
    del cause  # the program ends here, for any cause
    text = "" if exc is None else frame.source.text_of(exc)
    finding: Diagnostic = RaiseReached(what=text, span=frame.span(node))
    match exc:
        case ast.Call(func=ast.Name("TypeError" | "ValueError"), args=[reason]) if _is_of_jax(
            frame
        ):
            finding = RefusedByJax(reason=str(read(frame, reason)), span=frame.span(node))
        case _:
            pass
    if frame.program is not None and _excludes(frame):
        raise Excluded(finding)
    raise Failure(finding)


def _for(
    frame: Frame,
    node: ast.For,
    target: ast.expr,
    iter: ast.expr,  # noqa: A002
    body: list[ast.stmt],
    orelse: list[ast.stmt],
) -> Outcome:
    source = locate(frame, iter, iterated=True, used=True)
    if isinstance(source, Poison):
        return _unrolled_in_doubt(frame, target, body)
    source = special_methods.gone_through(frame, iter, source)
    last = partial(run, frame, orelse) if orelse else None
    counted = _counted(frame, node, source)
    if counted is not None and counted.unrolled is None:
        outcome = _rolled_or_unrolled(frame, node, target, counted, body)
        return after_loop(frame, node, outcome, last)
    try:
        items = elements(source) if counted is None else counted.unrolled or ()
    except Failure as failure:
        frame.session.report(failure.at(frame.span(iter)))
        return _unrolled_in_doubt(frame, target, body)
    with unrolling(frame, frame.span(node).head(len("for")), items):
        if counted is not None:
            outcome = _unrolled(frame, node, target, counted.unrolled or (), body, counted.item)
        else:
            outcome = _through(frame, node, target, source, items, body)
    return after_loop(frame, node, outcome, last)


def _through(
    frame: Frame,
    node: ast.For,
    target: ast.expr,
    source: Place,
    items: Sequence[Place],
    body: list[ast.stmt],
) -> Outcome:
    """Run a loop over known items; the body may change only items that were already visited."""
    with walking(frame.session, source) as at:

        def item(pair: tuple[int, Place]) -> Place:
            at(pair[0])
            return pair[1]

        return _unrolled(frame, node, target, [*enumerate(items)], body, item)


def _counted(frame: Frame, node: ast.For, source: Place) -> Iterated | None:
    """Return the iterable of a loop that counts its steps; None for known items."""
    if frame.program is None:
        return None
    if isinstance(source, range) and range_length(source) > FEW_STEPS:
        return counted_range(frame.here(node), (source.start, source.stop, source.step))
    return iterated(source)


def _rolled_or_unrolled(
    frame: Frame, node: ast.For, target: ast.expr, source: Iterated, body: list[ast.stmt]
) -> Outcome:
    """Run a loop of many steps; it is unrolled if its body needs the number of the step."""
    program = frame.program
    assert program is not None

    def rolled() -> Outcome:
        return _rolled(frame, node, target, source, body)

    if not isinstance(source.count, int):
        return rolled()
    if source.count > MAX_UNROLL:
        return rolled()
    trial, known = Trial(frame.session, program), len(frame.session.findings)
    try:
        outcome = rolled()
        new = frame.session.findings[known:]
        certain = bool(new) and all(isinstance(x, IndexOutOfRange) and x.steps for x in new)
        if not trial.attempt.failed() or certain:
            return outcome
    except (Failure, Poisoned):
        pass
    trial.forget()
    counters = range(source.count)
    with unrolling(frame, frame.span(node).head(len("for")), counters):
        return _unrolled(frame, node, target, counters, body, source.item)


def _rolled(
    frame: Frame, node: ast.For, target: ast.expr, source: Iterated, body: list[ast.stmt]
) -> Outcome:
    def enter(position: Position) -> None:
        frame.here(node.target)
        assign(frame, target, source.item(position))

    hidden = f" {id(node)}"  # no identifier, so programs cannot use it; it holds the iterable
    frame.names[hidden] = source.located
    try:
        loop = Rolled(
            frame,
            node,
            enter,
            partial(run, frame, body),
            source.count,
            read_later=partial(_is_read_later, frame, node),
            rebound=_rebound(frame, body, target),
            line=source.line,
        )
        return loop.run(_bound_in(frame, body, target))
    finally:
        frame.names.pop(hidden, None)


def _bound_in(frame: Frame, body: Sequence[ast.stmt], target: ast.expr | None = None) -> list[str]:
    """Return the names that a loop's body binds; `+=` on an array writes and binds nothing."""
    bound: dict[str, None] = {} if target is None else dict.fromkeys(targets(target))
    written: set[ast.AST] = set()
    for node in (each for statement in body for each in ast.walk(statement)):
        match node:
            case ast.AugAssign(target=ast.Name(id=name) as place):
                if isinstance(frame.names.get(name), Located):
                    written.add(place)
            case ast.Name(id=name, ctx=ast.Store()):
                if node not in written and name in frame.names:
                    bound[name] = None
            case _:
                pass
    return list(bound)


def _is_read_later(frame: Frame, loop: ast.For | ast.While, name: str) -> bool:
    """Return whether a name may be read after a loop: later, in an outer loop, or in a function."""
    function = None if frame.closure is None else frame.closure.node
    if function is None:
        return True
    inside = {id(node) for statement in loop.body for node in ast.walk(statement)}
    around = [
        node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.For | ast.While) and any(each is loop for each in ast.walk(node))
    ]
    begin = min((loop.lineno, *around))
    reads = [node for node in _names(function, name) if id(node) not in inside]
    return _is_captured(function, name) or any(node.lineno >= begin for node in reads)


def _is_captured(function: FunctionNode, name: str) -> bool:
    """Return whether a nested function reads a name."""
    nested = [node for node in ast.walk(function) if isinstance(node, FunctionNode)]
    return any(node is not function and _names(node, name) for node in nested)


def _names(tree: ast.AST, name: str) -> list[ast.Name]:
    """Return the reads of a name."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    return [node for node in found if not isinstance(node.ctx, ast.Store)]


def _rebound(frame: Frame, body: Sequence[ast.stmt], tested: ast.expr) -> frozenset[str]:
    """Return the names that a step binds before anything reads them."""
    function = None if frame.closure is None else frame.closure.node
    if function is None:
        return frozenset()
    found: set[str] = set()
    read = _used(tested)
    for statement in body:
        if isinstance(statement, ast.Assign):
            read |= _used(statement.value)
            found |= {each.id for each in statement.targets if isinstance(each, ast.Name)} - read
        elif isinstance(statement, ast.Expr | ast.AugAssign):
            read |= _used(statement)
        else:
            break
        for target in _stored(statement):
            read |= _used(target)
    return frozenset([name for name in found if not _is_captured(function, name)])


def _used(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _unrolled(
    frame: Frame,
    node: ast.stmt,
    target: ast.expr,
    items: Sequence[T],
    body: Sequence[ast.stmt],
    item: Callable[[T], Place],
) -> Outcome:
    """Run the steps of a loop in order, up to one that leaves it.

    `item` converts an item when its step begins.
    """
    for place, step in enumerate(items):
        frame.session.next_step()
        frame.here(target)
        assign(frame, target, item(step))
        outcome = after_step(frame, run(frame, body))
        if isinstance(outcome, Maybe) and ON in outcome.kinds:
            rest = items[place + 1 :]
            again = partial(_unrolled, frame, node, target, rest, body, item)
            return resumed(frame, node, outcome, again)
        if outcome is not None:
            return outcome
    return None


def _unrolled_in_doubt(frame: Frame, target: ast.expr | None, body: Sequence[ast.stmt]) -> Outcome:
    """Report the errors in the body of a loop whose items are unknown."""
    if target is not None:
        assign(frame, target, POISON)
    run(frame, body)
    for statement in body:
        frame.names.update(dict.fromkeys(targets(statement), POISON))
    return None


def _while(
    frame: Frame, node: ast.While, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]
) -> Outcome:
    last = partial(run, frame, orelse) if orelse else None
    program = frame.program
    if program is None:
        return after_loop(frame, node, _repeated(frame, test, body), last)
    if isinstance(test, ast.Constant) and test.value and not _may_leave(body):
        raise Failure(EndlessLoop())
    unchanged = () if _may_leave(body) else _unchanged(frame, test, body)
    if unchanged and _may_begin(frame, test):
        frame.report(test, EndlessLoop(names=unchanged))
        return _unrolled_in_doubt(frame, None, body)
    trial = Trial(frame.session, program)
    try:
        outcome = _repeated(frame, test, body)
        frame.session.loops[frame.span(node).head(len("while"))] = "unrolled"
    except TracedExit:
        trial.forget()
        outcome = _rolled_while(frame, node, test, body, orelse)
    return after_loop(frame, node, outcome, last)


def _unchanged(frame: Frame, test: ast.expr, body: Sequence[ast.stmt]) -> tuple[str, ...]:
    """Return the names that decide a test, if nothing in the loop's body changes their values."""
    nodes = [*ast.walk(test)]
    if not all(isinstance(each, _DECIDED_BY_NAMES) for each in nodes):
        return ()
    names = tuple(dict.fromkeys(each.id for each in nodes if isinstance(each, ast.Name)))
    bound = (ast.Store, ast.Del)
    for node in (each for statement in body for each in ast.walk(statement)):
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, bound):
            return ()
    values = [frame.names.get(name) for name in names]
    plain = (Value, Weak, bool, int, float, Dim)
    return names if all(isinstance(each, plain) for each in values) else ()


_DECIDED_BY_NAMES: Final = (
    *(ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)
"""The nodes of a test whose value depends only on its names."""


def _may_begin(frame: Frame, test: ast.expr) -> bool:
    """Return whether a test may be true at first."""
    value = read(frame, test)
    if is_poisoned(value):
        return False
    undecided = operators.open_truth(frame, value) is not None
    return is_condition(value) or undecided or bool(value)


def _may_leave(body: Sequence[ast.stmt]) -> bool:
    """Return whether a statement in the body of a loop leaves it."""
    return any(
        isinstance(node, ast.Break | ast.Return | ast.Raise)
        for statement in body
        for node in ast.walk(statement)
    )


class TracedExit(Exception):
    """The end of a loop is decided at run time."""


def _repeated(frame: Frame, test: ast.expr, body: Sequence[ast.stmt]) -> Outcome:
    """Run the steps of a loop with a static test; TracedExit if the test is not static."""
    while True:
        frame.session.next_step()
        value = read(frame, test)
        if frame.program is not None and (
            is_condition(value) or operators.open_truth(frame, value) is not None
        ):
            raise TracedExit
        chosen = operators.truth_of(frame, test, value, "`while`", _ONE_TRUTH)
        if chosen is None:
            run(frame, body)
            for statement in body:
                frame.names.update(dict.fromkeys(targets(statement), POISON))
            return Jump("break")
        if not chosen:
            return None
        outcome = after_step(frame, run(frame, body))
        if isinstance(outcome, Maybe) and ON in outcome.kinds:
            raise TracedExit
        if outcome is not None:
            return outcome


def _rolled_while(
    frame: Frame, node: ast.While, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]
) -> Outcome:
    def tested() -> Value:
        value = read(frame, test)
        if is_poisoned(value):
            raise Poisoned
        return predicate_of(frame.here(test), value, "`while`")

    endless = isinstance(test, ast.Constant) and bool(test.value)

    def loop(tests: Callable[[], Value] | None, steps: list[ast.stmt]) -> Outcome:
        made = Rolled(
            frame,
            node,
            lambda counter: None,
            partial(run, frame, steps),
            None,
            tests,
            read_later=partial(_is_read_later, frame, node),
            rebound=_rebound(frame, steps, test),
        )
        return made.run(_bound_in(frame, steps))

    try:
        return loop(None if endless else tested, body)
    except TestChanges:
        if orelse:
            what = "a test that changes what it reads, of a loop with `else`"
            raise Failure(Unsupported(what=what, rewrite="bind the name in the body")) from None
    ends = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
    for part in (ends, ends.test, *ends.body):
        ast.copy_location(part, test)
    return loop(None, [ends, *body])


def _with(frame: Frame, node: ast.With, items: list[ast.withitem], body: list[ast.stmt]) -> Outcome:
    del node
    for item in items:
        _enter(frame, **fields(item, _enter))
    return run(frame, body)


def _enter(frame: Frame, context_expr: ast.expr, optional_vars: ast.expr | None) -> None:
    """Enter `with psc.scope(name):` or `with np.errstate(…):`, which bind nothing."""
    findings = frame.session.findings
    known = len(findings)
    value = evaluate(frame, context_expr)
    if findings[known:] and all(finding.code.startswith("PSC9") for finding in findings[known:]):
        del findings[known:]  # its value does not matter: it is not `psc.scope`
    if optional_vars is not None:
        for name in targets(optional_vars):
            frame.names[name] = POISON
    if isinstance(value, Poison) and len(findings) > known:
        return
    use = purity.external_use(value) if isinstance(value, External) else None
    if use is not None and use.code.startswith("PSC2"):
        frame.report(context_expr, use)
    elif value not in CONTEXTS:
        what = "`with`"
        rewrite = "only `with psc.scope(name)` and `with np.errstate(…)` have a meaning"
        frame.report(context_expr, Unsupported(what=what, rewrite=rewrite))
    elif optional_vars is not None:
        what = "`as` of what gives nothing"
        frame.report(optional_vars, Unsupported(what=what, rewrite="leave it out"))


def _function(
    frame: Frame,
    node: ast.FunctionDef,
    name: str,
    args: ast.arguments,
    body: list[ast.stmt],
    decorator_list: list[ast.expr],
    returns: ast.expr | None,
) -> Outcome:
    del args, body, returns  # `closure` and the annotations read them
    decorators = [(each, evaluate(frame, each)) for each in decorator_list]
    value: AnyValue = closure(frame, node, name)
    if not frame.source.postpones_annotations():
        for each in evaluated_annotations(node):
            require_plain_type(frame, each)
    for decorator, function in reversed(decorators):
        if isinstance(function, Poison):
            value = POISON
            break
        if not isinstance(function, Applicable):
            raise Failure(NotCallable(found=describe(function))).at(frame.span(decorator))
        value = function.apply(frame.here(decorator), (value,), {})
    frame.names[name] = value
    return None


def require_plain_type(frame: Frame, node: ast.expr, operand: bool = False) -> None:
    """Refuse an annotation that does more than name types: it is evaluated with the function.

    An `operand` of `|` must be a type: other values may define the operator differently.
    """
    match node:
        case ast.Constant() if node.value is None or not operand:
            return
        case ast.Tuple() | ast.List() if not operand:
            for element in node.elts:
                require_plain_type(frame, element)
            return
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            require_plain_type(frame, left, operand=True)
            require_plain_type(frame, right, operand=True)
            return
        case _:
            pass
    quiet = Frame(Session(None), frame.source, frame.scope, frame, None, frame.closure)
    value = evaluate(quiet, node.value if isinstance(node, ast.Subscript) else node)
    if isinstance(node, ast.Subscript) and (
        is_type(value) or (isinstance(value, External) and value.name.startswith("numpy.typing."))
    ):
        require_plain_type(frame, node.slice)
        return
    if isinstance(node, ast.Name | ast.Attribute):
        if is_type(value) or (isinstance(value, External) and value.library):
            return
        # A look-up of a name runs no code; an attribute may be a property.
        unknown = any(isinstance(each, UnknownName) for each in quiet.session.findings)
        if isinstance(node, ast.Name) and not unknown and not operand:
            return
    if isinstance(evaluate(frame, node), Poison):
        return
    what = f"the annotation `{frame.source.text_of(node)}`, which is computed,"
    raise Failure(Unsupported(what=what, rewrite="name a type", span=frame.span(node)))


def _global(frame: Frame, node: ast.Global | ast.Nonlocal, names: list[str]) -> Outcome:
    del frame, node
    raise Failure(OuterWrite(name=", ".join(names)))


def _delete(frame: Frame, node: ast.Delete, targets: list[ast.expr]) -> Outcome:
    for target in targets:
        match target:
            case ast.Subscript():
                delete_item_of(frame, target)
            case ast.Name(id=name):
                if name not in frame.assigned:
                    raise Poisoned  # declared global or nonlocal, and reported there
                if name not in frame.names:
                    raise Failure(UnknownName(name=name, unassigned=True))
                del frame.names[name]
            case _:
                text = frame.source.text_of(node)
                raise Failure(Mutation(what=f"`{text}`", rewrite="make a copy without it"))
    return None


def _import(
    frame: Frame,
    node: ast.Import | ast.ImportFrom,
    names: list[ast.alias],
    module: str | None = None,
    level: int = 0,
) -> Outcome:
    del names, module, level  # `imported` reads them
    found = imported(frame.scope, node)
    for each in found.values():
        if isinstance(each, External) and not is_pythons(each.name):
            raise Failure(purity.external_value(each))
    frame.names.update(found)
    return None


def _pass(frame: Frame, node: ast.Pass) -> Outcome:
    del frame, node
    return None


def _break(frame: Frame, node: ast.Break) -> Outcome:
    del frame, node
    return Jump("break")


def _continue(frame: Frame, node: ast.Continue) -> Outcome:
    del frame, node
    return Jump("continue")


STATEMENTS: dict[type[ast.stmt], Handler] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: _return,
    ast.Expr: _expression,
    ast.If: _if,
    ast.Match: _match,
    ast.For: _for,
    ast.While: _while,
    ast.With: _with,
    ast.Try: run_try,
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

REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "TryStar": ("`try`", "use `np.where` or `psc.cond` for special cases"),
    "AsyncFor": ("`async for`", "use `psc.scan`"),
    "AsyncWith": ("`async with`", ""),
    "AsyncFunctionDef": ("an `async` function", "use a plain `def`"),
    "ClassDef": ("a class inside a kernel", "define it at module level"),
    "TypeAlias": ("a `type` statement", 'define the type at module level, as `Vector = f32["n"]`'),
}
"""Refused statements by name, since some versions of Python lack them."""
