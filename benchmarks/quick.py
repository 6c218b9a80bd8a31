"""Compare the processor time of the working tree with that of a revision of git.

Checks, first calls, calls and whole programs run in processes of both sides, which take turns until
the time is used up. Where `perf stat` counts instructions, these are compared. A row has lost if
the median of its ratios is over 1.05, and three quarters of them are over 1.025; it is measured
again before it is named.

`python -m benchmarks.quick [REVISION] [--only WORD] [--seconds N]` (`make bench-quick`); without a
revision, what is not committed yet is measured.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from benchmarks.dispatch import Process, process
from benchmarks.report import table
from benchmarks.startup import write

ROOT = Path(__file__).parents[1]
LOST = 1.05
SURELY = 1.025
SECONDS = 200
AGAIN_SECONDS = 60
"""How long rows that seem to have lost are measured again."""
LEAST, MOST = 3, 15
"""Rounds of each row."""
TURNS = 8
"""How often the calls of a row alternate in a round."""
EVENT = "instructions:u"
CALLS = (
    *("one array, device", "12 floats, others each time", "a record with a static field, device"),
    *("three arrays, others each time, NumPy", "a captured array, device", "tuple of 10, NumPy"),
    *("a declared write, NumPy", "ten donated arrays, device", "a dict of 4 floats"),
)
PROGRAMS = ("option_price", "mandelbrot")


@dataclass(frozen=True)
class Side:
    """The package of a revision, with the benchmarks and programs of the working tree."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its processes, without what was compiled before."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PSCDSL_", "PYTHON"))}
        bytecode = str(self.folder / "bytecode")
        own = {"PYTHONPATH": str(self.folder), "PYTHONPYCACHEPREFIX": bytecode}
        own["PYTHONSAFEPATH"] = "1"  # the package of this side, not that of the current folder
        return {**kept, **own, "PSCDSL_CACHE": "off"}


@dataclass
class Work:
    """Something that is measured on both sides."""

    name: str
    cost: Callable[[int], float]
    """Returns what it takes on a side, 0 before and 1 after: instructions, or seconds."""
    turns: int = 1
    """How often both sides are measured in a round."""
    pairs: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    problem: str = ""

    def turn(self, number: int) -> None:
        """Measure both sides, each first in every other round; round 0 does not count."""
        try:
            for turn in range(number, number + self.turns):
                costs = {side: self.cost(side) for side in ((0, 1) if turn % 2 else (1, 0))}
                if number:
                    self.pairs.append((costs[0], costs[1]))
        except subprocess.CalledProcessError as error:
            said = (error.stderr or str(error)).strip().splitlines()
            self.problem = said[-1] if said else "failed"

    @property
    def ratios(self) -> tuple[float, float, float]:
        """The quartiles of the costs after over those before."""
        low, median, high = statistics.quantiles([b / a for a, b in self.pairs], n=4)
        return low, median, high

    @property
    def lost(self) -> bool:
        """Whether it surely takes longer than before, or fails."""
        return bool(self.problem) or (self.ratios[1] > LOST and self.ratios[0] > SURELY)

    def cells(self) -> list[str]:
        """Return the row of the table."""
        if self.problem:
            return [self.name, "", "", "failed", self.problem, ""]
        before, after = (statistics.median(each) for each in zip(*self.pairs, strict=True))
        low, median, high = self.ratios
        count = str(len(self.pairs))
        between = f"{low:.3f}-{high:.3f}"
        return [self.name, _shown(before), _shown(after), f"{median:.3f}", between, count]


@contextmanager
def sides(revision: str) -> Generator[tuple[Side, Side]]:
    """Make the package before and after, in folders of their own."""
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name, "tree")
        tree.mkdir()
        packages = ("pscdsl", "typing", "stdlib")
        archive = ["git", "-C", str(ROOT), "archive", revision, *packages]
        content = subprocess.run(archive, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", str(tree)], check=True, input=content)
        made: list[Side] = []
        for which, package in (("before", tree), ("after", ROOT)):
            folder = Path(name, which)
            folder.mkdir()
            (folder / "pscdsl").symlink_to(package / "pscdsl")
            for each in ("benchmarks", "tests"):
                (folder / each).symlink_to(ROOT / each)
            shutil.copytree(ROOT / "examples", folder / "examples")  # checks follow no links
            write(folder)
            made.append(Side(folder))
        yield made[0], made[1]


@cache
def counts_instructions() -> bool:
    """Return whether `perf stat` counts instructions here."""
    try:
        done = subprocess.run(
            ["perf", "stat", "-x,", "-e", EVENT, "true"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0 and done.stderr.split(",")[0].isdecimal()


def of_process(side: Side, *arguments: str, **environment: str) -> float:
    """Return what a process of Python takes, from start to end."""
    command = [sys.executable, *arguments]
    run = partial(
        subprocess.run,
        env={**side.environment, **environment},
        cwd=side.folder,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if counts_instructions():
        with tempfile.NamedTemporaryFile("r") as counted:
            run(["perf", "stat", "-x,", "-e", EVENT, "-o", counted.name, *command])
            (line,) = [each for each in counted if EVENT in each]
            return float(line.split(",")[0])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def works(both: Sequence[Side], running: Sequence[Process]) -> Iterator[Work]:
    """Return all rows; `running` are processes that make calls."""

    def started(*arguments: str, **environment: str) -> Callable[[int], float]:
        return lambda which: of_process(both[which], *arguments, **environment)

    check = ("-m", "pscdsl", "check", "--jobs", "1", "--no-cache")
    yield Work("check: a program", started(*check, "examples/option_price.py"))
    yield Work("check: all examples", started(*check, "examples"))
    step = ("-m", "benchmarks.startup", "ours")
    yield Work("first call: a training step", started(*step))

    def warm(which: int) -> float:
        return of_process(both[which], *step, PSCDSL_CACHE=str(both[which].folder / "cache"))

    yield Work("first call: the same, compiled before", warm)
    for name, arrays in running[0].names:
        if name in CALLS:
            times = 8_000 // (20 + 10 * arrays)

            def called(which: int, name: str = name, times: int = times) -> float:
                return float(running[which].ask("ours", name, times))

            yield Work(f"call: {name}", called, TURNS)
    for name in PROGRAMS:
        yield Work(f"program: {name}", started(f"examples/{name}.py"))


def measure(due: Sequence[Work], seconds: float, first: int = 0) -> None:
    """Give each work a round in turn, until the time is used up."""
    start = time.monotonic()
    for done in range(1 + MOST):
        used = time.monotonic() - start
        if done > LEAST and used * (done + 1) / done > seconds:
            return
        for work in due:
            if not work.problem:
                work.turn(first + done)
        print(".", end="", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    """Print the table, and what lost; return 1 if something did."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quick", description=__doc__)
    parser.add_argument("revision", nargs="?", default="HEAD", help="what comes before: HEAD")
    parser.add_argument("--only", default="", metavar="WORD", help="rows with this in their name")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long rounds go on")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        both = stack.enter_context(sides(options.revision))
        start = partial(process, sys.executable, "ours")
        running = [stack.enter_context(start(environment=side.environment)) for side in both]
        due = [work for work in works(both, running) if options.only in work.name]
        measure(due, options.seconds)
        if lost := [work for work in due if work.lost]:
            measure(lost, AGAIN_SECONDS, first=1)
    print(file=sys.stderr)
    unit = "instructions of processes" if counts_instructions() else "processor time"
    title = f"{options.revision} and the working tree: {unit}"
    head = ("what", "before", "after", "after / before", "quartiles", "pairs")
    print(table(title, head, [work.cells() for work in due]))
    names = [work.name for work in due if work.lost]
    print(f"lost more than 5 %: {', '.join(names)}" if names else "nothing lost more than 5 %")
    return bool(names)


def _shown(cost: float) -> str:
    if cost > 1e5:
        return f"{cost / 1e6:.0f} M"
    return f"{cost:.2f} s" if cost > 0.01 else f"{cost * 1e6:.2f} us"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
