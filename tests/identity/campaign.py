"""Is one program ever taken for another?  `python -m tests.campaign identity` tries pairs.

The pairs go through processes in batches.  A first process reads both programs of each pair, and
calls them for some; a second one, with the same store on disk, has what the first wrote down of the
first programs, and must not take the second ones for them.

`python -m tests.identity.campaign PART FOLDER SEED COUNT CALLS` is such a process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.campaign.campaign import Campaign
from tests.campaign.outcomes import Outcome
from tests.identity.trials import Figures, one_process, other_process, pairs

ROOT = Path(__file__).parents[2]
BATCH = 250


def attempt(seed: int, given: Namespace) -> Iterator[Outcome]:
    """Try the pairs from a seed on, in two processes."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PSCDSL_CACHE": f"{folder}/cache"}
        for part in ("first", "second"):
            command = [sys.executable, "-m", "tests.identity.campaign", part, folder]
            command += [str(seed), str(BATCH), str(given.calls)]
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                yield Outcome("crash", part, problem=f"seeds from {seed}: {done.stderr[-3000:]}")
                return
            said = json.loads(done.stdout.splitlines()[-1])
            for name, number in said["counts"].items():
                kind, _, detail = name.partition(" " if name.startswith("refused") else ": ")
                yield from [Outcome(kind, part, detail)] * number
            for problem in said["problems"]:
                yield Outcome("confused", part, problem=problem)


def work(part: str, folder: Path, seed: int, count: int, calls: int) -> None:
    """Do what one process does, and print what came out."""
    sys.dont_write_bytecode = True
    figures, notes = Figures(tell="TELL" in os.environ), folder / "known.json"
    known: dict[str, Any] = json.loads(notes.read_text()) if part == "second" else {}
    for made in pairs(seed, count):
        place = folder / f"pair{made.seed}"
        place.mkdir(exist_ok=True)
        called = made.seed % calls == 0
        if part == "first":
            known[str(made.seed)] = one_process(made, place, figures, calls=called)
        else:
            other_process(made, place, known[str(made.seed)], figures, calls=called)
    if part == "first":
        notes.write_text(json.dumps(known))
    print(json.dumps({"counts": figures.counts, "problems": figures.problems}))


def arguments(parser: ArgumentParser) -> None:
    """Add how many pairs are called."""
    parser.add_argument("--calls", type=int, default=5, help="call one pair of so many")


CAMPAIGN = Campaign(
    about="Pairs of programs that differ in one thing: none is taken for the other.",
    attempt=attempt,
    texts=lambda seed, _: [f"{BATCH} pairs from seed {seed}"],
    default=200,
    programs=BATCH,
    chunk=1,
    patience=3600,
    seed=lambda given, place: given.seed + BATCH * place,
    arguments=arguments,
)

if __name__ == "__main__":
    work(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
