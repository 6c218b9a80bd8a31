"""Forms of operations whose gradients stay finite, for the help of findings."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from pscdsl._src.dialects.jax.derivatives import Fault
from pscdsl._src.frontend.modules.jax_programs import place_outside
from pscdsl._src.frontend.modules.scope import StaticModule
from pscdsl._src.frontend.text.source import Source, last_name
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.primitives import elementwise as e
from pscdsl.typing.diagnostics import Span

_INSIDE: Final = "1e-6"
_BOUNDED: Final = frozenset("arccos arcsin acos asin arctanh atanh".split())
_LOGARITHMS: Final = frozenset("log log2 log10 rsqrt".split())
_GROWING: Final = frozenset("exp exp2 expm1 sinh cosh".split())
_SAFE: Final[Mapping[str, tuple[str, str, str]]] = {
    "sqrt": ("{x} > 0", "{x}, 1", "0"),
    "cbrt": ("{x} != 0", "{x}, 1", "0"),
    "arccosh": ("{x} > 1", "{x}, 2", "0"),
    "acosh": ("{x} > 1", "{x}, 2", "0"),
}
"""The condition under which a function has a derivative, what it is applied to, and its value
elsewhere."""


def rewritten(module: StaticModule, fault: Fault) -> tuple[str, str, str]:
    """Return the name of an operation, its operands, and a form with a finite gradient.

    The form is empty if none is known.
    """
    span = place_outside(fault.equation.span)
    source = _source(module, span)
    node = None if source is None else _node(source, span)
    operand = " and ".join(dict.fromkeys(_shown(x, fault) for x in fault.operands[:2]))
    if source is None or node is None:
        return fault.equation.primitive.label, operand, ""
    jnp = _jax_numpy(source)
    if isinstance(node, ast.BinOp):
        is_power = isinstance(node.op, ast.Pow)
        name = "the power" if is_power else "the quotient" if isinstance(node.op, ast.Div) else ""
        name = name or fault.equation.primitive.label
        return name, operand, _of_operator(source, node, fault, jnp)
    if isinstance(node, ast.Call):
        return ast.unparse(node.func), operand, _of_call(source, node, fault, jnp)
    return fault.equation.primitive.label, operand, ""


def _source(module: StaticModule, span: Span) -> Source | None:
    found = (module, *module.project.by_path.values())
    return next((each.source for each in found if each.source.path == span.path), None)


def _node(source: Source, span: Span) -> ast.expr | None:
    """Return the outermost expression at a place."""
    place = (span.line, span.column, span.end_line, span.end_column)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.expr):
            own = source.span(node)
            if (own.line, own.column, own.end_line, own.end_column) == place:
                return node
    return None


def _jax_numpy(source: Source) -> str:
    """Return the name of `jax.numpy` in a file."""
    for node in source.imports():
        for alias in node.names:
            if isinstance(node, ast.Import) and alias.name == "jax.numpy":
                return alias.asname or alias.name
            if isinstance(node, ast.ImportFrom) and node.module == "jax" and alias.name == "numpy":
                return alias.asname or alias.name
    return "jax.numpy"


def _of_operator(source: Source, node: ast.BinOp, fault: Fault, jnp: str) -> str:
    left, right = _operand(source, node.left), _operand(source, node.right)
    if isinstance(node.op, ast.Div):
        return f"{left} / {jnp}.where({right} == 0, 1, {right})"
    if not isinstance(node.op, ast.Pow):
        return ""
    with np.errstate(all="ignore"):
        is_hidden = not np.all(np.isfinite(_result(fault)))
    if is_hidden and not np.any(np.isnan(_result(fault))):
        return f"{jnp}.where({left} == 0, 1, {left}) ** {right}"
    inner = f"{jnp}.where({left} > 0, {left}, 1) ** {right}"
    return inner if is_hidden else f"{jnp}.where({left} > 0, {inner}, 0)"


def _result(fault: Fault) -> NDArray:
    primitive = fault.equation.primitive
    if isinstance(primitive, e.Elementwise):
        return np.asarray(primitive.meaning(*fault.operands))
    return np.zeros(())


def _of_call(source: Source, node: ast.Call, fault: Fault, jnp: str) -> str:
    name, function = last_name(node.func), source.text_of(node.func)
    words = [f"{word.arg}={source.text_of(word.value)}" for word in node.keywords if word.arg]
    if any(word.arg is None for word in node.keywords) or not node.args:
        return ""
    given = [source.text_of(each) for each in node.args]
    first = _operand(source, node.args[0])
    if name in ("norm", "std") and not any(word.startswith("ord=") for word in words):
        more = "".join(f", {each}" for each in (*given[1:], *words))
        if name == "std":
            return f"{jnp}.sqrt({jnp}.var({given[0]}{more}) + 1e-12)"
        if len(given) == 1:
            return f"{jnp}.sqrt({jnp}.sum({jnp}.square({given[0]}){more}) + 1e-12)"
        return ""
    if name in ("arctan2", "atan2") and len(given) == 2:
        other = _operand(source, node.args[1])
        chosen = f"({first} == 0) & ({other} == 0)"
        return f"{function}({given[0]}, {jnp}.where({chosen}, 1, {given[1]}))"
    if name == "xlogy" and len(given) == 2:
        other = _operand(source, node.args[1])
        return f"{function}({given[0]}, {jnp}.where({other} > 0, {given[1]}, 1))"
    if name in ("divide", "true_divide") and len(given) == 2:
        other = _operand(source, node.args[1])
        return f"{function}({given[0]}, {jnp}.where({other} == 0, 1, {given[1]}))"
    if len(given) != 1 or words:
        return ""
    return _of_one(name, function, given[0], first, jnp)


def _of_one(name: str, function: str, given: str, operand: str, jnp: str) -> str:
    """Return a form of a function of one argument."""
    if name in _SAFE:
        condition, inside, value = (each.format(x=operand) for each in _SAFE[name])
        inside = inside.replace(operand, given, 1)
        chosen = f"{function}({jnp}.where({condition}, {inside}))"
        return f"{jnp}.where({condition}, {chosen}, {value})"
    if name in _LOGARITHMS:
        return f"{function}({jnp}.where({operand} > 0, {given}, 1))"
    if name == "log1p":
        return f"{function}({jnp}.where({operand} > -1, {given}, 0))"
    if name in _BOUNDED:
        return f"{function}({jnp}.clip({given}, -1 + {_INSIDE}, 1 - {_INSIDE}))"
    if name in _GROWING:
        return f"{function}({jnp}.minimum({given}, 80))"
    if name == "reciprocal":
        return f"{function}({jnp}.where({operand} == 0, 1, {given}))"
    return ""


def _operand(source: Source, node: ast.expr) -> str:
    """Return the text of an operand, in parentheses where that matters."""
    text = source.text_of(node)
    is_plain = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant)
    return text if is_plain else f"({text})"


def _shown(x: NDArray, fault: Fault) -> str:
    """Return the number of an operand at which a derivative ends, if it is one number."""
    numbers: Sequence[float] = sorted({float(each) for each in np.ravel(x)[:8]}, key=abs)
    return f"{numbers[0]:g}" if numbers else ""
