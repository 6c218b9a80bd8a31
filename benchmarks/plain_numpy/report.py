"""What was measured of each program, as lines and as a table of the documents."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.measure import Ratio
from benchmarks.report import duration

RIVALS = ("NumPy", "Numba", "jax.jit")
SAME = 1.1
"""Ours over theirs: what is above counts as slower."""


@dataclass
class Measured:
    """A program beside each of the others."""

    name: str
    sizes: str
    lines: int
    """Of the program and what it calls."""
    changed: int
    """How many of them plain NumPy would not have."""
    ratios: dict[str, Ratio] = field(default_factory=dict[str, Ratio])
    refusals: dict[str, str] = field(default_factory=dict[str, str])
    """Why others do not take it."""
    refusal: str = ""
    """Why we do not."""
    by_hand: bool = False
    """Whether it is written by hand for jax."""
    late: bool = False
    failed: bool = False

    @property
    def ours(self) -> float | None:
        """Our time, the median of those beside each of the others."""
        times = [ratio.ours for ratio in self.ratios.values()]
        return statistics.median(times) if times else None

    @property
    def slower(self) -> list[str]:
        """Those that are faster than we are."""
        return [name for name, ratio in self.ratios.items() if ratio.median > SAME]

    @property
    def worst(self) -> float:
        """Ours over the fastest of the others."""
        return max((ratio.median for ratio in self.ratios.values()), default=0.0)

    def cell(self, rival: str) -> str:
        """Their time, and ours over theirs."""
        found = self.ratios.get(rival)
        if found is None:
            why = self.refusals.get(rival)
            return f"no: {why}" if why else ("no end" if self.late else "")
        mark = "**" * (rival in self.slower)
        hand = " (by hand)" * (self.by_hand and rival == "jax.jit")
        return f"{duration(found.theirs)}, {mark}{short(found.median)}{mark}{hand}"


def short(ratio: float) -> str:
    """Two digits of a ratio."""
    return f"{ratio:.2f}" if ratio < 1 else f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}"


def plain(found: Measured) -> str:
    """One line for one program."""
    head = f"{found.name:26}{found.changed:3} of{found.lines:4}"
    if found.refusal:
        return f"{head}  refused: {found.refusal}"
    if found.failed or found.ours is None:
        return f"{head}  FAILED" if found.failed else f"{head}  no end"
    rest = "  ".join(f"{rival} {found.cell(rival)}" for rival in RIVALS)
    return f"{head}  {duration(found.ours):>8}  {rest}"


def markdown(found: Sequence[Measured]) -> str:
    """The table: first what others run faster, and that by how much."""
    rows = [each for each in found if each.ours is not None]
    rows.sort(key=lambda each: (not each.slower, -each.worst if each.slower else 0.0, each.name))
    head = ("program", "sizes", "changed", "pscdsl", *RIVALS)
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for each in rows:
        assert each.ours is not None
        changed = f"{each.changed} of {each.lines}"
        cells = (f"`{each.name}`", each.sizes, changed, duration(each.ours))
        lines.append(f"| {' | '.join((*cells, *map(each.cell, RIVALS)))} |")
    lines += ["", *means(rows)]
    lines += [f"refused: `{each.name}`, {each.refusal}" for each in found if each.refusal]
    return "\n".join(lines)


def means(rows: Sequence[Measured]) -> list[str]:
    """The geometric mean beside each of the others."""
    lines: list[str] = []
    for rival in RIVALS:
        ratios = [each.ratios[rival].median for each in rows if rival in each.ratios]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            slower = sum(ratio > SAME for ratio in ratios)
            lines.append(
                f"{rival}: geometric mean {mean:.2f} of {len(ratios)}, slower in {slower} of them"
            )
    return lines
