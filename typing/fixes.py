"""Fixes as data: what to write instead, as replacements of ranges of source text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pscdsl.typing.spans import Span

Applicability = Literal["safe", "unsafe"]
"""Whether a fix keeps what the code means.

A safe fix makes an accepted kernel compute what the same function computes under plain NumPy (for
arguments that share no memory), or leaves what an accepted kernel computes.  Whatever decides
something for the author is unsafe: a precondition, a cast, the removal of a statement.
"""


@dataclass(frozen=True, slots=True)
class Edit:
    """A range of a file and the text that replaces it; an empty range inserts.

    Lines in the text end in a newline character, whatever they end in in the file.
    """

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One way to mend a finding; all of its edits are made, or none.  They lie in one file."""

    message: str
    """What it does, as an imperative: "replace `x[0] = 1` by `x = psc.update(x, 0, 1)`"."""
    edits: tuple[Edit, ...]
    applicability: Applicability = "unsafe"

    @property
    def path(self) -> str:
        """The file that it changes."""
        return self.edits[0].span.path
