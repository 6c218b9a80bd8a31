"""Measure ourselves beside jax and others: starting, making and running programs, and checking.

`python -m benchmarks [MEASUREMENT | SUBJECT | WORKLOAD ...] [--json FILE]
[--plot FILE] [--processes N] [--without FORM,...]`
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks import building, report
from benchmarks.alone import alternating
from benchmarks.alongside import SLOW, Alongside, measure
from benchmarks.checking import checking
from benchmarks.dispatch import dispatch
from benchmarks.measure import Ratio, middle
from benchmarks.plot import plot
from benchmarks.report import Row
from benchmarks.rivals import TORCH, has_torch
from benchmarks.startup import startup
from benchmarks.workload import Workload
from benchmarks.workloads import SUBJECTS, WORKLOADS
from pscdsl._src.targets.forms import VARIABLE

PROCESSES = 5


def in_processes(subject: str, work: Workload, processes: int) -> list[Row]:
    """A workload beside each of the others, the median of several processes.

    Where memory happens to lie, and on which core a thread wakes, changes a process's times by
    10 to 30 % for as long as it lives.  What takes more than `SLOW` is measured in the first only.
    """
    beside_torch = (
        [alternating(subject, work, processes, "torch.compile")] if has_torch(work) else []
    )
    if work.alone:
        return [alternating(subject, work, processes), *beside_torch]
    found = [_apart(work.name)]
    slow = [name for name, each in found[0].ratios.items() if each.theirs > SLOW]
    found += [_apart(work.name, slow) for _ in range(processes - 1)]
    goals = {"jax.jit": work.goal, "forward": work.derived.goal if work.derived else None}
    rows = beside_torch
    for rival in found[0].ratios:
        row = Row.of(subject, work.name, rival, middle(_of(rival, found)))
        row = replace(row, goal=goals.get(rival))
        if rival == "jax.jit":
            row = replace(row, bytes=found[0].bytes, their_bytes=found[0].their_bytes)
        rows.append(row)
    return rows


def _of(rival: str, found: Sequence[Alongside]) -> list[Ratio]:
    return [one.ratios[rival] for one in found if rival in one.ratios]


def _apart(name: str, skipped: Sequence[str] = ()) -> Alongside:
    command = [sys.executable, "-m", "benchmarks", "--apart", name, *skipped]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    data = json.loads(done.stdout.splitlines()[-1])
    data["ratios"] = {name: Ratio(**each) for name, each in data["ratios"].items()}
    return Alongside(**data)


def elaboration(jax: Any) -> list[Row]:
    """Source to typed program, per operation."""
    rows: list[Row] = []
    for work in SUBJECTS["programs"]:
        ratio, count, operations = building.elaboration(jax, work)
        name = f"{work.name} ({count}/{operations})"
        rows.append(Row.of("building", name, "make_jaxpr, per operation", ratio))
    return rows


def differentiation(jax: Any) -> list[Row]:
    """Checked programs to their derivatives."""
    return [
        Row.of(
            "building",
            work.name,
            "make_jaxpr of the derivative",
            building.differentiation(jax, work),
        )
        for work in WORKLOADS.values()
        if work.derived is not None
    ]


def new_shape(jax: Any) -> list[Row]:
    """Known kernels at new sizes."""
    return [
        Row.of("building", work.name, "a new shape, lowered", building.new_shape(jax, work))
        for work in SUBJECTS["programs"]
    ]


def first_call(jax: Any) -> list[Row]:
    """Kernels as they are first called, with nothing kept."""
    os.environ["PSCDSL_CACHE"] = "off"
    try:
        return [
            Row.of("building", work.name, "a first call", building.first_call(jax, work))
            for work in (*SUBJECTS["programs"], *SUBJECTS["training"])
        ]
    finally:
        del os.environ["PSCDSL_CACHE"]


BUILDING: dict[str, Callable[[Any], list[Row]]] = {
    "elaboration": elaboration,
    "differentiation": differentiation,
    "new_shape": new_shape,
    "first_call": first_call,
}


def main(arguments: Sequence[str]) -> None:
    """Run what is named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="measurements, subjects or workloads; all if none")
    parser.add_argument("--json", type=Path, help="where to write what was measured")
    parser.add_argument("--plot", type=Path, help="where to draw it, a PNG file")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="for each workload")
    parser.add_argument("--without", metavar="FORM,...", help="forms that are switched off")
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.apart:
        print(json.dumps(asdict(measure(WORKLOADS[options.names[0]], options.names[1:]))))
        return
    if options.without:
        os.environ[VARIABLE] = options.without  # also in the processes that this starts
    known = {"checking", "startup", "dispatch", "torch", *BUILDING, *SUBJECTS, *WORKLOADS}
    if unknown := set(options.names) - known:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")
    if "torch" in options.names:
        options.names += TORCH
    wanted = set(options.names) or {"checking", "startup", "dispatch", *BUILDING, *SUBJECTS}
    rows: list[Row] = []
    if "checking" in wanted:
        print(report.table("pscdsl check, from process start", ("what", "time"), checking()))
    if "startup" in wanted:
        rows += startup()
        print(report.summary(rows), flush=True)
    if "dispatch" in wanted:
        made = dispatch()
        rows += made
        print(report.summary(made), flush=True)
    for name, build in BUILDING.items():
        if name in wanted:
            made = build(importlib.import_module("jax"))
            rows += made
            print(report.summary(made), flush=True)
    running: list[Row] = []
    failed: list[str] = []
    for subject, works in SUBJECTS.items():
        for work in works:
            if wanted & {subject, work.name}:
                print(work.name, end=" ", file=sys.stderr, flush=True)
                try:
                    running += in_processes(subject, work, options.processes)
                except subprocess.CalledProcessError:  # it has said why; the others go on
                    failed.append(work.name)
    print(file=sys.stderr)
    if running:
        print(report.summary(running))
    rows += running
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    if options.plot:
        plot(rows, options.plot)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
