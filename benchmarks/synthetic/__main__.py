"""Check projects of several sizes beside mypy, pyright, ty and Pyrefly.

python -m benchmarks.synthetic [--kernels 200 1000 5000] [--rounds 3] [--plot FILE]

The tools take turns on the same files.  Each starts without a cache; then one line of one file is
edited, and each checks again with the cache that it keeps, if it keeps one.  The last table has our
check with one process and without a cache, for each size: where it bends, time grows faster than
the project.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import pscdsl
from benchmarks.report import table
from benchmarks.synthetic.generate import write
from benchmarks.synthetic.measure import Run, run

ROOT: Final = Path(pscdsl.__file__).resolve().parent.parent
MYPY: Final = "[mypy]\nplugins = pscdsl.mypy_plugin\ncache_dir = .mypy_cache\n"
CHECK: Final = (sys.executable, "-m", "pscdsl", "check", "lab")
BESIDE: Final = str(Path(sys.executable).parent)
TOOLS: Final = {
    "pscdsl": CHECK,
    "pscdsl --jobs 1": (*CHECK, "--jobs", "1"),
    "pscdsl --jobs 1 --no-cache": (*CHECK, "--jobs", "1", "--no-cache"),
    "mypy": (sys.executable, "-m", "mypy", "lab"),
    "pyright": (sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "lab"),
    "ty": (f"{BESIDE}/ty", "check", "--python", sys.executable, "lab"),
    "Pyrefly": (f"{BESIDE}/pyrefly", "check", "--python-interpreter-path", sys.executable, "lab"),
}
MAY_FIND: Final = ("ty", "Pyrefly")
"""They do not take our annotations for types, and end with findings."""
CACHES: Final = (".pscdsl_cache", ".mypy_cache")
ALONE: Final = "pscdsl --jobs 1 --no-cache"
SETTLED: Final = 2.5
"""Seconds between an edit and a check, as people leave; a cache may ask how old a file is."""
LARGE: Final = 1000
"""Kernels of a project above which the others are left out: they take minutes."""
HEAD: Final = ("kernels", "case", "tool", "wall", "processor", "peak MB")


def measured(kernels: int, rounds: int) -> dict[tuple[str, str], list[Run]]:
    """Write a project, and run the tools on it."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPATH": str(ROOT)}
    found: dict[tuple[str, str], list[Run]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        paths = write(folder, kernels)
        (folder / "mypy.ini").write_text(MYPY)
        lines = sum(p.read_text().count("\n") for p in folder.rglob("*.py"))
        print(f"{kernels} kernels, {lines} lines, {rounds} rounds", flush=True)

        def everyone(case: str, tools: Sequence[str]) -> None:
            time.sleep(SETTLED)
            for tool in tools:
                cache = f"{CACHES[0]}{tool.count('jobs')}"
                result = run(TOOLS[tool], folder, {**environment, "PSCDSL_CACHE_DIR": cache})
                found.setdefault((case, tool), []).append(result)
                if result.code and tool not in MAY_FIND:
                    raise SystemExit(f"{tool} failed, {case}: {result.last}")

        own = [each for each in TOOLS if each.startswith("pscdsl")]
        tools = own if kernels > LARGE else [*TOOLS]
        again = [each for each in tools if each != ALONE]
        for number in range(rounds):
            for cache in folder.glob(".*_cache*"):
                shutil.rmtree(cache)
            everyone("cold", tools)
            everyone("nothing changed", again)
            edit(paths[(17 * number + 43) % len(paths)], number)
            everyone("a kernel edited", again)
            edit(paths[0].with_name("helpers.py"), number)
            everyone("a helper edited", again)
    return found


def edit(path: Path, number: int) -> None:
    """Change a number in a file."""
    text = path.read_text()
    changed = re.sub(r"\b1e-\d\b", f"1{number}e-9", text, count=1)
    assert changed != text
    path.write_text(changed)


def row(kernels: int, key: tuple[str, str], runs: list[Run]) -> list[str]:
    """The medians of some runs."""
    return [
        str(kernels),
        *key,
        f"{median(each.seconds for each in runs):.2f}",
        f"{processor(runs):.2f}",
        f"{max(each.memory for each in runs) / 1e6:.0f}",
    ]


def processor(runs: list[Run]) -> float:
    """The median of the seconds of the processor."""
    return median(each.processor for each in runs)


def growth(alone: Mapping[int, float]) -> list[list[str]]:
    """What a kernel costs in projects of each size, and against the smallest of them."""
    rows: list[list[str]] = []
    first: float | None = None
    for kernels, seconds in alone.items():
        each = 1000 * seconds / kernels
        first = first or each
        rows.append([str(kernels), f"{seconds:.2f}", f"{each:.2f}", f"{each / first:.2f}"])
    return rows


def plot(found: Mapping[int, Mapping[tuple[str, str], list[Run]]], path: Path) -> None:
    """The seconds of a cold check over the number of kernels."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for tool in TOOLS:
        if tool in ("pscdsl", "pscdsl --jobs 1"):
            continue
        known = {n: runs["cold", tool] for n, runs in found.items() if ("cold", tool) in runs}
        axes.plot([*known], [processor(runs) for runs in known.values()], "o-", label=tool)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("kernels")
    axes.set_ylabel("seconds of the processor, no cache")
    axes.grid(which="both", alpha=0.2)
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure, and print the medians."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kernels", type=int, nargs="+", default=[200, 1000, 5000])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--plot", type=Path, metavar="FILE")
    given = options.parse_args()
    found = {kernels: measured(kernels, given.rounds) for kernels in given.kernels}
    rows = [row(kernels, *item) for kernels, runs in found.items() for item in runs.items()]
    print(table("seconds", HEAD, rows))
    alone = {kernels: processor(runs["cold", ALONE]) for kernels, runs in found.items()}
    head = ("kernels", "seconds", "ms a kernel", "of the first")
    print(table("one process, no cache", head, growth(alone)))
    if given.plot is not None:
        plot(found, given.plot)


if __name__ == "__main__":
    main()
