"""Source lines for snippets, safe for a terminal, and notebooks as lists of cells."""

from __future__ import annotations

import ast
import codecs
import io
import json
import os
import re
import tokenize
import unicodedata
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pscdsl._src.frontend.text.code_texts import shown_text
from pscdsl._src.support.paths import read, resolved

# Notebooks as lists of cells: the JSON document is read as data, with any content.
#
# A place in a notebook is a cell and a line in it. Its path is `FILE:cell NUMBER`, with all cells
# counted from 1, as in editors and other linters.


SUFFIX = ".ipynb"
_CELL = re.compile(r"^(?P<file>.*\.ipynb):cell (?P<number>\d+)$", re.DOTALL)


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class NotANotebook(Exception):
    """The document is not a notebook; the message says why."""


@dataclass(frozen=True, slots=True)
class CodeCell:
    """A code cell: its number among all cells, and its text."""

    number: int
    text: str


def cell_path(path: str, number: int) -> str:
    """Return the path of a place in a cell."""
    return f"{path}:cell {number}"


def split_cell(path: str) -> tuple[str, int | None]:
    """Return the file of a place, and the number of the cell if it is in a notebook."""
    found = _CELL.match(path)
    return (path, None) if found is None else (found["file"], int(found["number"]))


def in_order(path: str) -> tuple[str, int]:
    """Return the sort key of a path: cells of a notebook are sorted by number."""
    file, cell = split_cell(path)
    return file, cell or 0


def code_cells(data: bytes) -> tuple[CodeCell, ...]:
    """Return the code cells of a notebook in order; none if its language is not Python."""
    document = _object(_parsed(data), "the document")
    version = document.get("nbformat")
    if not isinstance(version, int) or version < 4:
        raise NotANotebook("its format is older than version 4")
    if not _is_of_python(document):
        return ()
    cells = document.get("cells")
    if not isinstance(cells, list):
        raise NotANotebook("it has no list of cells")
    found: list[CodeCell] = []
    for number, item in enumerate(cells, 1):
        cell = _object(item, f"cell {number}")
        if cell.get("cell_type") == "code":
            found.append(CodeCell(number, _text(cell.get("source"), number)))
    return tuple(found)


def _parsed(data: bytes) -> Json:
    try:
        document: Json = json.loads(data)
        return document
    except RecursionError:
        raise NotANotebook("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise NotANotebook("it is not Unicode text") from None
    except ValueError as error:
        raise NotANotebook(f"it is not JSON ({error})") from None


def _object(value: Json, what: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise NotANotebook(f"{what} is not an object")
    return value


def _text(source: Json, number: int) -> str:
    """Return the text of a cell, which is stored as one string or as its lines."""
    parts = source if isinstance(source, list) else [source]
    lines = [part for part in parts if isinstance(part, str)]
    if len(lines) < len(parts):
        raise NotANotebook(f"the source of cell {number} is not text")
    text = "".join(lines).encode(errors="surrogatepass").decode(errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_of_python(document: dict[str, Json]) -> bool:
    """Return whether a notebook's kernel runs Python, which is the default."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return True
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        entry = metadata.get(section)
        language = entry.get(key) if isinstance(entry, dict) else None
        if isinstance(language, str):
            return language.lower() in ("python", "ipython", "python3")
    return True


# Source lines for snippets: read once, made safe for a terminal, measured in display columns.


TAB = 4
"""Display columns between tab stops."""

_LIMIT = 32 * 1024 * 1024
"""The limit on files that are read for a snippet."""
_SOURCES = (".py", ".pyi", ".ipynb")
"""The suffixes of files whose lines are shown; other files must turn out to be Python."""

_SLOW = ("punycode", "idna")
"""Encodings that take quadratic time."""

_CONTROL = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_COMMAND = re.compile(r"#(?=#\w*\[)")
"""Workflow runners treat `##[…]` and `##vso[…]`, anywhere in a line, as commands."""


@dataclass(frozen=True, slots=True)
class DisplayLine:
    """A source line as it is printed, with the display column of each of its characters."""

    text: str
    columns: tuple[int, ...]
    """The 0-based display column at which each character starts, then that of the end."""

    def at(self, column: int) -> int:
        """Return the display column of a 1-based character column, clamped to the line."""
        return self.columns[min(max(column - 1, 0), len(self.columns) - 1)]


class Sources:
    """The lines of files by path; `texts` holds those that must not be read from disk.

    Only lines of Python are shown, and of TOML if that was read.
    """

    def __init__(self, texts: Mapping[str, str] | None = None, *, toml: bool = False) -> None:
        self._texts = dict(texts or {})
        self._kinds = (*_SOURCES, ".toml") if toml else _SOURCES
        self._lines: dict[str, tuple[str, ...]] = {}

    def line(self, path: str, number: int) -> str | None:
        """Return a line by its 1-based number, without its end; `None` if it does not exist."""
        lines = self.lines(path)
        return lines[number - 1] if 0 < number <= len(lines) else None

    def lines(self, path: str) -> tuple[str, ...]:
        """Return all lines of a file; none if it cannot be read."""
        if path not in self._lines:
            text = self._texts.get(path)
            text = _read(*split_cell(path), self._kinds) if text is None else text
            text = shown_text(path) if text is None else text
            self._lines[path] = () if text is None else split_lines(text)
        return self._lines[path]


def split_lines(text: str) -> tuple[str, ...]:
    """Split lines as Python does: form feeds and Unicode separators do not end a line."""
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def display(line: str) -> DisplayLine:
    """Return a line for a terminal and a log: tabs expanded, controls and commands replaced."""
    if "##" in line:
        line = _COMMAND.sub(_REPLACEMENT, line)
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
    """Return a text without anything that could control a terminal or a workflow runner.

    A runner treats a line that begins with `::` as a command.
    """
    return "\n".join(_printable(line) for line in text.split("\n"))


def printable_path(path: str) -> str:
    """Return the result of `shown_path` on one line that does not begin like a command."""
    shown = display(shown_path(path)).text
    return os.path.join(os.curdir, shown) if shown.lstrip().startswith("::") else shown


def is_command(line: str) -> bool:
    """Return whether a workflow runner would treat a line of a log as a command."""
    return line.lstrip().startswith("::") or _COMMAND.search(line) is not None


def printable_json(text: str) -> str:
    """Return equivalent JSON without text that a workflow runner treats as a command."""
    return text.replace("##", "#\\u0023")


def _printable(line: str) -> str:
    shown = display(line).text
    rest = shown.lstrip()
    if rest.startswith("::"):
        return shown[: len(shown) - len(rest)] + _REPLACEMENT + rest[1:]
    return shown


def shown_path(path: str) -> str:
    """Return a path with links resolved, relative to the current folder if it is inside."""
    if path.startswith("<") or not path:
        return path
    real = resolved(path)
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


def _read(path: str, cell: int | None, kinds: tuple[str, ...]) -> str | None:
    """Return the text of a file or a cell, at a path without links; None if it is no Python."""
    try:
        data = read(path, _LIMIT)
        if cell is None:
            return decode(data) if path.endswith(kinds) or _is_python(data) else None
        return next((each.text for each in code_cells(data) if each.number == cell), None)
    except (OSError, ValueError, NotANotebook):
        return None


def _is_python(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data.decode(encoding_of(data)))
    except (SyntaxError, LookupError, ValueError, RecursionError, MemoryError):
        return False
    return True


def encoding_of(data: bytes) -> str:
    """Return the encoding of a program; a SyntaxError or LookupError if it is not valid."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    if codecs.lookup(encoding).name in _SLOW:
        raise LookupError(encoding)
    return encoding


def decode(data: bytes) -> str:
    """Decode source bytes by Python's rules (a mark or a coding line); never fail."""
    try:
        return data.decode(encoding_of(data), errors="replace")
    except (SyntaxError, LookupError, ValueError):
        return data.decode("utf-8", errors="replace")
