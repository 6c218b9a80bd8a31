"""How long a command runs, and how much memory it and its children take together."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_INTERVAL = 0.02
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Run:
    """One run of a command."""

    seconds: float
    processor: float
    """Seconds of the processor, of all processes."""
    memory: int
    """The most bytes at one moment, of all processes."""
    code: int
    last: str
    """The last line that was printed."""


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Run:
    """Run a command to its end."""
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=dict(environment), stdout=output, stderr=subprocess.STDOUT
        )
        peak = _Peak(process.pid)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
    return Run(
        seconds,
        used.ru_utime + used.ru_stime,
        peak.stop(),
        process.returncode,
        lines[-1] if lines else "",
    )


class _Peak:
    """Looks at a process and those it has started, again and again."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._most = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> int:
        """The most bytes that were seen."""
        self._done.set()
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        while not self._done.wait(_INTERVAL):
            self._most = max(self._most, sum(map(_resident, _family(self._process))))


def _family(process: int) -> Iterator[int]:
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:  # it has ended
            continue
        for child in children:
            yield from _family(child)


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0
