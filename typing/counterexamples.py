"""Counterexamples: a search for the smallest sizes that refute a claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from pscdsl.typing import dims
from pscdsl.typing.dims import DimTooLarge, Size
from pscdsl.typing.facts import Fact, connected

# The sizes that a search goes through: their names in order, each with the facts to check.


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


# Probing a search space: guesses far above the smallest sizes, made smaller where they hit.


_PROBES = (0, 1, 2, 3, 5, 7, 15, 31, 63, 127, 255, 1023, 4095, 65535, 2**20, 2**31)
_MAX_PROBE_STEPS = 5000
_NEARBY = 64


def probe(space: SearchSpace) -> dict[str, int] | None:
    """Try some large sizes, of one free name at a time and of all at once."""
    space.steps = _MAX_PROBE_STEPS
    try:
        for raised in (*([name] for name in space.free), space.free):
            for above in _PROBES:
                found = completed(space, dict.fromkeys(raised, above))
                if found is not None:
                    return _shrunk(space, found)
    except Exhausted:
        pass
    return None


def completed(space: SearchSpace, above: Mapping[str, int]) -> dict[str, int] | None:
    """Sizes with free names about so far above their smallest values, if the space has them."""
    env: dict[str, int] = {}
    for position, name in enumerate(space.order):
        if name in space.defined:
            value = space.defined_value(name, env)
        else:
            start = space.floor[name] + above.get(name, 0)
            nearby = range(start, start + _NEARBY)
            value = next((value for value in nearby if space.passes(name, value)), None)
        if value is None:
            return None
        env[name] = value
        if not space.checked(position, env):
            return None
    return env if space.refutes(env) else None


def _shrunk(space: SearchSpace, found: dict[str, int]) -> dict[str, int]:
    """Make sizes smaller, one free name after the other, by halving steps; while steps last."""
    try:
        for name in space.free:
            above = _heights(space, found)
            width = above[name]
            while width > 0:
                lowered = above[name] - width
                smaller = completed(space, {**above, name: lowered}) if lowered >= 0 else None
                if smaller is not None and smaller[name] < found[name]:
                    found = smaller
                    above = _heights(space, found)
                    width = min(width, above[name])
                else:
                    width //= 2
    except Exhausted:
        pass
    return found


def _heights(space: SearchSpace, sizes: Mapping[str, int]) -> dict[str, int]:
    """How far the free names are above their smallest values."""
    return {name: sizes[name] - space.floor[name] for name in space.free}


# Counterexamples: a search, by total size, for the smallest sizes that refute a claim.


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


# Samples: a few admitted sizes, found once, that refute most wrong claims at once.


_PATTERNS = (
    (1, 2, 4, 7, 11, 16, 22, 29, 37, 46),
    (16, 9, 25, 4, 36, 1, 49, 13, 30, 21),
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
)
"""How far the names of a sample lie above their smallest values; one sample for each."""

_MAX_SAMPLE_STEPS = 400


class FactGroup:
    """Facts that share names, directly or through others, and no name with any other fact."""

    __slots__ = ("_lower_bound", "_samples", "facts", "index", "names")

    def __init__(self, index: int, facts: list[Fact], lower_bound: Callable[[str], int]) -> None:
        self.index = index
        self.facts = facts
        self.names = frozenset[str]().union(*[fact.names() for fact in facts])
        self._lower_bound = lower_bound
        self._samples: list[dict[str, int]] | None = None

    def samples(self) -> list[dict[str, int]]:
        """Admitted sizes for each pattern, where they are easily found; else none at all."""
        if self._samples is None:
            space = SearchSpace(self.facts, None, self._lower_bound)
            found = [_sample(space, pattern) for pattern in _PATTERNS]
            spare = next((part for part in reversed(found) if part is not None), None)
            if spare is None:
                spare = smallest(space, _MAX_SAMPLE_STEPS)
            self._samples = []
            if spare is not None:
                self._samples = [spare if part is None else part for part in found]
        return self._samples


def refuted_by_samples(claim: Fact, groups: Iterable[FactGroup]) -> bool:
    """Whether a claim fails for one of the samples of these groups of facts."""
    samples: list[dict[str, int]] = [{} for _ in _PATTERNS]
    for group in groups:
        parts = group.samples()
        if not parts:
            return False
        for sample, part in zip(samples, parts, strict=True):
            sample |= part
    names = claim.names()
    for pattern, env in zip(_PATTERNS, samples, strict=True):
        for name, value in zip(sorted(names - env.keys()), pattern, strict=False):
            env[name] = value + 1
        if names <= env.keys() and not claim.holds(env):
            return True
    return False


def _sample(space: SearchSpace, pattern: tuple[int, ...]) -> dict[str, int] | None:
    """Sizes that lie above the smallest by the steps of a pattern, if they are admitted."""
    if not space.possible():
        return None
    space.steps = _MAX_SAMPLE_STEPS
    try:
        for order in (pattern, pattern[1:], sorted(pattern), sorted(pattern, reverse=True)):
            found = completed(space, dict(zip(space.free, order, strict=False)))
            if found is not None:
                return found
    except Exhausted:
        pass
    return None
