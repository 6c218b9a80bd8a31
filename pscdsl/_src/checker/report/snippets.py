"""Source lines with their marks and labels underneath, as rows without a gutter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pscdsl._src.frontend.text.sources import DisplayLine, Sources, display
from pscdsl.typing.spans import Span

WIDTH = 160
"""Longer lines are cut to a window around their main mark."""

_MARGIN = 24


@dataclass(frozen=True, slots=True)
class Note:
    """A place to mark, what to write beside it, and whether it is the place of the finding."""

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
    """A line as printed, and how many characters of it were left out in front."""

    shown: DisplayLine
    offset: int


def rows(sources: Sources, path: str, notes: Sequence[Note]) -> Iterator[Row]:
    """The marked lines of one file in order, each followed by its marks."""
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
    """The part of a place on one line, as 1-based character columns, the end exclusive."""
    indent = len(source) - len(source.lstrip()) + 1
    start = span.column if number == span.line else indent
    end = span.end_column if number == max(span.line, span.end_line) else len(source) + 1
    return start, max(end, start + 1)


def _window(source: str, column: int) -> _Line:
    """A line, cut to what is near a column if it is long."""
    if len(source) <= WIDTH:
        return _Line(display(source), 0)
    first = min(max(column - 1 - _MARGIN, 0), len(source) - WIDTH + _MARGIN)
    before, after = "…" if first else "", "…" if first + WIDTH < len(source) else ""
    return _Line(display(before + source[first : first + WIDTH] + after), first - len(before))


def _mark(note: Note, number: int, source: str, line: _Line) -> _Mark | None:
    """What goes under a line for one place; of several lines, the last one carries the label."""
    first, stop = (column - line.offset for column in _columns(note.span, number, source))
    if not 0 < first <= len(line.shown.columns):
        return None
    start, end = line.shown.at(first), line.shown.at(stop)
    last = number == max(note.span.line, note.span.end_line)
    return _Mark(start, max(end, start + 1), note.text if last else "", note.primary)


def _under(marks: Sequence[_Mark]) -> Iterator[Row]:
    """The rows under a line: the marks with the rightmost label, then the others, hanging."""
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
