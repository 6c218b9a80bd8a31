"""Check a thousand kernels beside mypy and pyright: cold, and after one edit.

python -m tests.benchmarks.synthetic [KERNELS] [ROUNDS]

The tools take turns on the same files.  Each starts without a cache; then one line of one file is
edited, and each checks again with the cache that it keeps, if it keeps one.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

import pscdsl
from tests.benchmarks.report import table
from tests.benchmarks.synthetic.generate import write
from tests.benchmarks.synthetic.measure import Run, run

ROOT = Path(pscdsl.__file__).resolve().parent.parent
MYPY = "[mypy]\nplugins = pscdsl.mypy_plugin\ncache_dir = .mypy_cache\n"
TOOLS = {
    "pscdsl": [sys.executable, "-m", "pscdsl", "check", "lab"],
    "mypy": [sys.executable, "-m", "mypy", "lab"],
    "pyright": [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "lab"],
}
CACHES = (".pscdsl_cache", ".mypy_cache")


def main(kernels: int = 1000, rounds: int = 3) -> None:
    """Write the project, run the tools, print the medians."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPATH": str(ROOT), "PSCDSL_CACHE_DIR": CACHES[0]}
    found: dict[tuple[str, str], list[Run]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        paths = write(folder, kernels)
        (folder / "mypy.ini").write_text(MYPY)
        lines = sum(p.read_text().count("\n") for p in folder.rglob("*.py"))
        print(f"{kernels} kernels, {lines} lines, {rounds} rounds", flush=True)

        def everyone(case: str) -> None:
            for tool, command in TOOLS.items():
                result = run(command, folder, environment)
                found.setdefault((case, tool), []).append(result)
                if result.code:
                    raise SystemExit(f"{tool} failed, {case}: {result.last}")

        for number in range(rounds):
            for cache in CACHES:
                shutil.rmtree(folder / cache, ignore_errors=True)
            everyone("cold")
            everyone("nothing changed")
            edit(paths[(17 * number + 43) % len(paths)], number)
            everyone("a kernel edited")
            edit(paths[0].with_name("helpers.py"), number)
            everyone("a helper edited")
    print(table("seconds", HEAD, [row(key, runs) for key, runs in found.items()]))


HEAD = ("case", "tool", "wall", "processor", "peak MB")


def edit(path: Path, number: int) -> None:
    """Change a number in a file."""
    text = path.read_text()
    changed = re.sub(r"\b1e-\d\b", f"1{number}e-9", text, count=1)
    assert changed != text
    path.write_text(changed)


def row(key: tuple[str, str], runs: list[Run]) -> list[str]:
    """The medians of some runs."""
    return [
        *key,
        f"{median(each.seconds for each in runs):.2f}",
        f"{median(each.processor for each in runs):.2f}",
        f"{max(each.memory for each in runs) / 1e6:.0f}",
    ]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
