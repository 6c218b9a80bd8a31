"""A long run: `python -m tests.differential --programs 50000 --seed 0`.

Exit code 0: no result has left its bounds, and no process has ended; 1: the programs are printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.differential import coverage
from tests.differential.campaign import campaign
from tests.differential.rules import RULES


def main() -> int:
    """Run programs, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--programs", type=int, default=50_000, help="at least")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--decorator", default="kernel", help="such as kernel(fast_math=True)")
    parser.add_argument("--folder", type=Path, help="for the programs that show a problem")
    parser.add_argument("--without", choices=[*RULES], help="a rule, until a program is wrong")
    given = parser.parse_args()
    figures = campaign(
        given.programs, given.seed, given.jobs, given.decorator, given.folder, given.without
    )
    for kind, text in figures.problems:
        print(f"{kind}: {text}\n")
    print(f"{figures.table()}\n\n{coverage.table(figures.covered)}")
    return int(bool(figures.problems))


if __name__ == "__main__":
    sys.exit(main())
