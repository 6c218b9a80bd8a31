"""The explanation of every diagnostic is a test: its example is rejected, its fix accepted."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from pscdsl._src.checker.selection import all_kinds
from pscdsl.typing.codes.numerics import GradientNotFinite
from pscdsl.typing.codes.performance import BudgetExceeded
from pscdsl.typing.diagnostics import EXPLANATIONS, Diagnostic, Severity

KINDS = all_kinds()
BY_CODE = pytest.mark.parametrize("kind", KINDS, ids=[kind.code for kind in KINDS])
_SECTION = re.compile(r"^## (Example|Fix)\n+(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_NO_EXAMPLE = re.compile(r"^## No example\n+\S", re.MULTILINE)
_BLOCK = re.compile(r"^```py\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _section(kind: type[Diagnostic], name: str) -> str:
    """The joined code of a section of the explanation, empty if there is none."""
    sections = dict(_SECTION.findall(kind.explanation() + "\n"))
    return "\n".join(_BLOCK.findall(sections.get(name, "")))


def example(kind: type[Diagnostic]) -> str:
    """The program that a kind of diagnostic rejects, empty if there is none."""
    return _section(kind, "Example")


def test_every_code_has_a_file_and_every_file_a_code() -> None:
    assert sorted(path.name for path in EXPLANATIONS.iterdir()) == [f"{k.code}.md" for k in KINDS]


@BY_CODE
def test_the_class_has_the_title_and_the_file_says_more(kind: type[Diagnostic]) -> None:
    title = kind.__doc__ or ""
    assert title.endswith("."), "a title is one sentence"
    assert "\n" not in title, "the file says more"
    heading, _, meaning = (EXPLANATIONS / f"{kind.code}.md").read_text("utf-8").partition("\n\n")
    assert heading == f"# {kind.code}: {kind.slug()}"
    assert meaning.strip(), "an explanation is more than a title"
    assert kind.explanation() == f"{title}\n\n{meaning.rstrip()}"
    assert re.fullmatch(r"PSC[1-9]\d\d", kind.code)


def test_explanations_are_read_when_somebody_asks() -> None:
    code = (
        "import sys\n"
        "sys.addaudithook(lambda event, args: event == 'open' and print(args[0]))\n"
        "from pscdsl._src.checker.selection import all_kinds\n"
        "next(kind for kind in all_kinds() if kind.code == 'PSC300').explanation()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    opened = [line for line in ran.stdout.splitlines() if line.endswith(".md")]
    assert opened == [str(EXPLANATIONS / "PSC300.md")]


def test_explanations_do_not_need_docstrings() -> None:
    command = [sys.executable, "-OO", "-m", "pscdsl", "explain", "PSC300"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ran.stdout.startswith("# PSC300: shapes-do-not-broadcast.\n\n")
    assert "## Fix" in ran.stdout


@BY_CODE
def test_a_kind_has_an_example_and_a_fix_or_says_why_not(kind: type[Diagnostic]) -> None:
    parts = [bool(_section(kind, "Example")), bool(_section(kind, "Fix"))]
    if _NO_EXAMPLE.search(kind.explanation()):
        assert kind.code.startswith("PSC9"), "only a limit or a mistake of ours can do without"
        assert parts == [False, False]
    else:
        assert parts == [True, True]


@BY_CODE
def test_the_example_is_rejected_with_exactly_this_code(kind: type[Diagnostic]) -> None:
    from pscdsl._src.checker.check import check_source

    example = _section(kind, "Example")
    if not example:
        pytest.skip("no example")
    found = check_source(example, f"{kind.code}.py").diagnostics
    assert {diagnostic.code for diagnostic in found} == {kind.code}


@BY_CODE
def test_the_fix_is_accepted(kind: type[Diagnostic]) -> None:
    from pscdsl._src.checker.check import check_source

    fix = _section(kind, "Fix")
    if not fix:
        pytest.skip("no fix")
    found = check_source(fix, f"{kind.code}.py").diagnostics
    assert [d.code for d in found if type(d).severity is not Severity.NOTE] == []


_FAMILIES = {
    "language": "1",
    "language_evaluation": "1",
    "purity": "2",
    "shapes": "3",
    "shapes_of_arguments": "3",
    "element_types": "4",
    "control": "5",
    "derivatives": "5",
    "keys": "6",
    "numerics": "7",
    "performance": "8",
    "placements": "3",
    "limits": "9",
    "projects": "9",
}


def test_codes_are_in_their_families() -> None:
    for kind in KINDS:
        family = kind.code[3]
        file = kind.__module__.rsplit(".", 1)[1]
        assert _FAMILIES[file] == family, f"{kind.code} stands in {file}"
        warning = kind.severity is Severity.WARNING
        # A bound of the user's own is no advice of ours, and that gradient was computed.
        error = kind in (BudgetExceeded, GradientNotFinite)
        assert warning == (family in "78" and not error) or family == "9", kind.code


def test_slugs_are_unique() -> None:
    slugs = [kind.slug() for kind in KINDS]
    assert sorted(set(slugs)) == sorted(slugs)
