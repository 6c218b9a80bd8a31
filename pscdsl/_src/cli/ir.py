"""`pscdsl ir`: typed programs, printed."""

from __future__ import annotations

import argparse

from pscdsl._src.cli import say
from pscdsl._src.cli.kernel_arguments import chosen, reporting
from pscdsl._src.transforms.simplify import simplify


def run(arguments: argparse.Namespace) -> int:
    """Print the program."""

    def work() -> None:
        for kernel in chosen(arguments):
            program = kernel.ir()
            say(str(simplify(program) if arguments.simplified else program).rstrip())

    return reporting(work)
