"""Where the arguments of a call go: by position, by name, or where none is given, by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]

ABSENT: Final = object()
"""Stands for an argument that is not given, and for no default."""


class Parameter(NamedTuple):
    """How one parameter of a function is given."""

    name: str
    default: Any = ABSENT
    positional: bool = True
    """Whether it may be given by position."""
    named: bool = True
    """Whether it may be given by name."""
    constant: Any = ABSENT
    """A default that stays away where programs have it as a constant; ABSENT if it never does."""


def placed(parameters: Sequence[Parameter], args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """The same arguments: by position as many as can be, the others in order, with defaults.

    Arguments that are wrong stay so.  Without parameters all arguments stay as they are.
    """
    if len(args) == len(parameters) and not kwargs:
        return args, kwargs
    rest = dict(kwargs)
    late = list(args)
    ordered: Kwargs = {}
    gap = False
    for each in parameters[len(args) :]:
        found = rest.pop(each.name, each.default) if each.named else each.default
        if each.positional and not gap and found is not ABSENT:
            late.append(found)
        elif found is not ABSENT:
            ordered[each.name] = found
        gap = gap or found is ABSENT
    return tuple(late), {**ordered, **rest}
