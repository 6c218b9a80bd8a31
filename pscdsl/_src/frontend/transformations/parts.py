"""The parts of a container of static values, whichever kind of container it is."""

from __future__ import annotations

from typing import Any

from pscdsl._src.frontend.values.values import MapValue, RecordValue, VectorValue
from pscdsl.typing.python_containers import is_sequence


def parts_of(value: Any) -> list[Any] | None:
    """The items in the order of the tree's leaves; None if it is no container."""
    if is_sequence(value):
        return list(value)
    if isinstance(value, RecordValue):
        return list(value.fields.values())
    if isinstance(value, MapValue):
        return [value.items[key] for key in sorted(value.items)]
    return list(value.items) if isinstance(value, VectorValue) else None
