"""A long run of random programs: `python -m tests.campaign NAME --programs 20000 --seed 7`.

Exit code 0: nothing is wrong; 1: what is wrong is printed, and written to a folder if one is named.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Final

from tests.campaign.campaign import Campaign
from tests.campaign.outcomes import Figures, Outcome, Problem
from tests.campaign.processes import Workers, work

CAMPAIGNS: Final = {
    "programs": "tests.fuzz.campaign",
    "static": "tests.fuzz.static_differences",
    "numpy": "tests.fuzz.numpy_differences",
    "artefacts": "tests.fuzz.artefacts",
    "identity": "tests.identity.campaign",
    "differential": "tests.differential.campaign",
    "meshes": "tests.fuzz.meshes",
    "replay": "tests.replay.campaign",
}
"""The modules of which each has a `CAMPAIGN`."""
ALIKE: Final = 8
"""How many programs with the same problem are written to the folder."""
OFTEN: Final = 10.0
"""After how many seconds the report in the folder is written again."""


def main() -> int:
    """Run a campaign, or work for one."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in CAMPAIGNS:
        print(f"{__doc__}\nNAME is one of {', '.join(CAMPAIGNS)}; --help says what each tries.")
        return 2
    campaign: Campaign = importlib.import_module(CAMPAIGNS[name]).CAMPAIGN
    given = campaign.parser(name).parse_args(sys.argv[2:])
    if given.worker is not None:
        work(campaign, given)
        return 0
    if campaign.prepare is not None:
        campaign.prepare(given)
    command = [sys.executable, "-m", "tests.campaign", *sys.argv[1:]]
    return Run(Workers(command, campaign, given)).run()


@dataclass
class Run:
    """A campaign that runs."""

    workers: Workers
    figures: Figures = field(default_factory=Figures)
    alike: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    seeds: int = 0

    def run(self) -> int:
        """Try seeds in worker processes until there are enough, and print the report."""
        start = saved = time.monotonic()
        for place, outcomes in self.found():
            seed = self.workers.campaign.seed(self.workers.given, place)
            self.seeds += 1
            for problem in self.figures.add(seed, outcomes):
                print(f"{problem}\n", flush=True)
                self.write(problem)
            if self.figures.problems and self.workers.given.first:
                self.workers.stop.set()
            if time.monotonic() - saved > OFTEN:
                saved = time.monotonic()
                self.save(saved - start)
        self.save(time.monotonic() - start)
        print(self.report(time.monotonic() - start))
        return int(bool(self.figures.problems))

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Yield the first place and the number of places that the next process tries."""
        given, campaign = self.workers.given, self.workers.campaign
        programs = given.programs or (10**9 if given.minutes else campaign.default)
        count = -(-programs // campaign.programs)
        size = min(5 if given.first else campaign.chunk, campaign.chunk, -(-count // given.jobs))
        end = time.monotonic() + 60 * (given.minutes or 10**9)
        for first in range(0, count, size):
            if time.monotonic() > end:
                return
            yield first, min(size, count - first)

    def found(self) -> Iterator[tuple[int, list[Outcome]]]:
        """Yield places and what became of them, from several processes."""
        queue = SimpleQueue[tuple[int, list[Outcome]] | None]()
        chunks, lock = self.chunks(), Lock()

        def try_chunks() -> None:
            try:
                while not self.workers.stop.is_set():
                    with lock:
                        chunk = next(chunks, None)
                    if chunk is None:
                        return
                    for found in self.workers.chunk(*chunk):
                        queue.put(found)
            finally:
                queue.put(None)

        with ThreadPoolExecutor(self.workers.given.jobs) as pool:
            running = [pool.submit(try_chunks) for _ in range(self.workers.given.jobs)]
            ended = 0
            while ended < len(running):
                found = queue.get()
                if found is None:
                    ended += 1
                else:
                    yield found
            for each in running:
                each.result()

    def write(self, problem: Problem) -> None:
        """Write a program that is wrong to the folder, and a smaller one that is."""
        outcome = problem.outcome
        self.alike[outcome.kind, outcome.detail] += 1
        many = outcome.detail and self.alike[outcome.kind, outcome.detail] > ALIKE
        if self.workers.given.folder is None or many:
            return
        text = outcome.text
        if self.workers.campaign.smaller is not None and outcome.kind != "crash":
            with self.workers.campaign.around():
                text = self.workers.campaign.smaller(problem.seed, outcome, self.workers.given)
        folder = Path(self.workers.given.folder)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{outcome.kind.replace(' ', '_')}_{problem.seed}_{len(self.figures.problems)}"
        head = "".join(f"# {line}\n" for line in str(problem).split("\n")[:3])
        (folder / f"{name}.py").write_text(head + text, encoding="utf-8")
        if text != outcome.text:
            (folder / f"{name}.whole.txt").write_text(outcome.text, encoding="utf-8")

    def save(self, spent: float) -> None:
        """Write the report to the folder."""
        if self.workers.given.folder is not None:
            folder = Path(self.workers.given.folder)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "report.txt").write_text(self.report(spent) + "\n", encoding="utf-8")

    def report(self, spent: float) -> str:
        """Return all figures."""
        lines = [self.figures.report()]
        if self.workers.campaign.report is not None:
            lines.append(self.workers.campaign.report(self.figures, self.workers.given))
        total, wrong = self.figures.table.total(), len(self.figures.problems)
        lines.append(
            f"{self.seeds:,} seeds from {self.workers.given.seed}, {total:,} outcomes, "
            f"{wrong} problems, {spent:.0f} s"
        )
        return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
