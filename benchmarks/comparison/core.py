"""Texts: the definitions that are compared, and how many lines they have."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

Definition = ast.FunctionDef | ast.ClassDef


def core(pieces: Sequence[tuple[str, Sequence[str]]]) -> str:
    """The definitions of these names in one text, with the imports that they use.

    What they use of the rest of a module of the standard library is imported, too.  A call that
    stands for itself, one that registers a rule, say, has its text as its name.
    """
    bodies: list[str] = []
    imports: list[ast.Import | ast.ImportFrom] = []
    for path, names in pieces:
        text = (ROOT / path).read_text(encoding="utf-8")
        tree = ast.parse(text)
        imports += [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        found = {name: node for node in tree.body for name in defined(node)}
        bodies += [_segment(text, found[name]) for name in names]
        if path.startswith("stdlib/"):
            rest = [ast.alias(name) for name in found if name not in names]
            imports.append(ast.ImportFrom(f"pscdsl.stdlib.{Path(path).stem}", rest, 0))
    body = "\n\n\n".join(bodies)
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    used -= {name for _, names in pieces for name in names}
    lines = dict.fromkeys(line for node in imports for line in _imports(node, used))
    return "\n".join(["from __future__ import annotations", "", *lines, "", "", body, ""])


def lines_of_code(text: str) -> int:
    """How many lines hold more than comments and docstrings; imports are not counted."""
    tree = ast.parse(text)
    skipped = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    held = {
        line
        for token in tokens
        if token.type not in layout and token.type != tokenize.ENDMARKER
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(held - skipped)


def defined(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module defines."""
    if isinstance(node, Definition):
        yield node.name
    elif isinstance(node, ast.Assign):
        names = [each for target in node.targets for each in ast.walk(target)]
        yield from (each.id for each in names if isinstance(each, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.unparse(node)


def _segment(text: str, node: ast.stmt) -> str:
    first = node.lineno
    if isinstance(node, Definition):
        first = min([first, *(each.lineno for each in node.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def _imports(node: ast.Import | ast.ImportFrom, used: set[str]) -> Iterator[str]:
    start = "import" if isinstance(node, ast.Import) else f"from {node.module} import"
    for name in node.names:
        if (name.asname or name.name) in used:
            yield f"{start} {name.name}" + (f" as {name.asname}" if name.asname else "")
