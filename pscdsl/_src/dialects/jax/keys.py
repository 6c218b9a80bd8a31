"""Random keys of JAX programs: each function is run over values that say where keys come from.

A function has a summary: what it does with its parameters and with names around it, and what it
returns. A call applies the summary. A loop is run twice: what its second step uses again is used
again in each step. A function that is not known, of a library for instance, uses no key.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pscdsl._src.dialects.jax.calls import call
from pscdsl._src.dialects.jax.consuming import compare
from pscdsl._src.dialects.jax.expressions import evaluate
from pscdsl._src.dialects.jax.names import Program, Scope
from pscdsl._src.dialects.jax.run import Run, TooMuch
from pscdsl._src.dialects.jax.statements import summarize
from pscdsl._src.dialects.jax.summaries import Summary, Use
from pscdsl._src.dialects.jax.unknown import Cause, UnknownCall, unknown_call
from pscdsl._src.dialects.jax.values import Value, Values, path_of
from pscdsl._src.frontend.modules.files import Files
from pscdsl.typing.diagnostics import Diagnostic


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

    def compare(self, use: Use, earlier: Sequence[Use]) -> None:
        """Report a use of a key if an earlier one uses it, too."""
        compare(self, use, earlier)


@dataclass(frozen=True)
class _Done:
    """The outcome for one function."""

    summary: Summary | Cause
    found: Mapping[tuple[ast.AST, str], Diagnostic]
    unknown: Sequence[tuple[ast.AST, Cause]]


class Keys:
    """The check of the files of a project: a function that several files call is run once.

    Functions that call each other in a circle are not followed from one to the other: what is
    found does not depend on which of them is run first.
    """

    def __init__(self, files: Files) -> None:
        del files
        self.values = Values()
        self.known_keys: set[Value] = set()
        self.calls = 0
        self._done: dict[Scope, _Done] = {}
        self._running: list[Scope] = []
        """The functions that are being run, each called by the one before it."""
        self._lowest: list[int] = []
        """For each of them, the place in `_running` of the first one that it calls again."""
        self._partial: dict[Scope, tuple[_Done, int]] = {}
        """Functions that call one of those being run, and the place of that one."""
        self._circle: frozenset[Scope] = frozenset()

    def check(self, program: Program) -> tuple[list[Diagnostic], tuple[UnknownCall, ...]]:
        """Run every function of a file, and the module itself; return what was found."""
        done: list[_Done] = []
        for scope in reversed(program.scopes.values()):
            self.summary(scope)
            done.append(self._done[scope])
        found: dict[tuple[ast.AST, str], Diagnostic] = {}
        unknown: dict[ast.AST, Cause] = {}
        for each in done:
            found = {**each.found, **found}
            unknown.update(each.unknown)
        return [*found.values()], tuple(
            unknown_call(program, node, cause) for node, cause in unknown.items()
        )

    def summary(self, scope: Scope) -> Summary | Cause:
        """Return the summary of a function, or why it is not followed."""
        if scope in self._circle:
            self._lower(-1)
            return "recursion"
        if (done := self._done.get(scope)) is not None:
            return done.summary
        if scope in self._running:
            self._lower(self._running.index(scope))
            return "recursion"
        if scope in self._partial:
            partial, lowest = self._partial[scope]
            self._lower(lowest)
            return partial.summary
        place = len(self._running)
        before = len(self._partial)
        self._running.append(scope)
        done, lowest = self._run(scope, place)
        self._running.pop()
        if lowest < place:
            self._lower(lowest)
            self._partial[scope] = done, lowest
            return done.summary
        self._done[scope] = done
        self._close(scope, [*self._partial][before:])
        return self._done[scope].summary

    def _lower(self, place: int) -> None:
        """Note that the function that runs calls one that was called before it."""
        if self._lowest:
            self._lowest[-1] = min(self._lowest[-1], place)

    def _close(self, scope: Scope, others: Sequence[Scope]) -> None:
        """Run the functions of a circle again, each as if it did not know the others."""
        if not others:
            return
        around, self._circle = self._circle, frozenset({scope, *others})
        for each in others:
            del self._partial[each]
        before = len(self._partial)
        for each in (scope, *others):
            self._done[each], _ = self._run(each, 0)
        for each in [*self._partial][before:]:
            del self._partial[each]
        self._circle = around

    def _run(self, scope: Scope, place: int) -> tuple[_Done, int]:
        """Run one function; return also the place of the first one that it calls again."""
        run = _Run(self, scope)
        running, around = len(self._running), len(self._lowest)
        self._lowest.append(place)
        try:
            summary: Summary | Cause = summarize(run)
        except (TooMuch, RecursionError):
            return _Done("size", {}, ()), place
        finally:
            lowest = self._lowest[around]
            del self._lowest[around:], self._running[running:]
        unknown: list[tuple[ast.AST, Cause]] = [
            (node, cause)
            for node, (cause, given) in run.unknown_calls.items()
            if any(path_of(each)[0] in self.known_keys for each in given)
        ]
        return _Done(summary, run.found, unknown), lowest
