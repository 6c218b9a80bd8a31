"""`pscdsl completion`: a script that completes commands and options in a shell, made by shtab."""

from __future__ import annotations

import argparse
import sys

from pscdsl._src.cli import COMMANDS, Parser, Unusable
from pscdsl._src.cli.parsers import PARSERS


def run(arguments: argparse.Namespace) -> int:
    """Print the script for a shell."""
    try:
        import shtab  # an extra: most users need none
    except ImportError:
        raise Unusable("shtab makes the scripts: `pip install shtab` installs it") from None
    places = {
        "PATH": shtab.FILE,
        "FILE": shtab.FILE,
        "FILE[:KERNEL]": shtab.FILE,
        "FOLDER": shtab.DIRECTORY,
    }
    parser = Parser(prog="pscdsl")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        PARSERS[name](command)
        for action in command.actions():
            if isinstance(action.metavar, str) and action.metavar in places:
                setattr(action, "complete", places[action.metavar])  # noqa: B010 (read by shtab)
    sys.stdout.write(shtab.complete(parser, arguments.shell))
    return 0
