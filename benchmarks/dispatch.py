"""What a call costs besides the computation: kernels that compute next to nothing, beside jax.jit.

Numbers, and one, ten and a hundred arrays, go in and come out, in tuples and in records, by name,
by default and donated, from the device and from NumPy.  The arrays are small, so that what is
measured is the way to the program and back.

Each side has a process of its own, as where one of the two is used; they take turns.  A jax in the
process has jaxlib look at its settings at every call, at ours too: some rows are measured so.
`python -m benchmarks.dispatch SIDE...` is one such process; a side is `ours` or `jax`.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.calls import calls
from benchmarks.measure import Ratio, alternating, middle, seconds
from benchmarks.report import Row

PAIRS = 5
"""Of processes: how these lie in memory makes some per cent."""
ROUNDS = 15
WARM = 20
"""Rounds before the first that counts: the memory of calls lies otherwise after some thousand."""
CALLS = 80_000
"""In a round, of a call that costs as much as an array."""
GOAL = 1.0
BESIDE = ("one array, device", "tuple of 100, device", "one array, NumPy", "tuple of 100, NumPy")
"""What is measured with a jax in the process, too."""


def dispatch() -> list[Row]:
    """The rows; an AssertionError if results differ."""
    found: dict[str, list[Ratio]] = {}
    for _ in range(PAIRS):
        with _process("ours") as ours, _process("jax") as theirs:
            for name, arrays in ours.names:
                sides = partial(ours.ask, "ours", name), partial(theirs.ask, "jax", name)
                found.setdefault(name, []).append(_ratio(arrays, *sides))
    for _ in range(PAIRS):
        with _process("ours", "jax") as both:
            for name, arrays in [each for each in both.names if each[0] in BESIDE]:
                sides = partial(both.ask, "ours", name), partial(both.ask, "jax", name)
                found.setdefault(f"{name}, beside jax", []).append(_ratio(arrays, *sides))
    rows = [Row.of("dispatch", name, "jax.jit", middle(each)) for name, each in found.items()]
    return [replace(row, goal=GOAL) for row in rows]


def _ratio(arrays: int, ours: Callable[..., Any], theirs: Callable[..., Any]) -> Ratio:
    for _ in range(2):
        np.testing.assert_allclose(ours(), theirs(), rtol=1e-6)
    times = CALLS // (20 + 10 * arrays)
    for side in (ours, theirs):
        side(WARM * times)
    return alternating(partial(ours, times), partial(theirs, times), ROUNDS)


@dataclass(frozen=True)
class _Process:
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
def _process(*sides: str) -> Generator[_Process]:
    command = [sys.executable, "-m", "benchmarks.dispatch", *sides]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        yield _Process(running, json.loads(running.stdout.readline()))
        running.terminate()


def main(sides: Sequence[str]) -> None:
    """Answer what is asked, a line for each, as `_Process.ask` says."""
    modules = {side: importlib.import_module(f"benchmarks.calls_{side}") for side in sides}
    known = {side: {call.name: call for call in calls(modules[side])} for side in sides}
    assert ("jax" in sys.modules) == ("jax" in sides)
    print(json.dumps([(call.name, call.arrays) for call in known[sides[0]].values()]), flush=True)
    for line in sys.stdin:
        side, name, times = json.loads(line)
        run = known[side][name].run
        if times:
            answer: Any = seconds(run, times)
        else:
            answer = [np.asarray(leaf).tolist() for leaf in modules[side].leaves(run())]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
