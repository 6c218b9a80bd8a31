"""The options that say how a project is checked: the cache, the processes, the progress bar."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pscdsl.report.progress import ProgressBar

if TYPE_CHECKING:
    from pscdsl.frontend.check import CheckResult

FOLDER = ".pscdsl_cache"
VARIABLE = "PSCDSL_CACHE_DIR"


def add_checking(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("speed")
    group.add_argument(
        "--cache-dir",
        metavar="FOLDER",
        default=os.environ.get(VARIABLE),
        help=f"where results are kept (${VARIABLE}, or {FOLDER} where the settings are)",
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
    """What is found in files and below folders; results are kept below `root` by default."""
    from pscdsl.checking.run import Options, check_project
    from pscdsl.frontend.files import files_below

    cache = arguments.cache_dir or os.path.join(root, FOLDER)
    with ProgressBar() as bar:
        options = Options(None if arguments.no_cache else cache, arguments.jobs, bar.update)
        return check_project(files_below(paths, excluded), options)
