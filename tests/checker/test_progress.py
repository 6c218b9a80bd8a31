"""The progress bar: only for somebody who watches, and only after a while."""

from __future__ import annotations

import io
import sys

import pytest

from pscdsl._src.checker.report import terminal
from pscdsl._src.checker.report.terminal import ProgressBar


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """Whether somebody watches."""
        return True


def shown(stream: io.StringIO, patience: float, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is written on a stream of errors while three files are checked."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(terminal, "_PATIENCE", patience)
    with ProgressBar() as bar:
        for done in range(4):
            bar.update(done, 3)
    return stream.getvalue()


@pytest.fixture(autouse=True)
def _outside_of_ci(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.delenv("CI", raising=False)


def test_it_is_shown_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "checking" in shown(Terminal(), 0, monkeypatch)


def test_it_is_not_shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Terminal(), 60, monkeypatch) == ""


def test_it_is_not_shown_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert shown(Terminal(), 0, monkeypatch) == ""


def test_it_is_not_shown_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), 0, monkeypatch) == ""
