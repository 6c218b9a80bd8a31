"""What a fix is built from: a finding, the tree of its source, and the names in sight there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from pscdsl._src.frontend.fixes.aliasing import shared
from pscdsl._src.frontend.fixes.tree import FunctionStatement, Tree
from pscdsl._src.frontend.lost_results import is_lost
from pscdsl._src.frontend.text.source import targets
from pscdsl.typing.diagnostics import Applicability, Diagnostic, Edit, Fix, Span

D = TypeVar("D", bound=Diagnostic, covariant=True)
N = TypeVar("N", bound=ast.AST)

_SHORT = 60
"""Longer texts are cut in the message of a fix."""


class Place(Generic[D]):
    """A finding at its place."""

    def __init__(self, finding: D, tree: Tree) -> None:
        self.finding = finding
        self.tree = tree
        self.nodes = tree.at(finding.span)

    def node(self, *kinds: type[N]) -> N | None:
        """The outermost node of a kind that takes up exactly the place of the finding."""
        return next((each for each in self.nodes if isinstance(each, kinds)), None)

    def parent(self, node: ast.AST, kind: type[N]) -> N | None:
        """What a node stands in, if it is of this kind."""
        found = self.tree.parent(node)
        return found if isinstance(found, kind) else None

    def call_statement(self, node: ast.expr) -> tuple[ast.Call, ast.Expr] | None:
        """The call of a function, if it is a statement of its own."""
        call = self.parent(node, ast.Call)
        if call is None or call.func is not node:
            return None
        statement = self.parent(call, ast.Expr)
        return None if statement is None else (call, statement)

    def replace(
        self,
        node: ast.AST,
        text: str,
        applicability: Applicability = "unsafe",
        *,
        needs: Sequence[Edit] = (),
        message: str = "",
        until: ast.AST | None = None,
        span: Span | None = None,
    ) -> Iterator[Fix]:
        """The fix that writes something else for a node; none if a comment would be lost.

        `until` is the last of the nodes that are replaced; `span` is what is replaced if that is
        more than the node.
        """
        span = span or self.tree.source.span(node)
        if until is not None:
            end = self.tree.source.span(until)
            span = replace(span, end_line=end.end_line, end_column=end.end_column)
        if self.tree.has_comment(span):
            return
        message = message or f"replace `{_short(self.tree.text(node))}` by `{_short(text)}`"
        yield Fix(message, (*needs, Edit(span, text)), applicability)

    def insertion(self, line: int, column: int, text: str) -> Edit:
        """The edit that inserts text before a place."""
        return Edit(Span(self.tree.source.path, line, column, line, column), text)

    def named(self, node: ast.expr) -> str | None:
        """The name that a node is, if a statement beside it may bind it again."""
        if not isinstance(node, ast.Name):
            return None
        function = self.tree.function(node)
        if not isinstance(function, FunctionStatement):
            return None
        if is_lost(function, node.id):
            return None  # nobody would see what it is bound to
        return node.id if node.id in self.tree.source.scoping(function) else None

    def shared(self, node: ast.Name) -> bool:
        """Whether what a name stands for may be known by another name."""
        return shared(self.tree, node, self.finding.span.call_site is not None)

    def module(self, name: str, usual: str) -> tuple[str, tuple[Edit, ...]] | None:
        """How a module is called here, and the import that this takes; None if it cannot be.

        `usual` is the name under which it is imported where it is not.
        """
        for alias, statement in self._imports():
            base = "" if isinstance(statement, ast.Import) else f"{statement.module}."
            bound = alias.asname or alias.name
            if base + alias.name in (name, f"pscdsl.{name}") and "." not in bound:
                if not self.shadowed(bound):
                    return bound, ()
        return self.imported(f"import {name}" + (f" as {usual}" if usual != name else ""), usual)

    def numpy(self) -> tuple[str, tuple[Edit, ...]] | None:
        """How NumPy is called here."""
        return self.module("numpy", "np")

    def psc(self) -> tuple[str, tuple[Edit, ...]] | None:
        """How our package is called here."""
        return self.module("pscdsl", "psc")

    def dtype(self, name: str) -> tuple[str, tuple[Edit, ...]] | None:
        """How a dtype is written here: `f32`, `psc.f32`."""
        name = "bool_" if name == "bool" else name
        for alias, statement in self._imports():
            if isinstance(statement, ast.ImportFrom) and statement.module == "pscdsl":
                bound = alias.asname or alias.name
                if alias.name == name and not self.shadowed(bound):
                    return bound, ()
        found = self.psc()
        return None if found is None else (f"{found[0]}.{name}", found[1])

    def shadowed(self, name: str) -> bool:
        """Whether a function around the finding has a name of its own that hides this one."""
        if not self.nodes:
            return True
        for each in (self.nodes[0], *self.tree.above(self.nodes[0])):
            if isinstance(each, FunctionStatement) and name in self.tree.source.scoping(each):
                return True
            if isinstance(each, ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp):
                if any(
                    (isinstance(inner, ast.arg) and inner.arg == name)
                    or (
                        isinstance(inner, ast.Name)
                        and inner.id == name
                        and isinstance(inner.ctx, ast.Store)
                    )
                    for inner in ast.walk(each)
                ):
                    return True
        return False

    def _imports(self) -> Iterator[tuple[ast.alias, ast.Import | ast.ImportFrom]]:
        """The imports at module level, under no condition."""
        for statement in self.tree.source.tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for alias in statement.names:
                    yield alias, statement

    def imported(self, statement: str, name: str) -> tuple[str, tuple[Edit, ...]] | None:
        """A name with the import that binds it, below the imports that are there."""
        body = self.tree.source.tree.body
        taken = any(name in targets(each) for each in body)
        if taken or self.shadowed(name):
            return None
        after = 0
        for position, each in enumerate(body):
            docstring = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
            if not isinstance(each, ast.Import | ast.ImportFrom) and (position or not docstring):
                break
            after = each.end_lineno or each.lineno
            if position + 1 < len(body) and body[position + 1].lineno == after:
                return None  # several statements on a line
        if after >= len(self.tree.source.lines):
            return None
        return name, (self.insertion(after + 1, 1, statement + "\n"),)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"
