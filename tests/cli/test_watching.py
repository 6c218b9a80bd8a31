"""`pscdsl check --watch`, in a process of its own, while files change."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue

import pytest

from pscdsl._src.cli import main, watching
from pscdsl._src.cli.watching import Watched
from pscdsl._src.frontend.modules.scope import StaticModule
from pscdsl._src.ir.program import Function

PATIENCE = 60.0
"""Seconds in which something that was changed is seen, on a machine with other work."""
MODEL = """\
import pscdsl as psc
from pscdsl import f32
from helpers import helper


@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    return helper(x)
"""
GOOD = "def helper(x):\n    return x + x\n"
BAD = "def helper(x):\n    return x.sum()\n"


class Watching:
    """A check that goes on, and what it has printed."""

    def __init__(self, *options: str) -> None:
        root = str(Path(__file__).parents[2])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pscdsl", "check", "--watch", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": root},
        )
        self.lines: Queue[str] = Queue()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def until(self, *ends: str) -> list[str]:
        """What is printed up to a line that contains each of these texts, one after the other."""
        found: list[str] = []
        deadline = time.monotonic() + PATIENCE
        for end in ends:
            while not found or end not in found[-1]:
                try:
                    found.append(self.lines.get(timeout=max(0.01, deadline - time.monotonic())))
                except Empty:
                    pytest.fail(f"no line with {end!r} in {found}")
        return found

    def interrupted(self) -> int:
        """The exit code after Ctrl-C, pressed again where Python drops it: in a finaliser."""
        for _ in range(30):
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(PATIENCE / 20)
        return self.process.wait(0)


@pytest.fixture
def watching_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Watching]]:
    """Start to watch the current folder or some files in it."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL)
    Path("helpers.py").write_text(GOOD)
    started: list[Watching] = []

    def start(*options: str) -> Watching:
        started.append(Watching(*options))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        each.reader.join()
        assert each.process.stdout is not None
        each.process.stdout.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one process alone")
def test_each_change_is_followed_by_a_check(watching_: Callable[..., Watching]) -> None:
    watched = watching_("--cache-dir", "cache", "model.py")
    idle = "] watching 2 files, until Ctrl-C"
    watched.until("1 kernel checked in 1 file: no errors", idle)
    Path("helpers.py").write_text(BAD)  # which is imported, and not given
    watched.until("] changed: helpers.py", "model.py:8:12", ": 1 error", "] watching")
    Path("helpers.py").unlink()
    watched.until("] removed: helpers.py", "PSC910", ": 1 error", "] watching")
    Path("helpers.py").write_text(GOOD)
    watched.until("] new: helpers.py", ": no errors", "] watching")
    Path("pyproject.toml").write_text("[tool.pscdsl]\nignor = []\n")
    watched.until(
        "] new: pyproject.toml",
        "the settings are wrong",
        "there is no setting `ignor`",
        "] watching",
    )
    Path("pyproject.toml").write_text("[tool.pscdsl]\nignore = ['PSC3']\n")
    watched.until("] changed: pyproject.toml", ": no errors", "] watching")
    Path("pyproject.toml").unlink()
    Path("model.py").write_text(MODEL.replace("helper(x)", "helper(y)"))
    watched.until("removed: pyproject.toml", ": 1 error", idle)
    assert watched.interrupted() == 1
    watched.reader.join()
    assert not any("Traceback" in line for line in watched.lines.queue)


def test_the_state_knows_what_appears_in_folders(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    missing = str(tmp_path / "pyproject.toml")
    folder = str(tmp_path)
    watched = Watched((folder,), lambda each: "old" in each, frozenset([missing]), frozenset())
    assert watched.state().keys() == {str(path)}
    (tmp_path / "old.py").write_text("")
    (tmp_path / "new.py").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    assert watched.state().keys() == {str(path), missing, str(tmp_path / "new.py")}
    alone = Watched((str(path),), lambda _: False, frozenset(), frozenset([folder]))
    state = alone.state()
    assert state[str(tmp_path / "new.py")] is None  # it matters that it is there
    assert state[str(path)] is not None


def test_nothing_is_held_between_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of a check are gone before the next one."""
    path = tmp_path / "model.py"
    path.write_text(MODEL.replace("from helpers import helper\n", GOOD))
    held: list[int] = []

    def waited(watched: Watched, before: watching.State) -> watching.State:
        del watched
        held.append(sum(isinstance(each, StaticModule | Function) for each in gc.get_objects()))
        if len(held) == 3:
            raise KeyboardInterrupt
        return before

    monkeypatch.setattr(watching, "_changed", waited)
    assert main(["check", "--watch", "--no-cache", str(path)]) == 0
    assert held[0] == held[1] == held[2]


@pytest.mark.parametrize("option", ["--fix", "--diff", "--format=json", "--format=sarif"])
def test_what_does_not_go_with_it(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--watch", option, __file__]) == 2
    assert f"--watch does not go with {option.replace('=', ' ')}" in capsys.readouterr().err
