"""Findings for people: with marked source lines, or one line each; and a progress bar."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pscdsl._src.checker.report.summary import ordered, statistics
from pscdsl._src.frontend.text.display import (
    DisplayLine,
    Sources,
    display,
    printable,
    printable_path,
)
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Severity, Span

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


# Source lines with their marks and labels underneath, as rows without a gutter.


WIDTH = 160
"""Longer lines are cut to a window around their main mark."""

_MARGIN = 24


@dataclass(frozen=True, slots=True)
class Note:
    """A place to mark, the text beside it, and whether it is the place of the finding."""

    span: Span
    text: str = ""
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One printed row: a source line with its number, or marks and labels (no number)."""

    text: str
    number: int | None = None
    primary: bool = False


@dataclass(frozen=True, slots=True)
class _Mark:
    """A run of carets or dashes in display columns (0-based, half open) under one line."""

    start: int
    end: int
    text: str
    primary: bool


@dataclass(frozen=True, slots=True)
class _Line:
    """A line as printed, and the number of characters left out in front."""

    shown: DisplayLine
    offset: int


def rows(sources: Sources, path: str, notes: Sequence[Note]) -> Iterator[Row]:
    """Yield the marked lines of one file in order, each followed by its marks."""
    for number in sorted({line for note in notes for line in _ends(note.span)}):
        source = sources.line(path, number)
        if source is None:
            continue
        here = [note for note in notes if number in _ends(note.span)]
        _, column = min((not n.primary, _columns(n.span, number, source)[0]) for n in here)
        line = _window(source, column)
        marks = [mark for note in here if (mark := _mark(note, number, source, line))]
        yield Row(line.shown.text.rstrip(), number)
        if marks:
            yield from _under(marks)


def _ends(span: Span) -> tuple[int, ...]:
    return (span.line,) if span.end_line <= span.line else (span.line, span.end_line)


def _columns(span: Span, number: int, source: str) -> tuple[int, int]:
    """Return the part of a place on one line, as 1-based character columns, the end exclusive."""
    indent = len(source) - len(source.lstrip()) + 1
    start = span.column if number == span.line else indent
    end = span.end_column if number == max(span.line, span.end_line) else len(source) + 1
    return start, max(end, start + 1)


def _window(source: str, column: int) -> _Line:
    """Return a line, cut around a column if it is long."""
    if len(source) <= WIDTH:
        return _Line(display(source), 0)
    first = min(max(column - 1 - _MARGIN, 0), len(source) - WIDTH + _MARGIN)
    before, after = "…" if first else "", "…" if first + WIDTH < len(source) else ""
    return _Line(display(before + source[first : first + WIDTH] + after), first - len(before))


def _mark(note: Note, number: int, source: str, line: _Line) -> _Mark | None:
    """Return the mark under a line for one place; of several lines, the last one has the label."""
    first, stop = (column - line.offset for column in _columns(note.span, number, source))
    if not 0 < first <= len(line.shown.columns):
        return None
    start, end = line.shown.at(first), line.shown.at(stop)
    last = number == max(note.span.line, note.span.end_line)
    return _Mark(start, max(end, start + 1), note.text if last else "", note.primary)


def _under(marks: Sequence[_Mark]) -> Iterator[Row]:
    """Yield the rows under a line: the marks with the rightmost label, then the others, hanging."""
    marks = sorted(marks, key=lambda mark: (mark.start, mark.primary))
    carets = _carets(marks)
    labelled = [mark for mark in marks if mark.text]
    beside = ""
    if labelled and labelled[-1].end >= len(carets):
        beside = _one_line(labelled.pop().text)
    primary = any(mark.primary for mark in marks)
    yield Row(f"{carets} {beside}".rstrip(), primary=primary)
    if labelled:
        yield Row(_bars(labelled, "│"))
    while labelled:
        mark = labelled.pop()
        yield Row(
            f"{_bars([m for m in labelled if m.start < mark.start], '│'):{mark.start}}"
            f"{_one_line(mark.text)}",
            primary=mark.primary,
        )


def _carets(marks: Sequence[_Mark]) -> str:
    cells = [" "] * max(mark.end for mark in marks)
    for mark in sorted(marks, key=lambda mark: mark.primary):
        cells[mark.start : mark.end] = ("^" if mark.primary else "-") * (mark.end - mark.start)
    return "".join(cells)


def _bars(marks: Sequence[_Mark], bar: str) -> str:
    cells = [" "] * max((mark.start + 1 for mark in marks), default=0)
    for mark in marks:
        cells[mark.start] = bar
    return "".join(cells)


def _one_line(text: str) -> str:
    return display(" ".join(text.split())).text


# Findings for people: the headline, the marked source lines, and the advice.


_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}
_BLUE = "34"
_CYAN = "36"
_FRAMES = 6
"""More calls than this between the finding and its kernel are left out in the middle."""


def render_text(
    diagnostics: Sequence[Diagnostic],
    sources: Sources | None = None,
    *,
    colour: bool = False,
) -> str:
    """Return all findings, ordered by place, with an empty line after each."""
    sources = sources or Sources()
    return "".join(
        f"{render_one(diagnostic, sources, colour=colour)}\n\n"
        for diagnostic in ordered(diagnostics)
    )


def render_one(diagnostic: Diagnostic, sources: Sources, *, colour: bool = False) -> str:
    """Return one finding, without a line end after it."""
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
        """Yield the printed lines."""
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
    """Yield header, file and notes: the finding's file, other files, then the calls outwards."""
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


# One line per finding: `path:line:column: error[PSC301] message`; `[*]` marks those with a fix.


def render_concise(diagnostics: Sequence[Diagnostic]) -> str:
    """Return all findings, one per line, ordered by place."""
    return "".join(f"{_line(diagnostic)}\n" for diagnostic in ordered(diagnostics))


def _line(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    place = f"{printable_path(span.path)}:{span.line}:{span.column}"
    message = " ".join(diagnostic.message().split())
    mark = " [*]" if diagnostic.fixes else ""
    return printable(f"{place}: {diagnostic.severity.value}[{diagnostic.code}]{mark} {message}")


# The count of each code: `12  PSC301  [*]  inner-sizes-differ`; `[-]`: some have a fix.


def render_statistics(diagnostics: Sequence[Diagnostic]) -> str:
    """Return a row for each code, the most frequent first."""
    counts = statistics(diagnostics)
    width = len(str(counts[0].count)) if counts else 0
    rows: list[str] = []
    for each in counts:
        mark = " " if not each.fixable else "*" if each.fixable == each.count else "-"
        rows.append(f"{each.count:>{width}}  {each.code}  [{mark}]  {each.name}\n")
    return "".join(rows)


# A bar on a terminal, once something has taken a while; it leaves nothing behind.


_PATIENCE = 1.0
"""Seconds before the bar is shown."""


class ProgressBar:
    """A progress bar, shown in a terminal; to be used in a `with` statement.

    `doing` names the activity, `items` the things that are counted.
    """

    def __init__(self, doing: str = "checking", items: str = "files") -> None:
        self._doing, self._items = doing, items
        self._started = time.monotonic()
        self._watched = sys.stderr.isatty() and not os.environ.get("CI")
        self._shown: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._shown is not None:
            self._shown[0].stop()

    def update(self, done: int, total: int) -> None:
        """Draw the bar for `done` of `total` files."""
        if not self._watched:
            return
        if self._shown is None:
            if time.monotonic() - self._started < _PATIENCE or done >= total:
                return
            self._shown = self._show(total)
        progress, task = self._shown
        progress.update(task, completed=done)

    def _show(self, total: int) -> tuple[Progress, TaskID]:
        from rich import console  # which are large
        from rich import progress as bars

        columns = (
            *(bars.TextColumn(self._doing), bars.BarColumn()),
            *(bars.MofNCompleteColumn(), bars.TextColumn(self._items)),
        )
        to = console.Console(file=sys.stderr)
        progress = bars.Progress(*columns, console=to, transient=True)
        progress.start()
        return progress, progress.add_task(self._doing, total=total)
