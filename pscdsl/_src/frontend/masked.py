"""Reductions of what a mask selects, `x[mask].mean()`, as ones of arrays that keep their shape."""

from __future__ import annotations

import ast
from typing import Final

from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.text.uses import uses
from pscdsl.typing.dtypes import BOOL, DType

_SUM: Final = "np.sum(np.where({m}, {x}, 0))"
_MOST: Final = "np.max(np.where({m}, {x}, {low}))"
_LEAST: Final = "np.min(np.where({m}, {x}, {high}))"
_COUNT: Final = "np.count_nonzero({m})"
WRITTEN: Final = {
    "sum": _SUM,
    "mean": f"{_SUM} / np.sum({{m}}).astype({{x}}.dtype)",
    "prod": "np.prod(np.where({m}, {x}, 1))",
    "max": _MOST,
    "amax": _MOST,
    "min": _LEAST,
    "amin": _LEAST,
    "any": "np.any(np.where({m}, {x}, 0))",
    "all": "np.all(np.where({m}, {x}, 1))",
    "len": _COUNT,
    "size": _COUNT,
}
"""The same of all elements, by functions of NumPy; `{m}` stands for the mask."""
_NAMED: Final = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def around(source: Source, node: ast.Subscript) -> tuple[ast.expr, str] | None:
    """The call or attribute that reduces `x[mask]` as a whole, and its name; None if none does."""
    parents = uses(source).parents
    parent = parents.get(node)
    if isinstance(parent, ast.Attribute):
        call = parents.get(parent)
        if parent.attr == "size":
            return parent, "size"
        if isinstance(call, ast.Call) and call.func is parent and not call.args:
            return None if call.keywords else (call, parent.attr)
    if isinstance(parent, ast.Call) and parent.args == [node] and not parent.keywords:
        function = parent.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            return parent, function.attr
        if isinstance(function, ast.Name) and function.id == "len":
            return parent, "len"
    return None


def reduced(source: Source, node: ast.Subscript, dtype: DType) -> str:
    """What is written for the reduction around `x[mask]`; empty if nothing is known."""
    found = around(source, node)
    if found is None:
        return ""
    name = found[1]
    counted = WRITTEN.get(name) == _COUNT
    if not counted and (dtype is BOOL or (name == "mean" and not dtype.is_inexact)):
        return ""
    x, mask = source.text_of(node.value), source.text_of(node.slice)
    written = x if isinstance(node.value, _NAMED) else f"({x})"
    limits = ("-np.inf", "np.inf")
    if dtype.is_integer:
        limits = (f"np.iinfo({written}.dtype).min", f"np.iinfo({written}.dtype).max")
    return WRITTEN.get(name, "").format(x=written, m=mask, low=limits[0], high=limits[1])
