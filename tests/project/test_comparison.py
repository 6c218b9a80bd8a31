"""The comparison with jax: what its page says of our side.  No jax is needed here."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.comparison.core import core, defined, lines_of_code
from benchmarks.comparison.given import Made, Words, built, recorded
from benchmarks.comparison.program import Edit, Mistake, Program, edited
from benchmarks.comparison.programs import PROGRAMS
from benchmarks.comparison.report import page, read
from benchmarks.comparison.times import HEADING, PAGE, kept, section
from pscdsl._src.checker.check import check_paths
from tests.support.share import some

CASES = [
    pytest.param(program, mistake, id=f"{program.name}: {mistake.about}")
    for program in PROGRAMS
    for mistake in program.mistakes
]


def codes(text: str, folder: Path) -> list[str]:
    """What the checker finds in a text."""
    (folder / "kernels.py").write_text(text, encoding="utf-8")
    result = check_paths([folder / "kernels.py"])
    assert result.kernels
    return [each.code for each in result.diagnostics]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_kernels_are_accepted(program: Program, tmp_path: Path) -> None:
    assert codes(core(program.pieces), tmp_path) == []
    assert len(program.mistakes) == 5


@pytest.mark.parametrize(("program", "mistake"), some(CASES, 3))
def test_mistakes_are_refused_as_the_page_says(
    program: Program, mistake: Mistake, tmp_path: Path
) -> None:
    found = codes(edited(core(program.pieces), mistake.ours), tmp_path)
    assert found[:1] == ([] if mistake.code is None else [mistake.code])
    assert not [each for each in found if each.startswith("PSC9") and each != mistake.code]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_page_has_the_mistakes_which_can_be_made_in_jax_too(program: Program) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition(f"\n## {program.name}\n")[2].partition("\n## ")[0]
    for mistake in program.mistakes:
        assert f"| {mistake.about} | {mistake.code or '-'} |" in section
        text = edited(program.theirs, mistake.theirs)
        assert text != program.theirs
        compile(text, program.name, "exec")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_page_has_the_lines_of_both(program: Program) -> None:
    ours, theirs = lines_of_code(core(program.pieces)), lines_of_code(program.theirs)
    page = PAGE.read_text(encoding="utf-8")
    assert re.search(rf"^\| {program.name} \| {ours} \| {theirs} \|", page, re.MULTILINE)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_what_is_timed_stands_in_both_languages(program: Program) -> None:
    theirs = {name for node in ast.parse(program.theirs).body for name in defined(node)}
    taken = {name for _, names in program.pieces for name in names}
    assert {run.name for run in program.runs} <= theirs & taken


def test_the_page_has_the_counts_of_what_it_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    [made] = re.findall(r"This page was made with\n(.*)\.\n", text)
    versions = dict(each.split(" ") for each in made.split(", "))
    assert page(list(read(text, PROGRAMS)), versions) == text.partition(f"\n{HEADING}\n")[0]


def test_the_page_has_the_times_that_were_kept() -> None:
    assert PAGE.read_text(encoding="utf-8").endswith(f"\n{section(kept())}")
    for program in PROGRAMS:
        found: dict[str, Any] = kept()[program.name]["runs"]
        assert list(found) == [run.name for run in program.runs]
        assert all(found[run.name]["apart"] <= run.tolerance for run in program.runs)


def test_the_calls_of_an_example_are_recorded_for_both_languages() -> None:
    [program] = [each for each in PROGRAMS if each.name == "option_price"]

    def run(example: Any) -> Any:
        return example.run(n=6, steps=3)

    small = replace(program, example=run)
    key, market, like = recorded(small)["prices"]
    assert isinstance(key, Words)
    assert isinstance(market, Made)
    assert like.shape == (3, 6)
    example: Any = importlib.import_module("examples.option_price")
    again = [built(each, example, np.copy, lambda words: words) for each in (key, market, like)]
    found: Any = example.prices(*again)
    assert found[0].mean == run(example).european.mean


def test_lines_of_code_are_neither_imports_nor_comments_nor_docstrings() -> None:
    text = '"""A\nb."""\nimport os\n\n# c\nx = [\n    1,  # d\n]\n\n\ndef f():\n    """E."""\n'
    assert lines_of_code(text) == 4


def test_what_is_edited_stands_there_once() -> None:
    edit: Edit = ("a", "b")
    assert edited("xa", [edit]) == "xb"
    with pytest.raises(ValueError, match="2 times"):
        edited("aa", [edit])
