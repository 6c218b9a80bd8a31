"""Replay some calls of a file, each reported as a line of JSON: a process, since one may crash.

`python -m tests.replay.worker FILE FIRST COUNT [--batch COUNT]`
"""

from __future__ import annotations

import argparse
import json
import pickle
from dataclasses import asdict
from pathlib import Path

from tests.replay.calls import Call
from tests.replay.campaign import BATCH, quietly, replayed


def main() -> None:
    """Report the outcomes, and before each batch that it has begun."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--batch", type=int, default=BATCH)
    given = parser.parse_args()
    calls: list[Call] = pickle.loads(given.file.read_bytes())
    with quietly():
        for first in range(given.first, given.first + given.count, given.batch):
            print(json.dumps({"begun": first}), flush=True)
            last = min(first + given.batch, given.first + given.count)
            for outcome in replayed(calls[first:last]):
                print(json.dumps(asdict(outcome)))


if __name__ == "__main__":
    main()
