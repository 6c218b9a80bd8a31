"""Samples: a few admitted sizes, found once, that refute most wrong claims at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pscdsl.typing.counterexamples import smallest
from pscdsl.typing.facts import Fact
from pscdsl.typing.probes import completed
from pscdsl.typing.search_space import Exhausted, SearchSpace

_PATTERNS = (
    (1, 2, 4, 7, 11, 16, 22, 29, 37, 46),
    (16, 9, 25, 4, 36, 1, 49, 13, 30, 21),
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
)
"""How far the names of a sample lie above their smallest values; one sample for each."""

_MAX_STEPS = 400


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
                spare = smallest(space, _MAX_STEPS)
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
    space.steps = _MAX_STEPS
    try:
        for order in (pattern, pattern[1:], sorted(pattern), sorted(pattern, reverse=True)):
            found = completed(space, dict(zip(space.free, order, strict=False)))
            if found is not None:
                return found
    except Exhausted:
        pass
    return None
