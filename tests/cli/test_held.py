"""`--strict` names what is compared when kernels run."""

from __future__ import annotations

from pathlib import Path

import pytest

from pscdsl._src.cli import main

TEXT = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32

W = np.ones(3, np.float32)
L = [1.0]
S = 2.0


@psc.kernel
def f(x: f32["3"]) -> f32["3"]:
    return x * W * L[0] * S
"""


@pytest.mark.parametrize("strict", [True, False])
def test_the_summary_names_what_is_held(
    strict: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lib.py").write_text(TEXT, encoding="utf-8")
    options = ["--strict"] if strict else []
    assert main(["check", "--no-cache", *options, str(tmp_path)]) == 0
    said = "compared when kernels run: `lib.L`, `lib.W`\n" in capsys.readouterr().out
    assert said is strict
