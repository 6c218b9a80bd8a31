"""The user's own text for what a typed program says, where there is one."""

from __future__ import annotations

import ast
import linecache
from typing import Protocol

from pscdsl._src.analysis.warnings.programs import Program
from pscdsl._src.ir.program import Atom, Equation, Literal, Var
from pscdsl.typing.dims import Size
from pscdsl.typing.spans import Span

_LONGEST = 60
"""A longer text is no help in a message."""


class SourceText(Protocol):
    """The text of a module."""

    lines: list[str]

    def locate(self, line: int) -> tuple[str, int]:
        """The path and the line that a place in a line of the text has."""
        ...


class Wording:
    """Looks up source text: in the source of the function, or in the file that a place names."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._rows: dict[tuple[str, int], int] | None = None

    def text(self, span: Span) -> str:
        """What stands at a place, on one line; empty if that is not at hand."""
        first, lines = self._row(span.path, span.line), self._source.lines
        if first is None:
            first, lines = span.line, linecache.getlines(span.path)
        count = span.end_line - span.line + 1
        rows = [row.rstrip("\r\n") for row in lines[first - 1 : first - 1 + count]]
        if not rows:
            return ""
        rows[-1] = rows[-1][: span.end_column - 1]
        rows[0] = rows[0][span.column - 1 :]
        return " ".join(" ".join(rows).split())

    def _row(self, path: str, line: int) -> int | None:
        """The line of the function's source at a place; None if it is elsewhere."""
        locate = self._source.locate
        if locate(line) == (path, line):
            return line
        if self._rows is None:
            self._rows = {locate(row): row for row in range(1, len(self._source.lines) + 1)}
        return self._rows.get((path, line))

    def expression(self, span: Span) -> ast.expr | None:
        """What stands at a place, if it is an expression."""
        try:
            return ast.parse(self.text(span) or ".", mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            return None

    def operation(self, span: Span) -> str:
        """What is done at a place: a function's last name, or the class of an operator's node."""
        text = self.text(span)
        try:
            tree: ast.AST = ast.parse(text).body[0] if text else ast.Pass()
        except (SyntaxError, ValueError, RecursionError, IndexError):
            return ""
        match tree.value if isinstance(tree, ast.Expr) else tree:
            case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
                return name
            case ast.BinOp(op=operator) | ast.AugAssign(op=operator):
                return type(operator).__name__
            case ast.Compare(ops=[operator]):
                return type(operator).__name__
            case ast.Subscript():
                return "Subscript"
            case _:
                return ""

    def name(self, program: Program, atom: Atom) -> str:
        """How an atom is written: a parameter by its name, a result as its expression."""
        atom = program.source(atom)
        if isinstance(atom, Literal):
            return repr(atom.value)
        at = program.definition(atom)
        if at is None:
            return atom.hint if atom.hint.replace(".", "_").isidentifier() else ""
        tree = self.expression(at.span)
        found = "" if tree is None else ast.unparse(tree)
        return found if len(found) <= _LONGEST else ""

    def operand(self, program: Program, at: Equation, position: int) -> str:
        """How an operand of an equation is written where the equation stands."""
        tree = self.expression(at.span)
        found: ast.expr | None = None
        if isinstance(tree, ast.Call) and position < len(tree.args):
            found = tree.args[position]
        elif isinstance(tree, ast.BinOp):
            found = (tree.left, tree.right)[position]
        elif isinstance(tree, ast.Compare) and len(tree.comparators) == 1:
            found = (tree.left, *tree.comparators)[position]
        if found is None or isinstance(found, ast.Starred):
            return self.name(program, at.inputs[position])
        text = ast.unparse(found)
        return text if len(text) <= _LONGEST else ""

    def index(self, span: Span, axis: int) -> str:
        """The index of `x[i]` or `np.take(x, i)`, the start of `psc.dynamic_slice`; else empty."""
        tree = self.expression(span)
        operation = self.operation(span)
        index: ast.expr | None = None
        if isinstance(tree, ast.Subscript):
            index = tree.slice
        elif isinstance(tree, ast.Call):
            position = 2 if operation == "dynamic_update" else 1
            index = tree.args[position] if position < len(tree.args) else None
        if operation.startswith("dynamic") and isinstance(index, ast.Tuple | ast.List):
            index = index.elts[axis] if axis < len(index.elts) else None
        if index is None or isinstance(index, ast.Tuple | ast.List | ast.Starred):
            return ""
        found = ast.unparse(index)
        return found if len(found) <= _LONGEST else ""

    def count(self, array: Var | None, axis: int, size: Size) -> str:
        """How the size of an array's axis is written."""
        if isinstance(size, int):
            return str(size)
        hint = "" if array is None else array.hint
        return f"{hint}.shape[{axis}]" if hint.replace(".", "_").isidentifier() else str(size)
