"""The page of ten faults: each program is wrong, and with its corrected line right."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from tests.support.documents import ROOT, blocks

pytestmark = pytest.mark.jaxlib

PAGE = (ROOT / "docs" / "how-to" / "find-a-fault.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
CALLS: dict[str, tuple[str, Any]] = {
    "An angle between parallel vectors": (
        "angle(np.ones(2, np.float32), np.ones(2, np.float32))",
        0,
    ),
    "Infinity divided by infinity": ("saturated(np.float32([100]))", [1]),
    "A gradient that is NaN although the value is right": (
        "psc.grad(length)(np.zeros(2, np.float32))",
        [0, 0],
    ),
    "A NaN made in a loop": ("root(np.float32(2), np.int32(9))", np.e),
    "An index one too large": (
        "looked_up(np.linspace(0, 1, 5, dtype=np.float32), np.float32(0.9))",
        0.9,
    ),
    "Classes counted from 1": ("test_loss()", None),
    "An index that wraps around": ("rises(np.float32([1, 2, 5]))", [0, 1, 3]),
    "The wrong branch": ("huber(np.float32(-3))", 2.5),
    "A loop that converges to the wrong number": ("root(np.float32(0.25))", 0.5),
    "A descent that diverges": (
        "fitted(np.float32([[1, 2], [2, 1]]), np.float32([3, 3]))",
        [1, 1],
    ),
}
"""A call for each section, and its right result; None where the call itself is the test."""


def test_each_section_has_a_call() -> None:
    assert list(SECTIONS) == list(CALLS)


@pytest.mark.parametrize("title", CALLS)
def test_the_corrected_line_corrects(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = SECTIONS[title]
    programs = [block.text for block in blocks(section) if block.language == "py"]
    found = re.search(r"^Line (\d+).*, corrected: `(.*)`\.$", section, re.MULTILINE)
    assert found
    lines = programs[-1].splitlines()
    at = int(found[1]) - 1
    lines[at] = re.sub(r"\S.*", lambda _: found[2], lines[at])
    call, right = CALLS[title]

    def is_right(folder: Path, *texts: str) -> bool:
        """Return whether the programs give the right result, and pass the checks."""
        folder.mkdir()
        paths = [folder / text.partition("\n")[0].removeprefix("# ") for text in texts]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        with monkeypatch.context() as patch:
            patch.setattr(sys, "path", [str(folder), *sys.path])
            names = {"np": np, "psc": psc, **runpy.run_path(str(paths[-1]))}
            try:
                with psc.debug.checks():
                    result = eval(call, names)
            except psc.CheckFailed:
                return False
            finally:
                for path in paths[:-1]:
                    del sys.modules[path.stem]
        return right is None or np.allclose(result, right, rtol=0.02)

    assert not is_right(tmp_path / "wrong", *programs)
    assert is_right(tmp_path / "corrected", *programs[:-1], "\n".join(lines))
