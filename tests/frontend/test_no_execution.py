"""`pscdsl check` runs nothing of what it checks, and does without jaxlib."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WRITES = """
import pathlib
import numpy as np
import pscdsl as psc
from pscdsl import f32

pathlib.Path({trace!r}).write_text("import")


class Loud:
    pathlib.Path({trace!r}).write_text("class body")


def note():
    pathlib.Path({trace!r}).write_text("call")
    return 1.0


SIZE = note()


@psc.kernel
def quiet(x: f32["n"]) -> f32["n"]:
    return x + 1


@psc.kernel
def loud(x: f32["n"], y: f32 = note()) -> f32["n"]:
    return x * note()
"""

CHECK = """
import sys
from pscdsl._src.cli import main

code = main(["check", sys.argv[1], "--format", "concise"])
assert not any(name.split(".")[0] in ("jaxlib", "jax") for name in sys.modules), "jaxlib is loaded"
sys.exit(code)
"""


def test_checking_leaves_no_trace(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    file = tmp_path / "writes.py"
    file.write_text(WRITES.format(trace=str(trace)))
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "PSC2" in done.stdout or "PSC9" in done.stdout
    assert "Traceback" not in done.stderr, done.stderr
    assert not trace.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["writes.py"]
