"""`pscdsl discover`: prints a verdict about every function."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Set
from pathlib import Path

from pscdsl._src.cli import Unusable, say, wants_colour
from pscdsl._src.cli.check import may_change, save
from pscdsl._src.discover import report
from pscdsl._src.discover.fixing import fix
from pscdsl._src.discover.verdicts import Discovery, discovered, together
from pscdsl._src.frontend.modules.files import Files, files_below
from pscdsl._src.support.paths import admitted


def run(arguments: argparse.Namespace) -> int:
    """Look at every function and report."""
    given = [str(Path(path)) for path in arguments.paths]
    for path in given:
        if not os.path.exists(path):  # Path.exists raises an error for some names
            raise Unusable(f"no such file or folder: {path}")
    paths = [admitted(path, [os.getcwd()]) for path in given]
    files = files_below(paths)
    by_path = discovered(files)
    found = together([*by_path.values()])
    if arguments.format == "json":
        text = report.render_json(found, arguments.select)
    else:
        text = report.render_text(found, arguments.select, colour=wants_colour(arguments))
    sys.stdout.write(text)
    if arguments.fix:
        _write(files, set(may_change(given, paths)), by_path)
    return 0


def _write(files: Files, may_change: Set[str], found: Mapping[str, Discovery]) -> None:
    """Write the discovered definitions into the files."""
    verdicts = {path: each.verdicts for path, each in found.items() if path in may_change}
    fixed = fix(files, verdicts)
    for left in fixed.left:
        say(f"pscdsl: {left}", error=True)
    saved = [path for path, new in fixed.contents.items() if save(path, files.data(path), new)]
    count = sum(1 for path in saved for each in fixed.written if each == path)
    functions = "1 function" if count == 1 else f"{count} functions"
    many = "1 file" if len(saved) == 1 else f"{len(saved)} files"
    say(f"pscdsl: {functions} written in {many}", error=True)
