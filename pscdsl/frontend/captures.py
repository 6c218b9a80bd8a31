"""Values at module level: constants as long as nothing in the module writes them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from pscdsl.frontend.source import FunctionNode, Source, Writes, local_names
from pscdsl.typing.codes.purity import MutableCapture
from pscdsl.typing.diagnostics import Failure, Label

MUTATORS = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem fill put "
    "resize partition itemset setflags byteswap add discard".split()
)


def guard(source: Source, name: str, value: Any, others: Iterable[tuple[Source, str]] = ()) -> None:
    """Refuse a module-level value that the module changes, or that a function rebinds.

    `others` are sources in which the value is known by another name: `lib.SCALES`.
    """
    rebound, changed = _writes(source)
    place = rebound.get(name)
    if not isinstance(value, bool | int | float | complex):
        place = place or changed.get(name)
        for other, known_as in others:
            if place is None:
                place = _writes(other)[1].get(known_as)
                source = source if place is None else other
    if place is None:
        return
    kinds = {"list": "a list", "dict": "a dict", "ndarray": "an array"}
    span = source.span(place)
    raise Failure(
        MutableCapture(
            name=name, kind=kinds.get(type(value).__name__, "a variable"), where=str(span)
        ).labelled(Label(span, f"`{name}` is written here"))
    )


def _writes(source: Source) -> Writes:
    """Where module-level names are rebound by functions, and where their values are changed."""
    if source.writes is not None:
        return source.writes
    rebound: dict[str, ast.AST] = {}
    changed: dict[str, ast.AST] = {}
    aliases: list[tuple[str, str]] = []
    for node, local in _with_locals(source.tree, frozenset()):
        if isinstance(node, ast.Global):
            for name in node.names:
                rebound.setdefault(name, node)
            continue
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            pairs = ((t.id, node.value.id) for t in node.targets if isinstance(t, ast.Name))
            aliases.extend(pair for pair in pairs if pair[0] not in local)
        for name in _changed_by(node):
            if name not in local:
                changed.setdefault(name, node)
    for left, right in aliases + aliases[::-1]:  # `b = a`: a change of one is a change of both
        for one, other in ((left, right), (right, left)):
            if one in changed:
                changed.setdefault(other, changed[one])
    source.writes = (rebound, changed)
    return rebound, changed


def _with_locals(node: ast.AST, local: frozenset[str]) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Every node, with the names that are local where it stands."""
    for child in ast.iter_child_nodes(node):
        yield child, local
        inner = local
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = local | local_names(child)
        elif isinstance(child, FunctionNode):
            inner = local | {each.arg for each in child.args.args}
        yield from _with_locals(child, inner)


def _changed_by(node: ast.AST) -> Iterator[str]:
    """The names whose values a statement or call changes in place."""
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign):
        targets = [node.target]
        if isinstance(node.target, ast.Name):
            yield node.target.id
    else:
        targets = []
    for target in targets:
        if isinstance(target, ast.Subscript | ast.Attribute):
            yield from _owners(target.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in MUTATORS:
            yield from _owners(node.func.value)


def _owners(node: ast.expr) -> Iterator[str]:
    """The names that hold what is changed: `a` and `a.b` of `a.b[0]`."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
