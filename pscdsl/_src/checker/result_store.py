"""Results of earlier checks on disk, and whether they still hold."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from pscdsl._src.caching.store import user_key
from pscdsl._src.checker.check import CheckResult
from pscdsl._src.checker.selection import all_kinds
from pscdsl._src.frontend.modules.files import Files, Found, Question
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.support.paths import Folder, real
from pscdsl._src.support.tracebacks import FOLDER
from pscdsl.typing.diagnostics import Diagnostic, find

# Frozen dataclasses of plain values as JSON data, and back by their annotations.
#
# Reading data makes no choice by what the data says: the annotations say what is read, and whatever
# does not fit is refused.


Reader = Callable[[Any], Any]


class Unreadable(Exception):
    """The data is not of the type that was asked for."""


def encode(value: Any, special: Mapping[type, Callable[[Any], Any]]) -> Any:
    """A value as JSON data; `special` says how other classes are written."""
    if value is None or isinstance(value, str | int | float):
        return value.value if isinstance(value, Enum) else value
    for kind, write in special.items():
        if isinstance(value, kind):
            return write(value)
    if isinstance(value, frozenset):
        return sorted(encode(each, special) for each in _items(value))
    if isinstance(value, tuple | list):
        return [encode(each, special) for each in _items(value)]
    if is_dataclass(value):
        return [encode(getattr(value, field.name), special) for field in fields(value)]
    raise TypeError(f"{type(value).__name__} has no form as data")


def _items(value: Any) -> Any:
    return value


def decode(annotation: Any, data: Any, special: Mapping[type, Reader]) -> Any:
    """The value of a type that data stands for; raises `Unreadable` if it is none."""
    if isinstance(annotation, type):
        for kind, read in special.items():
            if issubclass(annotation, kind):
                return read(data)
        if annotation in (str, bool, int, float, types.NoneType):
            return _plain(annotation, data)
        if is_dataclass(annotation):
            return _record(annotation, data, special)
    if annotation is Any:
        return data
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal and data in arguments:
        return data
    if origin in (Union, types.UnionType):
        return _either(arguments, data, special)
    if origin in (tuple, frozenset) and isinstance(data, list):
        items: list[Any] = _items(data)
        if origin is frozenset:
            return frozenset({decode(arguments[0], item, special) for item in items})
        if arguments[-1] is Ellipsis:
            return tuple([decode(arguments[0], item, special) for item in items])
        if len(items) == len(arguments):
            pairs = zip(arguments, items, strict=True)
            return tuple([decode(each, item, special) for each, item in pairs])
    raise Unreadable(f"not {annotation}")


def _plain(annotation: type, data: Any) -> Any:
    if type(data) is not annotation:
        raise Unreadable(f"not {annotation.__name__}")
    return data


def _either(arguments: tuple[Any, ...], data: Any, special: Mapping[type, Reader]) -> Any:
    for argument in arguments:
        try:
            return decode(argument, data, special)
        except Unreadable:
            continue
    raise Unreadable("fits none of several types")


def _record(annotation: Any, data: Any, special: Mapping[type, Reader]) -> Any:
    hints = _hints(annotation)
    if not isinstance(data, list) or len(_items(data)) != len(hints):
        raise Unreadable(f"not {annotation.__name__}")
    pairs = zip(hints, _items(data), strict=True)
    return annotation(**{name: decode(hints[name], each, special) for name, each in pairs})


@cache
def _hints(annotation: Any) -> dict[str, Any]:
    hints = get_type_hints(annotation)
    return {field.name: hints[field.name] for field in fields(annotation)}


# Results of checks as data.
#
# Of a finding, the places, the kernel and the wording are kept, and so is its kind; the facts that
# the wording was made from (types, sizes) are not.  Every report shows the same of both.


_WORDING = ("message", "label", "help", "advice")


class Recorded(Diagnostic):
    """A finding that was read back: the wording is as it was written down."""

    wording: tuple[str | None, ...] = ()

    def message(self) -> str:
        """What is wrong."""
        return self.wording[0] or ""

    def label(self) -> str:
        """Text beside the carets."""
        return self.wording[1] or ""

    def help(self) -> str | None:
        """What to write instead."""
        return self.wording[2]

    def advice(self) -> str | None:
        """What to write instead, sizes written as the code can."""
        return self.wording[3]


@cache
def recorded_kind(code: str) -> type[Recorded]:
    """The class of findings with a code that were read back; raises `Unreadable` without one."""
    kind = find(code)
    if kind is None:
        all_kinds()  # those of its family have not been needed yet
        kind = find(code)
    if kind is None:
        raise Unreadable(f"no such code: {code}")
    body = {"__doc__": kind.__doc__, "__module__": kind.__module__, "code": kind.code}
    made = type(kind.__name__, (Recorded,), {**body, "severity": kind.severity})
    assert issubclass(made, Recorded)
    return made


@cache
def _kept() -> dict[str, Any]:
    """The fields that every finding has, and their types."""
    hints = get_type_hints(Diagnostic)
    return {name: hints[name] for name in Diagnostic.fact_names()}


def plain(value: Any) -> Any:
    """A result, or a part of one, as JSON data."""
    return encode(value, {Diagnostic: _written})


def _written(finding: Diagnostic) -> Any:
    wording = [getattr(finding, name)() for name in _WORDING]
    return [finding.code, wording, [plain(getattr(finding, name)) for name in _kept()]]


def read_result(data: Any) -> CheckResult:
    """A result from its data; raises `Unreadable` if it is none."""
    result: CheckResult = read(CheckResult, data)
    return result


def read(annotation: Any, data: Any) -> Any:
    """Any part of a result from its data."""
    return decode(annotation, data, {Diagnostic: _finding})


def _finding(data: Any) -> Recorded:
    code, wording, facts = read(tuple[str, tuple[str | None, ...], tuple[Any, ...]], data)
    kind = recorded_kind(code)
    if len(wording) != len(_WORDING) or len(facts) != len(_kept()):
        raise Unreadable(f"not a finding: {code}")
    known = {
        name: read(type_, fact) for (name, type_), fact in zip(_kept().items(), facts, strict=True)
    }
    return kind(wording=wording, **known)


# What the result of a check depends on, and whether that is still so.


@dataclass(frozen=True)
class Reads:
    """Everything that the check of a file learned about other files."""

    contents: tuple[tuple[str, str], ...]
    """The files whose text mattered, and what stands for their content."""
    answers: tuple[tuple[Question, Found | None], ...]
    """The modules that were looked for and what was found, also where nothing was."""
    searches: tuple[tuple[str, str, str], ...]
    """What was asked of all files, and what stands for the answers: one that is found without
    parsing, and may change without need, and the answer itself; see `Files.answer_to`."""

    def hold(self, files: Files) -> bool:
        """Whether the check would learn the same today."""
        return (
            all(files.digest(path) == digest for path, digest in self.contents)
            and all(files.finder.find(question) == found for question, found in self.answers)
            and all(
                files.quick_answer_to(name) == quick or files.answer_to(name) == digest
                for name, quick, digest in self.searches
            )
        )

    def renewed(self, files: Files) -> Reads:
        """The same, so that it is found to hold without parsing."""
        searches = (
            (name, files.quick_answer_to(name), answer) for name, _, answer in self.searches
        )
        return replace(self, searches=tuple(searches))


def reads_of(project: Project, path: str) -> Reads:
    """What a check has read, by the modules that were made for it."""
    files = project.files
    modules = project.modules()
    questions = dict.fromkeys(question for module in modules for question in module.asked)
    answers = {question: files.finder.find(question) for question in questions}
    found = (answer.file for answer in answers.values() if answer is not None)
    paths = sorted({path, *project.by_path, *(file for file in found if file is not None)})
    names = sorted({name for module in modules for name in module.searched})
    return Reads(
        tuple((each, files.digest(each)) for each in paths),
        tuple(sorted(answers.items(), key=lambda item: (item[0].name, item[0].folders))),
        tuple((name, files.quick_answer_to(name), files.answer_to(name)) for name in names),
    )


# Results on disk: one file for each file that was checked, read as data.
#
# An entry is used only if this user has written it, as the seal says, which depends on the user's
# key; if it was made by this version of pscdsl under the same conditions; and if all that its check
# had read is as it was.  Anything else is no entry.  Wherever the folder lies, no link is followed,
# and nothing is removed but what has the name of an entry.


_IGNORED = "# Made by pscdsl, for pscdsl alone.\n*\n"
_MOST_BYTES = 200_000_000
_MOST_ENTRIES = 20_000
_ENTRY_BYTES = 20_000_000
_OLD = 3600.0
"""Seconds after which a file that was never finished is removed."""
_DAY = 86400.0
_OWN = re.compile(r"(?P<entry>[0-9a-f]{32}\.json)|[0-9a-f]{16}\.part")
"""The names of what is written here."""
_UNCERTAIN = ("PSC934", "PSC999")
"""What another try may not find."""


class Store:
    """The entries in a folder; one that cannot be used holds nothing."""

    def __init__(self, folder: str | Path, files: Files) -> None:
        self.conditions = conditions(files.roots)
        self._place = str(folder)
        self._key = user_key((*files.bounds, os.getcwd()))
        self._folder = None if self._key is None else self._opened(make=False)
        self._written = False

    def get(self, path: str, files: Files) -> CheckResult | None:
        """The result of checking a file, if it is known and would still be the same."""
        if self._folder is None or self._key is None:
            return None
        try:
            name = self._entry(path)
            data = self._folder.read(name, _ENTRY_BYTES)
            conditions, owner, reads, result = _unsealed(data, self._key)
            if (conditions, owner) != (self.conditions, path):
                return None
            known: Reads = read(Reads, reads)
            if not known.hold(files):
                return None
            renewed = known.renewed(files)
            if renewed != known:
                self.put(path, renewed, read_result(result))
            state = self._folder.state(name)
            if state is not None and time.time() - state.st_mtime > _DAY:
                self._folder.touch(name)  # used now: the oldest are removed first
            return read_result(result)
        except (OSError, ValueError, Unreadable, RecursionError):
            return None

    def put(self, path: str, reads: Reads, result: CheckResult) -> None:
        """Keep a result; without a place for it, nothing is stored."""
        if any(finding.code in _UNCERTAIN for finding in result.diagnostics):
            return
        if self._key is None:
            return
        data = _sealed([self.conditions, path, plain(reads), plain(result)], self._key)
        if len(data) > _ENTRY_BYTES:
            return
        with contextlib.suppress(OSError, ValueError):
            if self._folder is None:
                self._folder = self._opened(make=True)
            if self._folder is not None:
                self._folder.replace(self._entry(path), data)
                self._written = True

    def _entry(self, path: str) -> str:
        name = blake2b(os.fsencode(path), digest_size=16, key=self.conditions.encode()[:64])
        return f"{name.hexdigest()}.json"

    def _opened(self, *, make: bool) -> Folder | None:
        """The folder of the entries; a new one lies in a folder that version control ignores."""
        try:
            place = real(self._place)
            if place is None:
                return None
            if make:
                with Folder(place, make=True) as outer:
                    outer.create(".gitignore", _IGNORED.encode(), 0o644)
            return Folder(os.path.join(place, "results"), make=make)
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Remove the oldest entries if there are too many, and what was never finished."""
        if self._folder is None:
            return
        if self._written:
            with contextlib.suppress(OSError):
                self._trim(self._folder)
        self._folder.close()

    def _trim(self, folder: Folder) -> None:
        now = time.time()
        entries: list[tuple[float, int, str]] = []
        for name in folder.names():
            kind = _OWN.fullmatch(name)
            state = folder.state(name) if kind else None
            if kind is None or state is None:
                continue
            if kind["entry"]:
                entries.append((state.st_mtime, state.st_size, name))
            elif now - state.st_mtime > _OLD:
                folder.remove(name)
        for name in _surplus(entries):
            folder.remove(name)


def _surplus(entries: list[tuple[float, int, str]]) -> Iterator[str]:
    """The oldest entries, as many as are too many or too large together."""
    entries.sort(reverse=True)
    total = 0
    for index, (_, size, name) in enumerate(entries):
        total += size
        if index >= _MOST_ENTRIES or total > _MOST_BYTES:
            yield name


def _sealed(content: Any, key: bytes) -> bytes:
    body = json.dumps(content, separators=(",", ":")).encode()
    return _seal(body, key) + b"\n" + body


def _unsealed(data: bytes, key: bytes) -> tuple[str, str, Any, Any]:
    """The four parts of an entry; raises `Unreadable` if it is damaged, or somebody else's."""
    seal, _, body = data.partition(b"\n")
    if not compare_digest(seal, _seal(body, key)):
        raise Unreadable("damaged")
    try:
        content = json.loads(body)
    except ValueError:
        raise Unreadable("not JSON") from None
    parts: tuple[str, str, Any, Any] = read(tuple[str, str, Any, Any], content)
    return parts


def _seal(body: bytes, key: bytes) -> bytes:
    return blake2b(body, digest_size=32, key=key).hexdigest().encode()


def conditions(roots: Sequence[str]) -> str:
    """What stands for everything but the files that a check depends on."""
    parts = (
        *(sys.version, platform.platform(), np.__version__, os.getcwd(), str(sys.flags.optimize)),
        *roots,
        *(f"{path} {state.st_size} {state.st_mtime_ns}" for path, state in _own_files()),
    )
    return blake2b("\0".join(parts).encode(errors="surrogateescape"), digest_size=32).hexdigest()


def _own_files() -> Iterator[tuple[str, os.stat_result]]:
    """The sources of pscdsl itself, where they are and when they were changed."""
    for place, names, files in os.walk(FOLDER, followlinks=True):
        names[:] = sorted(name for name in names if name != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".pyi")):
                path = os.path.join(place, name)
                yield path, os.stat(path)
