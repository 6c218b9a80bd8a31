"""Where the arguments of a call go: by position, by name, or where none is given, by default."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from operator import is_not
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from pscdsl.xla import trees
from pscdsl.xla.staging import Handed

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
T = TypeVar("T")

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
    leading: bool = False
    """Whether programs take it first, the last such one ahead; its default is a number."""
    donated: bool = False
    """Whether results may take its memory, so that C++ has no constant for it."""


def programs_order(items: Iterable[T], leads: Callable[[T], bool]) -> list[T]:
    """The order in which programs take what belongs to parameters: the last that leads is ahead."""
    known = list(items)
    first = [each for each in known if leads(each)]
    return [*reversed(first), *[each for each in known if not leads(each)]]


def left_out(parameters: Sequence[Parameter], args: Args, kwargs: Kwargs) -> list[Parameter]:
    """The parameters that C++ may hand a program by itself: the leading ones up to one given."""
    given = {each.name for each in parameters[: len(args)]}.union(kwargs)

    def is_constant(each: Parameter) -> bool:
        return each.leading and each.name not in given and not each.donated

    return list(takewhile(is_constant, programs_order(parameters, lambda each: each.leading)))


def placed(
    parameters: Sequence[Parameter], args: Args, kwargs: Kwargs, without: Sequence[Parameter] = ()
) -> tuple[Args, Kwargs]:
    """The same arguments: by position as many as can be, the others in order, with defaults.

    Those `without` which it is to be done stay away.  Arguments that are wrong stay so.  Without
    parameters all arguments stay as they are.
    """
    if len(args) == len(parameters) and not kwargs:
        return args, kwargs
    away = {each.name for each in without}
    rest = dict(kwargs)
    late = list(args)
    ordered: Kwargs = {}
    gap = False
    for each in parameters[len(args) :]:
        default = ABSENT if each.name in away else each.default
        found = rest.pop(each.name, default) if each.named else default
        if each.positional and not gap and found is not ABSENT:
            late.append(found)
        elif found is not ABSENT:
            ordered[each.name] = found
        gap = gap or found is ABSENT
    return tuple(late), {**ordered, **rest}


def beside(constants: Sequence[Parameter], used: Sequence[Any]) -> Sequence[Any] | None:
    """What a program takes after those that are left out; None if it does not take these first."""
    if any(each.default is not leaf for each, leaf in zip(constants, used, strict=False)):
        return None
    return used[len(constants) :]


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

    @property
    def order(self) -> Sequence[int]:
        """The places in the order in which programs take what lies there."""
        places = range(len(self.parameters))
        return programs_order(places, lambda place: self.parameters[place].leading)

    def given(self, handed: Sequence[Any]) -> tuple[Args, Kwargs]:
        """The row as arguments of a call, from what is handed over in `order`."""
        row = dict(zip(self.order, handed, strict=True))
        values = [together(row[place], self.apart.get(place)) for place in range(len(row))]
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
