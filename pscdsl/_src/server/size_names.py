"""The names of sizes: where a kernel writes them, for definitions and renaming.

`n` in `f32["n d"]` is one name in a whole kernel: in its signature, in annotations in its body, in
its budgets, and as the parameter of that name, if there is one.  The methods of a class share the
names of its fields.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator

from pscdsl._src.frontend.text.source import DIRECTIVE, FunctionStatement, Source, parameters
from pscdsl._src.server.workspace import TextPosition
from pscdsl.typing.diagnostics import Span

_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")
_MEASURES = frozenset("flops bytes arguments results peak memory gradient".split())


def occurrences(source: Source, place: TextPosition) -> tuple[str, list[Span]] | None:
    """Return the name of a size at a place, and all of its places in the same kernel.

    Those in annotations come first, in order.
    """
    for scope in _scopes(source):
        if place.within(source.span(scope)):
            found = list(_in_scope(source, scope))
            name = next((name for name, span in found if place.within(span)), None)
            if name is not None:
                own = [*(span for each, span in found if each == name), *_uses(source, scope, name)]
                return name, [*dict.fromkeys(own)]
    return None


def is_name(text: str) -> bool:
    """Return whether a size may have this name."""
    return text.isidentifier() and not keyword.iskeyword(text) and not text.startswith("_")


def _scopes(source: Source) -> Iterator[ast.stmt]:
    """Yield the outermost functions and classes; a name has one meaning in each."""
    for node in source.tree.body:
        if isinstance(node, FunctionStatement | ast.ClassDef):
            yield node


def _in_scope(source: Source, scope: ast.stmt) -> Iterator[tuple[str, Span]]:
    """Yield the names of sizes in annotations and budgets."""
    for annotation in sorted(_annotations(scope), key=lambda node: (node.lineno, node.col_offset)):
        for node in ast.walk(annotation):
            if isinstance(node, ast.Subscript) and not _is_literal(node.value):
                items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                for item in items:
                    yield from _in_text(source, item)
    span = source.span(scope)
    shift = getattr(scope, "lineno", 1) - span.line
    first = min([span.line, *(source.span(d).line for d in getattr(scope, "decorator_list", ()))])
    for number in range(first, span.end_line + 1):
        row = source.lines[number + shift - 1]
        for directive in DIRECTIVE.finditer(row) if "psc" in row else ():
            if directive["verb"] == "budget":
                start = directive.start("rest")
                for name in _NAME.finditer(directive["rest"]):
                    if name[0] not in _MEASURES:
                        columns = start + name.start() + 1, start + name.end() + 1
                        yield name[0], Span(span.path, number, columns[0], number, columns[1])


def _annotations(scope: ast.stmt) -> Iterator[ast.expr]:
    for node in ast.walk(scope):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, FunctionStatement) and node.returns is not None:
            yield node.returns


def _is_literal(node: ast.expr) -> bool:
    """Return whether texts in its brackets are values: `Literal["relu"]`."""
    return getattr(node, "attr", getattr(node, "id", "")) == "Literal"


def _in_text(source: Source, node: ast.expr) -> Iterator[tuple[str, Span]]:
    """Yield the names in a shape that is written as one plain text on one line."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return
    span = source.span(node)
    row = source.lines[node.lineno - 1]
    written = row[span.column - 1 : span.end_column - 1]
    start = span.column + written.find(node.value)
    if span.end_line != span.line or node.value not in written:
        return
    for name in _NAME.finditer(node.value):
        columns = start + name.start(), start + name.end()
        yield name[0], Span(span.path, span.line, columns[0], span.line, columns[1])


def _uses(source: Source, scope: ast.stmt, name: str) -> Iterator[Span]:
    """Yield the places of a parameter of this name, in the functions that have one."""
    for function in ast.walk(scope):
        if isinstance(function, FunctionStatement) and name in parameters(function):
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and node.id == name:
                    yield source.span(node)
                elif isinstance(node, ast.arg) and node.arg == name:
                    yield source.span(node).head(len(name))
