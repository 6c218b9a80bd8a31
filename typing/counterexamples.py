"""Counterexamples: a search, by total size, for the smallest sizes that refute a claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pscdsl.typing.facts import Fact, connected
from pscdsl.typing.probes import probe
from pscdsl.typing.search_space import Exhausted, SearchSpace

_MAX_STEPS = 30_000


def refutation(
    facts: Iterable[Fact], claim: Fact, lower_bound: Callable[[str], int]
) -> dict[str, int] | None:
    """The smallest sizes, of all names, that satisfy the facts and refute the claim.

    Facts that share no name with the others are searched by themselves.
    """
    found: dict[str, int] = {}
    about, *others = connected((claim, *facts))
    spaces = [SearchSpace(about[1:], claim, lower_bound)]
    spaces += [SearchSpace(group, None, lower_bound) for group in others]
    for space in spaces:
        part = smallest(space, _MAX_STEPS)
        if part is None:
            return None
        found |= part
    return found


def smallest(space: SearchSpace, steps: int) -> dict[str, int] | None:
    """The smallest sizes in a space, by sum, then in order of names; beyond the steps, any."""
    if not space.possible():
        return None
    space.steps = steps
    try:
        found = _Search(space).smallest() if space.free else None
    except Exhausted:
        found = None
    return probe(space) if found is None else found


class _Search:
    """A search through all sizes of one total after the other."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self.values: dict[str, list[int]] = {name: [] for name in space.free}
        self.reached = {name: space.floor[name] for name in space.free}
        floors = [space.floor[name] for name in space.order]
        self.least_rest = [sum(floors[position + 1 :]) for position in range(len(floors))]

    def smallest(self) -> dict[str, int] | None:
        base = sum(self.space.floor.values())
        for total in range(base, base + self.space.steps):
            self.space.spend()
            found = list(self.assign({}, 0, total))
            if found:
                return min(found, key=lambda env: [env[name] for name in self.space.names])
        return None

    def assign(self, env: dict[str, int], position: int, total: int) -> Iterator[dict[str, int]]:
        """The sizes of this total that extend a partial assignment."""
        space = self.space
        space.spend()
        if position == len(space.order):
            if total == 0 and space.refutes(env):
                yield dict(env)
            return
        name = space.order[position]
        most = total - self.least_rest[position]
        for value in self.candidates(env, position, most):
            if value > most:
                break
            if value < space.floor[name]:
                continue
            env[name] = value
            space.spend()
            if space.checked(position, env):
                yield from self.assign(env, position + 1, total - value)
            del env[name]

    def candidates(self, env: dict[str, int], position: int, most: int) -> Iterable[int]:
        """The values to try for the name at a position."""
        name = self.space.order[position]
        if name in self.space.defined:
            value = self.space.defined_value(name, env)
            return () if value is None else (value,)
        return (most,) if position == len(self.space.order) - 1 else self.free_values(name, most)

    def free_values(self, name: str, most: int) -> Iterator[int]:
        """The values of a name up to a bound that pass the facts about it alone."""
        values = self.values[name]
        yield from values
        while self.reached[name] <= most:
            self.space.spend()
            value = self.reached[name]
            self.reached[name] += 1
            if self.space.passes(name, value):
                values.append(value)
                yield value
