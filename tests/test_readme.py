"""The documents for users: every block of code in them is run, every output compared.

* A `py` block begins with the name of its file.  It is checked: `mistakes.py` and `warned.py` have
  findings, any other has none.
* A `pycon` block is a session beside these files, a `console` block a command line beside them.
  In an expected output, `…` stands for anything.
* A table with the heading "Type" shows types of parameters.  One with the heading "In a kernel"
  shows statements that are rejected with the code beside them, and what is accepted instead.

`--update-golden` writes what was printed into the documents.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import sys
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import pscdsl as psc
from pscdsl.cli import main
from pscdsl.configuration.reading import read_settings
from pscdsl.configuration.settings import READERS
from pscdsl.frontend.check import check_source
from pscdsl.typing.diagnostics import Severity

ROOT = Path(__file__).parent.parent
DOCUMENTS = ("README.md", "examples/README.md")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRELUDE = f"""\
import time
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

import jaxtyping
import numpy as np
import pyrsistent
import pscdsl as psc
from pscdsl import {", ".join(name for name in psc.__all__ if name not in ("map", "kernel"))}

count = 0

class Point(psc.Record):
    x: f32["n"]

T = TypeVar("T", bound=psc.Tree)

class Momentum(psc.Record, Generic[T]):
    velocity: T
    steps: i32

"""


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


class Session:
    """What the blocks of one document share: a folder, which is the current one, and names."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def printed(self, block: Block) -> str:
        """The block with the outputs that its code has now."""
        if block.language == "py":
            self.write(block.text)
            return block.text
        if block.language == "pycon":
            return "".join(self.entry(lines) for lines in entries(block.text))
        if block.language == "console":
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
            try:
                exec(compile(source, "<session>", "single"), self.names)
            except Exception as error:
                print("Traceback (most recent call last):")
                print("".join(traceback.format_exception_only(error)), end="")
        return "".join(f"{line}\n" for line in lines) + out.getvalue()

    def command(self, line: str) -> str:
        """One command line, if the line is one, or nothing."""
        if not line.startswith("$ "):
            return ""
        program, *arguments = shlex.split(line[2:])
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


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_the_blocks_print(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    path = ROOT / name
    document = path.read_text(encoding="utf-8")
    before = set(sys.modules)
    session, updated, position = Session(), "", 0
    problems: list[str] = []
    for block in blocks(document):
        printed = session.printed(block)
        if not agrees(block.text, printed):
            problems.append(f"expected:\n{block.text}\nprinted:\n{printed}")
            updated += document[position : block.start] + printed.rstrip("\n") + "\n"
            position = block.end
    for module in set(sys.modules) - before:
        if getattr(sys.modules[module], "__file__", None) == str(tmp_path / f"{module}.py"):
            del sys.modules[module]
    if update_golden:
        path.write_text(updated + document[position:], encoding="utf-8")
    else:
        assert not problems, "\n".join(problems)


def rows(heading: str) -> list[list[str]]:
    """The rows of the table in README.md whose first column has this heading."""
    document = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = document[document.index(f"| {heading} |") :].splitlines()
    table = [line for line in lines[: lines.index("")]][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]


def code(cell: str) -> list[str]:
    """The pieces of code in a cell."""
    return [span.replace("\\|", "|") for span in re.findall(r"`([^`]+)`", cell)]


def codes_of(source: str) -> set[str]:
    """What the checker finds in a program."""
    return {found.code for found in check_source(source, "table.py").diagnostics}


def kernel_with(statement: str) -> str:
    """A program with this statement in a kernel."""
    body = textwrap.indent(f"{statement} pass" if statement.endswith(":") else statement, "    ")
    return (
        f'{PRELUDE}@psc.kernel\ndef kernel(x: f32["n"], y: f32["n"], k: i32):\n'
        f"    items = []\n{body}\n    return x\n"
    )


@pytest.mark.parametrize("row", rows("Type"), ids=lambda row: row[0])
def test_types_are_types(row: list[str]) -> None:
    for type_ in code(row[0]):
        declared = type_ if type_.isidentifier() or "[" in type_ else "Point"
        # Every size stands by itself in some parameter.
        sizes = 'a: f32["n d"]'
        source = f"{PRELUDE}@psc.kernel\ndef kernel(x: {declared}, {sizes}):\n    return a\n"
        assert codes_of(source) <= {"PSC903"}, type_


@pytest.mark.parametrize("row", rows("In a kernel"), ids=lambda row: row[0])
def test_what_is_refused_and_what_is_accepted(row: list[str]) -> None:
    refused, expected, instead = row
    for statement in code(refused):
        assert codes_of(kernel_with(statement)) == {expected}, statement
    for statement in code(instead):
        assert not codes_of(kernel_with(statement)), statement


def test_relative_links_lead_somewhere() -> None:
    for name in DOCUMENTS:
        document = (ROOT / name).read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#:]+)\)", document):
            assert ((ROOT / name).parent / link).exists(), link


def test_the_settings_in_the_readme_are_settings(tmp_path: Path) -> None:
    document = (ROOT / "README.md").read_text(encoding="utf-8")
    [block] = [each for each in blocks(document) if each.language == "toml"]
    path = tmp_path / "pyproject.toml"
    path.write_text(block.text, encoding="utf-8")
    assert read_settings(str(path)).paths == ("src",)
    for name in READERS:
        assert re.search(rf"\b{name}\b", block.text), name


def test_options_in_the_readme_are_options(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    document = (ROOT / "README.md").read_text(encoding="utf-8") + hooks
    for command in re.findall(r"pscdsl check [^`\n>]*", document):
        assert set(re.findall(r"--[a-z-]+", command)) <= known, command


def test_no_example_forgets_a_name() -> None:
    assert "NameError" not in (ROOT / "README.md").read_text(encoding="utf-8")
