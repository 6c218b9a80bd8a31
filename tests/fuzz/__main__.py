"""A long run: `python -m tests.fuzz --minutes 10 --seed 0`.

Exit code 0: every law held; 1: the problems are printed, and written to a folder if one is given.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.campaign import Figures, derivatives, trial


def main() -> int:
    """Run trials until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first trial")
    parser.add_argument("--trials", type=int, default=10**9, help="stop after as many")
    parser.add_argument("--size", type=int, default=6, help="statements of a program, at most")
    parser.add_argument("--mutants", type=int, default=8, help="of each program")
    parser.add_argument("--folder", type=Path, help="for the programs that show a problem")
    given = parser.parse_args()
    figures = Figures()
    start, seed = time.monotonic(), given.seed
    while time.monotonic() - start < 60 * given.minutes and seed < given.seed + given.trials:
        known = len(figures.problems)
        trial(seed, figures, given.mutants, 2, given.size)
        derivatives(seed, figures, given.size)
        for number, problem in enumerate(figures.problems[known:], known):
            print(f"seed {problem.seed}, {problem.kind}: {problem.why}", flush=True)
            if given.folder is not None:
                given.folder.mkdir(parents=True, exist_ok=True)
                name = f"{number}_{problem.seed}.py"
                (given.folder / name).write_text(problem.text, encoding="utf-8")
        seed += 1
    spent = time.monotonic() - start
    total = sum(figures.counts.values())
    print(figures.table())
    print(f"{seed - given.seed} programs, {total} texts checked, {figures.runs} runs at sizes")
    print(f"{len(figures.problems)} problems, {spent:.0f} s, {1000 * spent / total:.0f} ms a text")
    return int(bool(figures.problems))


if __name__ == "__main__":
    sys.exit(main())
