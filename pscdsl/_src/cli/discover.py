"""`pscdsl discover`: what is found of every function, printed."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from pscdsl._src.cli import Unusable, wants_colour
from pscdsl._src.discover import report
from pscdsl._src.discover.verdicts import discover_paths
from pscdsl._src.support.paths import admitted


def run(arguments: argparse.Namespace) -> int:
    """Look at every function and report."""
    given = [str(Path(path)) for path in arguments.paths]
    for path in given:
        if not os.path.exists(path):  # Path.exists raises an error for some names
            raise Unusable(f"no such file or folder: {path}")
    paths = [admitted(path, [os.getcwd()]) for path in given]
    found = discover_paths(paths)
    if arguments.format == "json":
        text = report.render_json(found, arguments.select)
    else:
        text = report.render_text(found, arguments.select, colour=wants_colour(arguments))
    sys.stdout.write(text)
    return 0
