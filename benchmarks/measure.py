"""Timing pairs in one run: alternating, medians of ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Ratio:
    """What two alternatives took, and the median and quartiles of ours over theirs."""

    ours: float
    theirs: float
    low: float
    median: float
    high: float


def middle(ratios: Sequence[Ratio]) -> Ratio:
    """The middle one of several processes', between the least and the greatest of their medians."""
    each = sorted(ratios, key=lambda ratio: ratio.median)
    found = each[len(each) // 2]
    return found if len(each) == 1 else replace(found, low=each[0].median, high=each[-1].median)


def seconds(action: Callable[[], object], times: int = 1) -> float:
    """How long an action takes, averaged over a few runs of it."""
    start = time.perf_counter()
    for _ in range(times):
        action()
    return (time.perf_counter() - start) / times


def compare(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 15, times: int = 1
) -> Ratio:
    """Alternate two actions; the ratio of each pair of neighbours counts."""
    ours()
    theirs()
    return alternating(lambda: seconds(ours, times), lambda: seconds(theirs, times), rounds)


def alternating(ours: Callable[[], float], theirs: Callable[[], float], rounds: int) -> Ratio:
    """The same of two measurements, in seconds."""
    mine: list[float] = []
    other: list[float] = []
    for _ in range(rounds):
        mine.append(ours())
        other.append(theirs())
    ratios = sorted(a / b for a, b in zip(mine, other, strict=True))
    low, median, high = statistics.quantiles(ratios, n=4)
    return Ratio(statistics.median(mine), statistics.median(other), low, median, high)
