"""The renderers, on diagnostics made by hand."""

from __future__ import annotations

import json as standard_json
from dataclasses import dataclass
from pathlib import Path

import pytest

from pscdsl._src.checker.report import machine_readable, terminal
from pscdsl._src.checker.report.summary import Hidden, sentence
from pscdsl._src.checker.selection import all_kinds
from pscdsl._src.frontend.text.display import Sources, display, printable, shown_path, split_lines
from pscdsl.typing.diagnostics import Diagnostic, Label, Severity, Span


class Finding(Diagnostic):
    """A kind of diagnostic that says what it is told; it has no code of its own."""

    said: str = "matmul: inner sizes differ"
    beside: str = "d is not h"
    remedy: str | None = None

    def message(self) -> str:
        """The given text."""
        return self.said

    def label(self) -> str:
        """The given text."""
        return self.beside

    def help(self) -> str | None:
        """The given text."""
        return self.remedy


class Warned(Finding):
    """The same as a warning."""

    severity = Severity.WARNING


@dataclass(frozen=True)
class Kernel:
    """What the front end says of a kernel."""

    name: str = "f"
    path: str = "a.py"
    line: int = 3
    column: int = 1
    status: str = "ok"
    signature: str = '(x: f32["n"]) -> f32'
    loops: tuple[tuple[int, int, str], ...] = ()
    examples: tuple[str, ...] = ()


SOURCE = """\
def step(w: f32["h d"], x: f32["d"]) -> f32["h"]:
    y = x @ w
    z = np.dot(
        x,
        w)
\ts = "日本" + x @ w
"""
SOURCES = Sources(
    {"a.py": SOURCE, "b.py": "helper(x)\n", "long.py": f"{'x' * 5000}abc{'y' * 5000}"}
)


def span(
    line: int,
    column: int,
    end: int,
    *,
    end_line: int | None = None,
    path: str = "a.py",
    call: Span | None = None,
) -> Span:
    return Span(path, line, column, end_line or line, end, call)


def shown(diagnostic: Diagnostic) -> list[str]:
    """The rendering without its headline, which is always the same."""
    return terminal.render_one(diagnostic, SOURCES).split("\n")[1:]


def test_the_whole_of_a_finding() -> None:
    finding = Finding(
        span=span(2, 9, 14),
        labels=(Label(span(1, 13, 23), ""), Label(span(1, 28, 36), "f32[d]")),
        remedy="`w @ x` has type f32[h]",
    )
    assert terminal.render_text([finding], SOURCES) == (
        "error[]: matmul: inner sizes differ\n"
        "  ┌─ a.py:2:9\n"
        "  │\n"
        ' 1│ def step(w: f32["h d"], x: f32["d"]) -> f32["h"]:\n'
        "  │             ----------     -------- f32[d]\n"
        " 2│     y = x @ w\n"
        "  │         ^^^^^ d is not h\n"
        "  = help: `w @ x` has type f32[h]\n"
        "\n"
    )


def test_several_labels_on_a_line_hang_below_it() -> None:
    finding = Finding(
        span=span(2, 11, 12),
        labels=(Label(span(2, 9, 10), "left"), Label(span(2, 13, 14), "right")),
    )
    assert shown(finding)[2:] == [
        " 2│     y = x @ w",
        "  │         - ^ - right",
        "  │         │ │",
        "  │         │ d is not h",
        "  │         left",
    ]


def test_a_label_around_the_primary_place_hangs_too() -> None:
    finding = Finding(span=span(2, 9, 10), labels=(Label(span(2, 5, 14), "whole"),))
    assert shown(finding)[2:] == [
        " 2│     y = x @ w",
        "  │     ----^----",
        "  │     │   │",
        "  │     │   d is not h",
        "  │     whole",
    ]


def test_of_several_lines_the_first_and_the_last_are_shown() -> None:
    assert shown(Finding(span=span(3, 9, 11, end_line=5)))[2:] == [
        " 3│     z = np.dot(",
        "  │         ^^^^^^^",
        " 5│         w)",
        "  │         ^^ d is not h",
    ]


def test_marks_stand_under_wide_characters_and_tabs() -> None:
    row, marks = shown(Finding(span=span(6, 13, 18)))[2:]
    assert row == ' 6│     s = "日本" + x @ w'
    assert marks == "  │                  ^^^^^ d is not h"


def test_other_files_and_calls_have_blocks_of_their_own() -> None:
    outer = span(1, 1, 10, path="b.py")
    call = span(3, 9, 16, call=outer)
    label = Label(span(1, 8, 9, path="b.py"), "this")
    rows = shown(Finding(span=span(2, 9, 14, call=call), labels=(label,)))
    assert [row for row in rows if "─ " in row] == [
        "  ┌─ a.py:2:9",
        "  ├─ b.py:1:8",
        "  ├─ in the call at a.py:3:9",
        "  ├─ in the call at b.py:1:1",
    ]
    assert rows[-2:] == [" 1│ helper(x)", "  │ ---------"]


def test_a_long_chain_of_calls_is_cut_in_the_middle() -> None:
    place = span(2, 9, 14)
    for line in range(100, 120):
        place = span(2, 9, 14).within(Span("b.py", line, 1, line, 2, place.call_site))
    headers = [row for row in shown(Finding(span=place)) if "─ " in row]
    assert headers[4] == "  ├─ (14 more calls)"
    assert len(headers) == 8


def test_a_finding_without_a_place_is_a_headline_and_help() -> None:
    assert terminal.render_one(Finding(remedy="two\nlines"), SOURCES).split("\n")[1:] == [
        "  = help: two",
        "          lines",
    ]


@pytest.mark.parametrize(
    "place",
    [
        span(2, 900, 901),
        span(2, 9, 3),
        span(99, 1, 2),
        span(2, 9, 4, end_line=99),
        span(1, 1, 2, path="none.py"),
        span(0, 0, 0),
    ],
)
def test_a_place_that_is_not_there_does_no_harm(place: Span) -> None:
    assert shown(Finding(span=place))[0].startswith("  ┌─ ")


def test_a_huge_line_is_cut_around_its_mark() -> None:
    row, marks = shown(Finding(span=span(1, 5001, 5004, path="long.py")))[2:]
    assert len(row) < 200
    start = marks.index("^^^")
    assert row[start : start + 3] == "abc"


def test_a_program_cannot_steer_the_terminal() -> None:
    sources = Sources({"a.py": "x = '\x1b[2J\u202e\x07'"})
    finding = Finding(span=span(1, 1, 2), said="\x1b[31m no", beside="\x9b", remedy="a\x1bb")
    rendered = terminal.render_text([finding], sources) + terminal.render_concise([finding])
    assert not set(rendered) & set("\x1b\x07\x9b\u202e")


def test_colour_adds_only_escapes() -> None:
    import re

    finding = Finding(span=span(2, 9, 14), labels=(Label(span(1, 13, 23), "here"),), remedy="no")
    coloured = terminal.render_text([finding], SOURCES, colour=True)
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == terminal.render_text([finding], SOURCES)


def test_findings_are_ordered_by_place() -> None:
    findings = [
        Finding(span=span(5, 1, 2)),
        Finding(span=span(2, 7, 8)),
        Warned(span=span(2, 3, 4)),
    ]
    assert terminal.render_concise(findings) == (
        "a.py:2:3: warning[] matmul: inner sizes differ\n"
        "a.py:2:7: error[] matmul: inner sizes differ\n"
        "a.py:5:1: error[] matmul: inner sizes differ\n"
    )


def test_a_concise_finding_is_one_line() -> None:
    assert terminal.render_concise([Finding(said="a\nb")]).count("\n") == 1


def test_json_holds_the_facts() -> None:
    finding = Warned(span=span(2, 9, 11, end_line=3), remedy="help", kernel="f")
    document = standard_json.loads(
        machine_readable.render_json([finding], [Kernel(), Kernel(status="error")], 1)
    )
    assert document == {
        "diagnostics": [
            {
                "code": "",
                "severity": "warning",
                "message": "matmul: inner sizes differ",
                "label": "d is not h",
                "choice": None,
                "path": "a.py",
                "line": 2,
                "column": 9,
                "end_line": 3,
                "end_column": 11,
                "help": "help",
                "kernel": "f",
                "fix": None,
            }
        ],
        "kernels": [
            {
                "name": "f",
                "path": "a.py",
                "line": 3,
                "column": 1,
                "status": status,
                "signature": '(x: f32["n"]) -> f32',
                "examples": [],
                "loops": [],
            }
            for status in ("ok", "error")
        ],
        "summary": {
            "files": 1,
            "kernels": 2,
            "ok": 1,
            "unchecked": 0,
            "errors": 0,
            "warnings": 1,
            "notes": 0,
            "suppressed": 0,
            "baselined": 0,
            "stale": 0,
            "vouched": [],
            "of_jax": 0,
            "unseen": 0,
            "unseen_by_cause": {},
            "unseen_effects": 0,
            "of_jax_with_shapes": 0,
            "of_jax_right": 0,
            "of_jax_right_with_chosen_types": 0,
            "of_jax_right_but_for_libraries": 0,
            "of_jax_not_followed": 0,
            "captured": [],
        },
    }


def test_the_summary_counts() -> None:
    assert sentence([], [Kernel()], 1) == "1 kernel checked in 1 file: no errors"
    kernels = [Kernel(), Kernel(), Kernel(status="unchecked")]
    findings = [Finding(), Finding(), Warned()]
    assert sentence(findings, kernels, 2) == (
        "2 kernels checked in 2 files, 1 not checked: 2 errors, 1 warning"
    )
    hidden = Hidden(suppressed=1, baselined=2, stale=3)
    assert sentence([], [Kernel()], 1, hidden) == (
        "1 kernel checked in 1 file: no errors "
        "(1 suppressed, 2 in the baseline, 3 of the baseline are found no more)"
    )


def test_the_summary_says_what_was_tried_by_examples() -> None:
    over = "k over 0, 1, 2, 3, 4"
    kernels = [Kernel(examples=(over, "*b of rank 0 to 3")), Kernel("g", examples=(over,))]
    assert sentence([], kernels, 1) == (
        "2 kernels checked in 1 file: no errors\n"
        "tried by examples: k over 0, 1, 2, 3, 4 (2 kernels); *b of rank 0 to 3 (`f`)"
    )
    many = [Kernel(examples=tuple(f"k{i} over 0" for i in range(9)))]
    assert sentence([], many, 1).endswith("k5 over 0 (`f`); 3 more (`--show-types`)")


def test_paths_are_resolved_and_relative_where_they_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert shown_path("link/x.py") == "real/x.py"
    assert shown_path(str(tmp_path / "link" / "x.py")) == "real/x.py"
    assert shown_path("<string>") == "<string>"
    monkeypatch.chdir(tmp_path / "here")
    assert shown_path("../real/x.py") == str(tmp_path / "real" / "x.py")


def test_lines_end_where_python_ends_them() -> None:
    assert split_lines("a\r\nb\rc\x0cd\u2028e\nf") == ("a", "b", "c\x0cd\u2028e", "f")


def test_files_are_read_by_their_declared_encoding(tmp_path: Path) -> None:
    latin, broken = tmp_path / "latin.py", tmp_path / "broken.py"
    latin.write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n")
    broken.write_bytes(b"# coding: no-such\nx = '\xff'\n")
    sources = Sources()
    assert sources.line(str(latin), 2) == "x = 'é'"
    assert sources.line(str(broken), 2) == "x = '\ufffd'"
    assert sources.line(str(tmp_path), 1) is None
    assert sources.line("no\0file", 1) is None


def test_display_columns() -> None:
    assert display("a\tb").columns == (0, 1, 4, 5)
    assert display("日e\u0301").columns == (0, 2, 3, 3)
    assert printable("a\nb\rc") == "a\nb\ufffdc"


def test_every_kind_is_found_and_has_its_own_slug() -> None:
    kinds = all_kinds()
    assert len({kind.slug() for kind in kinds}) == len(kinds) > 0
