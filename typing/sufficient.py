"""The least size from which on claims hold that small arrays break: slices are clipped at ends."""

from __future__ import annotations

from collections.abc import Sequence

from pscdsl.typing import dims
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.facts import Fact

MOST = 64
"""Larger bounds are not looked for."""


def sufficient_bound(facts: Assumptions, claims: Sequence[Fact]) -> Fact | None:
    """The weakest `k <= n` for one of the names under which all claims are proven, if there is one.

    It is looked for where a claim speaks of the smaller or larger of two sizes.
    """
    if not any("min(" in str(claim) or "max(" in str(claim) for claim in claims):
        return None
    names = sorted({name for claim in claims for name in claim.names()})
    return next((found for name in names if (found := _bound(facts, name, claims))), None)


def _bound(facts: Assumptions, name: str, claims: Sequence[Fact]) -> Fact | None:
    def enough(least: int) -> Fact | None:
        bound = Fact("<=", least, dims.parse(name))
        known = facts.assume(bound)
        return bound if all(map(known.proves, claims)) else None

    low, high, found = 1, MOST, enough(MOST)
    while found is not None and low < high:
        middle = (low + high) // 2
        smaller = enough(middle)
        found, low, high = (smaller, low, middle) if smaller else (found, middle + 1, high)
    return found
