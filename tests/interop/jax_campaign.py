"""Run accepted functions of JAX projects beside jax: `python -m tests.interop.jax_campaign DIR…`.

Each file is imported in a process of its own, so what it needs has to be installed. Exit code 0:
jax computes the same as our typed programs; 1: what differs is printed.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.interop.jax_runs import NotRun, accepted, runs

PATIENCE: Final = 600.0
"""After how many seconds a file is given up."""
SHOWN: Final = 3
"""How many runs of a function that differ are printed."""


def main() -> int:
    """Run the functions of some folders, or of one file."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.jax_campaign")
    parser.add_argument("folders", nargs="+", type=Path, help="projects, or files")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.file is not None:
        for line in of_file(given.file, given.folders[0]):
            print(line, flush=True)
        return 0
    total = Counter[str]()
    for folder in given.folders:
        figures = Counter[str]()
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*.py")):
            figures += of_process(path, folder)
        print(f"{folder}: {_shown(figures)}", flush=True)
        total += figures
    print(f"all: {_shown(total)}")
    return int(bool(total["different"] or total["crashed"]))


def _shown(figures: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(figures.items())) or "nothing"


def of_process(path: Path, root: Path) -> Counter[str]:
    """Return what became of the functions of a file, run in a process of its own."""
    figures = Counter[str]()
    if "jaxtyping" not in path.read_text(encoding="utf-8", errors="replace"):
        return figures
    command = [sys.executable, "-m", "tests.interop.jax_campaign", str(root), "--file", str(path)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        text, failed = done.stdout, done.returncode != 0
        if failed:
            print(f"{path}: {done.stderr.strip().splitlines()[-1:]}")
    except subprocess.TimeoutExpired as late:
        text, failed = (late.stdout or b"").decode(), True
        print(f"{path}: more than {PATIENCE:.0f} s")
    figures["crashed"] += failed
    for line in text.splitlines():
        kind, _, rest = line.partition("\t")
        figures[kind] += 1
        if kind != "same":
            print(f"{path}: {kind}: {rest}", flush=True)
    return +figures


def of_file(path: Path, root: Path) -> Iterator[str]:
    """Yield what becomes of each accepted function of a file."""
    functions = accepted(path, root)
    if not functions:
        return
    top = path.parent
    while (top / "__init__.py").exists():
        top = top.parent
    sys.path.insert(0, str(top))
    name = ".".join(path.relative_to(top).with_suffix("").parts).removesuffix(".__init__")
    try:
        module = importlib.import_module(name)
    except Exception as error:
        for each in functions:
            yield f"not imported\t{each.name}: {type(error).__name__}: {error}".replace("\n", " ")
        return
    for each in functions:
        different: list[str] = []
        count = 0
        try:
            for run in runs(each, module):
                count += 1
                if run.difference:
                    different.append(str(run))
        except NotRun as reason:
            yield f"not run\t{each.name}: {reason}"
            continue
        if different:
            text = "".join(f"\\n    {line}" for line in different[:SHOWN])
            yield f"different\t{each.name} in {len(different)} of {count}{text}"
        else:
            yield f"same\t{each.name} in {count}"


if __name__ == "__main__":
    sys.exit(main())
