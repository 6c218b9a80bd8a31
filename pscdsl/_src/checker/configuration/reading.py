"""Finding and reading the settings; what is wrong with them is told with its place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, cast

from pscdsl._src.checker.configuration.places import Places
from pscdsl._src.checker.configuration.settings import READERS, Settings, Wrong
from pscdsl._src.frontend.text.sources import shown_path
from pscdsl._src.support.paths import inside, inside_any, read, real, resolved
from pscdsl.typing.codes.limits_configuration import (
    UnknownSetting,
    UnreadableSettings,
    WrongSetting,
)
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.spans import Span

_TABLE = ("tool", "pscdsl")
_LIMIT = 1_000_000
_MOST = 20
"""More problems than this are not told."""
_MOST_PARTS = 50
_PART = r"""(?:(?<![\w-])[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DEEP = re.compile(rf"(?:{_PART}[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}")


def find_settings(folder: str) -> Settings:
    """The settings of the nearest `pyproject.toml` that has some, from a folder upwards.

    A repository is not left: what lies above it says nothing of it.
    """
    start = at = resolved(folder)
    while True:
        path = os.path.join(at, "pyproject.toml")
        if os.path.lexists(path) and not os.path.isdir(path):
            found = _read(_kept_inside(path, at), at)
            if found is not None:
                return found
        above = os.path.dirname(at)
        if above == at or os.path.lexists(os.path.join(at, ".git")):
            return Settings(root=start)
        at = above


def _kept_inside(path: str, folder: str) -> str:
    """Where a file leads; a Failure if that is out of its folder."""
    end = real(path)
    if end is None or not inside(end, folder):
        reason = "it is a link that leads out of its folder"
        nowhere = Span(os.path.relpath(path), 1, 1, 1, 1)
        raise Failure(UnreadableSettings(reason=reason, span=nowhere))
    return end


def read_settings(path: str) -> Settings:
    """The settings in a file; a Failure if there are none."""
    path = resolved(path)
    found = _read(path, os.path.dirname(path))
    if found is None:
        nowhere = Span(shown_path(path), 1, 1, 1, 1)
        raise Failure(UnreadableSettings(reason="there is no table `[tool.pscdsl]`", span=nowhere))
    return found


def _read(path: str, root: str) -> Settings | None:
    """The settings in a file, if it has any; a Failure with all that is wrong with them.

    What is read here was written by whoever wrote the program: it names nothing outside of `root`,
    the current folder apart.
    """
    content = _content(path)
    if b"pscdsl" not in content:
        return None
    import tomllib

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
    """What the reader of TOML says, at the place that it names."""
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
    """The paths that leave the project, by themselves or through links."""
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
