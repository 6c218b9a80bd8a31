"""Mutable values at module level: constants as long as nothing in the module writes them."""

from __future__ import annotations

import ast
from typing import Any

from pscdsl.frontend.source import Source
from pscdsl.typing.codes.purity import MutableCapture
from pscdsl.typing.diagnostics import Failure, Label

MUTATORS = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem fill put "
    "resize partition itemset setflags byteswap add discard".split()
)


def guarded(scope: Any, name: str, value: Any) -> Any:
    """The value, or a Failure if the module writes it."""
    place = first_write(scope.source, name)
    if place is None:
        return value
    kind = {"list": "a list", "dict": "a dict"}.get(type(value).__name__, "an array")
    span = scope.source.span(place)
    raise Failure(
        MutableCapture(name=name, kind=kind, where=str(span)).labelled(
            Label(span, f"`{name}` is written here")
        )
    )


def first_write(source: Source, name: str) -> ast.AST | None:
    """The first place where a module-level name is changed in place, or rebound by a function."""
    writes = _writes(source)
    return writes.get(name)


_CACHE: dict[int, tuple[Source, dict[str, ast.AST]]] = {}


def _writes(source: Source) -> dict[str, ast.AST]:
    cached = _CACHE.get(id(source))
    if cached is not None and cached[0] is source:
        return cached[1]
    found: dict[str, ast.AST] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
            targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
            for target in targets:
                if isinstance(target, ast.Subscript | ast.Attribute):
                    root = _root(target)
                    if root is not None:
                        found.setdefault(root, node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in MUTATORS and isinstance(node.func.value, ast.Name):
                found.setdefault(node.func.value.id, node)
        elif isinstance(node, ast.Global):
            for each in node.names:
                found.setdefault(each, node)
    _CACHE.clear()
    _CACHE[id(source)] = (source, found)
    return found


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
