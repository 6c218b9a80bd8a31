"""The user's own text for what a typed program says, where there is one."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from pscdsl.ir import Atom, Literal, Var
from pscdsl.lint.programs import Program
from pscdsl.typing.dims import Size
from pscdsl.typing.spans import Span

_LONGEST = 60
"""A longer text is no help in a message."""


class Wording:
    """Looks up source text; `lines` holds those of each file at hand."""

    def __init__(self, lines: Mapping[str, Sequence[str]]) -> None:
        self._lines = lines

    def text(self, span: Span) -> str:
        """What stands at a place, on one line; empty if that is not at hand."""
        rows = list(self._lines.get(span.path, ())[span.line - 1 : span.end_line])
        if not rows:
            return ""
        rows[-1] = rows[-1][: span.end_column - 1]
        rows[0] = rows[0][span.column - 1 :]
        return " ".join(" ".join(rows).split())

    def expression(self, span: Span) -> ast.expr | None:
        """What stands at a place, if it is an expression."""
        try:
            return ast.parse(self.text(span) or ".", mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            return None

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

    def index(self, span: Span) -> str:
        """The one index of `x[i]`, `np.take(x, i)` or `psc.update(x, i, …)`; else empty."""
        tree = self.expression(span)
        index: ast.expr | None = None
        if isinstance(tree, ast.Subscript):
            index = tree.slice
        elif isinstance(tree, ast.Call) and len(tree.args) > 1:
            index = tree.args[1]
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
