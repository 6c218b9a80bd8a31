"""Results of earlier checks on disk, and whether they still hold."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import stat
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from hashlib import blake2b
from hmac import compare_digest
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from pscdsl._src.caching.store import user_key
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.checker.selection import all_kinds
from pscdsl._src.frontend.modules.files import FileFacts, Files, Found, Question
from pscdsl._src.support.paths import Folder, real
from pscdsl._src.support.tracebacks import FOLDER
from pscdsl.typing.diagnostics import Diagnostic, find

if TYPE_CHECKING:
    from pscdsl._src.frontend.modules.scope import Project

# Frozen dataclasses of plain values as JSON data, and back by their annotations. Findings have a
# special form, below.
#
# The contents of data never decide how it is read: the annotations do, and data that does not fit
# them is refused.


Reader = Callable[[Any], Any]


class Unreadable(Exception):
    """The data is not of the type that was asked for."""


def plain(value: Any) -> Any:
    """Return a result, or a part of one, as JSON data."""
    if value is None or isinstance(value, str | int | float):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Diagnostic):
        return _written(value)
    if isinstance(value, frozenset):
        return sorted(map(plain, _items(value)))
    if isinstance(value, tuple | list):
        return [plain(item) for item in _items(value)]
    if is_dataclass(value):
        return [plain(getattr(value, field.name)) for field in fields(value)]
    raise TypeError(f"{type(value).__name__} has no form as data")


def _items(value: Any) -> list[Any]:
    items: list[Any] = value
    return items


@cache
def reader(annotation: Any) -> Reader:
    """Return the function that makes a value of a type from data, or raises `Unreadable`."""
    if annotation is Diagnostic:
        return _finding
    if annotation in (str, bool, int, float, types.NoneType):
        return partial(_plain, annotation)
    if is_dataclass(annotation):
        return partial(_record, annotation)
    if annotation is Any:
        return lambda data: data
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return partial(_choice, arguments)
    if origin in (Union, types.UnionType):
        readers = [reader(argument) for argument in arguments]
        return partial(_either, readers)
    if origin is frozenset or (origin is tuple and arguments[-1] is Ellipsis):
        return partial(_collection, origin, reader(arguments[0]))
    if origin is tuple:
        readers = [reader(argument) for argument in arguments]
        return partial(_tuple, readers)
    return partial(_choice, ())


def _plain(annotation: type, data: Any) -> Any:
    if type(data) is not annotation:
        raise Unreadable(f"not {annotation.__name__}")
    return data


def _list(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise Unreadable("not a list")
    return _items(data)


def _tuple(readers: Sequence[Reader], data: Any) -> tuple[Any, ...]:
    items = _list(data)
    if len(items) != len(readers):
        raise Unreadable("not so many items")
    return tuple([read_item(item) for read_item, item in zip(readers, items, strict=True)])


def _collection(kind: Any, read_item: Reader, data: Any) -> Any:
    return kind([read_item(item) for item in _list(data)])


def _choice(choices: tuple[Any, ...], data: Any) -> Any:
    if data not in choices:
        raise Unreadable(f"not one of {choices}")
    return data


def _either(readers: Sequence[Reader], data: Any) -> Any:
    for reader in readers:
        try:
            return reader(data)
        except Unreadable:
            continue
    raise Unreadable("fits none of several types")


def _record(annotation: Any, data: Any) -> Any:
    return annotation(*_tuple(_field_readers(annotation), data))


@cache
def _field_readers(annotation: Any) -> tuple[Reader, ...]:
    hints = get_type_hints(annotation)
    return tuple(reader(hints[field.name]) for field in fields(annotation))


# Results of checks as data.
#
# Of a finding, the places, the kernel and the wording are kept, and so is its kind; the facts that
# the wording was made from (types, sizes) are not.  Every report shows the same of both.


_WORDING = ("message", "label", "help", "advice")


class Recorded(Diagnostic):
    """A finding that was read back: the wording is as it was written down."""

    wording: tuple[str | None, ...] = ()

    def message(self) -> str:
        """Return the message."""
        return self.wording[0] or ""

    def label(self) -> str:
        """Return the text next to the carets."""
        return self.wording[1] or ""

    def help(self) -> str | None:
        """Return the advice."""
        return self.wording[2]

    def advice(self) -> str | None:
        """Return the advice, with sizes in code as the program can write them."""
        return self.wording[3]


@cache
def recorded_kind(code: str) -> type[Recorded]:
    """Return the class for read findings with a code; raise `Unreadable` without one."""
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
    """Return the fields that every finding has, and their types."""
    hints = get_type_hints(Diagnostic)
    return {name: hints[name] for name in Diagnostic.fact_names()}


def _written(finding: Diagnostic) -> Any:
    wording = [getattr(finding, name)() for name in _WORDING]
    return [finding.code, wording, [plain(getattr(finding, name)) for name in _kept()]]


def read_result(data: Any) -> CheckResult:
    """Return a result from its data; raise `Unreadable` if it is none."""
    result: CheckResult = read(CheckResult, data)
    return result


def read(annotation: Any, data: Any) -> Any:
    """Read any part of a result from its data."""
    return reader(annotation)(data)


def _finding(data: Any) -> Recorded:
    code, wording, facts = read(tuple[str, tuple[str | None, ...], tuple[Any, ...]], data)
    kind = recorded_kind(code)
    if len(wording) != len(_WORDING) or len(facts) != len(_kept()):
        raise Unreadable(f"not a finding: {code}")
    known = {
        name: read(type_, fact) for (name, type_), fact in zip(_kept().items(), facts, strict=True)
    }
    return kind(wording=wording, **known)


# The dependencies of a check's result, and whether they still hold.


@dataclass(frozen=True)
class Reads:
    """Everything that the check of a file learned about other files."""

    contents: tuple[tuple[str, str], ...]
    """The files whose text mattered, and digests of their content."""
    answers: tuple[tuple[Question, Found | None], ...]
    """The modules that were looked up and the results, also where there was none."""
    searches: tuple[tuple[str, str], ...]
    """The questions about all files, and digests of their answers; see `Files.answer_to`."""

    def hold(self, files: Files) -> bool:
        """Return whether the check would read the same now."""
        return (
            all(files.digest(path) == digest for path, digest in self.contents)
            and all(files.finder.find(question) == found for question, found in self.answers)
            and all(files.answer_to(question) == digest for question, digest in self.searches)
        )


def reads_of(project: Project, path: str) -> Reads:
    """Return the reads of a check, by the modules that were made for it."""
    files = project.files
    modules = project.modules()
    questions = dict.fromkeys(question for module in modules for question in module.asked)
    answers = {question: files.finder.find(question) for question in questions}
    found = (answer.file for answer in answers.values() if answer is not None)
    paths = sorted({path, *project.by_path, *(file for file in found if file is not None)})
    questions_about_all = sorted({each for module in modules for each in module.searched})
    return Reads(
        tuple((each, files.digest(each)) for each in paths),
        tuple(sorted(answers.items(), key=lambda item: (item[0].name, item[0].folders))),
        tuple((question, files.answer_to(question)) for question in questions_about_all),
    )


@dataclass(frozen=True)
class ProjectSnapshot:
    """All files that the check of a project read, and the modules that it looked up."""

    states: tuple[tuple[str, tuple[int, ...]], ...]
    """The files, and the numbers that change when a file is written."""
    searched: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    """The folders in which modules were looked for, and their names."""
    found: str
    """A digest of the modules that were found."""
    facts: tuple[tuple[str, FileFacts], ...]
    """The known facts about the files."""
    with_kernels: bool
    """Whether calls of kernels were searched for writes."""

    def holding(self, files: Files) -> frozenset[str] | None:
        """Return the files that have not been written; None if another module would be found."""
        if self.found != _found(files, self.searched):
            return None
        return frozenset(path for path, state in self.states if _state(path) == state)

    def facts_for(self, unchanged: frozenset[str]) -> dict[str, FileFacts]:
        """Return the facts about the files that still hold if these are unchanged."""
        return {
            path: facts
            for path, facts in self.facts
            if path in unchanged and unchanged.issuperset(facts.consulted)
        }


_SETTLED = 2.0
"""Seconds after which another write cannot leave a file with the same time."""


def _snapshot(files: Files, reads: Sequence[Reads], started: float) -> ProjectSnapshot | None:
    """Return how the files are; None if one may have been written since the check started."""
    paths = {path for each in reads for path, _ in each.contents} | {*files.all()}
    states: list[tuple[str, tuple[int, ...]]] = []
    for path in sorted(paths):
        state = _state(path)
        if state is None or max(state[1:3]) > (started - _SETTLED) * 1e9:
            return None
        states.append((path, state))
    questions = {question for each in reads for question, _ in each.answers}
    names: dict[tuple[str, ...], list[str]] = {}
    for question in sorted(questions | files.finder.asked(), key=lambda each: each.name):
        names.setdefault(question.folders, []).append(question.name)
    searched = tuple((folders, tuple(each)) for folders, each in sorted(names.items()))
    known = ((path, files.facts_of(path)) for path in files.all())
    facts = tuple((path, each) for path, each in known if each is not None)
    return ProjectSnapshot(
        tuple(states), searched, _found(files, searched), facts, files.with_kernels
    )


def _state(path: str) -> tuple[int, ...] | None:
    """Return the numbers that change when a file is written; None if it is no file."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(state.st_mode):
        return None
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_dev


def _found(files: Files, searched: Sequence[tuple[tuple[str, ...], tuple[str, ...]]]) -> str:
    """Return a digest of the modules of these names."""
    answers = [
        files.finder.find(Question(where, name)) for where, names in searched for name in names
    ]
    text = repr([answer and (answer.file, answer.folders) for answer in answers])
    return blake2b(text.encode(errors="surrogateescape"), digest_size=16).hexdigest()


# Results on disk: one file for each file that was checked, and one for the project, read as data.
#
# An entry is used only if this user has written it, which its seal proves by the user's key; if
# this version of pscdsl made it under the same conditions; and if all that its check had read is
# unchanged. Any other file is ignored. Wherever the folder is, no link is followed, and only files
# with the name of an entry are removed.


_IGNORED = "# Made by pscdsl, for pscdsl alone.\n*\n"
_MOST_BYTES = 200_000_000
_MOST_ENTRIES = 20_000
_ENTRY_BYTES = 20_000_000
_OLD = 3600.0
"""Seconds after which a file that was never finished is removed."""
_DAY = 86400.0
_OWN = re.compile(r"(?P<entry>[0-9a-f]{32}\.json)|[0-9a-f]{16}\.part")
"""The names of the files that are written here."""
_UNCERTAIN = ("PSC934", "PSC999")
"""The codes of findings that another try may not repeat."""


class ResultStore:
    """The entries in a folder; one that cannot be used holds nothing."""

    def __init__(self, folder: str | Path, files: Files) -> None:
        self.conditions = conditions((*files.roots, files.dialect, repr(files.further)))
        self._place = str(folder)
        self._key = user_key((*files.bounds, os.getcwd()))
        self._folder = None if self._key is None else self._opened(make=False)
        self._written = False

    def get(self, path: str, files: Files) -> tuple[Reads, CheckResult] | None:
        """Return the reads and the result of a file's check, if they would still be the same."""
        found = self._read(path)
        if found is None:
            return None
        try:
            reads: Reads = read(Reads, found[0])
            if not reads.hold(files):
                return None
            result = read_result(found[1])
        except (Unreadable, RecursionError):
            return None
        return reads, result

    def put(self, path: str, reads: Reads, result: CheckResult) -> bool:
        """Keep the result of a file, and return whether it is certain."""
        certain = all(finding.code not in _UNCERTAIN for finding in result.diagnostics)
        if certain:
            self._write(path, reads, result)
        return certain

    def whole(self, files: Files) -> CheckResult | None:
        """Return the result of the project, if no file has been written since.

        Otherwise, give the known facts about the unchanged files to `files`.
        """
        entry = self._read(_project(files))
        try:
            snapshot: ProjectSnapshot | None = (
                None if entry is None else read(ProjectSnapshot, entry[0])
            )
            unchanged = None if snapshot is None else snapshot.holding(files)
            if entry is None or snapshot is None or unchanged is None:
                return None
            if len(unchanged) == len(snapshot.states):
                return read_result(entry[1])
            files.facts = snapshot.facts_for(unchanged)
            if files.with_kernels != snapshot.with_kernels:
                files.facts = {}
        except (Unreadable, RecursionError):
            pass
        return None

    def put_whole(
        self, files: Files, reads: Sequence[Reads], started: float, result: CheckResult
    ) -> None:
        """Keep the result of the project, if no file has been written since its check started."""
        snapshot = _snapshot(files, reads, started)
        if snapshot is not None:
            self._write(_project(files), snapshot, result)

    def _read(self, subject: str) -> tuple[Any, Any] | None:
        """Return the data of an entry: its dependencies, and the result."""
        if self._folder is None or self._key is None:
            return None
        try:
            name = self._entry(subject)
            data = self._folder.read(name, _ENTRY_BYTES)
            conditions, owner, depends, result = _unsealed(data, self._key)
            if (conditions, owner) != (self.conditions, subject):
                return None
            state = self._folder.state(name)
            if state is not None and time.time() - state.st_mtime > _DAY:
                self._folder.touch(name)  # used now: the oldest are removed first
        except (OSError, ValueError, Unreadable, RecursionError):
            return None
        return depends, result

    def _write(self, subject: str, depends: Reads | ProjectSnapshot, result: CheckResult) -> None:
        """Write an entry; without a place for it, nothing is stored."""
        if self._key is None:
            return
        data = _sealed([self.conditions, subject, plain(depends), plain(result)], self._key)
        if len(data) > _ENTRY_BYTES:
            return
        with contextlib.suppress(OSError, ValueError):
            if self._folder is None:
                self._folder = self._opened(make=True)
            if self._folder is not None:
                self._folder.replace(self._entry(subject), data)
                self._written = True

    def _entry(self, path: str) -> str:
        name = blake2b(os.fsencode(path), digest_size=16, key=self.conditions.encode()[:64])
        return f"{name.hexdigest()}.json"

    def _opened(self, *, make: bool) -> Folder | None:
        """Return the folder of the entries; version control ignores the folder around a new one."""
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
        """Remove the oldest entries if there are too many, and unfinished ones."""
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


def _project(files: Files) -> str:
    """Return a digest of the given files and the folders that are read."""
    parts = (*files.given, "", *files.bounds)
    digest = blake2b("\0".join(parts).encode(errors="surrogateescape"), digest_size=16)
    return f"project {digest.hexdigest()}"


def _surplus(entries: list[tuple[float, int, str]]) -> Iterator[str]:
    """Yield the oldest entries that are too many or too large together."""
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
    """Return the four parts of an entry; raise `Unreadable` if it is damaged or another user's."""
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


def conditions(settings: Sequence[str]) -> str:
    """Return a digest of all that a check depends on besides files."""
    parts = (
        *(sys.version, platform.platform(), version("numpy"), os.getcwd()),
        str(sys.flags.optimize),
        *settings,
        *(f"{path} {state.st_size} {state.st_mtime_ns}" for path, state in _own_files()),
    )
    return blake2b("\0".join(parts).encode(errors="surrogateescape"), digest_size=32).hexdigest()


def _own_files() -> Iterator[tuple[str, os.stat_result]]:
    """Yield the source files of pscdsl itself with their states."""
    for place, names, files in os.walk(FOLDER, followlinks=True):
        names[:] = sorted(name for name in names if name != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".pyi")):
                path = os.path.join(place, name)
                yield path, os.stat(path)
