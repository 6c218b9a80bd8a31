"""How long `pscdsl check` takes from process start."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import seconds

PROGRAMS = Path(__file__).with_name("workloads") / "programs.py"
ROUNDS = 7


def checking() -> list[list[str]]:
    """What was done, and how long it took: one small file, and a hundred kernels."""
    kernels = PROGRAMS.read_text().split("def jax_programs")[0]
    kernels = kernels.replace("from benchmarks.workload import Workload, normal\n", "")
    small = kernels.split("@psc.kernel\ndef attention")[0]
    head, *bodies = kernels.split("@psc.kernel\n")
    with tempfile.TemporaryDirectory() as folder:
        one, many = Path(folder, "one.py"), Path(folder, "many.py")
        one.write_text(small)
        copies = [
            "@psc.kernel\n" + body.replace("def ", f"def k{i}_", 1)
            for i in range(100)
            for body in [bodies[i % len(bodies)]]
        ]
        many.write_text(head + "".join(copies))
        return [
            ["bare python", _process("-c", "pass")],
            ["import numpy", _process("-c", "import numpy")],
            ["one small file", _process("-m", "pscdsl", "check", str(one))],
            ["100 kernels", _process("-m", "pscdsl", "check", str(many))],
        ]


def _process(*arguments: str) -> str:
    """The median over several processes, the first not counted."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def run() -> None:
        subprocess.run(
            [sys.executable, *arguments], check=True, capture_output=True, env=environment
        )

    times = [seconds(run) for _ in range(ROUNDS + 1)][1:]
    return f"{sorted(times)[ROUNDS // 2]:.3f} s"
