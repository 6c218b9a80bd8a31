"""The share of their cases that tests try: a part of long tables, or all with `SHARE=1`.

`make test` has minutes, so a law over pairs, products or random programs tries one of so many, the
same in each run: `some` cases of a table, as many as are `due`, and of a test that is marked
`sampled` those combinations of its parameters that are `covering`.  `make fuzz` sets `SHARE=1`.
What is too long to be tried in any other way is tried for names that are `among` one of so many.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

T = TypeVar("T")
WHOLE: Final = os.environ.get("SHARE") == "1"
"""Whether every case is tried."""


def some(cases: Iterable[T], one_in: int, seed: object = 0) -> list[T]:
    """Return one of every `one_in` cases, in their order and at least one; all if `WHOLE`."""
    every = list(cases)
    if WHOLE or not every:
        return every
    places = random.Random(repr(seed)).sample(range(len(every)), -(-len(every) // one_in))
    return [every[place] for place in sorted(places)]


def among(name: str, one_in: int) -> bool:
    """Return whether a name is one of every `one_in` names, by its digest; True if `WHOLE`."""
    return WHOLE or zlib.crc32(name.encode()) % one_in == 0


def due(count: int, one_in: int) -> int:
    """Return how many of `count` are due if one of every `one_in` cases is tried."""
    return count if WHOLE else count // one_in


def covering(cases: Sequence[Mapping[str, object]], seed: object = 0) -> list[int]:
    """Return the places of some cases that have each value of each parameter at least once."""
    places = [*range(len(cases))]
    random.Random(repr(seed)).shuffle(places)
    seen, kept = set[tuple[str, object]](), list[int]()
    for place in places:
        if not cases[place].items() <= seen:
            seen |= cases[place].items()
            kept.append(place)
    return sorted(kept)
