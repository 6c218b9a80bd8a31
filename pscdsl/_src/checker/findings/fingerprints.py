"""What a finding is recognised by when the lines around it have moved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pscdsl._src.frontend.text.sources import Sources
from pscdsl.typing.diagnostics import Diagnostic

_HEADER = re.compile(r"(?:async\s+)?(?:def|class)\s+(\w+)")


@dataclass(frozen=True, slots=True)
class _Header:
    """The first line of a function or class."""

    name: str
    indent: int
    outer: _Header | None


class Fingerprints:
    """The fingerprints of findings in some sources."""

    def __init__(self, sources: Sources | None = None) -> None:
        self._sources = sources or Sources()
        self._headers: dict[str, list[_Header | None]] = {}

    def of(self, finding: Diagnostic) -> str:
        """A hash of the code, the message, the text of its line and the functions around it.

        Neither line numbers nor the name of the file count; indentation does not either.
        """
        import hashlib

        path, line = finding.span.path, finding.span.line
        text = " ".join((self._sources.line(path, line) or "").split())
        facts = (finding.code, finding.message(), text, self.enclosing(path, line))
        return hashlib.sha256("\0".join(facts).encode("utf-8", "replace")).hexdigest()[:32]

    def numbered(self, findings: Iterable[Diagnostic]) -> Iterator[tuple[Diagnostic, str]]:
        """Each finding with its fingerprint; a number tells those of one file apart."""
        seen: Counter[tuple[str, str]] = Counter()
        for finding in findings:
            found = self.of(finding)
            key = (finding.span.path, found)
            yield finding, f"{found}:{seen[key]}"
            seen[key] += 1

    def enclosing(self, path: str, line: int) -> str:
        """The names of the functions and classes around a line, outermost first: `Layer.apply`.

        Read off the indentation, so that it can be said of text that is not parsed any more.
        """
        text = self._sources.line(path, line)
        if text is None:
            return ""
        around = self._above(path)[line - 1]
        if _HEADER.match(text.lstrip()) is None:
            while around is not None and around.indent >= _indent(text):
                around = around.outer
        names: list[str] = []
        while around is not None:
            names.insert(0, around.name)
            around = around.outer
        return ".".join(names)

    def _above(self, path: str) -> list[_Header | None]:
        """The last header at or above each line, with those that it stands in."""
        if path not in self._headers:
            found: list[_Header | None] = []
            last: _Header | None = None
            while (text := self._sources.line(path, len(found) + 1)) is not None:
                if header := _HEADER.match(text.lstrip()):
                    indent = _indent(text)
                    while last is not None and last.indent >= indent:
                        last = last.outer
                    last = _Header(header[1], indent, last)
                found.append(last)
            self._headers[path] = found
        return self._headers[path]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
