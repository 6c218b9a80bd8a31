"""Where names, attributes and functions of a source file are used: one walk over its tree.

Which binding a name belongs to is worked out when it is asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from pscdsl._src.frontend.text.source import FunctionNode, Source, targets
from pscdsl.typing.codes.purity import ResultLost

ScopeNode: TypeAlias = (
    ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.Lambda
    | ast.ClassDef
    | ast.ListComp
    | ast.SetComp
    | ast.DictComp
    | ast.GeneratorExp
)
"""What has names of its own; None stands for the module."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Uses:
    """The uses in one file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parents: dict[ast.AST, ast.AST] = {}
        self.names: dict[str, list[ast.Name]] = {}
        self.attributes: dict[str, list[ast.Attribute]] = {}
        self.functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        self.classes: dict[str, list[ast.ClassDef]] = {}
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.outer: list[ast.Global | ast.Nonlocal] = []
        self.strings: dict[str, list[ast.Constant]] = {}
        """Strings that are names, perhaps with dots."""
        self._bound: dict[ast.AST, frozenset[str]] = {}
        pending: list[ast.AST] = [source.tree]
        while pending:
            node = pending.pop()
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                pending.append(child)
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            self.names.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.Attribute):
            self.attributes.setdefault(node.attr, []).append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            self.classes.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports.append(node)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.outer.append(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if all(part.isidentifier() for part in node.value.split(".")):
                self.strings.setdefault(node.value, []).append(node)

    def bound(self, scope: ScopeNode) -> frozenset[str]:
        """The names that a scope binds itself."""
        cached = self._bound.get(scope)
        if cached is None:
            cached = self._bound[scope] = frozenset(self._binds(scope))
        return cached

    def _binds(self, scope: ScopeNode) -> Iterator[str]:
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from self.source.scoping(scope)
        elif isinstance(scope, ast.Lambda):
            yield from parameters(scope)
        elif isinstance(scope, ast.ClassDef):
            for statement in scope.body:
                yield from targets(statement)
        else:
            for generator in scope.generators:
                yield from targets(generator.target)

    def owner(self, node: ast.AST, name: str) -> ScopeNode | None:
        """The scope whose binding of `name` is meant at a node; None for the module's."""
        child, scope = node, self.parents.get(node)
        direct = True  # a class's names are seen in its body, and not in functions there
        while scope is not None:
            if isinstance(scope, _FUNCTIONS):
                body = [scope.body] if isinstance(scope, ast.Lambda) else scope.body
                if any(child is statement for statement in body):
                    if name in self.bound(scope):
                        return scope
                    if self._is_global(scope, name):
                        return None
                    direct = False
            elif isinstance(scope, ast.ClassDef):
                inside = any(child is statement for statement in scope.body)
                if inside and direct and name in self.bound(scope):
                    return scope
            elif isinstance(scope, _COMPREHENSIONS):
                first = scope.generators[0].iter
                if not self._within(node, first) and name in self.bound(scope):
                    return scope
            child, scope = scope, self.parents.get(scope)
        return None

    def _within(self, node: ast.AST, other: ast.AST) -> bool:
        at: ast.AST | None = node
        while at is not None and not isinstance(at, ast.stmt):
            if at is other:
                return True
            at = self.parents.get(at)
        return False

    def _is_global(self, function: FunctionNode, name: str) -> bool:
        return any(
            isinstance(each, ast.Global)
            and name in each.names
            and self.function_of(each) is function
            for each in self.outer
        )

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function that a node stands in."""
        at = self.parents.get(node)
        while at is not None and not isinstance(at, _FUNCTIONS):
            at = self.parents.get(at)
        return at

    def class_of(self, function: ast.AST) -> ast.ClassDef | None:
        """The class whose method a function is."""
        parent = self.parents.get(function)
        return parent if isinstance(parent, ast.ClassDef) else None


def parameters(function: FunctionNode) -> list[str]:
    """The names of all parameters."""
    spec = function.args
    found = [p.arg for p in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return found + [p.arg for p in (spec.vararg, spec.kwarg) if p is not None]


def uses(source: Source) -> Uses:
    """The uses in a file, worked out once."""
    if source.uses is None:
        source.uses = Uses(source)
    return source.uses


# Parameters that are bound anew where nothing is returned: nobody sees the new value.


def is_lost(node: FunctionNode | None, name: str) -> bool:
    """Whether a new value of a name would be seen by nobody outside of a function."""
    if node is None or isinstance(node, ast.Lambda) or name not in parameters(node):
        return False
    return not any(_returns(statement) for statement in node.body)


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
    return any(_returns(child) for child in ast.iter_child_nodes(node))
