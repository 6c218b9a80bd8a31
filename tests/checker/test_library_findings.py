"""Findings within the standard library are told at the user's call of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import CheckError, f32
from pscdsl._src.cli import main
from pscdsl.stdlib import optimizers

TEXT = """\
import pscdsl as psc
from pscdsl import f32
from pscdsl.stdlib import optimizers


def moved(p, g):
    return optimizers.sgd(p, g, 0.1)


@psc.kernel
def step(p: f32["n"], x: f32["n"]) -> f32["n"]:
    return moved(p, (x,))
"""


def test_a_check_tells_the_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.py"
    path.write_text(TEXT, encoding="utf-8")
    assert main(["check", str(path), "--no-cache", "--format", "json"]) == 1
    [found] = json.loads(capsys.readouterr().out)["diagnostics"]
    assert (Path(found["path"]).name, found["line"], found["column"]) == ("file.py", 7, 12)
    assert main(["check", str(path), "--no-cache"]) == 1
    shown = capsys.readouterr().out
    assert "return psc.tree.map(" in shown
    assert "required here" in shown
    assert f"in the call at {path}:12:12" in shown

    path.write_text(TEXT.replace("0.1)", "0.1)  # psc: ignore[PSC509]"), encoding="utf-8")
    assert main(["check", str(path), "--no-cache"]) == 0


@psc.kernel
def wrong(p: f32["n"]) -> f32["n"]:
    return optimizers.sgd(p, (p,), 0.1)


def test_a_call_tells_it_too() -> None:
    with pytest.raises(CheckError) as raised:
        wrong(np.ones(2, np.float32))
    [found] = raised.value.diagnostics
    assert Path(found.span.path).name == Path(__file__).name
    assert [Path(label.span.path).name for label in found.labels][-1] == "optimizers.py"
