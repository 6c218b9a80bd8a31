"""Measure the time from the start of a process to its first results, beside jax.

Each program runs in processes of its own: our kernel and `jax.jit`, in turn, first with an empty
cache on disk, then with what the first process stored there. The clock starts with the process and
stops while the arguments are made. The programs are the kernels of the examples, with the arguments
of the examples, and the workloads of `python -m benchmarks`.

`python -m benchmarks.first` prints the ratios of the times, and of the processor times, which
other processes disturb less. `--only WORD` measures the programs with this word in their name.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


@dataclass
class Times:
    """The seconds, and the seconds of the processors, of each round."""

    rounds: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])


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


def _wait(results: Any) -> None:
    """Wait for the arrays of a tree."""
    for each in results if isinstance(results, tuple | list) else (results,):
        if hasattr(each, "block_until_ready"):
            each.block_until_ready()


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
        _wait(results[-1]) if jax is None else jax.block_until_ready(results[-1])
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
        found = work.kernel(*arguments)
        _wait(found)
        return found
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


def measured(
    program: Program, folder: Path, pythons: Sequence[str], rounds: int, states: Sequence[str]
) -> dict[tuple[str, str], Times]:
    """Return the times by state, cold or warm, and by side; raise if the results differ."""
    found = {(state, side): Times() for state in states for side in SIDES[: len(pythons)]}
    for turn in range(rounds):
        for state in ("cold", "warm"):
            if turn and state not in states:
                continue
            for side, python in zip(SIDES, pythons, strict=False):
                cache = folder / f"{side}{turn}"
                times = _started(python, side, program, folder, cache)
                if state in states:
                    found[state, side].rounds.append(times)
            if states == ("cold",):
                break
    if len(pythons) == len(SIDES):
        _compare(program, folder)
    return found


def _started(
    python: str, side: str, program: Program, folder: Path, cache: Path
) -> tuple[float, float]:
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment = {
        **kept,
        "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH") or str(ROOT)]),
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "benchmark-bytecode")),
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
        env=environment,
    )
    wall, processor = json.loads(done.stdout.splitlines()[-1])
    return wall, processor


def _compare(program: Program, folder: Path) -> None:
    import numpy as np

    from benchmarks.alongside import check_equal

    sides: list[tuple[Any, ...]] = []
    for side in SIDES:
        with np.load(folder / f"{side}.npz") as kept:
            sides.append(tuple([kept[name] for name in kept.files]))
    check_equal(program.name, 2e-3, *sides)


def _least(times: Times, which: int) -> float:
    return statistics.median(each[which] for each in times.rounds)


def main(arguments: Sequence[str]) -> None:
    """Print the table, or be one of its processes."""
    if arguments[:1] == ["--child"]:
        _, side, folder, subject, name = arguments
        child(side, Program(subject, name), Path(folder))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="programs with this in the name")
    parser.add_argument("--every", type=int, default=1, help="of the programs, one in so many")
    parser.add_argument("--jax", default=sys.executable, metavar="PYTHON", help="one that has jax")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes of each kind")
    parser.add_argument("--alone", action="store_true", help="without jax")
    parser.add_argument("--json", type=Path, help="where to write the times")
    options = parser.parse_args(arguments)
    pythons = [sys.executable] if options.alone else [sys.executable, options.jax]
    chosen = [p for p in programs() if options.only in f"{p.subject}: {p.name}"]
    rows: dict[str, Any] = {}
    states = tuple(GOALS)
    with tempfile.TemporaryDirectory() as name:
        for number, program in enumerate(chosen[:: options.every]):
            folder = Path(name, str(number))
            folder.mkdir()
            try:
                prepare(program, folder)
                if not number:
                    measured(program, folder, pythons, 1, states)  # writes bytecode
                    (folder := folder / "again").mkdir()
                    prepare(program, folder)
                found = measured(program, folder, pythons, options.rounds, states)
            except (subprocess.CalledProcessError, AssertionError) as error:
                print(f"{program.name}: {error}", file=sys.stderr)
                continue
            cells = {" ".join(key): each.rounds for key, each in found.items()}
            rows[f"{program.subject}: {program.name}"] = cells
            print(f"{program.subject}: {program.name}".ljust(50), *_cells(found), flush=True)
    _print_means(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def _cells(found: dict[tuple[str, str], Times]) -> Iterator[str]:
    for state in GOALS:
        sides = [each for (when, _), each in found.items() if when == state]
        for which in (0, 1):
            values = [_least(each, which) for each in sides]
            yield " ".join(f"{value:6.3f}" for value in values)
            if len(values) == len(SIDES):
                yield f"({values[0] / values[1]:.2f})"
        yield "|"


def _print_means(rows: dict[str, Any]) -> None:
    for state, goal in GOALS.items():
        for which, unit in enumerate(("time", "processor time")):
            ratios: list[float] = []
            for cells in rows.values():
                sides = [
                    statistics.median(each[which] for each in cells[f"{state} {side}"])
                    for side in SIDES
                    if f"{state} {side}" in cells
                ]
                if len(sides) == len(SIDES):
                    ratios.append(sides[0] / sides[1])
            if ratios:
                mean = statistics.geometric_mean(ratios)
                print(f"{state}, {unit}: {mean:.3f} of jax's over {len(ratios)}; goal {goal}")


if __name__ == "__main__":
    main(sys.argv[1:])
