"""The option `--colour`, and what it means where nothing is said."""

from __future__ import annotations

import argparse
import os
import sys


def add_colour(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--colour",
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour the output; by default where it goes to a terminal",
    )


def wants_colour(arguments: argparse.Namespace) -> bool:
    """Whether the output is to be coloured; `NO_COLOR` and a dumb terminal are respected."""
    if arguments.colour != "auto":
        return bool(arguments.colour == "always")
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and sys.stdout.isatty()
