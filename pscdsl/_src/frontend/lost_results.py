"""Parameters that are bound anew where nothing is returned: nobody sees the new value."""

from __future__ import annotations

import ast

from pscdsl._src.frontend.text.source import FunctionNode, Source
from pscdsl._src.frontend.text.uses import parameters, uses
from pscdsl.typing.codes.purity import ResultLost


def is_lost(node: FunctionNode | None, name: str) -> bool:
    """Whether a new value of a name would be seen by nobody outside of a function."""
    if node is None or isinstance(node, ast.Lambda) or name not in parameters(node):
        return False
    return not any(_returns(each) for each in node.body)


def lost_result(source: Source, function: str, node: FunctionNode) -> ResultLost | None:
    """The first statement of a function without a result that binds a parameter anew."""
    if isinstance(node, ast.Lambda) or any(_returns(statement) for statement in node.body):
        return None
    index = uses(source)
    bound = [
        each
        for name in parameters(node)
        for each in index.names.get(name, ())
        if not isinstance(each.ctx, ast.Load) and index.owner(each, name) is node
    ]
    if not bound:
        return None
    first = min(bound, key=lambda each: (each.lineno, each.col_offset))
    return ResultLost(function=function, name=first.id, span=source.span(first))


def _returns(node: ast.AST) -> bool:
    """Whether a statement returns a value."""
    if isinstance(node, ast.Return):
        return node.value is not None and not (
            isinstance(node.value, ast.Constant) and node.value.value is None
        )
    if isinstance(node, FunctionNode | ast.ClassDef):
        return False
    return any(_returns(each) for each in ast.iter_child_nodes(node))
