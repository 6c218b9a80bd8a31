"""Places in source text, and the chain of calls that led to them."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Span:
    """A range of characters in a file; lines and columns are 1-based, the end column is exclusive.

    `call_site` is the place of the call through which an inlined helper was entered, and so on
    outwards to the kernel itself.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    call_site: Span | None = None

    def within(self, call_site: Span | None) -> Span:
        """This place as reached through a call."""
        return self if call_site is None else replace(self, call_site=call_site)

    def head(self, length: int) -> Span:
        """The first characters of this place, on its first line: a keyword, for instance."""
        return replace(self, end_line=self.line, end_column=self.column + length)

    def frames(self) -> tuple[Span, ...]:
        """This place and the calls that led to it, innermost first."""
        found: list[Span] = [self]
        while (site := found[-1].call_site) is not None:
            found.append(site)
        return tuple(found)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


NOWHERE = Span("<unknown>", 1, 1, 1, 1)
