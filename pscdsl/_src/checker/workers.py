"""Checking whole projects: what was found before is read, what is new is shared out."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import IO, Any

from pscdsl._src.checker.check import CheckResult, check_file, deep_stack, summary
from pscdsl._src.checker.fixing import with_confirmed
from pscdsl._src.checker.result_store import (
    Reads,
    Store,
    Unreadable,
    plain,
    read,
    read_result,
    reads_of,
)
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.text.source import shown_path
from pscdsl.typing.codes.projects import CheckDied
from pscdsl.typing.diagnostics import Failure, Span

# A process that checks files for another one.
#
# First a line comes in that says which files there are, and one goes out that it was understood.
# Then a line with a path comes in, and a line of data goes out, until the input ends.


READY = b"ready\n"
COLLECT_EVERY = 400
"""After so many files, the garbage of their programs (some 40 KiB a kernel) is collected."""


@contextlib.contextmanager
def _rarely_collected() -> Generator[None]:
    """No automatic collection of garbage: it walks over all trees, a fifth of a check's time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this process ends it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may be written among the answers
    gc.disable()
    serve(sys.stdin.buffer, answers)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Check the files that are asked for."""
    setup = json.loads(requests.readline())
    files = Files(setup["given"], setup["roots"], setup["bounds"])
    answers.write(READY)
    answers.flush()
    with deep_stack(), _rarely_collected():
        for number, line in enumerate(requests, 1):
            path = json.loads(line)
            result, project = check_file(files, path)
            result = with_confirmed(files, path, result)
            reads = reads_of(project, path) if setup["keep"] else None
            answer = [plain(reads), plain(result)]
            del project
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
            if number % COLLECT_EVERY == 0:
                gc.collect()


# Files shared out over processes.
#
# Each process is served by a thread, which hands it one file after the other.  A process that ends
# before it has answered has a finding for its file, and is followed by another one.


_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from pscdsl._src.checker.workers import main; main()"
)
_FAREWELL = 10.0
"""Seconds in which a process ends after its input has."""


@dataclass(frozen=True)
class Answer:
    """The result for a file, and what it depends on; without that it is not to be stored."""

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


# The check of a project: known results from disk, the others in this process or in several.


MOST_JOBS = 4
"""Each process takes about 80 MB."""
_WORTHWHILE = 150_000
"""How many bytes of source take longer than the start of processes."""


@dataclass(frozen=True)
class Options:
    """How a project is checked."""

    cache: str | None = None
    """The folder of results from before; None to look at nothing and keep nothing."""
    jobs: int | None = None
    """How many processes; None for as many as are worth it."""
    progress: Callable[[int, int], None] = lambda done, total: None
    """Receives how many files are done, and of how many."""


def check_project(files: Files, options: Options) -> CheckResult:
    """Check the files that are given; the same is found in whatever way it is done."""
    store = None if options.cache is None else Store(options.cache, files)
    results: dict[str, CheckResult] = {}
    if store is not None:
        for path in files.given:
            known = store.get(path, files)
            if known is not None:
                results[path] = known
    missing = [path for path in files.given if path not in results]
    for answer in _checked(files, missing, options):
        results[answer.path] = answer.result
        if store is not None and answer.reads is not None:
            store.put(answer.path, answer.reads, answer.result)
        options.progress(len(results), len(files.given))
    if store is not None:
        store.close()
    return summary([results[path] for path in files.given])


def _checked(files: Files, paths: Sequence[str], options: Options) -> Iterator[Answer]:
    """The answers for all files, in any order."""
    jobs = _jobs(files, paths) if options.jobs is None else min(options.jobs, len(paths))
    left = dict.fromkeys(paths)
    if jobs > 1:
        for answer in shared_out(files, paths, jobs, keep=options.cache is not None):
            del left[answer.path]
            yield answer
    with deep_stack(), _rarely_collected():
        for number, path in enumerate(left, 1):
            result, project = check_file(files, path)
            result = with_confirmed(files, path, result)
            reads = None if options.cache is None else reads_of(project, path)
            yield Answer(path, result, reads)
            del project
            if number % COLLECT_EVERY == 0:
                gc.collect()


def _jobs(files: Files, paths: Sequence[str]) -> int:
    """How many processes have enough files to check."""
    total = 0
    for path in paths:
        try:
            total += len(files.data(path))
        except Failure:
            pass  # there is nothing to do for it
    return min(cores(), MOST_JOBS, len(paths), 1 + total // _WORTHWHILE)
