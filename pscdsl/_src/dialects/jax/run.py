"""The run of one function: its state on the way, through branches and loops."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pscdsl._src.dialects.jax.names import Scope
from pscdsl._src.dialects.jax.summaries import State, Use
from pscdsl._src.dialects.jax.unknown import Cause
from pscdsl._src.dialects.jax.values import Condition, Value
from pscdsl.typing.diagnostics import Diagnostic

if TYPE_CHECKING:
    from pscdsl._src.dialects.jax.keys import Keys

_MOST_NESTED = 3
"""Loops nested more deeply are run once, not twice."""


class TooMuch(Exception):
    """A function is too large to be followed."""


class Run(ABC):
    """The run of one function over values that say where keys come from."""

    def __init__(self, keys: Keys, scope: Scope) -> None:
        self.keys = keys
        self.scope = scope
        self.program = scope.program
        self.values = keys.values
        self.state = State()
        self.recorded: list[Use] = []
        self.returned: list[tuple[Value, State]] = []
        self.breaks: list[list[State]] = []
        self.continues: list[list[State]] = []
        self.loops = 0
        self.bodies = 0
        """How many functions of the library that call given functions are being called."""
        self.nodes = 0
        self.found: dict[tuple[ast.AST, str], Diagnostic] = {}
        self.unknown_calls: dict[ast.AST, tuple[Cause, list[Value]]] = {}
        """Calls that cannot be followed, why, and what they are given."""
        self.locals: list[dict[str, Value]] = []
        """The names of comprehensions, innermost last."""

    @abstractmethod
    def evaluate(self, node: ast.expr) -> Value:
        """Return the value of an expression."""

    @abstractmethod
    def call(
        self, function: Value, args: list[Value], words: dict[str, Value], node: ast.AST
    ) -> Value:
        """Return the result of a call, and do what it does to keys."""

    @abstractmethod
    def compare(self, use: Use, earlier: Sequence[Use]) -> None:
        """Report a use of a key if an earlier one uses it, too."""

    def telling(self, first: Iterable[Condition], second: Iterable[Condition]) -> Value:
        """Return the condition that holds in the first of two cases and not in the second."""
        own, others = frozenset(first), frozenset(second)
        for test, holds in own:
            if (test, not holds) in others:
                return test if holds else self.values.make("not", None, test)
        tests = (test for test, _ in own ^ others)
        return self.values.make("op", "case", self.values.fresh("case"), *tests)

    def merged(self, test: Value, first: State, second: State) -> State:
        names = {
            name: self.values.choice(test, value, other)
            for name, value in first.names.items()
            if (other := second.names.get(name)) is not None
        }
        for name in first.names.keys() ^ second.names.keys():
            names[name] = first.names.get(name) or second.names[name]
        fields: dict[tuple[Value, object], Value] = {}
        for key in first.fields.keys() | second.fields.keys():
            values = [
                state.fields.get(key) or self.field(key[0], key[1], state)
                for state in (first, second)
            ]
            fields[key] = self.values.choice(test, *values)
        versions = {
            each: max(first.versions.get(each, 0), second.versions.get(each, 0))
            for each in first.versions.keys() | second.versions.keys()
        }
        uses = {**first.uses}
        for root, more in second.uses.items():
            old = uses.get(root, ())
            uses[root] = (*old, *(use for use in more if use not in old))
        return State(names, fields, versions, uses, first.conditions & second.conditions)

    def joined(self, states: Sequence[State]) -> State:
        """Return the state after one of several."""
        alive = [state for state in states if state.alive]
        if not alive:
            return replace(self.state, alive=False)
        result = alive[0]
        for other in alive[1:]:
            test = self.telling(result.conditions, other.conditions)
            result = self.merged(test, result, other)
        return result

    def branch(self, test: Value, then: Callable[[], object], other: Callable[[], object]) -> None:
        """Run one of two ways, as a condition says."""
        if test.kind == "const":
            (then if test.data else other)()
            return
        before = self.state
        ends: list[State] = []
        for holds, way in ((True, then), (False, other)):
            self.state = before.copy()
            self.state.conditions |= self.known(test, holds)
            way()
            ends.append(self.state)
        alive = [each for each in ends if each.alive]
        if len(alive) == 2:
            self.state = self.merged(test, *ends)
            self.state.conditions = before.conditions | (ends[0].conditions & ends[1].conditions)
            for use in self._either_way(test, before, *ends):
                self.compare(use, before.uses.get(use.value, ()))
                self.state.uses[use.value] = (*self.state.uses[use.value], use)
                self.recorded.append(use)
        else:
            self.state = alive[0] if alive else ends[0]

    def _either_way(self, test: Value, before: State, *ends: State) -> Iterator[Use]:
        """Yield the uses that one of two ways makes and the other one makes, too."""
        then, other = (
            [
                use
                for root in end.uses.keys() & ends[0].uses.keys() & ends[1].uses.keys()
                for use in end.uses[root]
                if root.kind != "seed"
                and use not in before.uses.get(root, ())
                and use.conditions == before.conditions | self.known(test, holds)
            ]
            for holds, end in zip((True, False), ends, strict=True)
        )
        for use in then:
            if any(use.value is each.value and use.path == each.path for each in other):
                yield replace(use, conditions=before.conditions)

    def known(self, test: Value, holds: bool) -> frozenset[Condition]:
        """Return what a condition says, part by part."""
        if test.kind == "not":
            return self.known(test.parts[0], not holds)
        if (test.kind, holds) in (("and", True), ("or", False)):
            return frozenset[Condition]().union(*(self.known(part, holds) for part in test.parts))
        return frozenset({(test, holds)})

    def steps(
        self,
        node: ast.AST,
        step: Callable[[Value], None],
        *,
        surely: bool = False,
        forever: bool = False,
    ) -> None:
        """Run the body of a loop for its first step and for another one."""
        before = self.state
        ran = self.values.fresh(node)
        loop = self.values.fresh(node)
        self.breaks.append([])
        self.loops += 1
        self.state = before.copy()
        if not surely:
            self.state.conditions |= {(ran, True)}
        for _ in range(2 if self.loops <= _MOST_NESTED else 1):
            self.continues.append([])
            step(loop)
            self.state = self.joined([self.state, *self.continues.pop()])
            if not self.state.alive:
                break
        self.loops -= 1
        left = self.breaks.pop()
        ends = [each for each in ([] if forever else [self.state]) + left if each.alive]
        after = self.joined(ends) if ends else replace(self.state, alive=False)
        if surely:
            self.state = after
        else:
            start = before.copy()
            self.state = self.merged(ran, after, start) if after.alive else start
            self.state.conditions = before.conditions

    def element(self, iterated: Value, loop: Value, origin: object) -> Value:
        """Return an element of what a loop goes through."""
        match iterated.kind:
            case "zip":
                return self.values.make(
                    "tuple",
                    None,
                    *(self.element(part, loop, origin) for part in iterated.parts),
                )
            case "enumerate":
                element = self.element(iterated.parts[0], loop, origin)
                return self.values.make("tuple", None, self.values.fresh(origin), element)
            case "const" | "range":
                return self.values.fresh(origin)
            case _:
                return self.values.row(iterated, loop, self.values.fresh(origin))

    def change(self, value: Value) -> None:
        """Forget the fields of an object."""
        if value.kind in ("const", "library", "function", "class", "tuple", "dict"):
            return
        self.state.versions[value] = self.state.versions.get(value, 0) + 1
        for key in [key for key in self.state.fields if key[0] is value]:
            del self.state.fields[key]

    def field(self, owner: Value, name: object, state: State) -> Value:
        return self.values.make("field", (name, state.versions.get(owner, 0)), owner)

    def unknown(
        self,
        function: Value,
        args: Iterable[Value],
        words: dict[str, Value],
        node: ast.AST,
        cause: Cause | None = None,
    ) -> Value:
        """Return the result of a call that cannot be followed."""
        given = [*args, *words.values()]
        self.unknown_calls.setdefault(node, (cause or _cause(function), given))
        owner = function
        while owner.kind in ("field", "item"):
            owner = owner.parts[0]
            self.change(owner)
        for each in given:
            if each.kind in ("param", "name", "object"):
                self.change(each)
        return self.values.fresh(node)


def _cause(function: Value) -> Cause:
    """Return why a call of a value cannot be followed."""
    match function.kind:
        case "library":
            return "library"
        case "field":
            return "method"
        case "name":
            scope, name = function.data
            return "decorator" if name in scope.functions else "value"
        case _:
            return "value"
