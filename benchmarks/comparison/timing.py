"""A program's runs in both languages, side by side, in one process.

`python -m benchmarks.comparison.timing NAME FOLDER` is that process.  The folder has both
texts, and what the example gave to its kernels.  Each language has its own client of XLA; both are
given the same arrays, must give the same results, and are then timed in turn.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pscdsl as psc
from benchmarks.alongside import beside, check_equal
from benchmarks.comparison.given import built, is_wide
from benchmarks.comparison.outcomes import jax, loaded
from benchmarks.comparison.program import Run
from benchmarks.comparison.programs import PROGRAMS
from benchmarks.measure import seconds
from benchmarks.workload import leaves
from pscdsl import f32
from pscdsl._src.xla.runtime.devices import put


@dataclass(frozen=True)
class Time:
    """What one run took; in seconds."""

    name: str
    apart: float
    """How far results are apart, as a part of the greatest number in them."""
    first: float
    """Of the first call, with all that comes before it: checking, tracing, compiling."""
    their_first: float
    ours: float
    theirs: float
    low: float
    median: float
    high: float
    """Of the ratio of ours to theirs: its median and quartiles."""


@psc.kernel
def anything(x: f32["n n"]) -> f32:
    """So that all is loaded before a first call is timed."""
    return np.sum(np.exp(x @ x))


def warm_up() -> None:
    """Let both languages load what they load when they are first used."""

    def theirs(x: Any) -> Any:
        return jax.numpy.sum(jax.numpy.exp(x @ x))

    x = np.ones((4, 4), np.float32)
    anything(x)
    jax.jit(theirs)(x)


def main(name: str, folder: Path) -> None:
    """The times of all runs of a program, as JSON."""
    [program] = [each for each in PROGRAMS if each.name == name]
    given = pickle.loads((folder / f"{name}.pickle").read_bytes())
    jax.config.update("jax_enable_x64", program.wide or is_wide(list(given.values())))
    warm_up()
    ours, theirs = loaded(folder / f"{name}.py"), loaded(folder / f"{name}_jax.py")
    found = [timed(run, ours, theirs, given[run.name]) for run in program.runs]
    print(json.dumps([asdict(each) for each in found]))


def timed(run: Run, ours: Any, theirs: Any, given: Sequence[Any]) -> Time:
    """One run; an AssertionError if results are further apart than they may be."""
    here = [built(each, ours, put, lambda words: words) for each in given]
    there = [built(each, theirs, jax.numpy.asarray, jax.random.wrap_key_data) for each in given]
    mine = repeated(getattr(ours, run.name), here, run.carried, waited)
    other = repeated(getattr(theirs, run.name), there, run.carried, jax.block_until_ready)
    results: list[Any] = []
    first = seconds(lambda: results.append(run.compared(mine())))
    their_first = seconds(lambda: results.append(run.compared(other())))
    check_equal(run.name, run.tolerance, *results)
    difference = apart(*results)  # before the next call is given them
    return Time(run.name, difference, first, their_first, **asdict(beside(mine, other)))


def repeated(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    carried: int,
    wait: Callable[[Any], object],
) -> Callable[[], Any]:
    """A call that ends when its results are there, and gives the first of them to the next one."""
    state, others = tuple(arguments[:carried]), arguments[carried:]

    def call() -> Any:
        nonlocal state
        found = function(*state, *others)
        wait(found)
        if carried:
            state = found[:carried]
        return found

    return call


def waited(found: Any) -> None:
    """Wait for all of our arrays."""
    for each in leaves(found):
        each.block_until_ready()


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference, as a part of the greatest finite number of its array."""
    most = 0.0
    for x, y in zip(*(map(np.asarray, leaves(each)) for each in (ours, theirs)), strict=True):
        differ = x != y
        greatest = np.max(np.abs(y[np.isfinite(y)]), initial=1e-30)
        most = max(most, np.max(np.abs(x[differ] * 1.0 - y[differ]), initial=0.0) / greatest)
    return float(most)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
