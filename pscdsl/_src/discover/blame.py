"""Which parameters a finding is about: by their sizes, by their places, or by the names in it."""

from __future__ import annotations

import ast
import re

from pscdsl._src.discover.candidates import owner
from pscdsl._src.discover.usage import FunctionStatement
from pscdsl._src.frontend.text.source import Source, targets
from pscdsl.typing.diagnostics import Diagnostic

_NAME = re.compile(r"[A-Za-z_]\w*")
MAX_PASSES = 3


class Blame:
    """What each local name of a function depends on, as far as its text says."""

    def __init__(self, source: Source, function: FunctionStatement, names: tuple[str, ...]) -> None:
        self.names = names
        self.origins = {source.span(each): each.arg for each in _parameters(function)}
        self.statements = [
            (source.span(each), each) for each in ast.walk(function) if isinstance(each, ast.stmt)
        ]
        self.flows: dict[str, set[str]] = {name: {name} for name in names}
        for _ in range(MAX_PASSES):  # loops carry what they assign
            for statement in function.body:
                self._follow(statement)

    def _follow(self, node: ast.stmt) -> None:
        if isinstance(node, ast.For | ast.While | ast.If | ast.With | ast.Try):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt):
                    self._follow(child)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For):
            value = node.iter if isinstance(node, ast.For) else node.value
            found = self._of(value) if value is not None else set[str]()
            nodes = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in set[str]().union(*(targets(each) for each in nodes)):
                if name not in self.names:
                    self.flows.setdefault(name, set()).update(found)

    def _of(self, node: ast.AST) -> set[str]:
        """The parameters that an expression depends on."""
        loaded = (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
        return set[str]().union(*(self.flows.get(name, set()) for name in loaded))

    def of(self, finding: Diagnostic) -> list[str]:
        """The parameters in question, in order; all of them where nothing says which."""
        texts = f"{finding.message()} {finding.label()} {finding.help() or ''}"
        found = {owner(word) for word in _NAME.findall(texts)}
        found |= {self.origins[each.span] for each in finding.labels if each.span in self.origins}
        found &= set(self.names)
        near = self._near(finding)
        blamed = [name for name in self.names if name in found]
        return blamed + [name for name in self.names if name in near and name not in found]

    def _near(self, finding: Diagnostic) -> set[str]:
        """The parameters on which the statement of a finding depends."""
        frame = finding.span.frames()[-1]
        holding = [
            (span.end_line - span.line, node)
            for span, node in self.statements
            if span.path == frame.path and span.line <= frame.line <= span.end_line
        ]
        if not holding:
            return set(self.names)
        _, statement = min(holding, key=lambda each: each[0])
        if isinstance(statement, ast.If | ast.While):
            return self._of(statement.test) or set(self.names)
        return self._of(statement) or set(self.names)


def _parameters(function: FunctionStatement) -> list[ast.arg]:
    spec = function.args
    return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
