"""Statements that ask whether a value is like another one: of its classes, with its dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from pscdsl.containers import field_names, plain_fields
from pscdsl.xla import trees
from pscdsl.xla.boot import ArrayImpl, is_committed, raw_aval
from pscdsl.xla.python_numbers import NUMBERS, limits
from pscdsl.xla.staging import Handed, Leaf, Stage, Unlike, memory

DEEPEST: Final = 8
"""How deep containers may lie in each other; Python has a limit for loops, 20."""


class Constants:
    """The classes, dtypes and functions that a function which is written out knows by a name."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[str, object]] = {}

    def name(self, value: object) -> str:
        """The name of one."""
        return self._known.setdefault(id(value), (f"known{len(self._known)}", value))[0]

    def names(self) -> dict[str, object]:
        """All of them, by name."""
        return dict(self._known.values())

    def key(self) -> tuple[int, ...]:
        """The same for the same ones, in the same order."""
        return tuple(self._known)


class Alike:
    """What asks for the class of each container and the dtype of each array within a value.

    Values are arrays, numbers and static values, in tuples, lists, NamedTuples and data classes; an
    Unlike for others.  `flatten` gives the leaves of a value; a static value has none.  Where a
    value is another one, `leave` is run.  `device` says whether the dtypes of device arrays are
    asked for, too: C++ does that where nothing else hangs on them.  `strict` says that NumPy's
    arrays are not taken where there was one of the device: these are staged elsewhere.
    """

    def __init__(
        self,
        constants: Constants,
        leave: str,
        flatten: Callable[[Any], tuple[Sequence[Any], Any]],
        *,
        device: bool,
        strict: bool,
    ) -> None:
        self.stage = Stage()
        """The arrays that leaves are written into."""
        self.writes: list[str] = []
        """The statements that write them."""
        self._constant = constants.name
        self._parts = 0
        self._leave = leave
        self._flatten = flatten
        self._device = device
        self._strict = strict

    def read(
        self, name: str, value: Any, changed: Sequence[Leaf | None]
    ) -> tuple[list[str], Handed]:
        """Statements that leave unless a variable holds the like of a value, and what C++ is given.

        That is the value, but for leaves that are `changed`, which tells of each of its leaves:
        these are arrays then, and what holds them a tuple of its parts.
        """
        if all(leaf is None for leaf in changed):
            return self.checks(name, value), name
        if value.__class__ in NUMBERS:
            assert changed[0] is not None
            return self._number(name, value, changed[0])
        if isinstance(value, np.ndarray | np.generic):
            assert changed[0] is not None
            return self._array(name, value, changed[0])
        first, parts = self._taken_apart(name, value)
        lines, done = [first], 0
        handed: list[Handed] = []
        for read, part in parts:
            self._parts += 1
            variable = f"part_{self._parts}"
            count = len(trees.flatten(part)[0])
            checks, given = self.read(variable, part, changed[done : done + count])
            lines += [f"{variable} = {read}", *checks]
            handed.append(given)
            done += count
        return lines, tuple(handed)

    def _taken_apart(self, name: str, value: Any) -> tuple[str, list[tuple[str, Any]]]:
        """What asks for a container of this kind, and how each of its parts is read."""
        kind: type[Any] = value.__class__
        other = f"{name}.__class__ is not {self._constant(kind)}"
        if kind is tuple or kind is list:
            other += f" or len({name}) != {len(value)}"
            parts = _items(name, value)
        else:
            fields = _fields(name, value)
            if fields is None:
                raise Unlike
            parts = fields
        return f"if {other}: {self._leave}", parts

    def _number(self, name: str, value: Any, number: Leaf) -> tuple[list[str], Handed]:
        dtype = number.aval.dtype
        between = limits(value.__class__, dtype)
        if between is None:
            raise Unlike
        low, high = between
        other = f"{name}.__class__ is not {self._constant(value.__class__)}"
        lines = [f"if {other} or not {low!r} <= {name} <= {high!r}: {self._leave}"]
        if number.staged:
            return lines, self._written(name, number)
        return lines, f"{self._constant(np.array)}({name}, {self._constant(dtype)})"

    def _array(self, name: str, value: Any, array: Leaf) -> tuple[list[str], Handed]:
        other = f"{name}.__class__ is not {self._constant(value.__class__)}"
        if value.__class__ is np.ndarray:
            other += f" or {name}.dtype is not {self._constant(value.dtype)}"
            other += f" or {name}.shape != {value.shape!r}"
        return [f"if {other}: {self._leave}"], self._written(name, array)

    def _written(self, name: str, leaf: Leaf) -> int:
        place = self.stage.add(leaf.aval)
        self.writes.append(f"{memory(place)}[()] = {name}")
        return place

    def checks(self, name: str, value: Any, depth: int = 0) -> list[str]:
        """Statements that leave unless what a variable holds is like this value."""
        if depth > DEEPEST:
            raise Unlike
        kind: type[Any] = value.__class__
        if kind is np.ndarray or kind is ArrayImpl:
            dtype = value.dtype if kind is np.ndarray else value.aval.dtype
            array, device, wanted = map(self._constant, (np.ndarray, ArrayImpl, dtype))
            committed, aval = map(self._constant, (is_committed, raw_aval))
            other = f"{name}.__class__ is not {device} or not {committed}({name})"
            if self._device:
                other += f" or {aval}({name}).dtype is not {wanted}"
            if self._strict and kind is ArrayImpl:
                return [f"if {other}: {self._leave}"]
            return [
                f"if {name}.dtype is not {wanted} if {name}.__class__ is {array} else {other}: "
                f"{self._leave}"
            ]
        first = f"if {name}.__class__ is not {self._constant(kind)}: {self._leave}"
        if issubclass(kind, np.generic):
            return [first]
        if kind is tuple or kind is list:
            return [first, *self._row(name, value, depth)]
        fields = _fields(name, value)
        if fields is not None:
            return [first, *self._each(fields, depth)]
        if self._flatten(value)[0] or field_names(kind) is not None:
            raise Unlike
        return [first]

    def first(self, name: str, value: Any, depth: int = 0) -> list[str]:
        """Statements that ask no more than how to come to the first array, and for its class.

        For values whose arrays are all device arrays, which C++ tells from everything else.
        """
        kind: type[Any] = value.__class__
        other = f"{name}.__class__ is not {self._constant(kind)}"
        if kind is ArrayImpl:
            return [f"if {other}: {self._leave}"]
        in_row = kind is tuple or kind is list
        parts = _items(name, value) if in_row else _fields(name, value)
        for place, (read, part) in enumerate(parts or ()):
            if self._flatten(part)[0]:
                if in_row:
                    other += f" or len({name}) <= {place}"
                inner = f"part{depth}"
                return [
                    f"if {other}: {self._leave}",
                    f"{inner} = {read}",
                    *self.first(inner, part, depth + 1),
                ]
        raise Unlike

    def _row(self, name: str, values: Sequence[Any], depth: int) -> list[str]:
        try:
            return self._all(name, values, depth)
        except Unlike:
            other = f"if len({name}) != {len(values)}: {self._leave}"
            return [other, *self._each(_items(name, values), depth)]

    def _all(self, name: str, values: Sequence[Any], depth: int) -> list[str]:
        """The checks for any number of items that are alike."""
        if not values:
            return [f"if {name}: {self._leave}"]
        each = f"item{depth}"
        first, *others = [self.checks(each, value, depth + 1) for value in values]
        if any(checks != first for checks in others):
            raise Unlike
        return [f"for {each} in {name}:", *[f"    {line}" for line in first]]

    def _each(self, parts: Sequence[tuple[str, Any]], depth: int) -> list[str]:
        part = f"part{depth}"
        lines: list[str] = []
        for read, value in parts:
            lines += [f"{part} = {read}", *self.checks(part, value, depth + 1)]
        return lines


def reads(name: str, value: Any) -> list[str]:
    """How each array within a variable is read, in containers as of `Alike`."""
    kind: type[Any] = value.__class__
    if kind is np.ndarray or kind is ArrayImpl:
        return [name]
    parts = _items(name, value) if kind is tuple or kind is list else _fields(name, value)
    return [read for part, inside in parts or () for read in reads(part, inside)]


def _items(name: str, values: Sequence[Any]) -> list[tuple[str, Any]]:
    """How each item of a variable is read, and what it is."""
    return [(f"{name}[{place}]", value) for place, value in enumerate(values)]


def _fields(name: str, value: Any) -> list[tuple[str, Any]] | None:
    """The same for the fields of a record; None for what has none, or has ways of its own."""
    kind: type[Any] = value.__class__
    names = field_names(kind) if tuple in kind.__mro__ else plain_fields(kind)
    return None if names is None else [(f"{name}.{each}", getattr(value, each)) for each in names]
