"""Finding and reading the settings; what is wrong with them is told with its place."""

from __future__ import annotations

import os
from difflib import get_close_matches
from typing import Any, cast

from pscdsl.configuration.places import Places
from pscdsl.configuration.settings import READERS, Settings, Wrong
from pscdsl.report.sources import shown_path
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


def find_settings(folder: str) -> Settings:
    """The settings of the nearest `pyproject.toml` that has some, from a folder upwards."""
    at = os.path.realpath(folder)
    while True:
        path = os.path.join(at, "pyproject.toml")
        if os.path.isfile(path):
            found = _read(path)
            if found is not None:
                return found
        above = os.path.dirname(at)
        if above == at:
            return Settings(root=os.path.realpath(folder))
        at = above


def read_settings(path: str) -> Settings:
    """The settings in a file; a Failure if there are none."""
    found = _read(path)
    if found is None:
        nowhere = Span(shown_path(path), 1, 1, 1, 1)
        raise Failure(UnreadableSettings(reason="there is no table `[tool.pscdsl]`", span=nowhere))
    return found


def _read(path: str) -> Settings | None:
    """The settings in a file, if it has any; a Failure with all that is wrong with them."""
    content = _content(path)
    if b"pscdsl" not in content:
        return None
    import tomllib

    shown = shown_path(path)
    try:
        text = content.decode("utf-8")
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
    return _settings(
        cast("dict[str, object]", table), places, os.path.dirname(os.path.realpath(path))
    )


def _content(path: str) -> bytes:
    nowhere = Span(shown_path(path), 1, 1, 1, 1)
    try:
        with open(path, "rb") as file:
            content = file.read(_LIMIT + 1)
    except OSError as problem:
        reason = problem.strerror or "it cannot be opened"
        raise Failure(UnreadableSettings(reason=reason, span=nowhere)) from None
    if len(content) > _LIMIT:
        reason = f"it is larger than {_LIMIT} bytes"
        raise Failure(UnreadableSettings(reason=reason, span=nowhere))
    return content.replace(b"\r\n", b"\n")


def _unreadable(path: str, problem: Exception) -> Diagnostic:
    """What the reader of TOML says, at the place that it names."""
    import re

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
    if problems:
        raise Failure(*problems)
    return Settings(root=root, **values)
