"""A long run: `python -m tests.replay --calls 20000 --seed 0 --jobs 2`.

Exit code 0: no call has a result that differs from NumPy's, but as documented; 1: the others are
printed, each as a kernel and its arguments.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.replay.calls import sampled
from tests.replay.campaign import Figures, campaign
from tests.replay.recording import recorded


def main() -> int:
    """Record, replay, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="which calls, if there are more")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--function", help="replay calls of this function alone")
    parser.add_argument("--folder", type=Path, help="for what is recorded, and the report")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.gettempdir()) / (
        f"pscdsl-replay-numpy-{version('numpy')}-scipy-{version('scipy')}"
    )
    recording = recorded(folder, jobs=given.jobs)
    calls = recording.calls
    if given.function is not None:
        calls = [call for call in calls if call.name == given.function]
    figures, report = Figures(), ""
    for figures in campaign(sampled(calls, given.calls, given.seed), given.jobs):
        report = figures.report(recording)
        (folder / "report.txt").write_text(report, encoding="utf-8")
    print(report)
    return int(bool(figures.problems))


if __name__ == "__main__":
    sys.exit(main())
