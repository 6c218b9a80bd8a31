"""The comparison with jax: what its page says of our side.  No jax is needed here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pscdsl.frontend.check import check_paths
from tests.comparison.core import core, lines_of_code
from tests.comparison.program import Edit, Mistake, Program, edited
from tests.comparison.programs import PROGRAMS

PAGE = Path(__file__).parent.parent / "docs" / "comparison.md"

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


@pytest.mark.parametrize(("program", "mistake"), CASES)
def test_mistakes_are_refused_as_the_page_says(
    program: Program, mistake: Mistake, tmp_path: Path
) -> None:
    found = codes(edited(core(program.pieces), mistake.ours), tmp_path)
    assert found[:1] == ([] if mistake.code is None else [mistake.code])
    assert not [code for code in found if code.startswith("PSC9")]
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition(f"\n## {program.name}\n")[2].partition("\n## ")[0]
    assert f"| {mistake.about} | {mistake.code or '-'} |" in section


@pytest.mark.parametrize(("program", "mistake"), CASES)
def test_mistakes_can_be_made_in_jax_too(program: Program, mistake: Mistake) -> None:
    text = edited(program.theirs, mistake.theirs)
    assert text != program.theirs
    compile(text, program.name, "exec")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_page_has_the_lines_of_both(program: Program) -> None:
    ours, theirs = lines_of_code(core(program.pieces)), lines_of_code(program.theirs)
    page = PAGE.read_text(encoding="utf-8")
    assert re.search(rf"^\| {program.name} \| {ours} \| {theirs} \|", page, re.MULTILINE)


def test_lines_of_code_are_neither_imports_nor_comments_nor_docstrings() -> None:
    text = '"""A\nb."""\nimport os\n\n# c\nx = [\n    1,  # d\n]\n\n\ndef f():\n    """E."""\n'
    assert lines_of_code(text) == 4


def test_what_is_edited_stands_there_once() -> None:
    edit: Edit = ("a", "b")
    assert edited("xa", [edit]) == "xb"
    with pytest.raises(ValueError, match="2 times"):
        edited("aa", [edit])
