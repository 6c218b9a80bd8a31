"""Many kernels in worker processes: what became of them, and which programs ended a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.differential import coverage

CHUNK: Final = 50
"""Kernels that one process tries."""
PATIENCE: Final = 600.0
"""Seconds after which a kernel hangs."""
KINDS: Final = ("differences", "crashes", "refused", "model")


@dataclass
class Figures:
    """What became of all programs."""

    counts: Counter[str] = field(default_factory=Counter[str])
    covered: Counter[str] = field(default_factory=Counter[str])
    problems: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The kind of each, and what there is to say."""
    more: tuple[str, ...] = ()
    """What else workers are told."""
    folder: Path | None = None
    saved: float = 0.0
    lock: Any = field(default_factory=threading.Lock)

    def add(self, outcome: dict[str, Any]) -> None:
        """Count the programs of a kernel."""
        with self.lock:
            self.counts["kernels"] += 1
            self.counts[outcome["mode"]] += outcome["programs"]
            for key in ("programs", "values", "unknown"):
                self.counts[key] += outcome[key]
            self.covered.update(outcome["covered"])
            for kind in ("differences", "refused", "model"):
                for each in outcome[kind]:
                    self.problem(kind, each)
            self.save()

    def problem(self, kind: str, text: str) -> None:
        """Something that must not be."""
        self.counts[kind] += 1
        self.problems.append((kind, text))

    def save(self, now: bool = False) -> None:
        """The table and the problems as files, now and then."""
        if self.folder is None or (time.monotonic() - self.saved < 10 and not now):
            return
        self.saved = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        text = f"{self.table()}\n\n{coverage.table(self.covered)}\n"
        (self.folder / "table.txt").write_text(text, encoding="utf-8")
        for kind in KINDS:
            texts = [text for of, text in self.problems if of == kind]
            (self.folder / f"{kind}.txt").write_text("\n".join(texts), encoding="utf-8")

    def table(self) -> str:
        """One line a figure."""
        c = self.counts
        share = 100 * c["unknown"] / max(c["values"], 1)
        rows = [
            ("kernels", c["kernels"]),
            ("programs", c["programs"]),
            ("  compiled as for users", c["users"]),
            ("  with code that is not optimised", c["quick"]),
            ("values compared", c["values"] - c["unknown"]),
            (f"values of which nothing is known ({share:.2f} %)", c["unknown"]),
            ("differences", c["differences"]),
            ("crashes", c["crashes"]),
            ("refused programs", c["refused"]),
            ("NumPy outside of the bounds", c["model"]),
        ]
        return "\n".join(f"{name:48}{number:>14,}" for name, number in rows)


def campaign(
    programs: int,
    seed: int,
    jobs: int = 2,
    decorator: str = "kernel",
    folder: Path | None = None,
    without: str | None = None,
) -> Figures:
    """Try at least so many programs, of kernels from this seed on.

    Those compiled without a rule are tried until a problem is found.
    """
    more = ("--decorator", decorator, *(() if without is None else ("--without", without)))
    figures = Figures(more=more, folder=folder)
    size = 5 if without else CHUNK
    chunks = iter(range(seed * 10**7, 10**12, size))
    lock = threading.Lock()

    def work() -> None:
        while figures.counts["programs"] < programs and not (without and figures.problems):
            with lock:
                first = next(chunks)
            for kind, text in chunk(first, size, figures):
                with figures.lock:
                    figures.problem(kind, text)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    figures.save(now=True)
    return figures


def chunk(first: int, count: int, figures: Figures) -> Iterator[tuple[str, str]]:
    """Try kernels in processes of their own; what has ended one, and is left out by the next."""
    end = first + count
    while first < end:
        begun, code = worker(first, end - first, figures.more, figures)
        if code == 0:
            return
        seed = first if begun is None else begun
        yield "crashes", f"seed {seed}: exit code {code}; {culprits(seed, figures.more)}"
        first = seed + 1


def worker(
    first: int,
    count: int,
    more: Sequence[str] = (),
    figures: Figures | None = None,
    program: int | None = None,
) -> tuple[int | None, int]:
    """The seed that was begun last, and how the process ended."""
    command = [sys.executable, "-m", "tests.differential.worker", str(first), str(count)]
    command += more
    if program is not None:
        command += ["--program", str(program)]
    environment = {**os.environ, "PSCDSL_CACHE": "off"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    begun = None
    with process:
        last = [time.monotonic()]
        watch = threading.Thread(target=_kill_if_it_hangs, args=(process, last), daemon=True)
        watch.start()
        assert process.stdout is not None
        for line in process.stdout:
            last[0] = time.monotonic()
            said = json.loads(line)
            begun = said.get("begun", begun)
            if "programs" in said and figures is not None:
                figures.add(said)
    return begun, process.wait()


def _kill_if_it_hangs(process: subprocess.Popen[str], last: list[float]) -> None:
    while process.poll() is None:
        time.sleep(1)
        if time.monotonic() - last[0] > PATIENCE:
            process.kill()


def culprits(seed: int, more: Sequence[str]) -> str:
    """Which programs of a kernel end a process on their own."""
    from tests.differential.programs import generate

    kernel = generate(seed)
    found: list[str] = []
    for index, program in enumerate(kernel.programs):
        _, code = worker(seed, 1, more, None, index)
        if code:
            found.append(f"program {index}, exit code {code}\n{kernel.text([program])}")
    return "\n".join(found) or f"none of its programs alone\n{kernel.text()}"
