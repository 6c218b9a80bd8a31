"""What becomes of each program: `python -m tests.plain_numpy [--results] [NAME ...]`.

Prints the program, how many lines were changed, the seconds that the check and the runs with all
compilations took, and either the first finding that refuses it, with its line, or how far its
results are from NumPy's.  With `--results`, programs return copies of what they write, instead of
writing into their arguments.  Exit code 1: one that is accepted fails or is not equal.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.plain_numpy.acceptance import Outcome, outcome
from tests.plain_numpy.programs import PROGRAMS


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.plain_numpy", description=__doc__)
    parser.add_argument("--results", action="store_true", help="return what is written")
    parser.add_argument("names", nargs="*", help="of programs; all, if none is given")
    given = parser.parse_args()
    unknown = set(given.names) - {program.name for program in PROGRAMS}
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    outcomes: list[Outcome] = []
    for program in PROGRAMS:
        if not given.names or program.name in given.names:
            outcomes.append(outcome(program, given.results))
            print(outcomes[-1], flush=True)
    equal = sum(each.equal for each in outcomes)
    accepted = sum(each.verdict != "refused" for each in outcomes)
    print(f"{accepted} of {len(outcomes)} accepted, {equal} of them equal")
    codes = Counter(each.code for each in outcomes if each.code)
    if codes:
        print("first findings:", ", ".join(f"{code} {n}" for code, n in codes.most_common()))
    return int(accepted != equal)


if __name__ == "__main__":
    sys.exit(main())
