"""How messages speak of a static value: in the user's words, never by what it is in here.

A class whose instances stand for something of the user's has a method `description`.  What has none
is a value of CPython's, written as Python writes it if it is short, or it is called by its class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final

import numpy as np

from pscdsl._src.ir.builder import Value, Weak
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import DType
from pscdsl.typing.python_containers import is_constant, is_dtype, is_slice, is_tuple

MAX_DEPTH: Final = 3
"""Deeper tuples are not shown."""
MAX_SHOWN: Final = 20
"""Longer tuples are cut short in messages."""
_ATOMS: Final = (bool, int, float, complex, str, bytes, type(None), range)
"""Types whose values Python writes as the user would."""
_CONTAINERS: Final[dict[type[Any], str]] = {
    list: "a list",
    dict: "a dict",
    set: "a set",
    frozenset: "a frozenset",
}


def describe(value: object, depth: int = 0) -> str:
    """A value for messages: arrays by their type, the rest by what it is."""
    description = getattr(type(value), "description", None)
    if isinstance(value, Value | Weak) and description is None:
        return str(value.type)
    if isinstance(value, Dim):
        return f"the size {value}"
    if isinstance(value, DType):
        return f"the dtype {value}"
    if value.__class__ in _ATOMS:
        return _written(value)
    if value is Ellipsis:
        return "`...`"
    if description is not None:
        return str(description(value))
    if isinstance(value, Enum):
        return f"`{type(value).__name__}.{value.name}`"
    if is_tuple(value):
        rest = ", …" if len(value) > MAX_SHOWN else ""
        comma = "," if len(value) == 1 else ""
        if depth == MAX_DEPTH:
            return "a tuple"
        shown = [describe(each, depth + 1) for each in value[:MAX_SHOWN]]
        return f"({', '.join(shown)}{comma}{rest})"
    if is_slice(value):
        bounds = value.start, value.stop, *(() if value.step is None else (value.step,))
        if not all(each is None or isinstance(each, int | Dim) for each in bounds):
            return "a slice"
        return f"the slice `{':'.join('' if each is None else str(each) for each in bounds)}`"
    if is_constant(value):
        return "a NumPy array" if isinstance(value, np.ndarray) else shortened(repr(value))
    if is_dtype(value):
        return f"the dtype {value}"
    if value.__class__ in _CONTAINERS:
        return _CONTAINERS[value.__class__]
    name = _name_of(value)
    if hasattr(value, "apply"):
        return f"the function `{name}`" if name else "a function"
    if type(value).__module__.partition(".")[0] == "pscdsl":
        return f"`{name}`" if name else "a value of another kind"
    return f"an object of the class `{type(value).__qualname__}`"


def _name_of(value: object) -> str:
    """The name by which the user knows a value; empty if it has none."""
    name = getattr(value, "name", None)
    if not isinstance(name, str) or name.startswith("<"):
        return ""
    return name.removeprefix("builtins.")


def _written(value: object) -> str:
    try:
        return shortened(repr(value))
    except ValueError:  # an integer with more digits than Python writes
        return "a very large integer"


def not_taken(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """What is wrong with a call of which no more is known."""
    given = [*map(describe, args), *(f"{name}={describe(x)}" for name, x in kwargs.items())]
    return f"does not take these arguments: {', '.join(given)}"


def near_keyword(name: str, known: Iterable[str]) -> str:
    """The question whether another keyword is meant, empty if none is alike."""
    near = get_close_matches(name, sorted(known), 1) if name else []
    return f"did you mean `{near[0]}`?" if near else ""


def shortened(text: str, limit: int = 200) -> str:
    """A text for messages, cut short if it is long."""
    return text if len(text) <= limit else f"{text[:limit]}…"
