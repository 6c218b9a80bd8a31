"""Uses of one key, or of one seed, that are meant to give the same numbers."""

from __future__ import annotations

import ast
import fnmatch
import os
from collections.abc import Iterator

from pscdsl._src.dialects.jax.names import Scope, own_nodes
from pscdsl._src.dialects.jax.summaries import Use
from pscdsl._src.frontend.text.source import FunctionNode, last_name, parameters, targets

_TEST_FILES = ("test_*.py", "*_test.py", "conftest.py")
_COMPARISONS = frozenset(
    "allclose array_equal array_equiv isclose tree_allclose tree_equal".split()
)


def is_test(scope: Scope) -> bool:
    """Return whether code belongs to tests, as pytest finds them."""
    name = os.path.basename(scope.program.path or scope.program.source.path)
    return any(fnmatch.fnmatch(name, pattern) for pattern in _TEST_FILES) or any(
        each.title.startswith("test") for each in scope.chain()
    )


def is_intended(scope: Scope, first: Use, again: Use) -> bool:
    """Return whether two uses in a function are meant to give the same numbers.

    Tests write a seed again where they compare nothing. What is compared shall be equal, and arrays
    that are permuted with one key keep their rows together.
    """
    if again.value.kind == "seed" and first.key is not again.key and is_test(scope):
        return True
    return _permutes_alike(first, again) or (
        first.node is not again.node and _compares(scope, first.node, again.node)
    )


def _permutes_alike(first: Use, again: Use) -> bool:
    """Return whether both uses give different arrays the same order."""
    places = first.place or first.node, again.place or again.node
    permuted: list[ast.expr] = []
    for place in places:
        if not isinstance(place, ast.Call) or last_name(place.func) != "permutation":
            return False
        given = [*place.args[1:2], *(word.value for word in place.keywords if word.arg == "x")]
        if not given or isinstance(given[0], ast.Constant):
            return False
        permuted.append(given[0])
    if places[0] is not places[1]:
        return ast.dump(permuted[0]) != ast.dump(permuted[1])
    mapped = again.node if again.place is not None else None
    if not isinstance(mapped, ast.Call) or last_name(mapped.func) not in ("map", "tree_map"):
        return False
    names = {each.id for each in ast.walk(permuted[0]) if isinstance(each, ast.Name)}
    tree = again.source.tree if again.source is not None else mapped
    return any(
        not names.isdisjoint(parameters(each)) and any(x is places[0] for x in ast.walk(each))
        for each in ast.walk(tree)
        if isinstance(each, FunctionNode)
    )


def _compares(scope: Scope, first: ast.AST, again: ast.AST) -> bool:
    """Return whether a function compares what follows from one use alone with the other's."""
    nodes = [*own_nodes(scope.node)]
    flows = [_following(nodes, each) for each in (first, again)]
    for left, right in _compared(nodes):
        sides = [[_holds(side, use, names) for use, names in flows] for side in (left, right)]
        if sides in ([[True, False], [False, True]], [[False, True], [True, False]]):
            return True
    return False


_Flow = tuple[ast.AST, set[str]]


def _following(nodes: list[ast.AST], use: ast.AST) -> _Flow:
    """Return a use with the names whose values follow from it."""
    found = set[str]()
    before = -1
    while before != len(found):
        before = len(found)
        for node in nodes:
            if isinstance(
                node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For
            ):
                value = node.iter if isinstance(node, ast.For) else node.value
                if value is not None and _holds(value, use, found):
                    bound = node.targets if isinstance(node, ast.Assign) else [node.target]
                    found.update(name for target in bound for name in targets(target))
    return use, found


def _holds(node: ast.AST, use: ast.AST, names: set[str]) -> bool:
    return any(
        each is use or (isinstance(each, ast.Name) and each.id in names) for each in ast.walk(node)
    )


def _compared(nodes: list[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the pairs of expressions that a function compares to check its results."""
    for node in nodes:
        name = last_name(node.func) if isinstance(node, ast.Call) else ""
        if not isinstance(node, ast.Assert) and not name.startswith("assert"):
            if name not in _COMPARISONS:
                continue
        for each in ast.walk(node):
            match each:
                case ast.Call(args=[left, right, *_]):
                    yield left, right
                case ast.Compare(left=left, comparators=[right]):
                    yield left, right
                case ast.BinOp(left=left, op=ast.Sub(), right=right):
                    yield left, right
                case _:
                    pass
