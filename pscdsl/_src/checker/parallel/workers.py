"""Files shared out over processes.

Each process is served by a thread, which hands it one file after the other.  A process that ends
before it has answered has a finding for its file, and is followed by another one.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from pscdsl._src.checker.check import CheckResult
from pscdsl._src.checker.parallel.data import Unreadable
from pscdsl._src.checker.parallel.reads import Reads
from pscdsl._src.checker.parallel.recorded import read, read_result
from pscdsl._src.checker.parallel.worker import READY
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.text.source import shown_path
from pscdsl.typing.codes.limits_projects import CheckDied
from pscdsl.typing.spans import Span

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from pscdsl._src.checker.parallel.worker import main; main()"
)
_FAREWELL = 10.0
"""Seconds in which a process ends after its input has."""


@dataclass(frozen=True)
class Answer:
    """The result for a file, and what it depends on; without that it is not to be kept."""

    path: str
    result: CheckResult
    reads: Reads | None


class NoProcess(Exception):
    """No process could be started, or it did not answer at all."""


@dataclass
class Workers:
    """The processes that work on some files, and the files that no one has taken yet."""

    files: Files
    waiting: deque[str]
    keep: bool
    """Whether it matters what the results depend on."""
    processes: set[subprocess.Popen[bytes]] = field(default_factory=set[Any])
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: SimpleQueue[Answer | None] = field(default_factory=SimpleQueue[Any])

    def start(self) -> subprocess.Popen[bytes]:
        """A process that is ready."""
        command = [sys.executable, "-P", "-c", _START, json.dumps(sys.path)]
        with self.lock:
            if self.stopped:
                raise NoProcess
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            except OSError:
                raise NoProcess from None
            self.processes.add(process)
        files = self.files
        setup: dict[str, object] = {
            "given": files.given,
            "roots": files.roots,
            "bounds": files.bounds,
        }
        setup["keep"] = self.keep
        if _asked(process, setup) != READY:
            self.end(process)
            raise NoProcess
        return process

    def end(self, process: subprocess.Popen[bytes]) -> int:
        """End a process; its exit code."""
        if process.stdin is not None:
            with contextlib.suppress(OSError):  # what was written last found no reader
                process.stdin.close()
        try:
            code = process.wait(_FAREWELL)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
        with self.lock:
            self.processes.discard(process)
        return code

    def serve(self) -> None:
        """Hand out files to one process, and after its death to another, until none is left."""
        process: subprocess.Popen[bytes] | None = None
        try:
            while not self.stopped:
                process = self.start() if process is None else process
                try:
                    path = self.waiting.popleft()
                except IndexError:
                    return
                line = _asked(process, path)
                answer = _answer(path, line)
                if answer is None:
                    answer = _died(path, self.end(process))
                    process = None
                self.answers.put(answer)
        except NoProcess:
            pass
        finally:
            if process is not None:
                self.end(process)
            self.answers.put(None)

    def stop(self) -> None:
        """End all processes."""
        with self.lock:
            self.stopped = True
            processes = tuple(self.processes)
        for process in processes:
            process.kill()


def shared_out(files: Files, paths: Sequence[str], jobs: int, *, keep: bool) -> Iterator[Answer]:
    """The answers for files in the order they come; those for which there are none are left out."""
    workers = Workers(files, deque(paths), keep)
    threads = [threading.Thread(target=workers.serve) for _ in range(min(jobs, len(paths)))]
    try:
        for thread in threads:
            thread.start()
        running = len(threads)
        while running:
            answer = workers.answers.get()
            if answer is None:
                running -= 1
            else:
                yield answer
    finally:
        workers.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def _asked(process: subprocess.Popen[bytes], request: Any) -> bytes:
    """The line that a process answers; nothing if it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        return process.stdout.readline()
    except (OSError, ValueError):
        return b""


def _answer(path: str, line: bytes) -> Answer | None:
    try:
        reads, result = json.loads(line)
        return Answer(path, read_result(result), read(Reads | None, reads))
    except (ValueError, TypeError, Unreadable):
        return None


def _died(path: str, code: int) -> Answer:
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    place = Span(shown_path(path), 1, 1, 1, 1)
    finding = CheckDied(reason=f"it ended {how}", span=place)
    return Answer(path, CheckResult((finding,), (), 1), None)


def cores() -> int:
    """How many processes can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
