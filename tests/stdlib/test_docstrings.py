"""Everything public in the standard library is described, fields of records too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "stdlib"


def undescribed(tree: ast.Module) -> Iterator[str]:
    """The names of what has no docstring."""
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None:
            yield node.name
        if isinstance(node, ast.ClassDef):
            for each, after in pairwise([*node.body, ast.Pass()]):
                if isinstance(each, ast.AnnAssign) and not isinstance(after, ast.Expr):
                    yield f"{node.name}.{ast.unparse(each.target)}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_docstrings(path: Path) -> None:
    assert not list(undescribed(ast.parse(path.read_text(encoding="utf-8"))))
