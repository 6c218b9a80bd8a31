"""Collects the Markdown files under `conformance/`, one test a heading (see `literate.py`)."""

# pytest's own constructors are not fully typed.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import gc
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.support.literate import Program, differences, expectations, programs, with_snapshot
from tests.support.quick_code import generate_quickly
from tests.support.share import WHOLE, among, covering

CONFORMANCE = Path(__file__).parent / "conformance"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that rewrites expected renderings."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what was printed into the golden files and snapshot blocks",
    )


os.environ["PSCDSL_CACHE"] = "off"  # here, and in the processes that tests start
os.environ["PSCDSL_VERIFY"] = "1"  # every step between the source and StableHLO
_KEYS = tempfile.TemporaryDirectory()
os.environ["PSCDSL_KEY"] = os.path.join(_KEYS.name, "key")  # before modules export anything


@pytest.fixture(autouse=True)
def _no_shared_cache(  # pyright: ignore[reportUnusedFunction]
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that a test finds comes from an earlier run."""
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("PSCDSL_CACHE_DIR", str(base / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(base / "home"))


@pytest.fixture(autouse=True)
def _quick_code(  # pyright: ignore[reportUnusedFunction]
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code that is generated quickly, where a test is not about code."""
    mark = request.node.get_closest_marker("quick_code")
    if mark is not None and not (
        "but" in mark.kwargs and among(request.node.nodeid, mark.kwargs["but"])
    ):
        generate_quickly(monkeypatch)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out combinations of the parameters of tests that are marked `sampled`."""
    if WHOLE:
        return
    groups = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            groups[item.nodeid.partition("[")[0]].append(item)
    left = set(chain.from_iterable(groups.values()))
    for name, group in groups.items():
        cases = [
            {name: id(value) for name, value in getattr(item, "callspec").params.items()}  # noqa: B009
            for item in group
        ]
        left.difference_update(group[place] for place in covering(cases, name))
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=list(left))


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what Hypothesis says of its own generator, whose references are frozen below."""
    config.addinivalue_line("filterwarnings", "ignore:It looks like `register_random`")


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what stays: it took a fourteenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds of each folder, of all processes together, longest first."""
    folders = defaultdict[str, float](float)
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            folders[report.nodeid.partition("::")[0].rpartition("/")[0]] += report.duration
    if len(folders) > 1:
        terminalreporter.section("seconds by folder")
        for folder in sorted(folders, key=folders.__getitem__, reverse=True):
            terminalreporter.write_line(f"{folders[folder]:8.1f}  {folder}")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take the Markdown files of the conformance tests."""
    if file_path.suffix == ".md" and CONFORMANCE in file_path.parents:
        return MarkdownFile.from_parent(parent, path=file_path)
    return None


class Mismatch(Exception):
    """The program does not do what its text says."""


class MarkdownFile(pytest.File):
    """A file of programs."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item a heading with code."""
        for program in programs(self.path.read_text(encoding="utf-8")):
            yield MarkdownItem.from_parent(self, name=program.name, program=program)


class MarkdownItem(pytest.Item):
    """One program: checked, never run."""

    def __init__(self, *, name: str, parent: pytest.Collector, program: Program) -> None:
        super().__init__(name, parent)
        self.program = program

    def runtest(self) -> None:
        """Check the program and compare findings, revealed types and rendering."""
        from pscdsl._src.checker.check import check_source
        from pscdsl._src.checker.report.terminal import render_text
        from pscdsl._src.frontend.text.display import Sources

        program = self.program
        updating = bool(self.config.getoption("--update-golden")) and program.snapshot is not None
        if updating:  # an earlier snapshot may have grown
            current = programs(self.path.read_text(encoding="utf-8"))
            program = next(other for other in current if other.name == self.name)
        path = self.path.name
        result = check_source(program.text, path)
        if program.snapshot is None or expectations(program.text.splitlines()):
            problems = differences(program, path, result.diagnostics)
            if problems:
                raise Mismatch("\n".join(problems))
        if program.snapshot is None:
            return
        rendering = (
            render_text(result.diagnostics, Sources({path: program.text})).rstrip("\n") + "\n"
        )
        if updating:
            text = self.path.read_text(encoding="utf-8")
            self.path.write_text(with_snapshot(text, program, rendering), encoding="utf-8")
        elif rendering != program.snapshot.text:
            raise Mismatch(f"the rendering differs (--update-golden accepts it):\n{rendering}")

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: str | None = None,
    ) -> str:
        """Only what differs, where that is the matter."""
        if isinstance(excinfo.value, Mismatch):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """The place of the heading."""
        return self.path, self.program.line - 1, self.name
