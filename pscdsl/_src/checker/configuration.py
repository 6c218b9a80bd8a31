"""The settings in `[tool.pscdsl]` of pyproject.toml, and the problems with them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

from pscdsl._src.checker.report import FORMATS
from pscdsl._src.checker.selection import (
    BadPattern,
    Layer,
    Selection,
    compiled,
    is_known,
    matches,
    relative,
)
from pscdsl._src.dialects.jax import DIALECTS
from pscdsl._src.frontend.text.display import shown_path
from pscdsl._src.support.paths import inside, inside_any, read, real, resolved
from pscdsl.typing.codes.projects import UnknownSetting, UnreadableSettings, WrongSetting
from pscdsl.typing.diagnostics import Diagnostic, Failure, Span

# The places of keys in TOML text, which Python's reader does not return.


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
        """Return the place of a key, or of a text in its value; of its parent, if it is hidden."""
        for length in range(len(keys), 0, -1):
            span = self._found.get(tuple(keys[:length]))
            if span is not None:
                return span if value is None else self._text(value, span)
        return Span(self._path, 1, 1, 1, 1)

    def _text(self, value: str, key: Span) -> Span:
        """Return the first quoted text like this one after a key, before the next key."""
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


# The settings, and how each is read.


MOST = 200
"""The most entries of a list or a table."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in `[tool.pscdsl]`; paths and patterns are relative to the folder `root`."""

    root: str = "."
    paths: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    strict: bool = False
    format: str = "text"
    baseline: str = ""
    strict_baseline: bool = False
    dialect: str = "auto"

    def excludes(self, path: str) -> bool:
        """Return whether a file is left out, unless it is asked for by name."""
        if not self.exclude:
            return False
        place = relative(path, self.root)
        return any(matches(pattern, place) for pattern in self.exclude)

    def selection(self, *more: Layer) -> Selection:
        """Return the codes to report, with the layers of the command line on top."""
        own = Layer(self.select, self.extend_select, self.ignore)
        return Selection((own, *more), self.per_file_ignores, self.root, self.strict)


class Wrong(Exception):
    """A value that a setting cannot have."""

    def __init__(
        self, problem: str, remedy: str, keys: tuple[str, ...] = (), text: str = ""
    ) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy
        self.keys = keys
        """The key below the setting."""
        self.text = text
        """The text in the value that is wrong."""


def texts(value: object) -> tuple[str, ...]:
    """Read a list of texts."""
    rows = cast("list[object]", value) if isinstance(value, list) else [None]
    found = tuple(row for row in rows if isinstance(row, str))
    if len(found) < len(rows):
        raise Wrong("is not a list of texts", 'write for instance ["a", "b"]')
    if len(found) > MOST:
        raise Wrong(f"has {len(found)} entries", f"write at most {MOST}, for instance of folders")
    return found


def patterns(value: object) -> tuple[str, ...]:
    """Read a list of patterns of paths."""
    found = texts(value)
    for each in found:
        try:
            compiled(each)
        except BadPattern as bad:
            remedy = "write names with `*`, `?` and ranges like `[a-z]`"
            raise Wrong(f"has a pattern that {bad}", remedy, text=each) from None
    return found


def codes(value: object) -> tuple[str, ...]:
    """Read a list of codes, or beginnings of codes."""
    found = texts(value)
    for code in found:
        if not is_known(code.upper()):
            remedy = "write codes or families, for instance PSC301 or PSC7 (`pscdsl explain`)"
            raise Wrong(f"has the code `{code}`, which does not exist", remedy, text=code)
    return tuple(code.upper() for code in found)


def codes_by_pattern(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Read a table of patterns of paths with the codes that are left out there."""
    if not isinstance(value, dict):
        raise Wrong("is not a table", 'write for instance {"tests/**" = ["PSC7"]}')
    rows: list[tuple[str, tuple[str, ...]]] = []
    table = cast("dict[str, object]", value)
    patterns(list(table))
    for pattern, given in table.items():
        try:
            rows.append((pattern, codes(given)))
        except Wrong as wrong:
            raise Wrong(wrong.problem, wrong.remedy, (pattern,), wrong.text) from None
    return tuple(rows)


def truth(value: object) -> bool:
    """Read `true` or `false`."""
    if not isinstance(value, bool):
        raise Wrong("is neither true nor false", "write true or false")
    return value


def text(value: object) -> str:
    """Read a text."""
    if not isinstance(value, str) or not value:
        raise Wrong("is not a text", "write a text in quotes")
    return value


def known_format(value: object) -> str:
    """Read the name of a format."""
    if value not in FORMATS:
        raise Wrong("is not a format", f"write one of {', '.join(FORMATS)}")
    return str(value)


def known_dialect(value: object) -> str:
    """Read which files are checked as JAX programs."""
    if value not in DIALECTS:
        raise Wrong("is not a dialect", f"write one of {', '.join(DIALECTS)}")
    return str(value)


READERS: Mapping[str, Callable[[object], object]] = {
    "paths": texts,
    "exclude": patterns,
    "select": codes,
    "extend-select": codes,
    "ignore": codes,
    "per-file-ignores": codes_by_pattern,
    "strict": truth,
    "format": known_format,
    "baseline": text,
    "strict-baseline": truth,
    "dialect": known_dialect,
}
"""The settings by name, with readers of their values; the fields of `Settings` are named alike."""


# Finding and reading the settings; problems with them are reported with their places.


_TABLE = ("tool", "pscdsl")
_LIMIT = 1_000_000
_MOST = 20
"""More problems than this are not reported."""
_MOST_PARTS = 50
_PART = r"""(?:(?<![\w-])[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DEEP = re.compile(rf"(?:{_PART}[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}")


def find_settings(folder: str) -> Settings:
    """Return the settings of the nearest `pyproject.toml` that has some, from a folder upwards.

    The search ends at the root of a repository: files above it do not count.
    """
    for path in possible_files(folder):
        if os.path.lexists(path) and not os.path.isdir(path):
            at = os.path.dirname(path)
            found = _read(_kept_inside(path, at), at)
            if found is not None:
                return found
    return Settings(root=resolved(folder))


def possible_files(folder: str) -> Iterator[str]:
    """Yield the possible files with settings, from a folder upwards in its repository."""
    at = resolved(folder)
    while True:
        yield os.path.join(at, "pyproject.toml")
        above = os.path.dirname(at)
        if above == at or os.path.lexists(os.path.join(at, ".git")):
            return
        at = above


def _kept_inside(path: str, folder: str) -> str:
    """Return the target of a file; a Failure if that is out of its folder."""
    end = real(path)
    if end is None or not inside(end, folder):
        reason = "it is a link that leads out of its folder"
        nowhere = Span(os.path.relpath(path), 1, 1, 1, 1)
        raise Failure(UnreadableSettings(reason=reason, span=nowhere))
    return end


def read_settings(path: str) -> Settings:
    """Return the settings in a file; a Failure if there are none."""
    path = resolved(path)
    found = _read(path, os.path.dirname(path))
    if found is None:
        nowhere = Span(shown_path(path), 1, 1, 1, 1)
        raise Failure(UnreadableSettings(reason="there is no table `[tool.pscdsl]`", span=nowhere))
    return found


def _read(path: str, root: str) -> Settings | None:
    """Return the settings in a file, if it has any; a Failure with all problems with them.

    What is read here was written by the author of the program: it names nothing outside of `root`,
    the current folder apart.
    """
    content = _content(path)
    if b"pscdsl" not in content:
        return None
    import tomllib  # many projects have no settings

    shown = shown_path(path)
    try:
        text = content.decode("utf-8")
        if _DEEP.search(text):  # tomllib takes a time that grows with the square of this
            raise ValueError(f"a name has more than {_MOST_PARTS} parts")
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Failure(_unreadable(shown, problem)) from None
    table: object = document
    for key in _TABLE:
        table = cast("dict[str, object]", table).get(key) if isinstance(table, dict) else None
    if table is None:
        return None
    places = Places(shown, text)
    if not isinstance(table, dict):
        finding = WrongSetting(
            name="tool.pscdsl", problem="is not a table", remedy="write `[tool.pscdsl]`"
        )
        raise Failure(finding.at(places.of(_TABLE)))
    return _settings(cast("dict[str, object]", table), places, root)


def _content(path: str) -> bytes:
    nowhere = Span(shown_path(path), 1, 1, 1, 1)
    try:
        content = read(path, _LIMIT)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "it cannot be opened"
        raise Failure(UnreadableSettings(reason=reason, span=nowhere)) from None
    return content.replace(b"\r\n", b"\n")


def _unreadable(path: str, problem: Exception) -> Diagnostic:
    """Return the problem that the TOML reader reports, at the place that it names."""
    if isinstance(problem, UnicodeDecodeError):
        return UnreadableSettings(reason="it is not UTF-8", span=Span(path, 1, 1, 1, 1))
    said = str(problem) if isinstance(problem, ValueError) else "it is nested too deeply"
    place = re.search(r" \(at line (\d+), column (\d+)\)", said)
    line, column = (int(place[1]), int(place[2])) if place else (1, 1)
    reason = said.replace(place[0], "") if place else said.replace(" (at end of document)", "")
    reason = reason[:1].lower() + reason[1:]
    return UnreadableSettings(reason=reason, span=Span(path, line, column, line, column + 1))


def _settings(table: dict[str, object], places: Places, root: str) -> Settings:
    problems: list[Diagnostic] = []
    values: dict[str, Any] = {}
    for name, value in table.items():
        if len(problems) >= _MOST:
            break
        reader = READERS.get(name)
        if reader is None:
            near = get_close_matches(name.replace("_", "-").lower(), READERS, 1)
            unknown = UnknownSetting(
                name=name, nearest=near[0] if near else "", known=tuple(READERS)
            )
            problems.append(unknown.at(places.of((*_TABLE, name))))
            continue
        try:
            values[name.replace("-", "_")] = reader(value)
        except Wrong as wrong:
            keys = (*_TABLE, name, *wrong.keys)
            finding = WrongSetting(
                name=".".join((name, *wrong.keys)), problem=wrong.problem, remedy=wrong.remedy
            )
            problems.append(finding.at(places.of(keys, wrong.text or None)))
    problems += _leading_out(values, places, root)
    if problems:
        raise Failure(*problems)
    return Settings(root=root, **values)


def _leading_out(values: dict[str, Any], places: Places, root: str) -> Iterator[Diagnostic]:
    """Yield the paths that leave the project, by themselves or through links."""
    here = (root, os.getcwd())
    named = [("paths", path) for path in values.get("paths", ())]
    if baseline := values.get("baseline", ""):
        named.append(("baseline", baseline))
    for name, path in named:
        if not inside_any(real(os.path.join(root, path)), here):
            problem = f"has `{path}`, which leads out of the folder of the settings"
            remedy = "name it on the command line, if it is meant"
            finding = WrongSetting(name=name, problem=problem, remedy=remedy)
            yield finding.at(places.of((*_TABLE, name), path))
