"""The state of the server: unsaved texts over the disk, settings, and valid results.

All other modules call two functions: `Workspace.check(path)` for the findings in a file as the
editor has it, and `Checked.kernel_at(path, line)` for the kernel around a line. This module is
independent of the protocol.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pscdsl._src.checker import baseline
from pscdsl._src.checker.baseline import Baseline, BaselineError, Fingerprints, triage
from pscdsl._src.checker.check import Held, check_file, deep_stack
from pscdsl._src.checker.configuration import Settings, find_settings, possible_files
from pscdsl._src.checker.fixing import fix_file, with_confirmed
from pscdsl._src.checker.result_store import Reads, reads_of
from pscdsl._src.checker.results import CheckResult, summary
from pscdsl._src.checker.selection import Layer, Selection
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.modules.files import Files, files_below
from pscdsl._src.frontend.text.display import (
    NotANotebook,
    Sources,
    cell_path,
    code_cells,
    decode,
    shown_path,
    split_cell,
)
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.server.edits import Edits, both, unaffected
from pscdsl._src.support.paths import Refused, inside, resolved
from pscdsl.typing.diagnostics import Diagnostic, Failure, Span

Kernel = tuple[str, Definition]


@dataclass(frozen=True, slots=True)
class TextPosition:
    """A place in a text: the path by which findings name the text, line and column from 1."""

    path: str
    line: int
    column: int

    def within(self, span: Span) -> bool:
        """Return whether a span covers it; the end counts, as a cursor may be behind a name."""
        start, end = (span.line, span.column), (span.end_line, span.end_column)
        return span.path == self.path and start <= (self.line, self.column) <= end


@dataclass(frozen=True, eq=False)
class Checked:
    """The findings in a file, and the files that were checked."""

    files: Files
    path: str
    """The real one."""
    result: CheckResult
    """Comments are not applied yet."""
    reads: Reads
    held: tuple[tuple[str, Held], ...]

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that were checked, by name."""
        return tuple((name, each.definition) for name, each in self.held)

    @property
    def source(self) -> Source | None:
        """The text and the tree of the file; None if it is not Python."""
        try:
            return self.files.source(self.path)
        except Failure:
            return None

    @cached_property
    def confirmed(self) -> CheckResult:
        """The result, only with those fixes that a check of the fixed file confirms."""
        return with_confirmed(self.files, self.path, self.result)

    def kernel_at(self, path: str, line: int) -> Kernel | None:
        """Return the kernel around a line of a file or a cell (as findings name it)."""
        for name, definition in self.kernels:
            span = definition.span
            if span.path == path and span.line <= line <= span.end_line:
                return name, definition
        return None


@dataclass
class Area:
    """The files that one `pyproject.toml` is for, or one folder without settings."""

    settings: Settings
    selection: Selection
    baseline: Baseline
    problems: tuple[Diagnostic, ...]
    """The problems with the settings, which are the default ones then."""
    files: Files
    opened: dict[str, None] = field(default_factory=dict[str, None])
    results: dict[str, Checked] = field(default_factory=dict[str, Checked])
    edits: Edits = field(default_factory=Edits)

    def check(self, path: str) -> Checked:
        """Return the check of a file; the earlier one, if the check would read the same."""
        known = self.results.get(path)
        if known is not None and known.files is self.files:
            return known
        if known is not None and known.reads.hold(self.files):
            known = replace(known, files=self.files)
        else:
            held: list[tuple[str, Held]] = []

            def seen(name: str, each: Held) -> None:
                held.append((name, each))

            same = {} if known is None else unaffected(known, self.files)
            before = known.reads if known is not None and same else Reads((), (), ())
            files = [each for each, _ in before.contents]
            with deep_stack():
                result, project = check_file(self.files, path, seen, same, files)
                reads = both(reads_of(project, path), before)
            known = Checked(self.files, path, result, reads, tuple(held))
        self.results[path] = known
        return known

    def reported(
        self, results: Sequence[CheckResult], texts: Mapping[str, str]
    ) -> list[Diagnostic]:
        """Return the findings that `pscdsl check` would report of results."""
        found = summary(results)
        prints = Fingerprints(Sources(texts))
        sorted_out = triage(
            *(found.diagnostics, found.suppressed, self.selection, self.baseline),
            *(found.checked(), prints),
        )
        return list(sorted_out.reported)


class Workspace:
    """The files of the folders that are open in an editor."""

    def __init__(
        self,
        folders: Iterable[str] = (),
        layer: Layer | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.folders = tuple(map(resolved, folders))
        self.layer = layer or Layer()
        """The codes that the editor's settings choose, on top of the project's."""
        self.say = say
        """Receives messages for the user."""
        self.buffers: dict[str, bytes] = {}
        """The open texts of the editor, by real path; `areas` have the same texts."""
        self._areas: dict[str, Area] = {}
        self._roots: dict[str, str] = {}
        self._states: dict[str, tuple[int, int] | None] = {}

    # Changes.

    def put(self, path: str, data: bytes) -> None:
        """Take a text in the place of a file that is open in the editor."""
        is_new = path not in self.buffers
        if not is_new and self.buffers[path] == data:
            return
        self.buffers[path] = data
        area = self.area(path)
        if is_new:
            area.opened[path] = None
            if path not in area.files.given:
                self._renew(area)
                return
        self._change({path: data})

    def drop(self, path: str) -> None:
        """Take a file as it is on disk again: the editor has closed it."""
        self.buffers.pop(path, None)
        for area in self._areas.values():
            area.opened.pop(path, None)
            area.results.pop(path, None)
            if path in area.files.given and not os.path.exists(path):
                self._renew(area)
        self._change({}, [path])

    def look(self) -> None:
        """Read again the changed files on disk, among those that were read."""
        known = {path for area in self._areas.values() for path in area.files.all()}
        states = {path: _state(path) for path in known}
        before, self._states = self._states, states
        self.reread([path for path, state in states.items() if before.get(path, state) != state])

    def reread(self, paths: Sequence[str]) -> None:
        """Take files as they are on disk now: they were written, made or removed."""
        if any(os.path.basename(path) == "pyproject.toml" for path in paths):
            self.forget()
            return
        for area in self._areas.values():
            known = set(area.files.given)
            baseline_ = area.settings.baseline
            if baseline_ and os.path.join(area.settings.root, baseline_) in paths:
                self.forget()
                return
            if any((path in known) is not os.path.exists(path) for path in paths):
                self._renew(area)
        changed_ = [path for path in paths if path not in self.buffers]
        if changed_:
            self._change({}, changed_)

    def forget(self) -> None:
        """Read everything again: settings have changed."""
        self._areas.clear()
        self._roots.clear()
        for path in self.buffers:
            self.area(path).opened[path] = None

    def _change(self, contents: Mapping[str, bytes], reread: Sequence[str] = ()) -> None:
        for area in self._areas.values():
            own = {path: data for path, data in contents.items() if area.files.knows(path)}
            stale = [path for path in reread if area.files.knows(path)]
            if own or stale:
                area.files = area.edits.changed(area.files, own, stale)

    def _renew(self, area: Area) -> None:
        """List the files again."""
        area.files, area.edits = self._files(area.settings, area.opened), Edits()

    # Queries.

    def area(self, path: str) -> Area:
        """Return the settings for a file, and the files that they are for."""
        folder = os.path.dirname(path)
        root = self._roots.get(folder)
        if root is None:
            settings, problems = _settings(folder)
            if settings == Settings(root=settings.root):  # there are no settings
                settings = replace(settings, root=self._folder(folder))
            root = self._roots[folder] = settings.root
            if root not in self._areas:
                self._areas[root] = self._area(settings, problems, path)
        return self._areas[root]

    def check(self, path: str) -> Checked | None:
        """Return the check of an open file as the editor has it; None if it is excluded."""
        area = self.area(path)
        return None if area.settings.excludes(path) else area.check(path)

    def findings(self) -> dict[str, list[Diagnostic]]:
        """Return the last reported findings in open files, by file or cell as findings name it.

        Nothing is checked here.
        """
        found: dict[str, list[Diagnostic]] = {}
        for area in self._areas.values():
            known = (area.results.get(path) for path in area.opened)
            results = [each.result for each in known if each is not None]
            here = {shown_path(path) for path in area.opened}
            reported = area.reported(results, self.texts())
            for each in (*(_visible(each, here) for each in reported), *area.problems):
                found.setdefault(each.span.path, []).append(each)
        return found

    def reported(self, checked: Checked, *, confirmed: bool) -> list[Diagnostic]:
        """Return the report on one file; if `confirmed`, only with the fixes that help."""
        result = checked.confirmed if confirmed else checked.result
        own = {shown_path(checked.path)}
        reported = self.area(checked.path).reported([result], self.texts())
        return [_visible(each, own) for each in reported]

    def fixed(self, checked: Checked) -> str | None:
        """Return the text of a file once all of its safe fixes are made; None if there are none."""
        area, path = self.area(checked.path), checked.path

        def wanted(found: Sequence[Diagnostic], texts: Mapping[str, str]) -> list[Diagnostic]:
            only = CheckResult(tuple(found), (), 1)
            return area.reported([only], {**self.texts(), **texts})

        data = fix_file(checked.files, path, checked.result, wanted).contents.get(path)
        return None if data is None else decode(data)

    def texts(self) -> dict[str, str]:
        """Return the texts of open files and cells, by their paths in findings."""
        return dict(text for path, data in self.buffers.items() for text in _texts(path, data))

    def text(self, shown: str) -> str:
        """Return the text of a file or a cell by its path in findings."""
        file, cell = split_cell(shown)
        path = resolved(file)
        data = self.buffers.get(path)
        if data is None:
            try:
                data = self.area(path).files.data(path)
            except Failure:
                return ""
        own = shown_path(file) if cell is None else cell_path(shown_path(file), cell)
        return dict(_texts(path, data)).get(own, "")

    def _folder(self, folder: str) -> str:
        """Return the outermost open folder around one without settings; otherwise the folder."""
        around = [each for each in self.folders if inside(folder, each)]
        return min(around, key=len, default=folder)

    def _area(self, settings: Settings, problems: tuple[Diagnostic, ...], path: str) -> Area:
        known = Baseline()
        if settings.baseline:
            try:
                known = baseline.read(resolved(os.path.join(settings.root, settings.baseline)))
            except BaselineError as problem:
                self.say(str(problem))
        files = self._files(settings, [path])
        return Area(settings, settings.selection(self.layer), known, problems, files)

    def _files(self, settings: Settings, opened: Iterable[str]) -> Files:
        """Return the files of a place as the editor has them, with the texts of open ones."""
        own = list(opened)
        named = [os.path.join(settings.root, each) for each in settings.paths]
        paths = [each for each in named or [settings.root] if os.path.exists(each)]
        try:
            files = files_below([*paths, *own], lambda path: _left_out(settings, path, own))
        except Refused as problem:
            self.say(f"{problem}; only open files are checked, without those that write to them")
            files = files_below(own)
        return files.changed({path: data for path, data in self.buffers.items()})


def _left_out(settings: Settings, path: str, opened: Sequence[str]) -> bool:
    return path not in opened and settings.excludes(path)


def _settings(folder: str) -> tuple[Settings, tuple[Diagnostic, ...]]:
    """Return the settings for a folder; the default ones with the problems if they are invalid."""
    try:
        return find_settings(folder), ()
    except Failure as failure:
        at = next(filter(os.path.lexists, possible_files(folder)), folder)
        return Settings(root=os.path.dirname(at)), failure.diagnostics


def _visible(finding: Diagnostic, here: set[str]) -> Diagnostic:
    """Return a finding in a file that is not open at the call in an open one that led to it."""
    for frame in finding.span.frames():
        if split_cell(frame.path)[0] in here:
            return finding if frame is finding.span else finding.relocated(frame)
    return finding


def _texts(path: str, data: bytes) -> Iterator[tuple[str, str]]:
    shown = shown_path(path)
    if not path.endswith(".ipynb"):
        yield shown, decode(data)
        return
    try:
        yield from ((cell_path(shown, cell.number), cell.text) for cell in code_cells(data))
    except NotANotebook:
        return


def _state(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
