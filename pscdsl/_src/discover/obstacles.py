"""Obstacles: which findings hold whatever the signature is, and which of them is told first."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from enum import IntEnum

from pscdsl._src.frontend.text.source import Source
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.spans import Span

_LANGUAGE = frozenset(f"PSC{number}" for number in (100, 101, 102, 106, 107))


class Firmness(IntEnum):
    """How much a finding depends on the guess of a signature."""

    GUESS = 0
    """Another signature may be free of it."""
    UNSEEN = 1
    """What is behind it cannot be seen, whatever the signature."""
    FIRM = 2
    """It stands in the way of every signature."""


def firmness(finding: Diagnostic) -> Firmness:
    """How much a finding depends on the guess."""
    if finding.code.startswith("PSC2") or finding.code in _LANGUAGE:
        return Firmness.FIRM
    if finding.code.startswith("PSC9") or finding.code == "PSC108":
        return Firmness.UNSEEN
    return Firmness.GUESS


class Branches:
    """The parts of a function that run for some arguments only."""

    def __init__(self, source: Source, function: ast.AST) -> None:
        self.spans = [source.span(each) for each in _branches(function)]

    def hold(self, finding: Diagnostic) -> bool:
        """Whether a finding, or the call that led to it, stands in one."""
        return any(_within(frame, each) for frame in finding.span.frames() for each in self.spans)


def _branches(function: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.While):
            yield from (*node.body, *node.orelse)
        elif isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            yield from node.values[1:]


def _within(span: Span, other: Span) -> bool:
    return (
        span.path == other.path
        and (other.line, other.column) <= (span.line, span.column)
        and (span.line, span.column) < (other.end_line, other.end_column)
    )


def standing(found: Sequence[Sequence[Diagnostic]]) -> list[Diagnostic]:
    """The findings that every attempt had and no signature can mend, the firmest first."""
    if not found:
        return []
    common = {(each.code, each.span) for each in found[0]}
    for findings in found[1:]:
        common &= {(each.code, each.span) for each in findings}
    kept = [d for d in found[0] if (d.code, d.span) in common and firmness(d)]
    return sorted(kept, key=lambda d: (-firmness(d), place(d)))


def place(finding: Diagnostic) -> tuple[int, int]:
    """Where a finding stands in the function itself, for the order of findings."""
    outermost = finding.span.frames()[-1]
    return outermost.line, outermost.column
