"""The settings, and how each is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from pscdsl._src.checker.findings.globs import BadPattern, compiled, matches
from pscdsl._src.checker.findings.selection import Layer, Selection, relative
from pscdsl._src.checker.report.kinds import is_known

MOST = 200
"""A list or a table may have so many entries."""

FORMATS = ("text", "concise", "json", "sarif", "github")


@dataclass(frozen=True, slots=True)
class Settings:
    """What `[tool.pscdsl]` says; paths and patterns are meant from the folder `root`."""

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

    def excludes(self, path: str) -> bool:
        """Whether a file is left out, unless it is asked for by name."""
        if not self.exclude:
            return False
        place = relative(path, self.root)
        return any(matches(pattern, place) for pattern in self.exclude)

    def selection(self, *more: Layer) -> Selection:
        """Which findings are reported, with what the command line says on top."""
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
        """The key below the setting at which it stands."""
        self.text = text
        """The text in the value that is wrong."""


def texts(value: object) -> tuple[str, ...]:
    """A list of texts."""
    rows = cast("list[object]", value) if isinstance(value, list) else [None]
    found = tuple(each for each in rows if isinstance(each, str))
    if len(found) < len(rows):
        raise Wrong("is not a list of texts", 'write for instance ["a", "b"]')
    if len(found) > MOST:
        raise Wrong(f"has {len(found)} entries", f"write at most {MOST}, for instance of folders")
    return found


def patterns(value: object) -> tuple[str, ...]:
    """A list of patterns of paths."""
    found = texts(value)
    for each in found:
        try:
            compiled(each)
        except BadPattern as bad:
            remedy = "write names with `*`, `?` and ranges like `[a-z]`"
            raise Wrong(f"has a pattern that {bad}", remedy, text=each) from None
    return found


def codes(value: object) -> tuple[str, ...]:
    """A list of codes, or beginnings of codes."""
    found = texts(value)
    for code in found:
        if not is_known(code.upper()):
            remedy = "write codes or families, for instance PSC301 or PSC7 (`pscdsl explain`)"
            raise Wrong(f"has the code `{code}`, which does not exist", remedy, text=code)
    return tuple(code.upper() for code in found)


def codes_by_pattern(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """A table of patterns of paths with the codes that are left out there."""
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
    """`true` or `false`."""
    if not isinstance(value, bool):
        raise Wrong("is neither true nor false", "write true or false")
    return value


def text(value: object) -> str:
    """A text."""
    if not isinstance(value, str) or not value:
        raise Wrong("is not a text", "write a text in quotes")
    return value


def known_format(value: object) -> str:
    """The name of a format."""
    if value not in FORMATS:
        raise Wrong("is not a format", f"write one of {', '.join(FORMATS)}")
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
}
"""The settings by name, with what reads their values; the fields of `Settings` are named alike."""
