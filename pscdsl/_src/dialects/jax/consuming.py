"""Uses of keys: a key is used up, and a second use of it is reported."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from pscdsl._src.dialects.jax.intended import is_intended
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
from pscdsl.typing.codes.keys import KeyReused, SeedReused
from pscdsl.typing.diagnostics import Diagnostic, Label

_SPLIT = "`key, sub = jax.random.split(key)` gives two keys in the place of one"
_MOST_USES = 60
"""The most uses of a key, or of a function, that are remembered."""


def consume(
    run: Run,
    key: Value,
    node: ast.AST,
    conditions: frozenset[Condition] = frozenset(),
    call: int = 0,
    inner: Use | None = None,
    *,
    hidden: bool = True,
) -> None:
    """Use a key up; report if it was used before.

    A function that is called may make its own key from a seed: other calls of it do the same, which
    is reported only if they are steps of one loop of the library. `hidden`: it does not return it.
    """
    if key.kind == "phi":
        test, then, other = key.parts
        for holds, each in ((True, then), (False, other)):
            more = conditions | run.known(test, holds)
            consume(run, each, node, more, call, inner, hidden=hidden)
        return
    if key.kind in ("const", "tuple", "dict", "function", "library"):
        return
    root, path = path_of(key)
    if root.kind == "joined":
        for each in root.parts if not path or path[0].kind == "row" else ():
            rest = path[1:] if root.data else path
            part = with_path(run.values, each, rest)
            consume(run, part, node, conditions, call, inner, hidden=hidden)
        return
    run.keys.known_keys.add(root)
    original = None
    if inner is not None:
        original = with_path(run.values, inner.key, inner.path)
    met = run.state.conditions | conditions
    if contradict(met, met) or any((test, not holds) in met for test, holds in met):
        return
    shown = _shown(run, node, root)
    use = Use(root, made_of(key), path, met, node, call, original, name=shown)
    if inner is not None:
        use = replace(use, place=inner.place, source=inner.source)
    before = run.state.uses.get(root, ())
    own_seed = inner is not None and inner.value.kind == "seed"
    if own_seed:
        before = tuple(first for first in before if run.bodies and first.node is node)
    compare(run, use, before, inner)
    if run.bodies or not (own_seed and hidden):
        run.state.uses[root] = (*run.state.uses.get(root, ()), use)[-_MOST_USES:]
    if all(each.node is not node or each.value is not root for each in run.recorded):
        run.recorded.append(use)


def compare(run: Run, use: Use, earlier: Sequence[Use], inner: Use | None = None) -> None:
    """Report a use of a key if an earlier one uses it, too."""
    conflicting = [
        first
        for first in earlier
        if not (use.call and first.call == use.call and known_inside(first, use))
        and overlap(first.path, use.path)
        and not contradict(first.conditions, use.conditions)
    ]
    if conflicting and not any(is_intended(run.scope, first, use) for first in conflicting):
        _report(run, conflicting[0], _placed(run, conflicting[0], use, inner))


def _report(run: Run, first: Use, again: Use) -> None:
    """Report that a key is used again."""
    node, source = again.node, run.program.source
    in_steps = first.node in (node, again.place)
    labels: list[Label] = []
    if first.node is not node:
        text = "run here" if in_steps else "consumed here"
        labels.append(Label(source.span(first.node), text))
    if not in_steps and again.place is not None and again.source is not None:
        labels.append(Label(again.source.span(again.place), "by this call"))
    root = again.value
    if root.kind == "seed" and first.key is not again.key:
        made = root.parts[0]
        seed = repr(made.data) if made.kind == "const" else ""
        finding: Diagnostic = SeedReused(seed=seed, again=in_steps)
    else:
        name = again.name
        finding = KeyReused(
            name=name, before="consumed", now="consumed", rewrite=_SPLIT, again=in_steps
        )
        if labels and not in_steps and again.place is None and _is_before(node, first.node):
            # A use in the next step of a loop: the last of a step should have a key of its own.
            finding = finding.replaced(next_step=True)
            labels = [Label(source.span(node), "and in the next step here")]
            node = first.node
    finding = finding.replaced(span=source.span(node), labels=tuple(labels))
    run.found.setdefault((node, finding.code), finding)


def _is_before(node: ast.AST, other: ast.AST) -> bool:
    """Return whether an expression is written before another one."""
    if not isinstance(node, ast.expr) or not isinstance(other, ast.expr):
        return False
    return (node.lineno, node.col_offset) < (other.lineno, other.col_offset)


def _shown(run: Run, node: ast.AST, root: Value) -> str:
    """Return how a call writes the key that it is given, if that is short."""
    if not isinstance(node, ast.Call):
        return ""
    for each in (*node.args, *(word.value for word in node.keywords)):
        if not isinstance(each, ast.Name | ast.Attribute | ast.Subscript):
            continue
        if any(isinstance(part, ast.Call) for part in ast.walk(each)):
            continue  # which is not called twice
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
