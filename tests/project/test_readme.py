"""The documents for users: every block of code in them is run, every output compared.

`documents` says how.  Besides:

* A table with the heading "Type" shows types of parameters.  One with the heading "In a kernel"
  shows statements that are rejected with the code beside them, and what is accepted instead; so
  does one with the heading "Store or loop", where only the first code of a cell is a statement.

`--update-golden` writes what was printed into the documents.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import pscdsl as psc
from pscdsl._src.checker.check import check_source
from pscdsl._src.checker.configuration import READERS, read_settings
from pscdsl._src.cli import main
from tests.support.documents import ROOT, blocks, compare

pytestmark = pytest.mark.jaxlib

DOCUMENTS = (
    "README.md",
    "examples/README.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
)
RUN = [name for name in DOCUMENTS if name != "docs/guides/from-jax.md"]
"""What can be run without jax; `interop` runs the rest."""
PRELUDE = f"""\
import time
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypedDict, TypeVar

import jaxtyping
import numpy as np
import pyrsistent
import pscdsl as psc
from pscdsl import {", ".join(name for name in psc.__all__ if name not in ("map", "kernel"))}

count = 0

class Point(psc.Record):
    x: f32["n"]

class Params(TypedDict):
    w: f32["n"]

T = TypeVar("T", bound=psc.Tree)

class Momentum(psc.Record, Generic[T]):
    velocity: T
    steps: i32

"""


@pytest.mark.parametrize("name", RUN)
def test_what_the_blocks_print(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool
) -> None:
    compare(ROOT / name, tmp_path, monkeypatch, update_golden)


def whole() -> str:
    """All documents, one after another."""
    return "\n".join((ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS)


def rows(heading: str) -> list[list[str]]:
    """The rows of the table whose first column has this heading."""
    document = whole()
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


UNUSED = {"PSC809"}
"""That nothing is done with what a row computes."""


@pytest.mark.parametrize("row", rows("In a kernel"), ids=lambda row: row[0])
def test_what_is_refused_and_what_is_accepted(row: list[str]) -> None:
    refused, expected, instead = row
    for statement in code(refused):
        assert codes_of(kernel_with(statement)) - UNUSED == {expected}, statement
    for statement in code(instead):
        assert codes_of(kernel_with(statement)) <= UNUSED, statement


@pytest.mark.parametrize("row", rows("Store or loop"), ids=lambda row: row[0])
def test_stores_and_loops_are_refused_as_they_say(row: list[str]) -> None:
    refused, expected, instead = row
    assert codes_of(kernel_with(code(refused)[0])) == {expected}
    for statement in code(instead):
        assert not codes_of(kernel_with(statement)), statement


def test_relative_links_lead_somewhere() -> None:
    for name in DOCUMENTS:
        document = (ROOT / name).read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#:]+)\)", document):
            assert ((ROOT / name).parent / link).exists(), link


def test_the_settings_in_the_readme_are_settings(tmp_path: Path) -> None:
    document = whole()
    found = [each for each in blocks(document) if each.language == "toml"]
    [block] = [each for each in found if "[tool.pscdsl]" in each.text]
    path = tmp_path / "pyproject.toml"
    path.write_text(block.text, encoding="utf-8")
    assert read_settings(str(path)).paths == ("src",)
    for name in READERS:
        assert re.search(rf"\b{name}\b", block.text), name


def test_options_in_the_readme_are_options(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    document = whole() + hooks
    for command in re.findall(r"pscdsl check [^`\n>]*", document):
        assert set(re.findall(r"--[a-z-]+", command)) <= known, command


def test_no_example_forgets_a_name() -> None:
    assert "NameError" not in whole()
