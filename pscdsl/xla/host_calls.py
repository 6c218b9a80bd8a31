"""Calls with NumPy arrays and numbers: Python looks at each before C++ reads it.

jaxlib takes NumPy arrays as fast as device arrays, but tells their dtypes apart by size and kind
alone, whatever the byte order, and takes subclasses for the class, whatever they mask.  So each
array is looked at, in less time than a general way through the arguments takes: for arguments like
those of one call a function is written out, which asks for the class of each container and the
dtype of each array, and leaves calls with other arguments to another function.  Python's numbers
are given their dtype there, in which C++ does not have to ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final

import numpy as np

from pscdsl.containers import field_names, plain_fields
from pscdsl.xla.boot import ArrayImpl, Aval

ABSENT: Final = object()
"""Stands for an argument that is not given; the rest are not, either."""
NUMBERS: Final[frozenset[type]] = frozenset((bool, int, float, complex))
"""The classes of Python's numbers."""
DEEPEST: Final = 8
"""How deep containers may lie in each other; Python has a limit for loops, 20."""
_READ: Final = frozenset(np.dtype(code) for code in ("?", *"bhiqBHIQ", *"efd"))
"""The dtypes of numbers that C++ reads."""


class Unlike(ValueError):
    """These arguments are not of the kinds for which a function can be written."""


class HostCall:
    """The text of a function for arguments like those of one call.

    They are arrays and static values, in tuples, lists, dicts, NamedTuples and data classes; an
    Unlike for others, or for none.  `flatten` gives the leaves of an argument; a static value has
    none.  `used` are the leaves that a program takes, of these `types`, and `static` the places of
    static arguments: so the dtypes of numbers are known.
    """

    def __init__(
        self,
        args: Sequence[Any],
        flatten: Callable[[Any], tuple[Sequence[Any], Any]],
        used: Sequence[Any] = (),
        types: Sequence[Aval] = (),
        static: Collection[int] = (),
    ) -> None:
        self._flatten = flatten
        self._constants: dict[int, tuple[str, object]] = {}
        if not args:
            raise Unlike
        self.numbers = _numbers(args, used, types, static)
        """The dtypes of numbers, by the places of the arguments."""
        names = [f"x{place}" for place in range(len(args))]
        given = ", ".join(names)
        self._given = dict(zip(names, names, strict=True))
        self._leave = f"return leave(({given}, *more), named)"
        checks = [
            line
            for place, (name, value) in enumerate(zip(names, args, strict=True))
            for line in (
                self._number(name, value, place)
                if place in self.numbers
                else self._checks(name, value, 0)
            )
        ]
        lines = (
            f"def call({'=ABSENT, '.join(names)}=ABSENT, /, *more, **named):",
            f"if more or named: {self._leave}",
            *checks,
            f"return function({', '.join(self._given.values())})",
        )
        self._text = "\n    ".join(lines)
        self.key: Hashable = (self._text, tuple(self._constants))
        """The same for all arguments that a function takes."""

    def written(self, function: Callable[..., Any], other: Callable[..., Any]) -> Any:
        """The function: it calls `function` with what C++ reads, or `other` as it was called."""

        def leave(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return other(*[x for x in args if x is not ABSENT], **kwargs)

        made: dict[str, Any] = {"function": function, "leave": leave, "ABSENT": ABSENT}
        made.update(self._constants.values())
        exec(compile(self._text, "<pscdsl>", "exec"), made)
        return made["call"]

    def given(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """What the function hands over for such arguments."""
        numbers = self.numbers
        return tuple([np.array(x, numbers[i]) if i in numbers else x for i, x in enumerate(args)])

    def _number(self, name: str, value: Any, place: int) -> list[str]:
        dtype = self.numbers[place]
        most = _most(value.__class__, dtype)
        if most is None:
            raise Unlike
        low, high = most
        kind = self._constant(value.__class__)
        self._given[name] = f"{self._constant(np.array)}({name}, {self._constant(dtype)})"
        return [
            f"if {name}.__class__ is not {kind} or not {low!r} <= {name} <= {high!r}: {self._leave}"
        ]

    def _checks(self, name: str, value: Any, depth: int) -> list[str]:
        """Statements that leave unless what a variable holds is like this value."""
        if depth > DEEPEST:
            raise Unlike
        kind: type[Any] = value.__class__
        if kind is np.ndarray or kind is ArrayImpl:
            dtype = value.dtype if kind is np.ndarray else value.aval.dtype
            array, device, wanted = map(self._constant, (np.ndarray, ArrayImpl, dtype))
            other = f"{name}.__class__ is not {device} or not {name}._committed"
            if self.numbers:  # whose dtype may be that of arrays
                other += f" or {name}.aval.dtype is not {wanted}"
            return [
                f"if {name}.dtype is not {wanted} if {name}.__class__ is {array} else {other}: "
                f"{self._leave}"
            ]
        first = f"if {name}.__class__ is not {self._constant(kind)}: {self._leave}"
        if issubclass(kind, np.generic):
            return [first]
        if kind is tuple or kind is list:
            return [first, *self._items(name, value, depth)]
        if kind is dict:
            return [first, *self._alike(name, f"{name}.values()", value.values(), depth)]
        names = field_names(kind) if tuple in kind.__mro__ else plain_fields(kind)
        if names is not None:
            fields = [(f"{name}.{field}", getattr(value, field)) for field in names]
            return [first, *self._each(fields, depth)]
        if self._flatten(value)[0] or field_names(kind) is not None:
            raise Unlike
        return [first]

    def _items(self, name: str, values: Sequence[Any], depth: int) -> list[str]:
        try:
            return self._alike(name, name, values, depth)
        except Unlike:
            items = [(f"{name}[{place}]", value) for place, value in enumerate(values)]
            return [f"if len({name}) != {len(items)}: {self._leave}", *self._each(items, depth)]

    def _alike(self, name: str, items: str, values: Collection[Any], depth: int) -> list[str]:
        """The checks for any number of items that are alike."""
        if not values:
            return [f"if {name}: {self._leave}"]
        each = f"item{depth}"
        first, *others = [self._checks(each, value, depth + 1) for value in values]
        if any(checks != first for checks in others):
            raise Unlike
        return [f"for {each} in {items}:", *[f"    {line}" for line in first]]

    def _each(self, parts: Sequence[tuple[str, Any]], depth: int) -> list[str]:
        part = f"part{depth}"
        lines: list[str] = []
        for read, value in parts:
            lines += [f"{part} = {read}", *self._checks(part, value, depth + 1)]
        return lines

    def _constant(self, value: object) -> str:
        """The name by which the function knows a class or dtype."""
        return self._constants.setdefault(id(value), (f"known{len(self._constants)}", value))[0]


def _most(kind: type[Any], dtype: np.dtype[Any]) -> tuple[float, float] | None:
    """Between which of Python's numbers each has its own, or nearest, number of a dtype."""
    if dtype not in _READ:
        return None
    if kind is bool:
        return (False, True) if dtype.kind == "b" else None
    if kind is int and dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if dtype.kind != "f" or kind not in (int, float):
        return None
    limits = np.finfo(dtype)
    if kind is float:
        return float(limits.min), float(limits.max)
    exact = 2 ** (limits.nmant + 1)
    return -exact, exact


def _numbers(
    args: Sequence[Any], used: Sequence[Any], types: Sequence[Aval], static: Collection[int]
) -> dict[int, np.dtype[Any]]:
    found: dict[int, np.dtype[Any]] = {}
    for place, value in enumerate(args):
        if value.__class__ not in NUMBERS or place in static:
            continue
        places = [k for k, leaf in enumerate(used) if leaf is value]
        if len(places) != 1 or sum(x is value for x in args) != 1:
            raise Unlike  # Python has one object for some numbers
        found[place] = types[places[0]].dtype
    return found
