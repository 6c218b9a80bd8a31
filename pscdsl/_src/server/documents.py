"""Places as the protocol names them: URIs, and positions in code units."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field

from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path

from pscdsl._src.frontend.text.display import (
    SUFFIX,
    cell_path,
    encoding_of,
    shown_path,
    split_cell,
    split_lines,
)
from pscdsl._src.server.workspace import TextPosition, Workspace
from pscdsl._src.support.paths import resolved
from pscdsl.typing.diagnostics import Span

_WIDTHS = {
    types.PositionEncodingKind.Utf8: "utf-8",
    types.PositionEncodingKind.Utf16: "utf-16-le",
    types.PositionEncodingKind.Utf32: "utf-32-le",
}
_SIZES = {"utf-8": 1, "utf-16-le": 2, "utf-32-le": 4}


@dataclass
class Documents:
    """The open documents of the editor, and its unit of columns."""

    workspace: Workspace
    encoding: str = "utf-16-le"
    uris: dict[str, str] = field(default_factory=dict[str, str])
    """The editor's URIs of files and notebooks, by real path."""
    cells: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The URIs of all cells of a notebook, by real path."""

    def count_as(self, kind: types.PositionEncodingKind | str | None) -> None:
        """Count columns as the editor does."""
        self.encoding = _WIDTHS[types.PositionEncodingKind(kind or "utf-16")]

    def file(self, uri: str) -> str | None:
        """Return the real path of the file, or of the cell's notebook, that a URI names."""
        for path, cells in self.cells.items():
            if uri in cells:
                return path
        found = to_fs_path(uri) if uri.startswith("file:") else None
        return None if found is None else resolved(found)

    def shown(self, uri: str) -> str | None:
        """Return the path in findings of the text with a URI."""
        for path, cells in self.cells.items():
            if uri in cells:
                return cell_path(shown_path(path), cells.index(uri) + 1)
        file = self.file(uri)
        return None if file is None else shown_path(file)

    def uri(self, shown: str) -> str:
        """Return the URI of the text with a path from a finding."""
        file, cell = split_cell(shown)
        path = resolved(file)
        cells = self.cells.get(path, [])
        if cell is not None and cell <= len(cells):
            return cells[cell - 1]
        return self.uris.get(path) or from_fs_path(path) or ""

    def lines(self, shown: str) -> tuple[str, ...]:
        """Return the lines of a text."""
        return split_lines(self.workspace.text(shown))

    def range(self, span: Span) -> types.Range:
        """Return the range of a span."""
        lines = self.lines(span.path)
        ends = (span.line, span.column), (span.end_line, max(span.end_column, 1))
        start, end = (self._position(lines, *each) for each in ends)
        return types.Range(start, end)

    def place(self, uri: str, position: types.Position) -> TextPosition | None:
        """Return the place at a position."""
        shown = self.shown(uri)
        if shown is None:
            return None
        lines = self.lines(shown)
        text = lines[position.line] if position.line < len(lines) else ""
        units = text.encode(self.encoding, "surrogatepass")
        before = units[: position.character * _SIZES[self.encoding]]
        return TextPosition(
            shown, position.line + 1, len(before.decode(self.encoding, "replace")) + 1
        )

    def span(self, uri: str, range_: types.Range) -> Span | None:
        """Return the span of a range."""
        start, end = self.place(uri, range_.start), self.place(uri, range_.end)
        if start is None or end is None:
            return None
        return Span(start.path, start.line, start.column, end.line, end.column)

    def _position(self, lines: tuple[str, ...], line: int, column: int) -> types.Position:
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        before = text[: column - 1].encode(self.encoding, "surrogatepass")
        return types.Position(max(line - 1, 0), len(before) // _SIZES[self.encoding])


def encoded(text: str) -> bytes:
    """Return a program as on disk: in the encoding that its first lines name, or UTF-8."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        return text.encode(encoding_of(data))
    except (SyntaxError, LookupError, ValueError):
        return data


def notebook(cells: list[tuple[bool, str]]) -> bytes:
    """Return a notebook of cells, each with whether it is Python."""
    kinds = ("raw", "code")
    document = [{"cell_type": kinds[is_python], "source": text} for is_python, text in cells]
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": document}).encode()


def is_checked(path: str) -> bool:
    """Return whether a file is a program or a notebook."""
    return path.endswith((".py", SUFFIX)) and not os.path.isdir(path)
