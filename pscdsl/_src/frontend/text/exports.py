"""What a module exports by `__all__`, read from its statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

Other = Callable[[ast.expr], "Iterable[str] | None"]


def exported(body: Iterable[ast.stmt], other: Other) -> list[str] | None:
    """What `__all__` lists; None if there is no such list, or not one that can be followed.

    `other` gives the list of another module from an expression like `impl.__all__`.
    """
    names: list[str] | None = None
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and _binds_all(statement):
            added = None if statement.value is None else _listed(statement.value, names, other)
            names = []
        elif isinstance(statement, ast.AugAssign) and _is_all(statement.target):
            added = _listed(statement.value, names, other)
        elif isinstance(statement, ast.Expr) and (call := _call_of_all(statement.value)):
            added = _added(call, names, other)
        else:
            continue
        if added is None or names is None:
            return None
        names = [*names, *added]
    return names


def _listed(node: ast.expr, so_far: list[str] | None, other: Other) -> Iterable[str] | None:
    """The names in an expression; None if they are not all plain."""
    if isinstance(node, ast.List | ast.Tuple):
        found: list[str] = []
        for item in node.elts:
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                found.append(item.value)
                continue
            more = _listed(item.value, so_far, other) if isinstance(item, ast.Starred) else None
            if more is None:
                return None
            found.extend(more)
        return found
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _listed(node.left, so_far, other), _listed(node.right, so_far, other)
        return None if left is None or right is None else [*left, *right]
    return so_far if _is_all(node) else other(node)


def _call_of_all(node: ast.expr) -> ast.Call | None:
    """`__all__.extend(…)`, or another of its methods."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node if _is_all(node.func.value) else None
    return None


def _added(call: ast.Call, so_far: list[str] | None, other: Other) -> Iterable[str] | None:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if len(call.args) != 1 or method not in ("append", "extend"):
        return None
    [argument] = call.args
    whole = ast.List([argument], ast.Load()) if method == "append" else argument
    return _listed(whole, so_far, other)


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"


def _binds_all(statement: ast.Assign | ast.AnnAssign) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(_is_all(target) for target in targets)
