"""Findings for people: the headline, the marked source lines, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pscdsl._src.checker.report.snippets import Note, Row, rows
from pscdsl._src.checker.report.summary import ordered
from pscdsl._src.frontend.text.sources import Sources, printable, printable_path
from pscdsl.typing.diagnostics import Diagnostic, Severity
from pscdsl.typing.spans import NOWHERE, Span

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}
_BLUE = "34"
_CYAN = "36"
_FRAMES = 6
"""More calls than this between the finding and its kernel are left out in the middle."""


def render(
    diagnostics: Sequence[Diagnostic],
    sources: Sources | None = None,
    *,
    colour: bool = False,
) -> str:
    """All findings, ordered by place, with an empty line after each."""
    sources = sources or Sources()
    return "".join(
        f"{render_one(diagnostic, sources, colour=colour)}\n\n"
        for diagnostic in ordered(diagnostics)
    )


def render_one(diagnostic: Diagnostic, sources: Sources, *, colour: bool = False) -> str:
    """One finding, without a line end after it."""
    return "\n".join(_Page(diagnostic, sources, colour).lines())


class _Page:
    """The layout of one finding."""

    def __init__(self, diagnostic: Diagnostic, sources: Sources, colour: bool) -> None:
        self.diagnostic = diagnostic
        self.colour = colour
        self.blocks = [
            (header, list(rows(sources, path, notes)))
            for header, path, notes in _blocks(diagnostic)
        ]
        numbers = [row.number or 0 for _, block in self.blocks for row in block]
        self.gutter = max(2, len(str(max(numbers, default=0))))

    def lines(self) -> Iterator[str]:
        """The printed lines."""
        diagnostic = self.diagnostic
        kind = f"{diagnostic.severity.value}[{diagnostic.code}]"
        message = printable(" ".join(diagnostic.message().split()))
        mark = f" {self._paint('[*]', _CYAN)}" if diagnostic.fixes else ""
        yield f"{self._severe(kind)}{mark}: {self._paint(message, '1')}"
        for index, (header, block) in enumerate(self.blocks):
            corner = "├─" if index else "┌─"
            yield f"{self._gutter(f'{corner} ')}{printable(header)}"
            if block:
                yield self._gutter("│")
            yield from (self._row(row) for row in block)
            if index + 1 < len(self.blocks):
                yield self._gutter("│")
        if diagnostic.choice:
            yield self._gutter(f"= note: where {printable(diagnostic.choice)}")
        if advice := diagnostic.advice():
            first, *others = printable(advice).strip("\n").split("\n")
            lead = " " * self.gutter
            yield f"{lead}{self._paint('=', _BLUE)} {self._paint('help:', '1')} {first}".rstrip()
            yield from (f"{lead}        {other}".rstrip() for other in others)

    def _row(self, row: Row) -> str:
        if row.number is not None:
            bar = self._paint(f"{row.number:>{self.gutter}}│", _BLUE)
            return f"{bar} {row.text}".rstrip()
        return f"{self._gutter('│ ')}{self._under(row)}"

    def _under(self, row: Row) -> str:
        return self._severe(row.text) if row.primary else self._paint(row.text, _BLUE)

    def _gutter(self, text: str) -> str:
        return " " * self.gutter + self._paint(text, _BLUE)

    def _severe(self, text: str) -> str:
        return self._paint(text, f"1;{_COLOURS[self.diagnostic.severity]}")

    def _paint(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour else text


def _blocks(diagnostic: Diagnostic) -> Iterator[tuple[str, str, list[Note]]]:
    """Header, file and notes: the finding's own file, other files, then the calls outwards."""
    span = diagnostic.span
    if span is NOWHERE:
        return
    by_path = {span.path: [Note(span, diagnostic.label(), primary=True)]}
    for label in diagnostic.labels:
        by_path.setdefault(label.span.path, []).append(Note(label.span, label.text))
    for path, notes in by_path.items():
        yield _place(notes[0].span), path, notes
    calls = span.frames()[1:]
    kept = calls if len(calls) <= _FRAMES else calls[: _FRAMES // 2] + calls[-_FRAMES // 2 :]
    for index, call in enumerate(kept):
        if len(kept) < len(calls) and index == _FRAMES // 2:
            yield f"({len(calls) - len(kept)} more calls)", call.path, []
        yield f"in the call at {_place(call)}", call.path, [Note(call)]


def _place(span: Span) -> str:
    return f"{printable_path(span.path)}:{span.line}:{span.column}"
