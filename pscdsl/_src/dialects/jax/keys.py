"""Random keys of JAX programs: each function is run over values that say where keys come from.

A function has a summary: what it does with its parameters and with names around it, and what it
returns. A call applies the summary. A loop is run twice: what its second step uses again is used
again in each step. What is not known, an imported function for instance, uses no key.
"""

from __future__ import annotations

import ast

from pscdsl._src.dialects.jax.calls import call
from pscdsl._src.dialects.jax.expressions import evaluate
from pscdsl._src.dialects.jax.names import Program, Scope
from pscdsl._src.dialects.jax.run import Run, TooMuch
from pscdsl._src.dialects.jax.statements import summarize
from pscdsl._src.dialects.jax.summaries import Summary, Use
from pscdsl._src.dialects.jax.values import Value, Values
from pscdsl.typing.codes.keys import KeyReused, SeedReused
from pscdsl.typing.diagnostics import Diagnostic, Label

_SPLIT = "`key, sub = jax.random.split(key)` gives two keys in the place of one"


class _Run(Run):
    """A run, with what evaluates and calls."""

    def evaluate(self, node: ast.expr) -> Value:
        """Return the value of an expression."""
        return evaluate(self, node)

    def call(
        self, function: Value, args: list[Value], words: dict[str, Value], node: ast.AST
    ) -> Value:
        """Return the result of a call, and do what it does to keys."""
        return call(self, function, args, words, node)


class Keys:
    """The check of one file."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.values = Values()
        self.found: dict[tuple[ast.AST, str], Diagnostic] = {}
        self.unseen: set[ast.AST] = set()
        """Calls that are given a key and cannot be followed."""
        self.known_keys: set[Value] = set()
        self.calls = 0
        self._summaries: dict[Scope, Summary | None] = {}

    def check(self) -> None:
        """Run every function, and the module itself."""
        for scope in list(self.program.scopes.values()):
            if not isinstance(scope.node, ast.Lambda):
                self.summary(scope)
        for scope in list(self.program.scopes.values()):
            self.summary(scope)

    def summary(self, scope: Scope) -> Summary | None:
        """Return the summary of a function; None if it calls itself or is not followed."""
        if scope not in self._summaries:
            self._summaries[scope] = None
            try:
                self._summaries[scope] = summarize(_Run(self, scope))
            except (TooMuch, RecursionError):
                self.unseen.add(scope.node)
        return self._summaries[scope]

    def report(self, first: Use, again: Use) -> None:
        """Report that a key is used again."""
        node, source = again.node, self.program.source
        in_steps = first.node in (node, again.place)
        labels: list[Label] = []
        if first.node is not node:
            text = "run here" if in_steps else "consumed here"
            labels.append(Label(source.span(first.node), text))
        if not in_steps and again.place is not None:
            labels.append(Label(source.span(again.place), "by this call"))
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
        finding = finding.replaced(span=source.span(node), labels=tuple(labels))
        self.found.setdefault((node, finding.code), finding)
