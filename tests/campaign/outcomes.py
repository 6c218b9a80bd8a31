"""What became of programs, and the figures of many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

SHOWN: Final = 40
"""How many details are printed: the most common ones."""


@dataclass(frozen=True)
class Outcome:
    """What became of a program."""

    kind: str
    """The column of the table in which it is counted: `equal`, `refused`."""
    of: str = "programs"
    """The row."""
    detail: str = ""
    """What is counted below the table, such as the code of a refusal."""
    problem: str = ""
    """What is wrong; empty if nothing is."""
    text: str = ""
    """The program, where something is wrong."""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Further figures."""


@dataclass(frozen=True)
class Problem:
    """A program that is wrong, and the seed that makes it."""

    seed: int
    outcome: Outcome

    def __str__(self) -> str:
        """Return what is printed of it."""
        of, text = self.outcome.of, self.outcome.text
        return f"seed {self.seed}, {of}: {self.outcome.problem}\n{text}".rstrip()


@dataclass
class Figures:
    """What became of many programs."""

    table: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """How many, by row and column."""
    details: Counter[str] = field(default_factory=Counter[str])
    counts: Counter[str] = field(default_factory=Counter[str])
    problems: list[Problem] = field(default_factory=list[Problem])

    def add(self, seed: int, outcomes: Iterable[Outcome]) -> list[Problem]:
        """Count what a seed has made, and return what is wrong with it."""
        found: list[Problem] = []
        for each in outcomes:
            self.table[each.of, each.kind] += 1
            self.counts.update(each.counts)
            if each.detail:
                self.details[f"{each.kind}: {each.detail}"] += 1
            if each.problem:
                found.append(Problem(seed, each))
        self.problems += found
        return found

    def count(self, kind: str) -> int:
        """Return the number of programs of a kind, of all rows."""
        return sum(number for (_, of), number in self.table.items() if of == kind)

    def report(self) -> str:
        """Return the table, and the most common details."""
        kinds = Counter[str]()
        for (_, kind), number in self.table.items():
            kinds[kind] += number
        columns = [kind for kind, _ in kinds.most_common()]
        wide = {kind: max(len(kind) + 2, 12) for kind in columns}
        lines = [f"{'':40}" + "".join(f"{kind:>{wide[kind]}}" for kind in columns)]
        rows = sorted({row for row, _ in self.table})
        for row in rows:
            numbers = (f"{self.table[row, kind]:>{wide[kind]},}" for kind in columns)
            lines.append(f"{row:40}{''.join(numbers)}")
        if len(rows) > 1:
            lines.append(
                f"{'all':40}" + "".join(f"{kinds[kind]:>{wide[kind]},}" for kind in columns)
            )
        lines += (f"{count:>8,}  {what}" for what, count in self.details.most_common(SHOWN))
        return "\n".join(lines)

    @property
    def shown(self) -> str:
        """The problems, for a test that has some."""
        return "\n\n".join(map(str, self.problems))
