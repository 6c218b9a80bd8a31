"""The commands that only check: they need no jaxlib, nor what a browser's Python lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BROWSER = """\
import sys, time

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"jaxlib", "lsprotocol", "pygls", "rich", "typeguard"}:
            raise ModuleNotFoundError(f"there is no {name}", name=name)

sys.meta_path.insert(0, Missing())
del time.thread_time
from pscdsl._src.cli import main

sys.exit(main(sys.argv[1:]))
"""
PROGRAM = '''\
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def energy(x: f32["n"]) -> f32:
    """Half the square."""
    return np.sum(x * x) / 2


def centred(x):
    """A function of NumPy."""
    return x - x.mean(axis=0)
'''


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        (["check", "program.py"], "1 kernel checked in 1 file"),
        (["check", "--fix", "program.py"], "1 kernel checked in 1 file"),
        (["ir", "program.py:energy", "--grad"], "-> f32[n]"),
        (["ir", "program.py:energy", "--format", "html"], "<svg"),
        (["cost", "program.py:energy", "--grad"], "flops"),
        (["explain", "PSC300"], "do not broadcast"),
        (["discover", "program.py"], "1 PSC"),
    ],
)
def test_a_command_that_only_checks_runs(tmp_path: Path, command: list[str], printed: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-c", BROWSER, *command],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert printed in ended.stdout


def test_the_answers_of_the_language_server_need_no_protocol() -> None:
    program = BROWSER.partition("from pscdsl")[0] + "import pscdsl._src.server.kernels"
    subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
    )
