"""Which findings the comments silence, and which comments silence nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice

from pscdsl._src.checker.findings.suppressions import OWN, Suppression
from pscdsl._src.checker.report.kinds import all_codes, is_known
from pscdsl._src.frontend.text.cells import split_cell
from pscdsl.typing.codes.limits_suppressions import (
    MalformedSuppression,
    UnknownSuppressedCode,
    UnusedSuppression,
)
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.spans import Span

_MOST = 20
"""More unknown codes in one comment, or guesses in one check, are not worth their time."""
_WIDTH = 20


@dataclass(frozen=True, slots=True)
class Silenced:
    """The findings that are left, with those about the comments; and those that are silenced."""

    kept: tuple[Diagnostic, ...]
    suppressed: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Examined:
    """What was looked at to its end, so that a comment there is known to silence nothing."""

    functions: frozenset[tuple[str, int]] = frozenset()
    """Path and line of the functions that kernels without errors consist of."""
    unfinished: frozenset[str] = frozenset()
    """The files with a kernel that has errors or was not checked."""
    files: frozenset[str] = frozenset()
    """The files that were checked, not only read for what others use of them."""

    def includes(self, comment: Suppression) -> bool:
        """Whether all that the comment could silence would have been found."""
        if comment.function is None:
            return comment.file not in self.unfinished
        return comment.function in self.functions


def together(parts: Iterable[Examined]) -> Examined:
    """What several checks looked at."""
    found = list(parts)
    none: frozenset[str] = frozenset()
    return Examined(
        frozenset(place for part in found for place in part.functions),
        none.union(*(part.unfinished for part in found)),
        none.union(*(part.files for part in found)),
    )


def silence(
    found: Iterable[Diagnostic], comments: Sequence[Suppression], examined: Examined
) -> Silenced:
    """Apply the comments to what was found, and add what is to be said of them."""
    if not comments:
        return Silenced(tuple(found), ())
    index = _Index(comments)
    kept, suppressed = index.divide(found)
    asked = [comment for comment in comments if comment.file in examined.files]
    own = [*_unreadable(asked), *_unused(asked, index.used, examined)]
    more_kept, more_suppressed = index.divide(own)
    return Silenced((*kept, *more_kept), (*suppressed, *more_suppressed))


class _Index:
    """The comments by the lines that they are meant for, and which of their codes were needed."""

    def __init__(self, comments: Iterable[Suppression]) -> None:
        self.used: set[tuple[Span, str]] = set()
        self._files: dict[str, list[Suppression]] = {}
        self._lines: dict[tuple[str, int], list[Suppression]] = {}
        statements: dict[tuple[str, int], list[Suppression]] = {}
        for comment in comments:
            path = comment.span.path
            if comment.whole_file:
                self._files.setdefault(comment.file, []).append(comment)
            elif comment.first == comment.last:
                self._lines.setdefault((path, comment.first), []).append(comment)
            else:
                statements.setdefault((path, comment.first), []).append(comment)
        self._statements = sorted(statements.items(), key=lambda item: item[0])
        self._starts = [start for start, _ in self._statements]

    def divide(self, found: Iterable[Diagnostic]) -> tuple[list[Diagnostic], list[Diagnostic]]:
        """The findings that are left, and those that a comment silences."""
        kept: list[Diagnostic] = []
        suppressed: list[Diagnostic] = []
        for each in found:
            places = {(f.path, line) for f in each.span.frames() for line in (f.line, f.end_line)}
            uses = {
                (comment.span, code)
                for path, line in places
                for comment in self._at(path, line)
                for code in comment.names(each.code)
            }
            self.used |= uses
            (suppressed if uses else kept).append(each)
        return kept, suppressed

    def _at(self, path: str, line: int) -> Iterator[Suppression]:
        """The comments that are meant for a line; statements do not overlap."""
        yield from self._files.get(split_cell(path)[0], ())
        yield from self._lines.get((path, line), ())
        before = bisect_right(self._starts, (path, line)) - 1
        if before >= 0:
            (found, _), comments = self._statements[before]
            if found == path and line <= comments[0].last:
                yield from comments


def _unreadable(comments: Iterable[Suppression]) -> Iterator[Diagnostic]:
    shown = 0
    for comment in comments:
        if comment.problem:
            yield MalformedSuppression(reason=comment.problem, span=comment.span)
        unknown = (code for code in comment.codes if not _exists(code))
        for code in islice(unknown, _MOST):
            near = get_close_matches(code, all_codes(), 1) if shown < _MOST else []
            shown += 1
            nearest = near[0] if near else ""
            short = code if len(code) <= _WIDTH else f"{code[:_WIDTH]}…"
            yield UnknownSuppressedCode(unknown=short, nearest=nearest, span=comment.span)


def _unused(
    comments: Iterable[Suppression],
    used: Collection[tuple[Span, str]],
    examined: Examined,
) -> Iterator[Diagnostic]:
    for comment in comments:
        if comment.problem or not examined.includes(comment):
            continue
        if not comment.codes:
            if (comment.span, "") not in used:
                yield UnusedSuppression(codes=(), span=comment.span)
            continue
        idle = tuple(
            code
            for code in comment.codes
            if (comment.span, code) not in used and _exists(code) and not _is_own(code)
        )
        if idle:
            others = len(idle) < len(comment.codes)
            yield UnusedSuppression(codes=idle, others=others, span=comment.span)


def _is_own(code: str) -> bool:
    """Whether it means findings about comments, which come after all others."""
    return any(own.startswith(code) for own in OWN)


def _exists(code: str) -> bool:
    return len(code) > len("PSC") and is_known(code)
