"""What a function does with keys: its uses of them, its states on the way, its summary."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from pscdsl._src.dialects.jax.values import Condition, Value, Values, overlap, path_of
from pscdsl._src.frontend.text.source import Source


@dataclass(frozen=True)
class Use:
    """One use of a key: in this function, or in one that it calls."""

    value: Value
    key: Value
    """The key itself, of which several may be made from one seed, which is `value` then."""
    path: tuple[Value, ...]
    conditions: frozenset[Condition]
    node: ast.AST
    call: int = 0
    """The number of the call that uses it, and the value by which the function called knows it."""
    inner: Value | None = None
    place: ast.AST | None = None
    """The call that draws, if it is in a function called here."""
    source: Source | None = None
    """The file of that call."""
    name: str = ""
    """How the code calls the key."""


@dataclass
class State:
    """What holds at a place: values of names and fields, keys used, conditions met."""

    names: dict[str, Value] = field(default_factory=dict[str, Value])
    fields: dict[tuple[Value, object], Value] = field(
        default_factory=dict[tuple[Value, object], Value]
    )
    versions: dict[Value, int] = field(default_factory=dict[Value, int])
    uses: dict[Value, tuple[Use, ...]] = field(default_factory=dict[Value, tuple[Use, ...]])
    conditions: frozenset[Condition] = frozenset()
    alive: bool = True

    def copy(self) -> State:
        """Return a copy, which may change."""
        return State(
            {**self.names}, {**self.fields}, {**self.versions}, {**self.uses}, self.conditions
        )


@dataclass(frozen=True)
class Summary:
    """What a call of a function does."""

    source: Source

    uses: tuple[Use, ...]
    result: Value
    fields: tuple[tuple[tuple[Value, object], Value], ...]
    changed: tuple[Value, ...]
    """The objects of which something unknown changes."""


def roots(value: Value) -> Iterable[Value]:
    """Yield the values without parts that a value is made of."""
    pending, seen = [value], set[Value]()
    while pending:
        each = pending.pop()
        if each not in seen:
            seen.add(each)
            pending += each.parts
            yield each


def leaves(use: Use) -> Iterable[Value]:
    yield from roots(use.key)
    for step in use.path:
        yield from roots(step)


def with_path(values: Values, root: Value, path: Iterable[Value]) -> Value:
    """Return the item of a value at the end of some steps."""
    for step in path:
        if step.kind == "row":
            root = values.row(root, *step.parts[1:])
        else:
            root = values.item(root, step)
    return root


def known_inside(first: Use, again: Use) -> bool:
    """Return whether the function called uses one value twice: that is reported there."""
    if first.inner is None or again.inner is None:
        return False
    (left, one), (right, other) = path_of(first.inner), path_of(again.inner)
    return left is right and (overlap(one, other) or one == other)
