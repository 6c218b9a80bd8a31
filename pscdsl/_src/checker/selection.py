"""The selection of reported findings: by comments, by codes, by patterns for paths."""

from __future__ import annotations

import ast
import importlib
import io
import os
import pkgutil
import re
import tokenize
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path

from pscdsl._src.frontend.text.display import split_cell
from pscdsl._src.frontend.text.source import DIRECTIVE
from pscdsl._src.support.paths import resolved
from pscdsl.typing import diagnostics
from pscdsl.typing.codes.limits import KernelNotChecked
from pscdsl.typing.codes.projects import (
    MalformedSuppression,
    UnknownSuppressedCode,
    UnusedSuppression,
)
from pscdsl.typing.diagnostics import Diagnostic, Span, registered

# Comments that silence findings: `# psc: ignore[PSC702]`, `# psc: ignore-file[PSC8]`.


OWN = ("PSC920", "PSC921", "PSC922")
"""Findings about the comments themselves: silenced only by name."""

_CODES = re.compile(r"\[(?P<codes>[^\]]*)\](?P<reason>.*)", re.DOTALL)
_LAYOUT = {tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE}
_END = 2**31
_WIDTH = 20
_MOST = 20
"""More comments of ours within one comment are not read."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment: which codes it silences, and on which lines."""

    span: Span
    codes: tuple[str, ...] = ()
    """Codes or their beginnings; empty for all."""
    first: int = 1
    last: int = _END
    function: tuple[str, int] | None = None
    """Path and line of the innermost `def` around the comment."""
    problem: str = ""
    """The reason why it cannot be read; it silences nothing then."""

    @property
    def file(self) -> str:
        """The file that contains it."""
        return split_cell(self.span.path)[0]

    @property
    def whole_file(self) -> bool:
        """Return whether it covers every line."""
        return self.last == _END

    def names(self, code: str) -> tuple[str, ...]:
        """Return the comment's codes that cover a code; an empty string if it has no codes."""
        if self.problem:
            return ()
        if not self.codes:
            return () if code in OWN else ("",)
        return tuple(each for each in self.codes if len(each) > 3 and code.startswith(each))


def suppressions(
    text: str, tree: ast.Module, locate: Callable[[int], tuple[str, int]]
) -> tuple[Suppression, ...]:
    """Return the suppressions of a module, in order; `locate` returns the place of a row."""
    if not DIRECTIVE.search(text):
        return ()
    comments, lines = comments_of(text)
    layout = _Layout(tree, lines, locate)
    found: list[Suppression] = []
    for row, column, comment in comments:
        for directive in islice(DIRECTIVE.finditer(comment), _MOST):
            start = column + directive.start() + 1
            path, line = locate(row)
            span = Span(path, line, start, line, start + len(directive[0].rstrip()))
            read = _read(directive["verb"], directive["rest"], span)
            if read is not None:
                found.append(_placed(read, directive["verb"], row, layout))
    return tuple(found)


def comments_of(text: str) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]]:
    """Return row, column and text of our comments; first and last row of each logical line."""
    comments: list[tuple[int, int, str]] = []
    lines: list[tuple[int, int]] = []
    first: int | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and "psc" in token.string:
                comments.append((*token.start, token.string))
            elif token.type == tokenize.NEWLINE and first is not None:
                lines.append((first, token.start[0]))
                first = None
            elif token.type not in _LAYOUT and first is None:
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pass  # the parser accepted it; the comments read so far count
    return comments, lines


class _Layout:
    """The logical lines and the functions on the rows of a module."""

    def __init__(
        self,
        tree: ast.Module,
        lines: list[tuple[int, int]],
        locate: Callable[[int], tuple[str, int]],
    ) -> None:
        self.locate = locate
        self._lines = lines
        self._firsts = [first for first, _ in lines]
        self._functions: dict[int, int] = {}
        for node in _functions(tree):  # outer functions come before those inside
            for row in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                self._functions[row] = node.lineno
        code = [statement for statement in tree.body if not _is_text(statement)][:1]
        decorators = [each for s in code for each in getattr(s, "decorator_list", ())]
        self.top = min((each.lineno for each in (*code, *decorators)), default=_END)
        """The row of the first statement, the docstring left out."""

    def line(self, row: int) -> tuple[int, int] | None:
        """Return the first and the last row of the logical line on a row."""
        before = bisect_right(self._firsts, row) - 1
        return self._lines[before] if before >= 0 and row <= self._lines[before][1] else None

    def function(self, row: int) -> tuple[str, int] | None:
        """Return the place of the `def` of the innermost function on a row."""
        found = self._functions.get(row)
        return None if found is None else self.locate(found)


def _read(verb: str, rest: str, span: Span) -> Suppression | None:
    """Return the suppression of a comment; None if it is no suppression at all."""
    rest = rest.strip()
    if verb == "budget":
        return None
    if verb not in ("ignore", "ignore-file"):
        alike = get_close_matches(verb.lower(), ("ignore", "ignore-file", "noqa"), 1, 0.75)
        if not alike and not rest.startswith("["):
            return None
        problem = f"`{verb[:_WIDTH]}` is neither `ignore` nor `ignore-file`"
        return Suppression(span, problem=problem)
    if not rest:
        return Suppression(span)
    bracket = _CODES.match(rest)
    if bracket is None:
        if rest.startswith("["):
            return Suppression(span, problem="the bracket is not closed")
        if rest.startswith(("--", "\N{EM DASH}")) and not re.search(r"PSC\d", rest):
            return Suppression(span)
        return Suppression(span, problem=f"codes stand in brackets after `{verb}`")
    codes = tuple(code.strip().upper() for code in bracket["codes"].split(",") if code.strip())
    if not codes:
        return Suppression(span, problem="there is no code between the brackets")
    if re.match(r"\s*[\[(,]|.*PSC\d", bracket["reason"]):
        return Suppression(span, problem="all codes stand in one pair of brackets")
    return Suppression(span, tuple(dict.fromkeys(codes)))


def _placed(read: Suppression, verb: str, row: int, layout: _Layout) -> Suppression:
    """Return the suppression of a comment with the lines that it covers."""
    line = layout.line(row)
    if verb == "ignore-file":
        if row < layout.top and line is None:
            return read
        problem = read.problem or "`ignore-file` stands above the first statement"
        return Suppression(read.span, problem=problem)
    rows = line if line is not None and row in line else (row, row)
    first, last = (layout.locate(each)[1] for each in rows)
    return Suppression(read.span, read.codes, first, last, layout.function(row), read.problem)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is the docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


# The findings that comments silence, and comments that silence nothing.


"""More unknown codes in one comment, or guesses in one check, are not worth their time."""


@dataclass(frozen=True, slots=True)
class Silenced:
    """The findings that are left, with those about the comments; and those that are silenced."""

    kept: tuple[Diagnostic, ...]
    suppressed: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Examined:
    """The code that was checked completely, so that a comment there is known to silence nothing."""

    functions: frozenset[tuple[str, int]] = frozenset()
    """Path and line of the functions that kernels without errors consist of."""
    unfinished: frozenset[str] = frozenset()
    """The files with a kernel that has errors or was not checked."""
    files: frozenset[str] = frozenset()
    """The files that were checked, not only read for others."""

    def includes(self, comment: Suppression) -> bool:
        """Return whether all that the comment could silence would have been found."""
        if comment.function is None:
            return comment.file not in self.unfinished
        return comment.function in self.functions


def together(parts: Iterable[Examined]) -> Examined:
    """Return the union of several checks."""
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
    """Apply the comments to the findings, and add findings about the comments."""
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
        """Return the findings that remain, and those that a comment silences."""
        diagnostics: list[Diagnostic] = []
        suppressed: list[Diagnostic] = []
        for diagnostic in found:
            places = {
                (f.path, line) for f in diagnostic.span.frames() for line in (f.line, f.end_line)
            }
            uses = {
                (comment.span, code)
                for path, line in places
                for comment in self._at(path, line)
                for code in comment.names(diagnostic.code)
            }
            self.used |= uses
            (suppressed if uses else diagnostics).append(diagnostic)
        return diagnostics, suppressed

    def _at(self, path: str, line: int) -> Iterator[Suppression]:
        """Yield the comments that cover a line; statements do not overlap."""
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
    """Return whether it covers findings about comments, which come after all others."""
    return any(own.startswith(code) for own in OWN)


def _exists(code: str) -> bool:
    return len(code) > len("PSC") and is_known(code)


# The selection of codes to report, by kinds of diagnostics and by patterns for paths.


# Every kind of diagnostic there is, for `explain`, `--select` and the tests.


def all_kinds() -> tuple[type[Diagnostic], ...]:
    """Return all kinds in order of their codes; this imports every family."""
    folder = Path(diagnostics.__file__).with_name("codes")
    for module in pkgutil.iter_modules([str(folder)], "pscdsl.typing.codes."):
        importlib.import_module(module.name)
    return registered()


@cache
def all_codes() -> tuple[str, ...]:
    """Return the codes of all kinds, in order."""
    return tuple(kind.code for kind in all_kinds())


def is_known(code: str) -> bool:
    """Return whether this is a code, a family (even an empty one), or the prefix of a code."""
    return code in _beginnings()


@cache
def _beginnings() -> frozenset[str]:
    families = (f"PSC{number}" for number in range(1, 10))
    return frozenset(code[:n] for code in (*all_codes(), *families) for n in range(1, 7))


# Patterns for paths: `*` and `?` within a name, `**` for folders, `[…]` for one character.
#
# Each becomes a regular expression in which the text between two `*` matches at its first place,
# without backtracking: that is enough, and takes time proportional to the product of the lengths of
# the pattern and the path.


LONGEST = 1_000
"""The most characters of a pattern."""


class BadPattern(ValueError):
    """The pattern is malformed; the message gives the reason."""


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path with `/` between names, or a folder above it.

    A pattern without `/` matches a name anywhere; any other is relative to the root.
    """
    return compiled(pattern).match(path) is not None


@lru_cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return the expression for a pattern; raise `BadPattern` if it is none."""
    if len(pattern) > LONGEST:
        raise BadPattern(f"is longer than {LONGEST} characters")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    anywhere = "" if "/" in pattern.rstrip("/") else "(?:.*/)?"
    if parts and parts[-1] == "**":
        return re.compile(f"{anywhere}{_folders(parts[:-1])}.*\\Z", re.DOTALL)
    return re.compile(f"{anywhere}{_folders(parts[:-1])}{_last(parts)}(?:/.*)?\\Z", re.DOTALL)


def _last(parts: list[str]) -> str:
    return _name(parts[-1]) if parts else ""


def _folders(parts: list[str]) -> str:
    """Return the expression for some folders, with the `/` after each."""
    first, *others = _between(parts, "**")
    body = "".join(f"{_name(part)}/" for part in first)
    for index, group in enumerate(others):
        names = "".join(f"{_name(part)}/" for part in group)
        last = index == len(others) - 1  # the rest may match only further on
        body += f"(?:[^/]+/)*{names}" if last else f"(?>(?:[^/]+/)*?{names})"
    return body


def _between(parts: list[str], mark: str) -> Iterator[list[str]]:
    group: list[str] = []
    for part in parts:
        if part == mark:
            yield group
            group = []
        else:
            group.append(part)
    yield group


def _name(part: str) -> str:
    """Return the expression for one name of a path."""
    first, *others = re.split(r"\*+", part)
    body = _plain(first)
    for index, piece in enumerate(others):
        last = index == len(others) - 1
        body += f"[^/]*{_plain(piece)}" if last else f"(?>[^/]*?{_plain(piece)})"
    return body


def _plain(text: str) -> str:
    """Return the expression for text without `*`."""
    pieces = re.split(r"(\?|\[!?[^\]/]+\])", text)
    return "".join(_piece(piece) for piece in pieces)


def _piece(piece: str) -> str:
    if piece == "?":
        return "[^/]"
    if len(piece) > 2 and piece.startswith("[") and piece.endswith("]"):
        return _class(piece[1:-1])
    return re.escape(piece)


def _class(inside: str) -> str:
    """Return the expression for the characters between brackets; after `!`, for all others."""
    negated = len(inside) > 1 and inside.startswith("!")
    rest = inside[1:] if negated else inside
    ranges = ""
    while rest:
        first, last, rest = rest[0], rest[0], rest[1:]
        if len(rest) > 1 and rest[0] == "-":
            last, rest = rest[1], rest[2:]
        if last < first:
            raise BadPattern(f"has the range `{first}-{last}`, which is empty")
        ranges += f"{re.escape(first)}-{re.escape(last)}"
    return f"(?!/)[{'^' if negated else ''}{ranges}]"


# The codes that are reported, and the files.


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of selections: the settings, or the command line."""

    select: tuple[str, ...] | None = None
    """Only these; earlier layers do not count then."""
    extend: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def decides(self, code: str) -> bool | None:
        """Return whether a code is reported; the longer prefix wins, and `ignore` at a tie."""
        chosen = _longest((*(self.select or ()), *self.extend), code)
        left_out = _longest(self.ignore, code)
        if chosen == left_out == 0:
            return None
        return chosen > left_out


@dataclass(frozen=True, slots=True)
class Selection:
    """The layers in order, later ones on top; and the codes left out in some files."""

    layers: tuple[Layer, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns of paths, and the codes that are not reported there."""
    root: str = "."
    """The folder from which the patterns are meant."""
    strict: bool = False
    """Whether kernels that were not checked are reported unless they are left out by name."""

    def includes(self, code: str, path: str) -> bool:
        """Return whether findings with this code are reported in this file."""
        chosen = True
        proof = self.strict and code == KernelNotChecked.code
        for layer in self.layers:
            if layer.select is not None and not proof:
                chosen = False
            decided = layer.decides(code)
            chosen = chosen if decided is None else decided
        file = split_cell(path)[0]
        return chosen and not any(
            code.startswith(codes) and matches(pattern, relative(file, self.root))
            for pattern, codes in self.per_file
        )

    def narrowed(self, finding: Diagnostic) -> Diagnostic | None:
        """Return the finding as it is reported, if it is; None otherwise.

        A suppression of codes that are not reported here is not reported as unused.
        """
        path = finding.span.path
        if not self.includes(finding.code, path):
            return None
        if isinstance(finding, UnusedSuppression) and finding.codes:
            codes = tuple(code for code in finding.codes if self._may_include(code, path))
            if not codes:
                return None
            others = finding.others or len(codes) < len(finding.codes)
            return finding.replaced(codes=codes, others=others)
        return finding

    def _may_include(self, prefix: str, path: str) -> bool:
        """Return whether some code with this prefix is reported."""
        codes = [code for code in all_codes() if code.startswith(prefix)]
        return any(self.includes(code, path) for code in codes or [prefix])


def relative(path: str, root: str) -> str:
    """Return a path as patterns see it: from the root, with `/`; absolute if it is elsewhere."""
    real, base = resolved(path), resolved(root)
    inside = real == base or real.startswith(base.rstrip(os.sep) + os.sep)
    return (os.path.relpath(real, base) if inside else real).replace(os.sep, "/")


def _longest(prefixes: tuple[str, ...], code: str) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=0)
