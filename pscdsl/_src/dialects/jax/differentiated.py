"""The functions of a project that reverse mode differentiates, by the calls that say so."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pscdsl._src.dialects.jax.library import TRANSPARENT
from pscdsl._src.dialects.jax.names import Program, Scope, own_nodes
from pscdsl.typing.diagnostics import Span

_GRADIENTS: Final = frozenset(
    "jax.grad jax.value_and_grad jax.jacrev jax.jacobian equinox.filter_grad "
    "equinox.filter_value_and_grad equinox.filter_jacrev".split()
)
_PULLBACKS: Final = frozenset({"jax.vjp", "equinox.filter_vjp"})
_PARTIAL: Final = frozenset({"functools.partial", "jax.tree_util.Partial"})


@dataclass(frozen=True)
class Differentiation:
    """A call that differentiates a function, in some of its arguments."""

    scope: Scope
    """The function."""
    span: Span
    transformation: str
    """Its name as it is written."""
    arguments: tuple[int, ...]
    """The places of the arguments; empty for all of them."""
    needs_scalar: bool
    has_aux: bool


def differentiations(program: Program) -> Iterator[Differentiation]:
    """Yield the calls of a file whose function and arguments are certain."""
    for scope in list(program.scopes.values()):
        for node in own_nodes(scope.node):
            if isinstance(node, ast.Call) and node.args:
                found = _differentiation(program, scope, node)
                if found is not None:
                    yield found


def _differentiation(program: Program, scope: Scope, call: ast.Call) -> Differentiation | None:
    name = program.full_name(scope, call.func)
    if name not in _GRADIENTS | _PULLBACKS:
        return None
    words = {word.arg: word.value for word in call.keywords}
    has_aux = _constant(words.get("has_aux"), False)
    places: Sequence[int] | None = ()
    if name in _GRADIENTS:
        given = call.args[1] if len(call.args) > 1 else words.get("argnums")
        places = _places(given)
    if None in words or not isinstance(has_aux, bool) or places is None:
        return None
    if len(call.args) > 2 and name in _GRADIENTS:
        return None
    found = _function(program, scope, call.args[0])
    if found is None:
        return None
    function, first = found
    if name in _PULLBACKS and first:
        return None
    return Differentiation(
        function,
        program.source.span(call.func),
        program.source.text_of(call.func),
        tuple([first + place for place in places]),
        name in _GRADIENTS and not name.endswith(("jacrev", "jacobian")),
        has_aux,
    )


def _function(program: Program, scope: Scope, node: ast.expr) -> tuple[Scope, int] | None:
    """Return the function that an expression names, and how many arguments it has already."""
    if isinstance(node, ast.Call) and node.args:
        name = program.full_name(scope, node.func)
        if name not in TRANSPARENT | _PARTIAL:
            return None
        inner = _function(program, scope, node.args[0])
        if inner is None or name not in _PARTIAL:
            return inner
        more = node.args[1:]
        if any(isinstance(each, ast.Starred) for each in more):
            return None
        return inner[0], inner[1] + len(more)
    function = program.function(scope, node)
    if function is None:
        return None
    is_bound = function.owner is not None and isinstance(node, ast.Attribute)
    return function, int(is_bound)


def _places(node: ast.expr | None) -> Sequence[int] | None:
    """Return the places that `argnums` names; None if they are not constants."""
    if isinstance(node, ast.Tuple | ast.List):
        found = [_constant(each, None) for each in node.elts]
    else:
        found = [_constant(node, 0)]
    places = [each for each in found if isinstance(each, int) and each >= 0]
    return places if len(places) == len(found) else None


def _constant(node: ast.expr | None, default: object) -> object:
    """Return the value of a constant expression; None if it is none."""
    if node is None:
        return default
    try:
        value: object = ast.literal_eval(node)
    except ValueError:
        return None
    return value
