"""Source lines for snippets: read once, made safe for a terminal, measured in display columns."""

from __future__ import annotations

import io
import os
import tokenize
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from pscdsl.code_texts import shown_text
from pscdsl.report.cells import NotANotebook, code_cells, split_cell

TAB = 4
"""Display columns between tab stops."""

_LIMIT = 32 * 1024 * 1024
"""Larger files are not read for the sake of a snippet."""

_CONTROL = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class DisplayLine:
    """A source line as it is printed, with the display column of each of its characters."""

    text: str
    columns: tuple[int, ...]
    """The 0-based display column at which each character starts, then that of the end."""

    def at(self, column: int) -> int:
        """The display column of a 1-based character column, kept within the line."""
        return self.columns[min(max(column - 1, 0), len(self.columns) - 1)]


class Sources:
    """The lines of files by path; `texts` holds those that are not to be read from disk."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = dict(texts or {})
        self._lines: dict[str, tuple[str, ...]] = {}

    def line(self, path: str, number: int) -> str | None:
        """A line by its 1-based number, without its end; `None` where there is none."""
        lines = self.lines(path)
        return lines[number - 1] if 0 < number <= len(lines) else None

    def lines(self, path: str) -> tuple[str, ...]:
        """All lines of a file, none of what cannot be read."""
        if path not in self._lines:
            text = self._texts.get(path)
            text = _read(*split_cell(path)) if text is None else text
            text = shown_text(path) if text is None else text
            self._lines[path] = () if text is None else split_lines(text)
        return self._lines[path]


def split_lines(text: str) -> tuple[str, ...]:
    """The lines as Python counts them: form feeds and Unicode separators do not end a line."""
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def display(line: str) -> DisplayLine:
    """A line ready for a terminal: tabs expanded, control and direction characters replaced."""
    if line.isascii() and line.isprintable():
        return DisplayLine(line, tuple(range(len(line) + 1)))
    shown: list[str] = []
    columns = [0]
    for character in line:
        text, width = _cell(character, columns[-1])
        shown.append(text)
        columns.append(columns[-1] + width)
    return DisplayLine("".join(shown), tuple(columns))


def printable(text: str) -> str:
    """A text of one or more lines without characters that could steer a terminal."""
    return "\n".join(display(line).text for line in text.split("\n"))


def shown_path(path: str) -> str:
    """A path with links resolved, relative to the current folder if it lies inside."""
    if path.startswith("<") or not path:
        return path
    real = os.path.realpath(path)
    relative = os.path.relpath(real)
    outside = relative == os.pardir or relative.startswith(os.pardir + os.sep)
    return real if outside else relative


def _cell(character: str, column: int) -> tuple[str, int]:
    if character == "\t":
        width = TAB - column % TAB
        return " " * width, width
    if unicodedata.category(character) in _CONTROL:
        return _REPLACEMENT, 1
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me"}:
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _read(path: str, cell: int | None) -> str | None:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LIMIT:
            return None
        with open(path, "rb") as file:
            data = file.read(_LIMIT)
        if cell is None:
            return decode(data)
        return next((each.text for each in code_cells(data) if each.number == cell), None)
    except (OSError, ValueError, NotANotebook):
        return None


def decode(data: bytes) -> str:
    """Source bytes as text by Python's rules (a mark or a coding line), never failing."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding, errors="replace")
    except (SyntaxError, LookupError, ValueError):
        return data.decode("utf-8", errors="replace")
