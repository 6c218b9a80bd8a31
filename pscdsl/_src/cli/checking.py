"""The options that say how a project is checked: the cache, the processes, the progress bar."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pscdsl._src.caching import places
from pscdsl._src.checker.report.terminal import ProgressBar
from pscdsl._src.support.paths import admitted

if TYPE_CHECKING:
    from pscdsl._src.checker.check import CheckResult

VARIABLE = "PSCDSL_CACHE_DIR"


def add_checking(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("speed")
    group.add_argument(
        "--cache-dir",
        metavar="FOLDER",
        default=os.environ.get(VARIABLE),
        help=f"where results are kept (${VARIABLE}, or the user's folder for caches)",
    )
    group.add_argument("--no-cache", action="store_true", help="neither use nor keep results")
    group.add_argument(
        "--jobs",
        metavar="NUMBER",
        type=_positive,
        help="how many processes; by default as many as are worth it",
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def checked(
    arguments: argparse.Namespace,
    paths: Sequence[str],
    excluded: Callable[[str], bool],
    root: str,
) -> CheckResult:
    """What is found in files and below folders, given by resolved paths.

    Results are kept in the user's folder for caches, or where it is said, but not behind a link
    that leads out of `root` or the current folder.
    """
    from pscdsl._src.checker.workers import Options, check_project
    from pscdsl._src.frontend.folders import files_below

    cache = None if arguments.no_cache else _cache(arguments.cache_dir, root)
    with ProgressBar() as bar:
        options = Options(cache, arguments.jobs, bar.update)
        return check_project(files_below(paths, excluded, settled=True), options)


def _cache(given: str | None, root: str) -> str | None:
    if given:
        return admitted(given, [root, os.getcwd()])
    try:
        return str(places.of_user())
    except RuntimeError:  # a user without a home
        return None
