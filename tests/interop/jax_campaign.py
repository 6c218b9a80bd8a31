"""Run proven functions of JAX projects beside jax: `python -m tests.interop.jax_campaign DIR…`.

They are those with annotations, or with `--infer` those for which types are found. Each file is
imported in a process of its own, so what it needs has to be installed. Exit code 0: jax computes
the same as our typed programs, but for values that a function refuses; 1: what differs is printed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.interop.jax_runs import NotRun, accepted, inferred, runs

PATIENCE: Final = 600.0
"""After how many seconds a file is given up."""
AS_WRITTEN: Final = "--xla_disable_hlo_passes=algsimp"
"""Without it, a mask times NaN is 0."""
SHOWN: Final = 3
"""How many runs of a function that differ are printed."""


def main() -> int:
    """Run the functions of some folders, or of one file."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.jax_campaign")
    parser.add_argument("folders", nargs="+", type=Path, help="projects, or files")
    parser.add_argument("--infer", action="store_true", help="functions without annotations")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.file is not None:
        for line in of_file(given.file, given.folders[0], infer=given.infer):
            print(line, flush=True)
        return 0
    total = Counter[str]()
    for folder in given.folders:
        figures = Counter[str]()
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*.py")):
            figures += of_process(path, folder, infer=given.infer)
        print(f"{folder}: {_shown(figures)}", flush=True)
        total += figures
    print(f"all: {_shown(total)}")
    return int(bool(total["different"] or total["crashed"]))


def _shown(figures: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(figures.items())) or "nothing"


def of_process(path: Path, root: Path, *, infer: bool) -> Counter[str]:
    """Return what became of the functions of a file, run in a process of its own."""
    figures = Counter[str]()
    wanted = "jax" if infer else "jaxtyping"
    if wanted not in path.read_text(encoding="utf-8", errors="replace"):
        return figures
    command = [sys.executable, "-m", "tests.interop.jax_campaign", str(root), "--file", str(path)]
    command += ["--infer"] * infer
    env = {**os.environ, "XLA_FLAGS": AS_WRITTEN}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=env
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
        if not rest:  # a file wrote it when it was imported
            continue
        figures[kind] += 1
        if kind != "same":
            print(f"{path}: {kind}: {rest}", flush=True)
    return +figures


def of_file(path: Path, root: Path, *, infer: bool) -> Iterator[str]:
    """Yield what becomes of each proven function of a file."""
    top = path.parent
    while (top / "__init__.py").exists():
        top = top.parent
    sys.path.insert(0, str(top))
    name = ".".join(path.relative_to(top).with_suffix("").parts).removesuffix(".__init__")
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        yield f"not imported\t{type(error).__name__}: {error}".replace("\n", " ")
        return
    for each in (inferred if infer else accepted)(path, root):
        try:
            tried = [*runs(each, module)]
        except NotRun as reason:
            yield f"not run\t{each.name}: {reason}"
            continue
        admitted = {run.place for run in tried if not run.difference}
        different = [run for run in tried if run.difference]
        refused = [run for run in different if run.refused and run.place in admitted]
        text = "".join(f"\\n    {run}" for run in different[:SHOWN])
        kind = "same" if not different else "refuses" if different == refused else "different"
        yield f"{kind}\t{each.name} in {len(different) or len(tried)} of {len(tried)}{text}"


if __name__ == "__main__":
    sys.exit(main())
