"""Choices by keyword for a signature, `kernel.lower(dtype="f32", n=8)`, and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.frontend.values import Poisoned, RecordValue
from pscdsl._src.language.elements import ElementType
from pscdsl._src.language.instances import assemble
from pscdsl.typing.array_types import StaticType
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import dtype
from pscdsl.typing.python_containers import is_tuple
from pscdsl.typing.signatures import Choice, Signature

# Choices by keyword for a signature: `kernel.lower(dtype="f32", n=8)`.


def chosen(definition: Definition, signature: Signature, fixed: Mapping[str, Any]) -> Choice:
    """Return the choice that keywords name; the first that is admitted if they leave it open."""
    open_parts = signature.open_parts()
    unknown = fixed.keys() - open_parts.keys()
    if unknown:
        known = ", ".join(open_parts) or "nothing"
        raise TypeError(f"{definition.name} leaves {known} open, not {sorted(unknown)[0]}")
    choices = signature.choices() or [Choice()]
    for choice in choices:
        if not fits(choice, fixed):
            continue
        try:
            definition.instance(choice)
        except Excluded:
            continue
        except (Failure, Poisoned):
            pass
        return choice
    first = choices[0]
    made = _made(definition, signature, _parts(first) | dict(fixed))
    return replace(made, trees=first.trees, keys=first.keys)


def fits(choice: Choice, fixed: Mapping[str, Any]) -> bool:
    """Return whether a choice agrees with the keywords."""
    parts = _parts(choice)
    return all(parts.get(key) in (value, _dtype_name(value)) for key, value in fixed.items())


def _parts(choice: Choice) -> dict[str, Any]:
    """Return the parts of a choice by their keywords."""
    parts: dict[str, Any] = {k: v.name for k, v in choice.dtypes}
    parts |= dict(choice.ranks) | {f"len({k})": v for k, v in choice.lengths}
    parts |= {k: v.value for k, v in choice.statics}
    return parts | {f"{k} is None": not v for k, v in choice.given}


def _dtype_name(value: Any) -> Any:
    """Return the name of a dtype, in whichever form it is given; anything else as it is."""
    return value.__name__ if isinstance(value, ElementType) else getattr(value, "name", value)


def _made(definition: Definition, signature: Signature, fixed: Mapping[str, Any]) -> Choice:
    kinds = signature.open_parts()
    missing = kinds.keys() - fixed.keys()
    if missing:
        raise TypeError(f"{definition.name}: say what {', '.join(sorted(missing))} is")
    items = [(key, kinds[key], value) for key, value in fixed.items()]
    return Choice(
        tuple((k, dtype(_dtype_name(v))) for k, kind, v in items if kind == "dtype"),
        tuple((k, v) for k, kind, v in items if kind == "rank"),
        tuple((k[len("len(") : -1], v) for k, kind, v in items if kind == "length"),
        (),
        tuple((k, StaticType(v)) for k, kind, v in items if kind == "static"),
        tuple((k.removesuffix(" is None"), not v) for k, kind, v in items if kind == "absence"),
    )


# The parameters of kernels that Python has no function of, with defaults as callers give them.


def signature(definition: Definition) -> inspect.Signature:
    """Return the parameters as a Python signature."""
    defaults = {name: as_argument(value) for name, value in definition.defaults.items()}
    return definition.closure.signature(defaults)


def as_argument(value: Any) -> Any:
    """Return a known value as a caller would give it, if its classes are loaded."""
    if isinstance(value, RecordValue) and value.cls.constructor is not None:
        names = [name for name in value.cls.field_names() if name in value.fields]
        return assemble(value.cls, names, [as_argument(value.fields[name]) for name in names])
    if is_tuple(value):
        return tuple(map(as_argument, value))
    return value
