"""The arguments of a call in a row, with their leaves as a program takes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pscdsl.xla import trees
from pscdsl.xla.places import ABSENT, Args, Kwargs, Places


class Row(NamedTuple):
    """Arguments, and how they lie."""

    places: Places
    values: Args

    def leaves(self, is_static: Callable[[int, str], bool]) -> list[Any]:
        """Their leaves; ABSENT for those of static arguments."""
        found: list[Any] = []
        for place, (each, value) in enumerate(
            zip(self.places.parameters, self.values, strict=True)
        ):
            inside = trees.flatten(value)[0]
            static = is_static(place, each.name)
            found += [ABSENT] * len(inside) if static else inside
        return found

    def given(self) -> tuple[Args, Kwargs]:
        """The arguments of the call."""
        return self.places.given(self.values)

    def changed(self, others: Mapping[int, Any]) -> tuple[Args, Kwargs]:
        """The same with `others` in the places of some leaves."""
        leaves, structure = trees.flatten(self.values)
        for place, leaf in others.items():
            leaves[place] = leaf
        return self.places.given(structure.unflatten(leaves))

    def lost(self, names: Collection[str], taken: Collection[int] | None) -> dict[int, bool]:
        """The places of the arguments of these names whose memory calls take: whether all of it.

        `taken` are the places of the leaves of which it is taken; None if that is not known.
        """
        found: dict[int, bool] = {}
        done = 0
        for place, value in enumerate(self.values):
            inside = range(done, done := done + len(trees.flatten(value)[0]))
            if self.places.parameters[place].name in names:
                known = [taken is not None and leaf in taken for leaf in inside]
                if taken is None or any(known):
                    found[place] = all(known)
        return found


def taken_from(
    used: Sequence[Any], leaves: Sequence[Any], places: Collection[int]
) -> set[int] | None:
    """Which of the leaves those are that a program uses at these places; None if it is unclear."""
    known = trees.places(used, leaves)
    return None if known is None else {known[place] for place in places}
