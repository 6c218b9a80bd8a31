"""Values known while checking: their identity, and the types they belong to."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, TypeAlias, cast

from pscdsl.typing.dims import Dim

# The identity of values known while checking: two are the same if no program tells them apart.
#
# Python's own equality does not decide this: `1 == 1.0 == True`, and `0.0 == -0.0`, also in tuples.


def exact(value: object) -> Hashable:
    """Return a key for a value; equal keys belong to values that no program tells apart.

    Raise TypeError for a value that cannot be hashed, such as one that may change. NaN has one key
    for each bit pattern. An object of a class that defines equality is compared by it, and a data
    class also by its fields.
    """
    hash(value)
    kind = value.__class__
    if isinstance(value, float):
        return kind, struct.pack("d", value)
    if isinstance(value, complex):
        return kind, struct.pack("dd", value.real, value.imag)
    if isinstance(value, str | bytes | range):
        return kind, value
    parts = _parts(value)
    if parts is None:
        return kind, value
    return kind, value if _is_of_dataclass(value) else None, parts


def equality_tells(value: object) -> bool:
    """Return whether all values of its class that equal a value in Python have its key."""
    if isinstance(value, float):
        return value != 0.0
    if isinstance(value, complex):
        return value.real != 0 and value.imag != 0
    return isinstance(value, str | bytes | range) or not _holds_numbers(_parts(value))


def _holds_numbers(key: Hashable) -> bool:
    if isinstance(key, tuple | frozenset):
        return any(map(_holds_numbers, cast("Iterable[Hashable]", key)))
    return isinstance(key, type) and issubclass(key, int | float | complex)


def _parts(value: object) -> Hashable:
    """Return the keys of a value's parts; None if it has no known parts."""
    known: Any = value
    if isinstance(value, Mapping):
        return frozenset([(exact(key), exact(each)) for key, each in known.items()])
    if isinstance(value, Set):
        return frozenset(map(exact, known))
    if isinstance(value, Sequence):
        return tuple(map(exact, known))
    if _is_of_dataclass(value) and known.__dataclass_params__.eq:
        return tuple(
            [exact(getattr(value, field.name)) for field in fields(known) if field.compare]
        )
    return None


def _is_of_dataclass(value: object) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


# Membership of values in declared static types: `int`, `tuple[int, ...]`, `Literal`.
#
# Of other types (classes, `Callable`, protocols) any value is taken: type checkers see to these.


@dataclass(frozen=True, slots=True)
class Instance:
    """The instances of a Python class, and of others that count as its subclasses (PEP 484)."""

    cls: type


@dataclass(frozen=True, slots=True)
class OneOf:
    """`Literal["sin", "cos"]`, or `None`."""

    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """`tuple[int, str]`; if repeated, `tuple[int, ...]`."""

    forms: tuple[StaticForm, ...]
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Either:
    """`A | B`."""

    forms: tuple[StaticForm, ...]


StaticForm: TypeAlias = "Instance | OneOf | Items | Either | None"
"""A form of static values; None is an unknown type."""

_ALSO: Final[dict[type, tuple[type, ...]]] = {float: (int,), complex: (int, float)}


def admits(form: StaticForm, value: Any) -> bool:
    """Return whether a value is of the type; a symbolic size is an integer."""
    if form is None:
        return True
    if isinstance(form, Instance):
        if isinstance(value, Dim):
            return issubclass(int, (form.cls, *_ALSO.get(form.cls, ())))
        return isinstance(value, (form.cls, *_ALSO.get(form.cls, ())))
    if isinstance(form, OneOf):
        return exact(value) in map(exact, form.values)
    if isinstance(form, Either):
        return any(admits(each, value) for each in form.forms)
    if not issubclass(value.__class__, tuple):
        return False
    forms = form.forms * len(value) if form.repeated else form.forms
    return len(forms) == len(value) and all(map(admits, forms, value))
