"""The check of a project: known results from disk, the others found here or by processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pscdsl._src.checker.result_store import Reads, ResultStore
from pscdsl._src.checker.results import CheckResult, summary
from pscdsl._src.frontend.modules.files import Files


@dataclass(frozen=True)
class CheckOptions:
    """The options for checking a project."""

    cache: str | None = None
    """The folder of results from before; None to look at nothing and keep nothing."""
    jobs: int | None = None
    """The number of processes; None for as many as are worth it."""
    progress: Callable[[int, int], None] = lambda done, total: None
    """Receives how many files are done, and of how many."""


def check_project(files: Files, options: CheckOptions) -> CheckResult:
    """Check the files that are given; results from before are used where they still hold."""
    if options.cache is None:
        return summary([*_checked(files, [*files.given], options, None).values()])
    started = time.time()
    store = ResultStore(options.cache, files)
    try:
        known = store.whole(files)
        if known is not None:
            return known
        results: dict[str, CheckResult] = {}
        reads: list[Reads] = []
        for path in files.given:
            entry = store.get(path, files)
            if entry is not None:
                reads.append(entry[0])
                results[path] = entry[1]
        missing = [path for path in files.given if path not in results]
        if missing:
            results |= _checked(files, missing, options, (store, reads))
        result = summary([results[path] for path in files.given])
        if len(reads) == len(results):
            store.put_whole(files, reads, started, result)
        return result
    finally:
        store.close()


def _checked(
    files: Files,
    paths: list[str],
    options: CheckOptions,
    kept: tuple[ResultStore, list[Reads]] | None,
) -> dict[str, CheckResult]:
    """Check files, in their order, and store the results."""
    from pscdsl._src.checker.workers import checked  # which known results do not need

    done = len(files.given) - len(paths)
    found: dict[str, CheckResult] = {}
    for answer in checked(files, paths, options.jobs, keep=kept is not None):
        found[answer.path] = answer.result
        if kept is not None and answer.reads is not None:
            store, reads = kept
            if store.put(answer.path, answer.reads, answer.result):
                reads.append(answer.reads)
        options.progress(done + len(found), len(files.given))
    return {path: found[path] for path in paths}
