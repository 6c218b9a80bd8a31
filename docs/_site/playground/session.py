"""The playground's half in Python: findings, hovers and commands for one program.

The page calls `answer` in a worker: in Pyodide, or in a process beside the page in tests. Places
are offsets in UTF-16 code units, as JavaScript counts; all lines end in one newline character.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np

from pscdsl._src.cli import main
from pscdsl._src.frontend.text.display import shown_path
from pscdsl._src.server.kernels import hover
from pscdsl._src.server.workspace import TextPosition, Workspace
from pscdsl.typing.diagnostics import Diagnostic, Fix, Span

NAME: Final = "program.py"
COMMANDS: Final = frozenset({"check", "ir", "cost", "explain", "discover"})
"""The commands that the page may run: they check, and neither import nor call the program."""


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class Text:
    """A program, and its places as lines and columns from 1 or as offsets."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self._starts = [0, *accumulate(_units(line) + 1 for line in self.lines)]

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a place; of the end of its line if the column is behind that."""
        row = min(max(line, 1), len(self.lines)) - 1
        return self._starts[row] + _units(self.lines[row][: max(column, 1) - 1])

    def range(self, span: Span) -> tuple[int, int]:
        """Return the offsets of a span."""
        start = self.offset(span.line, span.column)
        return start, max(start, self.offset(span.end_line, span.end_column))

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of an offset."""
        row = min(bisect_right(self._starts, offset), len(self.lines)) - 1
        units = self.lines[row].encode("utf-16-le", "surrogatepass")
        before = units[: 2 * (offset - self._starts[row])].decode("utf-16-le", "replace")
        return row + 1, len(before) + 1


class Session:
    """One program in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        os.chdir(folder)
        self.path = str(folder.resolve() / NAME)
        self.shown = shown_path(self.path)
        self.workspace = Workspace([folder.as_posix()])
        self.text = Text("")

    def take(self, text: str) -> None:
        """Take the text of the editor as the program."""
        self.text = Text(text)
        data = text.encode("utf-8", "surrogatepass")
        Path(self.path).write_bytes(data)
        self.workspace.put(self.path, data)

    def check(self, text: str) -> dict[str, Any]:
        """Return the findings, the kernels by name, and the output of `pscdsl check`."""
        self.take(text)
        checked = self.workspace.check(self.path)
        assert checked is not None, "there are no settings here that exclude the program"
        found = self.workspace.reported(checked, confirmed=True)
        return {
            "findings": [self._finding(each) for each in found],
            "kernels": [name for name, _ in checked.kernels],
            "python": platform.python_version(),
            "numpy": np.__version__,
            "output": self.run(["check", "--no-cache", "--colour", "always", NAME]),
        }

    def hover(self, text: str, offset: int) -> dict[str, Any] | None:
        """Return what an editor shows for a place: Markdown, and the range that it is about."""
        self.take(text)
        checked = self.workspace.check(self.path)
        assert checked is not None, "there are no settings here that exclude the program"
        line, column = self.text.place(offset)
        place = TextPosition(self.shown, line, column)
        found = hover(checked, place, self.text.lines[line - 1])
        if found is None:
            return None
        said, span = found
        start, end = (offset, offset) if span is None else self.text.range(span)
        return {"text": said, "from": start, "to": end}

    def run(self, arguments: list[str]) -> str:
        """Return the output of a command."""
        if not arguments or arguments[0] not in COMMANDS:
            raise ValueError(f"`pscdsl {' '.join(arguments[:1])}` does not run in the playground")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main(arguments)
        return printed.getvalue()

    def command(self, text: str, arguments: list[str]) -> str:
        """Return the output of a command for a text."""
        self.take(text)
        return self.run(arguments)

    def _finding(self, finding: Diagnostic) -> dict[str, Any]:
        place = finding.span
        for frame in place.frames():
            if frame.path == self.shown:
                place = frame
        start, end = self.text.range(place)
        advice = finding.advice()
        texts = [" ".join(finding.message().split()), finding.label() or ""]
        return {
            "from": start,
            "to": end,
            "severity": finding.severity.value,
            "code": finding.code,
            "message": "\n".join(filter(None, texts)),
            "help": (advice or "").strip(),
            "fixes": [self._fix(each) for each in finding.fixes if each.path == self.shown],
        }

    def _fix(self, fix: Fix) -> dict[str, Any]:
        edits = [(*self.text.range(each.span), each.text) for each in fix.edits]
        return {
            "title": fix.message,
            "edits": [{"from": start, "to": end, "insert": text} for start, end, text in edits],
        }


def answering(folder: Path) -> Callable[[str], str]:
    """Return a function that answers requests of the page, both in JSON."""
    session = Session(folder)
    calls: Mapping[str, Callable[..., Any]] = {
        "check": session.check,
        "hover": session.hover,
        "command": session.command,
    }

    def answer(request: str) -> str:
        asked: dict[str, Any] = json.loads(request)
        return json.dumps(calls[asked["call"]](*asked["arguments"]))

    return answer
