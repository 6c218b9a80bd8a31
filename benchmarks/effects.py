"""What it costs to look inside a running kernel: effects off and on, beside jax's.

`python -m benchmarks.effects --jax PYTHON` prints a table of processor time, each side in a process
of its own; `python -m benchmarks.effects SIDE` is one such process. Lines go to /dev/null.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

STEPS = 1000
ROUNDS = 7
X = np.full((64, 64), 0.01, np.float32)


def best(call: Callable[[], Any]) -> float:
    """Return the least processor time of a call, in milliseconds."""
    call()
    times: list[float] = []
    for _ in range(ROUNDS):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return 1e3 * min(times)


def _cells(times: Sequence[float | str]) -> str:
    return "".join(f"{time:10.2f}" if isinstance(time, float) else f"{time:10}" for time in times)


def main() -> None:
    """Print the table, or measure one side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", nargs="?", choices=("ours", "jax"))
    parser.add_argument("--jax", default=sys.executable)
    given = parser.parse_args()
    if given.side:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            found = import_module(f"benchmarks.effects_{given.side}").measured()
        print(json.dumps(found))
        return
    sides = {"ours": sys.executable, "jax": given.jax}
    tables = {
        side: json.loads(
            subprocess.run(
                [python, "-m", "benchmarks.effects", side],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout.splitlines()[-1]
        )
        for side, python in sides.items()
    }
    print(f"{'':28}{'ours off':>10}{'on':>10}{'jax off':>12}{'on':>10}   ms")
    for name in dict.fromkeys((*tables["ours"], *tables["jax"])):
        ours, theirs = (tables[side].get(name, ("", "")) for side in ("ours", "jax"))
        print(f"{name:28}{_cells(ours)}  {_cells(theirs)}")


if __name__ == "__main__":
    main()
