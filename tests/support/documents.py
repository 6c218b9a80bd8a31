"""The documents for users, as programs: blocks of code are run, and outputs compared.

* A `py` block begins with the name of its file.  It is checked: `mistakes.py` and `warned.py` have
  findings, any other has none.
* A `pycon` block is a session beside these files, a `console` block a command line beside them;
  one that sets a variable runs in a process of its own, and its last line is an error's.
  In an expected output, `…` stands for anything.  Examples that `test_examples` runs with smaller
  numbers are run whole with `SHARE=1`, or when outputs are updated.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import runpy
import shlex
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pscdsl._src.checker.check import check_source
from pscdsl._src.cli import main
from pscdsl.typing.diagnostics import Severity
from tests.support.share import WHOLE

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block, and where its content stands in the document."""

    language: str
    text: str
    start: int
    end: int


def blocks(document: str) -> Iterator[Block]:
    """The fenced blocks in order."""
    for found in FENCE.finditer(document):
        yield Block(found[1], found[2], found.start(2), found.end(2))


def run_smaller(block: Block) -> bool:
    """Return whether a block runs an example that another test runs with smaller numbers."""
    tests = (ROOT / "tests" / "project" / "test_examples.py").read_text(encoding="utf-8")
    found = re.findall(r"^\$ python examples/(\w+)\.py", block.text, re.MULTILINE)
    return any(f'example("{name}")' in tests for name in found)


class Session:
    """What the blocks of one document share: a folder, which is the current one, and names."""

    def __init__(self, whole: bool = WHOLE) -> None:
        self.whole = whole
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.count = 0

    def printed(self, block: Block) -> str:
        """The block with the outputs that its code has now."""
        if block.language == "py":
            self.write(block.text)
            return block.text
        if block.language == "pycon":
            return "".join(self.entry(lines) for lines in entries(block.text))
        if block.language == "console" and (self.whole or not run_smaller(block)):
            return "".join(self.command(line) for line in block.text.splitlines())
        return block.text

    def write(self, text: str) -> None:
        """Write and check a file."""
        name = text.partition("\n")[0].removeprefix("# ")
        assert re.fullmatch(r"\w+\.py", name), "a block of code begins with the name of its file"
        Path(name).write_text(text, encoding="utf-8")
        result = check_source(text, name)
        found = [each for each in result.diagnostics if each.severity is not Severity.NOTE]
        wanted = name in ("mistakes.py", "warned.py", "scores.py")
        assert bool(found) == wanted, [each.message() for each in found]

    def entry(self, lines: list[str]) -> str:
        """One entry of an interactive session."""
        source = "".join(f"{line[4:]}\n" for line in lines)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            name = f"<session[{self.count}]>"
            self.count += 1
            # Where kernels find their source, as in doctest's and IPython's sessions.
            linecache.cache[name] = (len(source), None, source.splitlines(True), name)
            try:
                exec(compile(source, name, "single", dont_inherit=True), self.names)
            except Exception as error:
                print("Traceback (most recent call last):")
                print("".join(traceback.format_exception_only(error)), end="")
        return "".join(f"{line}\n" for line in lines) + out.getvalue()

    def command(self, line: str) -> str:
        """One command line, if the line is one, or nothing."""
        if not line.startswith("$ "):
            return ""
        program, *arguments = shlex.split(line[2:])
        name, equals, value = program.partition("=")
        if equals:  # a variable of the environment: the program has a process of its own
            done = subprocess.run(
                [sys.executable, *arguments[1:]],
                env={**os.environ, name: value},
                capture_output=True,
                text=True,
                check=False,
            )
            last = done.stderr.splitlines()[-1:] if done.returncode else []
            return "\n".join([line, *done.stdout.splitlines(), *last, ""])
        out = io.StringIO()
        with contextlib.redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
            if program == "pscdsl":
                if not Path(arguments[-1]).exists() and (ROOT / arguments[-1]).exists():
                    patch.chdir(ROOT)
                main(arguments)
            elif program == "python":
                patch.setattr(sys, "argv", [Path(arguments[0]).name, *arguments[1:]])
                runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
            else:
                assert program == "make", line
                makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
                assert re.search(f"^{arguments[0]}:", makefile, re.MULTILINE), line
        return f"{line}\n{out.getvalue()}"


def entries(text: str) -> Iterator[list[str]]:
    """The lines that one enters at a time; outputs are left out."""
    entry: list[str] = []
    for line in text.splitlines():
        if line.startswith(">>> "):
            if entry:
                yield entry
            entry = [line]
        elif line.startswith("... ") or line == "...":
            entry.append(line)
    if entry:
        yield entry


def agrees(expected: str, printed: str) -> bool:
    """Whether the text is as expected, where `…` stands for anything, but for empty lines."""
    expected, printed = re.sub(r"\n\n+", "\n", expected), re.sub(r"\n\n+", "\n", printed)
    parts = map(re.escape, expected.strip().split("…"))
    return re.fullmatch(".*".join(parts), printed.strip(), re.DOTALL) is not None


def compare(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool) -> None:
    """Run a document in an empty folder; fail where it prints otherwise, or write that down."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    document = path.read_text(encoding="utf-8")
    before = set(sys.modules)
    session, updated, position = Session(update_golden or WHOLE), "", 0
    problems: list[str] = []
    for block in blocks(document):
        printed = session.printed(block)
        if not agrees(block.text, printed):
            problems.append(f"expected:\n{block.text}\nprinted:\n{printed}")
            updated += document[position : block.start] + printed.rstrip("\n") + "\n"
            position = block.end
    for module in set(sys.modules) - before:
        if getattr(sys.modules[module], "__file__", None) == str(folder / f"{module}.py"):
            del sys.modules[module]
    if update_golden:
        path.write_text(updated + document[position:], encoding="utf-8")
    else:
        assert not problems, "\n".join(problems)
