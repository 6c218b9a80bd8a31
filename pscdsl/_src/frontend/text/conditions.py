"""Conditions of module-level branches, as far as their text decides them."""

from __future__ import annotations

import ast
import operator
import os
import sys
from collections.abc import Callable
from typing import Any

from pscdsl.typing.python_containers import is_tuple

_UNKNOWN = object()
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def for_type_checkers(test: ast.expr) -> bool:
    """Whether a branch is there for readers of the source only."""
    return isinstance(test, ast.Name | ast.Attribute) and _last(test) == "TYPE_CHECKING"


def taken(test: ast.expr) -> bool | None:
    """Whether a branch is taken by this version of Python; None if its text does not say."""
    value = _value(test)
    return None if value is _UNKNOWN else bool(value)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple):
        items = [_value(each) for each in node.elts]
        return _UNKNOWN if _UNKNOWN in items else tuple(items)
    if isinstance(node, ast.Name | ast.Attribute):
        return _known(node)
    if isinstance(node, ast.Subscript):
        return _item(_value(node.value), node.slice)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        value = _value(node.operand)
        return _UNKNOWN if value is _UNKNOWN else not value
    if isinstance(node, ast.BoolOp):
        return _joined(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        compare = _COMPARE.get(type(node.ops[0]))
        left, right = _value(node.left), _value(node.comparators[0])
        if compare is None or left is _UNKNOWN or right is _UNKNOWN:
            return _UNKNOWN
        return _tried(lambda: compare(left, right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
        owner = _value(node.func.value)
        arguments = [_value(each) for each in node.args]
        if node.func.attr == "startswith" and isinstance(owner, str):
            return (
                _UNKNOWN if _UNKNOWN in arguments else _tried(lambda: owner.startswith(*arguments))
            )
    return _UNKNOWN


def _known(node: ast.Name | ast.Attribute) -> Any:
    name = _last(node)
    owner = _last(node.value) if isinstance(node, ast.Attribute) else ""
    if name == "TYPE_CHECKING":
        return False
    if name == "version_info":
        return tuple(sys.version_info)
    if owner == "version_info" and name in ("major", "minor", "micro"):
        return getattr(sys.version_info, name)
    if (owner, name) == ("sys", "platform"):
        return sys.platform
    return os.name if (owner, name) == ("os", "name") else _UNKNOWN


def _item(value: Any, index: ast.expr) -> Any:
    if not is_tuple(value):
        return _UNKNOWN
    if not isinstance(index, ast.Slice):
        place = _value(index)
        return _UNKNOWN if place is _UNKNOWN else _tried(lambda: value[place])
    parts = [None if p is None else _value(p) for p in (index.lower, index.upper, index.step)]
    return _UNKNOWN if _UNKNOWN in parts else _tried(lambda: value[slice(*parts)])


def _joined(node: ast.BoolOp) -> Any:
    """`and` and `or`: one operand may decide."""
    stop = isinstance(node.op, ast.Or)
    values = [_value(each) for each in node.values]
    if any(value is not _UNKNOWN and bool(value) is stop for value in values):
        return stop
    return _UNKNOWN if _UNKNOWN in values else not stop


def _tried(compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except (TypeError, ValueError, LookupError):
        return _UNKNOWN
