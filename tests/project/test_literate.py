"""The reader of literate tests, on documents and diagnostics made by hand."""

from __future__ import annotations

from pscdsl.typing.codes.limits import NotSupported, RevealedType
from pscdsl.typing.diagnostics import Diagnostic, Span
from tests.support.literate import Program, differences, programs, with_snapshot

DOCUMENT = """\
# Top
Words.
```py
import numpy as np
```
## First
```py
x = 1  # error: [PSC900] "frobs"
```
More words, and the program goes on.
```py
y = 2
```
```snapshot
old
```
## Group
### Second
````py
# error: 5 [PSC900]
z = 3
````
"""


def at(line: int, column: int, path: str = "a.md") -> Diagnostic:
    return NotSupported(what="frobs", span=Span(path, line, column, line, column + 1))


def revealed(type_: str) -> Diagnostic:
    return RevealedType(types=(type_,), span=Span("a.md", 3, 1, 3, 2))


def only(text: str) -> Program:
    [program] = programs(f"# T\n```py\n{text}\n```\n")
    return program


def test_a_heading_with_code_is_a_test() -> None:
    assert [(p.name, p.line) for p in programs(DOCUMENT)] == [
        ("Top - First", 6),
        ("Top - Group - Second", 18),
    ]


def test_blocks_are_joined_behind_the_prelude_at_their_own_lines() -> None:
    rows = programs(DOCUMENT)[0].text.splitlines()
    assert (rows[3], rows[7], rows[11]) == (
        "import numpy as np",
        'x = 1  # error: [PSC900] "frobs"',
        "y = 2",
    )
    assert "".join(rows[4:7]) == ""


def test_a_first_block_with_expectations_is_a_test_and_no_prelude() -> None:
    first, second = programs("# T\n```py\nx  # error: [PSC900]\n```\n## U\n```py\ny\n```\n")
    assert first.name == "T"
    assert second.text.split() == ["y"]


def test_met_expectations_leave_no_difference() -> None:
    first, second = programs(DOCUMENT)
    assert differences(first, "a.md", [at(8, 1)]) == []
    assert differences(second, "a.md", [at(21, 5)]) == []


def test_a_missing_and_an_unexpected_diagnostic_are_told_by_line() -> None:
    program = only("x  # error: 7 [PSC900]\ny")
    assert differences(program, "a.md", [at(4, 2)]) == [
        "line 3: expected PSC900 was not reported",
        "line 4: unexpected error[PSC900] at column 2: not supported yet: frobs",
    ]
    assert len(differences(program, "a.md", [at(3, 6)])) == 2, "another column"


def test_severity_and_text_must_fit() -> None:
    for comment in ('# error: [PSC900] "fribs"', "# warning: [PSC900]", "# error: [PSC901]"):
        assert len(differences(only(f"x  {comment}"), "a.md", [at(3, 1)])) == 2


def test_two_expectations_on_a_line_need_two_diagnostics() -> None:
    program = only("x  # error: [PSC900] # error: [PSC900]")
    assert differences(program, "a.md", [at(3, 1), at(3, 1)]) == []
    assert len(differences(program, "a.md", [at(3, 1)])) == 1


def test_a_finding_in_a_helper_elsewhere_is_expected_at_the_call() -> None:
    call = Span("a.md", 3, 1, 3, 2)
    inner = at(70, 1, "lib.py").replaced(span=Span("lib.py", 70, 1, 70, 2, call))
    assert differences(only("x  # error: [PSC900]"), "a.md", [inner]) == []


def test_revealed_types() -> None:
    program = only("reveal_type(x)  # revealed: f32[n 4]")
    assert differences(program, "a.md", [revealed("f32[n 4]")]) == []
    assert differences(program, "a.md", [revealed("f32[n]")]) == [
        "line 3: expected type was not revealed: f32[n 4]",
        "line 3: unexpected type revealed: f32[n]",
    ]


def test_a_malformed_expectation_is_a_difference() -> None:
    [problem] = differences(only("x  # error: PSC900"), "a.md", [])
    assert "malformed" in problem


def test_a_snapshot_is_replaced_in_place() -> None:
    updated = with_snapshot(DOCUMENT, programs(DOCUMENT)[0], "one\ntwo\n")
    assert updated == DOCUMENT.replace("old\n", "one\ntwo\n")
