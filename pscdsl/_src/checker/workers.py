"""Files shared out over processes that check them."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import IO, Any, Protocol

from pscdsl._src.checker.check import check_file, deep_stack
from pscdsl._src.checker.fixing import with_confirmed
from pscdsl._src.checker.result_store import (
    Reads,
    Unreadable,
    plain,
    read,
    read_result,
    reads_of,
)
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.text.source import shown_path
from pscdsl.typing.codes.projects import CheckDied
from pscdsl.typing.diagnostics import Failure, Span

# A process that checks files for another one.
#
# First a line with the files comes in, and one goes out that it was understood.
# Then a line with a path comes in, and a line of data goes out, until the input ends.


READY = b"ready\n"
COLLECT_EVERY = 400
"""The number of files after which garbage (some 40 KiB a kernel) is collected."""


@contextlib.contextmanager
def _rarely_collected() -> Generator[None]:
    """Suspend automatic garbage collection: it walks over all trees, a fifth of a check's time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may be written among the answers
    gc.disable()
    serve(sys.stdin.buffer, answers)
    os._exit(0)  # freeing every object would take a third of the time of a check


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Check the requested files."""
    setup = json.loads(requests.readline())
    files = Files(setup["given"], setup["roots"], setup["bounds"])
    files.dialect = setup["dialect"]
    files.further = setup["further"] and tuple(setup["further"])
    answers.write(READY)
    answers.flush()
    answer_each(files, requests, answers, keep=setup["keep"])


def answer_each(files: Files, requests: IO[bytes], answers: IO[bytes], *, keep: bool) -> None:
    """Check each file whose path comes in, until the input ends."""
    with deep_stack(), _rarely_collected():
        for number, line in enumerate(requests, 1):
            answer = answer_for(files, json.loads(line), keep=keep)
            data = [plain(answer.reads), plain(answer.result)]
            answers.write(json.dumps(data).encode() + b"\n")
            answers.flush()
            if number % COLLECT_EVERY == 0:
                gc.collect()


@dataclass(frozen=True)
class Answer:
    """The result for a file, and its dependencies; without them it is not to be stored."""

    path: str
    result: CheckResult
    reads: Reads | None


def answer_for(files: Files, path: str, *, keep: bool) -> Answer:
    """Return the result for one file."""
    result, project = check_file(files, path)
    result = with_confirmed(files, path, result)
    if files.further is not None:
        module, seconds = files.further
        gc.enable()  # each trial is garbage
        result = importlib.import_module(module).completed(result, project, path, seconds)
        gc.disable()
    return Answer(path, result, reads_of(project, path) if keep else None)


# Files shared out over processes.
#
# The first processes are forks of this one where that is safe: they have imported everything.  A
# thread serves each process, and hands it one file after the other.  A process that ends before it
# has answered has a finding for its file, and is followed by another one.


_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from pscdsl._src.checker.workers import main; main()"
)
_FAREWELL = 10.0
"""Seconds in which a process ends after its input has."""


class NoProcess(Exception):
    """No process could be started, or it did not answer at all."""


class Process(Protocol):
    """The part of a `Popen` that ends it."""

    def kill(self) -> None:
        """End it immediately."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return the exit code; negative for a signal."""
        ...


@dataclass(frozen=True)
class Fork:
    """A process that started as a copy of this one."""

    pid: int

    def kill(self) -> None:
        """End it immediately."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return the exit code; negative for a signal."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            pid, status = os.waitpid(self.pid, 0 if deadline is None else os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("fork", timeout or 0.0)
            time.sleep(0.002)


@dataclass(frozen=True, eq=False)
class Worker:
    """A process that checks files: paths go in, answers come out."""

    process: Process
    requests: IO[bytes]
    answers: IO[bytes]

    def ask(self, request: Any) -> bytes:
        """Return the line that the process answers; nothing if it has ended."""
        try:
            self.requests.write(json.dumps(request).encode() + b"\n")
            self.requests.flush()
            return self.answers.readline()
        except (OSError, ValueError):
            return b""

    def end(self) -> int:
        """End the process, and return its exit code."""
        with contextlib.suppress(OSError):  # nothing read the last write
            self.requests.close()
        try:
            code = self.process.wait(_FAREWELL)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.answers.close()
        return code


def may_fork() -> bool:
    """Return whether a copy of this process can work: no other thread may hold a lock."""
    return sys.platform == "linux" and threading.active_count() == 1


def forked(files: Files, others: Sequence[Worker], *, keep: bool) -> Worker:
    """Start a copy of this process, which has imported and read everything, as a worker."""
    request_in, request_out = os.pipe()
    answer_in, answer_out = os.pipe()
    with warnings.catch_warnings():
        # Python warns of NumPy's threads, which are made for this.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        os.close(request_in)
        os.close(answer_out)
        return Worker(Fork(pid), open(request_out, "wb"), open(answer_in, "rb"))
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
        os.close(request_out)
        for other in others:
            os.close(other.requests.fileno())
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        answer_each(files, open(request_in, "rb"), open(answer_out, "wb"), keep=keep)
        code = 0
    finally:
        os._exit(code)


@dataclass
class Workers:
    """The processes that work on some files, and the files that no one has taken yet."""

    files: Files
    waiting: deque[str]
    keep: bool
    """Whether the dependencies of results are needed."""
    forks: list[Worker] = field(default_factory=list[Worker])
    """The processes that no thread serves yet."""
    running: set[Worker] = field(default_factory=set[Worker])
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: SimpleQueue[Answer | None] = field(default_factory=SimpleQueue[Any])

    def start(self) -> Worker:
        """Return a process that is ready."""
        with self.lock:
            if self.stopped:
                raise NoProcess
            if self.forks:
                return self.forks.pop()
            worker = _started()
            self.running.add(worker)
        files = self.files
        setup = {
            "given": files.given,
            "roots": files.roots,
            "dialect": files.dialect,
            "further": files.further,
            "bounds": files.bounds,
            "keep": self.keep,
        }
        if worker.ask(setup) != READY:
            self.end(worker)
            raise NoProcess
        return worker

    def end(self, worker: Worker) -> int:
        """End a process, and return its exit code."""
        code = worker.end()
        with self.lock:
            self.running.discard(worker)
        return code

    def serve(self) -> None:
        """Hand out files to one process, and after its death to another, until none is left."""
        worker: Worker | None = None
        try:
            while not self.stopped:
                worker = self.start() if worker is None else worker
                try:
                    path = self.waiting.popleft()
                except IndexError:
                    return
                answer = _answer(path, worker.ask(path))
                if answer is None:
                    answer = _died(path, self.end(worker))
                    worker = None
                self.answers.put(answer)
        except NoProcess:
            pass
        finally:
            if worker is not None:
                self.end(worker)
            self.answers.put(None)

    def stop(self) -> None:
        """End all processes."""
        with self.lock:
            self.stopped = True
            running = tuple(self.running)
        for worker in running:
            worker.process.kill()


def shared_out(files: Files, paths: Sequence[str], jobs: int, *, keep: bool) -> Iterator[Answer]:
    """Yield the answers for files in the order they come; those without one are left out."""
    workers = Workers(files, deque(paths), keep)
    jobs = min(jobs, len(paths))
    if may_fork():
        for _ in range(jobs):
            workers.forks.append(forked(files, workers.forks, keep=keep))
        workers.running.update(workers.forks)
    threads = [threading.Thread(target=workers.serve) for _ in range(jobs)]
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


def _started() -> Worker:
    """Start a process of a new interpreter; raises `NoProcess` if none can be started."""
    command = [sys.executable, "-P", "-c", _START, json.dumps(sys.path)]
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    except OSError:
        raise NoProcess from None
    assert process.stdin is not None
    assert process.stdout is not None
    return Worker(process, process.stdin, process.stdout)


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
    """Return the number of processes that can run in parallel."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Checking here or in several processes.


MOST_JOBS = 4
"""Each process takes about 80 MB."""
_WORTHWHILE = 150_000
"""The bytes of source whose check takes longer than the start of a process."""
_WORTHWHILE_FURTHER = 2_000
"""Those whose check does if something is added to its results."""


def checked(
    files: Files, paths: Sequence[str], jobs: int | None, *, keep: bool
) -> Iterator[Answer]:
    """Yield the answers for all files, in any order; `jobs` defaults to as many as are worth it."""
    jobs = _jobs(files, paths) if jobs is None else min(jobs, len(paths))
    left = dict.fromkeys(paths)
    if jobs > 1:
        for answer in shared_out(files, paths, jobs, keep=keep):
            del left[answer.path]
            yield answer
    with deep_stack(), _rarely_collected():
        for number, path in enumerate(left, 1):
            yield answer_for(files, path, keep=keep)
            if number % COLLECT_EVERY == 0:
                gc.collect()


def _jobs(files: Files, paths: Sequence[str]) -> int:
    """Return the number of processes that have enough files to check."""
    total = 0
    for path in paths:
        try:
            total += len(files.data(path))
        except Failure:
            pass  # it needs no time
    worthwhile = _WORTHWHILE if files.further is None else _WORTHWHILE_FURTHER
    return min(cores(), MOST_JOBS, len(paths), 1 + total // worthwhile)
