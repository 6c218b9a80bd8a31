"""The check of a project: known results from disk, the others in this process or in several."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pscdsl._src.checker.check import CheckResult, check_file, deep_stack, summary
from pscdsl._src.checker.parallel.reads import reads_of
from pscdsl._src.checker.parallel.store import Store
from pscdsl._src.checker.parallel.worker import COLLECT_EVERY
from pscdsl._src.checker.parallel.workers import Answer, cores, shared_out
from pscdsl._src.frontend.modules.files import Files
from pscdsl.typing.diagnostics import Failure

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
    """Told how many files are done, and of how many."""


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
    with deep_stack():
        for number, path in enumerate(left, 1):
            result, project = check_file(files, path)
            reads = None if options.cache is None else reads_of(project, path)
            yield Answer(path, result, reads)
            del project
            if number % COLLECT_EVERY == 0:
                gc.collect()


def _jobs(files: Files, paths: Sequence[str]) -> int:
    """As many processes as have enough to do."""
    total = 0
    for path in paths:
        try:
            total += len(files.data(path))
        except Failure:
            pass  # there is nothing to do for it
    return min(cores(), MOST_JOBS, len(paths), 1 + total // _WORTHWHILE)
