"""The sizes that a search goes through: their names in order, each with the facts to check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pscdsl.typing import dims
from pscdsl.typing.dims import DimTooLarge, Size
from pscdsl.typing.facts import Fact


class Exhausted(Exception):
    """A search has used up its steps."""


class SearchSpace:
    """Names to be given values one after the other, so that facts hold and a claim fails.

    Names that a fact defines by others come after these, and are computed, not tried.  What is
    evaluated is paid for in `steps`.
    """

    def __init__(
        self, facts: list[Fact], claim: Fact | None, lower_bound: Callable[[str], int]
    ) -> None:
        self.claim = claim
        self.steps = 0
        mentioned = frozenset[str]().union(*(fact.names() for fact in facts))
        self.names = sorted(mentioned | claim.names() if claim else mentioned)
        self.defined = _defined(facts)
        self.free = [name for name in self.names if name not in self.defined]
        self.order = _ordered(self.free, self.defined)
        place = {name: position for position, name in enumerate(self.order)}
        self.ground = [fact for fact in facts if not fact.names()]
        self.checks: list[list[Fact]] = [[] for _ in self.order]
        self.filters: dict[str, list[Fact]] = {name: [] for name in self.names}
        self.floor = {name: lower_bound(name) for name in self.names}
        for fact in facts:
            about = fact.names()
            if about:
                self.checks[max(place[name] for name in about)].append(fact)
            if len(about) == 1:
                self.filters[min(about)].append(fact)
            if bound := fact.explicit_lower_bound():
                name, least = bound
                self.floor[name] = max(self.floor[name], least)

    def spend(self, steps: int = 1) -> None:
        """Use up steps; `Exhausted` if there are not so many left."""
        self.steps -= steps
        if self.steps < 0:
            raise Exhausted

    def possible(self) -> bool:
        """Whether the facts about no name at all hold."""
        return all(fact.holds({}) for fact in self.ground)

    def passes(self, name: str, value: int) -> bool:
        """Whether a value of a name satisfies the facts about that name alone."""
        return self._hold(self.filters[name], {name: value})

    def checked(self, position: int, env: Mapping[str, int]) -> bool:
        """Whether the facts hold that the name at this position is the last one of."""
        return self._hold(self.checks[position], env)

    def refutes(self, env: Mapping[str, int]) -> bool:
        """Whether the claim fails; yes if there is none."""
        if self.claim is None:
            return True
        self.spend(_weight(self.claim))
        return not self.claim.holds(env)

    def defined_value(self, name: str, env: Mapping[str, int]) -> int | None:
        """The value of a defined name, if it has one and that is large enough."""
        try:
            value = dims.evaluate(self.defined[name], env)
        except ZeroDivisionError:
            return None
        return value if value >= self.floor[name] else None

    def _hold(self, facts: Iterable[Fact], env: Mapping[str, int]) -> bool:
        for fact in facts:
            self.spend(_weight(fact))
            if not fact.holds(env):
                return False
        return True


def _weight(fact: Fact) -> int:
    """About how long a fact takes to evaluate."""
    return 1 + (len(dims.as_terms(fact.left)) + len(dims.as_terms(fact.right))) // 4


def _defined(facts: Iterable[Fact]) -> dict[str, Size]:
    """Names that equalities define by others, without circles."""
    defined: dict[str, Size] = {}
    for fact in facts:
        if fact.relation != "==":
            continue
        try:
            gap = fact.left - fact.right
        except DimTooLarge:
            continue
        for monomial, c in dims.as_terms(gap):
            if len(monomial) != 1 or monomial[0].kind != "name" or abs(c) != 1:
                continue
            name = str(monomial[0])
            value = dims.variable(name) - gap if c == 1 else dims.variable(name) + gap
            if name not in defined and not _depends(value, name, defined):
                defined[name] = value
                break
    return defined


def _depends(size: Size, name: str, defined: Mapping[str, Size]) -> bool:
    """Whether a size mentions a name, also through what defines its names."""
    mentioned = dims.names(size)
    if name in mentioned:
        return True
    return any(_depends(defined[other], name, defined) for other in mentioned & defined.keys())


def _ordered(free: list[str], defined: Mapping[str, Size]) -> list[str]:
    """The free names, then the defined ones, each after what defines it."""
    order = list(free)
    waiting = sorted(defined)
    while waiting:
        ready = next(name for name in waiting if dims.names(defined[name]) <= set(order))
        order.append(ready)
        waiting.remove(ready)
    return order
