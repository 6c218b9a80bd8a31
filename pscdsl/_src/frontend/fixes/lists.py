"""Lists that are built by methods: a comprehension, or a new list under the same name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pscdsl._src.frontend.fixes.place import Place
from pscdsl._src.frontend.text.source import targets
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.diagnostics import Applicability, Edit, Fix, Span

LIST = {
    "append": "[*{x}, {0}]",
    "extend": "[*{x}, *{0}]",
    "sort": "sorted({x})",
    "reverse": "{x}[::-1]",
    "clear": "[]",
}
DICT = {"update": "{{**{x}, **{0}}}", "clear": "{{}}"}


def list_method(
    place: Place[Mutation], attribute: ast.Attribute, call: ast.Call, statement: ast.Expr
) -> Iterator[Fix]:
    """What to write instead of `items.append(item)` and the like, as a statement."""
    name = place.named(attribute.value)
    table = LIST if place.finding.what.startswith("`list.") else DICT
    template = table.get(attribute.attr)
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    if name is None or template is None or call.keywords or starred:
        return
    if len(call.args) != template.count("{0}"):
        return
    assert isinstance(attribute.value, ast.Name)
    applicability: Applicability = "unsafe" if place.shared(attribute.value) else "safe"
    if attribute.attr == "append":
        found = _comprehension(place, name, call.args[0], statement, applicability)
        if found is not None:
            yield found
            return
    texts = [_spread(place, each, template) for each in call.args]
    yield from place.replace(
        statement, f"{name} = {template.format(*texts, x=name)}", applicability
    )


def _spread(place: Place[Mutation], node: ast.expr, template: str) -> str:
    return place.tree.operand(node) if "*{0}" in template else place.tree.argument(node)


def _comprehension(
    place: Place[Mutation],
    name: str,
    item: ast.expr,
    statement: ast.Expr,
    applicability: Applicability,
) -> Fix | None:
    """`items = [item for …]` in place of `items = []` and the loop behind it that appends."""
    tree = place.tree
    loop = place.parent(statement, ast.For)
    function = tree.function(statement)
    if loop is None or function is None or loop.orelse or loop.body != [statement]:
        return None
    block = tree.block(loop)
    before = block.index(loop) - 1
    start = block[before] if before >= 0 else None
    if not isinstance(start, ast.Assign) or len(start.targets) != 1:
        return None
    empty = isinstance(start.value, ast.List) and not start.value.elts
    if targets(start) != {name} or not empty:
        return None
    counters = targets(loop.target)
    inside = set(ast.walk(loop))
    for each in ast.walk(function):
        if isinstance(each, ast.Name) and each not in inside and each.id in counters:
            return None  # the counter is used elsewhere, and a comprehension has its own
    uses = [n for n in inside if isinstance(n, ast.Name) and n.id == name]
    if len(uses) != 1 or any(isinstance(n, ast.NamedExpr) for n in inside):
        return None
    first, last = tree.source.span(start), tree.source.span(loop)
    whole = Span(first.path, first.line, first.column, last.end_line, last.end_column)
    if tree.has_comment(whole):
        return None
    loops = f"for {tree.text(loop.target)} in {tree.operand(loop.iter)}"
    text = f"{name} = [{tree.argument(item)} {loops}]"
    return Fix("replace the loop by a comprehension", (Edit(whole, text),), applicability)
