"""Where keys stand in TOML text, because Python's reader does not say."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pscdsl.typing.spans import Span

_BARE = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_PATH = rf"{_BARE}(?:\s*\.\s*{_BARE})*"
_HEADER = re.compile(rf"\s*\[\[?\s*(?P<path>{_PATH})\s*\]\]?")
_ENTRY = re.compile(rf"\s*(?P<path>{_PATH})\s*=")
_INLINE = re.compile(rf"[{{,]\s*(?P<path>{_PATH})\s*=")
_QUOTES = re.compile(r"\"\"\"|'''")


class Places:
    """The keys of a TOML text by path, each with its line and columns."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._rows = text.split("\n")
        self._found: dict[tuple[str, ...], Span] = {}
        self._read()

    def of(self, keys: Sequence[str], value: str | None = None) -> Span:
        """The place of a key, or of a text in its value; of what is around it, if it is hidden."""
        for length in range(len(keys), 0, -1):
            span = self._found.get(tuple(keys[:length]))
            if span is not None:
                return span if value is None else self._text(value, span)
        return Span(self._path, 1, 1, 1, 1)

    def _text(self, value: str, key: Span) -> Span:
        """The first quoted text like this one after a key, before the next key."""
        others = [span.line for span in self._found.values() if span.line > key.line]
        for number in range(key.line, min(others, default=len(self._rows) + 1)):
            row = self._rows[number - 1]
            start = key.end_column - 1 if number == key.line else 0
            for quote in "\"'":
                column = row.find(f"{quote}{value}{quote}", start)
                if column >= 0:
                    end = column + len(value) + 3
                    return Span(self._path, number, column + 1, number, end)
        return key

    def _read(self) -> None:
        table: tuple[str, ...] = ()
        closing = ""
        for number, row in enumerate(self._rows, 1):
            if closing:  # within a text of several lines
                if closing in row:
                    closing = ""
                continue
            if header := _HEADER.match(row):
                table = _keys(header["path"])
                self._add(table, number, header)
            elif entry := _ENTRY.match(row):
                keys = (*table, *_keys(entry["path"]))
                self._add(keys, number, entry)
                for inner in _INLINE.finditer(row, entry.end()):
                    self._add((*keys, *_keys(inner["path"])), number, inner)
            quotes = _QUOTES.findall(row)
            if len(quotes) % 2:
                closing = quotes[-1]

    def _add(self, keys: tuple[str, ...], number: int, found: re.Match[str]) -> None:
        span = Span(self._path, number, found.start("path") + 1, number, found.end("path") + 1)
        self._found.setdefault(keys, span)


def _keys(path: str) -> tuple[str, ...]:
    return tuple(key.strip("\"'") for key in re.findall(_BARE, path))
