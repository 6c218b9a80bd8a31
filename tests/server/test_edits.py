"""What is kept over edits: the same is found as in files that are read for the first time."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pscdsl._src.checker import check
from pscdsl._src.checker.check import Held
from pscdsl._src.checker.result_store import plain
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.server import kernels
from pscdsl._src.server.workspace import Checked, Workspace

HELPER = """\
import numpy as np

WEIGHTS = np.ones(3, np.float32)


def halved(x):
    return x[1:] + x  # psc: ignore[PSC300]
"""
MODEL = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32

from helper import WEIGHTS, halved

SCALE = 2.0
ROWS = [1.0, 2.0]


def own(x):
    return x * SCALE


@psc.kernel
def first(x: f32["n"]) -> f32["n"]:
    y = own(x)
    return y + 1.0


@psc.kernel
def second(x: f32["n 3"]) -> f32["n"]:
    y = halved(x)
    return x @ WEIGHTS


@psc.kernel
def third(x: f32["n"]) -> f32["n"]:
    y = first(x) * ROWS[0]
    return y


def made(scale: float):
    @psc.kernel
    def inner(x: f32["n"]) -> f32["n"]:
        return x * scale

    return inner


def plain_function(log):
    for row in ROWS:
        log(row)


class Layer(psc.Record):
    w: f32["d"]

    @psc.kernel
    def apply(self, x: f32["d"]) -> f32[""]:
        return self.w @ x
"""
EDITS = (
    ("y = own(x)", "y = own(x) * 3.0"),
    ("y + 1.0", "y[1:] + 1.0"),
    ("y[1:] + 1.0", "y + 1.0"),
    ("y = halved(x)", "y = halved(x)[0]"),
    ("x @ WEIGHTS", "x @ WEIGHT"),
    ("x @ WEIGHT\n", "x @ WEIGHTS\n"),
    ("x * SCALE", "x[1:] * SCALE"),
    ("x[1:] * SCALE", "x * SCALE"),
    ("log(row)", "ROWS[0] = row"),
    ("ROWS[0] = row", "log(row)"),
    ("log(row)", "global SCALE; SCALE = row"),
    ("global SCALE; SCALE = row", "log(row)"),
    ("log(row)", "np.tanh = log"),
    ("np.tanh = log", "log(row, WEIGHTS.fill(0))"),
    ("log(row, WEIGHTS.fill(0))", "log(row)"),
    ("    return y + 1.0", "\n    return y + 1.0"),
    ("y = first(x) * ROWS[0]", "y = (first(x) * ROWS[0]"),
    ("y = (first(x) * ROWS[0]", "y = first(x) + ROWS[0]"),
    ("@psc.kernel\ndef third", "@psc.kernel  # psc: budget flops <= n\ndef third"),
    ("x * scale", "x[1:] * scale"),
    ("self.w @ x", "self.w * x"),
    ("# psc: budget flops <= n", "# psc: budget flops <= 9*n"),
    ("second(x: f32", "first(x: f32"),
    ("first(x: f32", "other(x: f32"),
)


def facts(checked: Checked) -> object:
    # Those that were not checked again are not asked what they capture.
    result = replace(checked.result, captured=())
    return plain(result), [each.text for each in kernels.hints(checked, "model.py")]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "model.py").write_text(MODEL)
    return os.path.realpath("model.py")


def test_the_same_is_found_after_edits_as_at_first(path: str) -> None:
    workspace, text = Workspace([os.getcwd()]), MODEL
    workspace.put(path, text.encode())
    workspace.check(path)
    for old, new in EDITS:
        assert old in text, old
        text = text.replace(old, new, 1)
        fresh = Workspace([os.getcwd()])
        for each in (workspace, fresh):
            each.put(path, text.encode())
        found, expected = workspace.check(path), fresh.check(path)
        assert found is not None
        assert expected is not None
        assert facts(found) == facts(expected), (old, new)
        assert workspace.findings() == fresh.findings(), (old, new)
        known, wanted = (
            {name for name, _ in each.reads.contents}
            | {name for name, _ in each.reads.searches}
            | {str(question) for question, _ in each.reads.answers}
            for each in (found, expected)
        )
        assert known >= wanted, (old, new)


def test_kernels_that_an_edit_does_not_concern_are_not_checked_again(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    own = check.check_definition

    def noted(definition: Definition) -> object:
        names.append(definition.name)
        return own(definition)

    monkeypatch.setattr(check, "check_definition", noted)
    workspace = Workspace([os.getcwd()])
    for text in (MODEL, MODEL.replace("y = halved(x)", "y = halved(x)[0]")):
        names.clear()
        workspace.put(path, text.encode())
        checked = workspace.check(path)
        assert checked is not None
        assert all(isinstance(each, Held) for _, each in checked.held)
    assert names == ["second", "made.inner"]
