"""Budgets in comments: `# psc: budget flops <= 2*n`, on or above the head of a kernel."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING

from pscdsl._src.checker.findings.suppressions import DIRECTIVE, comments_of
from pscdsl.typing.spans import Span

if TYPE_CHECKING:
    from pscdsl._src.frontend.text.source import Source

_MOST = 20
"""More comments of ours within one comment are not read."""


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment, and the lines of the statement that it is about."""

    text: str
    """What follows the word `budget`."""
    place: Callable[[int, int], Span]
    """Where the characters between two offsets of the text stand."""
    word: str
    """The word that stands for `budget`."""
    path: str
    first: int
    last: int
    """The statement's head, from its first decorator on; no lines if there is none."""

    @property
    def span(self) -> Span:
        """Where the text stands."""
        return self.place(0, len(self.text))

    def about(self, span: Span) -> bool:
        """Whether it is about what begins at a place."""
        return self.path == span.path and self.first <= span.line <= self.last


def budget_comments(source: Source) -> tuple[Comment, ...]:
    """The comments of a module that are budgets, or nearly so."""
    if "psc" not in source.text or "udget" not in source.text:
        return ()
    heads = dict(_heads(source.tree))
    found: list[Comment] = []
    for row, column, comment in comments_of(source.text)[0]:
        for directive in islice(DIRECTIVE.finditer(comment), _MOST):
            if not get_close_matches(directive["verb"].lower(), ("budget",), 1, 0.75):
                continue
            first, last = _head(source, heads, row)
            path, line = source.locate(row)
            start = column + directive.start("rest") + 1
            found.append(
                Comment(
                    directive["rest"].rstrip(),
                    _placed(path, line, start),
                    directive["verb"],
                    path,
                    source.locate(first)[1],
                    source.locate(last)[1] if last else 0,
                )
            )
    return tuple(found)


def _placed(path: str, line: int, start: int) -> Callable[[int, int], Span]:
    return lambda first, last: Span(path, line, start + first, line, start + max(last, first + 1))


def _heads(tree: ast.Module) -> Iterator[tuple[int, tuple[int, int]]]:
    """For each row of the head of a statement, the rows of that head."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            last = max(node.lineno, node.body[0].lineno - 1)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            first, last = node.lineno, node.end_lineno or node.lineno
        else:
            continue
        for row in range(first, last + 1):
            yield row, (first, last)


def _head(source: Source, heads: dict[int, tuple[int, int]], row: int) -> tuple[int, int]:
    """The rows of the head that a comment is about: its own, or the next below other comments."""
    while row not in heads:
        if row > len(source.lines) or not source.lines[row - 1].lstrip().startswith("#"):
            return 1, 0
        row += 1
    return heads[row]
