"""Every kernel of the library and the examples, compiled for GPUs that are not here.

    python -m tests.compile_ahead --gpus h100,l4

Prints a table: for each kernel and GPU the seconds that XLA took, how many device functions the
program has, and its temporary memory; then the routines of libraries that it calls.  A kernel that
a GPU cannot compute has the code of the diagnostic that says so.  Exit code 1: XLA refused one,
or crashed on one twice.

Each kernel is compiled in a process of its own: XLA's compiler crashes at times where two threads
of a process compile, and a crash then says which kernel it was.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import perf_counter

from pscdsl._src.calls.errors import CheckError
from pscdsl._src.ir.program import Function
from pscdsl._src.kernels.emission import emitted
from pscdsl._src.targets.gpu.ahead import CompiledAhead, compile_ahead
from pscdsl._src.targets.gpu.described import GPUS, Gpu
from pscdsl._src.xla.device import Device, UnsupportedDeviceError
from pscdsl._src.xla.runtime.executable import CompilationFailed
from pscdsl._src.xla.runtime.plugins import find
from tests.golden_modules import programs, sizes_near

FOLDERS = ("stdlib", "examples")
FORK = get_context("fork")
"""Programs are checked once; XLA is started in the processes that compile."""
SCALE = 64
"""About how large the sizes are."""


@dataclass
class Row:
    """What became of a kernel."""

    name: str
    made: list[CompiledAhead]
    refused: str = ""
    """The codes of the diagnostics that refuse it before XLA."""
    failed: str = ""
    """What XLA says of it."""


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.compile_ahead", description=__doc__)
    parser.add_argument("--gpus", default="h100,l4", help=f"of {', '.join(GPUS)}")
    parser.add_argument("--jobs", type=int, default=2, help="how many are compiled at a time")
    given = parser.parse_args()
    gpus = [GPUS[name] for name in given.gpus.split(",")]
    try:
        find("cuda")
    except UnsupportedDeviceError as problem:
        print(f"Nothing was compiled for GPUs: {problem}.")
        return 0
    # XLA names the functions of its own stack while it compiles, with a program of LLVM's if the
    # machine has it: that takes a third of the time, and nothing shows it.
    os.environ.setdefault("LLVM_DISABLE_SYMBOLIZATION", "1")
    started = perf_counter()
    rows = _rows([*programs(FOLDERS, choices=1)], gpus, given.jobs)
    _print(rows, gpus)
    print(f"{perf_counter() - started:.0f} s in all")
    return int(any(row.failed for row in rows) or not any(row.made for row in rows))


def _rows(programs: Sequence[tuple[str, Function]], gpus: Sequence[Gpu], jobs: int) -> list[Row]:
    """The rows of all programs, so many of them compiled at a time."""
    rows: dict[int, Row] = {}
    waiting = deque(range(len(programs)))
    running: dict[Connection, tuple[int, BaseProcess]] = {}
    crashed: set[int] = set()
    while waiting or running:
        while waiting and len(running) < jobs:
            place = waiting.popleft()
            receiver, sender = FORK.Pipe(duplex=False)
            process: BaseProcess = FORK.Process(
                target=_send_row, args=(sender, *programs[place], gpus)
            )
            process.start()
            sender.close()
            running[receiver] = place, process
        done = wait([*running])
        for receiver in [each for each in running if each in done]:
            place, process = running.pop(receiver)
            try:
                rows[place] = receiver.recv()
            except EOFError:
                process.join()
                if place in crashed:
                    why = f"the compiler crashed twice, with exit code {process.exitcode}"
                    rows[place] = Row(_name(programs[place][0]), [], failed=why)
                else:
                    crashed.add(place)
                    waiting.append(place)
            process.join()
    for place in sorted(crashed):
        print(f"The compiler crashed on {rows[place].name}.")
    return [rows[place] for place in range(len(programs))]


def _send_row(sender: Connection, name: str, function: Function, gpus: Sequence[Gpu]) -> None:
    sender.send(_row(name, function, gpus))


def _name(program: str) -> str:
    return program.rpartition(".")[0]


def _row(name: str, function: Function, gpus: Sequence[Gpu]) -> Row:
    row = Row(_name(name), [])
    sizes = sizes_near(function, SCALE)
    if sizes is None:
        row.refused = "no sizes"
        return row
    try:
        for gpu in gpus:
            row.made.append(compile_ahead(emitted(function, sizes, device=Device("cuda")), gpu))
    except CheckError as error:
        row.refused = ", ".join(sorted({each.code for each in error.diagnostics}))
    except CompilationFailed as problem:
        row.failed = str(problem).partition("\n")[0]
    return row


def _print(rows: Sequence[Row], gpus: Sequence[Gpu]) -> None:
    columns = "".join([f"{gpu.name:>10} functions   temporary" for gpu in gpus])
    print(f"{'kernel':44}{columns}  libraries")
    for row in rows:
        if row.refused or row.failed:
            print(f"{row.name:44}  {row.refused or f'FAILED: {row.failed}'}")
            continue
        cells = [
            f"{made.seconds:8.2f} s{made.functions:10}{made.memory['temporaries']:12,}"
            for made in row.made
        ]
        called = ", ".join(sorted({name for made in row.made for name in made.libraries}))
        print(f"{row.name:44}{''.join(cells)}  {called}".rstrip())
    refused = Counter(row.refused for row in rows if row.refused)
    print(
        f"{sum(bool(row.made) and not row.failed for row in rows)} of {len(rows)} kernels", end=""
    )
    print("".join([f", {count} refused ({code})" for code, count in refused.items()]), end="")
    print(f", {sum(bool(row.failed) for row in rows)} failed; seconds of XLA:", end=" ")
    for place, gpu in enumerate(gpus):
        seconds = sum(row.made[place].seconds for row in rows if len(row.made) > place)
        print(f"{gpu.name} {seconds:.0f}", end=" ")
    print()


if __name__ == "__main__":
    sys.exit(main())
