"""What every format of a discovery needs: which verdicts to show, and how many there are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pscdsl._src.discover.functions import Verdict
    from pscdsl._src.discover.project import Discovery

STATUSES = ("psc", "helper", "obstacle", "unknown")
_SHOWN = {
    "all": STATUSES,
    "psc": ("psc", "helper"),
    "obstacles": ("obstacle", "unknown"),
}


def selected(found: Discovery, select: str) -> list[Verdict]:
    """The verdicts to show, by place."""
    shown = [each for each in found.verdicts if each.status in _SHOWN[select]]
    return sorted(shown, key=lambda each: (each.path, each.line, each.column))


def counts(found: Discovery) -> dict[str, int]:
    """How many functions there are of each status."""
    statuses = Counter[str](each.status for each in found.verdicts)
    return {status: statuses[status] for status in STATUSES}


def first_obstacles(found: Discovery) -> dict[str, int]:
    """How many functions each code stops first, the most frequent in front."""
    codes = Counter(
        each.findings[0].code
        for each in found.verdicts
        if each.status in _SHOWN["obstacles"] and each.findings
    )
    return dict(sorted(codes.items(), key=lambda each: (-each[1], each[0])))
