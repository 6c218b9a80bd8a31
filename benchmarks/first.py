"""Measure the time from the start of a process to its first results, beside jax.

Each program runs in processes of its own: our kernel and `jax.jit`, in turn, first with an empty
cache on disk, then with what the first process stored there. The clock starts with the process and
stops while the arguments are made. The programs are the kernels of the examples, called as
`benchmarks.comparison` calls them, and the workloads of `python -m benchmarks`.

`python -m benchmarks.first` (`make bench-first`) prints the ratios of the times, and of the
processor times, which other processes disturb less.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.report import duration, table

STARTED = "BENCHMARK_STARTED"
CACHE = "BENCHMARK_CACHE"
ROOT = Path(__file__).parents[1]
SIDES = ("ours", "jax")
ROUNDS = 3
GOALS = {"cold": 0.6, "warm": 0.2}
EXAMPLE = "example"
"""The subject of the programs that are kernels of examples."""


@dataclass
class Clock:
    """The time of this process, except while it is stopped."""

    apart: tuple[float, float] = (0.0, 0.0)
    """Seconds, and seconds of the processors, that do not count."""

    def untimed(self, action: Callable[[], Any]) -> Any:
        """Return what an action returns."""
        before = _now()
        found = action()
        self.apart = tuple(  # type: ignore[assignment]
            a + now - then for a, now, then in zip(self.apart, _now(), before, strict=True)
        )
        return found

    def read(self) -> tuple[float, float]:
        """Return the seconds, and those of the processors, since the process started."""
        wall, processor = _now()
        started = float(os.environ[STARTED])
        return wall - started - self.apart[0], processor - self.apart[1]


def _now() -> tuple[float, float]:
    return time.time(), time.process_time()


@dataclass(frozen=True)
class Program:
    """A program by its subject and its name."""

    subject: str
    name: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.name}"


Measured: TypeAlias = dict[tuple[str, str], list[tuple[float, float]]]
"""By state, cold or warm, and side: the seconds, and those of the processors, of each round."""


def programs() -> Iterator[Program]:
    """Return the examples and the workloads."""
    from benchmarks.comparison.programs import PROGRAMS
    from benchmarks.workloads import SUBJECTS

    yield from (Program(EXAMPLE, each.name) for each in PROGRAMS if each.runs)
    yield from (Program(subject, work.name) for subject in SUBJECTS for work in SUBJECTS[subject])


def prepare(program: Program, folder: Path) -> None:
    """Write the texts of an example."""
    if program.subject == EXAMPLE:
        from benchmarks.comparison.core import core

        found = _example_of(program)
        (folder / f"{program.name}.py").write_text(core(found.pieces), encoding="utf-8")
        (folder / f"{program.name}_jax.py").write_text(found.theirs, encoding="utf-8")


def _example_of(program: Program) -> Any:
    from benchmarks.comparison.programs import PROGRAMS

    return next(each for each in PROGRAMS if each.name == program.name)


def child(side: str, program: Program, folder: Path) -> None:
    """Compute the first results of a program, and print the times."""
    clock = Clock()
    jax = None if side == "ours" else _jax()
    steps = _example if program.subject == EXAMPLE else _workload
    results = steps(jax, program, folder, clock)
    print(json.dumps(clock.read()), flush=True)
    import numpy as np

    from benchmarks.workload import leaves, plain

    path = folder / f"{side}.npz"
    if not path.exists():
        np.savez(path, *[np.asarray(each) for each in leaves(plain(results))])


def _jax() -> Any:
    jax: Any = importlib.import_module("jax")
    if cache := os.environ[CACHE]:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return jax


def _example(jax: Any, program: Program, folder: Path, clock: Clock) -> list[Any]:
    if jax is None:
        text = _module(folder / f"{program.name}.py")
        found = clock.untimed(lambda: _example_of(program))
        calls = clock.untimed(lambda: found.calls(_WithKeys(text), True))
    else:
        clock.untimed(
            lambda: (importlib.import_module(name) for name in ("jaxtyping", "typeguard"))
        )
        found = clock.untimed(lambda: _example_of(program))
        jax.config.update("jax_enable_x64", found.wide)
        text = _module(folder / f"{program.name}_jax.py")
        calls = clock.untimed(lambda: found.calls(text, True))
    results: list[Any] = []
    for name, arguments in calls:
        results.append(getattr(text, name)(*arguments))
        if jax is not None:  # our calls wait
            jax.block_until_ready(results[-1])
    return results


class _WithKeys:
    """A module of ours that makes random keys as those of jax do."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.jax = self.random = self

    def key(self, seed: int) -> Any:
        """Return a random key."""
        import pscdsl.random

        return pscdsl.random.key(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _workload(jax: Any, program: Program, folder: Path, clock: Clock) -> Any:
    def load() -> Any:
        return _module(ROOT / "benchmarks" / "workloads" / f"{program.subject}.py")

    module = load() if jax is None else clock.untimed(load)
    [work] = [each for each in module.WORKLOADS if each.name == program.name]
    arguments = clock.untimed(lambda: work.arguments(work.scale))
    if jax is None:
        return work.kernel(*arguments)
    from benchmarks.workload import plain

    numbers = clock.untimed(lambda: plain(arguments))
    jax.config.update("jax_enable_x64", work.double)
    return jax.block_until_ready(jax.jit(work.jax(jax))(*numbers))


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def measured(program: Program, folder: Path, pythons: Sequence[str], rounds: int) -> Measured:
    """Return the times of processes that take turns; raise if the results differ."""
    found: Measured = {(state, side): [] for state in GOALS for side in SIDES[: len(pythons)]}
    for turn in range(rounds):
        for state in GOALS:
            for side, python in zip(SIDES, pythons, strict=False):
                times = _started(python, side, program, folder, folder / f"{side}{turn}")
                found[state, side].append(times)
    if len(pythons) == len(SIDES):
        _compare(program, folder)
    return found


def _started(
    python: str, side: str, program: Program, folder: Path, cache: Path
) -> tuple[float, float]:
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    own = {
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": str(folder.parent / "bytecode"),
        "PSCDSL_CACHE": str(cache),
        CACHE: str(cache),
        "JAXTYPING_DISABLE": "1",
        "TF_CPP_MIN_LOG_LEVEL": "1",
        STARTED: str(time.time()),
    }
    command = [python, "-m", "benchmarks.first", "--child", side, str(folder)]
    done = subprocess.run(
        [*command, program.subject, program.name],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=kept | own,
    )
    wall, processor = json.loads(done.stdout.splitlines()[-1])
    return wall, processor


def _compare(program: Program, folder: Path) -> None:
    import numpy as np

    from benchmarks.alongside import check_equal
    from benchmarks.workloads import WORKLOADS

    sides: list[tuple[Any, ...]] = []
    for side in SIDES:
        with np.load(folder / f"{side}.npz") as kept:
            sides.append(tuple([kept[name] for name in kept.files]))
    if program.subject == EXAMPLE:  # `benchmarks.comparison` compares their numbers
        ours, theirs = ([array.shape for array in side] for side in sides)
        if ours != theirs:
            raise ValueError(f"{program.name}: results of shapes {ours}, the others' {theirs}")
    else:
        check_equal(program.name, WORKLOADS[program.name].tolerance, *sides)


def _medians(found: Measured, state: str, which: int) -> list[float]:
    """Return the median time of each side, or with 1 for `which`, of its processors."""
    return [
        statistics.median(each[which] for each in times)
        for (when, _), times in found.items()
        if when == state
    ]


def _cells(found: Measured) -> Iterator[str]:
    for state in GOALS:
        for which in (0, 1):
            values = _medians(found, state, which)
            yield " ".join(map(duration, values))
            yield f"{values[0] / values[1]:.2f}" if len(values) == len(SIDES) else ""


def _means(rows: Sequence[Measured]) -> Iterator[str]:
    for state, goal in GOALS.items():
        for which, unit in enumerate(("time", "processor time")):
            pairs = [_medians(row, state, which) for row in rows]
            mean = statistics.geometric_mean([ours / theirs for ours, theirs in pairs])
            yield f"{state}, {unit}: {mean:.3f} of jax's over {len(pairs)}; goal {goal}"


def main(arguments: Sequence[str]) -> None:
    """Print the table, or be one of its processes."""
    if arguments[:1] == ["--child"]:
        _, side, place, subject, name = arguments
        child(side, Program(subject, name), Path(place))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="programs with this in the name")
    parser.add_argument("--every", type=int, default=1, help="of the programs, one in so many")
    parser.add_argument("--jax", default=sys.executable, metavar="PYTHON", help="one that has jax")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes of each kind")
    parser.add_argument("--alone", action="store_true", help="without jax")
    options = parser.parse_args(arguments)
    pythons = [sys.executable] if options.alone else [sys.executable, options.jax]
    chosen = [each for each in programs() if options.only in str(each)][:: options.every]
    rows: dict[str, Measured] = {}
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        for number, program in enumerate([*chosen[:1], *chosen]):  # the first writes bytecode
            folder = Path(temporary, str(number))
            folder.mkdir()
            prepare(program, folder)
            try:
                found = measured(program, folder, pythons, options.rounds if number else 1)
            except (subprocess.CalledProcessError, AssertionError, ValueError) as error:
                failed.append(f"{program}: {str(error).strip().splitlines()[0]}")
                continue
            if number:
                rows[str(program)] = found
                print(str(program), *_cells(found), sep="  ", flush=True)
    units = ("time", "ratio", "processor", "ratio")
    head = ("program", *[f"{state} {unit}" for state in GOALS for unit in units])
    print(table("first results", head, [[name, *_cells(found)] for name, found in rows.items()]))
    if rows and not options.alone:
        print("\n".join(_means(list(rows.values()))))
    if failed:
        raise SystemExit("\n".join(["failed:", *dict.fromkeys(failed)]))


if __name__ == "__main__":
    main(sys.argv[1:])
