"""What was measured, as tables and as data."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measure import Ratio

HEAD = ("workload", "ours", "theirs", "ratio", "range")


@dataclass(frozen=True)
class Row:
    """A workload beside one other: what each took, and ours over theirs."""

    subject: str
    workload: str
    rival: str
    ours: float
    theirs: float
    low: float
    median: float
    high: float
    """The least and the greatest of the medians of several processes, or quartiles of one."""
    goal: float | None = None
    bytes: int | None = None
    """Of our temporaries and results, where that was compared."""
    their_bytes: int | None = None

    @classmethod
    def of(cls, subject: str, workload: str, rival: str, found: Ratio) -> Row:
        """What one process has measured."""
        numbers = found.ours, found.theirs, found.low, found.median, found.high
        return cls(subject, workload, rival, *numbers)

    @property
    def missed(self) -> bool:
        """Whether it is slower than meant."""
        return self.goal is not None and self.median > self.goal

    def cells(self) -> list[str]:
        """The columns of `HEAD`, the memory and the goal."""
        memory = "" if not self.their_bytes else f"{(self.bytes or 0) / self.their_bytes:.2f}"
        goal = "" if self.goal is None else f"<= {self.goal:g}" + " MISSED" * self.missed
        return [
            self.workload,
            duration(self.ours),
            duration(self.theirs),
            f"{self.median:.3f}",
            f"{self.low:.3f}-{self.high:.3f}",
            memory,
            goal,
        ]


def duration(seconds: float) -> str:
    """A time with three digits."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows as aligned text."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]
    return "\n".join([title, *lines, ""])


def summary(rows: Sequence[Row]) -> str:
    """One table for each thing that we were measured beside, with geometric means."""
    parts: list[str] = []
    for rival in dict.fromkeys(row.rival for row in rows):
        here = [row for row in rows if row.rival == rival]
        mean = statistics.geometric_mean([row.median for row in here])
        head = (*HEAD, "memory", "goal")
        title = f"beside {rival}: geometric mean {mean:.3f} of {len(here)}"
        parts.append(table(title, head, [row.cells() for row in here]))
    return "\n".join(parts)
