"""A tree by place: which nodes stand at a span, what they stand in, how they are written."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from pscdsl._src.frontend.text.source import FunctionNode, Source
from pscdsl.typing.diagnostics import Span

N = TypeVar("N", bound=ast.AST)

FunctionStatement = ast.FunctionDef | ast.AsyncFunctionDef
ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.ListComp)
_NUMBER = (int, float, complex)


class Tree:
    """The syntax tree of a source, with the way back from a place to its nodes."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._parents: dict[ast.AST, ast.AST] = {}
        self._at: dict[tuple[int, int, int, int], list[ast.AST]] = {}
        waiting: list[ast.AST] = [source.tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.expr | ast.stmt | ast.arg):
                end = (node.end_lineno or 0, node.end_col_offset or 0)
                self._at.setdefault((node.lineno, node.col_offset, *end), []).append(node)
            if isinstance(node, ast.JoinedStr):
                continue  # the places of what stands in it are not to be relied on
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
                waiting.append(child)
        self._comments: frozenset[int] | None = None

    def at(self, span: Span) -> list[ast.AST]:
        """The nodes that take up exactly this place, the outermost first."""
        start = (span.line, self._offset(span.line, span.column))
        end = (span.end_line, self._offset(span.end_line, span.end_column))
        return self._at.get((*start, *end), [])

    def _offset(self, line: int, column: int) -> int:
        """The UTF-8 offset of a column in characters."""
        lines = self.source.lines
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        return column - 1 if text.isascii() else len(text[: column - 1].encode())

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What a node stands in."""
        return self._parents.get(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, outwards to the module."""
        current = self._parents.get(node)
        while current is not None:
            yield current
            current = self._parents.get(current)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that a node belongs to."""
        for each in (node, *self.above(node)):
            if isinstance(each, ast.stmt):
                return each
        return None

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function whose text a node belongs to."""
        return next((each for each in self.above(node) if isinstance(each, FunctionNode)), None)

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which one stands."""
        parent = self._parents[statement]
        for field in ("body", "orelse", "finalbody"):
            found = getattr(parent, field, None)
            if isinstance(found, list) and statement in found:
                return found  # pyright: ignore[reportUnknownVariableType]
        return [statement]

    def text(self, node: ast.AST) -> str:
        """A node exactly as it is written, without parentheses around it."""
        span = self.source.span(node)
        rows = self.source.lines[span.line - 1 : span.end_line]
        rows[-1] = rows[-1][: span.end_column - 1]
        rows[0] = rows[0][span.column - 1 :]
        return "\n".join(rows)

    def operand(self, node: ast.expr) -> str:
        """A node as it can be written beside any operator."""
        text = self.text(node)
        bare = isinstance(node, (*ATOMS, ast.Constant)) and "\n" not in text
        return text if bare or _enclosed(node, text) else f"({text})"

    def receiver(self, node: ast.expr) -> str:
        """A node as it can be written before a dot."""
        number = isinstance(node, ast.Constant) and isinstance(node.value, _NUMBER)
        return f"({self.text(node)})" if number else self.operand(node)

    def argument(self, node: ast.expr) -> str:
        """A node as it can be written as one argument of a call, or between commas."""
        text = self.text(node)
        loose = (ast.Tuple, ast.NamedExpr, ast.Yield, ast.YieldFrom)
        return f"({text})" if isinstance(node, loose) and not _enclosed(node, text) else text

    def value(self, node: ast.expr) -> str:
        """A node as it can be written at the right of `=`: on one logical line."""
        text = self.argument(node)
        return f"({text})" if "\n" in text and not _parses(text) else text

    def wrapped(self, node: ast.AST) -> Span:
        """The place of an operand, with the brackets around it alone."""
        span, lines = self.source.span(node), self.source.lines
        above = self._parents.get(node)
        operand = isinstance(above, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp)
        before = lines[span.line - 1][: span.column - 1]
        after = lines[span.end_line - 1][span.end_column - 1 :]
        if operand and before.endswith("(") and after.startswith(")"):
            return replace(span, column=span.column - 1, end_column=span.end_column + 1)
        return span

    def has_comment(self, span: Span) -> bool:
        """Whether a comment stands in a range, one behind its end left aside."""
        rows = range(span.line, span.end_line)
        if not any("#" in self.source.lines[row - 1] for row in rows):
            return False
        if self._comments is None:
            self._comments = frozenset(_comments(self.source.text))
        return any(row in self._comments for row in rows)


def _comments(text: str) -> Iterator[int]:
    """The lines on which a comment stands."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0]
    except (tokenize.TokenError, SyntaxError):
        return  # the parser accepted it; what was read so far counts


def _enclosed(node: ast.expr, text: str) -> bool:
    """Whether a node's own text has brackets around it."""
    enclosed = (ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.SetComp, ast.Set)
    if isinstance(node, ast.Tuple | ast.GeneratorExp):
        return text.startswith("(") and _closes_at_end(text)
    return isinstance(node, enclosed)


def _closes_at_end(text: str) -> bool:
    """Whether the bracket that opens a text is closed by its last character: not `(a), (b)`."""
    parsed = _parses(f"f{text}")
    return parsed is not None and isinstance(parsed.body, ast.Call)


def _parses(text: str) -> ast.Expression | None:
    try:
        return ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return None
