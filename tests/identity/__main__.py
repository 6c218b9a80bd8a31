"""Is one program ever taken for another?  `python -m tests.identity --pairs 5000` tries.

The pairs go through processes in batches.  A first process reads both programs of each pair, and
calls them for some; a second one, with the same store on disk, has what the first wrote down of the
first programs, and must not take the second ones for them.

Exit code 0: none was confused; 1: those that were are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.identity.trials import Figures, one_process, other_process, pairs

ROOT = Path(__file__).parents[2]
BATCH = 250


def main() -> int:
    """Run batches of pairs, each in two processes."""
    parser = argparse.ArgumentParser(prog="python -m tests.identity", description=__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first pair")
    parser.add_argument("--calls", type=int, default=5, help="call one pair of so many")
    parser.add_argument("--part", choices=("first", "second"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part is not None:
        return part(given)
    start, counts, problems = time.monotonic(), Counter[str](), list[str]()
    for first in range(given.seed, given.seed + given.pairs, BATCH):
        count = min(BATCH, given.seed + given.pairs - first)
        for told in batch(first, count, given.calls):
            counts.update(told["counts"])
            problems += told["problems"]
            for each in told["problems"]:
                print(each, flush=True)
    for name, number in sorted(counts.items()):
        print(f"{number:7} {name}")
    spent = time.monotonic() - start
    print(f"{given.pairs} pairs from seed {given.seed}, {len(problems)} confused, {spent:.0f} s")
    return int(bool(problems))


def batch(first: int, count: int, calls: int) -> list[dict[str, Any]]:
    """What the two processes tell of some pairs."""
    told: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PSCDSL_CACHE": f"{folder}/cache"}
        for each in ("first", "second"):
            command = [sys.executable, "-m", "tests.identity", "--pairs", str(count)]
            command += ["--seed", str(first), "--calls", str(calls), "--part", each]
            command += ["--folder", folder]
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                problem = f"seeds from {first}, the {each} process: {done.stderr[-3000:]}"
                told.append({"counts": {}, "problems": [problem]})
                break
            told.append(json.loads(done.stdout.splitlines()[-1]))
    return told


def part(given: argparse.Namespace) -> int:
    """What one process does."""
    sys.dont_write_bytecode = True
    figures, notes = Figures(tell="TELL" in os.environ), given.folder / "known.json"
    known: dict[str, Any] = json.loads(notes.read_text()) if given.part == "second" else {}
    for made in pairs(given.seed, given.pairs):
        folder = given.folder / f"pair{made.seed}"
        folder.mkdir(exist_ok=True)
        calls = made.seed % given.calls == 0
        if given.part == "first":
            known[str(made.seed)] = one_process(made, folder, figures, calls=calls)
        else:
            other_process(made, folder, known[str(made.seed)], figures, calls=calls)
    if given.part == "first":
        notes.write_text(json.dumps(known))
    print(json.dumps({"counts": figures.counts, "problems": figures.problems}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
