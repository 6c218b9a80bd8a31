"""Calls with NumPy arrays: Python looks at each array before C++ reads it.

jaxlib takes NumPy arrays as fast as device arrays, but tells their dtypes apart by size and kind
alone, whatever the byte order, and takes subclasses for the class, whatever they mask.  So each
array is looked at, in less time than a general way through the arguments takes: for arguments like
those of one call a function is written out, which asks for the class of each container and the
dtype of each array, and leaves calls with other arguments to another function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from pscdsl.containers import field_names, plain_fields
from pscdsl.xla.boot import ArrayImpl

ABSENT: Final = object()
"""Stands for an argument that is not given; the rest are not, either."""


DEEPEST: Final = 8
"""How deep containers may lie in each other; Python has a limit for loops, 20."""


class Unlike(ValueError):
    """These arguments are not of the kinds for which a function can be written."""


class HostCall:
    """The text of a function for arguments like those of one call.

    They are arrays and static values, in tuples, lists, dicts, NamedTuples and data classes; an
    Unlike for others, or for none.  `flatten` gives the leaves of an argument; a static value has
    none.
    """

    def __init__(
        self, args: Sequence[Any], flatten: Callable[[Any], tuple[Sequence[Any], Any]]
    ) -> None:
        self._flatten = flatten
        self._constants: dict[int, tuple[str, object]] = {}
        if not args:
            raise Unlike
        names = [f"x{place}" for place in range(len(args))]
        given = ", ".join(names)
        self._leave = f"return other(({given}, *more), named)"
        checks = [
            line
            for name, value in zip(names, args, strict=True)
            for line in self._checks(name, value, 0)
        ]
        lines = (
            f"def call({'=ABSENT, '.join(names)}=ABSENT, /, *more, **named):",
            f"if more or named: {self._leave}",
            *checks,
            f"return function({given})",
        )
        self._text = "\n    ".join(lines)

    def written(self, function: Callable[..., Any], other: Callable[..., Any]) -> Any:
        """The function: it calls `function(*args)`, or `other(args, kwargs)`."""
        made: dict[str, Any] = {"function": function, "other": other, "ABSENT": ABSENT}
        made.update(self._constants.values())
        exec(compile(self._text, "<pscdsl>", "exec"), made)
        return made["call"]

    def _checks(self, name: str, value: Any, depth: int) -> list[str]:
        """Statements that leave unless what a variable holds is like this value."""
        if depth > DEEPEST:
            raise Unlike
        kind: type[Any] = value.__class__
        if kind is np.ndarray or kind is ArrayImpl:
            dtype = value.dtype if kind is np.ndarray else value.aval.dtype
            array, device, wanted = map(self._constant, (np.ndarray, ArrayImpl, dtype))
            return [
                f"if {name}.dtype is not {wanted} if {name}.__class__ is {array} else "
                f"{name}.__class__ is not {device} or not {name}._committed: {self._leave}"
            ]
        first = f"if {name}.__class__ is not {self._constant(kind)}: {self._leave}"
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
