"""Time the examples' kernels beside jax.jit: `python -m benchmarks.comparison.times [NAME ...]`.

PYTHON (`--python`) has jax, jaxtyping and typeguard 2, and what pscdsl needs; this one has what the
examples need.  With `--write`, times.json has the times, and the page of comparisons shows them.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparison.core import ROOT, core
from benchmarks.comparison.given import recorded
from benchmarks.comparison.program import FOLDER, Program
from benchmarks.comparison.programs import PROGRAMS
from benchmarks.report import duration

PAGE = ROOT / "docs" / "explanation" / "comparison.md"
KEPT = FOLDER / "times.json"
HEADING = "## Run times"
PROCESSES = 3
SWITCHES = {"JAXTYPING_DISABLE": "1", "PSCDSL_CACHE": "off", "TF_CPP_MIN_LOG_LEVEL": "1"}
"""In the processes that measure: types are not checked as jax traces, and nothing is kept."""

HEAD = """\
These are the calls of the kernels in the examples, or the largest of them, with the data of the
examples. Both languages get the same arrays, each on its own client of XLA; the results of a call
are the first arguments of the next one where the example does so, too. Results are compared before
anything is timed, all of them unless a note below the table says otherwise; "apart" is the
difference, and the tolerance, relative to the largest number. Calls alternate. The ratio of our
time to that of jax.jit is the median of the ratios of neighbouring calls, in the middle one of
{processes} processes, with the lowest and the highest quartile of any of them. The first call, in
that process, includes everything that precedes it: checking or tracing, and compiling, with empty
caches.

`python -m benchmarks.comparison.times --write --python PYTHON` measures, and writes this section.
{machines}
"""

APART = """
`deployment_server.py` has no rows, here or above, because it has no kernel of its own: it serves
the export of `deployment.py`, which measures its start and its calls itself.
"""

TABLE = "| example | call | ours | jax.jit | ratio | quartiles | first call | jax.jit | apart |"

Times = Mapping[str, Any]
"""By the name of a program: `machine` and `runs`, the latter by the names of kernels."""


def main() -> None:
    """Measure what is named, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.comparison.times", description=__doc__
    )
    parser.add_argument("names", nargs="*", help="programs; all if none")
    parser.add_argument("--python", default=sys.executable, help="a Python that has jax")
    parser.add_argument("--write", action="store_true", help="write the page in docs/")
    given = parser.parse_args()
    known = {each.name: each for each in PROGRAMS}
    if unknown := set(given.names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    found: dict[str, Any] = {}
    for name in given.names or known:
        found[name] = {"machine": machine(given.python), "runs": times(known[name], given.python)}
        print("\n".join(_rows(known[name], found[name])), file=sys.stderr, flush=True)
        if given.write:
            write({**kept(), **found})
    if not given.write:
        print(section(found), end="")


def write(times: Times) -> None:
    """Keep times, and show them in the page."""
    ordered = {program.name: times[program.name] for program in PROGRAMS if program.name in times}
    KEPT.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    before = PAGE.read_text(encoding="utf-8").partition(f"\n{HEADING}\n")[0]
    PAGE.write_text(f"{before}\n{section(ordered)}", encoding="utf-8")


def times(program: Program, python: str) -> Mapping[str, Any]:
    """The times of all runs of a program, in a few processes."""
    environment = {**os.environ, **SWITCHES}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / f"{program.name}.py").write_text(core(program.pieces), encoding="utf-8")
        (folder / f"{program.name}_jax.py").write_text(program.theirs, encoding="utf-8")
        (folder / f"{program.name}.pickle").write_bytes(pickle.dumps(recorded(program)))
        command = [python, "-m", "benchmarks.comparison.timing", program.name, temporary]
        found: list[list[dict[str, Any]]] = []
        for _ in range(PROCESSES):
            done = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            found.append(json.loads(done.stdout.splitlines()[-1]))
    return {each[0]["name"]: middle(each) for each in zip(*found, strict=True)}


def middle(each: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What several processes have measured of a run as one."""
    ordered = sorted(each, key=lambda time: time["median"])
    quartiles = {"low": min(one["low"] for one in each), "high": max(one["high"] for one in each)}
    return {**ordered[len(ordered) // 2], **quartiles}


def machine(python: str) -> str:
    """What was measured on, and with which versions."""
    script = "import jax, jaxlib; print(f'jax {jax.__version__}, jaxlib {jaxlib.__version__}')"
    asked = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, {asked.stdout.strip()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def kept() -> Times:
    """The times that were kept."""
    found: Times = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return found


def section(times: Times) -> str:
    """The section of the page, in Markdown."""
    machines = dict.fromkeys(each["machine"] for each in times.values())
    on = f"This was measured on {'; and on '.join(machines)}."
    programs = [program for program in PROGRAMS if program.name in times]
    rows = [row for program in programs for row in _rows(program, times[program.name])]
    ratios = [run["median"] for each in times.values() for run in each["runs"].values()]
    mean = f"The geometric mean of the {len(ratios)} ratios is {_mean(ratios)}."
    notes = [note for program in programs for note in _notes(program)]
    head = HEAD.format(processes=PROCESSES, machines=on)
    table = [TABLE, "|---|---|--:|--:|--:|--:|--:|--:|--:|", *rows]
    return "\n".join([HEADING, "", head, *table, "", mean, *notes, APART])


def _mean(ratios: Sequence[float]) -> str:
    return f"{statistics.geometric_mean(ratios):.2f}"


def _rows(program: Program, found: Times) -> Iterator[str]:
    measured = found["runs"]
    for run in [run for run in program.runs if run.name in measured]:
        time = measured[run.name]
        cells = [
            program.name,
            f"`{run.name}`: {run.about}",
            duration(time["ours"]),
            duration(time["theirs"]),
            f"{time['median']:.2f}",
            f"{time['low']:.2f}-{time['high']:.2f}",
            duration(time["first"]),
            duration(time["their_first"]),
            f"{time['apart']:.0e} (of {run.tolerance:.0e})",
        ]
        yield f"| {' | '.join(cells)} |"


def _notes(program: Program) -> Iterator[str]:
    for run in program.runs:
        if run.note:
            yield ""
            yield f"`{run.name}` of {program.name}: {run.note}"


if __name__ == "__main__":
    main()
