"""Which values are of a type that is declared for static ones: `int`, `tuple[int, ...]`, `Literal`.

Of other types (classes, `Callable`, protocols) any value is taken: type checkers see to these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pscdsl.typing.dims import Dim
from pscdsl.typing.exact import exact


@dataclass(frozen=True, slots=True)
class Instance:
    """The instances of a class of Python's own, and what counts as one (PEP 484)."""

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
"""None is a type of which we know nothing."""

_ALSO: Final[dict[type, tuple[type, ...]]] = {float: (int,), complex: (int, float)}


def admits(form: StaticForm, value: Any) -> bool:
    """Whether a value is of the type; a size that is a symbol is an integer."""
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
