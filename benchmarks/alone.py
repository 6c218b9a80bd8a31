"""One workload beside jax or PyTorch, each side in a process of its own.

Where something holds for a whole process, such as how memory is given back, or threads that wait
for more work, two sides in one process share it.  `python -m benchmarks.alone NAME SIDE
FOLDER` is one such process; a side is `ours`, `jax.jit` or `torch.compile`.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alongside import LEAST, blocking, check_equal, on_device
from benchmarks.measure import seconds
from benchmarks.report import Row
from benchmarks.rivals import TORCH
from benchmarks.workload import Workload, leaves, plain

ROUNDS = 25
WARM = 10


@dataclass(frozen=True)
class Side:
    """What one process has measured."""

    seconds: float
    resident: int
    """The bytes of the process that are in memory after the last call."""


def alternating(subject: str, work: Workload, processes: int, rival: str = "jax.jit") -> Row:
    """Processes of both sides, in turn; a ValueError or AssertionError if results differ."""
    ours: list[Side] = []
    theirs: list[Side] = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(processes):
            order = (ours, theirs) if turn % 2 == 0 else (theirs, ours)
            for side in order:
                side.append(_apart(work, "ours" if side is ours else rival, folder))
        found = [_results(Path(folder, f"{which}.npz")) for which in ("ours", rival)]
        check_equal(work.name, work.tolerance, *found)
    ratios = sorted(a.seconds / b.seconds for a, b in zip(ours, theirs, strict=True))
    row = Row(
        subject,
        work.name,
        rival,
        statistics.median(each.seconds for each in ours),
        statistics.median(each.seconds for each in theirs),
        ratios[0],
        statistics.median(ratios),
        ratios[-1],
    )
    if rival != "jax.jit":
        return row
    return replace(row, goal=work.goal, bytes=_memory(ours), their_bytes=_memory(theirs))


def _memory(sides: Sequence[Side]) -> int:
    return round(statistics.median(each.resident for each in sides))


def _results(path: Path) -> tuple[Any, ...]:
    with np.load(path) as kept:
        return tuple([kept[name] for name in kept.files])


def _apart(work: Workload, which: str, folder: str) -> Side:
    command = [sys.executable, "-m", "benchmarks.alone", work.name, which, folder]
    # Threads of PyTorch's that wait busily would take the cores from those that they wait for.
    settings = dict(work.settings) if which == "ours" else {"OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | settings
    )
    return Side(**json.loads(done.stdout.splitlines()[-1]))


def measure(work: Workload, which: str, folder: Path) -> Side:
    """One side, in this process."""
    arguments = work.arguments(work.scale)
    if which == "ours":
        run = blocking(work.kernel, on_device(arguments))
    else:
        run = (_jitted if which == "jax.jit" else _torch)(work, arguments)
    kept = folder / f"{which}.npz"
    if not kept.exists():
        np.savez(kept, *[np.asarray(each) for each in leaves(plain(run()))])
    # The first calls take longer: memory is new to the process, and calls find their short way.
    times = max(1, int(LEAST / min(seconds(run) for _ in range(WARM))))
    found = statistics.median(seconds(run, times) for _ in range(ROUNDS))
    return Side(found, _resident())


def _torch(work: Workload, arguments: tuple[Any, ...]) -> Callable[[], Any]:
    compiled = TORCH[work.name](importlib.import_module("torch"))
    numbers = plain(arguments)
    return lambda: compiled(*numbers)


def _jitted(work: Workload, arguments: tuple[Any, ...]) -> Callable[[], Any]:
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", work.double)
    jitted = jax.jit(work.jax(jax))
    there = jax.tree.map(jax.numpy.array, plain(arguments))
    return lambda: jax.block_until_ready(jitted(*there))


def _resident() -> int:
    """Bytes; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * 4096


def main(name: str, which: str, folder: str) -> None:
    """One process."""
    from benchmarks.workloads import WORKLOADS

    found = measure(WORKLOADS[name], which, Path(folder))
    print(json.dumps({"seconds": found.seconds, "resident": found.resident}))


if __name__ == "__main__":
    main(*sys.argv[1:])
