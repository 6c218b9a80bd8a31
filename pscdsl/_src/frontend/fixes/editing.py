"""Edits of text: places as offsets, line ends as the text has them, nothing else changed."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pscdsl.typing.diagnostics import Edit

_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, order=True)
class Replacement:
    """A range of offsets, the end exclusive, and the text that comes there."""

    start: int
    end: int
    text: str

    def meets(self, other: Replacement) -> bool:
        """Whether the two cannot be made together: they overlap, or insert at one place."""
        if self == other:
            return False  # one and the same: two fixes may need the same import
        if self.start == self.end or other.start == other.end:
            return self.start <= other.end and other.start <= self.end
        return self.start < other.end and other.start < self.end


class Text:
    """A text with its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        ends = list(_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self.newline = ends[0][0] if ends else "\n"

    def offset(self, line: int, column: int) -> int:
        """The offset of a 1-based line and column."""
        return min(self._starts[line - 1] + column - 1, len(self.text))

    def place(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def replacement(self, edit: Edit) -> Replacement:
        """An edit as a replacement in this text; its line ends are those of the text."""
        start = self.offset(edit.span.line, edit.span.column)
        end = self.offset(edit.span.end_line, edit.span.end_column)
        return Replacement(start, end, _END.sub(self.newline, edit.text))

    def replacements(self, edits: Iterable[Edit]) -> tuple[Replacement, ...]:
        """Edits as replacements, in the order of their places."""
        return tuple(sorted(map(self.replacement, edits)))


def replaced(text: str, replacements: Sequence[Replacement]) -> str:
    """The text with replacements that do not meet, given in the order of their places."""
    parts: list[str] = []
    position = 0
    for replacement in replacements:
        parts += (text[position : replacement.start], replacement.text)
        position = replacement.end
    return "".join((*parts, text[position:]))


def moved(offset: int, replacements: Sequence[Replacement]) -> int:
    """Where a place of the text is after replacements; one inside of them is at their start."""
    shift = 0
    for replacement in replacements:
        if replacement.end <= offset:
            shift += len(replacement.text) - (replacement.end - replacement.start)
        elif replacement.start <= offset:
            return replacement.start + shift
    return offset + shift


def written(replacements: Sequence[Replacement]) -> tuple[tuple[int, int], ...]:
    """The ranges that replacements take up in the text that comes out."""
    ranges: list[tuple[int, int]] = []
    shift = 0
    for replacement in replacements:
        ranges.append(
            (replacement.start + shift, replacement.start + shift + len(replacement.text))
        )
        shift += len(replacement.text) - (replacement.end - replacement.start)
    return tuple(ranges)


# The text of a file in its encoding: written back, what has not changed is the same bytes.


_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Encoded:
    """A program as text, and how it is encoded."""

    text: str
    """With the line ends that the file has."""
    encoding: str
    mark: bytes
    """What stands before the text, to say that it is UTF-8."""

    @classmethod
    def of(cls, data: bytes) -> Encoded | None:
        """A file's content; None if it is not text, or would not be the same if written back."""
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            encoding = "utf-8" if encoding == "utf-8-sig" else encoding
            mark = _MARK if data.startswith(_MARK) else b""
            found = cls(data[len(mark) :].decode(encoding), encoding, mark)
            return found if found.bytes(found.text) == data else None
        except (SyntaxError, ValueError, LookupError):
            return None

    def bytes(self, text: str) -> bytes:
        """Another text in this encoding; UnicodeEncodeError if it lacks a character of it."""
        return self.mark + text.encode(self.encoding)
