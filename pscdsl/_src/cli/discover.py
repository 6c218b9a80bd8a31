"""Find the functions of plain NumPy code that are PSC already, and what stops the others.

A function that is PSC is shown as the definition of a kernel, to be put in place of its own; of the
others the first obstacle is shown, with its rewrite.  Nothing is imported or run.  Exit code 0: the
files were looked at, whatever was found; 2: could not run.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from pscdsl._src.cli import Unusable, add_colour, wants_colour
from pscdsl._src.support.paths import admitted

FORMATS = ("text", "json")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", type=Path, help="a file or a folder")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument(
        "--select",
        choices=("all", "psc", "obstacles"),
        default="all",
        help="which functions to show; the last line counts all of them",
    )
    add_colour(parser)


def run(arguments: argparse.Namespace) -> int:
    """Look at every function and report."""
    given = [str(path) for path in arguments.paths]
    for path in given:
        if not os.path.exists(path):  # Path.exists raises an error for some names
            raise Unusable(f"no such file or folder: {path}")
    paths = [admitted(path, [os.getcwd()]) for path in given]

    from pscdsl._src.discover.verdicts import discover_paths

    found = discover_paths(paths)
    if arguments.format == "json":
        from pscdsl._src.discover import report as discovery_json

        sys.stdout.write(discovery_json.render_json(found, arguments.select))
    else:
        from pscdsl._src.discover import report as discovery_text

        colour = wants_colour(arguments)
        sys.stdout.write(discovery_text.render_text(found, arguments.select, colour=colour))
    return 0
