"""Recognition of findings whose surrounding lines have moved."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from pscdsl._src.checker.report.summary import Hidden, ordered
from pscdsl._src.checker.selection import Selection
from pscdsl._src.frontend.text.display import Sources, shown_path, split_cell
from pscdsl._src.support import paths
from pscdsl._src.support.paths import resolved
from pscdsl._src.support.tracebacks import LIBRARY
from pscdsl.typing.codes.limits import KernelNotChecked
from pscdsl.typing.diagnostics import Diagnostic, Severity

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
        """Return a hash of the code, the message, the text of its line and the functions around it.

        Neither line numbers nor the name of the file count; indentation does not either.
        """
        path, line = finding.span.path, finding.span.line
        text = " ".join((self._sources.line(path, line) or "").split())
        facts = (finding.code, finding.message(), text, self.enclosing(path, line))
        return hashlib.sha256("\0".join(facts).encode("utf-8", "replace")).hexdigest()[:32]

    def numbered(self, findings: Iterable[Diagnostic]) -> Iterator[tuple[Diagnostic, str]]:
        """Yield each finding with its fingerprint; a number tells equal ones of a file apart."""
        seen: Counter[tuple[str, str]] = Counter()
        for finding in findings:
            found = self.of(finding)
            key = (finding.span.path, found)
            yield finding, f"{found}:{seen[key]}"
            seen[key] += 1

    def enclosing(self, path: str, line: int) -> str:
        """Return the functions and classes around a line, outermost first: `Layer.apply`.

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
        """Return the last header at or above each line, with the headers around it."""
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


# A file of findings that are known and accepted for now: only others are reported.
#
# A finding is recognised by its file, its code and its fingerprint, so that it is still known when
# lines move.  The file is JSON, ordered, with a line for each entry: it is made to be committed.


_FORMAT = "pscdsl-baseline"
_VERSION = 1
_LIMIT = 8 * 1024 * 1024
"""Bytes: some thirty thousand findings.  What Python makes of them takes thirty times the room."""

Key = tuple[str, str, str]


class BaselineError(Exception):
    """The file cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """A finding that is accepted, and how often."""

    path: str
    """The path from the folder of the baseline file, with `/` between names."""
    code: str
    fingerprint: str
    count: int
    message: str
    """The message for people; not compared."""

    @property
    def key(self) -> Key:
        """The key that identifies it."""
        return self.path, self.code, self.fingerprint


@dataclass(frozen=True, slots=True)
class Baseline:
    """The accepted findings, and the folder that their paths are meant from."""

    entries: tuple[BaselineEntry, ...] = ()
    root: str = "."

    def divide(
        self, findings: Iterable[Diagnostic], fingerprints: Fingerprints
    ) -> tuple[list[Diagnostic], list[Diagnostic], list[BaselineEntry]]:
        """Return the new findings, the known ones, and the entries that are left over."""
        left = Counter[Key]()
        for entry in self.entries:
            left[entry.key] += entry.count
        new: list[Diagnostic] = []
        known: list[Diagnostic] = []
        for finding in findings:
            key = (place(finding.span.path, self.root), finding.code, fingerprints.of(finding))
            if left[key] > 0:
                left[key] -= 1
                known.append(finding)
            else:
                new.append(finding)
        over: list[BaselineEntry] = []
        for entry in self.entries:
            rest = min(left[entry.key], entry.count)
            if rest:
                left[entry.key] -= rest
                over.append(replace(entry, count=rest))
        return new, known, over

    def concerns(self, entry: BaselineEntry, checked: Collection[str]) -> bool:
        """Return whether a check of these files (real paths) can find or miss an entry."""
        path = resolved(os.path.join(self.root, entry.path))
        return path in checked or not os.path.exists(path)


def place(path: str, root: str) -> str:
    """Return a path as a baseline file writes it."""
    real = resolved(split_cell(path)[0])
    try:
        real = os.path.relpath(real, resolved(root))
    except ValueError:  # another drive
        pass
    return real.replace(os.sep, "/")


def read(path: str) -> Baseline:
    """Return the baseline in a file at a resolved path; a BaselineError if it is none."""
    name = shown_path(path)
    try:
        document: object = json.loads(paths.read(path, _LIMIT))
    except FileNotFoundError:
        hint = f"`pscdsl check --write-baseline {name}` writes one"
        raise BaselineError(f"there is no baseline {name}; {hint}") from None
    except OSError as problem:
        raise BaselineError(f"cannot read {name}: {problem.strerror}") from None
    except (ValueError, RecursionError):
        raise BaselineError(f"{name} is no baseline: it is not JSON, or is cut off") from None
    if _field(document, "format") != _FORMAT:
        raise BaselineError(f"{name} is no baseline of pscdsl")
    if _field(document, "version") != _VERSION:
        wanted = f"this is pscdsl for version {_VERSION}: write it again"
        raise BaselineError(f"{name} has another version; {wanted}")
    rows = _field(document, "entries")
    if not isinstance(rows, list):
        raise BaselineError(f"{name} is damaged: it has no list of entries")
    numbered = enumerate(cast("list[object]", rows), 1)
    root = os.path.dirname(path)
    return Baseline(tuple(_entry(row, name, number) for number, row in numbered), root)


def write(path: str, findings: Sequence[Diagnostic], fingerprints: Fingerprints) -> int:
    """Write these findings as the baseline, all at once; return their number.

    A file is replaced, and a link too: its target is not written to.
    """
    folder = resolved(os.path.dirname(path) or os.curdir)
    counts: Counter[Key] = Counter()
    messages: dict[Key, str] = {}
    for each in ordered(findings):
        key = place(each.span.path, folder), each.code, fingerprints.of(each)
        counts[key] += 1
        messages.setdefault(key, " ".join(each.message().split()))
    rows = [
        {
            "path": key[0],
            "code": key[1],
            "fingerprint": key[2],
            "count": counts[key],
            "message": messages[key],
        }
        for key in sorted(counts)
    ]
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    entries = f"[\n{lines}\n  ]" if rows else "[]"
    text = f'{{\n  "format": "{_FORMAT}",\n  "version": {_VERSION},\n  "entries": {entries}\n}}\n'
    try:
        with paths.Folder(folder) as here:
            here.replace(os.path.basename(path), text.encode(), 0o644, keep=True)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise BaselineError(f"cannot write {path}: {reason}") from None
    return len(findings)


def _entry(row: object, path: str, number: int) -> BaselineEntry:
    texts = [_field(row, name) for name in ("path", "code", "fingerprint", "message")]
    count = _field(row, "count")
    good = all(isinstance(text, str) for text in texts)
    if not good or not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise BaselineError(f"{path} is damaged: entry {number} cannot be read")
    where, code, print_, message = map(str, texts)
    return BaselineEntry(where, code, print_, count, message)


def _field(value: object, name: str) -> object:
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None


# Findings within the standard library, reported where the user's code calls it.


_LIBRARY = os.path.join(LIBRARY, "")


def at_call(finding: Diagnostic) -> Diagnostic:
    """Move a finding to the call that led into the library; its former place becomes a note.

    Findings in other code stay where they are, as do those of a check of the library itself.
    """
    inner, *calls = finding.span.frames()
    if calls and _in_library(inner.path):
        for call in calls:
            if not _in_library(call.path):
                return finding.relocated(call)
    return finding


@lru_cache(maxsize=1024)
def _in_library(path: str) -> bool:
    return resolved(path).startswith(_LIBRARY)


# The findings that are reported: the selected ones that are not in the baseline.


@dataclass(frozen=True, slots=True)
class Triage:
    """The findings of a check, sorted by their treatment."""

    reported: tuple[Diagnostic, ...]
    suppressed: tuple[Diagnostic, ...] = ()
    """Silenced by comments."""
    baselined: tuple[Diagnostic, ...] = ()
    """Known from the baseline."""
    stale: tuple[BaselineEntry, ...] = ()
    """Entries of the baseline that are no longer found."""

    def fails(self, *, strict: bool) -> bool:
        """Return whether the check fails: by an error, or if strict, a warning or missing proof."""
        failing = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
        return any(
            type(finding).severity in failing or (strict and finding.code == KernelNotChecked.code)
            for finding in self.reported
        )

    def hidden(self) -> Hidden:
        """Return the numbers of findings that are not reported."""
        stale = sum(entry.count for entry in self.stale)
        return Hidden(len(self.suppressed), len(self.baselined), stale)


def triage(
    found: Iterable[Diagnostic],
    suppressed: Iterable[Diagnostic],
    selection: Selection,
    baseline: Baseline,
    checked: Collection[str],
    fingerprints: Fingerprints,
) -> Triage:
    """Sort the findings in the files that were checked (real paths)."""
    found, suppressed = map(at_call, found), map(at_call, suppressed)
    selected = [each for d in found if (each := selection.narrowed(d)) is not None]
    silenced = tuple(d for d in suppressed if selection.includes(d.code, d.span.path))
    if not baseline.entries:
        return Triage(tuple(selected), silenced)
    new, known, over = baseline.divide(ordered(selected), fingerprints)
    stale = [
        entry
        for entry in over
        if baseline.concerns(entry, checked)
        and selection.includes(entry.code, f"{baseline.root}/{entry.path}")
    ]
    return Triage(tuple(new), silenced, tuple(known), tuple(stale))
