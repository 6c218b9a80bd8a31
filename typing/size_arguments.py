"""Sizes given to a record: `Layer["d 2*h"]`, and `Window["o i 3 3"]` where `*window` takes two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from pscdsl.typing.dims import Dim, Size, substitute
from pscdsl.typing.notation import DimSpec, Variadic

Renaming: TypeAlias = Mapping[str, tuple[DimSpec, ...]]
"""What stands in place of a name: one size, or any number for a group, `*window`."""


def given(names: Sequence[str], arguments: Sequence[DimSpec]) -> Renaming | None:
    """What each name stands for; None if the arguments do not fit them."""
    one_each: list[tuple[DimSpec, ...]] = [(each,) for each in arguments]
    groups = [place for place, name in enumerate(names) if name.startswith("*")]
    if not groups:
        if len(arguments) != len(names):
            return None
        pieces = one_each
    else:
        start = groups[0]
        after = len(names) - start - 1
        end = len(arguments) - after
        if len(groups) > 1 or end < start:
            return None
        pieces = [*one_each[:start], tuple(arguments[start:end]), *one_each[end:]]
    found = dict(zip(names, pieces, strict=True))
    for name, piece in found.items():
        open_parts = sum(isinstance(each, Variadic) for each in piece)
        if open_parts > int(name.startswith("*")):
            return None
    return found


def applied(dims: Iterable[DimSpec], renaming: Renaming) -> tuple[DimSpec, ...]:
    """A shape with what the names stand for; a name given as `_` keeps its own."""
    sizes: dict[str, Size] = {}
    for name, piece in renaming.items():
        if len(piece) == 1 and isinstance(piece[0], int | Dim) and not name.startswith("*"):
            sizes[name] = piece[0]

    def one(dim: DimSpec) -> tuple[DimSpec, ...]:
        if isinstance(dim, Dim):
            return (substitute(dim, sizes),)
        if isinstance(dim, Variadic):
            return renaming.get(str(dim), (dim,))
        return (dim,)

    return tuple(chain.from_iterable(map(one, dims)))
