"""The text of a file in its encoding: written back, what has not changed is the same bytes."""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass

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
