"""Facts that a kernel asks for: `assert` and `if …: raise` over sizes, ranks and dtypes."""

from __future__ import annotations

import ast
from typing import Any

from pscdsl._src.frontend.interpreter import operators
from pscdsl._src.frontend.interpreter.expressions import evaluate
from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.values.values import Poison, Undecided, describe, is_traced
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BranchOnArray, NotStatic
from pscdsl.typing.codes.shapes_of_arguments import AssertionFails, PreconditionNotMet
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, names


class Widened(Exception):
    """A size may be 0: elaborate again with that known from the start."""

    def __init__(self, fact: Fact) -> None:
        super().__init__(fact)
        self.fact = fact


def is_guard(node: ast.If) -> bool:
    """Whether an `if` does nothing but raise."""
    return len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse


def check_assert(frame: Frame, node: ast.Assert, test: ast.expr, msg: ast.expr | None) -> None:
    """`assert fact`."""
    value = evaluate(frame, test)
    text = "" if msg is None else _message(frame, msg)
    if isinstance(value, Poison):
        return
    _admit_empty(frame, test)
    _static_only(frame, test, value, "`assert`")
    value = operators.static_truth(value, operators.decider(frame))
    _require(frame, node, value, text if isinstance(text, str) else "")


def _message(frame: Frame, msg: ast.expr) -> Any:
    """The message of an `assert`, which is evaluated only where that fails: it binds nothing."""
    names = dict(frame.names)
    text = evaluate(frame, msg)
    frame.names = names
    return text


def check_guard(frame: Frame, node: ast.If) -> bool:
    """`if fact: raise …`: a precondition; whether the `raise` is reached for all sizes."""
    value = evaluate(frame, node.test)
    if isinstance(value, Poison):
        return False
    _static_only(frame, node.test, value, "`if … raise`")
    truth = operators.static_truth(value, operators.decider(frame))
    if isinstance(truth, Undecided):
        _require(frame, node, truth.negated(), "")
        return False
    return truth


def _admit_empty(frame: Frame, test: ast.expr) -> None:
    """`assert n >= 0` says that a size may be 0; sizes are at least 1 otherwise."""
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


def _require(frame: Frame, node: ast.Assert | ast.If, value: bool | Undecided, text: str) -> None:
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
            frame.report(node.test, PreconditionNotMet.of(program.facts, name, fact))
        program.facts = program.facts.assume(*value.facts)  # reported: what follows is not
        return
    if not value:
        from pscdsl._src.frontend.definitions import Excluded

        condition = frame.source.text_of(node.test)
        finding = AssertionFails(condition=condition, text=text, span=frame.span(node.test))
        if frame.in_kernel:
            raise Excluded(finding)
        raise Failure(finding)
