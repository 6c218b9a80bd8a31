"""Records, and the containers in them, as folded trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.language.records import Record, field_names
from pscdsl._src.notebook import arrays, markup
from pscdsl._src.xla.runtime.devices import is_result, to_numpy
from pscdsl.typing.python_containers import is_constant, is_dict, is_sequence

_DEEPEST = 12
_MOST = 200
"""The most parts of one container."""
_LENGTH = 200
"""The most characters of a value on its line."""


def html(record: Record) -> str:
    """Return a record with its fields folded."""
    return markup.box(_part("", record, 0, opened=True))


def _part(name: str, value: Any, depth: int, *, opened: bool = False) -> str:
    """Return a part of a record: a line of its own, with what is in it below."""
    head = f"{markup.code(name)}: " if name else ""
    array = _as_numpy(value)
    if array is not None:
        kind = head + markup.muted(arrays.kind(array))
        if not array.ndim:
            return f"<div>{kind} {markup.code(_short(array))}</div>"
        return markup.details(kind, arrays.content(array))
    parts = None if depth > _DEEPEST else _parts(value)
    if parts is None:
        return f"<div>{head}{markup.code(_short(repr(value)))}</div>"
    inner = "".join(_part(key, each, depth + 1) for key, each in parts[:_MOST])
    if len(parts) > _MOST:
        inner += f"<div>{markup.muted(f'… {len(parts) - _MOST:,} more')}</div>"
    about = markup.muted(f"{len(parts)} part{'s' * (len(parts) != 1)}")
    return markup.details(
        f"{head}{markup.code(type(value).__name__)} {about}", inner, opened=opened
    )


def _as_numpy(value: Any) -> NDArray | None:
    """Return an array as one of NumPy's; None for other values, and for donated arrays."""
    if is_result(value):
        return None if value.is_deleted() else to_numpy(value)
    return np.asarray(value) if is_constant(value) else None


def _parts(value: Any) -> Sequence[tuple[str, Any]] | None:
    """Return the parts of a container by name; None if it is no container."""
    names = field_names(value.__class__)
    if names is not None:
        return [(name, getattr(value, name, "<missing>")) for name in names]
    if is_dict(value):
        return [(_short(repr(key)), each) for key, each in value.items()]
    if is_sequence(value):
        return [(str(place), each) for place, each in enumerate(value)]
    return None


def _short(value: object) -> str:
    shown = str(value)
    return shown if len(shown) <= _LENGTH else f"{shown[:_LENGTH]}…"
