"""How much static data a value holds: what bounds the memory and the time of a check."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pscdsl._src.frontend.values.values import MapValue, RecordValue, VectorValue
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_dict, is_sequence

MAX_ITEMS = 100_000
"""No static value holds more items or characters."""
MAX_BITS = 4096
"""No static integer is longer."""
_WIDE = re.compile(r"[0-9]{6}")


def weight(value: Any) -> int:
    """The items and characters in a value; parts that are shared count at each place.

    Sharing makes a value that is small in memory and endless to walk through, so the count ends
    soon after MAX_ITEMS.
    """
    total, due = 0, [value]
    while due and total <= MAX_ITEMS:
        each = due.pop()
        total += 1
        if isinstance(each, str | bytes):
            total += len(each)
            continue
        items: Sequence[Any] = ()
        if is_sequence(each):
            items = each
        elif is_dict(each):
            items = [*each, *each.values()]
        elif isinstance(each, RecordValue):
            items = list(each.fields.values())
        elif isinstance(each, MapValue):
            items = list(each.items.values())
        elif isinstance(each, VectorValue):
            items = each.items
        if total + len(due) + len(items) > MAX_ITEMS + 1:
            return MAX_ITEMS + 2
        due.extend(items)
    return total - 1


def require_small(value: Any) -> int:
    """The weight of a value; a Failure if it is too large."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise Failure(TooLarge(what=f"an integer of more than {MAX_BITS} bits"))
    found = weight(value)
    if found > MAX_ITEMS:
        kind = "a text" if isinstance(value, str | bytes) else "a value"
        unit = "characters" if isinstance(value, str | bytes) else "items"
        raise Failure(TooLarge(what=f"{kind} of more than {MAX_ITEMS} {unit}"))
    return found


def require_narrow(spec: str) -> None:
    """A Failure if a format asks for a text that is too long."""
    if _WIDE.search(spec):
        raise Failure(TooLarge(what=f"a text of more than {MAX_ITEMS} characters"))


def require_short(name: str, text: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """A Failure if a method of a string would make a text that is too long."""
    given = [*args, *kwargs.values()]
    length = len(text)
    if name == "join":
        length = sum(len(str(each)) + length for each in (args[0] if args else ()))
    elif name == "replace" and len(args) >= 2 and all(isinstance(each, str) for each in args[:2]):
        length += (text.count(args[0]) if args[0] else length + 1) * len(args[1])
    elif name in ("format", "%"):
        nested = (name == "%" and "*" in text) or re.search(r"\{[^{}]*\{", text) is not None
        wide = nested and any(isinstance(each, int) and abs(each) > MAX_ITEMS for each in given)
        length += MAX_ITEMS if wide or _WIDE.search(text) else sum(map(weight, given))
    if length > MAX_ITEMS:
        raise Failure(TooLarge(what=f"a text of more than {MAX_ITEMS} characters"))
