"""Preconditions: the `assert` that a finding asks for, at the beginning of the kernel.

Unsafe, because it decides that some sizes are refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pscdsl._src.frontend.fixes.aliasing import parameters
from pscdsl._src.frontend.fixes.tree import FunctionStatement, Tree
from pscdsl.typing.diagnostics import Diagnostic, Edit, Fix, Span


def precondition(finding: Diagnostic, tree: Tree) -> Iterator[Fix]:
    """The `assert` that the help names, as the first statement of the kernel.

    `tree` is that of the file with the kernel: the finding may lie in a helper of another file.
    """
    text = finding.assertion()
    kernel = None if text is None else _kernel(finding, tree)
    if text is None or kernel is None or not _speaks_of(text, kernel):
        return
    first = next((each for each in kernel.body if not _is_docstring(each, kernel)), None)
    if first is None:
        return
    line = min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", ()))])
    before = tree.source.lines[line - 1][: tree.source.column(line, first.col_offset) - 1]
    if before.strip():
        return  # a body on the line of its `def`
    place = Span(tree.source.path, line, 1, line, 1)
    message = f"add `{text}` to `{kernel.name}`"
    yield Fix(message, (Edit(place, f"{before}{text}\n"),))


def _kernel(finding: Diagnostic, tree: Tree) -> FunctionStatement | None:
    """The function at module level through which the finding was reached."""
    line = finding.span.frames()[-1].line
    for each in tree.source.tree.body:
        if isinstance(each, FunctionStatement) and each.lineno <= line <= (each.end_lineno or 0):
            return each
    return None


def _is_docstring(statement: ast.stmt, function: FunctionStatement) -> bool:
    return (
        statement is function.body[0]
        and isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _speaks_of(text: str, function: FunctionStatement) -> bool:
    """Whether a condition is written with the parameters of a function."""
    try:
        names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    except SyntaxError:
        return False
    return names <= parameters(function)
