"""`pscdsl check -`: a text from standard input, as if it stood in a file."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pscdsl._src.checker import configuration
from pscdsl._src.cli import main

Capture = pytest.CaptureFixture[str]
Check = Callable[..., int]

HEAD = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n\n\n"
BROKEN = HEAD + '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    x[0] = 1.0\n    return x\n'
FIXED = BROKEN.replace("x[0] = 1.0", "x = psc.update(x, 0, 1.0)")
CALLER = HEAD.replace("\n\n\n", "\nfrom helpers import twice\n\n\n") + (
    '@psc.kernel\ndef f(x: f32["n"]) -> f32["n 2"]:\n    return twice(x)\n'
)


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Check a text on standard input, with options."""
    monkeypatch.chdir(tmp_path)

    def checked(text: str | bytes, *options: str) -> int:
        data = text.encode() if isinstance(text, str) else text
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return main(["check", "-", *options])

    return checked


def test_findings_are_named_and_shown_though_there_is_no_file(
    check: Check, capsys: Capture
) -> None:
    assert check(BROKEN) == 1
    out = capsys.readouterr().out
    assert "<stdin>:8:5\n" in out
    assert " 8│     x[0] = 1.0\n" in out
    assert check(BROKEN, "--stdin-filename", "new/model.py", "--format", "json") == 1
    [found] = json.loads(capsys.readouterr().out)["diagnostics"]
    assert found["path"] == "new/model.py"


def test_the_text_is_checked_and_not_the_file(check: Check, capsys: Capture) -> None:
    Path("model.py").write_text(BROKEN)
    assert check(FIXED, "--stdin-filename", "model.py") == 0
    Path("model.py").write_text(FIXED)
    assert check(BROKEN, "--stdin-filename", "model.py") == 1
    assert " 8│     x[0] = 1.0\n" in capsys.readouterr().out


def test_settings_and_siblings_are_those_of_its_place(check: Check, capsys: Capture) -> None:
    Path("inner").mkdir()
    Path("inner/helpers.py").write_text("def twice(x):\n    return x + x\n")
    assert check(CALLER, "--stdin-filename", "inner/model.py", "--format", "concise") == 1
    assert capsys.readouterr().out.startswith("inner/model.py:9:12: error[PSC303]")
    Path("inner/pyproject.toml").write_text('[tool.pscdsl]\nignore = ["PSC3"]\n')
    assert check(CALLER, "--stdin-filename", "inner/model.py") == 0
    found = configuration.possible_files("inner")
    assert next(found) == str(Path("inner/pyproject.toml").resolve())


@pytest.mark.parametrize("name", [None, "model.py"])
def test_fixed_text_goes_to_standard_output(
    check: Check, capsys: Capture, name: str | None
) -> None:
    options = [] if name is None else ["--stdin-filename", name]
    assert check(BROKEN.replace("\n", "\r\n"), "--fix", *options) == 0
    out, err = capsys.readouterr()
    assert out == FIXED.replace("\n", "\r\n")
    assert "1 finding fixed in 1 file\n" in err
    assert not Path("model.py").exists()
    assert check(BROKEN, "--diff", *options) == 1
    assert "+    x = psc.update(x, 0, 1.0)\n" in capsys.readouterr().out
    assert check(BROKEN, "--fix", "--ignore", "PSC2", *options) == 0
    assert capsys.readouterr().out == BROKEN


def test_cells_of_a_notebook(check: Check, capsys: Capture) -> None:
    cell: dict[str, object] = {"cell_type": "code", "source": BROKEN, "metadata": {}, "outputs": []}
    notebook: dict[str, object] = {
        "cells": [cell],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    assert check(json.dumps(notebook), "--stdin-filename", "model.ipynb") == 1
    out = capsys.readouterr().out
    assert "model.ipynb:cell 1:8:5\n" in out
    assert " 8│     x[0] = 1.0\n" in out


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (b"", 0, "standard input is empty"),
        (b"x = 1\n\ny = 2\nz = '\xff'\n", 1, "not text: it is not utf-8, from byte 18 on"),
        (b"x = (\n", 1, "'(' was never closed"),
        (b" " * 4_000_001, 2, "standard input has more than 4,000,000 bytes"),
    ],
)
def test_what_is_no_program(
    check: Check, capsys: Capture, text: bytes, code: int, says: str
) -> None:
    assert check(text) == code
    assert says in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["other.py"], "`-` is standard input"),
        (["--stdin-filename", "."], "names a file, and `.` is a folder"),
        (["--watch"], "--watch does not go with `-`"),
    ],
)
def test_what_does_not_go_with_it(
    check: Check, capsys: Capture, options: list[str], says: str
) -> None:
    assert check(FIXED, *options) == 2
    assert says in capsys.readouterr().err
    assert main(["check", "--stdin-filename", "model.py"]) == 2
    assert "--stdin-filename goes with the path `-`" in capsys.readouterr().err
