"""Whether a change costs time: the working tree beside a revision of git, in a few minutes.

Checks, first calls, calls and whole programs run in processes of both sides, which take turns.
Where `perf stat` counts instructions, the fewest of a process count; elsewhere the least processor
time. A row that lost more than 5 % is measured again, with more rounds, before it is named.

`python -m benchmarks.quick [REVISION] [--only WORD]` (`make bench-quick`); by default, the revision
is HEAD, so that it is what was not committed yet that is measured.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from benchmarks.dispatch import Process, process
from benchmarks.report import table
from benchmarks.startup import write

ROOT = Path(__file__).parents[1]
LOST = 1.05
ROUNDS = 4
AGAIN = 3
"""How many times as many rounds a row has that is measured again."""
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
        """The environment of its processes, without anything that was compiled before."""
        return {**os.environ, "PYTHONPATH": str(self.folder), "PSCDSL_CACHE": "off"}


@dataclass(frozen=True)
class Work:
    """Something that is measured on both sides."""

    name: str
    cost: Callable[[int], float]
    """What it takes on a side, 0 before and 1 after: instructions, or seconds."""
    rounds: int = ROUNDS


@contextmanager
def sides(revision: str) -> Generator[tuple[Side, Side]]:
    """The package before and after, in folders of their own."""
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name, "tree")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(tree), revision], check=True)
        try:
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
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


@cache
def counts_instructions() -> bool:
    """Whether `perf stat` has a counter of instructions here."""
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
    """What a process of Python takes, from start to end."""
    command = [sys.executable, *arguments]
    how = {"env": {**side.environment, **environment}, "cwd": side.folder, "check": True}
    if counts_instructions():
        with tempfile.NamedTemporaryFile("r") as counted:
            perf = ["perf", "stat", "-x,", "-e", EVENT, "-o", counted.name]
            subprocess.run([*perf, *command], stdout=subprocess.DEVNULL, **how)  # type: ignore[call-overload]
            (line,) = [each for each in counted if EVENT in each]
            return float(line.split(",")[0])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, **how)  # type: ignore[call-overload]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def works(both: Sequence[Side], running: Sequence[Process]) -> Iterator[Work]:
    """All of it; `running` are processes that make calls."""

    def started(*arguments: str, **environment: str) -> Callable[[int], float]:
        return lambda which: of_process(both[which], *arguments, **environment)

    check = ("-m", "pscdsl", "check")
    yield Work("check: a program", started(*check, "examples/option_price.py"))
    yield Work("check: all examples", started(*check, "examples"), rounds=2)
    step = ("-m", "benchmarks.startup", "ours")
    yield Work("first call: a training step", started(*step))

    def warm(which: int) -> float:
        return of_process(both[which], *step, PSCDSL_CACHE=str(both[which].folder / "cache"))

    yield Work("first call: the same, compiled before", warm)
    for name, arrays in running[0].names:
        if name in CALLS:
            times = 20_000 // (20 + 10 * arrays)

            def called(which: int, name: str = name, times: int = times) -> float:
                return float(running[which].ask("ours", name, times))

            yield Work(f"call: {name}", called, rounds=12)
    for name in PROGRAMS:
        yield Work(f"program: {name}", started(f"examples/{name}.py"))


def measured(work: Work, times: int = 1) -> tuple[float, float]:
    """The least of both sides, which take turns."""
    turns = [(work.cost(0), work.cost(1)) for _ in range(1 + work.rounds * times)][1:]
    before, after = zip(*turns, strict=True)
    return min(before), min(after)


def main(arguments: Sequence[str]) -> int:
    """Print the table, and what lost; 1 if something did."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quick", description=__doc__)
    parser.add_argument("revision", nargs="?", default="HEAD", help="what comes before: HEAD")
    parser.add_argument("--only", default="", metavar="WORD", help="rows with this in their name")
    options = parser.parse_args(arguments)
    rows: list[list[str]] = []
    lost: list[str] = []
    with ExitStack() as stack:
        both = stack.enter_context(sides(options.revision))
        start = partial(process, sys.executable, "ours")
        running = [stack.enter_context(start(environment=side.environment)) for side in both]
        for work in works(both, running):
            if options.only not in work.name:
                continue
            before, after = measured(work)
            if after > LOST * before:
                before, after = measured(work, AGAIN)
            if after > LOST * before:
                lost.append(work.name)
            rows.append([work.name, _shown(before), _shown(after), f"{after / before:.3f}"])
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    unit = "instructions of processes" if counts_instructions() else "processor time"
    title = f"{options.revision} and the working tree: {unit}"
    print(table(title, ("what", "before", "after", "after / before"), rows))
    print(f"lost more than 5 %: {', '.join(lost)}" if lost else "nothing lost more than 5 %")
    return bool(lost)


def _shown(cost: float) -> str:
    if cost > 1e5:
        return f"{cost / 1e6:.0f} M"
    return f"{cost:.2f} s" if cost > 0.01 else f"{cost * 1e6:.2f} us"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
