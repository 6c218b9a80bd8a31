"""Comments that silence findings: how they are read, where they count, and how fast."""

from __future__ import annotations

import ast
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pscdsl._src.checker.check import check_paths, check_source
from pscdsl._src.checker.selection import Examined, silence, suppressions
from pscdsl.typing.codes.language import NotPython
from pscdsl.typing.diagnostics import Span

HEAD = "import pscdsl as psc\nfrom pscdsl import f32\n\n\n"
KERNEL = '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    return '


def read(text: str) -> list[tuple[str, int, int, str]]:
    """Codes, first and last line, and problem of each suppression."""
    found = suppressions(text, ast.parse(text), lambda row: ("a.py", row))
    return [(",".join(each.codes), each.first, each.last, each.problem) for each in found]


def test_where_a_comment_stands_decides_what_it_covers() -> None:
    text = """\
a = 1  # psc: ignore[PSC2]
b = (  # psc: ignore[PSC3]
    1,  # psc: ignore[PSC4]
)  # psc: ignore[PSC5]
# psc: ignore[PSC6]
def f(  # psc: ignore[PSC7]
    x,
):
    return '''
# psc: ignore
'''  # psc: ignore[PSC8]
"""
    assert [(codes, first, last) for codes, first, last, _ in read(text)] == [
        ("PSC2", 1, 1),
        ("PSC3", 2, 4),
        ("PSC4", 3, 3),
        ("PSC5", 2, 4),
        ("PSC6", 5, 5),
        ("PSC7", 6, 8),
        ("PSC8", 9, 11),
    ]


@pytest.mark.parametrize("head", ["", "#!/bin/sh\n", '"""Text."""\n', "# psc: ignore[PSC2]\n"])
@pytest.mark.parametrize("tail", ["", "import os\n", "@a\ndef f(): pass\n"])
def test_a_comment_for_the_file_stands_above_its_code(head: str, tail: str) -> None:
    [*_, (codes, first, last, problem)] = read(f"{head}# psc: ignore-file[PSC3]\n{tail}")
    assert (codes, first, problem) == ("PSC3", 1, "")
    assert last > 10**6


@given(st.text(max_size=30))
def test_any_comment_is_read(text: str) -> None:
    line = text.replace("\n", " ").replace("\r", " ").replace("\0", " ").replace("\f", " ")
    try:
        tree = ast.parse(f"x = 1  # psc: ignore{line}\n")
    except SyntaxError:  # a surrogate, for instance
        return
    for each in suppressions(f"x = 1  # psc: ignore{line}\n", tree, lambda row: ("a.py", row)):
        assert each.problem or not each.codes or all(each.codes)


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3)), max_size=6))
def test_a_finding_is_silenced_if_it_begins_or_ends_where_a_comment_counts(
    places: list[tuple[int, int]],
) -> None:
    text = "a = (\n    1,  # psc: ignore\n    2,\n)  # psc: ignore[PSC1]\nb = 1\n" + "\n" * 12
    comments = suppressions(text, ast.parse(text), lambda row: ("a.py", row))
    findings = [
        NotPython(reason=str(i), span=Span("a.py", line, 1, line + more, 2))
        for i, (line, more) in enumerate(places)
    ]
    divided = silence(findings, comments, Examined())
    assert divided.suppressed == tuple(f for f in findings if f.span.line <= 4)
    assert divided.kept == tuple(f for f in findings if f.span.line > 4)


def test_a_helper_of_a_file_that_is_only_read(tmp_path: Path) -> None:
    helper = "import os  # psc: ignore\n\n\ndef say(x):\n    print(x)  # psc: ignore[PSC201]\n"
    (tmp_path / "helper.py").write_text(helper + "    return x\n", encoding="utf-8")
    user = tmp_path / "user.py"
    user.write_text(HEAD + "from helper import say\n\n" + KERNEL + "say(x)\n", encoding="utf-8")
    alone = check_paths([user])
    assert [d.code for d in alone.diagnostics] == []
    assert [d.code for d in alone.suppressed] == ["PSC201"]
    together = check_paths([tmp_path])
    assert [d.code for d in together.diagnostics] == ["PSC920"]
    assert [d.code for d in together.suppressed] == ["PSC201"]


def test_a_comment_at_one_of_two_calls_of_another_file(tmp_path: Path) -> None:
    helper = "def say(x):\n    print(x)\n    return x\n"
    (tmp_path / "helper.py").write_text(helper, encoding="utf-8")
    text = HEAD + "from helper import say\n\n" + KERNEL + "say(x)"
    (tmp_path / "a.py").write_text(f"{text}  # psc: ignore\n", encoding="utf-8")
    (tmp_path / "b.py").write_text(f"{text}\n", encoding="utf-8")
    result = check_paths([tmp_path])
    assert [(d.code, d.span.frames()[-1].path[-4:]) for d in result.diagnostics] == [
        ("PSC201", "b.py")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # psc: ignore[PSC201]\n" * 20_000,
        "# psc: ignore[E" + ",E".join(map(str, range(100_000))) + "]\n",
        "x = 1  " + "# psc: ignore " * 50_000 + "\n",
        "# psc: " + "ignore" * 100_000 + "\n",
        "# psc: ignore[" + "A" * 1_000_000 + "]\n",
        "#" * 1_000_000 + " psc\n",
        "# psc: ignor[" * 50_000 + "\n",
    ],
)
def test_many_and_long_comments_take_no_time(text: str) -> None:
    start = time.process_time()
    result = check_source(text, "a.py")
    assert time.process_time() - start < 15
    assert all(len(d.message()) < 500 for d in result.diagnostics)


def cells(*texts: str) -> str:
    """A notebook of code cells."""
    made = [{"cell_type": "code", "source": text} for text in texts]
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": made})


def test_in_a_notebook_a_comment_counts_in_its_cell(tmp_path: Path) -> None:
    impure = KERNEL.replace("return ", "print(x){}\n    return x\n")
    book = tmp_path / "n.ipynb"
    text = cells(HEAD, impure.format("  # psc: ignore[PSC201]"), impure.format(""))
    book.write_text(text, encoding="utf-8")
    result = check_paths([book])
    assert [d.span.path[-6:] for d in result.diagnostics] == ["cell 3"]
    assert [d.span.path[-6:] for d in result.suppressed] == ["cell 2"]
    text = cells("# psc: ignore-file[PSC201]", HEAD, impure.format(""), "y = 1  # psc: ignore")
    book.write_text(text, encoding="utf-8")
    result = check_paths([book])
    assert [d.code for d in result.diagnostics] == []
    assert [d.span.path[-6:] for d in result.suppressed] == ["cell 3"]
    book.write_text(cells(HEAD, KERNEL + "x  # psc: ignore"), encoding="utf-8")
    [unused] = check_paths([book]).diagnostics
    assert (unused.code, unused.span.path[-6:], unused.span.line) == ("PSC920", "cell 2", 3)
