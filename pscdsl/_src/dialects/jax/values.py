"""What is known of a value of a JAX program: where it comes from, never what it is.

Equal values are the same object, so that a key, a seed or a condition is recognised by where it
comes from. A key that was split off, a field, an item and an element of a loop are values too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

_DEEPEST = 24
"""Values of more levels are unknown ones."""


class Value:
    """A value by its origin: a kind, some data, and the values that it is made of."""

    __slots__ = ("atoms", "data", "depth", "kind", "parts")

    def __init__(self, kind: str, data: Any, parts: tuple[Value, ...]) -> None:
        self.kind = kind
        self.data = data
        self.parts = parts
        self.depth: int = 1 + max((part.depth for part in parts), default=0)
        self.atoms: frozenset[object] = frozenset[object]().union(*(part.atoms for part in parts))
        """The origins that it depends on: statements, parameters and names."""
        if kind == "fresh":
            self.atoms |= {data[1]}
        elif kind in ("param", "name"):
            self.atoms |= {data}


class Values:
    """All values of one file."""

    def __init__(self) -> None:
        self._known: dict[Any, Value] = {}
        self._serial = 0

    def make(self, kind: str, data: Any = None, *parts: Value) -> Value:
        """Return the value with these properties."""
        if kind == "const":
            key: Any = (kind, type(data), data)
        else:
            key = (kind, data, *map(id, parts))
        found = self._known.get(key)
        if found is None:
            found = Value(kind, data, parts)
            if found.depth > _DEEPEST:
                atoms = found.atoms
                found = self.fresh(found)
                found.atoms |= atoms
            self._known[key] = found
        return found

    def fresh(self, origin: object) -> Value:
        """Return a value that equals no other one; `origin` is the place that makes it."""
        self._serial += 1
        return self.make("fresh", (self._serial, origin))

    def constant(self, data: object) -> Value:
        """Return a constant."""
        if isinstance(data, float) and data != data:
            return self.fresh("nan")
        return self.make("const", data)

    def item(self, value: Value, index: Value) -> Value:
        """Return an item of a value."""
        if value.kind == "phi":
            then, other = (self.item(each, index) for each in value.parts[1:])
            return self.choice(value.parts[0], then, other)
        if value.kind == "tuple" and index.kind == "const" and isinstance(index.data, int):
            if -len(value.parts) <= index.data < len(value.parts):
                return value.parts[index.data]
        if value.kind == "joined" and value.data and index.kind == "const":
            if isinstance(index.data, int) and -len(value.parts) <= index.data < len(value.parts):
                return value.parts[index.data]
        if value.kind == "dict" and index.kind == "const" and index.data in value.data:
            place: int = value.data.index(index.data)
            return value.parts[place]
        return self.make("item", None, value, index)

    def row(self, value: Value, *loop: Value) -> Value:
        """Return the element of a value that a loop is at: the loop, and the step."""
        if value.kind == "phi":
            then, other = (self.row(each, *loop) for each in value.parts[1:])
            return self.choice(value.parts[0], then, other)
        return self.make("row", None, value, *loop)

    def choice(self, test: Value, then: Value, other: Value) -> Value:
        """Return one of two values, as a condition says."""
        if then is other:
            return then
        if test.kind == "const":
            return then if test.data else other
        both = then.kind == other.kind
        if both and then.kind in ("tuple", "dict") and then.data == other.data:
            if len(then.parts) == len(other.parts):
                pairs = zip(then.parts, other.parts, strict=True)
                return self.make(then.kind, then.data, *(self.choice(test, *p) for p in pairs))
        return self.make("phi", None, test, then, other)

    def equal(self, left: Value, right: Value) -> Value:
        """Return the comparison of two values."""
        if left.kind == right.kind == "const":
            return self.constant(left.data == right.data)
        if any(each.kind == "const" and each.data is False for each in (left, right)):
            other = left if right.kind == "const" else right
            return self.make("not", None, self.equal(other, self.constant(True)))
        none = next((each for each in (left, right) if each.kind == "const"), None)
        if none is not None and none.data is None:
            other = right if none is left else left
            if other.kind in ("tuple", "dict", "made", "fold", "function"):
                return self.constant(False)
        return self.make("eq", None, *sorted((left, right), key=lambda each: each.kind != "const"))

    def substituted(
        self, value: Value, leaf: Callable[[Value], Value | None], known: dict[Value, Value]
    ) -> Value:
        """Return a value with others in place of some of its parts."""
        found = known.get(value)
        if found is None:
            given = leaf(value)
            if given is not None:
                found = given
            elif not value.parts:
                found = value
            else:
                parts = [self.substituted(part, leaf, known) for part in value.parts]
                found = self._rebuilt(value, parts)
            known[value] = found
        return found

    def _rebuilt(self, value: Value, parts: list[Value]) -> Value:
        match value.kind:
            case "item":
                return self.item(parts[0], parts[1])
            case "row":
                return self.row(*parts)
            case "phi":
                return self.choice(parts[0], parts[1], parts[2])
            case "eq":
                return self.equal(parts[0], parts[1])
            case _:
                return self.make(value.kind, value.data, *parts)


Condition = tuple[Value, bool]


def contradict(first: Iterable[Condition], second: Iterable[Condition]) -> bool:
    """Return whether the conditions of two places are never met together, or may never be.

    Different conditions on the same origins may exclude each other: nothing is claimed then.
    """
    left, right = frozenset(first), frozenset(second)
    tests = [test for test, _ in left - right]
    others = [test for test, _ in right - left]
    return any(one is two or one.atoms & two.atoms for one in tests for two in others)


def path_of(value: Value) -> tuple[Value, tuple[Value, ...]]:
    """Return the value that others are items of, and the steps from it to this one.

    All keys of one seed are one value.
    """
    steps: list[Value] = []
    while value.kind in ("item", "row"):
        steps.append(value.parts[1] if value.kind == "item" else value)
        value = value.parts[0]
    return value.parts[0] if value.kind == "made" else value, tuple(reversed(steps))


def made_of(value: Value) -> Value:
    """Return the key, or the array of keys, that a value is an item of."""
    while value.kind in ("item", "row"):
        value = value.parts[0]
    return value


def overlap(first: tuple[Value, ...], second: tuple[Value, ...]) -> bool:
    """Return whether two items of one value certainly have a part in common."""
    for left, right in zip(first, second, strict=False):
        if left is right:
            continue
        rows = left.kind == "row", right.kind == "row"
        if all(rows):
            if left.parts[1] is right.parts[1]:
                return False  # two steps of one loop
            continue  # two loops over all
        if any(rows):
            other = right if rows[0] else left
            if other.kind != "const" or not isinstance(other.data, int):
                return False
            continue
        return False
    return True
