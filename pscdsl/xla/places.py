"""Where the arguments of a call go: by position, by name, or where none is given, by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import is_not
from typing import Any, Final, NamedTuple, TypeAlias

from pscdsl.xla import trees
from pscdsl.xla.staging import Handed

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


class Apart(NamedTuple):
    """How a container was taken apart: in its place is a tuple of its parts."""

    structure: Any
    parts: tuple[Apart | None, ...]
    """The same for those parts that were taken apart themselves."""


def taken_apart(value: Any, handed: Handed) -> Apart | None:
    """How a value was taken apart, if there is a tuple of what is handed over in its place.

    Of what is not taken apart nothing is kept, since at another call it may be of another shape.
    """
    if not isinstance(handed, tuple):
        return None
    whole: tuple[list[Any], Any] = trees.registry.flatten(value, partial(is_not, value))
    return Apart(whole[1], tuple(map(taken_apart, whole[0], handed)))


def together(value: Any, apart: Apart | None) -> Any:
    """What was taken apart, put together."""
    if apart is None:
        return value
    return apart.structure.unflatten(list(map(together, value, apart.parts)))


class Places(NamedTuple):
    """How arguments lie in one row: those given by position, then the others."""

    parameters: tuple[Parameter, ...]
    positional: int
    apart: Mapping[int, Apart] = {}
    """Those that are taken apart, by place."""

    def given(self, row: Sequence[Any]) -> tuple[Args, Kwargs]:
        """The row as arguments of a call."""
        values = [together(value, self.apart.get(place)) for place, value in enumerate(row)]
        names = [each.name for each in self.parameters[self.positional :]]
        rest = zip(names, values[self.positional :], strict=True)
        return tuple(values[: self.positional]), dict(rest)

    def partly(self, row: Sequence[Any]) -> tuple[list[Any], Kwargs]:
        """The row as arguments where some are ABSENT; after the first of these all are named."""
        args: list[Any] = []
        kwargs: Kwargs = {}
        for place, (each, value) in enumerate(zip(self.parameters, row, strict=True)):
            if value is ABSENT:
                continue
            if place == len(args) < self.positional:
                args.append(value)
            else:
                kwargs[each.name] = value
        return args, kwargs


def places_of(parameters: Sequence[Parameter], positional: int, names: Iterable[str]) -> Places:
    """How so many arguments by position, and those of these names, lie in a row."""
    unnamed = Parameter("", named=False)
    first = [*parameters[:positional], *[unnamed] * (positional - len(parameters))]
    by_name = {each.name: each for each in parameters}
    rest = [by_name.get(name, Parameter(name, positional=False)) for name in names]
    return Places((*first, *rest), positional)
