"""Uses of keys: a key is used up, and a second use of it is reported."""

from __future__ import annotations

import ast
from dataclasses import replace

from pscdsl._src.dialects.jax.run import Run
from pscdsl._src.dialects.jax.summaries import Use, known_inside, roots, with_path
from pscdsl._src.dialects.jax.values import (
    Condition,
    Value,
    contradict,
    made_of,
    overlap,
    path_of,
)

_MOST_USES = 60
"""The most uses of a key, or of a function, that are remembered."""


def consume(
    run: Run,
    key: Value,
    node: ast.AST,
    conditions: frozenset[Condition] = frozenset(),
    call: int = 0,
    inner: Use | None = None,
) -> None:
    """Use a key up; report if it was used before."""
    if key.kind == "phi":
        test, then, other = key.parts
        for holds, each in ((True, then), (False, other)):
            more = conditions | run.known(test, holds)
            consume(run, each, node, more, call, inner)
        return
    if key.kind in ("const", "tuple", "dict", "function", "library"):
        return
    root, path = path_of(key)
    run.keys.known_keys.add(root)
    original = None
    if inner is not None:
        original = with_path(run.values, inner.key, inner.path)
    met = run.state.conditions | conditions
    if contradict(met, met) or any((test, not holds) in met for test, holds in met):
        return
    place = None if inner is None else inner.place or inner.node
    use = Use(root, made_of(key), path, met, node, call, original, place, _shown(run, node, root))
    before = run.state.uses.get(root, ())
    for first in before:
        if call and first.call == call and known_inside(first, use):
            continue
        if overlap(first.path, path) and not contradict(first.conditions, met):
            run.keys.report(first, _placed(run, first, use, inner))
            break
    run.state.uses[root] = (*before, use)[-_MOST_USES:]
    if all(each.node is not node or each.value is not root for each in run.recorded):
        run.recorded.append(use)


def _shown(run: Run, node: ast.AST, root: Value) -> str:
    """Return how a call writes the key that it is given, if that is short."""
    if not isinstance(node, ast.Call):
        return ""
    for each in (*node.args, *(word.value for word in node.keywords)):
        if not isinstance(each, ast.Name | ast.Attribute | ast.Subscript):
            continue
        text = run.program.source.text_of(each)
        if len(text) <= 40 and any(root is leaf for leaf in roots(run.evaluate(each))):
            return text
    return ""


def _placed(run: Run, first: Use, again: Use, inner: Use | None) -> Use:
    """Return a use in a loop at the place in a nested function that draws."""
    place = again.place
    around: ast.AST = run.scope.node
    if first.node is not again.node or place is None or isinstance(around, ast.Module):
        return again
    inside = any(each is place for each in ast.walk(around))
    if not inside or inner is None:
        return again
    return replace(again, node=place, place=again.node, name=inner.name)
