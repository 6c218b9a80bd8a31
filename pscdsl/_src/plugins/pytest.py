"""`pytest --pscdsl`: each collected Python file is a test, which passes if its kernels are right.

All files are checked together when the first of these tests runs: one may write what another reads.
The settings of the project count, as in `pscdsl check`.

`pytest --psc-checks=nan,index`: kernels that tests call check what they compute.
"""

# pytest's own constructors are not fully typed.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from pscdsl._src.checker import baseline
from pscdsl._src.checker.baseline import Baseline, BaselineError, Fingerprints, Triage, triage
from pscdsl._src.checker.check import check_paths
from pscdsl._src.checker.configuration import Settings, find_settings
from pscdsl._src.checker.report.summary import sentence
from pscdsl._src.checker.report.terminal import render_text
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.frontend.modules.files import SUFFIXES
from pscdsl._src.frontend.text.display import Sources, split_cell
from pscdsl._src.support.effects import COMPILED, kinds_with
from pscdsl._src.support.paths import inside_any, real, resolved
from pscdsl.typing.diagnostics import Diagnostic, Failure

NAME = "pscdsl-checks"
"""The name under which the plug-in is registered while it is wanted."""


def switch_on(names: str, config: pytest.Config) -> None:
    """Switch checks of running kernels on until the session ends."""
    before = COMPILED.kinds
    try:
        COMPILED.become(kinds_with(names, "--psc-checks"))
    except ValueError as problem:
        raise pytest.UsageError(str(problem)) from None
    config.add_cleanup(lambda: COMPILED.become(before))


class Findings(Exception):
    """The errors in a file, in the form of the report for people."""


@dataclass(frozen=True)
class _Outcome:
    """A check of all files."""

    result: CheckResult
    triage: Triage
    sources: Sources


class Checks:
    """The common state of one session's tests."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        try:
            self.settings: Settings = find_settings(str(config.rootpath))
            self._baseline = self._load_baseline()
        except Failure as failure:
            raise pytest.UsageError(
                f"the settings are wrong\n\n{render_text(failure.diagnostics, Sources(toml=True))}"
            ) from None
        except BaselineError as problem:
            raise pytest.UsageError(str(problem)) from None
        self._files: dict[str, None] = {}
        config.addinivalue_line("markers", "pscdsl: the check of a file's kernels")

    def _load_baseline(self) -> Baseline:
        name = self.settings.baseline
        place = resolved(os.path.join(self.settings.root, name))
        return baseline.read(place) if name else Baseline()

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Take the Python files that are not excluded."""
        if file_path.suffix not in SUFFIXES or not self._is_own(file_path):
            return None
        if self.settings.excludes(str(file_path)):
            return None
        return CheckedFile.from_parent(parent, path=file_path)

    def _is_own(self, path: Path) -> bool:
        """Return whether it is a file of the project or of its own folder, not a link to others."""
        return not path.is_symlink() or inside_any(
            real(str(path)), (resolved(str(self.root)), resolved(str(path.parent)))
        )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember the files to check: those of items that were not deselected."""
        items = [item for item in session.items if isinstance(item, CheckedItem)]
        self._files = dict.fromkeys(resolved(str(item.path)) for item in items)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write a summary of the checks."""
        if "outcome" in self.__dict__:
            result, found = self.outcome.result, self.outcome.triage
            said = sentence(found.reported, result.kernels, result.files, found.hidden())
            terminalreporter.write_sep("-", "pscdsl")
            terminalreporter.write_line(said)

    @cached_property
    def outcome(self) -> _Outcome:
        """The check of all files."""
        result, sources = check_paths(list(self._files)), Sources()
        selection = self.settings.selection()
        found = triage(
            result.diagnostics,
            result.suppressed,
            selection,
            self._baseline,
            result.checked(),
            Fingerprints(sources),
        )
        return _Outcome(result, found, sources)

    def of(self, path: Path) -> Triage:
        """Return the findings in one of the files."""
        file = resolved(str(path))
        reported = (d for d in self.outcome.triage.reported if self._file(d) == file)
        return Triage(tuple(reported))

    def _file(self, finding: Diagnostic) -> str:
        """Return the file whose test reports a finding: its own or the nearest checked call's."""
        paths = [resolved(split_cell(f.path)[0]) for f in finding.span.frames()]
        return next((path for path in paths if path in self._files), next(iter(self._files)))

    def text(self, found: Iterable[Diagnostic]) -> str:
        """Return the report of findings for people."""
        return render_text(tuple(found), self.outcome.sources).rstrip()


class CheckedFile(pytest.File):
    """A file with kernels, or without."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one test."""
        item = CheckedItem.from_parent(self, name="pscdsl")
        item.add_marker("pscdsl")
        yield item


class CheckedItem(pytest.Item):
    """The check of a file."""

    def runtest(self) -> None:
        """Fail if the check of the file does."""
        checks = self.config.pluginmanager.get_plugin(NAME)
        assert isinstance(checks, Checks)
        found = checks.of(self.path)
        if found.fails(strict=checks.settings.strict):
            raise Findings(checks.text(found.reported))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None
    ) -> str:
        """Return the report, without a traceback."""
        if isinstance(excinfo.value, Findings):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the heading of a failure."""
        return self.path, None, f"pscdsl: {os.path.relpath(self.path)}"
