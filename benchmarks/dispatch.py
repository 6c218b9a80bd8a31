"""What a call costs besides the computation: kernels that compute next to nothing, beside jax.jit.

Numbers, and one, ten and a hundred arrays, go in and come out, in tuples and in records, by name,
by default and donated, from the device and from NumPy.  The arrays are small, so that what is
measured is the way to the program and back.

Each side has a process of its own, as where one of the two is used; they take turns, and processor
time counts, of a round the average and of all rounds the least. A jax in the process has jaxlib
look at its settings at every call, at ours too: some rows are measured so.

`python -m benchmarks.dispatch` (`make bench-calls`) prints the table; `--only WORD` measures the
calls with this word in their name, `--jax PYTHON` has another interpreter run jax.
`python -m benchmarks.dispatch SIDE...` is one such process; a side is `ours` or `jax`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.calls import calls
from benchmarks.measure import Ratio
from benchmarks.report import Row, summary

PAIRS = 3
"""Of processes: how these lie in memory makes some per cent."""
ROUNDS = 15
WARM = 6
"""Rounds before the first that counts: the memory of calls lies otherwise after some thousand."""
CALLS = 40_000
"""In a round, of a call that costs as much as an array."""
GOAL = 1.1
BESIDE = ("one array, device", "tuple of 100, device", "one array, NumPy", "tuple of 100, NumPy")
"""What is measured with a jax in the process, too."""


def dispatch(
    word: str = "", jax: str = sys.executable, pairs: int = PAIRS, beside: Sequence[str] = BESIDE
) -> list[Row]:
    """The rows; an AssertionError if results differ. `jax` is the Python that has one."""
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(pairs):
        with process(sys.executable, "ours") as ours, process(jax, "jax") as theirs:
            for name, arrays in [each for each in ours.names if word in each[0]]:
                found.setdefault(name, []).append(_measured(name, arrays, ours, theirs))
    for _ in range(pairs if beside else 0):
        with process(sys.executable, "ours", "jax") as both:
            for name, arrays in [each for each in both.names if each[0] in beside]:
                found.setdefault(f"{name}, beside jax", []).append(
                    _measured(name, arrays, both, both)
                )
    return [_row(name, each) for name, each in found.items()]


def _row(name: str, found: Sequence[tuple[float, float]]) -> Row:
    ratios = sorted(ours / theirs for ours, theirs in found)
    ours, theirs = (min(side) for side in zip(*found, strict=True))
    ratio = Ratio(ours, theirs, ratios[0], statistics.median(ratios), ratios[-1])
    return replace(Row.of("dispatch", name, "jax.jit", ratio), goal=GOAL)


def _measured(name: str, arrays: int, ours: Process, theirs: Process) -> tuple[float, float]:
    """What a call takes of the processor, ours and theirs."""
    for _ in range(2):
        np.testing.assert_allclose(
            ours.ask("ours", name), theirs.ask("jax", name), rtol=1e-6, err_msg=name
        )
    times = CALLS // (20 + 10 * arrays)
    for side, which in ((ours, "ours"), (theirs, "jax")):
        side.ask(which, name, WARM * times)
    turns = [(ours.ask("ours", name, times), theirs.ask("jax", name, times)) for _ in range(ROUNDS)]
    mine, other = (min(side) for side in zip(*turns, strict=True))
    return mine, other


@dataclass(frozen=True)
class Process:
    """One that makes calls when it is asked to."""

    running: subprocess.Popen[str]
    names: Sequence[tuple[str, int]]
    """The calls, and how many arrays each takes."""

    def ask(self, side: str, name: str, times: int = 0) -> Any:
        """How many seconds a call takes, on average of so many; of none, the numbers it gives."""
        assert self.running.stdin is not None
        assert self.running.stdout is not None
        print(json.dumps([side, name, times]), file=self.running.stdin, flush=True)
        return json.loads(self.running.stdout.readline())


@contextmanager
def process(
    python: str, *sides: str, environment: Mapping[str, str] | None = None
) -> Generator[Process]:
    """A process that makes the calls of some sides."""
    command = [python, "-m", "benchmarks.dispatch", *sides]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as running:
        assert running.stdout is not None
        yield Process(running, json.loads(running.stdout.readline()))
        running.terminate()


def processor_seconds(
    action: Callable[[], object], times: int, wait: Callable[[Any], object]
) -> float:
    """How long the processors work for an action, averaged over a few runs of it."""
    start = time.process_time()
    for _ in range(times - 1):
        action()
    wait(action())
    return (time.process_time() - start) / times


def answer(sides: Sequence[str]) -> None:
    """Answer what is asked, a line for each, as `Process.ask` says."""
    modules = {side: importlib.import_module(f"benchmarks.calls_{side}") for side in sides}
    known = {side: {call.name: call for call in calls(modules[side])} for side in sides}
    assert ("jax" in sys.modules) == ("jax" in sides)
    print(json.dumps([(call.name, call.arrays) for call in known[sides[0]].values()]), flush=True)
    for line in sys.stdin:
        side, name, times = json.loads(line)
        run = known[side][name].run

        def contents(result: Any, side: str = side) -> list[Any]:
            return [np.asarray(leaf) for leaf in modules[side].leaves(result)]

        if times:
            found: Any = processor_seconds(run, times, contents)
        else:
            found = [_plain(leaf) for leaf in contents(run())]
        print(json.dumps(found), flush=True)


def _plain(array: Any) -> Any:
    return [array.real.tolist(), array.imag.tolist()] if array.dtype.kind == "c" else array.tolist()


def main(arguments: Sequence[str]) -> None:
    """Print the table, or be one of the processes that it needs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dispatch", description=__doc__)
    parser.add_argument("sides", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", metavar="WORD", help="calls with this in their name")
    parser.add_argument("--jax", default=sys.executable, metavar="PYTHON", help="one that has jax")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="how many processes of each side")
    options = parser.parse_args(arguments)
    if options.sides:
        answer(options.sides)
        return
    beside = BESIDE if options.jax == sys.executable else ()
    print(summary(dispatch(options.only, options.jax, options.pairs, beside)))


if __name__ == "__main__":
    main(sys.argv[1:])
